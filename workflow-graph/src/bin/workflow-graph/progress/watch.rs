//! The engine's observations as signs of progress, in the words of the document. It keeps the little of each run that they
//! do not repeat, and wakes the driver of the run.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::watch;
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::scheduler::Cause;
use workflow_core::{AnyEvent, DisplayItem, ExecutionId, RunId};
use workflow_graph::{Activity, NodeActivity};

use super::{Progress, Sign};
use crate::text::{short, time};

/// The most characters of a reason, an error or a text of a node.
const TEXT: usize = 200;

/// Observes an engine for a progress display.
pub(crate) struct Watch {
    progress: Arc<Progress>,
    /// Counts the moments after which a run may wait, or have ended.
    settled: watch::Sender<u64>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The run that the engine was asked for. Its children are observed later.
    root: Option<RunId>,
    /// Executions that publish results of branches, which have been shown there.
    joins: HashMap<RunId, HashSet<ExecutionId>>,
    /// Nodes whose failure has been shown, and whose failed result, if a step leaves one, has not come yet.
    failed: HashMap<RunId, HashSet<String>>,
}

impl Watch {
    pub(crate) fn new(progress: Arc<Progress>) -> (Self, watch::Receiver<u64>) {
        let (settled, receiver) = watch::channel(0);
        (Self { progress, settled, seen: Mutex::default() }, receiver)
    }

    fn line(&self, observation: &Observation, line: &str) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_root = seen.root.as_ref() == Some(&observation.run);
        let line = if is_root { line.to_owned() } else { format!("{}: {line}", observation.workflow) };
        self.progress.show(Sign::Line(line));
    }

    /// Whether the execution publishes results of branches.
    fn is_join(&self, run: &RunId, cause: Cause) -> bool {
        let Cause::Execution(execution) = cause else { return false };
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.joins.get(run).is_some_and(|joins| joins.contains(&execution))
    }

    /// A failure for good. A result may follow that says the same.
    fn failed(&self, observation: &Observation, step: &str, error: &str) {
        let (node, part) = step.split_once(':').unwrap_or((step, ""));
        // A part of it: the node itself fails by its items or by its route.
        let (what, error) = (if part == "each" { "an item failed" } else { "failed" }, short(error, TEXT));
        if part != "each" && part != "caught" {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.failed.entry(observation.run.clone()).or_default().insert(node.to_owned());
        }
        self.line(observation, &format!("{node}: {what}: {error}"));
    }

    /// Whether the result is that of a failure which has been shown.
    fn is_shown(&self, run: &RunId, node: &str, data: &Value) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let was_shown = seen.failed.get_mut(run).is_some_and(|failed| failed.remove(node));
        was_shown && data.get("status").and_then(Value::as_str) == Some("failed")
    }

    fn began(&self, run: &RunId, execution: ExecutionId, step: &str) {
        let (node, part) = step.split_once(':').unwrap_or((step, ""));
        if part == "join" {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.joins.entry(run.clone()).or_default().insert(execution);
        }
        self.progress.show(Sign::Began { run: run.clone(), execution, node: node.to_owned() });
    }

    fn logged(&self, observation: &Observation, event: &AnyEvent, cause: Cause) {
        let name = event.name();
        if let Some(node) = name.strip_suffix(":ask") {
            return self.line(observation, &format!("{node}: waits for an answer"));
        }
        let Some(data) = event.as_json() else { return };
        if let Some((from, to)) = name.split_once("->").or_else(|| name.split_once("=>")) {
            // A token without a reason is that of the only path.
            let reason = data.get("reason").and_then(Value::as_str).unwrap_or("only path");
            return self.line(observation, &format!("{from} → {to} ({})", short(reason, TEXT)));
        }
        if is_node(name)
            && !self.is_join(&observation.run, cause)
            && !self.is_shown(&observation.run, name, data)
        {
            self.line(observation, &result(name, data));
        }
    }

    fn displayed(&self, observation: &Observation, item: &DisplayItem) {
        let Some(NodeActivity { node, activity, .. }) = item.event::<NodeActivity>() else { return };
        let text = match activity {
            Activity::Progress { text } => short(text, TEXT),
            Activity::ToolCalled { tool, .. } => format!("calls {}", short(tool, TEXT)),
            Activity::ToolReturned { tool, ok: true, .. } => format!("{} has returned", short(tool, TEXT)),
            Activity::ToolReturned { tool, ok: false, .. } => format!("{} has failed", short(tool, TEXT)),
            Activity::Again(again) => short(&again.to_string(), TEXT),
            _ => return,
        };
        self.line(observation, &format!("{node}: {text}"));
    }

    fn settled(&self) {
        self.settled.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl Observer for Watch {
    fn observe(&self, observation: &Observation) {
        let run = &observation.run;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).root.get_or_insert_with(|| run.clone());
        match &observation.what {
            Observed::ExecutionStarted { execution, step, .. } => self.began(run, *execution, step),
            Observed::ExecutionFailed { execution, step, error, .. } => {
                self.progress.show(Sign::Ended { run: run.clone(), execution: *execution });
                self.failed(observation, step, error);
            }
            Observed::ExecutionSucceeded { execution, .. } | Observed::ExecutionDropped { execution, .. } => {
                self.progress.show(Sign::Ended { run: run.clone(), execution: *execution });
            }
            Observed::AttemptFailed { step, attempt, error, retry_in, .. } => {
                let node = step.split(':').next().unwrap_or(step);
                let error = short(error, TEXT);
                let line =
                    format!("{node}: attempt {attempt} failed, the next one in {}: {error}", time(*retry_in));
                self.line(observation, &line);
            }
            Observed::EventLogged { event, cause, .. } => self.logged(observation, event, *cause),
            Observed::RunResumed => self.line(observation, "the run continues"),
            Observed::Displayed(item) => self.displayed(observation, item),
            Observed::RunEnded { .. } => {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.joins.remove(run);
                seen.failed.remove(run);
                drop(seen);
                self.settled();
            }
            Observed::RunWaiting | Observed::RunPaused | Observed::Missed { .. } => self.settled(),
            _ => {}
        }
    }
}

/// Whether the event is the result of a node. The names of other events have characters that no node's id has.
fn is_node(event: &str) -> bool {
    event.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The result of a visit, as the log has it.
fn result(node: &str, data: &Value) -> String {
    let status = data.get("status").and_then(Value::as_str).unwrap_or("success");
    let visit = match data.get("visit").and_then(Value::as_u64) {
        None | Some(0 | 1) => String::new(),
        Some(visit) => format!(" #{visit}"),
    };
    if data.get("kept").and_then(Value::as_bool) == Some(true) {
        return format!("{node}{visit}: beyond max_visits, the result before it stays");
    }
    let error = data.pointer("/error/message").and_then(Value::as_str);
    let error = error.map(|error| format!(": {}", short(error, TEXT))).unwrap_or_default();
    format!("{node}{visit}: {status}{error}")
}
