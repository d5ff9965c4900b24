//! Compiles the tree to code: assigns slots to names, writes instructions for statements, and finds the last use of
//! every variable.
//!
//! In: an [`ast::File`]. Out: a [`Unit`] of [`Code`]. Must hold: CODE-1; every name that a function mentions has a
//! slot, since any name may turn out to be a variable (after `eval`, `load`).

mod assign;
mod builder;
pub mod code;
mod expression;
mod liveness;
mod nest;
mod settle;
mod statement;

pub use code::Code;

use super::error::ScriptError;
use super::source::Origin;
use super::syntax::ast::{self, Name};
use builder::Builder;
use code::Kind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::sync::Arc;

/// A compiled file.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The file's statements.
    pub main: Arc<Code>,
    /// Its functions by name.
    pub functions: FxHashMap<Name, Arc<Code>>,
    /// For a function file: the first function, which is called by the file's name.
    pub first_function: Option<Name>,
}

/// Compiles a file. With `release`, the script's own variables end at their last use, since they are not returned.
///
/// # Errors
/// Errors beyond syntax: `break` outside of a loop, or a repeated parameter.
pub fn compile(file: &ast::File, release: bool) -> Result<Unit, ScriptError> {
    let mut functions = FxHashMap::default();
    for function in &file.functions {
        functions.insert(function.name.name.clone(), Arc::new(compile_function(file, function)?));
    }
    let mut builder = Builder::new(file.source.clone(), Kind::Script, "".into());
    builder.block(&body(file))?;
    let main = Arc::new(builder.finish(release));
    let first_function = if file.is_function_file { file.functions.first().map(|f| f.name.name.clone()) } else { None };
    Ok(Unit { main, functions, first_function })
}

/// Returns a file's statements. Running a function file calls its first function.
fn body(file: &ast::File) -> Cow<'_, ast::Block> {
    match file.functions.first() {
        Some(function) if file.is_function_file && file.source.origin == Origin::File => {
            let (name, span) = (function.name.clone(), function.name.span);
            let kind = ast::StmtKind::Command { name, words: Vec::new() };
            Cow::Owned(vec![ast::Stmt { kind, span, print: false }])
        }
        _ => Cow::Borrowed(&file.body),
    }
}

fn compile_function(file: &ast::File, function: &ast::FunctionDef) -> Result<Code, ScriptError> {
    if !function.nested.is_empty() {
        return nest::compile_with_nested(&file.source, function);
    }
    let mut builder = Builder::new(file.source.clone(), Kind::Function, function.name.name.clone());
    builder.doc = function.doc.clone();
    builder.head(&function.params, &function.outputs)?;
    builder.block(&function.body)?;
    Ok(builder.finish(true))
}

/// The variables of a frame in which a compiled text will run.
#[derive(Debug)]
pub struct Known {
    /// Their names, by slot.
    pub names: Vec<Name>,
    /// Names of hidden variables that no running code uses.
    pub spare: Vec<Name>,
    /// The names of the nested functions that can be called there.
    pub nested_functions: Arc<FxHashSet<Name>>,
}

/// Compiles a text for `eval` in a frame with these variables; slots of new names follow them. If outputs are wanted,
/// the text is an expression that gives them. If the text fails, the handler runs.
///
/// # Errors
/// As [`compile`].
pub fn compile_eval(
    file: &ast::File,
    handler: Option<&ast::File>,
    known: Known,
    nargout: usize,
) -> Result<Unit, ScriptError> {
    let mut functions = FxHashMap::default();
    for function in [Some(file), handler].into_iter().flatten().flat_map(|file| &file.functions) {
        functions.insert(function.name.name.clone(), Arc::new(compile_function(file, function)?));
    }
    let mut builder = Builder::new(file.source.clone(), Kind::Eval, "".into());
    builder.knows(known);
    match handler {
        None => builder.values_or_block(&body(file), nargout)?,
        Some(handler) => builder.tried(&file.body, &handler.body, nargout)?,
    }
    Ok(Unit { main: Arc::new(builder.finish(false)), functions, first_function: None })
}

/// Returns the handle that a text of one expression makes (`str2func`); `None` if the text is anything else.
///
/// # Errors
/// As [`compile`].
pub fn handle(file: &ast::File) -> Result<Option<crate::value::Function>, ScriptError> {
    use crate::value::{Function, function::Closure};
    let [ast::Stmt { kind: ast::StmtKind::Expr(expr), .. }] = &file.body[..] else { return Ok(None) };
    match &expr.kind {
        ast::ExprKind::Handle(name) => Ok(Some(Function::Named(name.clone(), None))),
        ast::ExprKind::Anonymous(_) => {
            let mut builder = Builder::new(file.source.clone(), Kind::Eval, "".into());
            builder.expr(expr)?;
            let code = builder.closures.pop().map(|c| c.code);
            Ok(code.map(|code| Function::Anonymous(Arc::new(Closure { code, captured: Vec::new(), nest: None }))))
        }
        _ => Ok(None),
    }
}
