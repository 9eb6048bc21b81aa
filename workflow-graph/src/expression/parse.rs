//! A Pratt parser: tokens in, a tree out. It decides what is no expression. Its operators bind as Python's.

mod operators;
mod primary;

use serde_json::Value;

use super::DEPTH;
use super::fault::BadExpression;
use super::functions;
use super::lex::{self, Token};
use super::tree::{Branches, Kind, Node, Span, Step, StepKind};
use operators::{Infix, Power};

pub(super) fn parse(source: &str) -> Result<Node, BadExpression> {
    let mut parser = Parser { source, tokens: lex::tokens(source)?, at: 0, depth: 0, patterns: 0 };
    let root = parser.expression(Power::If)?;
    match parser.peek() {
        Token::End => Ok(root),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<(Token<'s>, Span)>,
    at: usize,
    depth: usize,
    /// Regular expressions so far: each may be large.
    patterns: usize,
}

impl<'s> Parser<'s> {
    fn expression(&mut self, least: Power) -> Result<Node, BadExpression> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(too_deep(self.span().start));
        }
        let mut left = self.prefix(least)?;
        while let Some((infix, _)) = self.infix().filter(|(infix, _)| infix.power() >= least) {
            left = match infix {
                Infix::If => self.conditional(left)?,
                Infix::Or => self.logic(left, Power::Or, Power::And, Kind::Or)?,
                Infix::And => self.logic(left, Power::And, Power::Not, Kind::And)?,
                Infix::Compare(_) => self.comparison(left)?,
                Infix::Arithmetic(_) => self.arithmetic(left, infix.power())?,
            };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn conditional(&mut self, then: Node) -> Result<Node, BadExpression> {
        let begin = self.span().start;
        self.at += 1;
        let condition = self.expression(Power::Or)?;
        if *self.peek() != Token::Name("else") {
            let error = self.unexpected("`else`");
            return Err(BadExpression { offset: begin, ..error }.remedy("Write `a if condition else b`"));
        }
        self.at += 1;
        let otherwise = self.expression(Power::If)?;
        let span = Span { start: then.span.start, end: otherwise.span.end };
        node(span, Kind::If(Box::new(Branches { condition, then, otherwise })))
    }

    fn logic(
        &mut self,
        first: Node,
        power: Power,
        operand: Power,
        kind: fn(Vec<Node>) -> Kind,
    ) -> Result<Node, BadExpression> {
        let start = first.span.start;
        let mut operands = vec![first];
        while self.infix().is_some_and(|(infix, _)| infix.power() == power) {
            self.at += 1;
            operands.push(self.expression(operand)?);
        }
        node(Span { start, end: self.end() }, kind(operands))
    }

    fn comparison(&mut self, first: Node) -> Result<Node, BadExpression> {
        let start = first.span.start;
        let mut rest = Vec::new();
        while let Some((Infix::Compare(comparison), length)) = self.infix() {
            self.at += length;
            rest.push((comparison, self.expression(Power::Sum)?));
        }
        node(Span { start, end: self.end() }, Kind::Compare(Box::new(first), rest))
    }

    fn arithmetic(&mut self, first: Node, power: Power) -> Result<Node, BadExpression> {
        let start = first.span.start;
        let operand = if power == Power::Sum { Power::Product } else { Power::Unary };
        let mut rest = Vec::new();
        while let Some((infix @ Infix::Arithmetic(arithmetic), length)) = self.infix() {
            if infix.power() != power {
                break;
            }
            self.at += length;
            rest.push((arithmetic, self.expression(operand)?));
        }
        node(Span { start, end: self.end() }, Kind::Arithmetic(Box::new(first), rest))
    }

    fn prefix(&mut self, least: Power) -> Result<Node, BadExpression> {
        match self.peek() {
            Token::Name("not") | Token::Symbol("!") => self.not(least),
            Token::Symbol("-") => self.negation(),
            Token::Symbol("+") => self.plus(),
            _ => self.postfix(),
        }
    }

    fn not(&mut self, least: Power) -> Result<Node, BadExpression> {
        let start = self.span().start;
        if least > Power::Not {
            let message = "`not` binds looser than the operator before it";
            return Err(
                BadExpression::new(start, message).remedy("Put it in parentheses, as in `a == (not b)`")
            );
        }
        self.at += 1;
        let operand = self.expression(Power::Not)?;
        node(Span { start, end: self.end() }, Kind::Not(Box::new(operand)))
    }

    fn plus(&mut self) -> Result<Node, BadExpression> {
        let start = self.span().start;
        self.at += 1;
        let operand = self.expression(Power::Unary)?;
        node(Span { start, end: self.end() }, Kind::Plus(Box::new(operand)))
    }

    /// A negative literal is one literal, so that `a[-1]` is a fixed place and -2⁶³ exists.
    fn negation(&mut self) -> Result<Node, BadExpression> {
        let start = self.span().start;
        self.at += 1;
        if *self.peek() == Token::Integer(i64::MIN.unsigned_abs()) {
            self.at += 1;
            return node(Span { start, end: self.end() }, Kind::Literal(Value::from(i64::MIN)));
        }
        let operand = self.expression(Power::Unary)?;
        let span = Span { start, end: self.end() };
        let folded = match &operand.kind {
            Kind::Literal(Value::Number(number)) => match number.as_i64() {
                Some(integer) => integer.checked_neg().map(Value::from),
                None => number.as_f64().map(|float| Value::from(-float)),
            },
            _ => None,
        };
        node(span, folded.map_or_else(|| Kind::Negate(Box::new(operand)), Kind::Literal))
    }

    /// A value, with the keys, indices and methods behind it. Its parts are functions of their own, here and below, so that
    /// nesting takes little of the stack.
    fn postfix(&mut self) -> Result<Node, BadExpression> {
        let mut value = self.primary()?;
        loop {
            value = match self.peek() {
                Token::Symbol(".") => self.member(value)?,
                Token::Symbol("[") => self.index(value)?,
                Token::Symbol("(") => return Err(self.no_function(&value)),
                _ => return Ok(value),
            }
        }
    }

    /// A key or a method.
    fn member(&mut self, value: Node) -> Result<Node, BadExpression> {
        self.at += 1;
        let span = self.span();
        let Token::Name(name) = *self.peek() else { return Err(self.unexpected("a key after `.`")) };
        self.at += 1;
        match self.peek() {
            Token::Symbol("(") => self.call(name, span, Some(value)),
            _ => step(value, Step { end: span.end, kind: StepKind::Field(name.to_owned()) }),
        }
    }

    fn index(&mut self, value: Node) -> Result<Node, BadExpression> {
        self.at += 1;
        let index = self.expression(Power::If)?;
        self.close("]")?;
        step(value, Step { end: self.end(), kind: StepKind::Index(index) })
    }

    fn no_function(&self, value: &Node) -> BadExpression {
        let message = format!("`{}` is no function", value.written(self.source));
        BadExpression::new(value.span.start, message).remedy(functions::remedy(""))
    }

    fn unexpected(&self, expected: &str) -> BadExpression {
        let span = self.span();
        let found = match self.peek() {
            Token::End => "the end".to_owned(),
            _ => format!("`{}`", &self.source[span.start..span.end]),
        };
        let error = BadExpression::new(span.start, format!("found {found}; expected {expected}"));
        match self.peek() {
            Token::Name("for") => error.remedy("There are no comprehensions; use `for_each` or a function"),
            Token::Symbol(",") => error.remedy("Put several values in brackets, as in `[a, b]`"),
            Token::Text(_) => error.remedy("Join texts with `+`"),
            Token::Float(_) => error.remedy("An item of a list is `a[0]`"),
            _ => error,
        }
    }

    fn peek(&self) -> &Token<'s> {
        &self.tokens[self.at].0
    }

    fn is_next(&self, ahead: usize, name: &str) -> bool {
        matches!(self.tokens.get(self.at + ahead), Some((Token::Name(next), _)) if *next == name)
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    /// Where the token before this one ends.
    fn end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |before| self.tokens[before].1.end)
    }
}

fn node(span: Span, kind: Kind) -> Result<Node, BadExpression> {
    let node = Node::new(span, kind);
    if node.height > DEPTH { Err(too_deep(span.start)) } else { Ok(node) }
}

/// Appends to the steps of a chain, or begins one. Parentheses end a chain.
fn step(value: Node, step: Step) -> Result<Node, BadExpression> {
    let span = Span { start: value.span.start, end: step.end };
    match value.kind {
        Kind::Access(base, mut steps) if value.span.start == base.span.start => {
            steps.push(step);
            node(span, Kind::Access(base, steps))
        }
        kind => node(span, Kind::Access(Box::new(Node { kind, ..value }), vec![step])),
    }
}

fn too_deep(offset: usize) -> BadExpression {
    BadExpression::new(offset, format!("the expression is nested deeper than {DEPTH} levels"))
        .remedy("Compute parts of it in nodes of kind `value`")
}
