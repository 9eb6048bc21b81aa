//! Decides when the store of a killed process confirms its writes, and holds everything that waits until the run is
//! idle. The journals themselves are in `store`.

use std::collections::VecDeque;
use std::fmt;
use std::future::pending;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::store::StoreFuture;
use workflow_core::{RunId, Seq, StepError};

use super::store::{CrashStore, Lot};

/// The times at which the store of [`crash_everywhere`](crate::crash_everywhere()) confirms writes.
///
/// A run has one write under way at a time, and batches that arrive meanwhile share the next one. So the times of
/// confirmations decide how batches are merged into writes, and at which points a crash can cut off a run.
/// [`CrashEverywhere`](crate::CrashEverywhere) tries all of these unless
/// [`confirming`](crate::CrashEverywhere::confirming) names some.
///
/// No way of confirming takes virtual time: a late confirmation comes before the clock jumps to the next timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Confirms {
    /// Each write at once. Batches that arrive at the same time share a write.
    #[default]
    AtOnce,
    /// Each write at once, and steps complete one at a time, each when the run is idle. So each completion has its own
    /// write.
    OneByOne,
    /// Late: a write is confirmed when the run is idle, the oldest first, so that as many batches as possible share the
    /// next write.
    Late,
    /// Late, and the writes of the scenario's run after those of all other runs, such as its child runs.
    OthersFirst,
    /// Late, and the writes of the scenario's run before those of all other runs.
    OthersLast,
}

impl Confirms {
    /// All of them, in the order in which they are tried.
    pub const ALL: &[Self] = &[Self::AtOnce, Self::OneByOne, Self::Late, Self::OthersFirst, Self::OthersLast];

    /// Whether writes wait to be confirmed.
    pub(super) fn is_late(self) -> bool {
        matches!(self, Self::Late | Self::OthersFirst | Self::OthersLast)
    }

    /// Whether this way differs only for scenarios with several runs.
    pub(super) fn is_about_others(self) -> bool {
        matches!(self, Self::OthersFirst | Self::OthersLast)
    }
}

impl fmt::Display for Confirms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtOnce => "the store confirms each write at once",
            Self::OneByOne => "the store confirms each write at once, and steps complete one by one",
            Self::Late => "the store confirms late, the oldest write first",
            Self::OthersFirst => "the store confirms late, the writes of other runs first",
            Self::OthersLast => "the store confirms late, the writes of other runs last",
        })
    }
}

/// An entry that waits until the run is idle.
#[derive(Debug)]
pub(super) struct Held {
    run: RunId,
    /// The position up to which this write confirms its run's log; `None` for a write without events, and for anything
    /// else.
    until: Option<Seq>,
    /// The fate of the write if the store goes down with it.
    lot: Option<Lot>,
    tell: oneshot::Sender<()>,
}

/// The waiting entries, oldest first.
#[derive(Debug, Default)]
pub(super) struct Turns {
    held: VecDeque<Held>,
    /// The scenario's run.
    own: Option<RunId>,
    /// The number of calls in progress on other threads; meanwhile the process only looks idle.
    pub(super) under_way: u32,
}

/// The entry that had its turn.
pub(super) enum Turn {
    /// The entry was confirmed or continues.
    Taken(RunId, Option<Seq>),
    /// The store goes down with it.
    Down(RunId),
}

impl Turns {
    pub(super) fn of(own: Option<RunId>) -> Self {
        Self { own, ..Self::default() }
    }

    /// The number of waiting entries, including dropped ones.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing waits and the store is not about to go down.
    pub(super) fn is_empty(&self) -> bool {
        self.held.iter().all(|held| held.lot.is_none() && held.tell.is_closed())
    }

    /// Whether an entry of the run waits.
    pub(super) fn has(&self, run: &RunId) -> bool {
        self.held.iter().any(|held| held.run == *run)
    }

    /// Appends an entry to the queue.
    fn hold(&mut self, run: &RunId, until: Option<Seq>, lot: Option<Lot>) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        self.held.push_back(Held { run: run.clone(), until, lot, tell });
        told
    }

    /// Gives the next entry its turn; `None` if nothing waits, or a call is in progress.
    pub(super) fn next(&mut self, confirms: Confirms) -> Option<Turn> {
        if self.under_way > 0 {
            return None;
        }
        loop {
            self.held.retain(|held| held.lot.is_some() || !held.tell.is_closed());
            let of_own = |held: &Held| Some(&held.run) == self.own.as_ref();
            let preferred = match confirms {
                Confirms::OthersFirst => self.held.iter().position(|held| !of_own(held)),
                Confirms::OthersLast => self.held.iter().position(of_own),
                _ => None,
            };
            let Held { run, until, lot, tell } = self.held.remove(preferred.unwrap_or(0))?;
            if lot.is_some() {
                return Some(Turn::Down(run));
            }
            if tell.send(()).is_ok() {
                return Some(Turn::Taken(run, until));
            }
        }
    }
}

impl CrashStore {
    /// Confirms a write, or goes down with it, after the store has kept or lost it: at once, or at its turn.
    pub(super) fn confirm(&self, run: &RunId, until: Option<Seq>, lot: Option<Lot>) -> StoreFuture<()> {
        if !self.confirms().is_late() {
            if lot.is_some() {
                self.go_down(run);
                return StoreFuture::new(pending());
            }
            self.note_confirmed(run, until);
            return StoreFuture::ready(Ok(()));
        }
        let told = self.turns(|turns| turns.hold(run, until, lot));
        StoreFuture::new(async move {
            if told.await.is_err() {
                pending::<()>().await;
            }
            Ok(())
        })
    }

    /// Marks a call as in progress on another thread until the result is dropped.
    pub(super) fn under_way(&self) -> UnderWay {
        self.turns(|turns| turns.under_way += 1);
        UnderWay(self.clone())
    }

    /// Waits until the run is idle.
    async fn turn(&self, run: &RunId) {
        let told = self.turns(|turns| turns.hold(run, None, None));
        // The receive fails only if the store is gone.
        let _ = told.await;
    }
}

/// A call in progress on another thread.
pub(super) struct UnderWay(CrashStore);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.turns(|turns| turns.under_way -= 1);
    }
}

/// Lets steps complete one at a time.
pub(super) struct OneByOne(pub(super) CrashStore);

impl Middleware for OneByOne {
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        let (store, run) = (self.0.clone(), call.run().clone());
        Box::pin(async move {
            let called = AssertUnwindSafe(next.call(call)).catch_unwind().await;
            store.turn(&run).await;
            called.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}
