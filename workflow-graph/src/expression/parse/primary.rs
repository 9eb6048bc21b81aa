//! The smallest values: literals, names, brackets and calls. Operators and steps behind values are the parser's.

use regex::Regex;
use serde_json::Value;

use super::super::PATTERNS;
use super::super::fault::BadExpression;
use super::super::functions::{self, Function};
use super::super::lex::{self, Token};
use super::super::pattern::pattern;
use super::super::tree::{Call, Kind, Node, Span};
use super::operators::Power;
use super::{Parser, node};

impl<'s> Parser<'s> {
    pub(super) fn primary(&mut self) -> Result<Node, BadExpression> {
        match self.peek() {
            Token::Symbol("[") => self.list(),
            Token::Symbol("(") => self.parenthesis(),
            Token::Name("and" | "or" | "in" | "is" | "if" | "else" | "not") => {
                Err(self.unexpected("a value"))
            }
            Token::Name("true" | "True" | "false" | "False" | "null" | "None") => self.literal(),
            Token::Name(name) => {
                let name = *name;
                self.name(name)
            }
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Result<Node, BadExpression> {
        let span = self.span();
        let value = match self.peek() {
            Token::Integer(integer) => match i64::try_from(*integer) {
                Ok(integer) => Value::from(integer),
                Err(_) => return Err(BadExpression::new(span.start, lex::beyond(integer))),
            },
            Token::Float(float) => Value::from(*float),
            Token::Text(text) => Value::from(text.as_str()),
            Token::Name("true" | "True") => Value::Bool(true),
            Token::Name("false" | "False") => Value::Bool(false),
            Token::Name("null" | "None") => Value::Null,
            _ => return Err(self.unexpected("a value")),
        };
        self.at += 1;
        node(span, Kind::Literal(value))
    }

    /// A function, or where a path begins.
    fn name(&mut self, name: &'s str) -> Result<Node, BadExpression> {
        let span = self.span();
        self.at += 1;
        match self.peek() {
            Token::Symbol("(") => self.call(name, span, None),
            _ => node(span, Kind::Name(name.to_owned())),
        }
    }

    fn list(&mut self) -> Result<Node, BadExpression> {
        let start = self.span().start;
        self.at += 1;
        let (items, _) = self.items("]")?;
        node(Span { start, end: self.end() }, Kind::List(items))
    }

    /// One value in parentheses is that value; none, several, or one with a comma are a tuple, which is a list.
    fn parenthesis(&mut self) -> Result<Node, BadExpression> {
        let start = self.span().start;
        self.at += 1;
        let (mut items, has_comma) = self.items(")")?;
        let span = Span { start, end: self.end() };
        match items.pop() {
            // Its span includes the parentheses, so that it is shown as written.
            Some(value) if !has_comma => Ok(Node { span, ..value }),
            last => {
                items.extend(last);
                node(span, Kind::List(items))
            }
        }
    }

    /// Values up to the closing bracket, and whether a comma was among them.
    fn items(&mut self, close: &'static str) -> Result<(Vec<Node>, bool), BadExpression> {
        let mut items = Vec::new();
        let mut has_comma = false;
        while *self.peek() != Token::Symbol(close) {
            items.push(self.expression(Power::If)?);
            if *self.peek() != Token::Symbol(",") {
                break;
            }
            has_comma = true;
            self.at += 1;
        }
        self.close(close)?;
        Ok((items, has_comma))
    }

    pub(super) fn close(&mut self, close: &'static str) -> Result<(), BadExpression> {
        if *self.peek() != Token::Symbol(close) {
            return Err(self.unexpected(&format!("`{close}`")));
        }
        self.at += 1;
        Ok(())
    }

    pub(super) fn call(
        &mut self,
        name: &'s str,
        at: Span,
        receiver: Option<Node>,
    ) -> Result<Node, BadExpression> {
        let Some(function) = Function::named(name) else {
            let error = BadExpression::new(at.start, format!("there is no function `{name}`"));
            let error = BadExpression { similar: functions::near(name), ..error };
            return Err(error.remedy(functions::remedy(name)));
        };
        let start = receiver.as_ref().map_or(at.start, |receiver| receiver.span.start);
        self.at += 1;
        let mut arguments = Vec::from_iter(receiver);
        arguments.extend(self.items(")")?.0);
        if let Some(message) = function.wrong_count(arguments.len()) {
            return Err(BadExpression::new(at.start, message).remedy(function.usage()));
        }
        if function == Function::Has && arguments.len() == 1 && !arguments[0].is_path() {
            let found = arguments[0].written(self.source);
            let message = format!("`has` asks whether a path is there, and `{found}` is no path");
            return Err(BadExpression::new(at.start, message).remedy(function.usage()));
        }
        let pattern = if function == Function::Matches { self.compile(&arguments[1])? } else { None };
        node(Span { start, end: self.end() }, Kind::Call(Call { function, arguments, pattern }))
    }

    /// The regular expression of a literal, so that a wrong one is found now, and each is compiled once.
    fn compile(&mut self, argument: &Node) -> Result<Option<Regex>, BadExpression> {
        let Kind::Literal(Value::String(source)) = &argument.kind else { return Ok(None) };
        let start = argument.span.start;
        self.patterns += 1;
        if self.patterns > PATTERNS {
            let message = format!("the expression has more than {PATTERNS} regular expressions");
            return Err(BadExpression::new(start, message).remedy("Join some of them with `|`"));
        }
        pattern(source).map(Some).map_err(|message| BadExpression::new(start, message))
    }
}
