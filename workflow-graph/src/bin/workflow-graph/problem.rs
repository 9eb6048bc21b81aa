//! The errors that end a command, and their exit codes: 2 where the document, the usage or the input is wrong, else 1.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::json;
use workflow_core::errors::chain;
use workflow_core::{RedriveError, ResumeError, SendError, StartError};
use workflow_graph::{CheckError, GraphError};
use workflow_redb::OpenError;

use crate::text::{one_line, plain, plain_lines};

/// An error that ends a command.
#[derive(Debug)]
pub(crate) enum Problem {
    /// A document or a script has problems, or lacks what it names.
    Document(CheckError),
    /// The usage or the input is wrong.
    Wrong(String),
    /// The command cannot be carried out now.
    Failed(String),
    /// The output cannot be written.
    Output(io::Error),
}

impl Problem {
    /// Prints the error, and returns the exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        let (code, text) = match self {
            Self::Document(error) => (2, plain_lines(&error.to_string())),
            Self::Wrong(text) => (2, one_line(text)),
            Self::Failed(text) => (1, one_line(text)),
            // The reader of the output has closed it: it has read enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Self::Output(error) => (1, plain(&format!("the output cannot be written: {error}"))),
        };
        let line = match self {
            Self::Document(error) if json => json!({ "error": text, "problems": error.problems }).to_string(),
            _ if json => json!({ "error": text }).to_string(),
            // Problems have their severity and place.
            Self::Document(_) => text,
            _ => format!("error: {text}"),
        };
        // If printing fails too, the exit code reports the error.
        drop(writeln!(io::stderr(), "{line}"));
        ExitCode::from(code)
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<CheckError> for Problem {
    fn from(error: CheckError) -> Self {
        Self::Document(error)
    }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        let text = chain(&error);
        match error {
            OpenError::NotFound { .. } => Self::Wrong(text),
            _ => Self::Failed(text),
        }
    }
}

impl From<GraphError> for Problem {
    fn from(error: GraphError) -> Self {
        let text = chain(&error);
        if is_of_the_caller(&error) { Self::Wrong(text) } else { Self::Failed(text) }
    }
}

/// Whether another call would succeed, and not another time.
fn is_of_the_caller(error: &GraphError) -> bool {
    let resume = |error: &ResumeError| {
        !matches!(
            error,
            ResumeError::Store(_)
                | ResumeError::Elsewhere { .. }
                | ResumeError::Contended { .. }
                | ResumeError::ShutDown
        )
    };
    match error {
        GraphError::UnknownGraph { .. }
        | GraphError::Unfit { .. }
        | GraphError::UnfitAnswer { .. }
        | GraphError::NoGraphRun { .. }
        | GraphError::DocumentChanged { .. }
        | GraphError::OtherDocument { .. } => true,
        GraphError::Start(error) => !matches!(error, StartError::Store(_) | StartError::Elsewhere { .. }),
        GraphError::Resume(error) | GraphError::Redrive(RedriveError::Resume(error)) => resume(error),
        GraphError::Redrive(error) => !matches!(error, RedriveError::Store(_)),
        GraphError::Send(error) => matches!(
            error,
            SendError::TooLarge(_)
                | SendError::NotOpen { .. }
                | SendError::Answered { .. }
                | SendError::Expired { .. }
                | SendError::Ended { .. }
        ),
        _ => false,
    }
}
