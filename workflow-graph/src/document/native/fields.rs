//! Keys and values of a map with a fixed set of keys. It knows no particular key.

use std::sync::Arc;
use std::time::Duration;

use super::Reading;
use super::synonyms::{self, Synonym};
use super::values::listed;
use crate::document::model::Name;
use crate::document::template::Template;
use crate::document::tree::{Key, Kind, Tree};
use crate::problem::sink::At;
use crate::problem::{Code, is_slip, similar};

/// A map, after a look for unknown keys.
pub(crate) struct Fields<'t> {
    tree: &'t Tree,
    /// The kind of the map, such as "a node".
    what: &'static str,
    /// Keys that the author may have meant with an unknown one. They are not reported as missing.
    meant: Vec<String>,
    /// Unknown keys that are read as known ones, since they differ by a slip or have that name in other tools.
    slips: Vec<(String, &'t Key, &'t Tree)>,
    /// The values of other unknown keys.
    unread: Vec<&'t Tree>,
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
        let mut fields =
            Self { tree, what, meant: Vec::new(), slips: Vec::new(), unread: Vec::new(), has_unknown: false };
        for (key, value) in pairs.iter().filter(|(key, _)| !known.contains(&&*key.name)) {
            fields.has_unknown = true;
            let message = format!("{what} has no key `{}`", key.name);
            if let Some(synonym) = synonyms::find(&key.name, table) {
                fields.meant.push(synonym.key.to_owned());
                if let Some(remedy) = synonym.remedy {
                    reading.problems.add(Code::UnknownKey, key.at, message, remedy);
                    fields.unread.push(value);
                } else {
                    reading.problems.add_renamed(Code::UnknownKey, key.at, message, synonym.key);
                    fields.read_as(synonym.key, key, value);
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
            match similar
                .first()
                .filter(|known| is_slip(&key.name, known) && is_of_number(known, &key.name, value))
            {
                Some(known) => fields.read_as(known, key, value),
                None => fields.unread.push(value),
            }
            fields.meant.extend(similar);
        }
        Some(fields)
    }

    /// Reads the value of an unknown key as that of `known`, unless there is one.
    fn read_as(&mut self, known: &str, key: &'t Key, value: &'t Tree) {
        if self.get(known).is_none() {
            self.slips.push((known.to_owned(), key, value));
        } else {
            self.unread.push(value);
        }
    }

    /// Of `keys`, which exclude each other, drops those that an unknown key stands for beside another one.
    pub(crate) fn exclusive(mut self, keys: &[&str]) -> Self {
        let count = keys.iter().filter(|key| self.get(key).is_some()).count();
        if count > 1 {
            let (out, slips) =
                std::mem::take(&mut self.slips).into_iter().partition(|(known, ..)| keys.contains(&&**known));
            self.slips = slips;
            let out: Vec<(String, &Key, &Tree)> = out;
            self.unread.extend(out.into_iter().map(|(_, _, value)| value));
        }
        self
    }

    /// The pairs whose keys stand in the map before.
    pub(crate) fn repeated(&self) -> &'t [(Key, Tree)] {
        self.tree.repeated()
    }

    /// The values of unknown keys that are not read as others.
    pub(crate) fn unread(&self) -> &[&'t Tree] {
        &self.unread
    }

    /// A map in which any other key is allowed as well.
    ///
    /// A `required` key that is absent, where another one differs from it by a slip, is reported here.
    pub(crate) fn open(
        tree: &'t Tree,
        what: &'static str,
        known: &[&str],
        required: &[&str],
        reading: &mut Reading<'_>,
    ) -> Option<Self> {
        if !matches!(tree.kind, Kind::Map(_)) {
            reading.wrong_type(tree, what, "a map");
            return None;
        }
        let mut fields =
            Self { tree, what, meant: Vec::new(), slips: Vec::new(), unread: Vec::new(), has_unknown: false };
        for required in required.iter().filter(|required| tree.get(required).is_none()) {
            if let Some((key, value)) = slip(tree, what, required, known, reading) {
                fields.slips.push(((*required).to_owned(), key, value));
            }
        }
        Some(fields)
    }

    /// Whether an unknown key may stand for `key`.
    pub(crate) fn is_meant(&self, key: &str) -> bool {
        self.meant.iter().any(|meant| meant == key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'t Tree> {
        let slip = || self.slips.iter().find(|(known, ..)| known == key).map(|(_, _, value)| *value);
        self.tree.get(key).or_else(slip)
    }

    /// Where `key` itself stands, else the map.
    pub(crate) fn key_at(&self, key: &str) -> At {
        let slip = self.slips.iter().find(|(known, ..)| known == key).map(|(_, key, _)| key.at);
        let Kind::Map(pairs) = &self.tree.kind else { return self.tree.at };
        pairs.iter().find(|(k, _)| &*k.name == key).map(|(k, _)| k.at).or(slip).unwrap_or(self.tree.at)
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
        let tree = self.get(key)?;
        let text = reading.text(tree, key)?.value.clone();
        reading.plain(tree, key);
        Some(text)
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

/// The key of an open map that differs by a slip from one that is required and absent, after a problem.
pub(crate) fn slip<'t>(
    tree: &'t Tree,
    what: &str,
    required: &str,
    known: &[&str],
    reading: &mut Reading<'_>,
) -> Option<(&'t Key, &'t Tree)> {
    let Kind::Map(pairs) = &tree.kind else { return None };
    let mut others = pairs.iter().filter(|(key, _)| !known.contains(&&*key.name));
    let (key, value) = others.find(|(key, value)| {
        let is_near = !similar(&key.name, [required]).is_empty() && is_slip(&key.name, required);
        is_near && is_of_number(required, &key.name, value)
    })?;
    let message = format!("{what} needs the key `{required}`, and has `{}`", key.name);
    reading.problems.add_renamed(Code::MissingKey, key.at, message, required);
    Some((key, value))
}

/// Whether `value` has the form that a key of this number has, where `name` differs from the key by an `s` at its end.
fn is_of_number(key: &str, name: &str, value: &Tree) -> bool {
    let is_many = matches!(value.kind, Kind::List(_) | Kind::Map(_));
    if name.len() + 1 == key.len() && key.strip_suffix('s') == Some(name) {
        return is_many;
    }
    !(key.len() + 1 == name.len()
        && name.strip_suffix('s') == Some(key)
        && matches!(value.kind, Kind::List(_)))
}
