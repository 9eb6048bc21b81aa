//! The timers of runs that were unloaded: one task waits for all of them, and loads each run when its first one is due.

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

use super::Inner;
use super::ending::Ending;
use super::tasks::TaskToken;
use crate::id::RunId;
use crate::panics::locked;

/// How many runs are loaded at a time: those whose timers are due, and those that are to be cancelled.
pub(super) const LOADED_AT_ONCE: usize = 32;

/// How long after a store could not be read it is tried again.
pub(super) const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// When unloaded runs are due.
#[derive(Default)]
pub(super) struct Reminders {
    state: Mutex<State>,
    /// Tells that there is another reminder.
    changed: Notify,
}

#[derive(Default)]
struct State {
    due: BTreeSet<(SystemTime, RunId)>,
    /// Whether a task waits for them.
    attended: bool,
    /// Where runs were driven last.
    runtime: Option<Handle>,
}

impl Reminders {
    /// Adds a reminder. If no task waits for reminders yet, the answer says where to spawn one, unless the engine ends: it
    /// loads its runs itself then, if it needs them.
    fn add(&self, at: SystemTime, run: &RunId, ending: &Ending) -> Option<(Handle, TaskToken)> {
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

    /// Runs are driven on this runtime.
    pub(super) fn note_runtime(&self) {
        if let Ok(runtime) = Handle::try_current() {
            locked(&self.state).runtime = Some(runtime);
        }
    }

    pub(super) fn forget(&self, at: SystemTime, run: &RunId) {
        locked(&self.state).due.remove(&(at, run.clone()));
        // With none left, the task that waits for them ends.
        self.changed.notify_one();
    }

    /// Where a run can be driven, seen from here.
    pub(super) fn runtime(&self) -> Option<Handle> {
        Handle::try_current().ok().or_else(|| locked(&self.state).runtime.clone())
    }

    /// When the first is due. With none left and nothing being loaded, nobody waits for them any more.
    fn first(&self, is_loading: bool) -> Option<SystemTime> {
        let mut state = locked(&self.state);
        let first = state.due.first().map(|(due, _)| *due);
        state.attended = is_loading || first.is_some();
        first
    }

    /// Those that are due then, at most so many.
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

/// Sees to it that the run is loaded at that time. As long as there is a reminder, the engine is there.
pub(super) fn remind(engine: &Arc<Inner>, at: SystemTime, run: &RunId) {
    if let Some((runtime, _task)) = engine.reminders.add(at, run, &engine.ending) {
        let attending = Attending { engine: Arc::clone(engine), is_done: false };
        runtime.spawn(engine.ending.track(attending.attend()));
    }
}

/// The task that waits for reminders. If it is dropped with its runtime, the next reminder begins another.
struct Attending {
    engine: Arc<Inner>,
    /// Set once `attended` was cleared: another task may have set it again since.
    is_done: bool,
}

impl Attending {
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
            let room = LOADED_AT_ONCE - loads.len();
            if let Some(first) = until_due(&inner, first.filter(|_| room > 0), &mut loads).await {
                let due = inner.reminders.take_due(inner.common.clock.shown().max(first), room);
                loads.extend(due.into_iter().map(|run| load(Arc::clone(&inner), run)));
            }
        }
        self.is_done = true;
    }
}

/// Runs that are being loaded: one that takes long holds up no other, as long as there is room.
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

fn load(inner: Arc<Inner>, run: RunId) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let loaded = inner.wake(&run, None).await;
        if let (Err(error), Some(again)) = (loaded, inner.common.clock.shown().checked_add(AGAIN_AFTER)) {
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

    /// Reminders of runs that are driven on the runtime of the test.
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
    fn without_a_runtime_nobody_waits_for_reminders() {
        let reminders = Reminders::default();
        reminders.note_runtime();
        assert!(reminders.runtime().is_none());
        assert!(reminders.add(at(1), &"a".into(), &Ending::default()).is_none());
    }
}
