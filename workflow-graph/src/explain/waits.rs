//! The events that a run waits for: replies, attempts, children, limits.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::Value;
use workflow_core::report::{ExecutionOutcome, ExecutionTrace, LoggedEvent, WaitsFor};
use workflow_core::{RunId, Seq};

use super::under_way::is_open;
use crate::VisitError;
use crate::part::Part;
use crate::trace::{EventName, Log, StepName, milliseconds, moment, optional_milliseconds, optional_moment};

/// An event that a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Wait {
    /// A person's reply.
    Reply {
        /// The node that asks.
        node: Arc<str>,
        /// The branch that the node lies in.
        #[serde(skip_serializing_if = "Option::is_none")]
        branch: Option<Arc<str>>,
        /// The number of the request, with which it is answered.
        request: Seq,
        /// The question.
        text: Arc<str>,
        /// The JSON Schema of the reply; any reply fits if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        schema: Option<Value>,
        /// When the request expires, since the run began. In JSON as milliseconds: `expires_ms`.
        #[serde(
            rename = "expires_ms",
            serialize_with = "optional_milliseconds",
            skip_serializing_if = "Option::is_none"
        )]
        expires: Option<Duration>,
        /// The moment at which it expires, by the engine's clock. In JSON by RFC 3339: `expires_at`.
        #[serde(
            rename = "expires_at",
            serialize_with = "optional_moment",
            skip_serializing_if = "Option::is_none"
        )]
        at: Option<SystemTime>,
        /// The time that is left until then; 0 if it is over. In JSON as milliseconds: `left_ms`.
        #[serde(
            rename = "left_ms",
            serialize_with = "optional_milliseconds",
            skip_serializing_if = "Option::is_none"
        )]
        left: Option<Duration>,
    },
    /// The next attempt of a node.
    Attempt {
        /// The node.
        node: Arc<str>,
        /// The number of the attempt, from 2.
        attempt: u32,
        /// The failure of the attempt before.
        error: VisitError,
        /// When the attempt is due, since the run began. In JSON as milliseconds: `due_ms`.
        #[serde(rename = "due_ms", serialize_with = "milliseconds::serialize")]
        due: Duration,
        /// The moment at which it is due, by the engine's clock. In JSON by RFC 3339: `due_at`.
        #[serde(rename = "due_at", serialize_with = "moment")]
        at: SystemTime,
        /// The time that is left until then; 0 if it is over. In JSON as milliseconds: `left_ms`.
        #[serde(rename = "left_ms", serialize_with = "milliseconds::serialize")]
        left: Duration,
    },
    /// The end of a child run.
    Child {
        /// The node that runs the child.
        node: Arc<str>,
        /// The place of the item that the child is of, from 0, in a node with `for_each`.
        #[serde(skip_serializing_if = "Option::is_none")]
        item: Option<u32>,
        /// The child.
        run: RunId,
        /// The graph or workflow of the child.
        graph: Arc<str>,
    },
    /// A place within a limit of the engine.
    Turn {
        /// The node that begins then.
        node: Arc<str>,
        /// The limit, in words.
        limit: String,
    },
    /// The end of a pause of the run.
    Unpause {
        /// The node that begins then, perhaps again.
        node: Arc<str>,
    },
}

pub(super) fn waits(log: &Log<'_>, now: SystemTime) -> Vec<Wait> {
    let mut found = replies(log, now);
    for execution in &log.report.trace {
        let failed = execution.attempts.last().zip(execution.next_attempt);
        let Some((failed, due)) = failed.filter(|_| execution.outcome == ExecutionOutcome::Running) else {
            continue;
        };
        let at = log.report.log.first().map_or(SystemTime::UNIX_EPOCH, |first| first.at) + due;
        found.push(Wait::Attempt {
            node: node(&execution.step),
            attempt: u32::try_from(execution.attempts.len()).unwrap_or(u32::MAX).saturating_add(1),
            error: VisitError {
                class: failed.class.to_string().into(),
                message: failed.error.as_str().into(),
            },
            due,
            at,
            left: until(at, now),
        });
    }
    let children = log.report.children.iter().filter(|child| child.child.awaited && !child.status.is_ended());
    found.extend(children.map(|child| Wait::Child {
        node: node(&child.child.step),
        item: log.execution(child.child.execution).and_then(|execution| item(log, execution)),
        run: child.child.run.clone(),
        graph: child.child.workflow.clone(),
    }));
    let deferred = log.report.waiting.iter().filter(|waiting| waiting.waits_for != WaitsFor::Nothing);
    found.extend(deferred.map(|waiting| match &waiting.waits_for {
        WaitsFor::Pause => Wait::Unpause { node: node(&waiting.step) },
        limit => Wait::Turn { node: node(&waiting.step), limit: limit.to_string() },
    }));
    found
}

/// The time from `now` to `at`; 0 if that is over.
fn until(at: SystemTime, now: SystemTime) -> Duration {
    at.duration_since(now).unwrap_or_default()
}

/// The node of a step.
fn node(step: &str) -> Arc<str> {
    StepName::of(step).map_or(step, |step| step.node).into()
}

/// The place of the item on which an execution works, in a node with `for_each`.
pub(super) fn item(log: &Log<'_>, execution: &ExecutionTrace) -> Option<u32> {
    StepName::of(&execution.step).filter(|step| step.part == Part::Each)?;
    let item = log.event(log.branch_report(execution.scope)?.item)?;
    item.value.as_json()?.get("index")?.as_u64().and_then(|index| u32::try_from(index).ok())
}

/// Open requests: those without a reply or an expiry.
fn replies(log: &Log<'_>, now: SystemTime) -> Vec<Wait> {
    let events = &log.report.log;
    let closed: HashSet<Seq> = events.iter().filter_map(|event| event.reply_to.or(event.expired)).collect();
    let wait = |event: &LoggedEvent| {
        let EventName::Ask(node) = EventName::of(&event.event) else { return None };
        if closed.contains(&event.seq) || !is_open(log, event.scope) {
            return None;
        }
        let request = event.value.as_json();
        let text = request.and_then(|request| request["text"].as_str()).unwrap_or_default();
        let timer = log.report.timers.iter().find(|timer| timer.request == Some(event.seq));
        Some(Wait::Reply {
            node: node.into(),
            branch: log.branch(event.scope).cloned(),
            request: event.seq,
            text: text.into(),
            schema: request.and_then(|request| request.get("reply").cloned()),
            expires: timer.map(|timer| timer.after),
            at: timer.map(|timer| timer.due),
            left: timer.map(|timer| until(timer.due, now)),
        })
    };
    events.iter().filter_map(wait).collect()
}
