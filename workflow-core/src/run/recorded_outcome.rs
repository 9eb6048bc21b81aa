//! The outcome of a run from the last records of its journal, for programs that know the workflow's type and drive no
//! engine. It owns how the end of a journal is read; it never replays.

use std::sync::Arc;

use super::handle::output_of;
use super::host::value_of;
use crate::error::StepError;
use crate::event::AnyEvent;
use crate::id::RunStatus;
use crate::outcome::RunError;
use crate::store::{Record, RecordedEvent};
use crate::table::DependencyTable;
use crate::workflow::Workflow;

/// The output of a run that has ended, from the last records of its journal.
///
/// The records are those from the run's stop event to its end, or any more of the journal before them; the whole journal
/// will do. Only the stop event is decoded, as an engine that hosts `W` would decode it. The journal's workflow is not
/// compared with `W`. O(records + steps of `W`).
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_core::store::MemoryStore;
/// use workflow_core::{RunOptions, outcome_of};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet { name: String }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeting(String);
/// # struct Greeter;
/// # #[workflow]
/// # impl Greeter {
/// #     #[step]
/// #     async fn greet(&self, greet: &Greet) -> Greeting {
/// #         Greeting(format!("Hello, {}!", greet.name))
/// #     }
/// # }
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Greeter).store(MemoryStore::default()).build()?;
/// let options = RunOptions::new().id("r-1");
/// engine.start_with::<Greeter>(Greet { name: "Ada".into() }, options).await?.outcome().await?;
///
/// let records = engine.history(&"r-1".into()).await?;
/// assert_eq!(outcome_of::<Greeter>(&records)?, Greeting("Hello, Ada!".into()));
/// assert!(matches!(outcome_of::<Greeter>(&records[..2]), Err(RunError::NotEnded)));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`RunError::NotEnded`] if the last record ends no run. [`RunError::Cancelled`], [`RunError::DeadlinePassed`],
/// [`RunError::PreconditionFailed`] and otherwise [`RunError::Past`] for a run without an output, with the text of the last failure among the records.
/// [`RunError::UnexpectedStop`] if the stop event is none of `W`, [`RunError::Unreadable`] if it does not fit its type.
pub fn outcome_of<W: Workflow>(records: &[Record]) -> Result<W::Output, RunError> {
    let Some(Record::RunEnded { status, error, step, deadline, .. }) = records.last() else {
        return Err(RunError::NotEnded);
    };
    let table = DependencyTable::for_drawing(W::TABLE);
    if *status == RunStatus::Completed {
        return output_of::<W>(&stop_event(&table, records, W::TABLE.name())?);
    }
    let reason: Arc<str> = error.as_deref().unwrap_or_default().into();
    if let Some(deadline) = *deadline {
        return Err(RunError::DeadlinePassed { deadline });
    }
    Err(match (step, status) {
        (Some(step), _) => table.precondition_error(step, &StepError::permanent(reason.to_string())),
        (None, RunStatus::Cancelled) => RunError::Cancelled { reason },
        (None, RunStatus::Failed) if reason.is_empty() => {
            RunError::Past { status: RunStatus::Failed, error: last_failure(records).unwrap_or(reason) }
        }
        (None, status) => RunError::Past { status: *status, error: reason },
    })
}

/// The event that ended the run: the first stop event, since a run ends with it.
fn stop_event(
    table: &DependencyTable,
    records: &[Record],
    workflow: &'static str,
) -> Result<AnyEvent, RunError> {
    let logged = || {
        records.iter().filter_map(|record| match record {
            Record::EventLogged { event, .. } => Some(event),
            _ => None,
        })
    };
    let stop = logged().find_map(|event| {
        let index = table.event_named(event.name())?;
        table.event(index).roles.is_stop().then_some((event, index))
    });
    let Some((recorded, index)) = stop else {
        let event = logged().next_back().map_or("", RecordedEvent::name).into();
        return Err(RunError::UnexpectedStop { event, workflow });
    };
    value_of(table, recorded, index, None).map_err(|problem| RunError::Unreadable {
        event: recorded.name().into(),
        problem: problem.to_string(),
    })
}

/// The text of the last failure that no retry followed, since the run was redriven if it was.
fn last_failure(records: &[Record]) -> Option<Arc<str>> {
    let since = records.iter().rev().take_while(|record| !matches!(record, Record::RunRedriven { .. }));
    since.into_iter().find_map(|record| match record {
        Record::ExecutionFailed { execution, step, class, error, .. } => {
            Some(format!("step `{step}` failed ({execution}, {class}): {error}").into())
        }
        _ => None,
    })
}
