//! Compiles functions with nested functions, and finds the variables that they share by MATLAB's rules.
//!
//! In: a function's definition, with the definitions inside of it. Out: its [`Code`], which contains theirs. Must hold:
//! a name in a nested function, other than its own parameters and outputs, stands for the variable of that name in the
//! nearest function around it that mentions the name. Only names that one of these functions assigns are shared, so
//! names of functions cost nothing.

use super::builder::Builder;
use super::code::{Code, Kind, Outer, Sharing, Slot};
use crate::error::ScriptError;
use crate::source::{Source, Span};
use crate::syntax::ast::{FunctionDef, Ident, Name, Param};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A function of the family, before its shared variables are known.
struct Member<'d> {
    def: &'d FunctionDef,
    /// The indices of the functions around it in the list of members, nearest first. They are smaller than its own
    /// index.
    around: Vec<usize>,
    /// The indices of the members nested in it.
    inside: Vec<usize>,
    /// The names that it mentions.
    mentions: FxHashMap<Name, Mention>,
}

/// The way in which a function mentions a name.
#[derive(Clone, Copy)]
struct Mention {
    is_assigned: bool,
    is_static: bool,
    /// The index of the member that owns the variable.
    owner: usize,
}

/// The shared variables: maps the owner's index and the name to the variable's index among those that the owner shares.
type Shared = FxHashMap<(usize, Name), usize>;

/// Compiles a function that contains nested functions.
///
/// # Errors
/// Those of [`super::compile`]; two nested functions of the same name; a global or persistent variable that a function
/// further out mentions.
pub(super) fn compile_with_nested(source: &Arc<Source>, def: &FunctionDef) -> Result<Code, ScriptError> {
    let mut members = Vec::new();
    add_member(source, def, Vec::new(), &mut members)?;
    find_owners(source, &mut members)?;
    let (shared, owned) = find_shared(&members);
    compile_member(source, &members, 0, &shared, &owned)
}

/// Adds a function, and those inside of it.
fn add_member<'d>(
    source: &Arc<Source>,
    def: &'d FunctionDef,
    around: Vec<usize>,
    members: &mut Vec<Member<'d>>,
) -> Result<usize, ScriptError> {
    let number = members.len();
    let mut builder = begin(source, def, Arc::default())?;
    builder.block(&def.body)?;
    let mentions = builder.mentioned().filter(|(name, ..)| may_be_shared(name));
    let mention = |(name, is_assigned, is_static): (&Name, bool, bool)| {
        (name.clone(), Mention { is_assigned, is_static, owner: number })
    };
    let mentions = mentions.map(mention).collect();
    members.push(Member { def, around: around.clone(), inside: Vec::new(), mentions });
    let mut names = FxHashSet::default();
    for nested in &def.nested {
        if !names.insert(&nested.name.name) {
            let message = format!("nested function '{}' is defined twice in '{}'", nested.name.name, def.name.name);
            return Err(builder.error(nested.name.span, message));
        }
        let around = std::iter::once(number).chain(around.iter().copied()).collect();
        let inside = add_member(source, nested, around, members)?;
        members[number].inside.push(inside);
    }
    Ok(number)
}

fn begin(
    source: &Arc<Source>,
    def: &FunctionDef,
    nested_functions: Arc<FxHashSet<Name>>,
) -> Result<Builder, ScriptError> {
    let mut builder = Builder::new(source.clone(), Kind::Function, def.name.name.clone());
    builder.doc = def.doc.clone();
    builder.nested_functions = nested_functions;
    builder.head(&def.params, &def.outputs)?;
    Ok(builder)
}

/// Whether a variable may be shared: `ans` and hidden variables belong to one function.
fn may_be_shared(name: &Name) -> bool {
    &**name != "ans" && !name.starts_with('(')
}

/// Returns the parameters and outputs of a function. They are its own, whatever the functions around it mention.
fn formals(def: &FunctionDef) -> impl Iterator<Item = &Ident> {
    let params = def.params.iter().filter_map(|param| match param {
        Param::Named(ident, _) => Some(ident),
        Param::Ignored(_) => None,
    });
    params.chain(&def.outputs)
}

/// Finds the member that owns each name's variable. Members come behind those around them.
fn find_owners(source: &Arc<Source>, members: &mut [Member]) -> Result<(), ScriptError> {
    for number in 0..members.len() {
        let own: FxHashSet<Name> = formals(members[number].def).map(|ident| ident.name.clone()).collect();
        let names: Vec<(Name, bool)> =
            members[number].mentions.iter().map(|(name, mention)| (name.clone(), mention.is_static)).collect();
        for (name, is_static) in names.into_iter().filter(|(name, _)| !own.contains(name)) {
            let outer = members[number].around.iter().find_map(|&outer| members[outer].mentions.get(&name));
            let Some(owner) = outer.map(|mention| mention.owner) else { continue };
            if is_static {
                let message = format!(
                    "'{name}' is declared global or persistent here, but a function around this one uses it: declare \
                     it there"
                );
                let span: Span = members[number].def.name.span;
                return Err(Builder::new(source.clone(), Kind::Function, name).error(span, message));
            }
            if let Some(mention) = members[number].mentions.get_mut(&name) {
                mention.owner = owner;
            }
        }
    }
    Ok(())
}

/// Finds the variables that several members use, and lists for each member those that it owns, in order.
fn find_shared(members: &[Member]) -> (Shared, Vec<Vec<Name>>) {
    let mut users: FxHashMap<(usize, &Name), (usize, bool)> = FxHashMap::default();
    for member in members {
        for (name, mention) in &member.mentions {
            let (count, is_assigned) = users.entry((mention.owner, name)).or_default();
            *count += 1;
            *is_assigned |= mention.is_assigned;
        }
    }
    let (mut shared, mut owned) = (Shared::default(), vec![Vec::new(); members.len()]);
    let mut names: Vec<(usize, &Name)> =
        users.into_iter().filter(|(_, (count, is_assigned))| *count > 1 && *is_assigned).map(|(key, _)| key).collect();
    names.sort();
    for (owner, name) in names {
        shared.insert((owner, name.clone()), owned[owner].len());
        owned[owner].push(name.clone());
    }
    (shared, owned)
}

fn compile_member(
    source: &Arc<Source>,
    members: &[Member],
    number: usize,
    shared: &Shared,
    owned: &[Vec<Name>],
) -> Result<Code, ScriptError> {
    let member = &members[number];
    let mut functions = FxHashMap::default();
    for &inside in &member.inside {
        let code = compile_member(source, members, inside, shared, owned)?;
        functions.insert(code.name.clone(), Arc::new(code));
    }
    let seen = std::iter::once(&number).chain(&member.around).flat_map(|&outer| &members[outer].def.nested);
    let nested_functions = Arc::new(seen.map(|def| def.name.name.clone()).collect());
    let mut builder = begin(source, member.def, nested_functions)?;
    let slots: Vec<Slot> = owned[number].iter().map(|name| builder.slot(name)).collect();
    let mut outer = Vec::new();
    for (name, mention) in &member.mentions {
        let place = shared.get(&(mention.owner, name.clone()));
        let between = member.around.iter().position(|&around| around == mention.owner);
        if let (Some(&place), Some(between)) = (place, between) {
            outer.push(Outer { slot: builder.slot(name), between, place });
        }
    }
    outer.sort_by_key(|outer| outer.slot);
    builder.shares(Sharing { functions, owned: slots, outer });
    builder.block(&member.def.body)?;
    Ok(builder.finish(true))
}
