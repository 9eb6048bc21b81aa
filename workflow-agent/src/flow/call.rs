//! Calls of tools: time, panics, interruptions, and the bound of their output.

use std::sync::Arc;

use serde_json::Value;
use tracing::Instrument as _;
use workflow_core::prelude::*;
use workflow_core::{Cancellation, ErrorClass, ExecutionId, StepFailed};

use crate::agent::{Agent, Handler};
use crate::entry::{FailureClass, ToolCall, ToolDone};
use crate::failures;
use crate::flow::{ActCall, ReadCall, SpawnCall};
use crate::tool::{self, ToolContext, ToolError, ToolFailure, ToolOutput};

/// Runs a tool.
pub(super) async fn run(
    agent: &Agent,
    call: &ToolCall,
    edited: Option<&Value>,
    display: &Display,
    cancellation: &Cancellation,
    info: &RunInfo,
) -> Result<ToolDone, StepError> {
    let offered = agent.inner.tools.0.get(&*call.tool);
    let Some((spec, Handler::Tool(tool))) = offered.map(|offered| (&offered.spec, &offered.handler)) else {
        return Ok(ToolDone::error(call, "the tool is no longer there"));
    };
    if info.may_have_begun() && !spec.is_repeatable() {
        return Ok(interrupted(call));
    }
    let context = ToolContext {
        agent: Arc::clone(&agent.inner.name),
        run: info.run().clone(),
        thread: info.thread().clone(),
        call: Arc::clone(&call.call),
        idempotency_key: info.idempotency_key().into(),
        is_repeated: info.may_have_begun() || info.attempt() > 1,
        display: display.clone(),
        cancellation: cancellation.clone(),
    };
    let arguments = edited.unwrap_or(&call.arguments).clone();
    let span = span(agent, call, &arguments);
    let calling = async { tool.call(arguments, context).await };
    let called =
        tokio::time::timeout(spec.longest(), failures::guarded(calling)).instrument(span.clone()).await;
    let result = match called {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(ToolError::new(format!("the tool failed: {panic}"))),
        Err(_) => {
            Err(ToolError::new(format!("the call took longer than {:?} and was stopped", spec.longest())))
        }
    };
    settled(agent, call, spec.is_repeatable(), result, &span)
}

pub(super) fn interrupted(call: &ToolCall) -> ToolDone {
    let text = "the call was interrupted, and may have happened: find out before you repeat it";
    ToolDone { ran: true, ..ToolDone::error(call, text) }
}

fn span(agent: &Agent, call: &ToolCall, arguments: &Value) -> tracing::Span {
    let span = tracing::info_span!(
        "execute_tool",
        otel.name = format!("execute_tool {}", call.tool),
        otel.kind = "internal",
        otel.status_code = tracing::field::Empty,
        error.r#type = tracing::field::Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = &*call.tool,
        gen_ai.tool.call.id = &*call.call,
        gen_ai.tool.call.arguments = tracing::field::Empty,
        gen_ai.tool.call.result = tracing::field::Empty,
    );
    if agent.inner.caller.contents {
        span.record("gen_ai.tool.call.arguments", arguments.to_string().as_str());
    }
    span
}

/// The result of a call that returned.
fn settled(
    agent: &Agent,
    call: &ToolCall,
    is_repeatable: bool,
    result: Result<ToolOutput, ToolError>,
    span: &tracing::Span,
) -> Result<ToolDone, StepError> {
    let done = match result {
        Ok(done) => output(agent, call, &done.text, done.is_error),
        Err(error) => {
            span.record("otel.status_code", "ERROR");
            span.record("error.type", "tool");
            let failed = output(agent, call, &error.text(), true);
            match error.kind() {
                ToolFailure::Transient if is_repeatable => {
                    return Err(StepError::transient(failed.text.to_string()));
                }
                ToolFailure::Told | ToolFailure::Transient => failed,
                ToolFailure::Fatal => failed.ending_run(FailureClass::Tool),
            }
        }
    };
    if agent.inner.caller.contents {
        span.record("gen_ai.tool.call.result", &*done.text);
    }
    Ok(ToolDone { ran: true, ..done })
}

/// A result without secrets, and within its bound.
pub(super) fn output(agent: &Agent, call: &ToolCall, text: &str, is_error: bool) -> ToolDone {
    let text = agent.inner.caller.redactor.text(text);
    ToolDone::new(call, &*tool::cut(&text, tool::OUTPUT), is_error)
}

/// The call that an execution began with.
pub(super) async fn begun_by(
    execution: ExecutionId,
    info: &RunInfo,
    engine: &Engine,
) -> Result<Arc<str>, StepError> {
    let lost = || StepError::transient(format!("the call of {execution} cannot be found"));
    let run = engine.find(info.run()).ok_or_else(lost)?;
    let report = run.report_so_far().await.map_err(StepError::transient)?;
    let trigger =
        report.trace.iter().find(|traced| traced.execution == execution).map(|traced| traced.trigger);
    let logged = report.log.iter().find(|logged| Some(logged.seq) == trigger).ok_or_else(lost)?;
    let begun = logged.value.downcast::<ReadCall>().map(|begun| Arc::clone(&begun.call));
    let begun = begun.or_else(|| logged.value.downcast::<ActCall>().map(|begun| Arc::clone(&begun.call)));
    let begun = begun.or_else(|| logged.value.downcast::<SpawnCall>().map(|begun| Arc::clone(&begun.call)));
    begun.ok_or_else(lost)
}

/// The result of a call whose step failed for good.
pub(super) fn failed(agent: &Agent, call: &ToolCall, failed: &StepFailed) -> ToolDone {
    let text = match failed.class {
        ErrorClass::Interrupted | ErrorClass::InDoubt => {
            "the call was interrupted too often, and may have happened".to_owned()
        }
        _ if failed.attempts > 1 => format!("{} (after {} attempts)", failed.error, failed.attempts),
        _ => failed.error.to_string(),
    };
    ToolDone { ran: true, ..output(agent, call, &text, true) }
}
