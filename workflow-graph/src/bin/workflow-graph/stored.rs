//! Runs in a store, read without an engine, and the document that a run was started with: its metadata names it.

use std::path::{Path, PathBuf};

use clap::Args;
use workflow_core::store::{Position, Record, StoredRun};
use workflow_core::{RecordedRun, RunId, RunOptions};
use workflow_graph::{Document, RecordedGraph};
use workflow_redb::StoreFile;

use crate::format::{self, Format};
use crate::problem::Problem;

/// How many records are read at once.
const PAGE: usize = 8_192;

/// The metadata of runs that this command starts.
const DOCUMENT: &str = "workflow-graph.document";
const FORMAT: &str = "workflow-graph.as";
const SCRIPT: &str = "workflow-graph.script";

/// A run of a store.
#[derive(Debug, Args)]
pub(crate) struct Stored {
    /// The run's id.
    #[arg(value_name = "ID")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// The file of a stored run, and its document.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The file with the runs.
    #[arg(long, value_name = "FILE")]
    pub(crate) store: PathBuf,
    /// The document of the run. Without it, the file that the run was started with.
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
}

/// Adds the document and the script to the options of a run.
pub(crate) fn remember(
    options: RunOptions,
    document: &Path,
    format: Option<Format>,
    script: Option<&Path>,
) -> RunOptions {
    let options = match format {
        Some(format) => options.metadata(FORMAT, format.name()),
        None => options,
    };
    // A path that is no text cannot be stored: `--document` and `--script` name it later.
    let whole =
        |path: &Path| std::path::absolute(path).ok().and_then(|path| path.to_str().map(str::to_owned));
    let options = match whole(document) {
        Some(path) => options.metadata(DOCUMENT, path),
        None => options,
    };
    match script.and_then(whole) {
        Some(path) => options.metadata(SCRIPT, path),
        None => options,
    }
}

impl Place {
    /// The run of this id.
    pub(crate) fn find(&self, id: &str) -> Result<StoredRun, Problem> {
        find(&StoreFile::open(&self.store)?, id)
    }

    /// The document of the run, with its path and format.
    pub(crate) fn document(
        &self,
        stored: &StoredRun,
        format: Option<Format>,
    ) -> Result<(Document, PathBuf, Option<Format>), Problem> {
        let metadata = &stored.run.metadata;
        let known = metadata.get(DOCUMENT).map(PathBuf::from);
        let Some(path) = self.document.clone().or(known) else {
            let text = format!("run `{}` does not say of which document it is: give `--document`", stored.id);
            return Err(Problem::Wrong(text));
        };
        let format = format.or_else(|| metadata.get(FORMAT).and_then(|name| Format::named(name)));
        Ok((format::load(&path, format)?, path, format))
    }
}

impl Stored {
    /// The script that the run was started with.
    pub(crate) fn script(&self) -> Result<Option<String>, Problem> {
        let stored = self.place.find(&self.run)?;
        Ok(stored.run.metadata.get(SCRIPT).map(ToString::to_string))
    }

    /// The run, read in the words of its document.
    pub(crate) fn read(&self, format: Option<Format>) -> Result<RecordedGraph, Problem> {
        let file = StoreFile::open(&self.place.store)?;
        let stored = find(&file, &self.run)?;
        let (document, ..) = self.place.document(&stored, format)?;
        read(&file, &stored.id, &document)
    }
}

pub(crate) fn find(file: &StoreFile, id: &str) -> Result<StoredRun, Problem> {
    let stored = file.run(&RunId::from(id)).map_err(|error| failed(&error))?;
    stored.ok_or_else(|| Problem::Wrong(format!("there is no run `{id}`")))
}

/// The run, read in the words of a document.
pub(crate) fn read(file: &StoreFile, run: &RunId, document: &Document) -> Result<RecordedGraph, Problem> {
    let mut records: Vec<Record> = Vec::new();
    let mut position = Position(0);
    loop {
        let page = file.read(run, position, PAGE).map_err(|error| failed(&error))?;
        if page.is_empty() {
            break;
        }
        position = position.after(page.len());
        records.extend(page);
    }
    let recorded = RecordedRun::of(run, &records).map_err(|error| failed(&error))?;
    Ok(document.recorded(recorded)?)
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Problem {
    Problem::Failed(workflow_core::errors::chain(error))
}
