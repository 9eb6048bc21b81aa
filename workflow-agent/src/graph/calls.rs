//! The calls of tools of a node's run with their inputs and outputs, read out of the run's log: no other journal holds them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use workflow_core::report::{LoggedEvent, RunReport};
use workflow_graph::{NodeContext, ToolCall};

use crate::agent::{Called, Work};
use crate::entry::{Entry, Reply, ToolDone};
use crate::flow::{ActCall, ReadCall};

/// The calls of a run that ended, in order. Where its log cannot be read any more, the tools alone.
pub(super) async fn of(context: &NodeContext, work: &Work) -> Vec<ToolCall> {
    let known = work.calls.iter().map(|Called { tool, ok }| ToolCall::new(Arc::clone(tool), *ok));
    match logged(context, work).await {
        // Checks see the same calls in either case.
        Some(calls) if is_same(&calls, work) => calls,
        _ => known.collect(),
    }
}

fn is_same(calls: &[ToolCall], work: &Work) -> bool {
    let known = work.calls.iter().map(|called| (&called.tool, called.ok));
    calls.iter().map(|call| (&call.tool, call.ok)).eq(known)
}

async fn logged(context: &NodeContext, work: &Work) -> Option<Vec<ToolCall>> {
    if work.calls.is_empty() {
        return None;
    }
    let engine = context.engine().ok()?;
    let report = crate::chain::report(&engine, &work.run, context.run()).await.ok()?;
    let edits = Edits::of(&report);
    let (mut calls, mut reply) = (Vec::new(), None);
    for entry in report.log.iter().filter_map(|logged| logged.value.downcast::<Entry>()) {
        match &*entry {
            Entry::Results { results } => {
                calls.extend(results.iter().map(|done| call(done, reply.as_ref(), &edits)));
            }
            Entry::Assistant(latest) => reply = Some(latest.clone()),
            _ => {}
        }
    }
    Some(calls)
}

/// Arguments that people edited before they approved the call, by its id.
struct Edits(BTreeMap<Arc<str>, Value>);

impl Edits {
    fn of(report: &RunReport) -> Self {
        Self(report.log.iter().filter_map(edited).collect())
    }
}

/// The call that an event begins with edited arguments. Runs of agents from before name no call here: they show the arguments
/// of the model.
fn edited(logged: &LoggedEvent) -> Option<(Arc<str>, Value)> {
    let (call, edited) = if let Some(begun) = logged.value.downcast::<ActCall>() {
        (Arc::clone(&begun.call), begun.edited.clone())
    } else {
        let begun = logged.value.downcast::<ReadCall>()?;
        (Arc::clone(&begun.call), begun.edited.clone())
    };
    edited.filter(|_| !call.is_empty()).map(|edited| (call, edited))
}

/// A call that ended, with the arguments that it ran with.
fn call(done: &ToolDone, reply: Option<&Reply>, edits: &Edits) -> ToolCall {
    let asked = || reply.and_then(|reply| reply.calls().find(|asked| *asked.id == *done.call));
    let edited = edits.0.get(&done.call).cloned();
    let input = edited.or_else(|| asked().map(|asked| asked.arguments.clone())).unwrap_or_default();
    let text = String::from(&*done.text);
    if done.ran && !done.is_error {
        ToolCall::returned(Arc::clone(&done.tool), input, text)
    } else {
        ToolCall::failed(Arc::clone(&done.tool), input, text)
    }
}
