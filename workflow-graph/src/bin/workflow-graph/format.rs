//! The formats of documents, and the loading of a document in one.

use std::path::Path;

use clap::ValueEnum;
use workflow_graph::{CheckError, Document, Format as Known, HiveOptions, SwenyOptions};

/// A format of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The format of this crate.
    Native,
    /// A Hive agent export, or its graph alone.
    Hive,
    /// A SWEny workflow.
    Sweny,
}

impl Format {
    /// The name, as `--as` takes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Hive => "hive",
            Self::Sweny => "sweny",
        }
    }

    /// The format of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|format| format.name() == name)
    }
}

/// Loads a document. Without a format its keys tell.
pub(crate) fn load(path: &Path, format: Option<Format>) -> Result<Document, CheckError> {
    let known = match format {
        None => return Document::load(path),
        Some(Format::Native) => Known::Native,
        Some(Format::Hive) => Known::Hive(HiveOptions::new()),
        Some(Format::Sweny) => Known::Sweny(SwenyOptions::new()),
    };
    Document::load_as(path, known)
}
