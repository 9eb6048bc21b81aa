//! The bounded buffer of a run's display: the retained items, the places of the viewers, and the waiting ones. It
//! neither locks nor wakes; its caller does both.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::{DisplayItem, Forward};
use crate::id::RunStatus;

/// The latest items of a run.
pub(super) struct Ring {
    /// At most `capacity`, oldest first. Grows with the items, so a run without items allocates nothing.
    items: VecDeque<DisplayItem>,
    capacity: usize,
    /// How many items were dropped to make room: the index of the oldest retained one.
    dropped: u64,
    /// Whether executions show nothing any more.
    pub(super) sealed: bool,
    /// The run's final status. No item is pushed after that.
    ended: Option<RunStatus>,
    /// The viewers that have read everything and wait, each at most once.
    waiting: Vec<(u64, Waker)>,
    viewers: u64,
    /// The display of the parent. It changes under the same lock as the items, so that each item goes there once.
    pub(super) forward: Option<Arc<Forward>>,
}

/// A viewer's place in a ring.
#[derive(Debug)]
pub(super) struct Cursor {
    viewer: u64,
    /// The index of the next item to read, from the run's first.
    next: u64,
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
            capacity: capacity.max(1),
            dropped: 0,
            sealed: false,
            ended: None,
            waiting: Vec::new(),
            viewers: 0,
            forward: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// The retained items, oldest first.
    pub(super) fn retained(&self) -> Vec<DisplayItem> {
        self.items.iter().cloned().collect()
    }

    /// Appends an item. Returns the item that made room for it, and the wakers to call.
    pub(super) fn push(&mut self, item: DisplayItem) -> (Option<DisplayItem>, Vec<Waker>) {
        debug_assert!(self.is_open(), "an item was pushed after the end");
        let oldest = if self.items.len() == self.capacity { self.items.pop_front() } else { None };
        self.dropped += u64::from(oldest.is_some());
        self.items.push_back(item);
        (oldest, self.take_wakers())
    }

    /// Ends the ring, unless it has ended. Returns the wakers to call.
    pub(super) fn close(&mut self, status: RunStatus) -> Vec<Waker> {
        self.ended.get_or_insert(status);
        self.take_wakers()
    }

    pub(super) fn subscribe(&mut self) -> Cursor {
        self.viewers += 1;
        Cursor { viewer: self.viewers, next: 0 }
    }

    pub(super) fn unsubscribe(&mut self, cursor: &Cursor) -> Option<Waker> {
        let place = self.waiting.iter().position(|(viewer, _)| *viewer == cursor.viewer)?;
        Some(self.waiting.swap_remove(place).1)
    }

    /// The viewer's next item: first the number it missed, then retained items, then the end.
    pub(super) fn poll(&mut self, cursor: &mut Cursor, waker: &Waker) -> Poll<DisplayItem> {
        let Some(item) = self.read(cursor) else {
            self.wait(cursor.viewer, waker);
            return Poll::Pending;
        };
        Poll::Ready(item)
    }

    fn read(&self, cursor: &mut Cursor) -> Option<DisplayItem> {
        if cursor.next < self.dropped {
            let count = self.dropped - cursor.next;
            cursor.next = self.dropped;
            return Some(DisplayItem::Missed { count });
        }
        let item = usize::try_from(cursor.next - self.dropped).ok().and_then(|place| self.items.get(place));
        cursor.next += u64::from(item.is_some());
        item.cloned().or_else(|| self.ended.map(|status| DisplayItem::Ended { status }))
    }

    fn wait(&mut self, viewer: u64, waker: &Waker) {
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
        DisplayItem::Missed { count: 0 }
    }

    #[test]
    fn a_ring_never_retains_more_than_its_capacity() {
        let mut ring = Ring::new(2);
        let made_room: Vec<_> = (0..5).map(|_| ring.push(item()).0.is_some()).collect();
        assert_eq!(made_room, [false, false, true, true, true]);
        assert_eq!((ring.items.len(), ring.dropped), (2, 3));
    }

    #[test]
    fn a_capacity_of_zero_retains_one() {
        let mut ring = Ring::new(0);
        ring.push(item());
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
