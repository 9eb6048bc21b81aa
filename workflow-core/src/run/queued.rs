//! Queued runs: runs that a client without an engine begins in a store, and that the engine which attaches to them
//! drives (S65).
//!
//! ```text
//! client   append at 0: RunStarted (queued), EventLogged          no owner, nothing runs
//! engine   attach ─▶ sources, start event ─▶ RunResumed, …       drives it: its first attempts
//!                             └─ unfit ────▶ RunEnded (failed)     nothing ran
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use super::deadline::{begun_by, check_deadline};
use super::options::{RareOptions, RunOptions};
use super::outside::unknown_event;
use crate::error::UnfitValue;
use crate::event::{EventCheck, Roles};
use crate::id::{RunStatus, ScopeId, Seq, ThreadId};
use crate::outcome::StartError;
use crate::report::Quality;
use crate::scheduler::Cause;
use crate::store::{JOURNAL_FORMAT, Record, RecordedEvent, RunSummary, Write};
use crate::table::{RecordedTable, TableShape};

/// The check of an event that a client queues: the engine that reads it may have a bound on its size too.
const CHECK: EventCheck = EventCheck { most_bytes: None, serialises: true };

impl Write {
    /// The write that begins a run without an engine, for clients of a store that engines share.
    ///
    /// [Append](crate::store::EventStore::append) it at position 0 of an id of your choice. Of several clients that begin
    /// the same id one succeeds, and the others get a [`Conflict`](crate::store::StoreError::Conflict). The run has no
    /// owner and waits until an engine [attaches](crate::Engine::attach_with) to it, or resumes all open runs of the
    /// store. Claims leave it alone.
    ///
    /// `table` is that of the workflow: `RecordedTable::new(&W::shape())`. Without the Rust type,
    /// [`Engine::hosted`](crate::Engine::hosted) has it, and so does the first record of every run. `event` is one of its start events. Of the options, the id and the
    /// [workflow](RunOptions::workflow) count for nothing. A run without a [timeout](RunOptions::timeout) has that of the
    /// engine which drives it. `at` is the time of the start.
    ///
    /// The other checks come when an engine attaches: a start event that is not of its type, and a configuration
    /// that does not fit, end the run as [failed](crate::RunStatus::Failed), with the path of the mistake. O(rows of the
    /// table + bytes of the event).
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use workflow_core::RunOptions;
    /// use workflow_core::prelude::*;
    /// use workflow_core::store::{EventStore, MemoryStore, Position, RecordedEvent, Write};
    /// # use std::sync::Arc;
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
    /// #     async fn greet(&self, greet: &Greet) -> Greeting { Greeting(format!("Hello, {}!", greet.name)) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Arc::new(MemoryStore::default());
    /// let engine = Engine::builder().workflow(Greeter).store(Arc::clone(&store)).build()?;
    /// let table = engine.hosted().remove(0).table;
    ///
    /// // The client has the store and the table, and no engine.
    /// let name = serde_json::value::to_raw_value(&serde_json::json!({ "name": "Ada" }))?;
    /// let event = RecordedEvent::from_json("Greet", 1, name);
    /// let write = Write::queued(&table, event, &RunOptions::new(), SystemTime::now())?;
    /// store.append(&"r-1".into(), Position(0), write).await?;
    ///
    /// // A worker takes a permit first, and then the run.
    /// let permit = engine.permit("Greeter").await?;
    /// let run = engine.attach_with("r-1", permit).await?;
    /// assert_eq!(run.outcome_any().await?.to_json()?, serde_json::json!("Hello, Ada!"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StartError::UnknownEvent`] with the events that fit. [`StartError::Unfit`] if the event's JSON cannot be read back, or
    /// its version is none that the table knows. [`StartError::NoTime`], [`StartError::TooMuchMetadata`],
    /// [`StartError::OriginTooLong`], [`StartError::Config`]. [`StartError::DeadlinePassed`] if the deadline is not after
    /// `at`. [`StartError::UnreadableTable`].
    #[expect(clippy::needless_pass_by_value, reason = "the write takes the event over")]
    pub fn queued(
        table: &RecordedTable,
        event: RecordedEvent,
        options: &RunOptions,
        at: SystemTime,
    ) -> Result<Self, StartError> {
        let unreadable =
            |error: serde_json::Error| StartError::UnreadableTable { problem: error.to_string() };
        let shape = table.shape().map_err(unreadable)?;
        let event = checked(&shape, &event)?;
        options.check()?;
        check_deadline(options.deadline_at(), || at)?;
        let origin = options.checked_origin()?;
        let mut configs = BTreeMap::new();
        for own in options.configs.values() {
            let layer = own.layer.clone().map_err(StartError::Config)?;
            configs.insert(own.type_name.to_owned(), layer);
        }
        let RareOptions { trace_parent, .. } = options.rare.as_deref().cloned().unwrap_or_default();
        let started = Record::RunStarted {
            format: JOURNAL_FORMAT,
            workflow: Arc::clone(&shape.workflow),
            table: table.clone(),
            thread: options.thread.clone().unwrap_or_else(ThreadId::generate),
            metadata: options.metadata.clone(),
            parent: None,
            awaited: false,
            private_thread: options.thread.is_none(),
            timeout: options.timeout,
            deadline: options.deadline_at(),
            configs,
            trace_parent,
            queued: true,
            at,
        };
        let run = RunSummary::begun_by(&started);
        let run = run.unwrap_or_else(|| RunSummary::running(Arc::clone(&shape.workflow), at));
        let (seq, scope, cause) = (Seq(1), ScopeId::ROOT, Cause::Outside);
        let origin = origin.map(Arc::unwrap_or_clone);
        let opened = Record::EventLogged { seq, scope, cause, event, origin, at };
        Ok(Self { records: vec![started, opened], run })
    }
}

/// The start event as its journal has it: as JSON with sorted keys.
fn checked(shape: &TableShape, event: &RecordedEvent) -> Result<RecordedEvent, StartError> {
    let is_taken = |name: &str| {
        shape
            .steps
            .iter()
            .flat_map(|step| &step.inputs)
            .any(|input| input.events.iter().any(|taken| **taken == *name))
    };
    let admits = |roles: Roles, name: &str| roles.is_start() && (roles.is_stop() || is_taken(name));
    let Some(known) = shape.event(event.name()).filter(|known| admits(known.roles, &known.name)) else {
        let fitting = shape.events.iter().filter(|known| admits(known.roles, &known.name));
        let (event, fitting) = unknown_event(event.name(), fitting.map(|known| &known.name));
        return Err(StartError::UnknownEvent { event, fitting });
    };
    let unfit = |problem: String| StartError::Unfit {
        event: Arc::clone(&known.name),
        path: String::new(),
        problem: UnfitValue::Read { problem },
    };
    let (found, latest) = (event.version(), known.version);
    if found == 0 || found > latest {
        return Err(unfit(format!("it has version {found}, and the table knows versions 1 to {latest}")));
    }
    if let Some(value) = event.value() {
        // As an engine checks it: JSON that was made without the check hides its changes.
        let mut value = value.clone();
        CHECK.check(&mut value, 1)?;
        let data = RecordedEvent::new(value).data().map_err(|error| unfit(error.to_string()))?;
        return Ok(RecordedEvent::from_json(event.name(), found, data));
    }
    let data = event.data().map_err(|error| unfit(error.to_string()))?;
    let data = CHECK.check_value(event.name(), &data)?.ok_or_else(|| unfit("it has no JSON".to_owned()))?;
    Ok(RecordedEvent::from_json(event.name(), found, data))
}

/// Whether the journal is that of a queued run which no process has driven.
pub(crate) fn is_queued(records: &[Record]) -> bool {
    matches!(records.first(), Some(Record::RunStarted { queued: true, .. }))
        && !records.iter().any(|record| matches!(record, Record::RunResumed { .. }))
}

/// The write that ends a queued run whose start does not fit, behind these records.
pub(crate) fn failed(records: &[Record], error: String, at: SystemTime) -> Option<Write> {
    let run = begun_by(records)?.ended(RunStatus::Failed);
    let run = RunSummary { ended: Some(at), quality: Some(Quality::Failed), ..run };
    let end = Record::RunEnded {
        status: RunStatus::Failed,
        error: Some(error),
        step: None,
        deadline: None,
        origin: None,
        at,
    };
    Some(Write { records: vec![end], run })
}
