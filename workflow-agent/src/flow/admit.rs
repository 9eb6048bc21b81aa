//! Admission of calls: unknown tools, unfit arguments, approvals and their answers.

use serde_json::Value;
use workflow_core::prelude::*;

use crate::agent::{Agent, Handler, Offered, Terms};
use crate::approval::{ApproveTool, AskUser, Decision, OnRejection};
use crate::entry::{Entry, FailureClass, Reply, ToolCall, ToolDone};
use crate::failures;
use crate::flow::order::{Approved, Order, Place, Planned, PlannedCall};
use crate::flow::{ActCall, Dispatched, ReadCall, SpawnCall, Start};

/// The most calls of a reply that run.
pub(crate) const MOST_CALLS: usize = 64;
/// The names that an error result lists.
const LISTED: usize = 20;
/// The bytes of unreadable arguments that an error result quotes.
const FOUND: usize = 200;

/// What follows the check of a call.
enum Admission {
    /// It may run.
    Go,
    /// It has its result at once.
    Done(ToolDone),
    Approve(ApproveTool),
    Ask(AskUser),
}

/// Checks the calls of a reply, plans their order, asks people, and begins the first calls. A person sees all approvals of a
/// reply at once, also of calls that wait for others.
pub(super) async fn dispatch(
    terms: &Terms<'_>,
    reply: &Reply,
    entries: &List<Entry>,
    context: &RunContext,
) -> Result<Dispatched, StepError> {
    let calls: Vec<ToolCall> = reply.calls().take(MOST_CALLS).map(ToolCall::from).collect();
    let expires = terms.agent.inner.rules.approval_expires;
    let mut planned = Planned { calls: Vec::with_capacity(calls.len()) };
    let (mut approvals, mut questions, mut done) = (Vec::new(), Vec::new(), Vec::new());
    for call in &calls {
        let mut place = place(terms.agent, call);
        let admitted = admitted(terms, call, entries.iter(), context).await?;
        let ready = matches!(admitted, Admission::Go);
        match admitted {
            Admission::Go => {}
            Admission::Done(result) => {
                place = Place::Beside;
                done.push(result);
            }
            Admission::Approve(ask) => approvals.push(ask.expires_in(expires)),
            Admission::Ask(ask) => questions.push(ask.expires_in(expires)),
        }
        planned.calls.push(PlannedCall { call: std::sync::Arc::clone(&call.call), place, ready });
    }
    let (_, first) = Order::begin(&planned);
    let start = first.iter().filter_map(|first| calls.iter().find(|call| call.call == first.call));
    let start = start.map(|call| start_of(terms.agent, call, None)).collect();
    Ok((calls, planned, approvals, questions, start, done))
}

/// The place of a call: sub-agents, questions and independent tools are beside the others.
fn place(agent: &Agent, call: &ToolCall) -> Place {
    match agent.inner.tools.0.get(&*call.tool) {
        Some(Offered { handler: Handler::Spawn | Handler::AskUser, .. }) | None => Place::Beside,
        Some(offered) if offered.spec.is_independent() => Place::Beside,
        Some(offered) if offered.spec.is_read_only() => Place::Reads,
        Some(_) => Place::Acts,
    }
}

/// The call with this id.
pub(super) fn call_of<'a>(calls: &'a List<ToolCall>, id: &str) -> Result<&'a ToolCall, StepError> {
    let found = (0..calls.len()).rev().filter_map(|index| calls.get(index)).find(|call| *call.call == *id);
    found.ok_or_else(|| StepError::permanent(format!("the log has no call `{id}`")))
}

/// Checks a call.
async fn admitted(
    terms: &Terms<'_>,
    call: &ToolCall,
    entries: impl Iterator<Item = &Entry>,
    context: &RunContext,
) -> Result<Admission, StepError> {
    let offered = match offered(terms, call, entries) {
        Ok(offered) => offered,
        Err(text) => return Ok(Admission::Done(ToolDone::error(call, text))),
    };
    if let Err(text) = fit(offered, &call.arguments).await {
        return Ok(Admission::Done(ToolDone::error(call, text)));
    }
    if let Handler::AskUser = offered.handler {
        let question = call.arguments.get("question").and_then(Value::as_str).unwrap_or_default().to_owned();
        return Ok(Admission::Ask(AskUser { call: std::sync::Arc::clone(&call.call), question }));
    }
    let needed = match needs_approval(offered, &call.arguments) {
        Ok(needed) => needed,
        Err(panic) => {
            let text = format!("the call was not run: its approval could not be decided: {panic}");
            let text = terms.agent.inner.caller.redactor.text(&text).into_owned();
            return Ok(Admission::Done(ToolDone::error(call, text)));
        }
    };
    if needed && !is_granted(context, &call.tool).await? {
        return Ok(Admission::Approve(ApproveTool {
            call: std::sync::Arc::clone(&call.call),
            tool: std::sync::Arc::clone(&call.tool),
            arguments: call.arguments.clone(),
        }));
    }
    Ok(Admission::Go)
}

fn needs_approval(offered: &Offered, arguments: &Value) -> Result<bool, String> {
    let needed = std::panic::AssertUnwindSafe(|| offered.spec.needs_approval(arguments));
    std::panic::catch_unwind(needed).map_err(|panic| failures::text_of(&*panic).to_owned())
}

/// The tool of a call, or the text of the result of an unknown or denied one.
fn offered<'a, 'e>(
    terms: &Terms<'a>,
    call: &ToolCall,
    entries: impl Iterator<Item = &'e Entry>,
) -> Result<&'a Offered, String> {
    let agent = terms.agent;
    let entered =
        if agent.inner.phases.is_empty() { None } else { entries.filter_map(Entry::entered).last() };
    let phase = terms.phase(entered).map(|(_, phase)| phase);
    let found = agent.inner.tools.0.get(&*call.tool).filter(|_| terms.allows(&call.tool, phase));
    found.ok_or_else(|| {
        let known = agent.inner.tools.0.keys().filter(|name| terms.allows(name, phase));
        let known: Vec<&str> = known.take(LISTED).map(|name| &**name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let name = crate::tool::head(&call.tool, 100);
        format!("there is no tool `{name}` here; allowed tools: {known}")
    })
}

/// The text of the result of a call whose arguments do not fit.
async fn fit(offered: &Offered, arguments: &Value) -> Result<(), String> {
    let error = |problem: &dyn std::fmt::Display| {
        format!("the arguments do not fit, and the call was not run: {problem}")
    };
    match arguments {
        Value::Object(_) => offered.schema.check_aside(arguments).await.map_err(|misfit| error(&misfit)),
        // A model's text that is no JSON, or the note on arguments that were too long.
        Value::String(text) => Err(match serde_json::from_str::<Value>(text) {
            Err(problem) => {
                let found = crate::tool::head(text, FOUND);
                error(&format!("a JSON object is expected ({problem}); found: {found}"))
            }
            Ok(_) => error(&format!("a JSON object is expected; found: {}", crate::tool::head(text, FOUND))),
        }),
        other => {
            let found = other.to_string();
            Err(error(&format!("a JSON object is expected; found: {}", crate::tool::head(&found, FOUND))))
        }
    }
}

/// The event that begins a call.
pub(super) fn start_of(agent: &Agent, call: &ToolCall, edited: Option<Value>) -> Start {
    let id = std::sync::Arc::clone(&call.call);
    match agent.inner.tools.0.get(&*call.tool) {
        Some(Offered { handler: Handler::Spawn, .. }) => Start::Spawn(SpawnCall { call: id }),
        Some(Offered { spec, .. }) if spec.is_read_only() => Start::Read(ReadCall { call: id, edited }),
        // Of a tool that is no longer there, the call says so.
        _ => Start::Act(ActCall { call: id, edited }),
    }
}

fn grant(tool: &str) -> String {
    format!("agent/approved/{tool}")
}

async fn is_granted(context: &RunContext, tool: &str) -> Result<bool, StepError> {
    let granted = context.get::<bool>(&grant(tool)).await.map_err(failures::of_context)?;
    Ok(granted.unwrap_or(false))
}

/// The approval, or the result, that follows a person's decision.
pub(super) async fn decided(
    agent: &Agent,
    call: &ToolCall,
    decision: &Decision,
    context: &RunContext,
) -> Result<(Option<Approved>, Option<ToolDone>), StepError> {
    let approved = |edited| (Some(Approved { call: std::sync::Arc::clone(&call.call), edited }), None);
    let Some(offered) = agent.inner.tools.0.get(&*call.tool) else {
        return Ok((None, Some(ToolDone::error(call, "the tool is no longer there"))));
    };
    Ok(match decision {
        Decision::Approve => approved(None),
        Decision::ApproveAll => {
            context.set(&grant(&call.tool), true).await.map_err(failures::of_context)?;
            approved(None)
        }
        Decision::Reject { reason } => {
            let reason = reason.as_deref().filter(|reason| !reason.trim().is_empty());
            let text = reason.map_or_else(
                || "action rejected by user".to_owned(),
                |reason| format!("action rejected by user: {reason}"),
            );
            (None, Some(rejected(agent, call, &text)))
        }
        Decision::Edit { arguments } => {
            let mut arguments = arguments.clone();
            agent.inner.caller.redactor.value(&mut arguments);
            arguments.sort_all_objects();
            match checked(offered, &arguments).await {
                Ok(()) => approved(Some(arguments)),
                Err(text) => (None, Some(ToolDone::error(call, text))),
            }
        }
    })
}

/// Checks edited arguments, their size included.
async fn checked(offered: &Offered, arguments: &Value) -> Result<(), String> {
    if crate::model::json_bytes(arguments) > super::think::ARGUMENTS {
        let limit = super::think::ARGUMENTS;
        return Err(format!("the edited arguments exceed {limit} bytes; the call was not run"));
    }
    fit(offered, arguments).await
}

/// The problem of edited arguments, for the person who edits.
pub(crate) fn edit_problem(agent: &Agent, call: &ApproveTool, arguments: &Value) -> Option<(String, String)> {
    let offered = agent.inner.tools.0.get(&*call.tool)?;
    if crate::model::json_bytes(arguments) > super::think::ARGUMENTS {
        return Some((String::new(), format!("they exceed {} bytes", super::think::ARGUMENTS)));
    }
    if !arguments.is_object() {
        return Some((String::new(), "they are no JSON object".to_owned()));
    }
    let misfit = offered.schema.check(arguments).err()?;
    Some((misfit.pointer, misfit.problem))
}

/// The result of a call that nobody approved in time.
pub(super) fn unanswered(agent: &Agent, call: &ToolCall) -> ToolDone {
    rejected(agent, call, "action rejected: nobody approved it in time, and the request expired")
}

fn rejected(agent: &Agent, call: &ToolCall, text: &str) -> ToolDone {
    let text = crate::tool::cut(&agent.inner.caller.redactor.text(text), crate::tool::OUTPUT).into_owned();
    let done = ToolDone::error(call, text);
    match agent.inner.rules.on_rejection {
        OnRejection::Continue => done,
        OnRejection::Stop => done.ending_run(FailureClass::Rejected),
    }
}
