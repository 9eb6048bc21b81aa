//! One run. A run is one task that owns its state, polls its steps and appends to its log.
//!
//! The modules, from the state outwards:
//!
//! - [`state`]: the pure part. A batch goes in; log, trace, timers and effects follow. Replay is here too.
//! - [`commit`] with [`records`], [`journal`] and [`pending`]: the way of a batch into the log and to the
//!   store.
//! - [`executor`] and [`in_flight`]: the futures of executions and preconditions. [`admission`]: whether one
//!   may begin.
//! - [`driver`] with [`begin`], [`executed`], [`command`], [`alarms`], [`children`] and [`rewind`]: the only
//!   part that sees all others.
//! - [`drive`] with [`slice`](mod@slice), [`resume`], [`release`], [`suspended`] and [`finish`]: the life of
//!   the task.
//! - [`shared`] with [`mailbox`], [`signals`] and [`handle`]: the part that a run shares with its handles.

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

/// The first event of a run that is about to start, and the channel that answers its sender.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) event: AnyEvent,
    pub(crate) done: Option<oneshot::Sender<Result<(), SendError>>>,
}

/// The state of a run, as handles, listings and reports show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// An execution runs or is scheduled, or an event has not been evaluated yet.
    Running,
    /// The run waits for a timer, a reply or an external event.
    ///
    /// Nothing happens before one of them arrives, and at least one would make a step run.
    Waiting,
    /// A stop event is in the log.
    Completed,
    /// A failure ended the run.
    ///
    /// An execution or a precondition failed and no step caught the failure, the log was full, or the store did
    /// not take what the run wrote.
    Failed,
    /// The run has not completed, and nothing can make a step run any more.
    ///
    /// Nothing ran or was scheduled, and nothing from outside could have made a step run. The engine detects
    /// this at once.
    Stalled,
    /// A cancel request ended the run.
    Cancelled,
    /// The run used up its active time.
    TimedOut,
}

impl RunStatus {
    /// Whether the run has ended: its log takes no more events.
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
