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

/// The first event of a run that is about to start, and the channel that answers its sender.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) event: AnyEvent,
    pub(crate) done: Option<oneshot::Sender<Result<(), SendError>>>,
}
