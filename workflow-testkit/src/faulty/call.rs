//! The calls of a faulty store, and the effect of each fault.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use workflow_core::store::{
    ContextStore, EngineId, EventStore, Inbox, Position, Record, Retention, RunQuery, StoreError,
    StoreFuture, StoredRun, Write,
};
use workflow_core::{RunId, RunStatus};

use super::{Fault, FaultyStore, StoreCall};

impl<S: EventStore> EventStore for FaultyStore<S> {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let store = &self.shared.store;
        match self.fault(StoreCall::Append, Some(run)) {
            Some(Fault::Conflict) => {
                StoreFuture::ready(Err(StoreError::Conflict { expected, found: expected.after(1) }))
            }
            Some(Fault::Corrupt) => corrupt(run, expected),
            Some(Fault::Torn(kept)) => match part(batch, kept) {
                Some(part) => store.append(run, expected, part),
                None => StoreFuture::ready(Ok(())),
            },
            fault => faulty(fault, || store.append(run, expected, batch)),
        }
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        match self.fault(StoreCall::Read, Some(run)) {
            Some(Fault::Corrupt) => corrupt(run, from),
            fault => faulty(fault, || self.shared.store.read(run, from, at_most)),
        }
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        faulty(self.fault(StoreCall::Runs, None), || self.shared.store.runs(query))
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        faulty(self.fault(StoreCall::Remove, Some(run)), || self.shared.store.remove(run))
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        faulty(self.fault(StoreCall::Retain, None), || self.shared.store.retain(kept))
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        faulty(self.fault(StoreCall::Lease, None), || self.shared.store.lease(engine, duration))
    }

    fn serialises(&self) -> bool {
        self.shared.store.serialises()
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        self.shared.store.contexts()
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.shared.store.inbox()
    }
}

/// A call with a fault that applies to every kind.
fn faulty<T: Send + Unpin + 'static>(
    fault: Option<Fault>,
    call: impl FnOnce() -> StoreFuture<T>,
) -> StoreFuture<T> {
    match fault {
        Some(Fault::Refused) => StoreFuture::ready(Err(StoreError::unavailable(OnPurpose::Refused))),
        Some(Fault::AnswerLost) => {
            let call = call();
            StoreFuture::new(async move {
                drop(call.await);
                Err(StoreError::unavailable(OnPurpose::AnswerLost))
            })
        }
        Some(Fault::Late(polls)) => {
            let call = call();
            StoreFuture::new(async move {
                let answer = call.await;
                pend(polls).await;
                answer
            })
        }
        _ => call(),
    }
}

fn corrupt<T>(run: &RunId, position: Position) -> StoreFuture<T> {
    StoreFuture::ready(Err(StoreError::corrupt(run, position, OnPurpose::Corrupt)))
}

/// The first records of a batch, never all; `None` for an empty batch.
fn part(mut batch: Write, kept: usize) -> Option<Write> {
    batch.records.truncate(kept.min(batch.records.len().saturating_sub(1)));
    batch.run.status = RunStatus::Running;
    (!batch.records.is_empty()).then_some(batch)
}

/// Returns pending this many times, and wakes its task each time.
async fn pend(mut polls: u32) {
    poll_fn(|cx| {
        if polls == 0 {
            return Poll::Ready(());
        }
        polls -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The source of an injected error.
#[derive(Debug)]
enum OnPurpose {
    Refused,
    AnswerLost,
    Corrupt,
}

impl fmt::Display for OnPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "the call was refused, on purpose",
            Self::AnswerLost => "the answer was lost, on purpose",
            Self::Corrupt => "it is damaged, on purpose",
        })
    }
}

impl Error for OnPurpose {}
