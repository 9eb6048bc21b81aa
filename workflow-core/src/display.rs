//! The display of a run (S25): the handle for steps, and the streams for viewers. A displayed item is not in the log,
//! triggers no step, and never makes a run wait. `ring` decides which items are retained.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::Stream;

use crate::event::{AnyEvent, DisplayEvent, Event};
use crate::id::{ChildRun, ExecutionId, RunStatus};

mod forward;
mod ring;
mod splitter;
mod text;

pub(crate) use forward::Forward;

use ring::{Cursor, Ring};

pub use text::{Chunk, StreamedText, TextPiece, Thought};

/// How many items a run retains for its viewers by default.
pub(crate) const DEFAULT_DISPLAY_CAPACITY: usize = 1024;

/// An item that a viewer of a run receives, in the order of display.
///
/// ```
/// use workflow_core::DisplayItem;
///
/// fn line(item: &DisplayItem) -> String {
///     match item {
///         DisplayItem::Shown { step, event, .. } => format!("{step}: {}", event.name()),
///         DisplayItem::Retracted { step, attempt, .. } => format!("{step}: attempt {attempt} is void"),
///         DisplayItem::Missed { count } => format!("({count} more)"),
///         DisplayItem::Ended { status } => format!("{status:?}"),
///         _ => String::new(),
///     }
/// }
/// assert_eq!(line(&DisplayItem::Missed { count: 3 }), "(3 more)");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum DisplayItem {
    /// A step showed an event.
    Shown {
        /// The name of the step.
        step: Arc<str>,
        /// The execution of the step.
        execution: ExecutionId,
        /// The attempt of the execution.
        attempt: u32,
        /// The event.
        event: AnyEvent,
    },
    /// A display event came from outside: a start event, or one that was sent.
    Received {
        /// The event.
        event: AnyEvent,
    },
    /// A child run showed, received or retracted something.
    Child {
        /// The child, then its child, and so on. The last one is the run that showed the item.
        path: Arc<[ChildRun]>,
        /// The item, as the child's own viewers receive it.
        item: Arc<Self>,
    },
    /// An attempt with displayed items failed. Its items and those of its child runs no longer count.
    Retracted {
        /// The name of the step.
        step: Arc<str>,
        /// The execution of the step.
        execution: ExecutionId,
        /// The attempt of the execution.
        attempt: u32,
    },
    /// The viewer came too late for some items, or reads too slowly: the run dropped them to make room.
    Missed {
        /// How many items the viewer missed.
        count: u64,
    },
    /// The run has ended. No item follows.
    Ended {
        /// The run's final status.
        status: RunStatus,
    },
}

impl DisplayItem {
    /// The displayed event, also of a child run, if there is one and it is an `E`.
    ///
    /// ```
    /// use workflow_core::{DisplayItem, prelude::*};
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(display)]
    /// struct Progress { percent: u8 }
    ///
    /// assert!(DisplayItem::Missed { count: 3 }.event::<Progress>().is_none());
    /// ```
    pub fn event<E: Event>(&self) -> Option<&E> {
        match self {
            Self::Shown { event, .. } | Self::Received { event } => event.downcast_ref(),
            Self::Child { item, .. } => item.event(),
            _ => None,
        }
    }
}

/// Shows display events to the viewers of a run: `display: &Display`.
///
/// The prelude has this type under its name. It is not the trait [`std::fmt::Display`]: where a module needs both, name
/// the trait by its path.
///
/// ```
/// use futures::StreamExt;
/// use workflow_core::{Display, prelude::*};
///
/// #[derive(Debug, Serialize, Deserialize, Event)]
/// #[event(display)]
/// struct Progress { percent: u8 }
///
/// async fn index(display: &Display) {
///     display.show(Progress { percent: 100 });
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (display, mut shown) = Display::detached();
/// index(&display).await;
/// let item = shown.next().await.expect("something was shown");
/// assert_eq!(item.event::<Progress>().map(|progress| progress.percent), Some(100));
/// # }
/// ```
#[derive(Clone)]
pub struct Display {
    hub: DisplayHub,
    step: Arc<str>,
    execution: ExecutionId,
    attempt: u32,
    /// Written only under the hub's lock, so that no item of an attempt is shown after its retraction.
    stage: Arc<AtomicU8>,
}

/// The attempt has shown nothing.
const SILENT: u8 = 0;
/// The attempt has shown an item.
const SHOWN: u8 = 1;
/// The attempt failed, and shows nothing any more.
const VOID: u8 = 2;

impl Display {
    /// A display without a run, with its one viewer, to call a step in a test.
    ///
    /// ```
    /// let (display, shown) = workflow_core::Display::detached();
    /// # drop((display, shown));
    /// ```
    pub fn detached() -> (Self, DisplayStream) {
        let hub = DisplayHub::new(DEFAULT_DISPLAY_CAPACITY);
        let shown = hub.subscribe(None);
        (hub.display("detached".into(), ExecutionId(0), 1), shown)
    }

    /// Shows an event at once. Never waits and never fails.
    ///
    /// If viewers are too slow, the oldest items make room. Once the run has ended, the event is dropped.
    ///
    /// ```
    /// use workflow_core::{Display, prelude::*};
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(display)]
    /// struct Progress { percent: u8 }
    ///
    /// fn report(display: &Display, done: usize, of: usize) {
    ///     display.show(Progress { percent: u8::try_from(done * 100 / of.max(1)).unwrap_or(100) });
    /// }
    /// # report(&Display::detached().0, 1, 2);
    /// ```
    pub fn show<E: DisplayEvent>(&self, event: E) {
        let item = self.shown(AnyEvent::new(event));
        self.hub.publish_if(item, |ring| !ring.sealed && self.enter(SHOWN) != VOID);
    }

    /// Shows an event that is for display and control, when it enters the log.
    pub(crate) fn show_logged(&self, event: AnyEvent) {
        self.hub.publish_if(self.shown(event), |_| self.enter(SHOWN) != VOID);
    }

    /// Shows the items of a child run of the attempt.
    fn pass_on(&self, item: DisplayItem) {
        self.hub.publish_if(item, |ring| self.passes_on(ring));
    }

    fn passes_on(&self, ring: &Ring) -> bool {
        !ring.sealed && self.enter(SHOWN) != VOID
    }

    /// Links another handle of the same attempt: a retraction of this handle covers the items of both.
    fn answers_for(&self, other: &Self) {
        let _written = self.hub.lock();
        self.enter(other.stage.load(Ordering::Relaxed));
    }

    fn shown(&self, event: AnyEvent) -> DisplayItem {
        let (step, execution, attempt) = (Arc::clone(&self.step), self.execution, self.attempt);
        DisplayItem::Shown { step, execution, attempt, event }
    }

    /// Retracts the attempt's items, once, and only if it has shown any.
    pub(crate) fn retract(&self) {
        let (step, execution, attempt) = (Arc::clone(&self.step), self.execution, self.attempt);
        let item = DisplayItem::Retracted { step, execution, attempt };
        self.hub.publish_if(item, |ring| !ring.sealed && self.enter(VOID) == SHOWN);
    }

    /// Moves to a later stage only. Returns the previous one.
    fn enter(&self, stage: u8) -> u8 {
        self.stage.fetch_max(stage, Ordering::Relaxed)
    }
}

impl fmt::Debug for Display {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Display({}, {}, attempt {})", self.step, self.execution, self.attempt)
    }
}

/// The display of one run. Clones are the same hub.
///
/// Viewers end when the hub is closed. The run that makes a hub closes it, at every kind of end.
#[derive(Clone)]
pub(crate) struct DisplayHub {
    ring: Arc<Mutex<Ring>>,
    /// Receives every item too.
    listener: Option<Arc<Listener>>,
}

/// The display of one run, if it has one. The first displayed item or viewer creates the hub.
#[derive(Debug, Default)]
pub(crate) struct Shown(Mutex<Hall>);

#[derive(Debug, Default)]
struct Hall {
    hub: Option<DisplayHub>,
    /// Settings for a hub that is created later.
    sealed: bool,
    ended: Option<RunStatus>,
}

impl Shown {
    /// The hub. `make` creates it if there is none.
    pub(crate) fn hub(&self, make: impl FnOnce() -> DisplayHub) -> DisplayHub {
        let mut hall = self.lock();
        if let Some(hub) = &hall.hub {
            return hub.clone();
        }
        let hub = make();
        if hall.sealed {
            hub.seal();
        }
        if let Some(status) = hall.ended {
            hub.close(status);
        }
        hall.hub = Some(hub.clone());
        hub
    }

    /// Executions show and retract nothing from here on. Their items stand (S28).
    pub(crate) fn seal(&self) {
        let mut hall = self.lock();
        hall.sealed = true;
        if let Some(hub) = &hall.hub {
            hub.seal();
        }
    }

    /// Ends the stream of every viewer, after its retained items. Only the first call counts.
    pub(crate) fn close(&self, status: RunStatus) {
        let mut hall = self.lock();
        hall.ended.get_or_insert(status);
        let hub = hall.hub.clone();
        // Wakers are foreign code, so they run without the lock.
        drop(hall);
        if let Some(hub) = hub {
            hub.close(status);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Hall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Listener = dyn Fn(DisplayItem) + Send + Sync;

impl DisplayHub {
    /// Retains the latest `capacity` items, at least one. Allocates when items are shown.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { ring: Arc::new(Mutex::new(Ring::new(capacity))), listener: None }
    }

    /// The same, with a listener that receives every item and never waits.
    pub(crate) fn heard_by(self, listener: impl Fn(DisplayItem) + Send + Sync + 'static) -> Self {
        Self { listener: Some(Arc::new(listener)), ..self }
    }

    /// The handle of one attempt.
    pub(crate) fn display(&self, step: Arc<str>, execution: ExecutionId, attempt: u32) -> Display {
        Display { hub: self.clone(), step, execution, attempt, stage: Arc::new(AtomicU8::new(SILENT)) }
    }

    /// A viewer of this run, which begins with the oldest retained item.
    pub(crate) fn subscribe(&self, run: Option<Arc<dyn Any + Send + Sync>>) -> DisplayStream {
        DisplayStream { cursor: Some(self.lock().subscribe()), hub: self.clone(), _run: run }
    }

    /// See [`Shown::seal`].
    fn seal(&self) {
        self.lock().sealed = true;
    }

    /// See [`Shown::close`].
    fn close(&self, status: RunStatus) {
        let wakers = self.lock().close(status);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    /// Shows an event that came from outside.
    pub(crate) fn receive(&self, event: AnyEvent) {
        self.publish_if(DisplayItem::Received { event }, |_| true);
    }

    /// Also shows everything to the parent's viewers: retained items, and later ones. Items that another forward of the
    /// same child has shown there are not repeated.
    pub(crate) fn forward(&self, to: Forward) {
        let to = Arc::new(to);
        let mut ring = self.lock();
        let before = ring.forward.replace(Arc::clone(&to));
        let retained = if before.is_none() { ring.retained() } else { Vec::new() };
        drop(ring);
        if let Some(before) = before {
            to.answers_for(&before);
        }
        for item in &retained {
            to.forward(item);
        }
    }

    /// Shows an item to the viewers of this run and of the runs above, in a loop, because runs may nest deeply.
    fn publish_if(&self, item: DisplayItem, wanted: impl FnOnce(&Ring) -> bool) {
        let mut next = self.publish_here(item, wanted);
        while let Some((forward, item)) = next {
            let above = forward.display();
            next = above.hub.publish_here(forward.of_child(&item), |ring| above.passes_on(ring));
        }
    }

    /// Decides under the lock. After it, wakes viewers, calls listeners and drops the items that made room. Returns
    /// where the item goes next.
    fn publish_here(
        &self,
        item: DisplayItem,
        wanted: impl FnOnce(&Ring) -> bool,
    ) -> Option<(Arc<Forward>, DisplayItem)> {
        let mut ring = self.lock();
        if !ring.is_open() || !wanted(&ring) {
            // After the lock, because the item is foreign code.
            return None;
        }
        let forward = ring.forward.clone();
        let heard = (forward.is_some() || self.listener.is_some()).then(|| item.clone());
        let (dropped, wakers) = ring.push(item);
        drop(ring);
        wakers.into_iter().for_each(std::task::Waker::wake);
        drop(dropped);
        let item = heard?;
        match (&self.listener, forward) {
            (Some(listener), Some(forward)) => {
                listener(item.clone());
                Some((forward, item))
            }
            (Some(listener), None) => {
                listener(item);
                None
            }
            (None, forward) => forward.map(|forward| (forward, item)),
        }
    }

    /// The ring is never left half-changed, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for DisplayHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DisplayHub").field(&*self.lock()).finish()
    }
}

/// One viewer of a run: a stream of its items, which ends after [`Ended`](DisplayItem::Ended).
///
/// A viewer begins with the oldest retained item. A late or slow viewer receives the number of items it missed; it
/// never slows the run.
///
/// ```
/// use futures::StreamExt;
/// use workflow_core::{DisplayItem, DisplayStream};
///
/// async fn count_shown(mut viewer: DisplayStream) -> usize {
///     let mut shown = 0;
///     while let Some(item) = viewer.next().await {
///         shown += usize::from(matches!(item, DisplayItem::Shown { .. }));
///     }
///     shown
/// }
/// ```
#[must_use = "a stream shows nothing unless it is read"]
pub struct DisplayStream {
    hub: DisplayHub,
    /// The viewer's place; `None` once it has received the end.
    cursor: Option<Cursor>,
    /// The run, which lives as long as its viewers.
    _run: Option<Arc<dyn Any + Send + Sync>>,
}

impl Stream for DisplayStream {
    type Item = DisplayItem;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<DisplayItem>> {
        let Self { hub, cursor, .. } = self.get_mut();
        let Some(place) = cursor else { return Poll::Ready(None) };
        let item = hub.lock().poll(place, context.waker());
        if let Poll::Ready(DisplayItem::Ended { .. }) = item {
            *cursor = None;
        }
        item.map(Some)
    }
}

impl Drop for DisplayStream {
    fn drop(&mut self) {
        if let Some(cursor) = &self.cursor {
            // Bound first, because a waker is foreign code and is dropped after the lock.
            let _waker = self.hub.lock().unsubscribe(cursor);
        }
    }
}

impl fmt::Debug for DisplayStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DisplayStream").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use futures::{FutureExt as _, StreamExt as _};
    use serde::{Deserialize, Serialize};
    use static_assertions::assert_impl_all;

    use super::*;
    use crate::event::{NotStop, Roles};

    assert_impl_all!(Display: Send, Sync, Clone, fmt::Debug);
    assert_impl_all!(DisplayStream: Send, Unpin, fmt::Debug);

    #[derive(Debug, Serialize, Deserialize)]
    struct Tick(u32);

    impl Event for Tick {
        const NAME: &'static str = "Tick";
        const ROLES: Roles = Roles::NONE.display();
        type Stop = NotStop;
    }

    impl DisplayEvent for Tick {}

    fn display(hub: &DisplayHub) -> Display {
        hub.display("clock".into(), ExecutionId(7), 1)
    }

    fn show(display: &Display, ticks: std::ops::Range<u32>) {
        ticks.for_each(|tick| display.show(Tick(tick)));
    }

    fn text(item: &DisplayItem) -> String {
        match item {
            DisplayItem::Shown { .. } => item.event::<Tick>().unwrap().0.to_string(),
            DisplayItem::Retracted { execution, attempt, .. } => format!("retracted {execution}/{attempt}"),
            DisplayItem::Received { .. } => format!("received {}", item.event::<Tick>().unwrap().0),
            DisplayItem::Child { item, .. } => format!("child {}", text(item)),
            DisplayItem::Missed { count } => format!("missed {count}"),
            DisplayItem::Ended { status } => format!("{status:?}"),
        }
    }

    /// The items that can be read without waiting, and whether the stream has ended.
    fn drain(viewer: &mut DisplayStream) -> String {
        let mut read = Vec::new();
        while let Some(item) = viewer.next().now_or_never() {
            let Some(item) = item else {
                read.push("end".to_owned());
                break;
            };
            read.push(text(&item));
        }
        read.join(" ")
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls once and expects no item. The count goes up when the viewer is woken.
    fn wait(viewer: &mut DisplayStream) -> Arc<Wakes> {
        let wakes = Arc::new(Wakes::default());
        let registered = Arc::clone(&wakes).into();
        assert!(viewer.poll_next_unpin(&mut Context::from_waker(&registered)).is_pending());
        wakes
    }

    // S25
    #[test]
    fn items_arrive_in_order_with_step_execution_and_attempt() {
        let hub = DisplayHub::new(8);
        let mut viewer = hub.subscribe(None);
        show(&display(&hub), 0..2);
        let DisplayItem::Shown { step, execution, attempt, event } =
            viewer.next().now_or_never().flatten().unwrap()
        else {
            panic!("an event was shown")
        };
        assert_eq!((&*step, execution, attempt, event.name()), ("clock", ExecutionId(7), 1, "Tick"));
        assert_eq!(drain(&mut viewer), "1");
    }

    #[test]
    fn a_late_viewer_begins_with_the_retained_items() {
        let hub = DisplayHub::new(8);
        show(&display(&hub), 0..3);
        assert_eq!(drain(&mut hub.subscribe(None)), "0 1 2");
    }

    #[test]
    fn a_viewer_receives_the_number_of_items_it_missed() {
        let hub = DisplayHub::new(3);
        let clock = display(&hub);
        show(&clock, 0..5);
        let mut viewer = hub.subscribe(None);
        assert_eq!(drain(&mut viewer), "missed 2 2 3 4");
        show(&clock, 5..9);
        assert_eq!(drain(&mut viewer), "missed 1 6 7 8");
    }

    #[test]
    fn two_viewers_read_at_their_own_speed() {
        let hub = DisplayHub::new(2);
        let clock = display(&hub);
        let (mut quick, mut slow) = (hub.subscribe(None), hub.subscribe(None));
        for tick in 0..4 {
            clock.show(Tick(tick));
            assert_eq!(drain(&mut quick), tick.to_string());
        }
        assert_eq!(drain(&mut slow), "missed 2 2 3");
    }

    // S28
    #[test]
    fn items_from_before_the_end_arrive_before_the_end_marker() {
        let hub = DisplayHub::new(8);
        let mut viewer = hub.subscribe(None);
        show(&display(&hub), 0..2);
        hub.close(RunStatus::Completed);
        assert_eq!(drain(&mut viewer), "0 1 Completed end");
        assert_eq!(drain(&mut viewer), "end");
    }

    #[test]
    fn after_the_end_nothing_more_is_accepted() {
        let hub = DisplayHub::new(8);
        let clock = display(&hub);
        show(&clock, 0..1);
        hub.close(RunStatus::Failed);
        show(&clock, 1..2);
        clock.retract();
        hub.close(RunStatus::Completed);
        assert_eq!(drain(&mut hub.subscribe(None)), "0 Failed end");
    }

    #[test]
    fn a_waiting_viewer_is_woken_by_an_item_and_by_the_end() {
        let hub = DisplayHub::new(8);
        let (mut first, mut second) = (hub.subscribe(None), hub.subscribe(None));
        let wakes = [wait(&mut first), wait(&mut second)];
        show(&display(&hub), 0..2);
        assert!(wakes.iter().all(|wakes| wakes.0.load(Ordering::SeqCst) == 1));
        assert_eq!(drain(&mut first), "0 1");
        let woken = wait(&mut first);
        hub.close(RunStatus::Cancelled);
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(drain(&mut first), "Cancelled end");
    }

    #[test]
    fn a_viewer_polled_again_is_woken_through_its_latest_waker_only() {
        let hub = DisplayHub::new(8);
        let mut viewer = hub.subscribe(None);
        let (earlier, latest) = (wait(&mut viewer), wait(&mut viewer));
        show(&display(&hub), 0..1);
        assert_eq!((earlier.0.load(Ordering::SeqCst), latest.0.load(Ordering::SeqCst)), (0, 1));
    }

    #[test]
    fn a_viewer_that_is_dropped_leaves_nothing_behind() {
        let hub = DisplayHub::new(8);
        let mut viewer = hub.subscribe(None);
        let wakes = wait(&mut viewer);
        drop(viewer);
        assert_eq!(Arc::strong_count(&wakes), 1);
        show(&display(&hub), 0..1);
        assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
    }

    // S25
    #[test]
    fn a_failed_attempt_is_retracted_once_and_only_if_it_showed_something() {
        let hub = DisplayHub::new(8);
        let mut viewer = hub.subscribe(None);
        display(&hub).retract();
        assert_eq!(drain(&mut viewer), "");
        let clock = display(&hub);
        clock.clone().show(Tick(0));
        clock.retract();
        clock.retract();
        assert_eq!(drain(&mut viewer), "0 retracted x7/1");
    }

    // S25
    #[test]
    fn nothing_of_an_attempt_is_shown_after_it_failed() {
        let hub = DisplayHub::new(8);
        let silent = display(&hub);
        silent.retract();
        silent.show(Tick(0));
        silent.retract();
        assert_eq!(drain(&mut hub.subscribe(None)), "");
    }

    // S28
    #[test]
    fn a_hub_that_is_made_late_is_as_one_that_was_there() {
        let shown = Shown::default();
        let hub = || shown.hub(|| DisplayHub::new(8));
        let mut early = hub().subscribe(None);
        show(&display(&hub()), 0..1);
        assert_eq!(drain(&mut early), "0");
        let late = Shown::default();
        late.seal();
        show(&display(&late.hub(|| DisplayHub::new(8))), 0..1);
        assert_eq!(drain(&mut late.hub(|| DisplayHub::new(8)).subscribe(None)), "");
        let late = Shown::default();
        late.close(RunStatus::Stalled);
        late.close(RunStatus::Completed);
        assert_eq!(drain(&mut late.hub(|| DisplayHub::new(8)).subscribe(None)), "Stalled end");
    }

    #[test]
    fn a_hub_that_shows_nothing_holds_no_buffer() {
        assert!(std::mem::size_of::<Ring>() <= 128);
        assert_eq!(format!("{:?}", DisplayHub::new(8)), "DisplayHub(Ring { retained: 0, dropped: 0, .. })");
    }

    #[tokio::test]
    async fn another_thread_can_show() {
        let hub = DisplayHub::new(1000);
        let viewer = hub.subscribe(None);
        let thread = std::thread::spawn(move || {
            show(&display(&hub), 0..500);
            hub.close(RunStatus::Completed);
        });
        let shown: Vec<_> = viewer.map(|item| text(&item)).collect().await;
        thread.join().unwrap();
        assert_eq!((shown.len(), &*shown[499], &*shown[500]), (501, "499", "Completed"));
    }
}
