//! `trace` and `explain`: the way of a stored run, and its reasons, by its journal alone.

use clap::Args;
use workflow_core::RunStatus;
use workflow_graph::{Explanation, Wait};

use crate::format::Format;
use crate::problem::Problem;
use crate::quote::word;
use crate::reply;
use crate::stored::Stored;
use crate::text::{plain, plain_lines, print_json};
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
        match explanation.status {
            RunStatus::Paused | RunStatus::Cancelled => {
                vec![format!("continue it with: {}", self.command("resume", &[], script))]
            }
            RunStatus::Failed | RunStatus::Stalled => {
                vec![format!("mend the cause, then continue with: {}", self.command("resume", &[], script))]
            }
            status if status.is_ended() => Vec::new(),
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
        let (run, place) = (&self.run.run, &self.run.place);
        let mut words = vec!["workflow-graph", action, run];
        words.extend(rest);
        let (store, document) = (place.store.display().to_string(), place.document.as_ref());
        let document = document.map(|document| document.display().to_string());
        words.extend(["--store", &store]);
        words.extend(document.iter().flat_map(|document| ["--document", document]));
        words.extend(script.iter().flat_map(|script| ["--script", script]));
        plain(&words.into_iter().map(word).collect::<Vec<_>>().join(" "))
    }
}
