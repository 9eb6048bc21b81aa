//! A scenario that is ready to run, and the thread it runs on, with its own runtime and virtual clock.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use workflow_core::store::{ContextScope, ContextStore as _, ContextValue, MemoryContexts};
use workflow_core::{Engine, EngineBuilder, RunId, RunOptions, StartError, StartEvent, ThreadId, Workflow};

use crate::cast::Cast;
use crate::clock::VirtualClock;
use crate::journal::{Journal, Recorder};
use crate::script::Script;
use crate::stage::Stage;
use crate::subject::{Runtime, Subject, Tested};
use crate::test_run::Driven;
use crate::{ScenarioOf, TestRun};

/// A scenario with its start event.
///
/// Await it for the [`TestRun`], or pass it to [`explore`](crate::explore()).
///
/// The run has its own thread, tokio runtime and virtual clock. Whenever the run is idle, the clock jumps to the next
/// timer. So waiting takes no time, steps interleave in the same order each time, and nothing depends on the runtime of
/// the test. The run's engine uses the same time, as a [`VirtualClock`].
///
/// Only tokio's clock is virtual. A step that waits for another thread or the network looks idle, so timers fire
/// meanwhile: replace it by a stand-in, or wait inside `tokio::task::spawn_blocking`, which stops the clock.
///
/// # Panics
/// Awaiting panics, with the transcript and the explanation of the run, if the run does not end: if nothing happens for
/// a year of virtual time or 1,000,000 jumps of the clock, if one call of a step is polled 100,000 times, or if the
/// script makes 10,000 sends and replies. It also panics if the engine cannot be built or the run cannot start, and it
/// resumes a panic of a reply's closure. It does not detect a step that computes endlessly or a precondition that only
/// yields.
#[must_use = "a scenario runs when it is awaited"]
pub struct Start<T: Tested> {
    scenario: ScenarioOf<T>,
    begin: Begin<T::Handle>,
}

/// Starts the run.
type Begin<H> = Box<dyn FnOnce(Engine, RunOptions) -> BoxFuture<'static, Result<H, StartError>> + Send>;

/// A prepared run with its parts.
pub(crate) struct Prepared<T: Tested> {
    /// Starts the run, on the runtime that polls it.
    pub(crate) started: BoxFuture<'static, Result<T::Handle, Failure>>,
    pub(crate) script: Script,
    pub(crate) journal: Journal,
    pub(crate) subject: Subject,
}

/// Additional parts around a scenario's run.
pub(crate) struct Hooks {
    /// Changes the engine before the stand-ins are added, so that its middleware wraps them. It also receives the
    /// contexts with the scenario's values, for the engine to keep.
    pub(crate) engine: Box<dyn FnOnce(EngineBuilder, Arc<MemoryContexts>) -> EngineBuilder + Send>,
    /// The state that an earlier process left.
    pub(crate) past: Past,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { engine: Box::new(EngineBuilder::contexts), past: Past::default() }
    }
}

/// The state that a later process of the run finds.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// Whether there was an earlier process.
    pub(crate) is_there: bool,
    /// The contexts, which outlive each process.
    pub(crate) contexts: Arc<MemoryContexts>,
    /// The virtual time since the first process began.
    pub(crate) elapsed: Duration,
    /// Whether the engine's store has the run, so that it is resumed instead of started.
    pub(crate) is_begun: bool,
}

impl<W: Workflow> Start<W> {
    pub(crate) fn new(scenario: ScenarioOf<W>, event: impl StartEvent) -> Self {
        let begin = move |engine: Engine, options| -> BoxFuture<'static, _> {
            Box::pin(async move { engine.start_with::<W>(event, options).await })
        };
        Self { scenario, begin: Box::new(begin) }
    }
}

impl Start<Runtime> {
    pub(crate) fn json(scenario: ScenarioOf<Runtime>, event: String, data: Value) -> Self {
        let workflow = scenario.subject.name().to_owned();
        let begin = move |engine: Engine, options| -> BoxFuture<'static, _> {
            Box::pin(async move { engine.start_json(&workflow, &event, data, options).await })
        };
        Self { scenario, begin: Box::new(begin) }
    }
}

impl<T: Tested> Start<T> {
    /// The workflow.
    pub(crate) fn subject(&self) -> &Subject {
        &self.scenario.subject
    }

    /// The stand-ins for the workflow's steps.
    pub(crate) fn cast(&self) -> &Cast {
        &self.scenario.cast
    }

    /// The run, as opposed to its child runs.
    pub(crate) fn run_id(&self) -> RunId {
        self.scenario.options.run_id().cloned().unwrap_or_else(|| RunId::new("scenario"))
    }

    /// Counts calls of the step that failed in an earlier process.
    pub(crate) fn have_failed(&mut self, step: &str, calls: u32) {
        self.scenario.cast.have_failed(step, calls);
    }

    /// Removes an event that already arrived, this long after the run began.
    pub(crate) fn has_arrived(&mut self, event: &str, after: Duration) {
        self.scenario.script.has_arrived(event, after);
    }

    /// Removes a pause that already arrived likewise.
    pub(crate) fn has_paused(&mut self, after: Duration) {
        self.scenario.script.has_paused(after);
    }

    /// Removes an unpause that already arrived likewise.
    pub(crate) fn has_unpaused(&mut self, after: Duration) {
        self.scenario.script.has_unpaused(after);
    }

    /// Prepares the run with these hooks.
    pub(crate) fn prepare(self, hooks: Hooks) -> Prepared<T> {
        let run = self.run_id();
        let Self { scenario, begin } = self;
        let ScenarioOf {
            subject, engine, options, run_context, thread_context, script, cast, is_drawn, ..
        } = scenario;
        let thread = options.thread_id().cloned().unwrap_or_else(|| ThreadId::new("scenario"));
        let journal = Journal::of(is_drawn);
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
                resume::<T>(&engine, id).await
            } else {
                begin(engine, options).await.map_err(Failure::of)
            }
        };
        Prepared { started: Box::pin(started), script, journal, subject }
    }

    /// Runs the scenario. Any executor can poll the future.
    async fn run(self) -> Result<TestRun<T>, Failure> {
        let Prepared { started, script, journal, subject } = self.prepare(Hooks::default());
        let opened = Stage::open::<T>(subject.name(), script, journal.recording().clone(), started).await;
        let (stage, handle) = opened?;
        TestRun::settle(stage, Driven { handle, subject, journal }).await
    }
}

/// Resumes the run, and all others of the engine's store.
async fn resume<T: Tested>(engine: &Engine, run: RunId) -> Result<T::Handle, Failure> {
    let run = T::attach(engine, run).await.map_err(Failure::of)?;
    let resumed = engine.resume_open_runs().await.map_err(Failure::of)?;
    match resumed.refused.first() {
        Some((_, error)) => Err(Failure::of(error)),
        None => Ok(run),
    }
}

async fn seed(contexts: &MemoryContexts, seeds: [(ContextScope, Vec<(String, ContextValue)>); 2]) {
    for (scope, values) in seeds {
        for (key, value) in values {
            // A store in memory accepts everything.
            let _ = contexts.set(&scope, &key, Some(value)).await;
        }
    }
}

/// The reason why there is no run to assert on, in full sentences.
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

impl<T: Tested> IntoFuture for Start<T> {
    type Output = TestRun<T>;
    type IntoFuture = BoxFuture<'static, TestRun<T>>;

    fn into_future(self) -> BoxFuture<'static, TestRun<T>> {
        Box::pin(async move { self.run().await.unwrap_or_else(|failure| panic!("{failure}")) })
    }
}

impl<T: Tested> fmt::Debug for Start<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start").field("scenario", &self.scenario).finish_non_exhaustive()
    }
}
