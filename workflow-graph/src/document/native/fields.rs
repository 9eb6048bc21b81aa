//! Keys and values of a map with a fixed set of keys. It knows no particular key.

use std::sync::Arc;
use std::time::Duration;

use super::Reading;
use super::synonyms::{self, Synonym};
use crate::document::model::{Located, Name};
use crate::document::template::{Expression, Template};
use crate::document::tree::{Kind, Text, Tree};
use crate::problem::Code;
use crate::problem::sink::At;

/// A map, after a look for unknown keys.
pub(crate) struct Fields<'t> {
    tree: &'t Tree,
    /// The kind of the map, such as "a node".
    what: &'static str,
    /// Keys that the author may have meant with an unknown one. They are not reported as missing.
    meant: Vec<String>,
    has_unknown: bool,
}

impl<'t> Fields<'t> {
    /// Whether some key is unknown.
    pub(crate) fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    /// Nothing, after a problem, if `tree` is no map.
    pub(crate) fn new(
        tree: &'t Tree,
        what: &'static str,
        known: &[&str],
        reading: &mut Reading<'_>,
    ) -> Option<Self> {
        Self::with_synonyms(tree, what, known, &[], reading)
    }

    /// The same where unknown keys may be those of other tools.
    pub(crate) fn with_synonyms(
        tree: &'t Tree,
        what: &'static str,
        known: &[&str],
        table: &[Synonym],
        reading: &mut Reading<'_>,
    ) -> Option<Self> {
        let Kind::Map(pairs) = &tree.kind else {
            reading.wrong_type(tree, what, "a map");
            return None;
        };
        let (mut meant, mut has_unknown) = (Vec::new(), false);
        for (key, _) in pairs.iter().filter(|(key, _)| !known.contains(&&*key.name)) {
            has_unknown = true;
            let message = format!("{what} has no key `{}`", key.name);
            if let Some(synonym) = synonyms::find(&key.name, table) {
                meant.push(synonym.key.to_owned());
                match synonym.remedy {
                    Some(remedy) => reading.problems.add(Code::UnknownKey, key.at, message, remedy),
                    None => reading.problems.add_renamed(Code::UnknownKey, key.at, message, synonym.key),
                }
                continue;
            }
            let similar = reading.problems.add_unknown(
                Code::UnknownKey,
                key.at,
                message,
                &key.name,
                known.iter().copied(),
                || format!("the keys are {}; write one of them, or remove it", listed(known)),
            );
            meant.extend(similar);
        }
        Some(Self { tree, what, meant, has_unknown })
    }

    /// A map in which any other key is allowed as well.
    pub(crate) fn open(tree: &'t Tree, what: &'static str, reading: &mut Reading<'_>) -> Option<Self> {
        if !matches!(tree.kind, Kind::Map(_)) {
            reading.wrong_type(tree, what, "a map");
            return None;
        }
        Some(Self { tree, what, meant: Vec::new(), has_unknown: false })
    }

    /// Whether an unknown key may stand for `key`.
    pub(crate) fn is_meant(&self, key: &str) -> bool {
        self.meant.iter().any(|meant| meant == key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'t Tree> {
        self.tree.get(key)
    }

    /// Where `key` itself stands, else the map.
    pub(crate) fn key_at(&self, key: &str) -> At {
        match &self.tree.kind {
            Kind::Map(pairs) => {
                pairs.iter().find(|(k, _)| &*k.name == key).map_or(self.tree.at, |(k, _)| k.at)
            }
            _ => self.tree.at,
        }
    }

    /// The value of a key that has to be there.
    pub(crate) fn required(&self, key: &str, reading: &mut Reading<'_>) -> Option<&'t Tree> {
        let found = self.get(key);
        if found.is_none() && !self.is_meant(key) {
            let message = format!("{} needs the key `{key}`", self.what);
            reading.problems.add(Code::MissingKey, self.tree.at, message, format!("add `{key}:`"));
        }
        found
    }

    pub(crate) fn text(&self, key: &'static str, reading: &mut Reading<'_>) -> Option<Arc<str>> {
        self.get(key).and_then(|tree| reading.text(tree, key)).map(|text| text.value.clone())
    }

    pub(crate) fn duration(&self, key: &'static str, reading: &mut Reading<'_>) -> Option<Duration> {
        self.get(key).and_then(|tree| reading.duration(tree, key))
    }

    pub(crate) fn positive_duration(&self, key: &'static str, reading: &mut Reading<'_>) -> Option<Duration> {
        self.get(key).and_then(|tree| reading.positive_duration(tree, key))
    }

    pub(crate) fn number(
        &self,
        key: &'static str,
        bounds: (u32, u32),
        reading: &mut Reading<'_>,
    ) -> Option<u32> {
        self.get(key).and_then(|tree| reading.number(tree, key, bounds))
    }

    pub(crate) fn truth(&self, key: &'static str, reading: &mut Reading<'_>) -> Option<bool> {
        let tree = self.get(key)?;
        let Kind::Bool(value) = tree.kind else {
            reading.wrong_type(tree, &format!("`{key}`"), "`true` or `false`");
            return None;
        };
        Some(value)
    }

    pub(crate) fn template(&self, key: &str, reading: &mut Reading<'_>) -> Option<Template> {
        self.get(key).map(|tree| reading.template(tree))
    }

    pub(crate) fn names(&self, key: &'static str, reading: &mut Reading<'_>) -> Option<Vec<Name>> {
        self.get(key).map(|tree| reading.names(tree, key))
    }

    pub(crate) fn word<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
        reading: &mut Reading<'_>,
    ) -> Option<T> {
        self.get(key).and_then(|tree| reading.word(tree, key, words))
    }
}

/// Readers of single values. Each reports what does not fit, and returns nothing then.
impl Reading<'_> {
    pub(crate) fn wrong_type(&mut self, tree: &Tree, what: &str, expected: &str) {
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
        let text = self.text(tree, key)?;
        if text.value.is_empty() {
            self.problems.add(Code::BadName, tree.at, format!("`{key}` is empty"), "write a name");
            return None;
        }
        Some(Located { value: text.value.clone(), at: tree.at })
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
                    let remedy = format!("write `{}`", inside[2..inside.len() - 1].trim());
                    self.problems.add(Code::BadExpression, tree.at, message, remedy);
                    return None;
                }
                Expression::whole(text, tree.at, self.source, self.problems)
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
            self.problems.add_unknown(
                Code::WrongType,
                tree.at,
                message,
                &text.value,
                known.iter().copied(),
                remedy,
            );
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
