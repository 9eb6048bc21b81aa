//! `check`: every problem of documents.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use workflow_graph::{Problem as Found, Severity, Unbound};

use crate::format::{self, Format};
use crate::problem::Problem;
use crate::text::{plain, print_json};
use crate::{Exit, Output};

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The documents.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Check {
    pub(crate) fn run(&self, format: Option<Format>, output: &mut Output<'_>) -> Result<Exit, Problem> {
        let (mut found, mut open) = (Vec::new(), Vec::new());
        for file in &self.files {
            let (problems, unbound) = match format::load(file, format) {
                Ok(document) => (document.warnings().to_vec(), document.unbound()),
                Err(error) => (error.problems, Vec::new()),
            };
            if !output.json {
                for problem in &problems {
                    writeln!(output.to, "{}", plain(&problem.to_string()))?;
                }
                writeln!(
                    output.to,
                    "{}: {}{}",
                    plain(&file.display().to_string()),
                    verdict(&problems),
                    plain(&unchecked(&unbound))
                )?;
            }
            found.extend(problems);
            let file = file.display().to_string();
            open.extend(unbound.into_iter().map(|part| json!({ "file": file, "part": part })));
        }
        if output.json {
            print_json(output.to, &json!({ "problems": found, "unbound": open }))?;
        }
        let is_wrong = found.iter().any(|problem| problem.severity == Severity::Error);
        Ok(if is_wrong { Exit::Wrong } else { Exit::Success })
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The parts of a sound document that no check without its program sees.
fn unchecked(unbound: &[Unbound]) -> String {
    if unbound.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = unbound.iter().map(ToString::to_string).collect();
    format!("; open until a program binds the document: {}", parts.join(", "))
}

fn verdict(problems: &[Found]) -> String {
    let warnings = problems.iter().filter(|problem| problem.severity == Severity::Warning).count();
    match (problems.len() - warnings, warnings) {
        (0, 0) => "sound".to_owned(),
        (0, warnings) => format!("sound, {}", counted(warnings, "warning")),
        (errors, 0) => counted(errors, "error"),
        (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    }
}
