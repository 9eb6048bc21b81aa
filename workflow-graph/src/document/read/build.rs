//! Builds trees out of events, without recursion: keys, duplicates, anchors, aliases and merges.

use std::collections::HashSet;
use std::sync::Arc;

use super::{
    Code, Documents, Event, HashMap, Key, Kind, MOST_COPIED, MOST_DEPTH, MOST_VALUES, Problems, Text, Tree,
};
use super::{Span, at, bytes, scalar};
use crate::problem::sink::At;

/// The rest of the file is not read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop;

pub(super) struct Builder<'a> {
    problems: &'a mut Problems,
    documents: Vec<Tree>,
    open: Vec<Frame>,
    /// Anchors that are complete: an alias inside of its own anchor finds none.
    anchors: HashMap<usize, Tree>,
    values: usize,
    copied: usize,
}

/// A list or map that is not complete yet.
struct Frame {
    at: At,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Tree>),
    Map {
        entries: Vec<Entry>,
        repeated: Vec<(Key, Tree)>,
        names: HashMap<Arc<str>, At>,
        key: Option<PendingKey>,
    },
}

enum PendingKey {
    Named(Key),
    Merge,
    /// The map has the key already.
    Repeated(Key),
}

enum Entry {
    Pair(Key, Tree),
    Merge(Tree),
}

impl<'a> Builder<'a> {
    pub(super) fn new(problems: &'a mut Problems) -> Self {
        let (documents, open) = (Vec::new(), Vec::new());
        Self { problems, documents, open, anchors: HashMap::new(), values: 0, copied: 0 }
    }

    pub(super) fn whole(self) -> Documents {
        Documents { trees: self.documents, is_whole: true }
    }

    /// The documents before the place where the reading ended.
    pub(super) fn cut(mut self) -> Documents {
        // Text between two documents may belong to the first: a brace too early closes it.
        if self.open.is_empty() {
            self.documents.pop();
        }
        Documents { trees: self.documents, is_whole: false }
    }

    pub(super) fn syntax(&mut self, at: At, message: impl Into<String>, remedy: &str) {
        self.problems.add(Code::Syntax, at, message, remedy);
    }

    pub(super) fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        let at = at(span.start);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = scalar::Scalar { text: &text, style, tag: tag.as_deref(), at };
                if self.wants_key() {
                    self.count(at)?;
                    self.key(&scalar);
                    return Ok(());
                }
                let kind = scalar.kind(self.problems, bytes(span));
                self.complete(Tree::new(at, kind), anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                scalar::check_tag(tag.as_deref(), "seq", at, self.problems);
                self.open(at, anchor, Content::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                scalar::check_tag(tag.as_deref(), "map", at, self.problems);
                let (entries, repeated) = (Vec::new(), Vec::new());
                let content = Content::Map { entries, repeated, names: HashMap::new(), key: None };
                self.open(at, anchor, content)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(frame) => self.close(frame),
                None => Ok(()),
            },
            Event::Alias(anchor) => self.alias(at, anchor),
            Event::DocumentStart(..) => {
                self.anchors.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether the next value is the key of a map.
    fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some(Frame { content: Content::Map { key: None, .. }, .. }))
    }

    fn open(&mut self, at: At, anchor: usize, content: Content) -> Result<(), Stop> {
        if self.wants_key() {
            self.syntax(at, "a key is a list or a map", "write a text as the key");
            return Err(Stop);
        }
        if self.open.len() >= MOST_DEPTH {
            return self.too_deep(at);
        }
        self.count(at)?;
        self.open.push(Frame { at, anchor, content });
        Ok(())
    }

    fn too_deep(&mut self, at: At) -> Result<(), Stop> {
        let message = format!("lists and maps are nested more than {MOST_DEPTH} deep");
        self.problems.add(Code::TooLarge, at, message, "nest them less deeply");
        Err(Stop)
    }

    fn count(&mut self, at: At) -> Result<(), Stop> {
        self.values += 1;
        if self.values <= MOST_VALUES {
            return Ok(());
        }
        let message = format!("the file has more than {MOST_VALUES} values");
        self.problems.add(Code::TooLarge, at, message, "split it, or use fewer aliases");
        Err(Stop)
    }

    fn key(&mut self, scalar: &scalar::Scalar<'_>) {
        scalar::check_tag(scalar.tag, "str", scalar.at, self.problems);
        let (name, at): (Arc<str>, At) = (scalar.text.into(), scalar.at);
        let is_merge = scalar.is_plain() && &*name == "<<";
        self.named_key(name, at, is_merge);
    }

    fn named_key(&mut self, name: Arc<str>, at: At, is_merge: bool) {
        let Some(Frame { content: Content::Map { names, key, .. }, .. }) = self.open.last_mut() else {
            return;
        };
        if is_merge {
            *key = Some(PendingKey::Merge);
            return;
        }
        if let Some(first) = names.get(&name) {
            let message = format!("the map has the key `{name}` twice, first in line {}", first.line);
            *key = Some(PendingKey::Repeated(Key { at, name }));
            self.problems.add(Code::DuplicateKey, at, message, "remove or rename one of them");
            return;
        }
        names.insert(name.clone(), at);
        *key = Some(PendingKey::Named(Key { at, name }));
    }

    fn close(&mut self, frame: Frame) -> Result<(), Stop> {
        let tree = match frame.content {
            Content::List(items) => Tree::new(frame.at, Kind::List(items)),
            Content::Map { entries, repeated, names, .. } => {
                Tree::map(frame.at, self.merged(entries, &names), repeated)
            }
        };
        // It was counted when it was opened.
        self.values -= 1;
        self.complete(tree, frame.anchor)
    }

    /// Own keys of a map win over merged ones, and an earlier merge over a later one.
    fn merged(&mut self, entries: Vec<Entry>, names: &HashMap<Arc<str>, At>) -> Vec<(Key, Tree)> {
        let mut result = Vec::with_capacity(entries.len());
        let mut taken: HashSet<Arc<str>> = HashSet::new();
        for entry in entries {
            let merged = match entry {
                Entry::Pair(key, value) => {
                    result.push((key, value));
                    continue;
                }
                Entry::Merge(Tree { kind: Kind::List(items), .. }) => items,
                Entry::Merge(tree) => vec![tree],
            };
            for tree in merged {
                let Kind::Map(pairs) = tree.kind else {
                    let message = format!("`<<` merges maps, and this is {}", tree.type_name());
                    self.problems.add(
                        Code::WrongType,
                        tree.at,
                        message,
                        "write an alias of a map, or a list of such",
                    );
                    continue;
                };
                for (key, value) in pairs {
                    if !names.contains_key(&key.name) && taken.insert(key.name.clone()) {
                        result.push((key, value));
                    }
                }
            }
        }
        result
    }

    /// Puts a complete value where it belongs.
    fn complete(&mut self, tree: Tree, anchor: usize) -> Result<(), Stop> {
        self.count(tree.at)?;
        if anchor != 0 {
            // The anchor is a copy as well.
            self.copy(&tree, tree.at)?;
            self.anchors.insert(anchor, tree.clone());
        }
        match self.open.last_mut().map(|frame| &mut frame.content) {
            None => self.documents.push(tree),
            Some(Content::List(items)) => items.push(tree),
            Some(Content::Map { entries, repeated, key, .. }) => match key.take() {
                Some(PendingKey::Named(key)) => entries.push(Entry::Pair(key, tree)),
                Some(PendingKey::Merge) => entries.push(Entry::Merge(tree)),
                Some(PendingKey::Repeated(key)) => repeated.push((key, tree)),
                None => {}
            },
        }
        Ok(())
    }

    fn alias(&mut self, at: At, anchor: usize) -> Result<(), Stop> {
        let Some(mut tree) = self.anchors.get(&anchor).cloned() else {
            self.syntax(at, "the alias stands inside of its own anchor", "move the anchor");
            return Err(Stop);
        };
        if self.wants_key() {
            let Kind::Text(Text { value, .. }) = tree.kind else {
                self.syntax(at, format!("a key is {}", tree.type_name()), "write a text as the key");
                return Err(Stop);
            };
            self.named_key(value, at, false);
            return Ok(());
        }
        self.copy(&tree, at)?;
        // A problem of the whole value is one of the place that uses it.
        tree.at = at;
        self.complete(tree, 0)
    }

    /// Takes a copy of `tree` from the budget.
    fn copy(&mut self, tree: &Tree, at: At) -> Result<(), Stop> {
        let mut open = vec![(tree, self.open.len())];
        while let Some((tree, depth)) = open.pop() {
            self.count(at)?;
            match &tree.kind {
                Kind::Text(text) => self.copied += text.value.len(),
                Kind::List(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
                Kind::Map(pairs) => {
                    self.copied += pairs.iter().map(|(key, _)| key.name.len()).sum::<usize>();
                    open.extend(pairs.iter().map(|(_, value)| (value, depth + 1)));
                }
                Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
            }
            if depth > MOST_DEPTH {
                return self.too_deep(at);
            }
            if self.copied > MOST_COPIED {
                let message = format!("aliases copy more than {MOST_COPIED} bytes");
                self.problems.add(Code::TooLarge, at, message, "use fewer aliases");
                return Err(Stop);
            }
        }
        Ok(())
    }
}
