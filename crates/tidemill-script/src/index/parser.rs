//! `p.Results`, `p.KeepUnmatched = true`: reading and writing of an `inputParser`'s properties.

use super::{Access, Values};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::ops;
use crate::value::{Parser, Value};

/// `parser.name`.
pub fn field(parser: &Parser, name: &str) -> Flow<Values> {
    match parser.property(name) {
        Some(value) => Ok(smallvec::smallvec![value]),
        None => fail!("subsref: unknown method or property: {name}"),
    }
}

/// `parser.name = value`.
pub fn write(env: &mut Env, parser: &Parser, steps: &[Access], value: &Value) -> Flow<()> {
    let [Access::Field(name)] = steps else {
        return fail!("inputParser: only properties can be assigned to");
    };
    if &**name == "FunctionName" {
        let Some(text) = value.as_text() else {
            return fail!("inputParser: FunctionName must be a string");
        };
        parser.set(|s| s.function_name = text);
        return Ok(());
    }
    if !Parser::PROPERTIES.contains(&&**name) {
        return fail!("subsasgn: unknown property: {name}");
    }
    if ["Parameters", "Results", "Unmatched", "UsingDefaults"].contains(&&**name) {
        return fail!("subsasgn: property '{name}' has protected access and cannot be set in this context");
    }
    let on = ops::truth(env, value)?;
    parser.set(|s| match &**name {
        "CaseSensitive" => s.case_sensitive = on,
        "KeepUnmatched" => s.keep_unmatched = on,
        "PartialMatching" => s.partial_matching = on,
        _ => s.struct_expand = on,
    });
    Ok(())
}
