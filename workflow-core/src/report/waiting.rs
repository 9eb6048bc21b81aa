//! Executions that are due and have not begun, and what they wait for (S21), as data.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::BoundInput;
use crate::id::{ExecutionId, RunId, ScopeId, Seq};
use crate::limit::Limit;
use crate::text::{enumerated, first};

/// An execution that is scheduled and has not begun, or whose next attempt is due and has not begun.
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
/// assert_eq!(report.waiting[0].waits_for.to_string(), "`print` may run 1 at a time (`concurrency`): x2 runs");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WaitingExecution {
    /// The id of the execution.
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

/// The limit that a scheduled execution waits for, and what holds its places.
///
/// Each limit lists at most five that hold a place, the oldest first. `Display` names the limit, its value, its setting
/// and these.
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
        /// The first executions of the step that run.
        held_by: Arc<[ExecutionId]>,
    },
    /// The executions of its run:
    /// [`max_concurrent_executions`](crate::EngineBuilder::max_concurrent_executions).
    Run {
        /// The most executions of the run at a time.
        limit: usize,
        /// The first executions of the run that run.
        held_by: Arc<[ExecutionId]>,
    },
    /// The engine's runs: [`max_concurrent_runs`](crate::EngineBuilder::max_concurrent_runs), or those of its
    /// workflow: [`max_concurrent_runs_of`](crate::EngineBuilder::max_concurrent_runs_of).
    Runs {
        /// The workflow, if the limit is that of one workflow.
        workflow: Option<Arc<str>>,
        /// The most runs at a time.
        limit: usize,
        /// The first runs that hold a permit.
        held_by: Arc<[RunId]>,
    },
    /// The engine's child runs: [`max_concurrent_children`](crate::EngineBuilder::max_concurrent_children).
    Children {
        /// The most child runs that execute steps at a time.
        limit: usize,
        /// The first child runs that hold a permit.
        held_by: Arc<[RunId]>,
    },
    /// Other executions under which processes ended: one of them runs at a time in the engine, so that one that aborts
    /// its process takes no other with it. See
    /// [`max_interrupted_attempts`](crate::EngineBuilder::max_interrupted_attempts).
    Interrupted {
        /// How many of its attempts were interrupted.
        attempts: u32,
        /// The run of the execution that runs; `None` if the next one is about to begin.
        run: Option<RunId>,
        /// The execution that runs.
        execution: Option<ExecutionId>,
    },
    /// The messages of the run's [inbox](crate::store::Inbox), which the engine applies first.
    Inbox {
        /// The error of the inbox, if it cannot be read or settled now. The engine asks again every five seconds, and the run
        /// has no permit meanwhile.
        problem: Option<Arc<str>>,
    },
    /// The run is [paused](crate::AnyRun::pause): the execution begins once it is unpaused.
    Pause,
    /// The engine is [shutting down](crate::Engine::shut_down): the execution begins in the next process.
    ShutDown,
    /// A named limit of the engine: [`limit`](crate::EngineBuilder::limit).
    Limit {
        /// The name of the limit.
        name: Arc<str>,
        /// The key at the limit; `None` for the one that all attempts without a key share.
        key: Option<Arc<str>>,
        /// The limit.
        limit: Limit,
        /// The first attempts of the key that hold a permit.
        held_by: Arc<[LimitHolder]>,
        /// How many attempts of the key wait before this one.
        before: usize,
    },
    /// No limit: the execution is about to begin.
    Nothing,
}

/// An attempt that holds a permit of a named limit: an execution of a run of the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LimitHolder {
    /// The run.
    pub run: RunId,
    /// The execution.
    pub execution: ExecutionId,
}

impl WaitsFor {
    /// Whether both are one limit with one key. The holders may differ.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Limit { name, key, .. }, Self::Limit { name: other, key: other_key, .. }) => {
                name == other && key == other_key
            }
            _ => self == other,
        }
    }

    /// The end of a sentence whose subject is this many executions.
    pub(crate) fn summary(&self, executions: usize) -> String {
        match (self, executions) {
            (Self::Nothing, 1) => "is about to begin".into(),
            (Self::Nothing, _) => "are about to begin".into(),
            (Self::Pause, 1) => "begins once the run is unpaused".into(),
            (Self::Pause, _) => "begin once the run is unpaused".into(),
            (Self::ShutDown, 1) => "begins in the next process: the engine is shutting down".into(),
            (Self::ShutDown, _) => "begin in the next process: the engine is shutting down".into(),
            (limit, 1) => format!("waits for its turn: {limit}"),
            (limit, _) => format!("wait for their turn: {limit}"),
        }
    }
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step { step, limit, held_by } => {
                write!(f, "`{step}` may run {limit} at a time (`concurrency`)")?;
                fmt_running(f, held_by, *limit as usize)
            }
            Self::Run { limit, held_by } => {
                let executions = counted(*limit, "execution");
                write!(f, "the run may have {executions} at a time (`max_concurrent_executions`)")?;
                fmt_running(f, held_by, *limit)
            }
            Self::Runs { workflow: None, limit, held_by } => {
                write!(f, "the engine has {} for runs (`max_concurrent_runs`)", counted(*limit, "permit"))?;
                fmt_holders(f, held_by, *limit)
            }
            Self::Runs { workflow: Some(workflow), limit, held_by } => {
                let permits = counted(*limit, "permit");
                write!(f, "the engine has {permits} for runs of `{workflow}` (`max_concurrent_runs_of`)")?;
                fmt_holders(f, held_by, *limit)
            }
            Self::Children { limit, held_by } => {
                let permits = counted(*limit, "permit");
                write!(f, "the engine has {permits} for child runs (`max_concurrent_children`)")?;
                fmt_holders(f, held_by, *limit)
            }
            Self::Interrupted { attempts, run, execution } => {
                let counted = counted(*attempts as usize, "attempt");
                write!(f, "the process ended under {counted}, and one such execution runs at a time")?;
                match (run, execution) {
                    (Some(run), Some(execution)) => write!(f, ": {execution} of run `{run}`"),
                    _ => Ok(()),
                }
            }
            Self::Inbox { problem } => {
                f.write_str("the messages of the run's inbox come first")?;
                problem.as_ref().map_or(Ok(()), |problem| write!(f, ", and it is away: {problem}"))
            }
            Self::Pause => f.write_str("the run is paused"),
            Self::ShutDown => f.write_str("the engine is shutting down"),
            Self::Limit { name, key, limit, held_by, before } => {
                write!(f, "the limit `{name}` admits {limit}")?;
                if let Some(key) = key {
                    write!(f, " for each key, and here of `{key}`")?;
                }
                write!(f, " (`limit`)")?;
                fmt_holders_of_limit(f, held_by, *before)
            }
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

/// The most that a limit lists of what holds its places.
pub(crate) const HOLDERS: usize = 5;

fn fmt_running(f: &mut fmt::Formatter<'_>, running: &[ExecutionId], all: usize) -> fmt::Result {
    match running {
        [] => Ok(()),
        [only] if all == 1 => write!(f, ": {only} runs"),
        some => write!(f, ": {} run", enumerated(&first(some, all), "and")),
    }
}

fn fmt_holders(f: &mut fmt::Formatter<'_>, runs: &[RunId], all: usize) -> fmt::Result {
    let names: Vec<String> = runs.iter().map(|run| format!("`{run}`")).collect();
    match &names[..] {
        [] => Ok(()),
        [only] if all == 1 => write!(f, ": run {only} has it"),
        some => write!(f, ": runs {} have them", enumerated(&first(some, all), "and")),
    }
}

/// Those that hold permits of a limit, and those that wait before.
fn fmt_holders_of_limit(f: &mut fmt::Formatter<'_>, holders: &[LimitHolder], before: usize) -> fmt::Result {
    let names: Vec<String> =
        holders.iter().map(|LimitHolder { run, execution }| format!("{execution} of `{run}`")).collect();
    match (&names[..], before) {
        ([], 0) => f.write_str(": the rate is used up"),
        ([], _) => write!(f, ": {before} before it"),
        ([only], 0) => write!(f, ": {only} runs"),
        ([only], _) => write!(f, ": {only} runs, and {before} before it"),
        (some, 0) => write!(f, ": {} run", enumerated(some, "and")),
        (some, _) => write!(f, ": {} run, and {before} before it", enumerated(some, "and")),
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
