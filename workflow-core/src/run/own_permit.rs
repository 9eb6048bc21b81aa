//! The permit of one run among the engine's running ones. Steps and preconditions need it; events enter the
//! log without it. A run without limits has none.

use std::fmt;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::admission::Admit;
use super::permits::{Permit, PermitRequest, RunLimit};

/// The permit of a run, or its wait for one.
pub(super) struct OwnPermit {
    places: PermitRequest,
    permit: Option<Permit>,
    /// The wait for a permit, while the run is queued.
    wait: Option<BoxFuture<'static, Permit>>,
}

impl OwnPermit {
    pub(super) fn new(places: PermitRequest, permit: Option<Permit>) -> Box<Self> {
        Box::new(Self { places, permit, wait: None })
    }

    /// Whether the run has its permit.
    pub(super) fn has_permit(&self) -> bool {
        self.permit.is_some()
    }

    /// Gives the permit to another run, and stops waiting for one.
    pub(super) fn give_up_permit(&mut self) {
        (self.permit, self.wait) = (None, None);
    }

    /// Takes a permit, unless the run has one. The waker wakes the run when it is its turn.
    pub(super) fn admit(&mut self, cx: &mut Context<'_>) -> Admit {
        if self.permit.is_some() {
            return Admit::Now;
        }
        let wait = self.wait.get_or_insert_with(|| Box::pin(self.places.clone().take()));
        let Poll::Ready(permit) = wait.as_mut().poll(cx) else { return Admit::WaitsForPermit };
        (self.permit, self.wait) = (Some(permit), None);
        Admit::TookPermit
    }

    /// The limit at which the run waits, if it does.
    pub(super) fn waits_at(&self) -> Option<&RunLimit> {
        self.wait.as_ref().and_then(|_| self.places.waits_at())
    }
}

impl fmt::Debug for OwnPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnPermit").field("place", &self.permit).finish_non_exhaustive()
    }
}
