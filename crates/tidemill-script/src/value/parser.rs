//! `inputParser`: the arguments that a function takes, and the result of the last parsed list of arguments.
//!
//! Must hold: a parser is a handle: its copies share its settings. The lock is held during one access only, never while
//! a check runs.

use super::{Function, StructArray, Value};
use parking_lot::Mutex;
use std::sync::Arc;

/// An `inputParser`.
#[derive(Debug, Default)]
pub struct Parser {
    state: Mutex<State>,
}

/// The settings that a script can change.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether the case of names matters.
    pub case_sensitive: bool,
    /// The name of the function in errors.
    pub function_name: String,
    /// Whether arguments with unknown names are kept, and not refused.
    pub keep_unmatched: bool,
    /// Kept without an effect, as in Octave.
    pub partial_matching: bool,
    /// Whether a struct stands for the names and values of its fields.
    pub struct_expand: bool,
}

/// A defined argument.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The way in which it is given.
    pub kind: ArgumentKind,
    /// Its name.
    pub name: Arc<str>,
    /// Its value if it is not given.
    pub default: Value,
    /// The function that checks its value.
    pub check: Option<Arc<Function>>,
}

/// The way in which an argument is given. Arguments must be defined in this order, except for the last two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArgumentKind {
    /// By position, always.
    Required,
    /// By position, or not at all.
    Optional,
    /// By its name, followed by its value.
    Parameter,
    /// By its name only.
    Switch,
}

/// The result of the last parsing.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The values of all arguments.
    pub results: StructArray,
    /// The arguments that were given under unknown names.
    pub unmatched: StructArray,
    /// The names of the arguments that were not given.
    pub defaults: Vec<Arc<str>>,
}

#[derive(Debug, Default)]
struct State {
    settings: Settings,
    arguments: Vec<Argument>,
    parsed: Parsed,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            case_sensitive: false,
            function_name: String::new(),
            keep_unmatched: false,
            partial_matching: false,
            struct_expand: true,
        }
    }
}

impl Default for Parsed {
    fn default() -> Parsed {
        Parsed { results: StructArray::scalar(), unmatched: StructArray::scalar(), defaults: Vec::new() }
    }
}

impl Parser {
    /// The names of the properties that can be read, sorted.
    pub const PROPERTIES: [&'static str; 9] = [
        "CaseSensitive",
        "FunctionName",
        "KeepUnmatched",
        "Parameters",
        "PartialMatching",
        "Results",
        "StructExpand",
        "Unmatched",
        "UsingDefaults",
    ];

    /// The functions that can be called as methods (`p.parse (…)`).
    pub const METHODS: [&'static str; 6] =
        ["addRequired", "addOptional", "addParameter", "addParamValue", "addSwitch", "parse"];

    /// Returns the settings.
    pub fn settings(&self) -> Settings {
        self.state.lock().settings.clone()
    }

    /// Changes the settings.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.state.lock().settings);
    }

    /// Returns the defined arguments, in order.
    pub fn arguments(&self) -> Vec<Argument> {
        self.state.lock().arguments.clone()
    }

    /// Defines an argument.
    pub fn define(&self, argument: Argument) {
        self.state.lock().arguments.push(argument);
    }

    /// Stores the result of a parsing.
    pub fn finish(&self, parsed: Parsed) {
        self.state.lock().parsed = parsed;
    }

    /// Returns the names of all arguments, ordered by kind and then by definition.
    pub fn names(&self) -> Vec<Arc<str>> {
        let mut arguments = self.arguments();
        arguments.sort_by_key(|a| a.kind);
        arguments.into_iter().map(|a| a.name).collect()
    }

    /// Returns a property's value; `None` for an unknown property.
    pub fn property(&self, name: &str) -> Option<Value> {
        let settings = self.settings();
        let structure =
            |pick: fn(&Parsed) -> &StructArray| Value::Struct(Arc::new(pick(&self.state.lock().parsed).clone()));
        Some(match name {
            "CaseSensitive" => settings.case_sensitive.into(),
            "FunctionName" => Value::string(settings.function_name),
            "KeepUnmatched" => settings.keep_unmatched.into(),
            "PartialMatching" => settings.partial_matching.into(),
            "StructExpand" => settings.struct_expand.into(),
            "Parameters" => texts(&self.names()),
            "Results" => structure(|p| &p.results),
            "Unmatched" => structure(|p| &p.unmatched),
            "UsingDefaults" => texts(&self.state.lock().parsed.defaults),
            _ => return None,
        })
    }

    /// Returns every value that it holds.
    pub fn values(&self) -> Vec<Value> {
        let state = self.state.lock();
        let parsed = [&state.parsed.results, &state.parsed.unmatched].into_iter();
        let parsed = parsed.flat_map(|s| s.fields.values().flatten().cloned());
        state.arguments.iter().map(|a| a.default.clone()).chain(parsed).collect()
    }

    /// Takes all values out of it.
    pub fn take_values(&mut self) -> Vec<Value> {
        let state = std::mem::take(self.state.get_mut());
        let checks = state.arguments.iter().filter_map(|a| a.check.clone()).map(Value::Function);
        let defaults = state.arguments.iter().map(|a| a.default.clone());
        let parsed = [&state.parsed.results, &state.parsed.unmatched].into_iter();
        let parsed = parsed.flat_map(|s| s.fields.values().flatten().cloned());
        checks.chain(defaults).chain(parsed).collect()
    }
}

/// Returns names as a cell row; without names it is 0×0.
fn texts(names: &[Arc<str>]) -> Value {
    if names.is_empty() {
        return Value::cell(super::Dims::zero(), Vec::new());
    }
    let names = names.iter().map(|n| Value::string(n.as_bytes())).collect();
    Value::Cell(Arc::new(super::CellArray::row(names)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_name_the_same_settings_and_names_are_in_the_order_of_kinds() {
        let parser = Arc::new(Parser::default());
        let other = parser.clone();
        let argument = |kind, name: &str| Argument { kind, name: name.into(), default: Value::empty(), check: None };
        parser.define(argument(ArgumentKind::Switch, "s"));
        parser.define(argument(ArgumentKind::Parameter, "p"));
        parser.set(|s| s.keep_unmatched = true);
        assert!(other.settings().keep_unmatched);
        assert_eq!(other.names().join(" "), "p s");
        assert!(Parser::PROPERTIES.iter().all(|name| other.property(name).is_some()));
        assert!(other.property("State").is_none());
    }
}
