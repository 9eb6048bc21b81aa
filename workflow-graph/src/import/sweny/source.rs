//! Sources: texts that stand in the document or in files beside it. Each is read once, and its hash is noted.

use std::sync::Arc;

use crate::document::model::sweny::Layer;
use crate::document::native::Reading;
use crate::document::native::fields::Fields;
use crate::document::tree::{Kind, Tree};
use crate::hash::hash;
use crate::problem::Code;
use crate::result::SourceHash;

/// The sources of a document that were read so far.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) read: Vec<SourceHash>,
}

impl Sources {
    /// The text of a source. `place` is where the document has it, for reports.
    pub(super) fn text(
        &mut self,
        tree: &Tree,
        key: &'static str,
        place: String,
        reading: &mut Reading<'_>,
    ) -> Option<Arc<str>> {
        let (text, file) = match &tree.kind {
            Kind::Text(text) if is_file(&text.value) => {
                (reading.files.read(&text.value, tree.at, reading.problems)?, Some(text.value.clone()))
            }
            Kind::Text(text) if is_url(&text.value) => {
                url(tree, &text.value, reading);
                return None;
            }
            Kind::Text(text) => (text.value.clone(), None),
            Kind::Map(_) => Self::map(tree, reading)?,
            _ => {
                reading.wrong_type(tree, &format!("`{key}`"), "a text, or a map with `inline` or `file`");
                return None;
            }
        };
        let hash = hash(&text);
        self.read.push(SourceHash { place, file: file.map(|file| file.to_string()), hash });
        Some(text)
    }

    fn map(tree: &Tree, reading: &mut Reading<'_>) -> Option<(Arc<str>, Option<Arc<str>>)> {
        let fields = Fields::new(tree, "a source", &["inline", "file", "url"], reading)?;
        let present = ["inline", "file", "url"].into_iter().filter(|key| fields.get(key).is_some());
        let present: Vec<&'static str> = present.collect();
        let [key] = present[..] else {
            if !fields.has_unknown() || present.len() > 1 {
                let message = "a source has one of `inline`, `file` and `url`";
                reading.problems.add(Code::WrongType, tree.at, message, "write one of them");
            }
            return None;
        };
        let value = fields.get(key)?;
        let text = reading.text(value, key)?.value.clone();
        match key {
            "inline" => Some((text, None)),
            "file" => Some((reading.files.read(&text, value.at, reading.problems)?, Some(text))),
            _ => {
                url(value, &text, reading);
                None
            }
        }
    }

    /// A list of sources.
    pub(super) fn list(
        &mut self,
        tree: Option<&Tree>,
        key: &'static str,
        place: &str,
        reading: &mut Reading<'_>,
    ) -> Vec<Arc<str>> {
        let Some(tree) = tree else { return Vec::new() };
        let items = reading.list(tree, key).iter().enumerate();
        items.filter_map(|(at, item)| self.text(item, key, format!("{place}[{at}]"), reading)).collect()
    }

    /// A list of sources, or `{only, sources}`.
    pub(super) fn layer(
        &mut self,
        tree: Option<&Tree>,
        key: &'static str,
        place: &str,
        reading: &mut Reading<'_>,
    ) -> Layer {
        let Some(tree) = tree else { return Layer::default() };
        if !matches!(tree.kind, Kind::Map(_)) {
            return Layer { is_only: false, texts: self.list(Some(tree), key, place, reading) };
        }
        let what = if key == "rules" { "`rules`" } else { "`context`" };
        let Some(fields) = Fields::new(tree, what, &["only", "sources"], reading) else {
            return Layer::default();
        };
        let is_only = fields.truth("only", reading).unwrap_or_default();
        let sources = fields.required("sources", reading);
        Layer { is_only, texts: self.list(sources, key, place, reading) }
    }
}

fn is_file(text: &str) -> bool {
    text.starts_with("./") || text.starts_with("../") || text.starts_with('/')
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// `unsupported`
fn url(tree: &Tree, url: &str, reading: &mut Reading<'_>) {
    let message = format!("`{url}` is in a network, and the reader fetches nothing");
    reading.problems.add(Code::Unsupported, tree.at, message, "store the text in a file beside the document");
}
