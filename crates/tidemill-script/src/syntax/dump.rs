//! Prints a tree as text, compactly and with all of its structure, for tests and for debugging.
//!
//! Each statement takes a line, which ends in `;` if its result is not shown. Operators come first, in parentheses: `x
//! = -2^2;` is `(= x (- (^ 2 2)));`; an index is `(@ x (1 end) .name {2})`.

use super::ast::*;
use std::fmt::Write;

/// Prints a file: its statements, then its functions.
pub fn file(file: &File) -> String {
    let mut out = String::new();
    block(&mut out, &file.body, 0);
    for function in &file.functions {
        write_function(&mut out, function, 0);
    }
    out
}

/// Prints a function, and those nested in it behind its statements.
fn write_function(out: &mut String, function: &FunctionDef, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
    out.push_str("(function ");
    idents(out, &function.outputs);
    let _ = write!(out, " {} ", function.name.name);
    params(out, &function.params);
    if let Some(doc) = &function.doc {
        let _ = write!(out, " {doc:?}");
    }
    out.push('\n');
    block(out, &function.body, depth + 1);
    for nested in &function.nested {
        write_function(out, nested, depth + 1);
    }
    out.pop();
    out.push_str(")\n");
}

/// Prints an expression.
pub fn expr(expr: &Expr) -> String {
    let mut out = String::new();
    write_expr(&mut out, expr);
    out
}

fn block(out: &mut String, block: &[Stmt], depth: usize) {
    for stmt in block {
        out.extend(std::iter::repeat_n("  ", depth));
        statement(out, stmt, depth);
        out.push_str(if stmt.print { "\n" } else { ";\n" });
    }
}

/// Prints `(word block…)` behind the text that is already on the line.
fn nested(out: &mut String, inner: &[Stmt], depth: usize) {
    out.push('\n');
    block(out, inner, depth + 1);
    out.pop();
}

fn idents(out: &mut String, idents: &[Ident]) {
    let names: Vec<&str> = idents.iter().map(|ident| &*ident.name).collect();
    let _ = write!(out, "[{}]", names.join(" "));
}

fn params(out: &mut String, params: &[Param]) {
    out.push('(');
    for (at, param) in params.iter().enumerate() {
        out.push_str(if at > 0 { " " } else { "" });
        match param {
            Param::Ignored(_) => out.push('~'),
            Param::Named(ident, None) => out.push_str(&ident.name),
            Param::Named(ident, Some(value)) => {
                let _ = write!(out, "{}={}", ident.name, expr(value));
            }
        }
    }
    out.push(')');
}

fn target(out: &mut String, target: &Target) {
    if target.steps.is_empty() {
        out.push_str(&target.name.name);
    } else {
        let _ = write!(out, "(@ {}", target.name.name);
        steps(out, &target.steps);
        out.push(')');
    }
}

fn statement(out: &mut String, stmt: &Stmt, depth: usize) {
    match &stmt.kind {
        StmtKind::Expr(value) => write_expr(out, value),
        StmtKind::Assign { target: to, value } => {
            out.push_str("(= ");
            target(out, to);
            let _ = write!(out, " {})", expr(value));
        }
        StmtKind::MultiAssign { targets, value } => {
            out.push_str("(= [");
            for (at, to) in targets.iter().enumerate() {
                out.push_str(if at > 0 { " " } else { "" });
                match to {
                    Some(to) => target(out, to),
                    None => out.push('~'),
                }
            }
            let _ = write!(out, "] {})", expr(value));
        }
        StmtKind::OpAssign { target: to, op, value } => {
            let _ = write!(out, "({}= ", op.symbol());
            target(out, to);
            let _ = write!(out, " {})", expr(value));
        }
        StmtKind::Break => out.push_str("(break)"),
        StmtKind::Continue => out.push_str("(continue)"),
        StmtKind::Return => out.push_str("(return)"),
        StmtKind::Global(names) => declaration(out, "global", names),
        StmtKind::Persistent(names) => declaration(out, "persistent", names),
        StmtKind::Command { name, words } => {
            let _ = write!(out, "(command {}", name.name);
            words.iter().for_each(|word| {
                let _ = write!(out, " {word:?}");
            });
            out.push(')');
        }
        _ => compound(out, stmt, depth),
    }
}

fn declaration(out: &mut String, word: &str, names: &[(Ident, Option<Expr>)]) {
    let _ = write!(out, "({word}");
    for (ident, value) in names {
        let _ = match value {
            Some(value) => write!(out, " {}={}", ident.name, expr(value)),
            None => write!(out, " {}", ident.name),
        };
    }
    out.push(')');
}

fn arm(out: &mut String, head: &str, body: &[Stmt], depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth + 1));
    let _ = write!(out, "({head}");
    nested(out, body, depth + 1);
    out.push(')');
}

fn compound(out: &mut String, stmt: &Stmt, depth: usize) {
    match &stmt.kind {
        StmtKind::If { arms, otherwise } => {
            out.push_str("(if");
            arms.iter().for_each(|(condition, body)| arm(out, &expr(condition), body, depth));
            otherwise.iter().for_each(|body| arm(out, "else", body, depth));
        }
        StmtKind::While { condition, body } => {
            let _ = write!(out, "(while {}", expr(condition));
            nested(out, body, depth);
        }
        StmtKind::DoUntil { body, condition } => {
            let _ = write!(out, "(do-until {}", expr(condition));
            nested(out, body, depth);
        }
        StmtKind::For { target: to, key, range, body } => {
            out.push_str("(for ");
            target(out, to);
            if let Some(key) = key {
                out.push_str(" key ");
                target(out, key);
            }
            let _ = write!(out, " {}", expr(range));
            nested(out, body, depth);
        }
        StmtKind::Switch { subject, cases, otherwise } => {
            let _ = write!(out, "(switch {}", expr(subject));
            cases.iter().for_each(|(value, body)| arm(out, &format!("case {}", expr(value)), body, depth));
            otherwise.iter().for_each(|body| arm(out, "otherwise", body, depth));
        }
        StmtKind::Try { body, name, handler } => {
            out.push_str("(try");
            nested(out, body, depth);
            let head = name.as_ref().map_or("catch".to_string(), |ident| format!("catch {}", ident.name));
            arm(out, &head, handler, depth);
        }
        StmtKind::UnwindProtect { body, cleanup } => {
            out.push_str("(unwind_protect");
            nested(out, body, depth);
            arm(out, "cleanup", cleanup, depth);
        }
        _ => {}
    }
    out.push(')');
}

fn list(out: &mut String, elements: &[Expr]) {
    for (at, element) in elements.iter().enumerate() {
        out.push_str(if at > 0 { " " } else { "" });
        write_expr(out, element);
    }
}

fn steps(out: &mut String, steps: &[Step]) {
    for step in steps {
        match &step.kind {
            StepKind::Paren(arguments) => {
                out.push_str(" (");
                list(out, arguments);
                out.push(')');
            }
            StepKind::Brace(arguments) => {
                out.push_str(" {");
                list(out, arguments);
                out.push('}');
            }
            StepKind::Field(ident) => {
                let _ = write!(out, " .{}", ident.name);
            }
            StepKind::DynamicField(name) => {
                let _ = write!(out, " .({})", expr(name));
            }
        }
    }
}

fn operation(out: &mut String, op: &str, operands: &[&Expr]) {
    let _ = write!(out, "({op}");
    for operand in operands {
        out.push(' ');
        write_expr(out, operand);
    }
    out.push(')');
}

fn rows(out: &mut String, rows: &[Vec<Expr>]) {
    for (at, row) in rows.iter().enumerate() {
        out.push_str(if at > 0 { "; " } else { "" });
        list(out, row);
    }
}

fn write_expr(out: &mut String, expr: &Expr) {
    let _ = match &expr.kind {
        ExprKind::Number(value) => write!(out, "{value}"),
        ExprKind::Imaginary(value) => write!(out, "{value}i"),
        ExprKind::Integer { class, bits } => write!(out, "{}:{bits}", class.name()),
        ExprKind::Str { bytes, double_quoted: true } => write!(out, "\"{}\"", bytes.escape_ascii()),
        ExprKind::Str { bytes, double_quoted: false } => write!(out, "'{}'", bytes.escape_ascii()),
        ExprKind::Name(name) => write!(out, "{name}"),
        ExprKind::Handle(name) => write!(out, "@{name}"),
        ExprKind::Colon => write!(out, ":"),
        ExprKind::End => write!(out, "end"),
        _ => {
            write_compound(out, &expr.kind);
            Ok(())
        }
    };
}

fn write_compound(out: &mut String, kind: &ExprKind) {
    match kind {
        ExprKind::Unary(op, operand) => {
            operation(out, op.symbol(), &[operand]);
        }
        ExprKind::Transpose { operand, conjugate } => operation(out, if *conjugate { "'" } else { ".'" }, &[operand]),
        ExprKind::Chain(first, links) => {
            // The last operator is the outermost.
            for link in links.iter().rev() {
                let _ = write!(out, "({} ", link.op.symbol());
            }
            write_expr(out, first);
            for link in links {
                let _ = write!(out, " {})", expr(&link.right));
            }
        }
        ExprKind::Range { start, step: None, stop } => operation(out, ":", &[start, stop]),
        ExprKind::Range { start, step: Some(step), stop } => operation(out, ":", &[start, step, stop]),
        ExprKind::Index(base, into) => {
            out.push_str("(@ ");
            write_expr(out, base);
            steps(out, into);
            out.push(')');
        }
        ExprKind::Matrix(elements) => {
            out.push('[');
            rows(out, elements);
            out.push(']');
        }
        ExprKind::Cell(elements) => {
            out.push('{');
            rows(out, elements);
            out.push('}');
        }
        ExprKind::Assign { target: to, op, value } => {
            let _ = write!(out, "({}= ", op.map_or("", BinaryOp::symbol));
            target(out, to);
            let _ = write!(out, " {})", expr(value));
        }
        ExprKind::PostIncrement { target: to, op } => {
            out.push('(');
            target(out, to);
            let _ = write!(out, " {0}{0})", op.symbol());
        }
        ExprKind::Anonymous(definition) => {
            out.push_str("(@");
            params(out, &definition.params);
            let _ = write!(out, " {})", expr(&definition.body));
        }
        _ => {}
    }
}
