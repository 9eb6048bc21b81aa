//! What opens a run.

use std::any::TypeId;

use tokio::sync::oneshot;

use super::RunShared;
use crate::event::{AnyEvent, StartEvent};
use crate::outcome::{RunError, SendError, StartError};
use crate::store::StoreError;
use crate::workflow::Workflow;

/// The workflow and the start event of a run, without their types.
pub(crate) struct Start {
    pub(crate) workflow: &'static str,
    pub(crate) workflow_type: TypeId,
    pub(crate) event: AnyEvent,
}

impl Start {
    pub(crate) fn of<W: Workflow, S: StartEvent>(event: S) -> Self {
        let (workflow, workflow_type) = (W::TABLE.name(), TypeId::of::<W>());
        Self { workflow, workflow_type, event: AnyEvent::new(event) }
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
