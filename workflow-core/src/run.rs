//! Runs: one run is one task that owns its state. It performs the scheduler's actions and feeds facts back;
//! it is the only place that polls steps and keeps the log.

use tokio::sync::oneshot;

use crate::event::AnyEvent;
use crate::outcome::SendError;

mod admission;
mod alarms;
#[cfg(test)]
mod alone;
mod attempts;
mod begin;
mod cancel_guard;
mod changed;
mod check;
mod child_records;
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
mod resume;
mod returned;
mod rewind;
mod seat;
mod services;
mod settings;
mod shared;
mod signals;
mod slice;
mod spans;
mod start;
mod state;
mod status_cell;
mod suspended;
mod telemetry;
mod timeout;
mod view;
mod waiting;

pub use cancel_guard::CancelGuard;
pub use children::Children;
pub use handle::RunHandle;
pub use options::RunOptions;
pub use recorded::RecordedRun;

pub(crate) use check::ReplayFailures;
pub(crate) use children::{Birth, Family, HostsRuns, Reunion, Spawned};
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
pub(crate) use start::{Start, begun};
pub(crate) use status_cell::StatusCell;

/// What a run begins with, and who wants to know that it was taken.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) event: AnyEvent,
    pub(crate) done: Option<oneshot::Sender<Result<(), SendError>>>,
}
