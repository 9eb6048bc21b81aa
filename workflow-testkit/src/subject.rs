//! The workflow that a scenario runs, of either kind: a typed one, or one that a program builds at run time. The rest of the
//! crate knows neither, except for stand-ins, which are Rust functions.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use workflow_core::draw::Graph;
use workflow_core::signature::Roles;
use workflow_core::table::{DependencyTable, EventRow, StepRow, StepSpec, TableSpec};
use workflow_core::{AnyRun, Engine, ResumeError, RunError, RunHandle, RunId, RuntimeWorkflow, Workflow};

use crate::stand_in::no_such_step;

/// Stands for every [`RuntimeWorkflow`] in the types of a test.
///
/// A scenario of one is a `ScenarioOf<Runtime>`, and its run a `TestRun<Runtime>`.
#[derive(Debug, Clone, Copy)]
pub enum Runtime {}

/// The kind of workflow that a scenario runs: each [`Workflow`], or [`Runtime`].
///
/// Users implement nothing: the trait is for signatures of functions that take scenarios of both kinds.
///
/// ```
/// use workflow_testkit::{Start, Tested, explore};
///
/// /// The number of orders that make a difference.
/// fn orders<W: Tested>(scenario: impl Fn() -> Start<W>) -> u64 {
///     explore(scenario).survey().tried()
/// }
/// ```
pub trait Tested: sealed::Sealed + 'static {
    /// The output of a run: that of the workflow; of a run-time workflow the data of the stop event.
    type Output: Send + 'static;
    /// The handle of a run: a [`RunHandle`]; of a run-time workflow an [`AnyRun`].
    type Handle: fmt::Debug + Clone + Send + Sync + 'static;

    #[doc(hidden)]
    fn any(handle: &Self::Handle) -> &AnyRun;

    #[doc(hidden)]
    fn attach(engine: &Engine, run: RunId) -> BoxFuture<'_, Result<Self::Handle, ResumeError>>;

    #[doc(hidden)]
    fn outcome(handle: &Self::Handle) -> BoxFuture<'_, Result<Self::Output, RunError>>;
}

mod sealed {
    use super::{Runtime, Workflow};

    pub trait Sealed {}

    impl<W: Workflow> Sealed for W {}

    impl Sealed for Runtime {}
}

impl<W: Workflow> Tested for W {
    type Output = W::Output;
    type Handle = RunHandle<W>;

    fn any(handle: &RunHandle<W>) -> &AnyRun {
        handle.any()
    }

    fn attach(engine: &Engine, run: RunId) -> BoxFuture<'_, Result<RunHandle<W>, ResumeError>> {
        Box::pin(async move { engine.attach::<W>(run).await })
    }

    fn outcome(handle: &RunHandle<W>) -> BoxFuture<'_, Result<W::Output, RunError>> {
        Box::pin(handle.outcome())
    }
}

impl Tested for Runtime {
    type Output = Value;
    type Handle = AnyRun;

    fn any(handle: &AnyRun) -> &AnyRun {
        handle
    }

    fn attach(engine: &Engine, run: RunId) -> BoxFuture<'_, Result<AnyRun, ResumeError>> {
        engine.attach_any(run)
    }

    fn outcome(handle: &AnyRun) -> BoxFuture<'_, Result<Value, RunError>> {
        // The events of such a workflow are JSON.
        let data = |stop: workflow_core::AnyEvent| stop.as_json().cloned().unwrap_or_default();
        Box::pin(handle.outcome_any().map(move |stop| stop.map(data)))
    }
}

/// What a scenario knows of its workflow.
#[derive(Clone)]
pub(crate) enum Subject {
    Typed { spec: &'static TableSpec, graph: fn() -> Graph },
    Runtime(RuntimeWorkflow),
}

impl Subject {
    pub(crate) fn typed<W: Workflow>() -> Self {
        Self::Typed { spec: W::TABLE, graph: W::graph }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Typed { spec, .. } => spec.name(),
            Self::Runtime(workflow) => workflow.table().name(),
        }
    }

    /// Says that the workflow lacks this step, if it does.
    pub(crate) fn lacks_step(&self, name: &str) -> Option<String> {
        let steps: Vec<&str> = match self {
            Self::Typed { spec, .. } => spec.steps().iter().map(StepSpec::name).collect(),
            Self::Runtime(workflow) => workflow.table().steps().iter().map(StepRow::name).collect(),
        };
        (!steps.contains(&name)).then(|| no_such_step(self.name(), steps.iter().copied(), name))
    }

    pub(crate) fn graph(&self) -> Graph {
        match self {
            Self::Typed { graph, .. } => graph(),
            Self::Runtime(workflow) => workflow.table().graph(),
        }
    }

    /// The table.
    ///
    /// # Panics
    /// Panics if it has a problem that no engine would host.
    pub(crate) fn table(&self) -> Table {
        match self {
            Self::Typed { spec, .. } => {
                let table = DependencyTable::from_spec(spec);
                Table::Compiled(Box::new(table.unwrap_or_else(|error| panic!("{error}"))))
            }
            Self::Runtime(workflow) => Table::Shared(workflow.clone()),
        }
    }

    /// The name of the reply to a request in the log.
    pub(crate) fn reply_to(&self, request: &str) -> Arc<str> {
        let events = self.table().shape().events;
        let mut replies = events.into_iter().filter(|event| event.replies_to.as_deref() == Some(request));
        replies.next().map_or_else(|| format!("{request}.reply").into(), |reply| reply.name)
    }

    /// Fails if the workflow has no event of this name with this role, which has these words.
    #[track_caller]
    pub(crate) fn assert_event(&self, name: &str, words: &str, role: fn(Roles) -> bool) {
        let table = self.table();
        let has_role = |event: &&EventRow| role(event.roles());
        let fitting: Vec<&str> = table.events().iter().filter(has_role).map(EventRow::name).collect();
        assert!(
            fitting.contains(&name),
            "`{}` has no {words} `{name}`: it has [{}]",
            table.name(),
            fitting.join(", ")
        );
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The table of a workflow of either kind.
#[derive(Debug)]
pub(crate) enum Table {
    Compiled(Box<DependencyTable>),
    Shared(RuntimeWorkflow),
}

impl Deref for Table {
    type Target = DependencyTable;

    fn deref(&self) -> &DependencyTable {
        match self {
            Self::Compiled(table) => table,
            Self::Shared(workflow) => workflow.table(),
        }
    }
}
