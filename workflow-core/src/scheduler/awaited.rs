//! What a run has asked for and may come: requests without a reply, and timers. When a timer is due, only a clock can
//! tell; here it is pending, and fires when that is told.

use std::collections::{BTreeMap, HashSet};

use super::counts::Counts;
use crate::id::{ExecutionId, ScopeId, Seq, TimerId};
use crate::table::EventIndex;

/// The open requests and the pending timers of a run.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    requests: BTreeMap<Seq, Box<OpenRequest>>,
    timers: BTreeMap<TimerId, TimerEntry>,
    last_timer: u64,
    /// The open requests by scope and reply.
    replies: Counts<(ScopeId, EventIndex)>,
}

/// A timer of a batch, with its place in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerEntry {
    /// Its number.
    pub timer: TimerId,
    /// The execution that sets it.
    pub execution: ExecutionId,
    /// The scope that its event will be of; it holds the scope open.
    pub scope: ScopeId,
    /// What enters the log when it fires.
    pub event: EventIndex,
    /// For one that closes a request: the request.
    pub request: Option<Seq>,
}

/// A request without a reply; it holds its scope open (S47).
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) scope: ScopeId,
    pub(super) event: EventIndex,
    pub(super) reply: EventIndex,
    /// The timer that closes it, if its time is limited.
    timer: Option<TimerId>,
}

/// The requests of a run that waits and has no timers.
#[derive(Debug)]
pub(super) struct SuspendedRequests {
    requests: Box<[(Seq, OpenRequest)]>,
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

    pub(super) fn open(&mut self, seq: Seq, request: OpenRequest) {
        self.replies.add((request.scope, request.reply));
        self.requests.insert(seq, Box::new(request));
    }

    /// Closes a request with its timer, if it is open.
    pub(super) fn close(&mut self, request: Seq) -> Option<Box<OpenRequest>> {
        let open = self.take(request)?;
        if let Some(timer) = open.timer {
            self.timers.remove(&timer);
        }
        Some(open)
    }

    fn take(&mut self, request: Seq) -> Option<Box<OpenRequest>> {
        let open = self.requests.remove(&request)?;
        self.replies.remove((open.scope, open.reply));
        Some(open)
    }

    /// Whether a request of this scope is open to which this is the reply.
    pub(super) fn awaits(&self, scope: ScopeId, reply: EventIndex) -> bool {
        self.replies.has((scope, reply), self.requests.values().map(|open| (open.scope, open.reply)))
    }

    /// The pending timers, in the order in which they were set.
    pub(super) fn timers(&self) -> impl ExactSizeIterator<Item = &TimerEntry> {
        self.timers.values()
    }

    /// The timer, while it is pending.
    pub(crate) fn timer(&self, timer: TimerId) -> Option<&TimerEntry> {
        self.timers.get(&timer)
    }

    pub(crate) fn last_timer(&self) -> TimerId {
        TimerId(self.last_timer)
    }

    pub(super) fn number_timer(&mut self) -> TimerId {
        self.last_timer += 1;
        TimerId(self.last_timer)
    }

    /// Makes a timer pending. One that closes a request is, only while the request is open: says whether it is.
    pub(super) fn set_timer(&mut self, entry: TimerEntry) -> bool {
        if let Some(request) = entry.request {
            let Some(open) = self.requests.get_mut(&request) else { return false };
            open.timer = Some(entry.timer);
        }
        self.timers.insert(entry.timer, entry);
        true
    }

    /// Fires a timer, if it is pending; the request that it closes is closed.
    pub(super) fn fire(&mut self, timer: TimerId) -> Option<TimerEntry> {
        let entry = self.timers.remove(&timer)?;
        if let Some(request) = entry.request {
            self.take(request);
        }
        Some(entry)
    }

    /// Drops the requests and timers of these scopes.
    pub(super) fn drop_in(&mut self, scopes: &HashSet<ScopeId>) {
        self.replies.forget();
        self.requests.retain(|_, request| !scopes.contains(&request.scope));
        self.timers.retain(|_, timer| !scopes.contains(&timer.scope));
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
    fn a_reply_takes_the_timer_of_its_request_with_it() {
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
        awaited.drop_in(&HashSet::from([ScopeId(1)]));
        assert_eq!((awaited.requests().len(), awaited.timers().len()), (0, 1));
    }
}
