//! Executions that are due and have not begun, and the limits that they wait for (S21). Nothing is stored for
//! them: a report looks at the scheduler and at [admission](super::admission) when it is made.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::Serialize;

use super::admission::Admission;
use super::places::Gate;
use super::report::BoundInput;
use super::state::{RunState, bound_input};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::scheduler::{ExecutionStart, Unbegun};
use crate::table::DependencyTable;

/// An execution that is scheduled and has not begun.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Order { lines: u64 }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Line;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Printed;
/// # struct Printer;
/// #[workflow]
/// impl Printer {
///     #[step]
///     async fn split(&self, order: &Order) -> Vec<Line> {
///         (0..order.lines).map(|_| Line).collect()
///     }
///
///     #[step(concurrency = 1)]
///     async fn print(&self, _line: &Line) -> Printed {
///         std::future::pending().await // out of paper
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Printer).build()?;
/// let run = engine.start::<Printer>(Order { lines: 2 }).await?;
/// # while run.report_so_far().await?.executions("print") == 0 {
/// #     tokio::task::yield_now().await;
/// # }
/// let report = run.report_so_far().await?;
/// assert_eq!(report.waiting.len(), 1);
/// assert_eq!(report.waiting[0].waits_for.to_string(), "`print` may run 1 at a time");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WaitingExecution {
    /// The id that the execution will have.
    pub execution: ExecutionId,
    /// The name of its step.
    pub step: Arc<str>,
    /// The scope in which the execution will run.
    pub scope: ScopeId,
    /// The event that triggered the execution.
    pub trigger: Seq,
    /// The bound event of each input, and the length of each list.
    pub inputs: Vec<BoundInput>,
    /// The limit that keeps the execution from beginning.
    pub waits_for: WaitsFor,
}

/// The limit that a scheduled execution waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitsFor {
    /// The `concurrency` of its step: as many executions of the step run.
    Step {
        /// The name of the step.
        step: Arc<str>,
        /// The most executions of the step at a time, in one run.
        limit: u32,
    },
    /// The executions of its run:
    /// [`max_concurrent_executions`](crate::EngineBuilder::max_concurrent_executions).
    Run {
        /// The most executions of the run at a time.
        limit: usize,
    },
    /// The engine's runs: [`max_concurrent_runs`](crate::EngineBuilder::max_concurrent_runs), or those of its
    /// workflow: [`max_concurrent_runs_of`](crate::EngineBuilder::max_concurrent_runs_of).
    Runs {
        /// The workflow, if the limit is that of one workflow.
        workflow: Option<Arc<str>>,
        /// The most runs at a time.
        limit: usize,
    },
    /// The engine's child runs: [`max_concurrent_children`](crate::EngineBuilder::max_concurrent_children).
    Children {
        /// The most child runs that execute steps at a time.
        limit: usize,
    },
    /// No limit: the execution is about to begin.
    Nothing,
}

/// The executions of a run that have not begun, and the limits that they wait for.
#[derive(Default)]
pub(super) struct Deferred<'a> {
    /// The limit on executions of the run, if it is reached.
    full: Option<usize>,
    /// The limit at which the run waits for a permit, if it does.
    gate: Option<&'a Gate>,
    unbegun: FxHashSet<ExecutionId>,
    due: Vec<ExecutionStart>,
}

impl<'a> Deferred<'a> {
    pub(super) fn new(state: &RunState, admission: &'a Admission) -> Self {
        let is_wanted = |start: &&ExecutionStart| state.scheduler.is_running(start.execution);
        let due: Vec<_> = admission.due(state).filter(is_wanted).cloned().collect();
        let unbegun = due.iter().map(|start| start.execution).collect();
        Self { full: admission.full(), gate: admission.gate(), unbegun, due }
    }

    /// Whether the state has the execution as running although it has not begun.
    pub(super) fn has(&self, execution: ExecutionId) -> bool {
        self.unbegun.contains(&execution)
    }

    /// The executions that have not begun, by their ids.
    pub(super) fn executions(&self, state: &RunState) -> Vec<WaitingExecution> {
        let table = state.table();
        let due = self.due.iter().map(|start| Unbegun { start: start.clone(), full: None });
        let unbegun = state.scheduler.board().unbegun().chain(due);
        let mut waiting: Vec<_> = unbegun.map(|unbegun| self.waiting(&unbegun, table)).collect();
        waiting.sort_unstable_by_key(|waiting| waiting.execution);
        waiting
    }

    /// The execution with the first limit on its way: its step's, its run's, then those of runs.
    fn waiting(&self, unbegun: &Unbegun, table: &DependencyTable) -> WaitingExecution {
        let start = &unbegun.start;
        let row = table.step(start.step);
        WaitingExecution {
            execution: start.execution,
            step: Arc::clone(&row.name),
            scope: start.scope,
            trigger: start.trigger,
            inputs: start.binding(row).iter().map(bound_input).collect(),
            waits_for: match (unbegun.full, self.full) {
                (Some(limit), _) => WaitsFor::Step { step: Arc::clone(&row.name), limit },
                (None, Some(limit)) => WaitsFor::Run { limit },
                (None, None) => self.gate.map_or(WaitsFor::Nothing, Gate::waits_for),
            },
        }
    }
}

impl WaitsFor {
    /// The end of a sentence whose subject is this many executions.
    pub(crate) fn told(&self, executions: usize) -> String {
        match (self, executions) {
            (Self::Nothing, 1) => "is about to begin".into(),
            (Self::Nothing, _) => "are about to begin".into(),
            (limit, 1) => format!("waits for its turn: {limit}"),
            (limit, _) => format!("wait for their turn: {limit}"),
        }
    }
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step { step, limit } => write!(f, "`{step}` may run {limit} at a time"),
            Self::Run { limit } => {
                write!(f, "the run may have {} at a time", counted(*limit, "execution"))
            }
            Self::Runs { workflow: None, limit } => {
                write!(f, "the engine has {} for runs", counted(*limit, "permit"))
            }
            Self::Runs { workflow: Some(workflow), limit } => {
                write!(f, "the engine has {} for runs of `{workflow}`", counted(*limit, "permit"))
            }
            Self::Children { limit } => {
                write!(f, "the engine has {} for child runs", counted(*limit, "permit"))
            }
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
