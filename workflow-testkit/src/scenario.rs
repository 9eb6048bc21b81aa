//! What a run is started with: the workflow, its configuration and its options.

use serde::Serialize;
use serde::de::DeserializeOwned;
use workflow_core::{ConfigLayers, Engine, EngineBuilder, RunOptions, StartEvent, Workflow};

use crate::TestRun;

/// A workflow that is about to be run in memory, by itself.
#[derive(Debug)]
#[must_use = "a scenario runs when it is started"]
pub struct Scenario {
    engine: EngineBuilder,
    options: RunOptions,
}

/// A [`Scenario`] of one workflow.
#[derive(Debug)]
#[must_use = "a scenario runs when it is started"]
pub struct ScenarioOf<W> {
    scenario: Scenario,
    workflow: std::marker::PhantomData<fn() -> W>,
}

impl Scenario {
    /// A scenario of this workflow, with default configuration.
    #[expect(clippy::new_ret_no_self, reason = "the workflow's type is part of what is made")]
    pub fn new<W: Workflow>(workflow: W) -> ScenarioOf<W> {
        let scenario = Self { engine: Engine::builder().workflow(workflow), options: RunOptions::new() };
        ScenarioOf { scenario, workflow: std::marker::PhantomData }
    }
}

impl<W: Workflow> ScenarioOf<W> {
    /// Sets the configuration `C`.
    pub fn config<C: DeserializeOwned + Serialize + Send + Sync + 'static>(mut self, config: C) -> Self {
        self.scenario.engine = self.scenario.engine.config::<C>(ConfigLayers::defaults(config));
        self
    }

    /// Sets id, thread, metadata and configuration of the run.
    pub fn options(mut self, options: RunOptions) -> Self {
        self.scenario.options = options;
        self
    }

    /// Runs it until it ends, or waits for something from outside.
    ///
    /// # Panics
    /// If the engine cannot be built or the run cannot be started: a scenario has nothing to test then.
    pub async fn start(self, event: impl StartEvent) -> TestRun<W> {
        let Scenario { engine, options } = self.scenario;
        let engine = engine.build().unwrap_or_else(|error| panic!("{error}"));
        let started = engine.start_with::<W>(event, options).await;
        TestRun::settle(started.unwrap_or_else(|error| panic!("{error}"))).await
    }
}
