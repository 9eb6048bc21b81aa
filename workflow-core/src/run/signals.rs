//! The ways to wake a run's task: commands in its mailbox, and signals beside it.
//!
//! A signal is a flag. It needs no room in the mailbox, which may be full, so a drop or another thread can
//! give it without waiting.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::Waker;

use futures_util::task::AtomicWaker;

use super::child_store_failure::failure_of;
use super::{Command, Mailbox, RunShared};
use crate::outcome::RunError;
use crate::panics::locked;
use crate::report::Ending;
use crate::store::StoreError;

/// The mailbox of a run and the signals beside it.
pub(crate) struct Signals {
    waker: AtomicWaker,
    pub(crate) mailbox: Mailbox,
    /// Written once: the first cancel gives the reason.
    cancel_reason: OnceLock<Arc<str>>,
    /// Whether the run has not read the reason yet.
    cancel_is_unread: AtomicBool,
    /// Whether the run is to stop and leave its journal open. Never reset.
    detach: AtomicBool,
    /// Whether nothing that the run executes is under way, while the engine winds down.
    rests: AtomicBool,
    /// Whether viewers want to know of requests: `UNSEEN`, then `NEW_VIEWER`, then `TELLS`.
    viewed: AtomicU8,
    /// What few runs have. Created with the first of it.
    rare: OnceLock<Box<RareSignals>>,
}

/// The signals that few runs have. Those in cells are written once.
#[derive(Default)]
struct RareSignals {
    /// The store failure of the first child whose store failed.
    child_store_failure: OnceLock<StoreError>,
    /// Why the run ends, once its clean-up has begun.
    ending: OnceLock<(Arc<Ending>, usize)>,
    /// Whether the journal has that the run cleans up because of a cancel.
    cancel_is_kept: AtomicBool,
    /// Whether a paused run is to be unloaded at once.
    unloads: AtomicBool,
    /// Whether awaited children were detached, which executions ask for again.
    detached_children: AtomicBool,
    /// Whether the parent is paused: 0 if the run does not know.
    parent: AtomicU8,
    /// The parent to which the run was re-attached, and of which it has no link.
    reattached: Mutex<Reattached>,
}

/// The parent to which a run was re-attached.
#[derive(Default)]
struct Reattached {
    parent: Weak<RunShared>,
    /// The number of the last attempt that asked for the run since.
    asked_in: Option<u32>,
}

/// Nobody has viewed the run.
const UNSEEN: u8 = 0;
/// Someone views the run, and has not been told of its open requests.
const NEW_VIEWER: u8 = 1;
/// The run tells of its requests.
const TELLS: u8 = 2;

/// The parent is not paused.
const PARENT_RUNS: u8 = 1;
/// The parent is paused.
const PARENT_PAUSED: u8 = 2;

impl Signals {
    /// The signals of a run whose mailbox has room for this many commands.
    pub(super) fn new(mailbox_capacity: usize) -> Self {
        Self {
            waker: AtomicWaker::new(),
            mailbox: Mailbox::new(mailbox_capacity),
            cancel_reason: OnceLock::new(),
            cancel_is_unread: AtomicBool::new(false),
            detach: AtomicBool::new(false),
            rests: AtomicBool::new(false),
            viewed: AtomicU8::new(UNSEEN),
            rare: OnceLock::new(),
        }
    }

    /// Sets the waker of the run's task.
    pub(super) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Waits for room in the mailbox and puts a command in. Returns the command if the mailbox is closed.
    pub(super) async fn send(&self, command: Command) -> Result<(), Command> {
        self.mailbox.send(command, &self.waker).await
    }

    /// Whether there is a command or a cancel that the run has not taken.
    pub(super) fn has_news(&self) -> bool {
        self.mailbox.has_commands() || self.cancel_is_unread() || self.has_new_viewer()
    }

    /// Signals the run to cancel. Only the first call has an effect.
    pub(super) fn cancel(&self, reason: &Arc<str>) {
        if self.cancel_reason.set(Arc::clone(reason)).is_ok() {
            self.cancel_is_unread.store(true, Ordering::Release);
            self.waker.wake();
        }
    }

    #[inline]
    pub(crate) fn cancel_is_unread(&self) -> bool {
        self.cancel_is_unread.load(Ordering::Acquire)
    }

    /// The reason of a cancel that the run has not read yet.
    pub(crate) fn unread_cancel(&self) -> Option<Arc<str>> {
        if self.cancel_is_unread() { self.cancel_reason.get().cloned() } else { None }
    }

    /// Reads the cancel: returns its reason once. Costs one load while there is none.
    pub(super) fn read_cancel(&self) -> Option<Arc<str>> {
        let unread = self.cancel_is_unread() && self.cancel_is_unread.swap(false, Ordering::AcqRel);
        if unread { self.cancel_reason.get().cloned() } else { None }
    }

    /// Notes that the journal has that the run cleans up because of a cancel: it ends as cancelled, here or elsewhere.
    #[cold]
    pub(super) fn keep_cancel(&self) {
        self.rare.get_or_init(Box::default).cancel_is_kept.store(true, Ordering::Release);
    }

    /// Whether the journal of a run that has not ended has a cancel.
    pub(crate) fn cancel_is_kept(&self) -> bool {
        self.rare.get().is_some_and(|rare| rare.cancel_is_kept.load(Ordering::Acquire))
    }

    /// Signals the run to stop and leave its journal open.
    pub(super) fn detach(&self) {
        self.detach.store(true, Ordering::Release);
        self.waker.wake();
    }

    pub(super) fn is_to_detach(&self) -> bool {
        self.detach.load(Ordering::Acquire)
    }

    /// Sets whether the run rests. Returns whether it did before.
    pub(super) fn set_rests(&self, rests: bool) -> bool {
        self.rests.swap(rests, Ordering::SeqCst)
    }

    pub(super) fn rests(&self) -> bool {
        self.rests.load(Ordering::SeqCst)
    }

    /// Notes that someone views the run (S64). Returns whether the run has to be told: nobody did before, or its display
    /// has a new one above, which may lack requests.
    pub(crate) fn view(&self, again: bool) -> bool {
        let to = NEW_VIEWER;
        let is_new = if again {
            self.viewed.store(to, Ordering::SeqCst);
            true
        } else {
            self.viewed.compare_exchange(UNSEEN, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        // Either the caller finds a child that joins meanwhile, or that one finds the flag.
        fence(Ordering::SeqCst);
        is_new
    }

    /// Whether viewers want to know of requests. Costs one load.
    #[inline]
    pub(crate) fn is_viewed(&self) -> bool {
        self.viewed.load(Ordering::Acquire) != UNSEEN
    }

    /// Whether a viewer has not been told of the open requests.
    pub(crate) fn has_new_viewer(&self) -> bool {
        self.viewed.load(Ordering::Acquire) == NEW_VIEWER
    }

    /// Whether the open requests are to be told. Returns that once for each new viewer.
    pub(super) fn take_new_viewer(&self) -> bool {
        self.viewed.compare_exchange(NEW_VIEWER, TELLS, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Wakes the run's task.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Tells the run how a child ended. Returns whether the child's store failed.
    pub(super) fn child_ended(&self, error: &RunError) -> bool {
        let Some(failure) = failure_of(error) else { return false };
        // The store of another child may have failed before.
        let _ = self.rare.get_or_init(Box::default).child_store_failure.set(failure);
        self.waker.wake();
        true
    }

    /// The store failure of the first child whose store failed.
    pub(super) fn child_store_failure(&self) -> Option<&StoreError> {
        self.rare.get()?.child_store_failure.get()
    }

    /// Sets whether a paused run is to be unloaded at once.
    pub(super) fn unload_paused(&self, unloads: bool) {
        if unloads || self.rare.get().is_some() {
            self.rare.get_or_init(Box::default).unloads.store(unloads, Ordering::Relaxed);
        }
    }

    /// Whether a paused run is to be unloaded at once.
    pub(super) fn unloads_paused(&self) -> bool {
        self.rare.get().is_some_and(|rare| rare.unloads.load(Ordering::Relaxed))
    }

    /// Notes that awaited children were detached, which executions ask for again.
    pub(crate) fn note_detached_children(&self) {
        self.rare.get_or_init(Box::default).detached_children.store(true, Ordering::Release);
    }

    /// Whether awaited children were detached.
    pub(crate) fn has_detached_children(&self) -> bool {
        self.rare.get().is_some_and(|rare| rare.detached_children.load(Ordering::Acquire))
    }

    /// Notes the parent to which the run was re-attached.
    pub(crate) fn reattach(&self, parent: Weak<RunShared>) {
        let mut reattached = locked(&self.rare.get_or_init(Box::default).reattached);
        if !reattached.parent.ptr_eq(&parent) {
            *reattached = Reattached { parent, asked_in: None };
        }
    }

    /// The parent to which the run was re-attached, if it was.
    pub(super) fn reattached(&self) -> Option<Arc<RunShared>> {
        locked(&self.rare.get()?.reattached).parent.upgrade()
    }

    /// Notes that an attempt of this parent asks for the run, which is there already. Returns `false` if the same attempt
    /// has done so before.
    pub(crate) fn note_asked(&self, parent: &Arc<RunShared>, asked_in: u32) -> bool {
        let asked = Reattached { parent: Arc::downgrade(parent), asked_in: Some(asked_in) };
        let mut reattached = locked(&self.rare.get_or_init(Box::default).reattached);
        let is_repeated = reattached.parent.ptr_eq(&asked.parent) && reattached.asked_in == asked.asked_in;
        *reattached = asked;
        !is_repeated
    }

    /// Tells the run whether its parent is paused. The caller wakes the run.
    pub(crate) fn set_parent_paused(&self, is_paused: bool) {
        let parent = if is_paused { PARENT_PAUSED } else { PARENT_RUNS };
        self.rare.get_or_init(Box::default).parent.store(parent, Ordering::Release);
    }

    /// Whether the parent is paused; `None` if the run does not know.
    #[inline]
    pub(super) fn parent_paused(&self) -> Option<bool> {
        let parent = self.rare.get()?.parent.load(Ordering::Acquire);
        (parent != 0).then_some(parent == PARENT_PAUSED)
    }

    /// Tells executions why the run ends. Only the first call has an effect.
    pub(super) fn set_ending(&self, ending: Ending, redrives: usize) {
        let _ = self.rare.get_or_init(Box::default).ending.set((Arc::new(ending), redrives));
    }

    /// Why the run ends, once its clean-up has begun.
    pub(super) fn ending(&self) -> Option<&Arc<Ending>> {
        self.rare.get()?.ending.get().map(|(ending, _)| ending)
    }

    /// How many redrives came before the end whose clean-up runs; 0 without one.
    pub(super) fn redrives_before_end(&self) -> usize {
        self.rare.get().and_then(|rare| rare.ending.get()).map_or(0, |(_, redrives)| *redrives)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use futures::FutureExt as _;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// How often `by` wakes the run.
    fn wakes(signals: &Signals, by: impl FnOnce(&Signals)) -> usize {
        let wakes = Arc::new(Wakes::default());
        signals.register(&Arc::clone(&wakes).into());
        by(signals);
        wakes.0.load(Ordering::SeqCst)
    }

    fn command() -> Command {
        Command::Cancel { reason: "late".into(), done: tokio::sync::oneshot::channel().0 }
    }

    #[test]
    fn the_first_cancel_wakes_the_run_and_is_read_once() {
        let signals = Signals::new(1);
        assert!(!signals.has_news() && signals.read_cancel().is_none());
        assert_eq!(wakes(&signals, |signals| signals.cancel(&"first".into())), 1);
        assert_eq!(wakes(&signals, |signals| signals.cancel(&"second".into())), 0);
        assert_eq!(signals.unread_cancel().as_deref(), Some("first"));
        assert!(signals.has_news());
        assert_eq!(signals.read_cancel().as_deref(), Some("first"));
        assert!(!signals.has_news() && signals.unread_cancel().is_none() && signals.read_cancel().is_none());
    }

    #[test]
    fn a_signal_needs_no_room_in_the_mailbox() {
        let signals = Signals::new(1);
        assert!(signals.send(command()).now_or_never().expect("there is room").is_ok());
        assert!(signals.send(command()).now_or_never().is_none());
        signals.cancel(&"now".into());
        assert_eq!(signals.read_cancel().as_deref(), Some("now"));
        assert!(signals.has_news(), "the command is still there");
    }

    #[test]
    fn a_detach_wakes_the_run_and_stays() {
        let signals = Signals::new(1);
        assert!(!signals.is_to_detach());
        assert_eq!(wakes(&signals, Signals::detach), 1);
        assert!(signals.is_to_detach());
    }

    #[test]
    fn the_first_failure_of_a_childs_store_is_kept() {
        let signals = Signals::new(1);
        assert!(!signals.child_ended(&RunError::Detached) && signals.child_store_failure().is_none());
        let failed = |source| RunError::Store { source };
        assert_eq!(wakes(&signals, |signals| assert!(signals.child_ended(&failed(StoreError::NoStore)))), 1);
        assert!(signals.child_ended(&failed(StoreError::ShutDown)));
        assert!(matches!(signals.child_store_failure(), Some(StoreError::NoStore)));
    }
}
