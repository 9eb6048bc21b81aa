//! A scenario that is ready to run, and the thread it runs on: with a runtime of its own, whose clock is virtual.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use workflow_core::{
    ContextScope, ContextStore as _, ContextValue, Engine, EngineBuilder, MemoryContexts, RunHandle, RunId,
    RunOptions, StartError, StartEvent, ThreadId, Workflow,
};

use crate::cast::Cast;
use crate::clock::VirtualClock;
use crate::journal::{Journal, Recorder};
use crate::script::Script;
use crate::stage::Stage;
use crate::{ScenarioOf, TestRun};

/// A scenario and the event it starts with. Awaiting it gives the [`TestRun`]; [`explore`](crate::explore()) runs it in
/// many orders.
///
/// The run has a thread, a tokio runtime and a virtual clock of its own: whenever nothing in it can go on, the clock
/// jumps to the next timer. So an hour of waiting takes no time, steps interleave in the same order each time, and
/// nothing depends on the runtime of the test. The run's engine goes by the same time, as a [`VirtualClock`] shows it.
///
/// Only what goes through tokio's clock is virtual. A step that waits for another thread, or for the network, is
/// idle as far as the clock can see, and timers run out meanwhile: put a stand-in in its place, or wait inside of
/// `tokio::task::spawn_blocking`, during which the clock stands still.
///
/// # Panics
/// Awaiting it panics, with the transcript and the explanation of the run, if the run does not end: if nothing happens
/// in it for a year of virtual time or for 1,000,000 jumps of its clock, if one call of a step is polled 100,000 times,
/// or if 10,000 events and replies were sent to it. It panics too if the engine cannot be built or the run cannot be started, and a panic of a reply's
/// closure goes on here. A step that computes for ever, or a precondition that never does but yield, is not noticed.
#[must_use = "a scenario runs when it is awaited"]
pub struct Start<W: Workflow> {
    scenario: ScenarioOf<W>,
    begin: Begin<W>,
}

/// Starts the run.
type Begin<W> =
    Box<dyn FnOnce(Engine, RunOptions) -> BoxFuture<'static, Result<RunHandle<W>, StartError>> + Send>;

/// A run that is about to begin, and what belongs to it.
pub(crate) struct Prepared<W: Workflow> {
    /// Starts the run, on the runtime that polls it.
    pub(crate) started: BoxFuture<'static, Result<RunHandle<W>, Failure>>,
    pub(crate) script: Script<W>,
    pub(crate) journal: Journal,
}

/// What else a scenario is run with.
pub(crate) struct Hooks {
    /// Is given the engine before the stand-ins stand around its steps, so that middleware that is added here stands
    /// around them, and the contexts with what the scenario has put there, for the engine to keep.
    pub(crate) engine: Box<dyn FnOnce(EngineBuilder, Arc<MemoryContexts>) -> EngineBuilder + Send>,
    /// What was there before, in a process that is gone.
    pub(crate) past: Past,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { engine: Box::new(EngineBuilder::contexts), past: Past::default() }
    }
}

/// What a process finds that is not the first one to drive its run.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// Whether there was a process before.
    pub(crate) is_there: bool,
    /// The contexts, which outlive each process.
    pub(crate) contexts: Arc<MemoryContexts>,
    /// How much virtual time has passed since the first process began.
    pub(crate) elapsed: Duration,
    /// Whether the engine's store has the run, so that it is gone on with instead of started.
    pub(crate) is_begun: bool,
}

impl<W: Workflow> Start<W> {
    pub(crate) fn new(scenario: ScenarioOf<W>, event: impl StartEvent) -> Self {
        let begin = move |engine: Engine, options| -> BoxFuture<'static, _> {
            Box::pin(async move { engine.start_with::<W>(event, options).await })
        };
        Self { scenario, begin: Box::new(begin) }
    }

    /// What stands in for the workflow's steps.
    pub(crate) fn cast(&self) -> &Cast {
        &self.scenario.cast
    }

    /// The run, as opposed to its child runs.
    pub(crate) fn run_id(&self) -> RunId {
        self.scenario.options.run_id().cloned().unwrap_or_else(|| RunId::new("scenario"))
    }

    /// So many calls of the step have failed already, in a process that is gone.
    pub(crate) fn have_failed(&mut self, step: &str, calls: u32) {
        self.scenario.cast.have_failed(step, calls);
    }

    /// This event has arrived already, so long after the run began.
    pub(crate) fn has_arrived(&mut self, event: &str, after: Duration) {
        self.scenario.script.has_arrived(event, after);
    }

    /// Prepares the run with something else around it.
    pub(crate) fn prepare(self, hooks: Hooks) -> Prepared<W> {
        let run = self.run_id();
        let Self { scenario, begin } = self;
        let ScenarioOf { engine, options, run_context, thread_context, script, cast } = scenario;
        let thread = options.thread_id().cloned().unwrap_or_else(|| ThreadId::new("scenario"));
        let journal = Journal::default();
        let engine = engine
            .middleware(Recorder::new(run.clone(), journal.clone()))
            .observer(journal.recording().observer(run.clone()));
        let (id, options) = (run.clone(), options.id(run.as_str()).thread(thread.as_str()));
        let cast = cast.of(run.clone());
        let seeds = [(ContextScope::Run(run), run_context), (ContextScope::Thread(thread), thread_context)];
        let Hooks { engine: change, past: Past { is_there, contexts, elapsed, is_begun } } = hooks;
        let started = async move {
            if !is_there {
                seed(&contexts, seeds).await;
            }
            let engine = change(engine, contexts).middleware(cast).clock(VirtualClock::new());
            let engine = engine.build().map_err(Failure::of)?;
            if !elapsed.is_zero() {
                tokio::time::advance(elapsed).await;
            }
            if is_begun {
                go_on(&engine, id).await
            } else {
                begin(engine, options).await.map_err(Failure::of)
            }
        };
        Prepared { started: Box::pin(started), script, journal }
    }

    /// Runs it. The future needs no runtime: whatever polls it will do.
    async fn run(self) -> Result<TestRun<W>, Failure> {
        let Prepared { started, script, journal } = self.prepare(Hooks::default());
        let (stage, handle) = Stage::open(script, journal.recording().clone(), started).await?;
        TestRun::settle(stage, handle, journal).await
    }
}

/// Goes on with the run, and with all others of the engine's store.
async fn go_on<W: Workflow>(engine: &Engine, run: RunId) -> Result<RunHandle<W>, Failure> {
    let run = engine.attach::<W>(run).await.map_err(Failure::of)?;
    let resumed = engine.resume_open_runs().await.map_err(Failure::of)?;
    match resumed.refused.first() {
        Some((_, error)) => Err(Failure::of(error)),
        None => Ok(run),
    }
}

async fn seed(contexts: &MemoryContexts, seeds: [(ContextScope, Vec<(String, ContextValue)>); 2]) {
    for (scope, values) in seeds {
        for (key, value) in values {
            // Memory takes everything.
            let _ = contexts.set(&scope, &key, Some(value)).await;
        }
    }
}

/// Why there is nothing to assert on, in full sentences.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<W: Workflow> IntoFuture for Start<W> {
    type Output = TestRun<W>;
    type IntoFuture = BoxFuture<'static, TestRun<W>>;

    fn into_future(self) -> BoxFuture<'static, TestRun<W>> {
        Box::pin(async move { self.run().await.unwrap_or_else(|failure| panic!("{failure}")) })
    }
}

impl<W: Workflow> fmt::Debug for Start<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start").field("scenario", &self.scenario).finish_non_exhaustive()
    }
}
