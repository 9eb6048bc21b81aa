//! The display of a run (S25): the handle for steps, and the streams for viewers. A displayed item is not in the log,
//! triggers no step, and never makes a run wait. `ring` decides which items are retained.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;

use crate::event::{AnyEvent, DisplayEvent, Event};
use crate::id::{ChildRun, ExecutionId, RunId, RunStatus, Seq};
use crate::report::OpenRequest;

mod asked;
mod forward;
mod position;
mod ring;
mod stage;

pub use asked::RequestEnd;
pub(crate) use forward::Forward;
pub use position::DisplayPosition;

use ring::{Cursor, Ring};
use stage::Stage;

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
///         DisplayItem::Missed { count: Some(count) } => format!("({count} more)"),
///         DisplayItem::Ended { status } => format!("{status:?}"),
///         _ => String::new(),
///     }
/// }
/// assert_eq!(line(&DisplayItem::Missed { count: Some(3) }), "(3 more)");
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
    /// A request is open. This comes once for each request and [epoch](DisplayPosition::epoch).
    ///
    /// The first viewer also receives the requests that are open already. No retraction covers it.
    Asked {
        /// The request, with all that a front end needs to show it and to reply.
        request: OpenRequest,
    },
    /// A request is not open any more. This comes once for each that was [asked](Self::Asked), before `Ended`.
    Closed {
        /// The sequence number of the request in the log of its run.
        seq: Seq,
        /// How it was closed.
        how: RequestEnd,
    },
    /// A child run showed, received or retracted something, or has a request.
    Child {
        /// The child, then its child, and so on. The last one is the run that showed the item.
        path: Arc<[ChildRun]>,
        /// The item, as the child's own viewers receive it.
        item: Arc<Self>,
    },
    /// An attempt with displayed items failed. Its items and those of its child runs no longer count.
    ///
    /// It comes before the first item of the next attempt, and no item of the failed attempt comes after it. A viewer
    /// that has read an item of the attempt receives it, however many other items the viewer misses.
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
        /// How many items the viewer missed. `None` if nobody knows: the viewer [came back](crate::AnyRun::display_after)
        /// after a restart of the engine.
        count: Option<u64>,
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
    /// assert!(DisplayItem::Missed { count: Some(3) }.event::<Progress>().is_none());
    /// ```
    pub fn event<E: Event>(&self) -> Option<&E> {
        match self {
            Self::Shown { event, .. } | Self::Received { event } => event.downcast_ref(),
            Self::Child { item, .. } => item.event(),
            _ => None,
        }
    }
}

impl DisplayItem {
    /// Whether this is a retraction that covers the other item, which a viewer then removes.
    ///
    /// A retraction covers the items of its attempt, and those of the child runs of that attempt, at any depth. Both
    /// items must be of one viewer.
    ///
    /// ```
    /// use workflow_core::DisplayItem;
    ///
    /// /// Updates the items that count.
    /// fn take(shown: &mut Vec<DisplayItem>, item: DisplayItem) {
    ///     shown.retain(|shown| !item.retracts(shown));
    ///     shown.push(item);
    /// }
    /// # let mut shown = Vec::new();
    /// # take(&mut shown, DisplayItem::Missed { count: Some(3) });
    /// # take(&mut shown, DisplayItem::Missed { count: Some(4) });
    /// # assert_eq!(shown.len(), 2);
    /// ```
    pub fn retracts(&self, item: &Self) -> bool {
        let ((path, retraction), (inner, item)) = (self.place(), item.place());
        let Self::Retracted { execution, attempt, .. } = retraction else { return false };
        let Some((above, below)) = inner.split_at_checked(path.len()) else { return false };
        let attempted = match (below.first(), item) {
            // A request stays open without the attempt that started its run.
            (_, Self::Asked { .. } | Self::Closed { .. }) => return false,
            (Some(child), _) => (child.execution, child.attempt),
            (None, Self::Shown { execution, attempt, .. }) => (*execution, *attempt),
            (None, _) => return false,
        };
        let same_run = above.iter().zip(path).all(|(one, other)| one.run == other.run);
        same_run && attempted == (*execution, *attempt)
    }

    /// Whether it tells of a request.
    fn is_of_request(&self) -> bool {
        matches!(self.place().1, Self::Asked { .. } | Self::Closed { .. })
    }

    /// The runs on the way to the item, and the item as its run displayed it.
    fn place(&self) -> (&[ChildRun], &Self) {
        match self {
            Self::Child { path, item } => (path, item),
            item => (&[], item),
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
    stage: Arc<Stage>,
}

impl Display {
    /// A display without a run, with its one viewer, to call a step in a test.
    ///
    /// ```
    /// let (display, shown) = workflow_core::Display::detached();
    /// # drop((display, shown));
    /// ```
    pub fn detached() -> (Self, DisplayStream) {
        let hub = DisplayHub::new(DEFAULT_DISPLAY_CAPACITY);
        let shown = hub.subscribe(None, None);
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
        self.publish(self.shown(AnyEvent::new(event)), |ring| !ring.sealed && self.stage.show());
    }

    /// Shows an event that is for display and control, when it enters the log.
    pub(crate) fn show_logged(&self, event: AnyEvent) {
        self.publish(self.shown(event), |_| self.stage.show());
    }

    fn publish(&self, item: DisplayItem, wanted: impl FnOnce(&Ring) -> bool) {
        let wanted = |ring: &Ring| wanted(ring).then_some(None);
        self.hub.publish_if(item, Some(&self.stage), wanted, &mut finish);
    }

    fn passes_on(&self, ring: &Ring) -> bool {
        !ring.sealed && self.stage.show()
    }

    /// Links another handle of the same attempt: a retraction of this handle covers the items of both.
    fn answers_for(&self, other: &Self) {
        let _written = self.hub.lock();
        self.stage.answer_for(&other.stage);
    }

    fn shown(&self, event: AnyEvent) -> DisplayItem {
        let (step, execution, attempt) = (Arc::clone(&self.step), self.execution, self.attempt);
        DisplayItem::Shown { step, execution, attempt, event }
    }

    /// Retracts the attempt's items, once, and only if it has shown any.
    pub(crate) fn retract(&self) {
        let (step, execution, attempt) = (Arc::clone(&self.step), self.execution, self.attempt);
        let item = DisplayItem::Retracted { step, execution, attempt };
        let since = |ring: &Ring| if ring.sealed { None } else { self.stage.end().map(Some) };
        self.hub.publish_if(item, None, since, &mut finish);
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
    /// Settings for a hub that is created later. Journals are shorter than an epoch can be.
    epoch: u32,
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
        hub.lock().begin_epoch(hall.epoch.into());
        if hall.sealed {
            hub.seal();
        }
        if let Some(status) = hall.ended {
            hub.close(status, true);
        }
        hall.hub = Some(hub.clone());
        hub
    }

    /// Numbers the positions of items by this epoch from here on, unless there are items (S63).
    pub(crate) fn begin_epoch(&self, epoch: u32) {
        let mut hall = self.lock();
        hall.epoch = epoch;
        if let Some(hub) = &hall.hub {
            hub.lock().begin_epoch(epoch.into());
        }
    }

    /// Executions show and retract nothing from here on. Their items stand (S28).
    pub(crate) fn seal(&self) {
        let mut hall = self.lock();
        hall.sealed = true;
        if let Some(hub) = &hall.hub {
            hub.seal();
        }
    }

    /// Lets executions show again: those of clean-up steps.
    pub(crate) fn unseal(&self) {
        let mut hall = self.lock();
        hall.sealed = false;
        if let Some(hub) = &hall.hub {
            hub.lock().sealed = false;
        }
    }

    /// Ends the stream of every viewer, after its retained items. Only the first call counts. `left` if another process
    /// continues the run: for the runs above, its requests stay open.
    pub(crate) fn close(&self, status: RunStatus, left: bool) {
        let mut hall = self.lock();
        hall.ended.get_or_insert(status);
        let hub = hall.hub.clone();
        // Wakers are foreign code, so they run without the lock.
        drop(hall);
        if let Some(hub) = hub {
            hub.close(status, left);
        }
    }

    /// When each attempt, or a child that it started, showed its latest retained item, as moments of the engine's clock.
    /// O(items).
    pub(crate) fn latest(&self) -> HashMap<(ExecutionId, u32), u64> {
        let hub = self.lock().hub.clone();
        hub.map(|hub| hub.lock().latest()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Hall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Listener = dyn Fn(&DisplayItem) -> u64 + Send + Sync;

impl DisplayHub {
    /// Retains the latest `capacity` items, at least one. Allocates when items are shown.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { ring: Arc::new(Mutex::new(Ring::new(capacity))), listener: None }
    }

    /// The same, with a listener that receives every item and never waits. It returns the moment of the engine's clock.
    pub(crate) fn heard_by(self, listener: impl Fn(&DisplayItem) -> u64 + Send + Sync + 'static) -> Self {
        Self { listener: Some(Arc::new(listener)), ..self }
    }

    /// The handle of one attempt.
    pub(crate) fn display(&self, step: Arc<str>, execution: ExecutionId, attempt: u32) -> Display {
        Display { hub: self.clone(), step, execution, attempt, stage: Arc::default() }
    }

    /// A viewer of this run, which begins behind this position, or with the oldest retained item.
    pub(crate) fn subscribe(
        &self,
        after: Option<DisplayPosition>,
        run: Option<Arc<dyn Any + Send + Sync>>,
    ) -> DisplayStream {
        let cursor = Some(self.lock().subscribe(after));
        DisplayStream { cursor, hub: self.clone(), position: None, _run: run }
    }

    /// See [`Shown::seal`].
    fn seal(&self) {
        self.lock().sealed = true;
    }

    /// See [`Shown::close`].
    fn close(&self, status: RunStatus, left: bool) {
        let mut made_room = Vec::new();
        let mut ring = self.lock();
        let asked = if ring.is_open() { ring.asked.take() } else { None };
        let asked: Vec<_> = asked.into_iter().flat_map(|asked| asked.drop_all()).collect();
        made_room.extend(asked.iter().map(|item| ring.push(item.clone(), None, 0)));
        let (wakers, above) = (ring.close(status), ring.forward.clone());
        drop(ring);
        for (dropped, wakers) in made_room {
            finish(dropped, wakers);
        }
        wakers.into_iter().for_each(Waker::wake);
        // The runs below may continue, and tell the runs above themselves.
        let own = asked.iter().filter(|item| matches!(item, DisplayItem::Closed { .. }));
        for (item, above) in own.zip(std::iter::repeat(above.filter(|_| !left))) {
            let Some(above) = above else { break };
            above.display().hub.tell(above.of_child(item));
        }
    }

    /// Tells the viewers of this run and of the runs above of a request, each display once. The request is no part of an
    /// attempt, so neither seals nor retractions concern it. Observers know it from the log.
    pub(crate) fn tell(&self, item: DisplayItem) {
        let mut next = Some((self.clone(), item));
        while let Some((hub, item)) = next.take() {
            let mut ring = hub.lock();
            let told =
                if ring.is_open() { ring.asked.get_or_insert_default().take(item.clone()) } else { None };
            let pushed = told.map(|item| ring.push(item, None, 0));
            let forward = ring.forward.clone();
            drop(ring);
            if let Some((dropped, wakers)) = pushed {
                finish(dropped, wakers);
            }
            next = forward.map(|forward| (forward.display().hub.clone(), forward.of_child(&item)));
        }
    }

    /// The requests of this run that its display, or one above, has as open.
    pub(crate) fn asked(&self, run: &RunId) -> BTreeSet<Seq> {
        let (mut asked, mut own) = (BTreeSet::new(), None);
        let mut next = Some(self.clone());
        while let Some(hub) = next.take() {
            let ring = hub.lock();
            asked.extend(ring.asked.iter().flat_map(|asked| asked.of(own)));
            next = ring.forward.as_ref().map(|forward| forward.display().hub.clone());
            own = Some(run);
        }
        asked
    }

    /// Shows an event that came from outside.
    pub(crate) fn receive(&self, event: AnyEvent) {
        self.publish_if(DisplayItem::Received { event }, None, |_| Some(None), &mut finish);
    }

    /// Also shows everything to the parent's viewers: retained items, and later ones. The run tells its requests anew. Items that another forward of the
    /// same child has shown there are not repeated.
    pub(crate) fn forward(&self, to: Forward) {
        let to = Arc::new(to);
        let mut made_room = Vec::new();
        let mut ring = self.lock();
        let before = ring.forward.replace(Arc::clone(&to));
        if let Some(before) = before {
            drop(ring);
            return to.answers_for(&before);
        }
        // Under the lock of this hub, so that no later item overtakes a retained one. Locks are taken from the child
        // upwards only. Foreign code waits for the end of the lock.
        for (item, since) in ring.retained() {
            if item.is_of_request() {
                continue;
            }
            let passes = |above: &Ring| to.display().passes_on(above).then_some(since);
            let mut later = |dropped, wakers| made_room.push((dropped, wakers));
            to.display().hub.publish_if(to.of_child(&item), Some(&to.display().stage), passes, &mut later);
        }
        drop(ring);
        for (dropped, wakers) in made_room {
            finish(dropped, wakers);
        }
    }

    /// Shows an item to the viewers of this run and of the runs above, in a loop, because runs may nest deeply.
    /// `wanted` decides for this run, and says for a retraction since when the attempt has shown items. `covered_by` is
    /// the attempt whose retraction covers the item: no run above shows the item after that retraction.
    fn publish_if(
        &self,
        item: DisplayItem,
        covered_by: Option<&Arc<Stage>>,
        wanted: impl FnOnce(&Ring) -> Option<Since>,
        finish: &mut impl FnMut(Option<DisplayItem>, Vec<Waker>),
    ) {
        let Some((since, mut next)) = self.publish_here(item, wanted, finish) else { return };
        let mut covered_by: Vec<Arc<Stage>> = next.iter().filter_map(|_| covered_by.cloned()).collect();
        while let Some((forward, item)) = next.take() {
            let above = forward.display();
            let wanted = |ring: &Ring| {
                let counts = covered_by.iter().all(|attempt| !attempt.is_over()) && above.passes_on(ring);
                counts.then_some(since)
            };
            let published = above.hub.publish_here(forward.of_child(&item), wanted, finish);
            next = published.and_then(|(_, next)| next);
            covered_by.push(Arc::clone(&above.stage));
        }
    }

    /// Decides, publishes and calls the listener under the lock, so that observers see the order of viewers. `finish`
    /// gets the item that made room and the wakers, after the lock. Returns where the item goes next.
    fn publish_here(
        &self,
        item: DisplayItem,
        wanted: impl FnOnce(&Ring) -> Option<Since>,
        finish: &mut impl FnMut(Option<DisplayItem>, Vec<Waker>),
    ) -> Option<(Since, Option<Onward>)> {
        let mut ring = self.lock();
        let since = if ring.is_open() { wanted(&ring) } else { None };
        let Some(since) = since else {
            // After the lock, because the item is foreign code.
            drop(ring);
            return None;
        };
        let next = ring.forward.clone().map(|forward| (forward, item.clone()));
        let now = self.listener.as_ref().map_or(0, |listener| listener(&item));
        let (dropped, wakers) = ring.push(item, since, now);
        drop(ring);
        finish(dropped, wakers);
        Some((since, next))
    }

    /// The ring is never left half-changed, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Since when the attempt of a retraction has shown items. `None` for every other item.
type Since = Option<stage::Moment>;

/// Where an item goes next.
type Onward = (Arc<Forward>, DisplayItem);

/// Wakes viewers, and drops the item that made room. Both are foreign code, which runs without a lock.
fn finish(dropped: Option<DisplayItem>, wakers: Vec<Waker>) {
    wakers.into_iter().for_each(Waker::wake);
    drop(dropped);
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
    /// The place of the item returned last.
    position: Option<DisplayPosition>,
    /// The run, which lives as long as its viewers.
    _run: Option<Arc<dyn Any + Send + Sync>>,
}

impl DisplayStream {
    /// The position of the item returned last, for [`display_after`](crate::AnyRun::display_after).
    ///
    /// `None` before the first item, and behind a [`Missed`](DisplayItem::Missed) without a count.
    pub fn position(&self) -> Option<DisplayPosition> {
        self.position
    }
}

impl Stream for DisplayStream {
    type Item = DisplayItem;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<DisplayItem>> {
        let Self { hub, cursor, position, .. } = self.get_mut();
        let Some(place) = &*cursor else { return Poll::Ready(None) };
        let mut ring = hub.lock();
        // Bound, because items and wakers are foreign code and are dropped after the lock.
        let (item, _settled) = ring.poll(place, context.waker());
        if let Poll::Ready(item) = &item {
            *position = ring.position(place, item);
        }
        drop(ring);
        if let Poll::Ready(DisplayItem::Ended { .. }) = item {
            let _left = hub.lock().unsubscribe(place);
            *cursor = None;
        }
        item.map(Some)
    }
}

impl Drop for DisplayStream {
    fn drop(&mut self) {
        if let Some(cursor) = &self.cursor {
            let _left = self.hub.lock().unsubscribe(cursor);
        }
    }
}

impl fmt::Debug for DisplayStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DisplayStream").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use futures::{FutureExt as _, StreamExt as _};
    use serde::{Deserialize, Serialize};
    use static_assertions::assert_impl_all;

    use super::*;
    use crate::event::{NotStop, Roles};

    assert_impl_all!(Display: Send, Sync, Clone, fmt::Debug);
    assert_impl_all!(DisplayStream: Send, Unpin, fmt::Debug);

    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct Tick(pub(super) u32);

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

    pub(super) fn text(item: &DisplayItem) -> String {
        match item {
            DisplayItem::Shown { .. } => item.event::<Tick>().unwrap().0.to_string(),
            DisplayItem::Retracted { execution, attempt, .. } => format!("retracted {execution}/{attempt}"),
            DisplayItem::Received { .. } => format!("received {}", item.event::<Tick>().unwrap().0),
            DisplayItem::Child { item, .. } => format!("child {}", text(item)),
            DisplayItem::Missed { count: Some(count) } => format!("missed {count}"),
            DisplayItem::Missed { count: None } => "missed some".to_owned(),
            DisplayItem::Ended { status } => format!("{status:?}"),
            DisplayItem::Asked { request } => format!("asked {}", request.seq().0),
            DisplayItem::Closed { seq, how } => format!("{how:?} {}", seq.0),
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
        let mut viewer = hub.subscribe(None, None);
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
        assert_eq!(drain(&mut hub.subscribe(None, None)), "0 1 2");
    }

    #[test]
    fn a_viewer_receives_the_number_of_items_it_missed() {
        let hub = DisplayHub::new(3);
        let clock = display(&hub);
        show(&clock, 0..5);
        let mut viewer = hub.subscribe(None, None);
        assert_eq!(drain(&mut viewer), "missed 2 2 3 4");
        show(&clock, 5..9);
        assert_eq!(drain(&mut viewer), "missed 1 6 7 8");
    }

    // S63
    #[test]
    fn a_viewer_that_comes_back_continues_behind_its_position() {
        let hub = DisplayHub::new(3);
        let clock = display(&hub);
        let mut viewer = hub.subscribe(None, None);
        assert_eq!(viewer.position(), None);
        show(&clock, 0..2);
        let mut places = Vec::new();
        while let Some(Some(item)) = viewer.next().now_or_never() {
            places.push((text(&item), viewer.position().unwrap().index));
        }
        assert_eq!(places, [("0".to_owned(), 0), ("1".to_owned(), 1)]);
        let at = |index| Some(DisplayPosition { epoch: 0, index });
        assert_eq!(drain(&mut hub.subscribe(at(0), None)), "1");
        assert_eq!(drain(&mut hub.subscribe(at(1), None)), "");
        show(&clock, 2..6);
        let mut late = hub.subscribe(at(0), None);
        assert_eq!(text(&late.next().now_or_never().flatten().unwrap()), "missed 2");
        assert_eq!(late.position(), at(2), "the last of those that it missed");
        assert_eq!(drain(&mut late), "3 4 5");
        // Nothing comes twice, also for an index that no item has.
        for index in [5, 6, u64::MAX] {
            assert_eq!(drain(&mut hub.subscribe(at(index), None)), "");
        }
        hub.close(RunStatus::Completed, false);
        let mut last = hub.subscribe(at(5), None);
        assert_eq!(drain(&mut last), "Completed end");
        assert_eq!(last.position(), at(6));
        assert_eq!(
            drain(&mut hub.subscribe(last.position(), None)),
            "Completed end",
            "the end is told again"
        );
    }

    // S63
    #[test]
    fn a_viewer_of_another_epoch_hears_first_that_it_may_have_missed_something() {
        let shown = Shown::default();
        shown.begin_epoch(7);
        let hub = shown.hub(|| DisplayHub::new(2));
        // Without items the numbers may still change.
        shown.begin_epoch(9);
        let clock = display(&hub);
        show(&clock, 0..1);
        shown.begin_epoch(11);
        let at = |epoch, index| Some(DisplayPosition { epoch, index });
        for before in [at(0, 0), at(7, 0), at(11, 0), at(u64::MAX, u64::MAX)] {
            let mut viewer = hub.subscribe(before, None);
            assert_eq!(text(&viewer.next().now_or_never().flatten().unwrap()), "missed some");
            assert_eq!(viewer.position(), None);
            assert_eq!(drain(&mut viewer), "0");
            assert_eq!(viewer.position(), at(9, 0));
        }
        show(&clock, 1..4);
        assert_eq!(
            drain(&mut hub.subscribe(at(0, 0), None)),
            "missed some 2 3",
            "those of this epoch are among them"
        );
        assert!(at(0, 9) < at(9, 0));
    }

    // S25, S63
    #[test]
    fn a_viewer_that_came_back_receives_the_retraction_of_what_it_has_seen() {
        let hub = DisplayHub::new(2);
        let (clock, other) = (display(&hub), hub.display("other".into(), ExecutionId(8), 1));
        show(&clock, 0..1);
        let mut viewer = hub.subscribe(Some(DisplayPosition { epoch: 0, index: 0 }), None);
        clock.retract();
        show(&other, 1..4);
        assert_eq!(drain(&mut viewer), "retracted x7/1 missed 1 2 3");
    }

    #[test]
    fn two_viewers_read_at_their_own_speed() {
        let hub = DisplayHub::new(2);
        let clock = display(&hub);
        let (mut quick, mut slow) = (hub.subscribe(None, None), hub.subscribe(None, None));
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
        let mut viewer = hub.subscribe(None, None);
        show(&display(&hub), 0..2);
        hub.close(RunStatus::Completed, false);
        assert_eq!(drain(&mut viewer), "0 1 Completed end");
        assert_eq!(drain(&mut viewer), "end");
    }

    #[test]
    fn after_the_end_nothing_more_is_accepted() {
        let hub = DisplayHub::new(8);
        let clock = display(&hub);
        show(&clock, 0..1);
        hub.close(RunStatus::Failed, false);
        show(&clock, 1..2);
        clock.retract();
        hub.close(RunStatus::Completed, false);
        assert_eq!(drain(&mut hub.subscribe(None, None)), "0 Failed end");
    }

    #[test]
    fn a_waiting_viewer_is_woken_by_an_item_and_by_the_end() {
        let hub = DisplayHub::new(8);
        let (mut first, mut second) = (hub.subscribe(None, None), hub.subscribe(None, None));
        let wakes = [wait(&mut first), wait(&mut second)];
        show(&display(&hub), 0..2);
        assert!(wakes.iter().all(|wakes| wakes.0.load(Ordering::SeqCst) == 1));
        assert_eq!(drain(&mut first), "0 1");
        let woken = wait(&mut first);
        hub.close(RunStatus::Cancelled, false);
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(drain(&mut first), "Cancelled end");
    }

    #[test]
    fn a_viewer_polled_again_is_woken_through_its_latest_waker_only() {
        let hub = DisplayHub::new(8);
        let mut viewer = hub.subscribe(None, None);
        let (earlier, latest) = (wait(&mut viewer), wait(&mut viewer));
        show(&display(&hub), 0..1);
        assert_eq!((earlier.0.load(Ordering::SeqCst), latest.0.load(Ordering::SeqCst)), (0, 1));
    }

    #[test]
    fn a_viewer_that_is_dropped_leaves_nothing_behind() {
        let hub = DisplayHub::new(8);
        let mut viewer = hub.subscribe(None, None);
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
        let mut viewer = hub.subscribe(None, None);
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
        assert_eq!(drain(&mut hub.subscribe(None, None)), "");
    }

    // S25
    #[test]
    fn a_slow_viewer_gets_the_retraction_of_what_it_has_read_and_of_nothing_else() {
        let hub = DisplayHub::new(2);
        let [read, unread, kept] = [1, 2, 3].map(|id| hub.display("clock".into(), ExecutionId(id), 1));
        let mut viewer = hub.subscribe(None, None);
        show(&read, 0..1);
        show(&kept, 1..2);
        assert_eq!(drain(&mut viewer), "0 1");
        show(&unread, 2..4);
        unread.retract();
        read.retract();
        let mut late = hub.subscribe(None, None);
        show(&kept, 4..8);
        assert_eq!(drain(&mut viewer), "retracted x1/1 missed 5 6 7");
        assert_eq!(drain(&mut late), "missed 8 6 7");
        assert!(hub.lock().missed_retractions() == 0);
    }

    // S25
    #[test]
    fn retractions_are_retained_for_viewers_that_want_them_only() {
        let hub = DisplayHub::new(1);
        let (mut slow, mut leaves) = (hub.subscribe(None, None), hub.subscribe(None, None));
        let first = display(&hub);
        show(&first, 0..1);
        assert_eq!((drain(&mut slow), drain(&mut leaves)), ("0".into(), "0".into()));
        first.retract();
        // Neither viewer has read these attempts, however many there are.
        for tick in 1..100 {
            let next = display(&hub);
            next.show(Tick(tick));
            next.retract();
        }
        assert_eq!(hub.lock().missed_retractions(), 1);
        drop(leaves);
        assert_eq!(hub.lock().missed_retractions(), 1);
        assert_eq!(drain(&mut slow), "retracted x7/1 missed 197 retracted x7/1");
        assert_eq!(hub.lock().missed_retractions(), 0);
    }

    pub(super) fn child(number: u32) -> ChildRun {
        let parent = crate::id::ParentRun {
            run: "r".into(),
            step: "clock".into(),
            execution: ExecutionId(7),
            attempt: 1,
        };
        parent.child(format!("r/{number}").into(), "Child".into(), true)
    }

    // S25
    #[test]
    fn a_slow_viewer_of_the_parent_gets_the_retraction_of_what_a_child_has_shown() {
        let (parent, hub) = (DisplayHub::new(2), DisplayHub::new(8));
        hub.forward(Forward::new(display(&parent), child(1)));
        let mut viewer = parent.subscribe(None, None);
        let clock = display(&hub);
        show(&clock, 0..1);
        assert_eq!(drain(&mut viewer), "child 0");
        clock.retract();
        show(&hub.display("clock".into(), ExecutionId(7), 2), 1..5);
        assert_eq!(drain(&mut viewer), "child retracted x7/1 missed 2 child 3 child 4");
    }

    // S25
    #[test]
    fn nothing_is_shown_above_after_the_retraction_of_its_attempt() {
        let (parent, hub) = (DisplayHub::new(1 << 16), DisplayHub::new(8));
        hub.forward(Forward::new(display(&parent), child(1)));
        for attempt in 1..=200 {
            let clock = hub.display("clock".into(), ExecutionId(7), attempt);
            clock.show(Tick(0));
            // A thread of the attempt, as a client of a model has one, shows until it is stopped.
            let talks = clock.clone();
            let thread = std::thread::spawn(move || show(&talks, 1..50));
            clock.retract();
            thread.join().unwrap();
        }
        parent.close(RunStatus::Completed, false);
        let mut retracted = 0;
        for item in parent.subscribe(None, None).collect::<Vec<_>>().now_or_never().unwrap() {
            let DisplayItem::Child { item, .. } = item else { continue };
            match &*item {
                DisplayItem::Shown { attempt, .. } => assert_eq!(*attempt, retracted + 1),
                DisplayItem::Retracted { attempt, .. } => retracted = *attempt,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(retracted, 200);
    }

    fn asked(seq: u64) -> DisplayItem {
        let (event, asked_at) = (AnyEvent::new(Tick(0)), std::time::SystemTime::UNIX_EPOCH);
        DisplayItem::Asked { request: OpenRequest { seq: Seq(seq), event, asked_at, expires_at: None } }
    }

    fn closed(seq: u64) -> DisplayItem {
        DisplayItem::Closed { seq: Seq(seq), how: RequestEnd::Replied }
    }

    // S64
    #[test]
    fn a_request_is_told_once_and_closed_once_before_the_end() {
        let hub = DisplayHub::new(8);
        for item in [closed(1), asked(1), asked(1), asked(2), closed(1), closed(1)] {
            hub.tell(item);
        }
        hub.seal();
        hub.close(RunStatus::Completed, false);
        hub.tell(asked(3));
        assert_eq!(
            drain(&mut hub.subscribe(None, None)),
            "asked 1 asked 2 Replied 1 Dropped 2 Completed end"
        );
    }

    // S64
    #[test]
    fn a_child_that_is_left_to_another_process_keeps_its_requests_above() {
        let parent = DisplayHub::new(8);
        let first = DisplayHub::new(8);
        first.forward(Forward::new(display(&parent), child(1)));
        first.tell(asked(1));
        first.tell(asked(2));
        first.close(RunStatus::Cancelled, true);
        assert_eq!(
            drain(&mut first.subscribe(None, None)),
            "asked 1 asked 2 Dropped 1 Dropped 2 Cancelled end"
        );
        let again = DisplayHub::new(8);
        again.tell(asked(1));
        again.forward(Forward::new(display(&parent), child(1)));
        assert!(again.asked(&"r/1".into()).into_iter().eq([Seq(1), Seq(2)]));
        for item in [asked(1), closed(2), closed(1)] {
            again.tell(item);
        }
        let mut viewer = parent.subscribe(None, None);
        assert_eq!(drain(&mut viewer), "child asked 1 child asked 2 child Replied 2 child Replied 1");
        again.tell(asked(3));
        again.close(RunStatus::Failed, false);
        assert_eq!(drain(&mut viewer), "child asked 3 child Dropped 3");
    }

    // S25, S64
    #[test]
    fn no_retraction_covers_a_request() {
        let (parent, hub) = (DisplayHub::new(8), DisplayHub::new(8));
        let clock = display(&parent);
        hub.forward(Forward::new(clock.clone(), child(1)));
        hub.tell(asked(1));
        show(&clock, 0..1);
        clock.retract();
        hub.tell(closed(1));
        let items: Vec<_> = parent.subscribe(None, None).take(4).collect::<Vec<_>>().now_or_never().unwrap();
        let covered: Vec<_> = items.iter().map(|item| items[2].retracts(item)).collect();
        assert_eq!(
            items.iter().map(text).collect::<Vec<_>>().join(" "),
            "child asked 1 0 retracted x7/1 child Replied 1"
        );
        assert_eq!(covered, [false, true, false, false]);
    }

    // S28
    #[test]
    fn a_hub_that_is_made_late_is_as_one_that_was_there() {
        let shown = Shown::default();
        let hub = || shown.hub(|| DisplayHub::new(8));
        let mut early = hub().subscribe(None, None);
        show(&display(&hub()), 0..1);
        assert_eq!(drain(&mut early), "0");
        let late = Shown::default();
        late.seal();
        show(&display(&late.hub(|| DisplayHub::new(8))), 0..1);
        assert_eq!(drain(&mut late.hub(|| DisplayHub::new(8)).subscribe(None, None)), "");
        let late = Shown::default();
        late.close(RunStatus::Stalled, false);
        late.close(RunStatus::Completed, false);
        assert_eq!(drain(&mut late.hub(|| DisplayHub::new(8)).subscribe(None, None)), "Stalled end");
    }

    #[test]
    fn a_hub_that_shows_nothing_holds_no_buffer() {
        assert!(std::mem::size_of::<Ring>() <= 128);
        assert_eq!(format!("{:?}", DisplayHub::new(8)), "DisplayHub(Ring { retained: 0, dropped: 0, .. })");
    }

    #[tokio::test]
    async fn another_thread_can_show() {
        let hub = DisplayHub::new(1000);
        let viewer = hub.subscribe(None, None);
        let thread = std::thread::spawn(move || {
            show(&display(&hub), 0..500);
            hub.close(RunStatus::Completed, false);
        });
        let shown: Vec<_> = viewer.map(|item| text(&item)).collect().await;
        thread.join().unwrap();
        assert_eq!((shown.len(), &*shown[499], &*shown[500]), (501, "499", "Completed"));
    }
}
