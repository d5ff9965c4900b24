//! The parser's state, and the functions that all of its parts share: the present token, errors, nesting, names.
//!
//! The parser looks at one token. The few forms that need more (`[a, b] = …`, `++x`, command syntax) look ahead on a
//! copy of the lexer, or at the text. Must hold: recursion is bounded by [`NESTING_MAX`], and the height of a tree by
//! [`HEIGHT_MAX`], so that neither the parser nor the code that walks its trees overflows a stack.

use super::ast::{File, FunctionDef, Ident, Name};
use super::lexer::Lexer;
use super::token::{Keyword, Parse, SyntaxError, Token, TokenKind};
use crate::source::{Source, Span};
use crate::stack::with_room;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// How deep brackets, prefix operators, anonymous functions and blocks may nest together.
pub const NESTING_MAX: usize = 256;

/// The most levels of an expression's tree, for instance of transposes and powers (`x'''…`). A chain of operators
/// between operands (`1 + 1 + 1 + …`) is one level.
pub const HEIGHT_MAX: usize = 1000;

/// The error of a text that has to be read again, with nested functions.
pub(super) const NESTS: &str = "a function begins before the end of another";

/// The parser of one source.
pub(super) struct Parser<'t> {
    pub(super) source: &'t Arc<Source>,
    pub(super) lexer: Lexer<'t>,
    /// The next token.
    pub(super) token: Token,
    /// The offset at which the token before it ended.
    pub(super) previous_end: usize,
    /// The number of open brackets, prefix operators and blocks.
    pub(super) nesting: usize,
    /// The height of the last parsed expression.
    pub(super) height: usize,
    /// The number of open index brackets, in which `end` is a number.
    pub(super) index_depth: usize,
    /// The number of open bodies of anonymous functions, in which nothing may be assigned.
    pub(super) anonymous_depth: usize,
    /// The number of open loops, in which `break` is allowed.
    pub(super) loop_depth: usize,
    /// Names that were assigned earlier in this function. They begin no commands.
    pub(super) variables: FxHashSet<Name>,
    /// Tells whether a variable of this name exists before the text runs.
    pub(super) is_variable: &'t dyn Fn(&str) -> bool,
    names: FxHashMap<&'t str, Name>,
    /// Whether the text contains the letters `ans`, so that it may use the variable `ans`.
    pub(super) asks_for_ans: bool,
    /// The number of pairs of parentheses around the expression with a span.
    pub(super) parens: FxHashMap<(u32, u32), u32>,
    pub(super) functions: Vec<Arc<FunctionDef>>,
    /// Whether every function of the text has an `end`, so that a function that begins before the `end` of another is
    /// nested in it.
    pub(super) ends_functions: bool,
    /// The value of `nesting` at the top of the present function's body.
    pub(super) body_nesting: usize,
    /// The head of the first function that ended without an `end`.
    pub(super) open_function: Option<Span>,
    /// Whether a function ended with an `end`.
    pub(super) closed_function: bool,
    /// The number of functions whose bodies are being read.
    pub(super) function_depth: usize,
    /// Where the next function began while the first one without an `end` was read. If the first has an `end` after
    /// all, this one is nested in it.
    pub(super) next_function: Option<Span>,
}

impl<'t> Parser<'t> {
    /// Makes a parser at the beginning of a source.
    pub(super) fn new(
        source: &'t Arc<Source>,
        is_variable: &'t dyn Fn(&str) -> bool,
        ends_functions: bool,
    ) -> Parser<'t> {
        // This line end before the first token lets a statement begin.
        let token = Token { kind: TokenKind::Newline, span: Span::new(0, 0), separated: false, space_after: false };
        Parser {
            source,
            lexer: Lexer::new(&source.text),
            token,
            previous_end: 0,
            nesting: 0,
            height: 0,
            index_depth: 0,
            anonymous_depth: 0,
            loop_depth: 0,
            variables: FxHashSet::default(),
            is_variable,
            names: FxHashMap::default(),
            asks_for_ans: source.text.contains("ans"),
            parens: FxHashMap::default(),
            functions: Vec::new(),
            ends_functions,
            body_nesting: 0,
            open_function: None,
            closed_function: false,
            function_depth: 0,
            next_function: None,
        }
    }

    /// Parses the whole text.
    pub(super) fn file(&mut self) -> Parse<File> {
        let mut body = Vec::new();
        let mut begins_with_function = None;
        loop {
            self.block(&mut body, true)?;
            match &self.token.kind {
                TokenKind::EndOfText => break,
                TokenKind::Keyword(Keyword::Function) => {
                    begins_with_function.get_or_insert(body.is_empty());
                    self.function()?;
                }
                TokenKind::Keyword(keyword)
                    if self.open_function.is_some() && matches!(keyword, Keyword::End | Keyword::EndFunction) =>
                {
                    return Err(self.nests(self.next_function.unwrap_or(self.token.span)));
                }
                TokenKind::Keyword(keyword) => {
                    return Err(self.error(format!("'{}' without a block to belong to", keyword.text())));
                }
                _ => return Err(self.expected("a statement")),
            }
        }
        let begins_with_function = begins_with_function == Some(true);
        let is_function_file = begins_with_function && body.is_empty();
        match (self.open_function, self.next_function) {
            (Some(open), _) if self.closed_function => {
                return Err(Self::unended(open));
            }
            // In a script, the next function would be part of the first.
            (Some(_), Some(next)) if !is_function_file => return Err(self.nests(next)),
            _ => {}
        }
        let functions = std::mem::take(&mut self.functions);
        Ok(File { source: self.source.clone(), body, functions, is_function_file, begins_with_function })
    }

    /// Returns the error for a function without an `end` in a file whose other functions have one.
    pub(super) fn unended(head: Span) -> Box<SyntaxError> {
        let message = "inconsistent function endings -- if one function is explicitly ended, so must all the others";
        let error = SyntaxError { at_end: true, ..*SyntaxError::new(message, head) };
        Box::new(error).helped("is an 'end' missing in this function?")
    }

    /// Returns the error of a text in which functions without an `end` cannot be told from nested ones. The text is
    /// then read again as one in which every function has an `end`. The error is reported only if that reading fails at
    /// an earlier place.
    fn nests(&self, place: Span) -> Box<SyntaxError> {
        let error = SyntaxError::new(NESTS, place);
        error.helped("close every function of the file with its own 'end'")
    }

    /// Returns the text of a span.
    pub(super) fn text_of(&self, span: Span) -> &'t str {
        let source: &'t Source = self.source;
        &source.text[span.range()]
    }

    /// Goes to the next token.
    pub(super) fn advance(&mut self) -> Parse<()> {
        self.previous_end = self.token.span.end as usize;
        self.token = self.lexer.next()?;
        Ok(())
    }

    /// Returns the offset of the next token.
    pub(super) fn start(&self) -> usize {
        self.token.span.start as usize
    }

    /// Returns the span from `start` to the end of the last token.
    pub(super) fn span_from(&self, start: usize) -> Span {
        Span::new(start, self.previous_end.max(start))
    }

    /// Whether the next token is of this kind.
    pub(super) fn at(&self, kind: &TokenKind) -> bool {
        self.token.kind == *kind
    }

    /// Whether the next token is this keyword.
    pub(super) fn at_keyword(&self, keyword: Keyword) -> bool {
        self.token.kind == TokenKind::Keyword(keyword)
    }

    /// Goes over a token of this kind, if it comes next. Returns whether it did.
    pub(super) fn accept(&mut self, kind: &TokenKind) -> Parse<bool> {
        let is_there = self.at(kind);
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    /// Goes over a token of this kind, or fails. `what` names the token in the error.
    pub(super) fn expect(&mut self, kind: &TokenKind, what: &str) -> Parse<()> {
        if self.accept(kind)? { Ok(()) } else { Err(self.expected(what)) }
    }

    /// Parses a name.
    pub(super) fn ident(&mut self, what: &str) -> Parse<Ident> {
        if self.token.kind != TokenKind::Name {
            return Err(self.expected(what));
        }
        let span = self.token.span;
        let name = self.intern(self.text_of(span));
        self.advance()?;
        Ok(Ident { name, span })
    }

    /// Returns the one shared copy of a name.
    pub(super) fn intern(&mut self, text: &'t str) -> Name {
        self.names.entry(text).or_insert_with(|| text.into()).clone()
    }

    /// Makes an error at the next token.
    pub(super) fn error(&self, message: impl Into<String>) -> Box<SyntaxError> {
        let mut error = SyntaxError::new(message, self.token.span);
        error.at_end = self.token.kind == TokenKind::EndOfText;
        error
    }

    /// Makes an error at the next token that tells what was expected.
    pub(super) fn expected(&self, what: &str) -> Box<SyntaxError> {
        let found = match &self.token.kind {
            TokenKind::EndOfText => "the text ends".to_string(),
            TokenKind::Newline => "the line ends".to_string(),
            TokenKind::Str { .. } => "found a string".to_string(),
            TokenKind::Keyword(keyword) => format!("found the keyword '{}'", keyword.text()),
            _ => format!("found '{}'", self.text_of(self.token.span)),
        };
        let error = self.error(format!("expected {what}, but {found}"));
        if self.token.kind == TokenKind::Assign {
            return error.helped("an assignment is a statement of its own; '==' compares");
        }
        error
    }

    /// Parses a construct one level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.nesting == NESTING_MAX {
            return Err(SyntaxError::new(format!("nested deeper than {NESTING_MAX} levels"), self.token.span));
        }
        self.nesting += 1;
        let result = with_room(|| parse(self));
        self.nesting -= 1;
        result
    }

    /// Sets the height of a tree above trees of at most this height, or fails if it is too great.
    pub(super) fn grow(&mut self, below: usize) -> Parse<()> {
        self.height = below + 1;
        if self.height > HEIGHT_MAX {
            let message = format!("more than {HEIGHT_MAX} levels of operators in one expression");
            return Err(SyntaxError::new(message, self.token.span).helped("assign a part of it to a variable first"));
        }
        Ok(())
    }
}
