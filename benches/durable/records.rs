//! The appended records: the batch of an execution that emits one event, as an engine writes it.

use std::time::{Duration, SystemTime};

use workflow_core::prelude::*;
use workflow_core::scheduler::Cause;
use workflow_core::store::{Record, RecordedEvent, RunSummary, Write};
use workflow_core::{AnyEvent, ExecutionId, ScopeId, Seq};

/// How many records a batch has.
pub const RECORDS: u64 = 2;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Reserved {
    order: u64,
    warehouse: String,
}

/// The batch with this number, from 0, of its one event.
pub fn batch(number: u64) -> Write {
    let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789 + number);
    let (execution, scope) = (ExecutionId(number + 1), ScopeId::ROOT);
    let event = AnyEvent::new(Reserved { order: number, warehouse: "north-2".to_owned() });
    let succeeded = Record::ExecutionSucceeded {
        execution,
        step: "reserve".into(),
        scope,
        trigger: Seq(number + 1),
        fan_outs: Vec::new(),
        at,
    };
    let logged = Record::EventLogged {
        seq: Seq(number + 2),
        scope,
        cause: Cause::Execution(execution),
        event: RecordedEvent::new(event),
        origin: None,
        at,
    };
    // The summary of a run that goes on stays the same.
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    Write { records: vec![succeeded, logged], run: RunSummary::running("Orders", started) }
}
