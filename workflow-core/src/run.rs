//! Runs: one run is one task that owns its state. It performs the scheduler's actions and feeds facts back;
//! it is the only place that polls steps and keeps the log.

use std::fmt;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::error::SendError;
use crate::event::AnyEvent;

mod admission;
mod alarms;
#[cfg(test)]
mod alone;
mod attempts;
mod begin;
mod cancel_guard;
mod changed;
mod check;
mod child_store_failure;
mod children;
mod clock;
mod command;
mod commit;
mod common;
mod contexts;
mod drive;
mod driver;
mod ending;
mod executed;
mod executor;
mod extras;
mod fence;
mod finish;
mod handle;
mod held_state;
mod host;
mod in_flight;
mod journal;
mod leave;
mod mailbox;
mod meter;
mod options;
mod pending;
mod places;
mod recorded;
mod records;
mod release;
mod report;
mod request;
mod resume;
mod returned;
mod rewind;
mod seat;
mod settings;
mod shared;
mod signals;
mod slice;
mod spans;
mod state;
mod status_cell;
mod suspended;
mod telemetry;
mod timeline;
mod timeout;
mod timers;
mod view;
mod waiting;

pub use cancel_guard::CancelGuard;
pub use handle::RunHandle;
pub use options::RunOptions;
pub use recorded::RecordedRun;
pub use report::{
    BoundInput, BranchReport, ChildReport, ExecutionOutcome, ExecutionTrace, LoggedEvent, Quality, RunReport,
    StepReport, Violation,
};
pub use request::{OpenRequest, RequestId};
pub use timeline::Timeline;
pub use timers::PendingTimer;
pub use waiting::{WaitingExecution, WaitsFor};

pub(crate) use check::ReplayFailures;
pub(crate) use common::Common;
pub(crate) use contexts::{Contexts, PrivateThread};
pub(crate) use drive::{Run, RunLimits};
pub(crate) use extras::RunExtras;
pub(crate) use finish::Finished;
pub(crate) use handle::{Command, output_of};
pub(crate) use host::{Host, Unhosted};
pub(crate) use in_flight::Dropped;
pub(crate) use journal::Journal;
pub(crate) use mailbox::Mailbox;
pub(crate) use meter::describe as describe_metrics;
pub(crate) use places::{Bounded, Gate, Place, Places, Queue};
pub(crate) use release::{Held, Registration, Released, give_up};
pub(crate) use resume::Derived;
pub(crate) use settings::RunSettings;
pub(crate) use shared::RunShared;
pub(crate) use signals::Signals;
pub(crate) use spans::Ended;
pub(crate) use status_cell::StatusCell;

/// What a run begins with, and who wants to know that it was taken.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) event: AnyEvent,
    pub(crate) done: Option<oneshot::Sender<Result<(), SendError>>>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// Something runs, is scheduled or is left to evaluate.
    Running,
    /// Nothing can happen before a timer fires, or a reply or an external event arrives of which at least one would
    /// make a step run.
    Waiting,
    /// A stop event is in the log.
    Completed,
    /// An execution or a precondition failed, and nothing took the failure, the log was full, or the
    /// store did not take what the run wrote.
    Failed,
    /// Nothing ran, nothing was scheduled, and nothing that could have arrived from outside would have made a
    /// step run. It is noticed at once.
    Stalled,
    /// It was cancelled.
    Cancelled,
    /// It was active for as long as it may.
    TimedOut,
}

impl RunStatus {
    /// Whether the run has ended: nothing enters its log any more.
    pub const fn is_ended(self) -> bool {
        !matches!(self, Self::Running | Self::Waiting)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stalled => "stalled",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed out",
        })
    }
}
