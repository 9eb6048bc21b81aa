//! One life of the process that drives a run: from its start or restart to the crash, or until the run has ended or
//! waits. Each life has a runtime of its own. Everything that survives a process is in the [`World`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::{Either, select};
use tokio::time::Instant;
use workflow_core::scheduler::Cause;
use workflow_core::store::{MemoryContexts, Record};
use workflow_core::{AnyRun, EngineBuilder};

use super::confirm::{Confirms, OneByOne};
use super::promises::Promises;
use super::store::CrashStore;
use crate::explore::panic_message;
use crate::patience::Patience;
use crate::script::{Performance, Planned, Script};
use crate::start::{Hooks, Past, Prepared};
use crate::subject::Tested;
use crate::test_run::Driven;
use crate::{Start, TestRun};

/// The time limit, in virtual time, for runs that outlive the scenario's run.
const AFTERWARDS: Duration = Duration::from_hours(24);

/// The state that survives a process: its store and the outside world.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) store: CrashStore,
    /// The contexts, which no crash loses.
    contexts: Arc<MemoryContexts>,
    /// The number of processes so far.
    lives: u32,
    /// The elapsed virtual time.
    elapsed: Duration,
    /// The times of planned replies.
    planned: Planned,
}

/// How a life ended.
#[derive(Debug)]
pub(super) enum End<T: Tested> {
    /// The store went down.
    Crashed,
    /// The run has ended, or waits for an event outside the script.
    Settled(Box<TestRun<T>>),
}

impl World {
    /// A world with an empty store.
    pub(super) fn with(store: CrashStore) -> Self {
        Self { store, ..Self::default() }
    }

    /// Lives until the store goes down or the run has settled.
    ///
    /// # Errors
    /// Describes why the run does not end, or cannot start.
    pub(super) fn live<T: Tested>(&mut self, mut start: Start<T>) -> Result<End<T>, String> {
        let records = self.store.records(&start.run_id());
        recall(&mut start, &records);
        let past = Past {
            is_there: self.lives > 0,
            contexts: Arc::clone(&self.contexts),
            elapsed: self.elapsed,
            is_begun: !records.is_empty(),
        };
        self.lives += 1;
        self.store.drives(start.run_id());
        let prepared = start.prepare(self.hooks(past));
        let patience = Arc::new(Patience::with(prepared.journal.recording().clone()));
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let parked = Arc::clone(&patience);
        let store = self.store.clone();
        let parked = move || {
            // Waiting entries have their turns before virtual time passes.
            if !store.next_turn() {
                parked.parked();
            }
        };
        builder.enable_all().start_paused(true).on_thread_park(parked);
        let runtime = builder.build().map_err(|error| format!("no runtime for a scenario: {error}"))?;
        let lived = || runtime.block_on(self.lived(prepared, patience));
        let lived = catch_unwind(AssertUnwindSafe(lived));
        // Computations of steps on other threads are abandoned.
        runtime.shutdown_background();
        let lived = lived.unwrap_or_else(|panic| Err(panic_message(panic)))?;
        self.store.premature().map_or(Ok(lived), Err)
    }

    /// The hooks of a process.
    fn hooks(&self, past: Past) -> Hooks {
        let store = self.store.clone();
        let engine = move |engine: EngineBuilder, contexts| {
            let engine = engine.contexts(contexts).observer(Promises(store.clone()));
            let one_by_one = store.confirms() == Confirms::OneByOne;
            if one_by_one { engine.middleware(OneByOne(store)) } else { engine }
        };
        Hooks { engine: Box::new(engine), past }
    }

    async fn lived<T: Tested>(
        &mut self,
        prepared: Prepared<T>,
        patience: Arc<Patience>,
    ) -> Result<End<T>, String> {
        let since = Instant::now();
        let store = self.store.clone();
        let planned = self.planned.clone();
        let driving = pin!(drive(prepared, since, patience, planned, &store));
        let end = match select(pin!(store.gone_down()), driving).await {
            Either::Left(_) => Ok(End::Crashed),
            Either::Right((settled, _)) => settled.map(|run| End::Settled(Box::new(run))),
        };
        self.elapsed = since.elapsed();
        end
    }
}

/// Drives a run until it has settled.
async fn drive<T: Tested>(
    prepared: Prepared<T>,
    since: Instant,
    patience: Arc<Patience>,
    planned: Planned,
    store: &CrashStore,
) -> Result<TestRun<T>, String> {
    let Prepared { started, script, journal, subject } = prepared;
    let handle = started.await.map_err(|failure| failure.to_string())?;
    let run = T::any(&handle).clone();
    settle(script, run.clone(), since, patience, planned).await?;
    if run.status().is_ended() {
        // A timeout means that they wait, or run for too long.
        let _ = tokio::time::timeout(AFTERWARDS, store.all_ended()).await;
    }
    store.all_confirmed().await;
    let driven = Driven { handle, subject, journal };
    TestRun::driven(driven, since.elapsed()).await.map_err(|failure| failure.to_string())
}

async fn settle(
    script: Script,
    run: AnyRun,
    since: Instant,
    patience: Arc<Patience>,
    planned: Planned,
) -> Result<(), String> {
    let mut performance = Performance::going_on(script, run, since, patience, planned);
    performance.settle(Duration::ZERO).await.map(drop).map_err(|given_up| given_up.to_string())
}

/// Removes from a scenario the actions that the run's journal already contains.
fn recall<T: Tested>(start: &mut Start<T>, records: &[Record]) {
    let Some(Record::RunStarted { at: began, .. }) = records.first() else { return };
    let after = |at: &SystemTime| at.duration_since(*began).unwrap_or_default();
    let mut is_first = true;
    for record in records {
        match record {
            // The first event is the start event.
            Record::EventLogged { cause: Cause::Outside, event, at, .. }
                if !std::mem::take(&mut is_first) =>
            {
                start.has_arrived(event.name(), after(at));
            }
            Record::RunPaused { by_parent: false, at, .. } => start.has_paused(after(at)),
            Record::RunUnpaused { by_parent: false, at, .. } => start.has_unpaused(after(at)),
            Record::RetryScheduled { step, .. } | Record::ExecutionFailed { step, .. } => {
                start.have_failed(step, 1);
            }
            _ => {}
        }
    }
}
