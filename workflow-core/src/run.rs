//! One run. A run is one task that owns its state, polls its steps and appends to its log.
//!
//! The modules, from the state outwards:
//!
//! - [`state`]: the pure part. A batch goes in; log, trace, timers and effects follow. Replay is here too.
//! - [`commit`] with [`records`], [`journal`] and [`pending`]: the way of a batch into the log and to the
//!   store.
//! - [`executor`] and [`in_flight`]: the futures of executions and preconditions. [`admission`]: whether one
//!   may begin.
//! - [`driver`] with [`execute`], [`alarms`], [`children`] and [`rewind`]: the only
//!   part that sees all others.
//! - [`asked`]: the news of requests for viewers.
//! - [`drive`] with [`resume`], [`unload`], [`suspended`] and [`finish`]: the life of
//!   the task.
//! - [`shared`] with [`mailbox`], [`signals`] and [`handle`]: the part that a run shares with its handles.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::event::AnyEvent;
use crate::id::Origin;
use crate::outcome::SendError;

mod admission;
mod alarms;
mod any_run;
mod asked;
#[cfg(test)]
mod bare_run;
mod before_attempt;
mod retry_decision;
mod cancel_guard;
mod deadline;
mod compatibility;
mod check;
mod child_records;
mod child_store_failure;
mod children;
mod clean_up;
mod clock;
mod commands;
mod commit;
mod engine_parts;
mod contexts;
mod drive;
mod driver;
mod earlier_tables;
mod ending;
mod execute;
mod executor;
mod extras;
mod lease_guard;
mod limited;
mod finish;
mod handle;
mod state_box;
mod host;
mod in_flight;
mod inbox;
mod journal;
mod json_outputs;
mod detach;
mod lingering;
mod mailbox;
mod meter;
mod options;
mod outside;
mod pause;
mod pending;
mod permits;
mod questions;
mod queued;
mod recorded;
mod recorded_outcome;
mod redriven;
mod records;
mod unload;
mod resume;
mod returned;
mod rewind;
mod own_permit;
mod services;
mod settings;
mod shared;
mod signals;
mod spans;
mod start;
mod state;
mod status_cell;
mod suspended;
mod telemetry;
mod timeout;
mod turns;
mod view;
mod waiting;
mod weight;

pub use any_run::AnyRun;
pub use cancel_guard::CancelGuard;
pub use children::Children;
pub use handle::RunHandle;
pub use options::RunOptions;
pub use recorded::RecordedRun;
pub use recorded_outcome::outcome_of;
pub use redriven::Redrive;

pub(crate) use any_run::Command;
pub(crate) use check::ReplayFailures;
pub(crate) use children::{ChildRegistry, HostsRuns, ParentLink, Reattach, Spawned, Unrecorded};
pub(crate) use contexts::{Contexts, PrivateThread};
pub(crate) use deadline::{check_deadline, deadline_of};
pub(crate) use detach::WindDown;
pub(crate) use drive::{Run, RunLimits};
pub(crate) use engine_parts::EngineParts;
pub(crate) use extras::RunExtras;
pub(crate) use finish::Finished;
pub(crate) use handle::output_of;
pub(crate) use host::{Host, UnhostedWorkflow};
pub(crate) use in_flight::DropSignal;
pub(crate) use inbox::InboxGate;
pub(crate) use journal::Journal;
pub(crate) use lingering::Lingering;
pub(crate) use mailbox::Mailbox;
pub(crate) use meter::describe as describe_metrics;
pub(crate) use options::RunLayer;
pub(crate) use outside::Entrance;
pub(crate) use permits::{LimitOf, Permit, PermitQueue, PermitRequest, RunLimit};
pub(crate) use queued::{failed, is_queued};
pub(crate) use resume::Derived;
pub(crate) use settings::RunSettings;
pub(crate) use shared::RunShared;
pub(crate) use signals::Signals;
pub(crate) use start::{Start, begun, end_unbegun};
pub(crate) use status_cell::StatusCell;
pub(crate) use turns::Turns;
pub(crate) use unload::{Registration, RunLockGuard, UnloadedRun, end_blocked, end_unloaded};
pub(crate) use view::summary_of_ended;

/// The first event of a run that is about to start, and the channel that answers its sender.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) event: AnyEvent,
    pub(crate) origin: Option<Arc<Origin>>,
    pub(crate) done: Option<oneshot::Sender<Result<(), SendError>>>,
}
