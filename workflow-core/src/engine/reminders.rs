//! The timers of unloaded runs. One task waits for all of them, and loads each run when its first timer is due.
//!
//! ```text
//! unload(run, due) ─▶ due: BTreeSet<(time, run)> ─▶ attending task ─▶ wake(run)
//!                                                     (≤ 32 loads at once; a failed load is due again 5 s later)
//! ```
//!
//! Invariant: at most one task attends to `due`. A new reminder spawns it if there is none and a runtime is known.

use std::collections::BTreeSet;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Inner;
use super::ending::Ending;
use crate::id::RunId;
use crate::panics::locked;

/// How many runs the engine loads, cancels or detaches at a time.
pub(super) const MAX_CONCURRENT_LOADS: usize = 32;

/// The delay after which the engine retries to load a run from an unreadable store.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(5);

/// The due times of unloaded runs.
#[derive(Default)]
pub(super) struct Reminders {
    state: Mutex<State>,
    /// Notified when the first due time may have changed.
    changed: Notify,
}

#[derive(Default)]
struct State {
    due: BTreeSet<(SystemTime, RunId)>,
    /// Whether a task attends to the due times.
    attended: bool,
    /// The runtime that drove a run most recently.
    runtime: Option<Handle>,
}

impl Reminders {
    /// Adds a reminder. Returns where to spawn the task if none attends to reminders, and `None` while the engine ends:
    /// it loads the runs that it needs itself.
    fn add(&self, at: SystemTime, run: &RunId, ending: &Ending) -> Option<(Handle, TaskTrackerToken)> {
        let mut state = locked(&self.state);
        state.due.insert((at, run.clone()));
        let task = ending.enter()?;
        if state.attended {
            self.changed.notify_one();
            return None;
        }
        let runtime = state.runtime.clone()?;
        state.attended = true;
        Some((runtime, task))
    }

    /// Notes that the current runtime drives runs.
    pub(super) fn note_runtime(&self) {
        if let Ok(runtime) = Handle::try_current() {
            locked(&self.state).runtime = Some(runtime);
        }
    }

    /// Removes a reminder, because the run was loaded or given up.
    pub(super) fn forget(&self, at: SystemTime, run: &RunId) {
        locked(&self.state).due.remove(&(at, run.clone()));
        // The task ends when no reminder is left.
        self.changed.notify_one();
    }

    /// The runtime for a run that is loaded here: the current one, else the latest that drove a run.
    pub(super) fn runtime(&self) -> Option<Handle> {
        Handle::try_current().ok().or_else(|| locked(&self.state).runtime.clone())
    }

    /// The first due time. With none left and no load in progress, the calling task has to end.
    fn first(&self, is_loading: bool) -> Option<SystemTime> {
        let mut state = locked(&self.state);
        let first = state.due.first().map(|(due, _)| *due);
        state.attended = is_loading || first.is_some();
        first
    }

    /// Takes the runs that are due at `now`, at most so many.
    fn take_due(&self, now: SystemTime, at_most: usize) -> Vec<RunId> {
        let mut state = locked(&self.state);
        let mut due = Vec::new();
        while due.len() < at_most
            && let Some(first) = state.due.pop_first()
        {
            if first.0 > now {
                state.due.insert(first);
                break;
            }
            due.push(first.1);
        }
        due
    }
}

/// Has the run loaded at that time. The reminder keeps the engine alive.
pub(super) fn remind(engine: &Arc<Inner>, at: SystemTime, run: &RunId) {
    if let Some((runtime, _task)) = engine.reminders.add(at, run, &engine.ending) {
        let attending = Attending { engine: Arc::clone(engine), is_done: false };
        runtime.spawn(engine.ending.track(attending.attend()));
    }
}

/// The task that attends to reminders. If it is dropped with its runtime, the next reminder spawns another.
struct Attending {
    engine: Arc<Inner>,
    /// Set once `attended` was cleared, because another task may have set that again.
    is_done: bool,
}

impl Attending {
    /// Loads runs as they fall due, until no reminder is left or the engine ends.
    async fn attend(mut self) {
        let inner = Arc::clone(&self.engine);
        let mut loads = FuturesUnordered::new();
        loop {
            let first = inner.reminders.first(!loads.is_empty());
            if first.is_none() && loads.is_empty() {
                break;
            }
            if inner.ending.has_begun() {
                return;
            }
            let room = MAX_CONCURRENT_LOADS - loads.len();
            if let Some(first) = until_due(&inner, first.filter(|_| room > 0), &mut loads).await {
                let due = inner.reminders.take_due(inner.common.clock.shown().max(first), room);
                loads.extend(due.into_iter().map(|run| load(Arc::clone(&inner), run)));
            }
        }
        self.is_done = true;
    }
}

/// The loads in progress. A slow load delays no other while fewer than `MAX_CONCURRENT_LOADS` run.
type Loads = FuturesUnordered<BoxFuture<'static, ()>>;

/// Waits until `first` and returns it. Returns `None` if reminders change, a load ends, or the engine ends before.
async fn until_due(inner: &Inner, first: Option<SystemTime>, loads: &mut Loads) -> Option<SystemTime> {
    let due = pin!(async {
        match first {
            Some(first) => inner.common.clock.slept_until(first).await,
            None => pending().await,
        }
    });
    let changed = pin!(async {
        select(pin!(inner.reminders.changed.notified()), pin!(inner.ending.begins())).await;
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

/// Reloads a run that is due or has messages. If the store cannot be read, the run is due again a little later.
pub(super) fn load(inner: Arc<Inner>, run: RunId) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let loaded = inner.wake(&run, None).await;
        if let (Err(error), Some(again)) = (loaded, inner.common.clock.shown().checked_add(RETRY_DELAY)) {
            tracing::warn!(%run, %error, "a run that waits in its store could not be loaded");
            remind(&inner, again, &run);
        }
    })
}

impl Drop for Attending {
    fn drop(&mut self) {
        if !self.is_done {
            locked(&self.engine.reminders.state).attended = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Reminders of runs that the test's runtime drives.
    fn driven_here() -> (Reminders, Ending) {
        let reminders = Reminders::default();
        reminders.note_runtime();
        (reminders, Ending::default())
    }

    #[tokio::test]
    async fn the_first_reminder_needs_a_task_and_the_others_do_not() {
        let (reminders, ending) = driven_here();
        assert!(reminders.add(at(2), &"a".into(), &ending).is_some());
        assert!(reminders.add(at(1), &"b".into(), &ending).is_none());
        assert_eq!(reminders.first(false), Some(at(1)));
        for run in ["a", "b"] {
            reminders.forget(at(if run == "a" { 2 } else { 1 }), &run.into());
        }
        assert_eq!(reminders.first(true), None);
        assert!(reminders.add(at(3), &"c".into(), &ending).is_none(), "the task still loads a run");
        reminders.forget(at(3), &"c".into());
        assert_eq!(reminders.first(false), None);
        assert!(reminders.add(at(4), &"d".into(), &ending).is_some(), "the task has ended");
    }

    #[tokio::test]
    async fn runs_are_due_in_the_order_of_their_times_and_so_many_at_once() {
        let (reminders, ending) = driven_here();
        for (time, run) in [(3, "c"), (1, "a"), (2, "b"), (9, "z")] {
            reminders.add(at(time), &run.into(), &ending);
        }
        assert_eq!(reminders.take_due(at(5), 2), ["a".into(), "b".into()]);
        assert_eq!(reminders.take_due(at(5), 2), ["c".into()]);
        assert!(reminders.take_due(at(5), 2).is_empty());
        assert_eq!(reminders.first(false), Some(at(9)));
    }

    #[tokio::test]
    async fn an_engine_that_ends_waits_for_no_reminder() {
        let (reminders, ending) = driven_here();
        ending.begin();
        assert!(reminders.add(at(1), &"a".into(), &ending).is_none());
    }

    #[test]
    fn without_a_runtime_no_task_attends_to_reminders() {
        let reminders = Reminders::default();
        reminders.note_runtime();
        assert!(reminders.runtime().is_none());
        assert!(reminders.add(at(1), &"a".into(), &Ending::default()).is_none());
    }
}
