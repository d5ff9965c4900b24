//! The tree that the parser makes of a text: statements and expressions, each with its span.
//!
//! Must hold: the tree has the structure of the text, with MATLAB's precedence. Names are not resolved: whether `f(1)`
//! calls or indexes is known only when it runs.

use crate::source::{Source, Span};
use crate::stack::with_room_for_a_tree;
use crate::value::Class;
use std::sync::Arc;

/// A name as it stands in a text.
pub type Name = Arc<str>;

/// A whole file: statements at the top, and the functions that it defines.
#[derive(Clone, Debug)]
pub struct File {
    /// The source that was parsed.
    pub source: Arc<Source>,
    /// The statements outside of functions, in order.
    pub body: Block,
    /// The functions, in order.
    pub functions: Vec<Arc<FunctionDef>>,
    /// Whether the file is a function file: its first statement defines a function and nothing else stands outside.
    pub is_function_file: bool,
    /// Whether its first statement defines a function. Then the file's name calls that function.
    pub begins_with_function: bool,
}

/// A function's definition.
#[derive(Clone, Debug)]
pub struct FunctionDef {
    /// Its name.
    pub name: Ident,
    /// Parameters; the last may be `varargin`.
    pub params: Vec<Param>,
    /// Outputs; the last may be `varargout`.
    pub outputs: Vec<Ident>,
    /// The statements.
    pub body: Block,
    /// The functions that are defined inside of it and share its variables.
    pub nested: Vec<Arc<FunctionDef>>,
    /// The comment before or after the head, for `help`.
    pub doc: Option<String>,
    /// All of it.
    pub span: Span,
}

// Trees are as deep as the texts nest, so dropping them recurses as deep.
impl Drop for File {
    fn drop(&mut self) {
        let (body, functions) = (std::mem::take(&mut self.body), std::mem::take(&mut self.functions));
        with_room_for_a_tree(|| drop((body, functions)));
    }
}

impl Drop for FunctionDef {
    fn drop(&mut self) {
        let (body, nested) = (std::mem::take(&mut self.body), std::mem::take(&mut self.nested));
        with_room_for_a_tree(|| drop((body, nested)));
    }
}

/// A name with its place.
#[derive(Clone, Debug)]
pub struct Ident {
    /// The name.
    pub name: Name,
    /// Its place.
    pub span: Span,
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub enum Param {
    /// A name, with a default (`x = 1`, as Octave allows) if there is one.
    Named(Ident, Option<Expr>),
    /// `~`: not used.
    Ignored(Span),
}

/// Statements.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Its kind.
    pub kind: StmtKind,
    /// Whether its result is shown (no `;` after it).
    pub print: bool,
    /// Its place.
    pub span: Span,
}

/// Kinds of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// An expression, whose value becomes `ans` unless it is a plain variable.
    Expr(Expr),
    /// `target = value`; a plain `[]` on the right of an indexed target deletes.
    Assign {
        /// The variable or part that is assigned.
        target: Target,
        /// The value.
        value: Expr,
    },
    /// `[a, b(2), ~] = value`.
    MultiAssign {
        /// The targets; `None` for `~`.
        targets: Vec<Option<Target>>,
        /// The value: a call or a comma list.
        value: Expr,
    },
    /// `target op= value`; also `x++;` and `x--;` (value 1), if their result is not shown.
    OpAssign {
        /// The variable or part that is read and assigned.
        target: Target,
        /// The operator.
        op: BinaryOp,
        /// The right operand.
        value: Expr,
    },
    /// `if … elseif … else … end`.
    If {
        /// The conditions and their blocks, in order.
        arms: Vec<(Expr, Block)>,
        /// The block after `else`.
        otherwise: Option<Block>,
    },
    /// `while cond … end`.
    While {
        /// The condition, checked before each iteration.
        condition: Expr,
        /// The statements.
        body: Block,
    },
    /// `do … until cond`.
    DoUntil {
        /// The statements.
        body: Block,
        /// The condition, checked after each iteration.
        condition: Expr,
    },
    /// `for target = range … end`; `parfor` likewise. `for [target, key] = struct … end` runs over fields.
    For {
        /// The loop's variable.
        target: Target,
        /// For a loop over fields: the variable for their names.
        key: Option<Target>,
        /// The value whose columns the loop runs over.
        range: Expr,
        /// The statements.
        body: Block,
    },
    /// `switch subject case … otherwise … end`.
    Switch {
        /// The value that the cases are compared with.
        subject: Expr,
        /// The cases' values and their blocks, in order.
        cases: Vec<(Expr, Block)>,
        /// The block after `otherwise`.
        otherwise: Option<Block>,
    },
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return`.
    Return,
    /// `try … catch name … end`.
    Try {
        /// The statements that may fail.
        body: Block,
        /// The error's variable.
        name: Option<Ident>,
        /// The statements that run after an error.
        handler: Block,
    },
    /// `unwind_protect … unwind_protect_cleanup … end_unwind_protect`.
    UnwindProtect {
        /// The statements that may fail.
        body: Block,
        /// The statements that run in any case.
        cleanup: Block,
    },
    /// `global a b = 1`.
    Global(Vec<(Ident, Option<Expr>)>),
    /// `persistent a b = 1`.
    Persistent(Vec<(Ident, Option<Expr>)>),
    /// Command syntax: `hold on`, `format long`. It calls a function with the words as char arguments.
    Command {
        /// The command.
        name: Ident,
        /// The words after it.
        words: Vec<String>,
    },
}

/// The target of an assignment: a variable, or a part of one.
#[derive(Clone, Debug)]
pub struct Target {
    /// The variable.
    pub name: Ident,
    /// The steps into the variable, outermost first; empty for the variable itself.
    pub steps: Vec<Step>,
    /// All of it.
    pub span: Span,
}

/// A step into a value.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its kind.
    pub kind: StepKind,
    /// From its bracket or dot to its end.
    pub span: Span,
}

/// Kinds of steps.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// `(a, b)`: a call or an index.
    Paren(Vec<Expr>),
    /// `{a, b}`.
    Brace(Vec<Expr>),
    /// `.name`.
    Field(Ident),
    /// `.(expr)`.
    DynamicField(Box<Expr>),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its kind.
    pub kind: ExprKind,
    /// Its place; for an operator, that of the whole expression.
    pub span: Span,
}

/// Kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A double: `3`, `1e-3`.
    Number(f64),
    /// An imaginary double: `3i`.
    Imaginary(f64),
    /// An integer written in hexadecimal or binary: `0xFF` is a uint8, `0xFFs16` an int16.
    Integer {
        /// Its class.
        class: Class,
        /// Its bits; for a signed class, in two's complement.
        bits: u64,
    },
    /// A char row.
    Str {
        /// Its bytes, with escapes already replaced.
        bytes: Vec<u8>,
        /// Whether it stood in double quotes.
        double_quoted: bool,
    },
    /// A variable, or a call without arguments.
    Name(Name),
    /// `:` as an index.
    Colon,
    /// `end` in an index.
    End,
    /// A prefix operator.
    Unary(UnaryOp, Box<Expr>),
    /// A transpose.
    Transpose {
        /// The operand.
        operand: Box<Expr>,
        /// Whether it conjugates (`'`, not `.'`).
        conjugate: bool,
    },
    /// Operands joined from the left. Each operator stands between everything before it and its own right side: `a +
    /// b*c - d` is `a`, `+ b*c`, `- d`. A chain of any length is one level of the tree.
    Chain(Box<Expr>, Vec<Link>),
    /// `start:stop` or `start:step:stop`.
    Range {
        /// The first.
        start: Box<Expr>,
        /// The step, 1 if absent.
        step: Option<Box<Expr>>,
        /// The limit.
        stop: Box<Expr>,
    },
    /// A base and the steps into it, outermost base first: `a(1).b{2}`.
    Index(Box<Expr>, Vec<Step>),
    /// `[a, b; c]`: rows.
    Matrix(Vec<Vec<Expr>>),
    /// `{a, b; c}`: rows.
    Cell(Vec<Vec<Expr>>),
    /// `@(x) body`.
    Anonymous(Arc<AnonymousDef>),
    /// `@name`, dots included.
    Handle(Name),
    /// `(x = 3)`, `(x += 3)`: assigns, and gives the assigned value.
    Assign {
        /// The variable or part that is assigned.
        target: Box<Target>,
        /// The operator of `+=` and the like.
        op: Option<BinaryOp>,
        /// The value, or the operator's right operand.
        value: Box<Expr>,
    },
    /// `x++`, `x--`: adds or subtracts one, and gives the former value.
    PostIncrement {
        /// The variable or part that is read and assigned.
        target: Box<Target>,
        /// `Add` or `Sub`.
        op: BinaryOp,
    },
}

/// An operator of a chain, and its right side.
#[derive(Clone, Debug)]
pub struct Link {
    /// The operator.
    pub op: LinkOp,
    /// Its right side.
    pub right: Expr,
    /// The span from the chain's beginning to the end of the right side.
    pub span: Span,
}

/// An operator that joins two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOp {
    /// An operator that takes both values.
    Binary(BinaryOp),
    /// `&&`: the right side counts only if the left is true.
    AndAnd,
    /// `||`: the right side counts only if the left is false.
    OrOr,
}

impl LinkOp {
    /// Returns the operator's text.
    pub fn symbol(self) -> &'static str {
        match self {
            LinkOp::Binary(op) => op.symbol(),
            LinkOp::AndAnd => "&&",
            LinkOp::OrOr => "||",
        }
    }

    /// Whether it is `&&` or `||`, which may skip their right side.
    pub fn is_short_circuit(self) -> bool {
        matches!(self, LinkOp::AndAnd | LinkOp::OrOr)
    }
}

/// An anonymous function.
#[derive(Clone, Debug)]
pub struct AnonymousDef {
    /// Parameters.
    pub params: Vec<Param>,
    /// The body.
    pub body: Expr,
    /// Its text as Octave prints it: `@(x) x + 1`.
    pub text: String,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`.
    Minus,
    /// `+x`.
    Plus,
    /// `!x`, `~x`.
    Not,
}

impl UnaryOp {
    /// Returns the operator's text.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Minus => "-",
            UnaryOp::Plus => "+",
            UnaryOp::Not => "!",
        }
    }
}

/// Operators between two operands, except `&&` and `||`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `.*`
    Mul,
    /// `./`
    Div,
    /// `.\`
    LeftDiv,
    /// `.^`
    Pow,
    /// `*`
    MatMul,
    /// `/`
    MatDiv,
    /// `\`
    MatLeftDiv,
    /// `^`
    MatPow,
    /// `==`
    Eq,
    /// `~=`, `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&`
    And,
    /// `|`
    Or,
}

impl BinaryOp {
    /// Returns the operator's text.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => ".*",
            BinaryOp::Div => "./",
            BinaryOp::LeftDiv => ".\\",
            BinaryOp::Pow => ".^",
            BinaryOp::MatMul => "*",
            BinaryOp::MatDiv => "/",
            BinaryOp::MatLeftDiv => "\\",
            BinaryOp::MatPow => "^",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "&",
            BinaryOp::Or => "|",
        }
    }
}
