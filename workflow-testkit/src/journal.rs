//! What steps did, in order, as the calls themselves see it: reports know times, which are not the same each time,
//! and names of events, not events.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use workflow_core::{AnyEvent, Emitted, ExecutionId, Middleware, Next, RunId, StepCall, StepError};

use crate::recording::Recording;

/// How often one call of a step is polled before its scenario is given up: it may go on for ever.
const POLLS: u32 = 100_000;

/// What steps did. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal {
    entries: Arc<Mutex<Entries>>,
    recording: Recording,
}

#[derive(Debug, Default)]
struct Entries {
    /// How many beginnings and ends there were.
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
    /// None while it runs.
    pub(crate) ended: Option<u64>,
    /// What it wants to leave in the log.
    pub(crate) emitted: Vec<AnyEvent>,
}

impl Journal {
    /// What else was seen of the run.
    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Every call so far, in the order in which they ended; those that have not come last.
    pub(crate) fn calls(&self) -> Vec<Called> {
        let mut calls = self.lock().calls.clone();
        calls.sort_by_key(|call| call.ended.unwrap_or(u64::MAX));
        calls
    }

    /// How often the step was executed so far, whatever the number of attempts.
    pub(crate) fn executions(&self, step: &str) -> u64 {
        let entries = self.lock();
        let calls = entries.calls.iter().filter(|call| &*call.step == step);
        calls.map(|call| call.execution).collect::<HashSet<_>>().len() as u64
    }

    /// The step that was polled so often that it may go on for ever, in a sentence.
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

    /// Nothing in here is ever left half-changed.
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

/// A call that has not ended; it ends when this is dropped, however that comes.
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

/// Keeps the journal of a run: stands around everything else. What its child runs do is for their own reports, but
/// they may go on for ever too.
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
