//! The tokens that the lexer passes to the parser, with their places, and the errors of both.

use super::ast::BinaryOp;
use crate::error::ScriptError;
use crate::source::{Place, Source, Span};
use crate::value::Class;
use std::sync::Arc;

/// A token.
#[derive(Clone, Debug)]
pub(super) struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Its place.
    pub span: Span,
    /// Whether white space before it may separate it from the element before, in a matrix or cell literal.
    pub separated: bool,
    /// Whether white space follows it directly.
    pub space_after: bool,
}

/// Kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Number(f64),
    Imaginary(f64),
    /// A hexadecimal or binary number, as the bits of its class.
    Integer {
        class: Class,
        bits: u64,
    },
    Str {
        bytes: Vec<u8>,
        double_quoted: bool,
    },
    Name,
    Keyword(Keyword),
    /// An operator that stands between two operands only.
    Infix(BinaryOp),
    Plus,
    Minus,
    Not,
    AndAnd,
    OrOr,
    Colon,
    Assign,
    OpAssign(BinaryOp),
    /// `++` after an operand and before none. Elsewhere `++` is two plus signs.
    Increment,
    /// `--` after an operand and before none.
    Decrement,
    Transpose {
        conjugate: bool,
    },
    ParenOpen,
    ParenClose,
    BracketOpen,
    BracketClose,
    BraceOpen,
    BraceClose,
    Comma,
    Semicolon,
    Newline,
    At,
    Dot,
    EndOfText,
}

impl TokenKind {
    /// Whether a quote right after it is a transpose, and a brace an index.
    pub(super) fn ends_operand(&self, in_brackets: bool) -> bool {
        use TokenKind::*;
        match self {
            Number(_) | Imaginary(_) | Integer { .. } | Str { .. } | Name => true,
            Transpose { .. } | Increment | Decrement | ParenClose | BracketClose | BraceClose => true,
            Keyword(keyword) => match keyword {
                self::Keyword::End => in_brackets,
                self::Keyword::FileName | self::Keyword::LineNumber => true,
                _ => false,
            },
            _ => false,
        }
    }
}

macro_rules! keywords {
    ($($variant:ident $text:literal,)*) => {
        /// Reserved words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Keyword { $($variant,)* }

        impl Keyword {
            /// Returns the keyword with this text.
            pub(super) fn of(text: &str) -> Option<Keyword> {
                match text { $($text => Some(Keyword::$variant),)* _ => None }
            }

            /// Returns the keyword's text.
            pub(super) fn text(self) -> &'static str {
                match self { $(Keyword::$variant => $text,)* }
            }
        }
    };
}

keywords! {
    Break "break",
    Case "case",
    Catch "catch",
    ClassDef "classdef",
    Continue "continue",
    Do "do",
    Else "else",
    ElseIf "elseif",
    End "end",
    EndFor "endfor",
    EndFunction "endfunction",
    EndIf "endif",
    EndParFor "endparfor",
    EndSpmd "endspmd",
    EndSwitch "endswitch",
    EndTryCatch "end_try_catch",
    EndUnwindProtect "end_unwind_protect",
    EndWhile "endwhile",
    FileName "__FILE__",
    For "for",
    Function "function",
    Global "global",
    If "if",
    LineNumber "__LINE__",
    Otherwise "otherwise",
    ParFor "parfor",
    Persistent "persistent",
    Return "return",
    Spmd "spmd",
    Switch "switch",
    Try "try",
    Until "until",
    UnwindProtect "unwind_protect",
    UnwindProtectCleanup "unwind_protect_cleanup",
    While "while",
}

impl Keyword {
    /// Whether the keyword ends the block before it.
    pub(super) fn closes_block(self) -> bool {
        use Keyword::*;
        let begins_next = matches!(self, Case | Catch | Else | ElseIf | Otherwise | Until | UnwindProtectCleanup);
        begins_next || self.text().starts_with("end") || self == Function
    }
}

/// A syntax error.
#[derive(Debug)]
pub(super) struct SyntaxError {
    /// The message.
    pub message: String,
    /// Advice.
    pub help: Option<&'static str>,
    /// Its place.
    pub span: Span,
    /// Whether more text could repair it.
    pub at_end: bool,
}

/// A result of the lexer or the parser. The error is boxed, so that the result stays small.
pub(super) type Parse<T> = Result<T, Box<SyntaxError>>;

impl SyntaxError {
    /// Makes an error that more text would not repair.
    pub(super) fn new(message: impl Into<String>, span: Span) -> Box<SyntaxError> {
        Box::new(SyntaxError { message: message.into(), help: None, span, at_end: false })
    }

    /// Returns the same error with advice.
    pub(super) fn helped(mut self: Box<SyntaxError>, help: &'static str) -> Box<SyntaxError> {
        self.help = Some(help);
        self
    }

    /// Turns it into a script's error.
    pub(super) fn into_script_error(self, source: &Arc<Source>) -> ScriptError {
        let mut error = ScriptError::new(format!("parse error: {}", self.message));
        error.help = self.help.map(Box::from);
        error.place = Some(Place { source: source.clone(), span: self.span });
        error
    }
}
