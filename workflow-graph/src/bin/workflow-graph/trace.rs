//! `trace` and `explain`: the way of a stored run, and its reasons, by its journal alone.

use std::path::Path;

use clap::Args;
use workflow_core::RunStatus;
use workflow_graph::{Explanation, VisitsEnded, Wait};

use crate::format::Format;
use crate::problem::Problem;
use crate::quote;
use crate::reply;
use crate::stored::Stored;
use crate::text::{plain_lines, print_json};
use crate::{Exit, Output};

#[derive(Debug, Args)]
pub(crate) struct ShowTrace {
    #[command(flatten)]
    run: Stored,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    run: Stored,
}

impl ShowTrace {
    pub(crate) fn run(&self, format: Option<Format>, output: &mut Output<'_>) -> Result<Exit, Problem> {
        let trace = self.run.read(format)?.trace();
        if output.json {
            print_json(output.to, &trace)?;
        } else {
            write!(output.to, "{}", plain_lines(&trace.to_string()))?;
        }
        Ok(Exit::Success)
    }
}

impl Explain {
    pub(crate) fn run(&self, format: Option<Format>, output: &mut Output<'_>) -> Result<Exit, Problem> {
        let explanation = self.run.read(format)?.explain();
        if output.json {
            print_json(output.to, &explanation)?;
        } else {
            writeln!(output.to, "{}", plain_lines(explanation.to_string().trim_end()))?;
            let script = self.run.script()?;
            for hint in self.hints(&explanation, script.as_deref()) {
                writeln!(output.to, "{hint}")?;
            }
        }
        Ok(Exit::Success)
    }

    /// The commands with which the run goes on, a line each.
    fn hints(&self, explanation: &Explanation, script: Option<&str>) -> Vec<String> {
        let resume = || self.command("resume", &[], script);
        match explanation.status {
            RunStatus::Paused | RunStatus::Cancelled => vec![format!("continue it with: {}", resume())],
            RunStatus::TimedOut => vec![format!("raise `limits.time`, then continue with: {}", resume())],
            // To resume does not ask again.
            RunStatus::Failed if has_expired(explanation) => Vec::new(),
            RunStatus::Failed | RunStatus::Stalled => {
                vec![format!("mend the cause, then continue with: {}", resume())]
            }
            RunStatus::Completed => Vec::new(),
            _ => {
                let waits = &explanation.waits;
                let asks = |name: &str| {
                    let is_own = |wait: &&Wait| matches!(wait, Wait::Reply { node, .. } if **node == *name);
                    waits.iter().filter(is_own).count()
                };
                let answers = waits.iter().filter_map(|wait| {
                    let Wait::Reply { node, request, schema, .. } = wait else { return None };
                    let name = if asks(node) == 1 { node.to_string() } else { request.to_string() };
                    let reply = reply::sample(schema.as_ref()).to_string();
                    Some(format!("answer with: {}", self.command("answer", &[&name, &reply], script)))
                });
                answers.collect()
            }
        }
    }

    /// A command on the run.
    fn command(&self, action: &str, rest: &[&str], script: Option<&str>) -> String {
        let Stored { run, place } = &self.run;
        let (document, script) = (place.document.as_deref(), script.map(Path::new));
        quote::line(&quote::command((action, run, rest), &place.store, document, script))
    }
}

/// Whether a question that nobody answered in time ended the run.
fn has_expired(explanation: &Explanation) -> bool {
    explanation.nodes.iter().any(|node| {
        let expired = format!("nobody answered `{}` within ", node.node);
        let is_so = |ends: &VisitsEnded| {
            let told = ends.error.as_ref().is_some_and(|error| error.message.starts_with(&expired));
            told && ends.latest && !ends.went_on
        };
        node.ends.iter().any(is_so)
    })
}
