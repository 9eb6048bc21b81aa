//! Building an engine: what it hosts, its configuration and its limits, with every problem reported at once.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dashmap::DashMap;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::{Engine, Inner};
use crate::config::{ConfigLayers, ConfigSet};
use crate::context::{ContextStore, MemoryContexts};
use crate::display::DEFAULT_DISPLAY_CAPACITY;
use crate::error::{BuildError, BuildProblem};
use crate::observe::{Observer, Observers};
use crate::run::{Host, Hosted};
use crate::scheduler::SchedulerLimits;
use crate::table::{DependencyTable, EventRow};
use crate::workflow::Workflow;

/// Builds an [`Engine`]. Nothing is checked before [`build`](Self::build).
#[must_use = "an engine is made by `build`"]
pub struct EngineBuilder {
    hosts: Vec<(TypeId, Arc<dyn Host>)>,
    configs: ConfigSet,
    contexts: Option<Arc<dyn ContextStore>>,
    observers: Vec<Arc<dyn Observer>>,
    limits: SchedulerLimits,
    display_capacity: usize,
    max_concurrent_runs: Option<usize>,
    problems: Vec<BuildProblem>,
}

impl Default for EngineBuilder {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            configs: ConfigSet::default(),
            contexts: None,
            observers: Vec::new(),
            limits: SchedulerLimits::default(),
            display_capacity: DEFAULT_DISPLAY_CAPACITY,
            max_concurrent_runs: None,
            problems: Vec::new(),
        }
    }
}

impl EngineBuilder {
    /// Hosts a workflow. An engine can host any number of them, each under its own name.
    pub fn workflow<W: Workflow>(self, workflow: W) -> Self {
        // Of a generic workflow the table is known only here.
        const { crate::check::all(W::TABLE) };
        self.host(workflow)
    }

    /// The same for a workflow that has been checked.
    pub(crate) fn host<W: Workflow>(mut self, workflow: W) -> Self {
        match Hosted::new(workflow) {
            Ok(hosted) => self.hosts.push((TypeId::of::<W>(), Arc::new(hosted))),
            Err(error) => self.problems.push(BuildProblem::Table(error)),
        }
        self
    }

    /// Sets the layers of `Config<C>`; a value of `C` will do. Without them it is made of `C`'s own serde
    /// defaults, if it has one for every field.
    pub fn config<C: DeserializeOwned + Send + Sync + 'static>(
        mut self,
        layers: impl Into<ConfigLayers<C>>,
    ) -> Self {
        self.configs.insert::<C>(layers.into());
        self
    }

    /// Sets where contexts are kept. Default: [`MemoryContexts`].
    pub fn contexts(mut self, contexts: impl ContextStore) -> Self {
        self.contexts = Some(Arc::new(contexts));
        self
    }

    /// Adds an observer; each gets a thread of its own.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// At most so many runs run at a time; [`Engine::start`] waits for a place. 0 is taken as 1. A run that
    /// waits for something from outside takes no place. Default: no bound.
    pub fn max_concurrent_runs(mut self, most: usize) -> Self {
        self.max_concurrent_runs = Some(most.clamp(1, Semaphore::MAX_PERMITS));
        self
    }

    /// At most so many executions of one run at a time; the surplus waits in order (S21). 0 is taken as 1.
    /// Default: 1,024.
    pub fn max_concurrent_executions(mut self, most: usize) -> Self {
        self.limits.concurrent_executions = most.max(1);
        self
    }

    /// At most so many events in the log of one run, which then fails; it ends loops without a way out.
    /// Default: 10,000,000.
    pub fn max_events_per_run(mut self, most: u64) -> Self {
        self.limits.events = most.max(1);
        self
    }

    /// How many displayed items a run keeps for viewers. 0 is taken as 1. Default: 1,024.
    pub fn display_capacity(mut self, items: usize) -> Self {
        self.display_capacity = items.max(1);
        self
    }

    /// Makes the engine.
    ///
    /// # Errors
    /// [`BuildError`] with every problem: mistakes in tables, workflows or event types with one name (S1),
    /// missing or wrong configuration.
    pub fn build(mut self) -> Result<Engine, BuildError> {
        self.check_names();
        self.check_events();
        self.check_configs();
        if !self.problems.is_empty() {
            return Err(BuildError { problems: self.problems });
        }
        let contexts = self.contexts.unwrap_or_else(|| Arc::new(MemoryContexts::default()));
        Ok(Engine {
            inner: Arc::new(Inner {
                hosts: self.hosts.into_iter().collect(),
                configs: self.configs,
                contexts,
                observers: Observers::start(self.observers),
                limits: self.limits,
                display_capacity: self.display_capacity,
                slots: self.max_concurrent_runs.map(|most| Arc::new(Semaphore::new(most))),
                running: DashMap::new(),
                shut_down: AtomicBool::new(false),
            }),
        })
    }

    fn tables(&self) -> impl Iterator<Item = &DependencyTable> {
        self.hosts.iter().map(|(_, host)| &**host.table())
    }

    fn check_names(&mut self) {
        let names: Vec<String> = self.tables().map(|table| table.name.to_string()).collect();
        for (i, workflow) in names.iter().enumerate() {
            if names[..i].contains(workflow) {
                self.problems.push(BuildProblem::DuplicateWorkflow { workflow: workflow.clone() });
            }
        }
    }

    /// S1: a wire name means one type in the whole engine.
    fn check_events(&mut self) {
        let mut named: HashMap<&str, &EventRow> = HashMap::new();
        let mut problems = Vec::new();
        for event in self.hosts.iter().flat_map(|(_, host)| &host.table().events) {
            let known = *named.entry(&event.name).or_insert(event);
            if let (Some(known), Some(other)) = (known.type_name, event.type_name)
                && known != other
            {
                let (event, types) = (event.name.to_string(), [known, other].map(str::to_owned));
                problems.push(BuildProblem::DuplicateEvent { event, types });
            }
        }
        self.problems.extend(problems);
    }

    fn check_configs(&mut self) {
        let mut problems: Vec<BuildProblem> =
            self.configs.problems().cloned().map(BuildProblem::ConfigLayer).collect();
        if problems.is_empty() {
            for table in self.tables() {
                for config in table.configs() {
                    if let Err(source) = self.configs.resolve_for(&config, None) {
                        let workflow = table.name.to_string();
                        problems.push(BuildProblem::Config { workflow, source });
                    }
                }
            }
        }
        self.problems.extend(problems);
    }
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workflows: Vec<&str> = self.tables().map(DependencyTable::name).collect();
        f.debug_struct("EngineBuilder").field("workflows", &workflows).finish_non_exhaustive()
    }
}
