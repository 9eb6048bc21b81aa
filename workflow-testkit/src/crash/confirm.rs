//! When the store of a process that is killed confirms its writes, and what waits for its turn until nothing else can go
//! on. The journals themselves are in `store`.

use std::collections::VecDeque;
use std::fmt;
use std::future::pending;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use workflow_core::{Emitted, Middleware, Next, RunId, Seq, StepCall, StepError, StoreFuture};

use super::store::{CrashStore, Lot};

/// When the store that [`crash_everywhere`](crate::crash_everywhere()) gives to an engine confirms its writes.
///
/// A run writes one thing at a time: the batches that come while a write is under way share the next one. So how batches
/// are merged into writes, and with that at which points a run can be cut off, depends on when the store confirms.
/// [`CrashEverywhere`](crate::CrashEverywhere) tries all of these unless
/// [`confirming`](crate::CrashEverywhere::confirming) names some.
///
/// No way of confirming takes virtual time: a late one comes before the clock jumps to the next timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Confirms {
    /// Each write at once. Batches that come at the same time share a write.
    #[default]
    AtOnce,
    /// Each write at once, and steps complete one at a time, each when nothing else can go on: so each completion has a
    /// write of its own.
    OneByOne,
    /// Late: a write is confirmed when nothing else can go on, the oldest first, so that as many batches as possible share
    /// the next one.
    Late,
    /// Late, and those of the scenario's run after those of all other runs, as its child runs.
    OthersFirst,
    /// Late, and those of the scenario's run before those of all other runs.
    OthersLast,
}

impl Confirms {
    /// All of them, in the order in which they are tried.
    pub const ALL: &[Self] = &[Self::AtOnce, Self::OneByOne, Self::Late, Self::OthersFirst, Self::OthersLast];

    /// Whether writes wait to be confirmed.
    pub(super) fn is_late(self) -> bool {
        matches!(self, Self::Late | Self::OthersFirst | Self::OthersLast)
    }

    /// Whether it makes a difference only where there are several runs.
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

/// What waits until nothing else can go on.
#[derive(Debug)]
pub(super) struct Held {
    run: RunId,
    /// How far its run's log is confirmed with it; none for what is not a write, and a write without events.
    until: Option<Seq>,
    /// What becomes of the write if the store goes down with it.
    lot: Option<Lot>,
    tell: oneshot::Sender<()>,
}

/// What waits, oldest first.
#[derive(Debug, Default)]
pub(super) struct Turns {
    held: VecDeque<Held>,
    /// The scenario's run.
    own: Option<RunId>,
    /// How many calls another thread works at, so that the process looks as if nothing in it could go on.
    pub(super) under_way: u32,
}

/// What had its turn.
pub(super) enum Turn {
    /// It is confirmed, or goes on.
    Taken(RunId, Option<Seq>),
    /// The store goes down with it.
    Down(RunId),
}

impl Turns {
    pub(super) fn of(own: Option<RunId>) -> Self {
        Self { own, ..Self::default() }
    }

    /// How many wait, those counted that were dropped since.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing waits, and the store is to go down with nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.held.iter().all(|held| held.lot.is_none() && held.tell.is_closed())
    }

    /// Whether something of the run waits.
    pub(super) fn has(&self, run: &RunId) -> bool {
        self.held.iter().any(|held| held.run == *run)
    }

    /// Waits behind what waits already.
    fn hold(&mut self, run: &RunId, until: Option<Seq>, lot: Option<Lot>) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        self.held.push_back(Held { run: run.clone(), until, lot, tell });
        told
    }

    /// The next one's turn; none if nothing waits, or something is under way.
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
    /// Confirms a write of which the store has what it is to have, or goes down with it: at once, or at its turn.
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

    /// Notes that another thread works at a call, until this is dropped.
    pub(super) fn under_way(&self) -> UnderWay {
        self.turns(|turns| turns.under_way += 1);
        UnderWay(self.clone())
    }

    /// Waits until nothing else can go on.
    async fn turn(&self, run: &RunId) {
        let told = self.turns(|turns| turns.hold(run, None, None));
        // An error says that there is no store any more.
        let _ = told.await;
    }
}

/// A call that another thread works at.
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
