//! Runs that were let go of while they wait: who loads them when a timer is due, or somebody wants something of them.

use std::collections::BTreeSet;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures::StreamExt as _;
use futures::future::{BoxFuture, Either, select};
use futures::stream::{self, FuturesUnordered};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::known::{Absent, Found};
use super::resume::{Beginning, Returns};
use super::{Engine, Inner};
use crate::error::{ResumeError, RunError};
use crate::id::RunId;
use crate::run::{RunShared, give_up};
use crate::store::{Position, StoreError};

/// How many runs are loaded at a time: those whose timers are due, and those that are to be cancelled.
pub(super) const LOADED_AT_ONCE: usize = 32;

/// How long after a store could not be read it is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The reminders of runs that were let go of.
#[derive(Default)]
pub(super) struct Idle {
    reminders: Mutex<Reminders>,
    /// Tells that there is another reminder.
    changed: Notify,
}

#[derive(Default)]
struct Reminders {
    due: BTreeSet<(SystemTime, RunId)>,
    /// Whether a task waits for them.
    attended: bool,
    /// Where runs were driven last.
    runtime: Option<Handle>,
}

impl Idle {
    /// Sees to it that the run is loaded at that time. As long as there is a reminder, the engine is there.
    pub(super) fn remind(engine: &Arc<Inner>, at: SystemTime, run: &RunId) {
        let mut reminders = engine.idle.lock();
        reminders.due.insert((at, run.clone()));
        // An engine that ends loads its runs itself, if it needs them.
        let Some(_task) = engine.ending.enter() else { return };
        if reminders.attended {
            engine.idle.changed.notify_one();
        } else if let Some(runtime) = reminders.runtime.clone() {
            reminders.attended = true;
            let attended = Attended { engine: Arc::clone(engine), is_done: false };
            drop(reminders);
            runtime.spawn(engine.ending.track(attended.attend()));
        }
    }

    /// Runs are driven on this runtime.
    pub(super) fn note_runtime(&self) {
        if let Ok(runtime) = Handle::try_current() {
            self.lock().runtime = Some(runtime);
        }
    }

    pub(super) fn forget(&self, at: SystemTime, run: &RunId) {
        self.lock().due.remove(&(at, run.clone()));
        // With none left, whoever waits for them is done.
        self.changed.notify_one();
    }

    /// Where a run can be driven, seen from here.
    pub(super) fn runtime(&self) -> Option<Handle> {
        Handle::try_current().ok().or_else(|| self.lock().runtime.clone())
    }

    /// When the first is due. With none left and nothing being loaded, nobody waits for them any more.
    fn first(&self, is_loading: bool) -> Option<SystemTime> {
        let mut reminders = self.lock();
        let first = reminders.due.first().map(|(due, _)| *due);
        reminders.attended = is_loading || first.is_some();
        first
    }

    /// Those that are due then, at most so many.
    fn take_due(&self, now: SystemTime, at_most: usize) -> Vec<RunId> {
        let mut reminders = self.lock();
        let mut due = Vec::new();
        while due.len() < at_most
            && let Some(first) = reminders.due.pop_first()
        {
            if first.0 > now {
                reminders.due.insert(first);
                break;
            }
            due.push(first.1);
        }
        due
    }

    /// Nothing in it is ever left half-changed.
    fn lock(&self) -> MutexGuard<'_, Reminders> {
        self.reminders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that waits for reminders. If it is dropped with its runtime, the next reminder begins another.
struct Attended {
    engine: Arc<Inner>,
    /// Whether nobody waits any more, or somebody else does.
    is_done: bool,
}

impl Attended {
    async fn attend(mut self) {
        let inner = Arc::clone(&self.engine);
        let mut loads = FuturesUnordered::new();
        loop {
            let first = inner.idle.first(!loads.is_empty());
            if first.is_none() && loads.is_empty() {
                break;
            }
            if inner.ending.has_begun() {
                return;
            }
            let room = LOADED_AT_ONCE - loads.len();
            if let Some(first) = until_due(&inner, first.filter(|_| room > 0), &mut loads).await {
                let due = inner.idle.take_due(inner.common.clock.shown().max(first), room);
                loads.extend(due.into_iter().map(|run| load(Arc::clone(&inner), run)));
            }
        }
        self.is_done = true;
    }
}

/// What is being loaded: one that takes long holds up no other, as long as there is room.
type Loads = FuturesUnordered<BoxFuture<'static, ()>>;

/// Waits until then, which is answered, or until something else is the first or something was loaded.
async fn until_due(inner: &Inner, first: Option<SystemTime>, loads: &mut Loads) -> Option<SystemTime> {
    let due = pin!(async {
        match first {
            Some(first) => inner.common.clock.slept_until(first).await,
            None => pending().await,
        }
    });
    let changed = pin!(async {
        select(pin!(inner.idle.changed.notified()), pin!(inner.ending.begins())).await;
    });
    let loaded = pin!(async {
        if loads.next().await.is_none() {
            pending::<()>().await;
        }
    });
    match select(due, select(changed, loaded)).await {
        Either::Left(_) => first,
        Either::Right(_) => None,
    }
}

fn load(inner: Arc<Inner>, run: RunId) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let loaded = Engine { inner: Arc::clone(&inner) }.wake(&run, None).await;
        if let (Err(error), Some(again)) = (loaded, inner.common.clock.shown().checked_add(AGAIN_AFTER)) {
            tracing::warn!(%run, %error, "a run that waits in its store could not be loaded");
            Idle::remind(&inner, again, &run);
        }
    })
}

impl Drop for Attended {
    fn drop(&mut self) {
        if !self.is_done {
            self.engine.idle.lock().attended = false;
        }
    }
}

impl Engine {
    /// Loads a run that was let go of, to be cancelled if there is a reason; whether it goes on here.
    pub(super) async fn wake(&self, id: &RunId, unwanted: Option<&Arc<str>>) -> Result<bool, StoreError> {
        let _held = self.hold(id).await?;
        self.wake_held(id, unwanted).await
    }

    /// The same for whoever holds it.
    async fn wake_held(&self, id: &RunId, unwanted: Option<&Arc<str>>) -> Result<bool, StoreError> {
        match self.inner.known.find(id) {
            None => Ok(false),
            Some(Found::Driven(run)) => {
                let run = run.upgrade();
                if let (Some(run), Some(reason)) = (&run, unwanted) {
                    run.note_cancel(reason);
                }
                Ok(run.is_some_and(|run| !run.mailbox.is_closed()))
            }
            Some(Found::Released(absent)) => self.reload(id, &absent, unwanted).await,
        }
    }

    /// Loads a run for the note that was left for it.
    pub(super) async fn deliver(self, run: Arc<RunShared>) {
        let reason = run.cancel_note.left();
        // Another may have its id by now.
        while !run.status().is_ended() {
            let Err(error) = self.wake(&run.id, reason.as_ref()).await else { return };
            tracing::warn!(run = %run.id, %error, "a run that waits in its store could not be loaded");
            let again = pin!(self.inner.common.clock.sleep(AGAIN_AFTER));
            // An engine that ends loads its runs itself.
            if let Either::Right(_) = select(again, pin!(self.inner.ending.begins())).await {
                return;
            }
        }
    }

    async fn reload(
        &self,
        id: &RunId,
        absent: &Absent,
        unwanted: Option<&Arc<str>>,
    ) -> Result<bool, StoreError> {
        let records = self.history(id).await?;
        if Position::default().after(records.len()) != absent.end {
            self.lose(id, RunError::Conflict { run: id.clone() });
            return Ok(false);
        }
        let loaded = async {
            let beginning = Beginning::of(id, &records)?;
            let host = self.host_named(id, &beginning.workflow)?;
            self.stored(id, &host, beginning, &records, Returns { unwanted, absent: Some(absent) })
        };
        match loaded.await {
            Ok(_) => Ok(true),
            Err(ResumeError::Store(error)) => Err(error),
            // It was given up meanwhile.
            Err(ResumeError::ShutDown) => Ok(false),
            Err(error) => {
                let error = match error {
                    ResumeError::Incompatible { run, difference } => {
                        RunError::Incompatible { run, difference }
                    }
                    other => RunError::Store { source: StoreError::unavailable(other) },
                };
                self.lose(id, error);
                Ok(false)
            }
        }
    }

    /// A run that was let go of does not go on here, unless it was loaded or given up meanwhile. Its journal is left as
    /// it is.
    pub(super) fn lose(&self, id: &RunId, error: RunError) {
        let Some(released) = self.inner.known.forget_released(id) else { return };
        if let Some(due) = released.due {
            self.inner.idle.forget(due, id);
        }
        if let Some(run) = released.run.upgrade() {
            give_up(&run, error);
            run.mailbox.leave_home();
        }
    }

    /// Cancels every run.
    pub(super) async fn cancel_all(&self, reason: &Arc<str>) {
        let runs = stream::iter(self.inner.known.ids());
        runs.for_each_concurrent(LOADED_AT_ONCE, |run| async move { self.cancel(&run, reason).await }).await;
    }

    /// Cancels a run. One that cannot be loaded for that is left to whoever goes on with it later.
    async fn cancel(&self, id: &RunId, reason: &Arc<str>) {
        let woken = match self.hold(id).await {
            Ok(_held) => self.wake_held(id, Some(reason)).await,
            Err(error) => Err(error),
        };
        if let Err(source) = woken {
            self.lose(id, RunError::Store { source });
        }
    }
}
