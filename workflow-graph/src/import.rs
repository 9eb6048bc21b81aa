//! Documents of other systems. This file owns the choice of a format; each importer is a module of its own.

use crate::document::Source;
use crate::document::files::Files;
use crate::document::model::Graph;
use crate::document::native;
use crate::document::tree::{Kind, Tree};
use crate::problem::sink::Problems;

pub(crate) mod hive;
pub(crate) mod sweny;

pub use hive::{BranchConflicts, BranchFailures, HiveOptions};
pub use sweny::SwenyOptions;

/// The format of a document, for [`Document::load_as`](crate::Document::load_as).
///
/// [`Document::load`](crate::Document::load) tells the format by the keys of the document, and imports with the options
/// that are normal for it.
///
/// ```
/// use workflow_graph::{Document, Format, SwenyOptions};
///
/// let text = "
/// id: notes
/// name: Notes
/// entry: gather
/// nodes:
///   gather: {name: Gather, instruction: List the changes.}
///   write: {name: Write, instruction: Write the notes.}
///   count: {name: Count, instruction: Count the changes.}
/// edges:
///   - {from: gather, to: write}
///   - {from: gather, to: count}
/// ";
/// assert!(Document::parse(text, "notes.yaml").is_err());
/// let document = Document::parse_as(text, "notes.yaml", Format::Sweny(SwenyOptions::new().parallel()))?;
/// assert_eq!(document.name(), "notes");
/// # Ok::<(), workflow_graph::CheckError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// The format of this crate: it has the key `graph`.
    Native,
    /// A SWEny workflow: it has the keys `id`, `entry` and `edges`.
    Sweny(SwenyOptions),
    /// A Hive agent export, or its graph alone: the graph has the key `entry_node`.
    Hive(HiveOptions),
}

impl Format {
    /// The format that the keys of a file tell.
    pub(crate) fn of(documents: &[Tree]) -> Self {
        let Some(first) = documents.first() else { return Self::Native };
        let is_hive = |tree: &Tree| matches!(tree.kind, Kind::Map(_)) && tree.get("entry_node").is_some();
        if is_hive(first) || first.get("graph").is_some_and(is_hive) {
            return Self::Hive(HiveOptions::default());
        }
        if hive::form::of(first).is_some() {
            return Self::Hive(HiveOptions::default());
        }
        let count = |keys: &[&str]| keys.iter().filter(|key| first.get(key).is_some()).count();
        if first.get("graph").is_none() && count(&["id", "entry", "edges"]) >= 2 {
            return Self::Sweny(SwenyOptions::default());
        }
        Self::Native
    }

    /// The graphs of a file: the first is the one that is run.
    pub(crate) fn graphs(
        &self,
        documents: &[Tree],
        source: Source<'_>,
        files: &mut Files,
        problems: &mut Problems,
    ) -> Vec<Graph> {
        match self {
            Self::Native => native::graphs(documents, source, files, problems),
            Self::Sweny(options) => sweny::graphs(options, documents, source, files, problems),
            Self::Hive(options) => hive::graphs(documents, *options, source, files, problems),
        }
    }
}
