//! Open requests and pending timers: the events that the run itself asked for. Only the run has a clock. So a
//! timer is pending here until the run reports it with [`Fact::TimerFired`](super::Fact::TimerFired).
//!
//! Invariant: each open request counts once in the pending work of its scope, and so does each timer that
//! closes no request. A request and the timer that closes it end together, by the reply or by the timer.
//!
//! ```text
//!  Ask at 4, expires    requests {4, timer 1}   timers {1, request 4}   one count in the scope
//!    reply to 4   ─▶ close: both removed        the count passes to the reply
//!    timer 1      ─▶ fire:  both removed        the count passes to the expiry
//!    branch drops ─▶ take_in: both removed      the count is gone with the branch
//! ```
//!
//! Example: `ask` commits a request that expires. The reply arrives first, and the timer is removed with the
//! request. When the run later reports the timer, `fire` returns `None`, and nothing enters the log.

use std::collections::BTreeMap;

use super::by_scope::ByScope;
use super::counts::Counts;
use crate::id::{ExecutionId, ScopeId, Seq, TimerId};
use crate::table::EventIndex;

/// The open requests and pending timers of a run.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    /// The open requests by position, so that the oldest comes first.
    requests: BTreeMap<Seq, Box<OpenRequest>>,
    /// The pending timers by number, which is the order in which they were set.
    timers: BTreeMap<TimerId, TimerEntry>,
    /// The number of the newest timer. Never decreases, so a number names one timer for the whole run.
    last_timer: u64,
    /// The number of open requests by scope and type of the reply. Only [`Arrivals`](super::arrivals::Arrivals) asks.
    replies: Counts<(ScopeId, EventIndex)>,
    /// The open requests by scope. Only dropped branches ask.
    requests_in: ByScope,
    /// The timers that close no request, by scope. Only dropped branches ask.
    timers_in: ByScope,
    /// The changes to requests since the last [`take_changes`](Self::take_changes). `None` until a run has viewers.
    changes: Option<Box<Changes>>,
}

/// Changes to requests, oldest first. Boxed where it is kept: few runs have viewers.
#[derive(Debug, Default)]
struct Changes(Vec<RequestChange>);

/// A request opened, or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestChange {
    Opened(Seq),
    Replied(Seq),
    Expired(Seq),
    Dropped(Seq),
}

/// A timer of a batch, with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerEntry {
    /// The number of the timer, unique in a run.
    pub timer: TimerId,
    /// The execution that set the timer.
    pub execution: ExecutionId,
    /// The scope that the event will belong to. The timer keeps the scope open.
    pub scope: ScopeId,
    /// The type of the event that enters the log when the timer fires.
    pub event: EventIndex,
    /// The request that the timer closes; `None` for a timer of its own.
    pub request: Option<Seq>,
}

/// A request without a reply, which keeps its scope open (S47).
#[derive(Debug)]
pub(super) struct OpenRequest {
    /// The scope of the request, to which its reply will belong.
    pub(super) scope: ScopeId,
    /// The type of the request.
    pub(super) event: EventIndex,
    /// The type of the reply that closes the request.
    pub(super) reply: EventIndex,
    /// The timer that closes the request; `None` if it does not expire. Set right after the request opens, by the same
    /// batch.
    timer: Option<TimerId>,
}

/// The requests and timers of some scopes.
#[derive(Debug, Default)]
pub(super) struct Taken {
    requests: Vec<(Seq, Box<OpenRequest>)>,
    timers: Vec<TimerEntry>,
}

/// The requests of a suspended run, which has no timers.
#[derive(Debug)]
pub(super) struct SuspendedRequests {
    /// No request has a timer, since a run with timers is not suspended.
    requests: Box<[(Seq, OpenRequest)]>,
    /// Continues the numbering after the restore.
    last_timer: u64,
}

impl OpenRequest {
    pub(super) fn new(scope: ScopeId, event: EventIndex, reply: EventIndex) -> Self {
        Self { scope, event, reply, timer: None }
    }
}

impl Awaited {
    /// The open requests, oldest first.
    pub(super) fn requests(&self) -> impl ExactSizeIterator<Item = (Seq, &OpenRequest)> {
        self.requests.iter().map(|(seq, request)| (*seq, &**request))
    }

    /// Opens the request at this position.
    pub(super) fn open(&mut self, seq: Seq, request: OpenRequest) {
        self.replies.add((request.scope, request.reply));
        self.requests_in.add(request.scope, seq.0);
        self.requests.insert(seq, Box::new(request));
        self.note(RequestChange::Opened(seq));
    }

    /// Notes each change to a request from here on.
    pub(crate) fn note_changes(&mut self) {
        self.changes = Some(Box::default());
    }

    /// The changes to requests since the last call; `None` if they are not noted.
    pub(crate) fn take_changes(&mut self) -> Option<Vec<RequestChange>> {
        self.changes.as_mut().map(|changes| std::mem::take(&mut changes.0))
    }

    fn note(&mut self, change: RequestChange) {
        if let Some(changes) = &mut self.changes {
            changes.0.push(change);
        }
    }

    /// Whether the request is open.
    pub(crate) fn is_open(&self, request: Seq) -> bool {
        self.requests.contains_key(&request)
    }

    /// The timer that closes an open request, if it expires.
    pub(crate) fn expiry(&self, request: Seq) -> Option<TimerId> {
        self.requests.get(&request)?.timer
    }

    /// Closes a request and removes its timer; `None` if the request is not open.
    pub(super) fn close(&mut self, request: Seq) -> Option<Box<OpenRequest>> {
        let open = self.take(request)?;
        self.note(RequestChange::Replied(request));
        if let Some(timer) = open.timer {
            self.timers.remove(&timer);
        }
        Some(open)
    }

    /// Closes a request and leaves its timer to the caller.
    fn take(&mut self, request: Seq) -> Option<Box<OpenRequest>> {
        let open = self.requests.remove(&request)?;
        self.replies.remove((open.scope, open.reply));
        self.requests_in.remove(open.scope, request.0);
        Some(open)
    }

    /// Whether a request of this scope waits for this reply.
    pub(super) fn awaits(&self, scope: ScopeId, reply: EventIndex) -> bool {
        self.replies.has((scope, reply), self.requests.values().map(|open| (open.scope, open.reply)))
    }

    /// The pending timers, in the order in which they were set.
    pub(super) fn timers(&self) -> impl ExactSizeIterator<Item = &TimerEntry> {
        self.timers.values()
    }

    /// The timer; `None` if it is not pending.
    pub(crate) fn timer(&self, timer: TimerId) -> Option<&TimerEntry> {
        self.timers.get(&timer)
    }

    /// The number of the last timer so far, pending or not; 0 before the first.
    pub(crate) fn last_timer(&self) -> TimerId {
        TimerId(self.last_timer)
    }

    /// Takes the number of the next timer.
    pub(super) fn number_timer(&mut self) -> TimerId {
        self.last_timer += 1;
        TimerId(self.last_timer)
    }

    /// Makes a timer pending and returns true. A timer whose request is closed already stays out: returns
    /// false.
    pub(super) fn set_timer(&mut self, entry: TimerEntry) -> bool {
        if let Some(request) = entry.request {
            let Some(open) = self.requests.get_mut(&request) else { return false };
            open.timer = Some(entry.timer);
        } else {
            self.timers_in.add(entry.scope, entry.timer.0);
        }
        self.timers.insert(entry.timer, entry);
        true
    }

    /// Fires a timer and closes its request, if any; `None` if the timer is not pending.
    pub(super) fn fire(&mut self, timer: TimerId) -> Option<TimerEntry> {
        let entry = self.timers.remove(&timer)?;
        match entry.request {
            Some(request) => {
                drop(self.take(request));
                self.note(RequestChange::Expired(request));
            }
            None => self.timers_in.remove(entry.scope, timer.0),
        }
        Some(entry)
    }

    /// The scopes of the open requests and of the timers that close none, once for each.
    pub(super) fn open_scopes(&self) -> impl Iterator<Item = ScopeId> {
        let timers = self.timers.values().filter(|timer| timer.request.is_none());
        self.requests.values().map(|open| open.scope).chain(timers.map(|timer| timer.scope))
    }

    /// Removes and returns the requests and timers of these scopes. O(log of all) for each, after the first time.
    pub(super) fn take_in(&mut self, scopes: &[ScopeId]) -> Taken {
        let mut taken = Taken::default();
        if !self.requests.is_empty() {
            let all = self.requests.iter().map(|(seq, open)| (open.scope, seq.0));
            for request in self.requests_in.take(scopes, all).into_iter().map(Seq) {
                let Some(open) = self.take(request) else { continue };
                self.note(RequestChange::Dropped(request));
                taken.timers.extend(open.timer.and_then(|timer| self.timers.remove(&timer)));
                taken.requests.push((request, open));
            }
        }
        if !self.timers.is_empty() {
            let all = self.timers.values().filter(|timer| timer.request.is_none());
            let all = all.map(|timer| (timer.scope, timer.timer.0));
            let timers = self.timers_in.take(scopes, all).into_iter().map(TimerId);
            taken.timers.extend(timers.filter_map(|timer| self.timers.remove(&timer)));
        }
        taken
    }

    /// Puts back what [`take_in`](Self::take_in) removed, as far as its scopes are open again.
    pub(super) fn put_back(&mut self, taken: Taken, is_open: impl Fn(ScopeId) -> bool) {
        let Taken { requests, timers } = taken;
        for (seq, open) in requests.into_iter().filter(|(_, open)| is_open(open.scope)) {
            self.replies.add((open.scope, open.reply));
            self.requests_in.add(open.scope, seq.0);
            self.requests.insert(seq, open);
            self.note(RequestChange::Opened(seq));
        }
        for timer in timers.into_iter().filter(|timer| is_open(timer.scope)) {
            if timer.request.is_none() {
                self.timers_in.add(timer.scope, timer.timer.0);
            }
            self.timers.insert(timer.timer, timer);
        }
    }

    pub(super) fn suspend(&mut self) -> SuspendedRequests {
        let Self { requests, last_timer, .. } = std::mem::take(self);
        let requests = requests.into_iter().map(|(seq, open)| (seq, *open)).collect();
        SuspendedRequests { requests, last_timer }
    }

    pub(super) fn restore(suspended: SuspendedRequests) -> Self {
        let SuspendedRequests { requests, last_timer } = suspended;
        let requests = requests.into_iter().map(|(seq, open)| (seq, Box::new(open))).collect();
        Self { requests, last_timer, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(number: u64, request: Option<Seq>) -> TimerEntry {
        let (execution, scope, event) = (ExecutionId(1), ScopeId::ROOT, EventIndex(0));
        TimerEntry { timer: TimerId(number), execution, scope, event, request }
    }

    fn with_request() -> Awaited {
        let mut awaited = Awaited::default();
        awaited.open(Seq(2), OpenRequest::new(ScopeId(1), EventIndex(0), EventIndex(1)));
        awaited
    }

    #[test]
    fn a_reply_removes_the_timer_of_its_request() {
        let mut awaited = with_request();
        assert!(awaited.set_timer(timer(1, Some(Seq(2)))));
        assert!(awaited.close(Seq(2)).is_some());
        assert!(awaited.timer(TimerId(1)).is_none() && awaited.fire(TimerId(1)).is_none());
    }

    #[test]
    fn a_timer_that_fires_closes_its_request_and_none_is_set_for_a_closed_one() {
        let mut awaited = with_request();
        assert!(awaited.set_timer(timer(1, Some(Seq(2)))));
        assert!(awaited.fire(TimerId(1)).is_some());
        assert_eq!(awaited.requests().len(), 0);
        assert!(!awaited.set_timer(timer(2, Some(Seq(2)))));
        assert_eq!(awaited.timers().len(), 0);
    }

    #[test]
    fn a_dropped_scope_takes_its_requests_and_timers_and_no_others() {
        let mut awaited = with_request();
        assert!(awaited.set_timer(timer(1, None)));
        let taken = awaited.take_in(&[ScopeId(1)]);
        assert_eq!((awaited.requests().len(), awaited.timers().len()), (0, 1));
        awaited.open(Seq(4), OpenRequest::new(ScopeId(2), EventIndex(0), EventIndex(1)));
        assert!(awaited.set_timer(timer(2, Some(Seq(4)))));
        awaited.take_in(&[ScopeId(1), ScopeId(2)]);
        assert_eq!((awaited.requests().len(), awaited.timers().len()), (0, 1));
        awaited.put_back(taken, |_| true);
        assert!(awaited.close(Seq(2)).is_some());
    }
}
