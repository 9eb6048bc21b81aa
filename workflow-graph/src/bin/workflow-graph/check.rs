//! `check`: every problem of documents.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use workflow_graph::{Document, Problem as Found, Severity};

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
        let mut found = Vec::new();
        for file in &self.files {
            let (problems, unchecked) = match format::load(file, format) {
                Ok(document) => (document.warnings().to_vec(), unchecked(&document)),
                Err(error) => (error.problems, String::new()),
            };
            if !output.json {
                for problem in &problems {
                    writeln!(output.to, "{}", plain(&problem.to_string()))?;
                }
                writeln!(
                    output.to,
                    "{}: {}{unchecked}",
                    plain(&file.display().to_string()),
                    verdict(&problems)
                )?;
            }
            found.extend(problems);
        }
        if output.json {
            print_json(output.to, &json!({ "problems": found }))?;
        }
        let is_wrong = found.iter().any(|problem| problem.severity == Severity::Error);
        Ok(if is_wrong { Exit::Wrong } else { Exit::Success })
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The parts of a sound document that no check without its program sees.
fn unchecked(document: &Document) -> String {
    let (functions, tools) = (document.functions().len(), document.tools().len());
    let parts = [(functions, "function"), (tools, "tool")].into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, what)| counted(count, what)).collect();
    match functions + tools {
        0 => String::new(),
        count => {
            let are = if count == 1 { "is" } else { "are" };
            format!("; {} {are} checked where a program binds the document", parts.join(" and "))
        }
    }
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
