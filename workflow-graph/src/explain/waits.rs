//! The events that a run waits for: replies, attempts, children, limits.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use workflow_core::Seq;
use workflow_core::report::{ExecutionOutcome, ExecutionTrace, LoggedEvent, WaitsFor};

use super::Wait;
use super::under_way::is_open;
use crate::VisitError;
use crate::part::Part;
use crate::trace::{EventName, Log, StepName};

pub(super) fn waits(log: &Log<'_>) -> Vec<Wait> {
    let mut found = replies(log);
    for execution in &log.report.trace {
        let failed = execution.attempts.last().zip(execution.next_attempt);
        let Some((failed, due)) = failed.filter(|_| execution.outcome == ExecutionOutcome::Running) else {
            continue;
        };
        found.push(Wait::Attempt {
            node: node(&execution.step),
            attempt: u32::try_from(execution.attempts.len()).unwrap_or(u32::MAX).saturating_add(1),
            error: VisitError {
                class: failed.class.to_string().into(),
                message: failed.error.as_str().into(),
            },
            due,
            at: log.report.log.first().map_or(SystemTime::UNIX_EPOCH, |first| first.at) + due,
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
    found.extend(
        deferred
            .map(|waiting| Wait::Turn { node: node(&waiting.step), limit: waiting.waits_for.to_string() }),
    );
    found
}

/// The node of a step.
fn node(step: &str) -> Arc<str> {
    StepName::of(step).map_or(step, |step| step.node).into()
}

/// The place of the item on which an execution works, in a node with `for_each`.
fn item(log: &Log<'_>, execution: &ExecutionTrace) -> Option<u32> {
    StepName::of(&execution.step).filter(|step| step.part == Part::Each)?;
    let item = log.event(log.branch_report(execution.scope)?.item)?;
    item.value.as_json()?.get("index")?.as_u64().and_then(|index| u32::try_from(index).ok())
}

/// Open requests: those without a reply or an expiry.
fn replies(log: &Log<'_>) -> Vec<Wait> {
    let events = &log.report.log;
    let closed: HashSet<Seq> = events.iter().filter_map(|event| event.reply_to.or(event.expired)).collect();
    let wait = |event: &LoggedEvent| {
        let EventName::Ask(node) = EventName::of(&event.event) else { return None };
        if closed.contains(&event.seq) || !is_open(log, event.scope) {
            return None;
        }
        let text = event.value.as_json().and_then(|request| request["text"].as_str()).unwrap_or_default();
        let timer = log.report.timers.iter().find(|timer| timer.request == Some(event.seq));
        Some(Wait::Reply {
            node: node.into(),
            branch: log.branch(event.scope).cloned(),
            request: event.seq,
            text: text.into(),
            expires: timer.map(|timer| timer.after),
            at: timer.map(|timer| timer.due),
        })
    };
    events.iter().filter_map(wait).collect()
}
