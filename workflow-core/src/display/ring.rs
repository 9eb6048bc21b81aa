//! The bounded buffer of a run's display: the retained items, the places of the viewers, and the waiting ones. It
//! neither locks nor wakes; its caller does both.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::asked::Asked;
use super::stage::Moment;
use super::{DisplayItem, DisplayPosition, Forward, Since};
use crate::id::{ExecutionId, RunStatus};

/// The latest items of a run.
pub(super) struct Ring {
    /// At most `capacity`, oldest first, each with the moment at which it was shown; 0 for requests, and where nobody asks
    /// for moments. Grows with the items, so a run without items allocates nothing.
    items: VecDeque<(u64, DisplayItem)>,
    capacity: u32,
    /// The number of this ring among those of the run (S63).
    epoch: u64,
    /// How many items were dropped to make room: the index of the oldest retained one.
    dropped: u64,
    /// Whether executions show nothing any more.
    pub(super) sealed: bool,
    /// The run's final status. No item is pushed after that.
    ended: Option<RunStatus>,
    /// The viewers that have read everything and wait, each at most once.
    waiting: Vec<(usize, Waker)>,
    /// How far each viewer has read. `None` where a viewer has left; the next one takes the place.
    viewers: Vec<Option<Progress>>,
    /// The retractions among the items and behind them. Created by the first one.
    retractions: Option<Box<Retractions>>,
    /// The display of the parent. It changes under the same lock as the items, so that each item goes there once.
    pub(super) forward: Option<Arc<Forward>>,
    /// The open requests that the viewers know. Created for the first one.
    pub(super) asked: Option<Box<Asked>>,
}

/// A viewer of a ring: its index among the viewers. It unsubscribes when it leaves.
#[derive(Debug)]
pub(super) struct Cursor(usize);

/// How far a viewer has read.
struct Progress {
    /// The index of the next item to read, from the run's first.
    next: u64,
    /// How many items it missed, beyond those already reported to it.
    missed: u64,
    /// Whether it came with a position of another epoch, and has not heard that it may have missed items.
    is_stale: bool,
    /// The moment of its latest item: attempts that began to show later are new to it.
    seen: Moment,
}

/// A viewer that has read an item of an attempt also gets the retraction, though the ring has dropped it. There are at
/// most as many such retractions per viewer as attempts were showing items when the viewer last read.
#[derive(Default)]
struct Retractions {
    /// The index of each retained retraction, and since when its attempt had shown items.
    retained: VecDeque<(u64, Moment)>,
    /// Retractions without a place among the items, which a viewer still has to read.
    missed: VecDeque<(u64, Moment, DisplayItem)>,
}

impl Progress {
    /// Whether the viewer may have read items of an attempt whose retraction, at this index, it has not read.
    fn wants(&self, index: u64, since: Moment) -> bool {
        self.next <= index && since <= self.seen
    }
}

impl Retractions {
    /// The item at this index makes room. If it is a retraction that a viewer wants, it stays here.
    fn dropped(&mut self, index: u64, item: &DisplayItem, viewers: &[Option<Progress>]) {
        let Some((_, since)) = self.retained.pop_front_if(|(retained, _)| *retained == index) else { return };
        if viewers.iter().flatten().any(|viewer| viewer.wants(index, since)) {
            self.missed.push_back((index, since, item.clone()));
        }
    }

    /// The next retraction that the viewer wants of those that are not among the items any more.
    fn next_for(&self, viewer: &Progress) -> Option<(u64, DisplayItem)> {
        let mut wanted = self.missed.iter().filter(|(index, since, _)| viewer.wants(*index, *since));
        wanted.next().map(|(index, _, item)| (*index, item.clone()))
    }

    /// Drops what no viewer wants any more. The caller drops the returned items without the lock.
    fn settle(&mut self, viewers: &[Option<Progress>]) -> Vec<DisplayItem> {
        let wanted = |index, since| viewers.iter().flatten().any(|viewer| viewer.wants(index, since));
        let mut settled = Vec::new();
        self.missed.retain(|(index, since, item)| {
            let stays = wanted(*index, *since);
            if !stays {
                settled.push(item.clone());
            }
            stays
        });
        settled
    }
}

impl Drop for Ring {
    /// Drops the displays above in a loop, because a recursive drop of deeply nested runs would overflow the stack.
    fn drop(&mut self) {
        let mut forward = self.forward.take();
        while let Some(mut above) = forward.and_then(Arc::into_inner).and_then(Forward::into_ring) {
            forward = above.forward.take();
        }
    }
}

impl Ring {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            items: VecDeque::new(),
            capacity: u32::try_from(capacity.max(1)).unwrap_or(u32::MAX),
            epoch: 0,
            dropped: 0,
            sealed: false,
            ended: None,
            waiting: Vec::new(),
            viewers: Vec::new(),
            retractions: None,
            forward: None,
            asked: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// The retained items, oldest first, each as it was pushed.
    pub(super) fn retained(&self) -> Vec<(DisplayItem, Since)> {
        let mut retractions = self.retractions.iter().flat_map(|all| &all.retained).peekable();
        let since = |index| retractions.next_if(|(at, _)| *at == index).map(|(_, since)| *since);
        (self.dropped..).map(since).zip(&self.items).map(|(since, (_, item))| (item.clone(), since)).collect()
    }

    /// When each attempt, or a child that it started, showed its latest retained item. Requests are no such items: whether
    /// they are here depends on viewers. O(items).
    pub(super) fn latest(&self) -> HashMap<(ExecutionId, u32), u64> {
        let shown = self.items.iter().filter(|(_, item)| !item.is_of_request());
        let shown = shown.filter_map(|(at, item)| match item {
            DisplayItem::Shown { execution, attempt, .. } => Some(((*execution, *attempt), *at)),
            DisplayItem::Child { path, .. } => {
                path.first().map(|child| ((child.execution, child.attempt), *at))
            }
            _ => None,
        });
        shown.collect()
    }

    /// Appends an item at this moment; `since` for a retraction. Returns the item that made room for it, and the wakers to
    /// call.
    pub(super) fn push(
        &mut self,
        item: DisplayItem,
        since: Since,
        now: u64,
    ) -> (Option<DisplayItem>, Vec<Waker>) {
        debug_assert!(self.is_open(), "an item was pushed after the end");
        let oldest = if self.items.len() == self.capacity as usize { self.items.pop_front() } else { None };
        if let Some((_, oldest)) = &oldest {
            if let Some(retractions) = &mut self.retractions {
                retractions.dropped(self.dropped, oldest, &self.viewers);
            }
            self.dropped += 1;
        }
        if let Some(since) = since {
            let index = self.end();
            self.retractions.get_or_insert_default().retained.push_back((index, since));
        }
        self.items.push_back((now, item));
        (oldest.map(|(_, oldest)| oldest), self.take_wakers())
    }

    /// Ends the ring, unless it has ended. Returns the wakers to call.
    pub(super) fn close(&mut self, status: RunStatus) -> Vec<Waker> {
        self.ended.get_or_insert(status);
        self.take_wakers()
    }

    /// Numbers the ring, unless an item has a position already.
    pub(super) fn begin_epoch(&mut self, epoch: u64) {
        if self.end() == 0 {
            self.epoch = epoch;
        }
    }

    /// The index of the next item.
    fn end(&self) -> u64 {
        self.dropped + self.items.len() as u64
    }

    /// Adds a viewer that has read everything up to this position.
    pub(super) fn subscribe(&mut self, after: Option<DisplayPosition>) -> Cursor {
        let here = after.filter(|position| position.epoch == self.epoch);
        let viewer = Some(Progress {
            next: here.map_or(0, |position| position.index.saturating_add(1).min(self.end())),
            missed: 0,
            is_stale: after.is_some() && here.is_none(),
            // It may have read items of every attempt so far, and gets their retractions.
            seen: if here.is_some() { Moment::now() } else { Moment::START },
        });
        let place = self.viewers.iter().position(Option::is_none).unwrap_or(self.viewers.len());
        match self.viewers.get_mut(place) {
            Some(free) => *free = viewer,
            None => self.viewers.push(viewer),
        }
        Cursor(place)
    }

    /// Removes a viewer. The caller drops what is returned without the lock.
    pub(super) fn unsubscribe(&mut self, cursor: &Cursor) -> (Option<Waker>, Vec<DisplayItem>) {
        self.viewers[cursor.0] = None;
        let settled = self.settle();
        let place = self.waiting.iter().position(|(viewer, _)| *viewer == cursor.0);
        (place.map(|place| self.waiting.swap_remove(place).1), settled)
    }

    /// The viewer's next item: first retractions of what it has read, then the number it missed, then retained items,
    /// then the end. The caller drops the other items without the lock.
    pub(super) fn poll(&mut self, cursor: &Cursor, waker: &Waker) -> (Poll<DisplayItem>, Vec<DisplayItem>) {
        let behind = self.viewers[cursor.0].as_ref().is_some_and(|viewer| viewer.next < self.dropped);
        let Some(item) = self.read(cursor.0) else {
            self.wait(cursor.0, waker);
            return (Poll::Pending, Vec::new());
        };
        (Poll::Ready(item), if behind { self.settle() } else { Vec::new() })
    }

    /// The position of the item that the viewer has just received; `None` if that is no place of this epoch.
    pub(super) fn position(&self, cursor: &Cursor, item: &DisplayItem) -> Option<DisplayPosition> {
        let next = self.viewers[cursor.0].as_ref()?.next;
        let index = match item {
            DisplayItem::Ended { .. } => next,
            DisplayItem::Missed { count: None } => return None,
            _ => next.checked_sub(1)?,
        };
        Some(DisplayPosition { epoch: self.epoch, index })
    }

    fn read(&mut self, viewer: usize) -> Option<DisplayItem> {
        let viewer = self.viewers[viewer].as_mut()?;
        if std::mem::take(&mut viewer.is_stale) {
            // Items of this epoch that are gone are among them.
            viewer.next = self.dropped;
            return Some(DisplayItem::Missed { count: None });
        }
        if viewer.next < self.dropped {
            let retraction = self.retractions.as_ref().and_then(|retractions| retractions.next_for(viewer));
            if let Some((index, item)) = retraction {
                viewer.missed += index - viewer.next;
                viewer.next = index + 1;
                return Some(item);
            }
            viewer.missed += self.dropped - viewer.next;
            viewer.next = self.dropped;
        }
        if viewer.missed > 0 {
            return Some(DisplayItem::Missed { count: Some(std::mem::take(&mut viewer.missed)) });
        }
        let item = usize::try_from(viewer.next - self.dropped).ok().and_then(|place| self.items.get(place));
        if item.is_some() {
            viewer.next += 1;
            viewer.seen = Moment::now();
        }
        item.map(|(_, item)| item.clone()).or_else(|| self.ended.map(|status| DisplayItem::Ended { status }))
    }

    /// How many retractions are retained beside the items.
    #[cfg(test)]
    pub(super) fn missed_retractions(&self) -> usize {
        self.retractions.as_ref().map_or(0, |retractions| retractions.missed.len())
    }

    fn settle(&mut self) -> Vec<DisplayItem> {
        let Some(retractions) = &mut self.retractions else { return Vec::new() };
        retractions.settle(&self.viewers)
    }

    fn wait(&mut self, viewer: usize, waker: &Waker) {
        match self.waiting.iter_mut().find(|(waiting, _)| *waiting == viewer) {
            Some((_, registered)) => registered.clone_from(waker),
            None => self.waiting.push((viewer, waker.clone())),
        }
    }

    fn take_wakers(&mut self) -> Vec<Waker> {
        self.waiting.drain(..).map(|(_, waker)| waker).collect()
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("retained", &self.items.len())
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item() -> DisplayItem {
        DisplayItem::Missed { count: Some(0) }
    }

    #[test]
    fn a_ring_never_retains_more_than_its_capacity() {
        let mut ring = Ring::new(2);
        let made_room: Vec<_> = (0..5).map(|_| ring.push(item(), None, 0).0.is_some()).collect();
        assert_eq!(made_room, [false, false, true, true, true]);
        assert_eq!((ring.items.len(), ring.dropped), (2, 3));
    }

    #[test]
    fn a_capacity_of_zero_retains_one() {
        let mut ring = Ring::new(0);
        ring.push(item(), None, 0);
        assert_eq!(ring.items.len(), 1);
    }

    #[test]
    fn nothing_is_allocated_before_the_first_item() {
        let ring = Ring::new(1024);
        assert_eq!((ring.items.capacity(), ring.waiting.capacity()), (0, 0));
    }

    #[test]
    fn only_the_first_end_counts() {
        let mut ring = Ring::new(2);
        ring.close(RunStatus::Stalled);
        ring.close(RunStatus::Completed);
        assert_eq!(ring.ended, Some(RunStatus::Stalled));
    }
}
