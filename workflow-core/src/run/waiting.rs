//! Executions that are due and have not begun, and what they wait for (S21). Nothing is kept for them here: what the
//! scheduler and the run hold back is looked at when somebody asks.

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

/// An execution that is due and has not begun.
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
    /// Which it will be.
    pub execution: ExecutionId,
    /// The step.
    pub step: Arc<str>,
    /// Its scope.
    pub scope: ScopeId,
    /// The event that triggered it.
    pub trigger: Seq,
    /// The events it is bound to one by one, and how many each list holds.
    pub inputs: Vec<BoundInput>,
    /// What it waits for.
    pub waits_for: WaitsFor,
}

/// What an execution waits for before it begins: others come first, and only so many run at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitsFor {
    /// Other executions of its step: its `concurrency`.
    Step {
        /// The step.
        step: Arc<str>,
        /// How many of its executions may run at a time.
        limit: u32,
    },
    /// Other executions of its run: [`max_concurrent_executions`](crate::EngineBuilder::max_concurrent_executions).
    Run {
        /// How many executions of the run may run at a time.
        limit: usize,
    },
    /// Other runs: [`max_concurrent_runs`](crate::EngineBuilder::max_concurrent_runs), or
    /// [`max_concurrent_runs_of`](crate::EngineBuilder::max_concurrent_runs_of) its workflow.
    Runs {
        /// The workflow, if it is its limit.
        workflow: Option<Arc<str>>,
        /// How many runs may run at a time.
        limit: usize,
    },
    /// Other child runs: [`max_concurrent_children`](crate::EngineBuilder::max_concurrent_children).
    Children {
        /// How many child runs have a place to execute steps in.
        limit: usize,
    },
    /// Nothing: it is about to begin.
    Nothing,
}

/// What is due in a run and has not begun, and what it waits for.
#[derive(Default)]
pub(super) struct Deferred<'a> {
    /// The most executions of the run at a time, if that is reached.
    full: Option<usize>,
    /// Where the run itself waits for a permit, if it does.
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

    /// Whether the execution runs by the state of its run and has not begun.
    pub(super) fn has(&self, execution: ExecutionId) -> bool {
        self.unbegun.contains(&execution)
    }

    /// The executions that have not begun, in the order in which they became due.
    pub(super) fn executions(&self, state: &RunState) -> Vec<WaitingExecution> {
        let table = state.table();
        let due = self.due.iter().map(|start| Unbegun { start: start.clone(), full: None });
        let unbegun = state.scheduler.board().unbegun().chain(due);
        let mut waiting: Vec<_> = unbegun.map(|unbegun| self.waiting(&unbegun, table)).collect();
        waiting.sort_unstable_by_key(|waiting| waiting.execution);
        waiting
    }

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
    /// The end of a sentence about so many executions that wait for it.
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
                write!(f, "the engine has {} for runs", counted(*limit, "place"))
            }
            Self::Runs { workflow: Some(workflow), limit } => {
                write!(f, "the engine has {} for runs of `{workflow}`", counted(*limit, "place"))
            }
            Self::Children { limit } => {
                write!(f, "the engine has {} for child runs", counted(*limit, "place"))
            }
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
