//! Parses definitions of functions, and the comments that document them.

use super::ast::{Block, FunctionDef, Ident, Param, Stmt, StmtKind};
use super::lexer::Comment;
use super::parser::Parser;
use super::token::{Keyword, Parse, TokenKind};
use crate::source::Span;
use std::sync::Arc;

impl Parser<'_> {
    /// Parses a function's definition at the top level of a file. Without an `end`, it reaches to the next definition,
    /// or to the end of the text.
    pub(super) fn function(&mut self) -> Parse<()> {
        let start = self.start();
        self.advance()?;
        let (name, params, outputs) = self.function_head()?;
        let head_end = self.previous_end;
        let named = params.iter().filter_map(|param| match param {
            Param::Named(ident, _) => Some(ident.name.clone()),
            Param::Ignored(_) => None,
        });
        let outer_variables = std::mem::take(&mut self.variables);
        // A nested function sees the variables around it.
        let seen = if self.function_depth > 0 { outer_variables.clone() } else { Default::default() };
        self.begin_scope(named.chain(outputs.iter().map(|ident| ident.name.clone())).chain(seen));
        let mut body = Vec::new();
        let outer_functions = std::mem::take(&mut self.functions);
        let outer_nesting = std::mem::replace(&mut self.body_nesting, self.nesting + 1);
        let outer_loops = std::mem::take(&mut self.loop_depth);
        self.function_depth += 1;
        self.nested(|parser| parser.block(&mut body, false))?;
        self.function_depth -= 1;
        (self.loop_depth, self.body_nesting) = (outer_loops, outer_nesting);
        let nested = std::mem::replace(&mut self.functions, outer_functions);
        self.variables = outer_variables;
        let is_closed = self.at_keyword(Keyword::End) || self.at_keyword(Keyword::EndFunction);
        if is_closed {
            self.advance()?;
            self.closed_function = true;
        } else if matches!(self.token.kind, TokenKind::EndOfText | TokenKind::Keyword(Keyword::Function)) {
            let head = Span::new(start, head_end);
            if self.ends_functions {
                return Err(Self::unended(head));
            }
            self.open_function.get_or_insert(head);
        } else {
            self.close(Keyword::EndFunction)?;
        }
        let doc = self.documentation(start, head_end);
        let span = self.span_from(start);
        self.functions.push(Arc::new(FunctionDef { name, params, outputs, body, nested, doc, span }));
        Ok(())
    }

    /// Parses a function inside of another function's body, whose variables it shares.
    pub(super) fn nested_function(&mut self) -> Parse<()> {
        if self.nesting > self.body_nesting {
            let error = self.error("a function cannot begin inside of a block of another function");
            return Err(error.helped("move it behind the block, or behind the function that it stands in"));
        }
        self.function()
    }

    /// Parses a function that a script defines within a block. It becomes defined when the block runs, which evaluates
    /// its text.
    pub(super) fn conditional_function(&mut self, into: &mut Block) -> Parse<()> {
        let span = self.token.span;
        self.function()?;
        let Some(function) = self.functions.pop() else { return Ok(()) };
        if self.open_function.is_some() {
            return Err(self.expected("'end' or 'endfunction'"));
        }
        let name = Ident { name: self.intern("eval"), span };
        let words = vec![self.text_of(function.span).to_owned()];
        into.push(Stmt { kind: StmtKind::Command { name, words }, span: function.span, print: false });
        Ok(())
    }

    /// `name`, `name(…)`, `output = name(…)` or `[outputs] = name(…)`.
    fn function_head(&mut self) -> Parse<(Ident, Vec<Param>, Vec<Ident>)> {
        let mut outputs = Vec::new();
        let name = if self.at(&TokenKind::BracketOpen) {
            self.advance()?;
            while !self.at(&TokenKind::BracketClose) {
                outputs.push(self.ident("an output's name or ']'")?);
                self.accept(&TokenKind::Comma)?;
            }
            self.advance()?;
            self.expect(&TokenKind::Assign, "'=' after the function's outputs")?;
            self.ident("the function's name")?
        } else {
            let first = self.ident("the function's name or outputs")?;
            if self.accept(&TokenKind::Assign)? {
                outputs.push(first);
                self.ident("the function's name")?
            } else {
                first
            }
        };
        let params = if self.at(&TokenKind::ParenOpen) { self.parameters()? } else { Vec::new() };
        Ok((name, params, outputs))
    }

    /// Returns the comment right after a function's head, or else the one right before the function.
    fn documentation(&self, start: usize, head_end: usize) -> Option<String> {
        let text = &self.source.text;
        let comments = &self.lexer.comments;
        let after = comments.partition_point(|comment| comment.start < head_end);
        let mut count = 0;
        let mut end = head_end;
        for comment in &comments[after..] {
            // White space may separate the head from its comment. A blank line ends the comment.
            let gap = &text[end..comment.start];
            let is_near = gap.trim_matches([' ', '\t', '\r', '\n', ';', ',']).is_empty();
            if !is_near || count > 0 && line_ends(gap) > 1 {
                break;
            }
            count += 1;
            end = comment.end;
        }
        if count > 0 {
            return Some(self.comment_text(&comments[after..after + count]));
        }
        let before = comments.partition_point(|comment| comment.start < start);
        let mut first = before;
        let mut begin = start;
        while let Some(comment) = first.checked_sub(1).map(|at| comments[at]) {
            let gap = text.get(comment.end..begin)?;
            let line = &text[..comment.start];
            let line = &line[line.rfind(['\n', '\r']).map_or(0, |at| at + 1)..];
            if !gap.trim().is_empty() || line_ends(gap) > 1 || !line.trim().is_empty() {
                break;
            }
            first -= 1;
            begin = comment.start;
        }
        (first < before).then(|| self.comment_text(&comments[first..before]))
    }

    /// Returns the text of comments without their signs, a line each.
    fn comment_text(&self, comments: &[Comment]) -> String {
        let mut doc = String::new();
        for comment in comments {
            for line in self.source.text[comment.start..comment.end].lines() {
                let line = line.trim_start().trim_start_matches(['%', '#']);
                if !matches!(line.trim(), "{" | "}") {
                    doc.push_str(line);
                    doc.push('\n');
                }
            }
        }
        doc
    }
}

fn line_ends(gap: &str) -> usize {
    gap.replace("\r\n", "\n").matches(['\n', '\r']).count()
}
