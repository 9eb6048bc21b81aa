//! Queries to an explored run. A run whose store has not confirmed a write answers nothing, so the last answer counts.

use std::cell::RefCell;
use std::pin::pin;
use std::time::SystemTime;

use futures::future::{Either, select};
use workflow_core::report::{OpenRequest, PendingTimer};
use workflow_core::{AnyRun, Seq};

use super::Stage;
use crate::VirtualClock;

/// The last answers of a run.
#[derive(Debug, Default)]
pub(super) struct Said {
    requests: RefCell<Vec<OpenRequest>>,
    timers: RefCell<Vec<PendingTimer>>,
}

impl Stage<'_> {
    /// The run's answer; `None` if the run must first wait for its store's confirmation.
    pub(super) async fn ask<T>(&self, question: impl AsyncFnOnce(AnyRun) -> T) -> Option<T> {
        let answer = question(self.handle.clone());
        if !self.gate.holds_a_write() {
            return Some(answer.await);
        }
        match select(pin!(answer), pin!(self.quiet.reached())).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => None,
        }
    }

    /// The open requests, from the run's last answer.
    pub(super) async fn requests(&self) -> Vec<OpenRequest> {
        // An error means that the run has ended.
        if let Some(requests) = self.ask(async |run| run.requests().await.unwrap_or_default()).await {
            *self.said.requests.borrow_mut() = requests;
        }
        self.said.requests.borrow().clone()
    }

    /// Removes a request that has got a reply, successful or not.
    pub(super) fn take_request(&self, seq: Seq) -> Option<OpenRequest> {
        let mut requests = self.said.requests.borrow_mut();
        let place = requests.iter().position(|request| request.seq() == seq)?;
        Some(requests.remove(place))
    }

    /// The pending timers that are not due, from the run's last answer.
    pub(super) async fn timers(&self) -> Vec<PendingTimer> {
        // An error means that the run has ended.
        if let Some(timers) = self.ask(async |run| run.timers().await.unwrap_or_default()).await {
            *self.said.timers.borrow_mut() = timers;
            return self.said.timers.borrow().clone();
        }
        let now = self.now();
        self.said.timers.borrow().iter().filter(|timer| timer.due > now).cloned().collect()
    }

    /// The time of the run's clock.
    fn now(&self) -> SystemTime {
        VirtualClock::beginning() + self.since.elapsed()
    }
}
