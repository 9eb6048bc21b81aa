//! What opens a run.

use std::any::TypeId;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{RunShared, end_unloaded};
use crate::event::{AnyEvent, StartEvent};
use crate::json::{self, Misfit};
use crate::outcome::{RunError, SendError, StartError};
use crate::store::StoreError;
use crate::workflow::Workflow;

/// The workflow and the start event of a run, without their types.
pub(crate) enum Start {
    /// A workflow by its type. `workflow` is the type's own name.
    Typed { workflow: &'static str, workflow_type: TypeId, event: AnyEvent },
    /// A workflow and its start event by their names.
    Json(Box<JsonStart>),
}

/// A start by a caller that knows no types. The event is read once a run begins: a child that is found again needs none.
pub(crate) struct JsonStart {
    pub(crate) workflow: Arc<str>,
    pub(crate) event: Box<str>,
    /// The result of serialising the event's data.
    pub(crate) data: Result<Value, Misfit>,
}

impl Start {
    pub(crate) fn of<W: Workflow, S: StartEvent>(event: S) -> Self {
        let (workflow, workflow_type) = (W::TABLE.name(), TypeId::of::<W>());
        Self::Typed { workflow, workflow_type, event: AnyEvent::new(event) }
    }

    pub(crate) fn json(workflow: &str, event: &str, data: &impl Serialize) -> Self {
        let data = json::fit(data, usize::MAX);
        Self::Json(Box::new(JsonStart { workflow: workflow.into(), event: event.into(), data }))
    }
}

/// Waits until the store has the beginning of a run.
pub(crate) async fn begun(
    run: &RunShared,
    written: oneshot::Receiver<Result<(), SendError>>,
) -> Result<(), StartError> {
    if let Ok(Ok(())) = written.await {
        return Ok(());
    }
    match run.outcome().await {
        Err(RunError::Conflict { run }) => Err(StartError::DuplicateRun { run }),
        Err(RunError::Store { source }) => Err(StartError::Store(source)),
        Err(error @ RunError::Detached) => Err(StartError::Store(StoreError::unavailable(error))),
        // A caller cancelled the run at once, and its handle says so.
        _ => Ok(()),
    }
}

/// Ends a run that was registered and gets no task: its start was refused, or dropped. It may exist elsewhere under its id.
#[cold]
pub(crate) fn end_unbegun(run: &RunShared, refused: Option<&StartError>) {
    run.signals.mailbox.discard();
    let source = match refused {
        Some(StartError::Store(source)) => source.clone(),
        Some(error) => StoreError::unavailable(error.clone()),
        None => StoreError::unavailable(StartDropped),
    };
    end_unloaded(run, RunError::Store { source });
}

/// The caller has dropped the start of a run.
#[derive(Debug, thiserror::Error)]
#[error("its start was dropped")]
struct StartDropped;
