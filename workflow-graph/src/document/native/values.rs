//! Readers of single values: texts, names, expressions, numbers, words. They know no particular key.

use super::Reading;
use crate::document::model::{Located, Name};
use crate::document::template::{Expression, Template};
use crate::document::tree::{Kind, Text, Tree};
use crate::problem::Code;
use crate::problem::sink::At;

/// Each reports what does not fit, and returns nothing then.
impl Reading<'_> {
    pub(crate) fn wrong_type(&mut self, tree: &Tree, what: &str, expected: &str) {
        // A number that is too large for JSON is nothing here, and a problem already.
        if matches!(tree.kind, Kind::Null) && self.problems.has_at(tree.at) {
            return;
        }
        let message = format!("{what} is {expected}, and this is {}", tree.described());
        self.problems.add(Code::WrongType, tree.at, message, format!("write {expected}"));
    }

    pub(crate) fn text<'t>(&mut self, tree: &'t Tree, key: &str) -> Option<&'t Text> {
        let Kind::Text(text) = &tree.kind else {
            self.wrong_type(tree, &format!("`{key}`"), "a text");
            return None;
        };
        Some(text)
    }

    pub(crate) fn name(&mut self, tree: &Tree, key: &str) -> Option<Name> {
        self.plain(tree, key);
        self.named(tree, key)
    }

    /// The same for a name in which `${` is reported otherwise.
    pub(crate) fn named(&mut self, tree: &Tree, key: &str) -> Option<Name> {
        let text = self.text(tree, key)?;
        if text.value.is_empty() {
            self.problems.add(Code::BadName, tree.at, format!("`{key}` is empty"), "write a name");
            return None;
        }
        Some(Located { value: text.value.clone(), at: tree.at })
    }

    /// `not-interpolated`: texts of a value that is taken as it is written.
    pub(crate) fn plain(&mut self, tree: &Tree, key: &str) {
        match &tree.kind {
            Kind::Text(text) if self.has_templates => {
                let Some(offset) = text.value.find("${") else { return };
                let at = self.source.locate(tree.at, text, offset);
                let message = format!("`{key}` is taken as it is written, and `${{` has no meaning in it");
                let remedy =
                    "write the value itself; expressions stand in templates, such as `value` and `with`";
                self.problems.add(Code::NotInterpolated, at, message, remedy);
            }
            Kind::List(items) => items.iter().for_each(|item| self.plain(item, key)),
            Kind::Map(pairs) => pairs.iter().for_each(|(_, value)| self.plain(value, key)),
            _ => {}
        }
    }

    pub(crate) fn list<'t>(&mut self, tree: &'t Tree, key: &str) -> &'t [Tree] {
        if let Kind::List(items) = &tree.kind {
            return items;
        }
        self.wrong_type(tree, &format!("`{key}`"), "a list");
        &[]
    }

    pub(crate) fn names(&mut self, tree: &Tree, key: &str) -> Vec<Name> {
        let items = self.list(tree, key);
        items.iter().filter_map(|item| self.name(item, key)).collect()
    }

    pub(crate) fn template(&mut self, tree: &Tree) -> Template {
        Template::of(tree, self.source, self.problems)
    }

    /// A template that is a text.
    pub(crate) fn text_template(&mut self, tree: &Tree, key: &str) -> Option<Template> {
        self.text(tree, key)?;
        Some(self.template(tree))
    }

    /// An expression without `${ }`. `true` and numbers are expressions, too.
    pub(crate) fn expression(&mut self, tree: &Tree, key: &str) -> Option<Expression> {
        match &tree.kind {
            Kind::Text(text) => {
                let inside = text.value.trim();
                if inside.starts_with("${") && inside.ends_with('}') {
                    let message = format!("`{key}` is an expression, and this is a template");
                    let inside = &inside[2..inside.len() - 1];
                    let remedy = format!("write `{}`", inside.trim());
                    self.problems.add(Code::BadExpression, tree.at, message, remedy);
                    let begin = text.value.find("${").unwrap_or_default() + 2;
                    let range = (begin, begin + inside.len());
                    return Expression::inside(text, tree.at, range, self.source, self.problems);
                }
                let found = Expression::whole(text, tree.at, self.source, self.problems);
                if found.is_some() {
                    self.literal(text, tree.at);
                }
                found
            }
            Kind::Bool(_) | Kind::Number(_) => {
                let text = Text { value: tree.to_json().to_string().into(), span: (0, 0) };
                Expression::whole(&text, tree.at, self.source, self.problems)
            }
            _ => {
                self.wrong_type(tree, &format!("`{key}`"), "an expression");
                None
            }
        }
    }

    /// `not-interpolated`: a text within an expression.
    fn literal(&mut self, text: &Text, at: At) {
        let Some(offset) = text.value.find("${").filter(|_| self.has_templates) else { return };
        let at = self.source.locate(at, text, offset);
        let message = "a text within an expression is taken as it is written, and `${` has no meaning in it";
        self.problems.add(Code::NotInterpolated, at, message, "join texts with `+`");
    }

    /// The same, or one of which nothing is known.
    pub(crate) fn condition(&mut self, tree: &Tree, key: &str) -> Expression {
        self.expression(tree, key).unwrap_or_else(|| Expression::unread(tree.at))
    }

    /// A whole number within `bounds`, both included.
    pub(crate) fn number(&mut self, tree: &Tree, key: &str, bounds: (u32, u32)) -> Option<u32> {
        let (least, most) = bounds;
        let expected = if most == u32::MAX {
            format!("a whole number from {least}")
        } else {
            format!("a whole number from {least} to {most}")
        };
        let Kind::Number(number) = &tree.kind else {
            self.wrong_type(tree, &format!("`{key}`"), &expected);
            return None;
        };
        let whole = number.as_u64().and_then(|number| u32::try_from(number).ok());
        let found = whole.filter(|number| (least..=most).contains(number));
        if found.is_none() {
            let code = if number.as_u64().is_some_and(|number| number > u64::from(most)) {
                Code::TooLarge
            } else {
                Code::WrongType
            };
            let message = format!("`{key}` is {expected}, and this is {number}");
            self.problems.add(code, tree.at, message, format!("write {expected}"));
        }
        found
    }

    /// A number within `bounds`, both included.
    pub(crate) fn fraction(&mut self, tree: &Tree, key: &str, bounds: (f64, f64)) -> Option<f64> {
        let expected = format!("a number from {} to {}", bounds.0, bounds.1);
        let number = match &tree.kind {
            Kind::Number(number) => number.as_f64().filter(|n| (bounds.0..=bounds.1).contains(n)),
            _ => None,
        };
        if number.is_none() {
            self.wrong_type(tree, &format!("`{key}`"), &expected);
        }
        number
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&mut self, tree: &Tree, key: &str, words: &[(&str, T)]) -> Option<T> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let Kind::Text(text) = &tree.kind else {
            self.wrong_type(tree, &format!("`{key}`"), &alternatives(&known));
            return None;
        };
        let found = words.iter().find(|(word, _)| *word == &*text.value).map(|(_, value)| *value);
        if found.is_none() {
            let message = format!("`{key}` is {}, and this is `{}`", alternatives(&known), text.value);
            let remedy = || format!("write {}", alternatives(&known));
            let known = known.iter().copied();
            let similar =
                self.problems.add_unknown(Code::WrongType, tree.at, message, &text.value, known, remedy);
            let meant = similar.first()?;
            return words.iter().find(|(word, _)| word == meant).map(|(_, value)| *value);
        }
        found
    }
}

/// "`a`, `b` and `c`".
pub(crate) fn listed(names: &[&str]) -> String {
    joined(names, "and")
}

/// "`a`, `b` or `c`".
pub(crate) fn alternatives(names: &[&str]) -> String {
    joined(names, "or")
}

fn joined(names: &[&str], word: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} {word} {last}", before.join(", ")),
        None => String::new(),
    }
}
