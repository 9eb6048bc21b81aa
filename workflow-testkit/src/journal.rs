//! Records what steps did, in order, from their calls. Reports do not fit: they contain times, which differ, and names
//! of events, not events.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::{AnyEvent, ExecutionId, RunId, StepError};

use crate::recording::Recording;

/// The number of polls of one step call after which its scenario fails: the call may be endless.
const POLLS: u32 = 100_000;

/// The record of step calls. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal {
    entries: Arc<Mutex<Entries>>,
    recording: Recording,
    is_drawn: bool,
}

#[derive(Debug, Default)]
struct Entries {
    /// The number of begun plus ended calls.
    moments: u64,
    calls: Vec<Called>,
    /// The step that was polled too often.
    endless: Option<Box<str>>,
}

/// One call of a step.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    pub(crate) step: Box<str>,
    pub(crate) execution: ExecutionId,
    pub(crate) began: u64,
    /// The order number of the call's end; `None` while it runs.
    pub(crate) ended: Option<u64>,
    /// The events that the call emits.
    pub(crate) emitted: Vec<AnyEvent>,
}

impl Journal {
    /// The record of a run whose failed assertions print its picture too, or do not.
    pub(crate) fn of(is_drawn: bool) -> Self {
        Self { is_drawn, ..Self::default() }
    }

    /// Whether a failed assertion prints the run's picture.
    pub(crate) fn is_drawn(&self) -> bool {
        self.is_drawn
    }

    /// The other observations of the run.
    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// All calls so far in the order of their ends; unfinished ones come last.
    pub(crate) fn calls(&self) -> Vec<Called> {
        let mut calls = self.lock().calls.clone();
        calls.sort_by_key(|call| call.ended.unwrap_or(u64::MAX));
        calls
    }

    /// The number of executions of the step so far, regardless of attempts.
    pub(crate) fn executions(&self, step: &str) -> u64 {
        let entries = self.lock();
        let calls = entries.calls.iter().filter(|call| &*call.step == step);
        calls.map(|call| call.execution).collect::<HashSet<_>>().len() as u64
    }

    /// A sentence about the step that was polled too often.
    pub(crate) fn endless(&self) -> Option<String> {
        let step = self.lock().endless.clone()?;
        Some(format!("the run does not end: one call of `{step}` was polled {POLLS} times"))
    }

    fn note_endless(&self, step: &str) -> StepError {
        self.lock().endless = Some(step.into());
        StepError::permanent(format!("it was polled {POLLS} times"))
    }

    fn begin(&self, call: &StepCall) -> Open {
        let mut entries = self.lock();
        let (place, began) = (entries.calls.len(), entries.moment());
        let (step, execution) = (call.step().into(), call.execution());
        entries.calls.push(Called { step, execution, began, ended: None, emitted: Vec::new() });
        Open { journal: self.clone(), place }
    }

    /// No code leaves the state half-changed.
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn moment(&mut self) -> u64 {
        self.moments += 1;
        self.moments
    }
}

/// An unfinished call; dropping this value ends it.
struct Open {
    journal: Journal,
    place: usize,
}

impl Open {
    fn committed(&self, emitted: &Emitted) {
        self.journal.lock().calls[self.place].emitted = emitted.events().cloned().collect();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut entries = self.journal.lock();
        let moment = entries.moment();
        entries.calls[self.place].ended = Some(moment);
    }
}

/// The outermost middleware, which records a run's calls. Child runs have their own reports, but are also checked for
/// endless calls.
pub(crate) struct Recorder {
    run: RunId,
    journal: Journal,
}

impl Recorder {
    pub(crate) fn new(run: RunId, journal: Journal) -> Self {
        Self { run, journal }
    }
}

impl Middleware for Recorder {
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        let open = (*call.run() == self.run).then(|| self.journal.begin(&call));
        let (journal, step) = (self.journal.clone(), call.step().into());
        Box::pin(Recorded { call: next.call(call), polls: 0, open, journal, step })
    }
}

/// A call that is being recorded.
struct Recorded {
    call: BoxFuture<'static, Result<Emitted, StepError>>,
    polls: u32,
    open: Option<Open>,
    journal: Journal,
    step: Box<str>,
}

impl Future for Recorded {
    type Output = Result<Emitted, StepError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.polls += 1;
        if self.polls > POLLS {
            return Poll::Ready(Err(self.journal.note_endless(&self.step)));
        }
        let polled = self.call.as_mut().poll(cx);
        if let (Poll::Ready(Ok(emitted)), Some(open)) = (&polled, &self.open) {
            open.committed(emitted);
        }
        polled
    }
}
