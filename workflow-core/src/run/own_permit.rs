//! The permit of one run among the engine's running ones. Steps and preconditions need it; events enter the
//! log without it. A run without limits has none.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::admission::Admit;
use super::permits::{Permit, PermitRequest, RunLimit};
use crate::panics::locked;
use crate::report::WaitsFor;

/// The permit of a run, or its wait for one.
#[derive(Default)]
pub(super) struct OwnPermit {
    /// `None` for a run without limits, which waits for its inbox alone.
    places: Option<PermitRequest>,
    permit: Option<Permit>,
    /// The wait for a permit, while the run is queued.
    wait: Option<BoxFuture<'static, Permit>>,
    /// The messages of its inbox come first. `None` once they are applied.
    inbox: Option<Box<InboxWait>>,
}

/// The wait for the messages of an inbox.
struct InboxWait {
    gate: Arc<Gate>,
    wait: BoxFuture<'static, ()>,
    /// Whether the journal has that the run waits for an inbox that is away.
    is_recorded: bool,
}

/// What a run that was loaded waits for: its inbox was read. Each load has its own.
pub(super) struct Gate {
    /// Cancelled once the gate is open.
    opened: CancellationToken,
    /// The time behind which no timer fires; `None` once the gate is open.
    timers_until: Mutex<Option<SystemTime>>,
    /// Why the inbox cannot be read or settled now.
    problem: Mutex<Option<Arc<str>>>,
}

impl Gate {
    /// A closed gate, which holds all timers.
    pub(super) fn closed() -> Arc<Self> {
        let timers_until = Mutex::new(Some(SystemTime::UNIX_EPOCH));
        Arc::new(Self { opened: CancellationToken::new(), timers_until, problem: Mutex::default() })
    }

    /// Notes why the inbox cannot be read or settled now; `None` once it answers again.
    pub(super) fn note_problem(&self, problem: Option<Arc<str>>) {
        *locked(&self.problem) = problem;
    }

    fn problem(&self) -> Option<Arc<str>> {
        locked(&self.problem).clone()
    }

    /// Frees the timers that are due at this time or before, and no later one.
    pub(super) fn free_timers_until(&self, at: SystemTime) {
        if let Some(until) = &mut *locked(&self.timers_until) {
            *until = at;
        }
    }

    pub(super) fn open(&self) {
        *locked(&self.timers_until) = None;
        self.opened.cancel();
    }
}

impl OwnPermit {
    pub(super) fn new(places: PermitRequest, permit: Option<Permit>) -> Box<Self> {
        Box::new(Self { places: Some(places), permit, ..Self::default() })
    }

    /// Lets the run begin nothing until the gate of its inbox is open.
    pub(super) fn wait_for_inbox(&mut self, gate: Arc<Gate>) {
        let wait = Box::pin(gate.opened.clone().cancelled_owned());
        self.inbox = Some(Box::new(InboxWait { gate, wait, is_recorded: false }));
    }

    /// Whether the run waits for an inbox that is away.
    pub(super) fn lacks_inbox(&self) -> bool {
        let is_away = |inbox: &InboxWait| !inbox.gate.opened.is_cancelled() && inbox.gate.problem().is_some();
        self.inbox.as_deref().is_some_and(is_away)
    }

    /// Whether the inbox is being read: it is not away, and its messages may be about to come.
    pub(super) fn reads_inbox(&self) -> bool {
        let is_read = |inbox: &InboxWait| !inbox.gate.opened.is_cancelled() && inbox.gate.problem().is_none();
        self.inbox.as_deref().is_some_and(is_read)
    }

    /// Notes whether the journal has that the run waits for its inbox. Returns whether that is news.
    pub(super) fn note_recorded(&mut self, is_recorded: bool) -> bool {
        let noted =
            self.inbox.as_deref_mut().map(|inbox| std::mem::replace(&mut inbox.is_recorded, is_recorded));
        noted.is_some_and(|before| before != is_recorded)
    }

    /// The run has ended, and its clean-up waits for no message.
    pub(super) fn forget_inbox(&mut self) {
        self.inbox = None;
    }

    /// Whether a timer that is due then must not fire yet.
    pub(super) fn holds_timer(&self, due: SystemTime) -> bool {
        let holds = |inbox: &InboxWait| locked(&inbox.gate.timers_until).is_some_and(|until| due > until);
        self.inbox.as_deref().is_some_and(holds)
    }

    /// Whether the run has its permit, and nothing of its inbox comes before.
    pub(super) fn has_permit(&self) -> bool {
        (self.permit.is_some() || self.places.is_none()) && self.inbox.is_none()
    }

    /// Gives the permit to another run, and stops waiting for one.
    pub(super) fn give_up_permit(&mut self) {
        (self.permit, self.wait) = (None, None);
    }

    /// Takes a permit, unless the run has one. The waker wakes the run when it is its turn.
    pub(super) fn admit(&mut self, cx: &mut Context<'_>) -> Admit {
        let mut waited = false;
        if let Some(inbox) = &mut self.inbox {
            if inbox.wait.as_mut().poll(cx).is_pending() {
                return Admit::WaitsForPermit;
            }
            (self.inbox, waited) = (None, true);
        }
        let Some(places) = self.places.as_ref().filter(|_| self.permit.is_none()) else {
            return if waited { Admit::TookPermit } else { Admit::Now };
        };
        let wait = self.wait.get_or_insert_with(|| Box::pin(places.clone().take()));
        let Poll::Ready(permit) = wait.as_mut().poll(cx) else { return Admit::WaitsForPermit };
        (self.permit, self.wait) = (Some(permit), None);
        Admit::TookPermit
    }

    /// Its inbox, or the limit at which the run waits, if it does.
    pub(super) fn waits_for(&self) -> Option<WaitsFor> {
        if let Some(inbox) = &self.inbox {
            return Some(WaitsFor::Inbox { problem: inbox.gate.problem() });
        }
        let places = self.places.as_ref().filter(|_| self.wait.is_some())?;
        places.waits_at().map(RunLimit::waits_for)
    }
}

impl fmt::Debug for OwnPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnPermit").field("place", &self.permit).finish_non_exhaustive()
    }
}
