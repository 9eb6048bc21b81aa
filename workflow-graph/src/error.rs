//! Errors of running graphs. Those of documents are problems.

use std::fmt;

use workflow_core::errors::Incompatibility;
use workflow_core::{RedriveError, ResumeError, RunError, RunId, SendError, StartError};

use crate::result::GraphFailure;
use crate::schema::Unfit;

mod nodes;

use nodes::in_nodes;

/// Why a graph was not started, answered or finished.
///
/// `Debug` prints the same as `Display`, so that a `main` that returns the error shows it in full.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The engine hosts no graph of this name.
    #[error("the engine hosts no graph `{graph}`{}: bind the document and give it to `EngineBuilder::workflows`", hosted(.graphs))]
    UnknownGraph {
        /// The name.
        graph: String,
        /// The graphs that it hosts.
        graphs: Vec<String>,
    },
    /// The input does not fit the document's schema.
    #[error("the input does not fit `{graph}`: {}", listed(.fields))]
    Unfit {
        /// The graph.
        graph: String,
        /// Every field that does not fit, at most 16.
        fields: Vec<UnfitField>,
    },
    /// The answer does not fit the schema of the node's reply. The question stays open.
    #[error("the answer does not fit `{node}`: {field}")]
    UnfitAnswer {
        /// The node that asked.
        node: String,
        /// The field that does not fit.
        field: UnfitField,
    },
    /// The run is none of a graph that the engine hosts.
    #[error("run `{run}` is of workflow `{workflow}`, which is no graph that the engine hosts")]
    NoGraphRun {
        /// The run.
        run: RunId,
        /// Its workflow.
        workflow: String,
    },
    /// The recorded run is of no graph of the document.
    #[error("run `{run}` is of `{workflow}`, and the document has no such graph: it has {}", quoted(.graphs))]
    OtherDocument {
        /// The run.
        run: RunId,
        /// Its workflow.
        workflow: std::sync::Arc<str>,
        /// The graphs of the document.
        graphs: Vec<String>,
    },
    /// The child made as many visits as its document allows.
    #[error(
        "the graph `{graph}` made as many visits as its `limits.steps` allows: raise it, or bound its cycles with `max` or `max_visits`"
    )]
    StepLimit {
        /// The graph.
        graph: String,
    },
    /// The run did not come to an end of its own.
    #[error("{0}")]
    Failed(Box<GraphFailure>),
    /// The log has an event in another form than this version writes.
    #[error("the log of the run has a form that this version cannot read: {0}")]
    Unreadable(String),
    /// The engine did not start the run.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The document has changed where the run has been, and does not fit its journal any more.
    #[error("run `{run}` cannot be resumed with the document as it is now: {}", in_nodes(&.difference.to_string()))]
    DocumentChanged {
        /// The run.
        run: RunId,
        /// The differences, in steps and events. The text of the error has them in nodes and routes.
        difference: Incompatibility,
    },
    /// The engine did not resume the run.
    #[error(transparent)]
    Resume(ResumeError),
    /// The engine did not redrive the run.
    #[error(transparent)]
    Redrive(RedriveError),
    /// The engine did not deliver an answer, a pause or a cancellation.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The child run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<ResumeError> for GraphError {
    fn from(error: ResumeError) -> Self {
        match error {
            ResumeError::Incompatible { run, difference } => Self::DocumentChanged { run, difference },
            error => Self::Resume(error),
        }
    }
}

impl From<RedriveError> for GraphError {
    fn from(error: RedriveError) -> Self {
        match error {
            RedriveError::Resume(error @ ResumeError::Incompatible { .. }) => error.into(),
            error => Self::Redrive(error),
        }
    }
}

impl fmt::Debug for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A field that does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnfitField {
    /// The path, such as `lines[2].count`; empty for the value as a whole.
    pub path: String,
    /// Why it does not fit.
    pub problem: String,
}

impl UnfitField {
    pub(crate) fn whole(error: &serde_json::Error) -> Self {
        Self { path: String::new(), problem: error.to_string() }
    }
}

impl From<Unfit> for UnfitField {
    fn from(unfit: Unfit) -> Self {
        Self { path: unfit.path, problem: unfit.problem }
    }
}

impl fmt::Display for UnfitField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "`{}`: {}", self.path, self.problem)
    }
}

fn listed(fields: &[UnfitField]) -> String {
    fields.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn hosted(graphs: &[String]) -> String {
    if graphs.is_empty() {
        return String::new();
    }
    format!(" (it hosts {})", quoted(graphs))
}

fn quoted(graphs: &[String]) -> String {
    graphs.iter().map(|graph| format!("`{graph}`")).collect::<Vec<_>>().join(", ")
}
