//! Documents: files of graphs, read and checked as a whole. Nothing runs here.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::check;
use crate::problem::sink::{At, Problems};
use crate::problem::{CheckError, Code, Problem};

mod source;
mod tree;
mod read;
mod files;
pub(crate) mod template;
pub(crate) mod model;
mod native;
mod schema;

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
#[derive(Debug)]
pub struct Document {
    graphs: Vec<Graph>,
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
        Self::check(text, &mut Files::default(), Problems::new(name))
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
        let path = path.as_ref();
        let mut problems = Problems::new(&path.display().to_string());
        let mut bytes = Vec::new();
        // One byte more than is allowed, so that the reader notices what is missing.
        let most = read::MOST_BYTES as u64 + 1;
        let opened = File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
        let folder = path.parent().unwrap_or(Path::new("."));
        match opened.and_then(|_| Files::below(folder)) {
            Ok(mut files) => Self::check(&decoded(bytes, &mut problems)?, &mut files, problems),
            Err(error) => {
                let message = format!("the document cannot be read: {error}");
                problems.add(Code::FileNotFound, At { line: 1, column: 1 }, message, "correct its path");
                Err(refused(problems))
            }
        }
    }

    fn check(text: &str, files: &mut Files, mut problems: Problems) -> Result<Self, CheckError> {
        let source = Source::new(text);
        let documents = read::read(source, &mut problems);
        if documents.is_empty() && !problems.has_errors() {
            let at = At { line: 1, column: 1 };
            problems.add(
                Code::MissingKey,
                at,
                "the file has no document",
                "begin with `graph:` and `nodes:`",
            );
        }
        let graphs = native::graphs(&documents, source, files, &mut problems);
        // After an error of syntax the rest of the file is unknown, and so is what its graphs lack.
        if problems.count(Code::Syntax) == 0 {
            check::check(&graphs, source, &mut problems);
        }
        let warnings = problems.finish()?;
        Ok(Self { graphs, warnings })
    }

    /// The name of the graph that is run: the first of the file.
    pub fn name(&self) -> &str {
        self.graphs.first().map_or("", |graph| &graph.name.value)
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
