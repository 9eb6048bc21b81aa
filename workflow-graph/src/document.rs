//! Documents: files of graphs, read and checked as a whole. Nothing runs here.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::check;
use crate::import::Format;
use crate::problem::sink::{At, Problems};
use crate::problem::{CheckError, Code, Problem};

mod source;
pub(crate) mod tree;
mod read;
pub(crate) mod files;
pub(crate) mod template;
pub(crate) mod model;
pub(crate) mod native;
mod schema;

pub(crate) use native::{ByNode, Entry, Play, Script, script};
pub(crate) use source::Source;

use files::Files;
use model::Graph;

/// A file of graphs that passed every check.
///
/// The first graph of the file is the one that is run; the others are children that it names.
///
/// ```
/// use workflow_graph::Document;
///
/// let document = Document::parse("graph: hello\nnodes:\n  greet: {value: Hello}\n", "hello.yaml")?;
/// assert_eq!(document.name(), "hello");
/// assert!(document.warnings().is_empty());
/// # Ok::<(), workflow_graph::CheckError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Document {
    /// The name of the file, as problems give it.
    file: Arc<str>,
    text: Arc<str>,
    graphs: Vec<Arc<Graph>>,
    warnings: Vec<Problem>,
}

impl Document {
    /// Reads and checks `text`, YAML or JSON. Problems call the file `name`.
    ///
    /// A parsed document has no folder, so it can name no files: use [`load`](Self::load) for those.
    ///
    /// # Errors
    ///
    /// Every problem of the document, unless all are warnings.
    ///
    /// ```
    /// use workflow_graph::{Code, Document};
    ///
    /// let error = Document::parse("graph: g\nnodes: {a: {value: 1, next: b}}\n", "g.yaml").unwrap_err();
    /// assert_eq!(error.problems[0].code, Code::UnknownNode);
    /// ```
    pub fn parse(text: &str, name: &str) -> Result<Self, CheckError> {
        Self::check(text, &mut Files::default(), Problems::new(name), None)
    }

    /// The same for a document of this format. Its keys are not asked.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    ///
    /// ```
    /// use workflow_graph::{Code, Document, Format, SwenyOptions};
    ///
    /// let error = Document::parse_as("id: g\n", "g.yaml", Format::Sweny(SwenyOptions::new())).unwrap_err();
    /// assert_eq!(error.problems[0].code, Code::MissingKey);
    /// ```
    pub fn parse_as(text: &str, name: &str, format: Format) -> Result<Self, CheckError> {
        Self::check(text, &mut Files::default(), Problems::new(name), Some(format))
    }

    /// Reads and checks the file at `path`. Files that it names have to lie in its folder.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has problems: every one of them, unless all are warnings.
    ///
    /// ```
    /// use workflow_graph::{Code, Document};
    ///
    /// let error = Document::load("absent.yaml").unwrap_err();
    /// assert_eq!(error.problems[0].code, Code::FileNotFound);
    /// ```
    pub fn load(path: impl AsRef<Path>) -> Result<Self, CheckError> {
        Self::load_in(path.as_ref(), None)
    }

    /// The same for a file of this format. Its keys are not asked.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    ///
    /// ```
    /// use workflow_graph::{Code, Document, Format};
    ///
    /// let error = Document::load_as("absent.yaml", Format::Native).unwrap_err();
    /// assert_eq!(error.problems[0].code, Code::FileNotFound);
    /// ```
    pub fn load_as(path: impl AsRef<Path>, format: Format) -> Result<Self, CheckError> {
        Self::load_in(path.as_ref(), Some(format))
    }

    fn load_in(path: &Path, format: Option<Format>) -> Result<Self, CheckError> {
        let mut problems = Problems::new(&path.display().to_string());
        let text = read_file(path, "document", &mut problems)?;
        let mut files = Files::below(path.parent().unwrap_or(Path::new(".")))
            .map_err(|error| unreadable(&error, "document", &mut problems))?;
        Self::check(&text, &mut files, problems, format)
    }

    fn check(
        text: &str,
        files: &mut Files,
        mut problems: Problems,
        format: Option<Format>,
    ) -> Result<Self, CheckError> {
        let source = Source::new(text);
        let read::Documents { trees, is_whole } = read::read(source, &mut problems);
        if trees.is_empty() && !problems.has_errors() {
            let at = At { line: 1, column: 1 };
            problems.add(
                Code::MissingKey,
                at,
                "the file has no document",
                "begin with `graph:` and `nodes:`",
            );
        }
        let format = format.unwrap_or_else(|| Format::of(&trees));
        let mut graphs = format.graphs(&trees, source, files, &mut problems);
        check::check(&graphs, source, is_whole, &mut problems);
        let file = problems.file().clone();
        let warnings = problems.finish()?;
        graphs.iter_mut().for_each(check::prune);
        let graphs = graphs.into_iter().map(Arc::new).collect();
        Ok(Self { file, text: text.into(), graphs, warnings })
    }

    pub(crate) fn file(&self) -> &Arc<str> {
        &self.file
    }

    pub(crate) fn source(&self) -> Source<'_> {
        Source::new(&self.text)
    }

    /// At least one: the first is the one that is run.
    pub(crate) fn graphs(&self) -> &[Arc<Graph>] {
        &self.graphs
    }

    /// The name of the graph that is run: the first of the file.
    pub fn name(&self) -> &str {
        self.graphs.first().map_or("", |graph| &graph.name.value)
    }

    /// The keys of an imported document that its format leaves open, with their values. Native documents have none.
    ///
    /// ```
    /// use workflow_graph::Document;
    ///
    /// let text = "
    /// id: notes
    /// name: Notes
    /// author: Ada
    /// entry: write
    /// nodes: {write: {name: Write, instruction: Write the notes.}}
    /// edges: []
    /// ";
    /// assert_eq!(Document::parse(text, "notes.yaml")?.metadata()["author"], "Ada");
    /// # Ok::<(), workflow_graph::CheckError>(())
    /// ```
    pub fn metadata(&self) -> serde_json::Map<String, Value> {
        match self.graphs.first().map(|graph| &graph.dialect) {
            Some(model::Dialect::Sweny(sweny)) => sweny.metadata.clone(),
            _ => serde_json::Map::new(),
        }
    }

    /// Parts of the document that may do something else than their author expects, in the order of the file.
    ///
    /// ```
    /// use workflow_graph::{Code, Document};
    ///
    /// let document = Document::parse("graph: g\nnodes: {ask: {human: {ask: Well?}}}\n", "g.yaml")?;
    /// assert_eq!(document.warnings()[0].code, Code::MissingReplySchema);
    /// # Ok::<(), workflow_graph::CheckError>(())
    /// ```
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The native format as JSON Schema (draft 2020-12): for editors, and for models that draft documents.
    ///
    /// A document that satisfies it may still have problems that no schema can say, such as a route to no node.
    ///
    /// ```
    /// use workflow_graph::Document;
    ///
    /// let schema = Document::schema();
    /// assert_eq!(schema["required"], serde_json::json!(["graph", "nodes"]));
    /// ```
    pub fn schema() -> Value {
        schema::schema()
    }
}

/// The text of the file at `path`, which is a `what`.
pub(crate) fn read_file(path: &Path, what: &str, problems: &mut Problems) -> Result<String, CheckError> {
    let mut bytes = Vec::new();
    // One byte more than is allowed, so that the reader notices what is missing.
    let most = read::MOST_BYTES as u64 + 1;
    match File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)) {
        Ok(_) => decoded(bytes, problems),
        Err(error) => Err(unreadable(&error, what, problems)),
    }
}

fn unreadable(error: &io::Error, what: &str, problems: &mut Problems) -> CheckError {
    let message = format!("the {what} cannot be read: {error}");
    problems.add(Code::FileNotFound, At { line: 1, column: 1 }, message, "correct its path");
    refused(std::mem::replace(problems, Problems::new("")))
}

fn decoded(bytes: Vec<u8>, problems: &mut Problems) -> Result<String, CheckError> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
        let line = number(before.matches('\n').count());
        let column = number(before.rsplit('\n').next().unwrap_or_default().chars().count());
        let is_cut = before.len() + 4 > read::MOST_BYTES;
        if is_cut {
            let message = format!("the file has more than the {} bytes that are read", read::MOST_BYTES);
            problems.add(
                Code::TooLarge,
                At { line: 1, column: 1 },
                message,
                "split it into several documents",
            );
        } else {
            let at = At { line, column };
            problems.add(Code::Syntax, at, "the file is no text in UTF-8 here", "save it as UTF-8");
        }
        refused(std::mem::replace(problems, Problems::new("")))
    })
}

/// The problems of a document of which at least one is an error.
fn refused(problems: Problems) -> CheckError {
    match problems.finish() {
        Err(error) => error,
        Ok(problems) => CheckError { problems },
    }
}
