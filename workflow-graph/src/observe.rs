//! Observation of runs in the words of their documents: nodes, routes, attempts. It follows the core's observations, and
//! keeps the little of each run that they do not repeat.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::{RunId, RunStatus};

use crate::tool_call::is_null;
use crate::trace::milliseconds;
use crate::{Document, GraphStatus, Repeated, SharedOutcome, VisitError, VisitStatus};

mod facts;
mod follow;
mod latest;
mod sign;
#[cfg(test)]
mod tests;

use facts::Facts;
use follow::RunState;

/// The most runs whose state stays in memory while the engine has unloaded them.
const UNLOADED: usize = 4_096;

/// Observes the runs of a document's graphs.
///
/// A run is reported from [`Started`](GraphEvent::Started) to [`Ended`](GraphEvent::Ended). In between each visit has
/// [`NodeEntered`](GraphEvent::NodeEntered), what happens in it, [`NodeExited`](GraphEvent::NodeExited), and the routes that
/// it takes. Visits in branches interleave.
///
/// # Contract
/// - **Order**: the events of one run come in their order; those of several runs interleave.
/// - **Commit**: [`NodeExited`](GraphEvent::NodeExited) and [`Routed`](GraphEvent::Routed) come once the store has them. A
///   visit that a crash interrupts is entered again and has no exit in between.
/// - **Cost**: inputs, outputs and results are shared with the run. Results are read when the observer first uses them.
/// - **Threads, loss, panics** are those of the core's [`Observer`]: the observer may block, a slow one learns of lost
///   observations by [`Missed`](GraphEvent::Missed), and its panics are caught.
///
/// ```
/// use workflow_core::{Engine, RunId};
/// use workflow_graph::{Document, GraphEvent, GraphEvents, GraphObserver};
///
/// struct Log(std::sync::mpsc::Sender<String>);
///
/// impl GraphObserver for Log {
///     fn observe(&self, run: &RunId, event: &GraphEvent) {
///         if let GraphEvent::Routed { from, to, reason, .. } = event {
///             let _ = self.0.send(format!("{run}: {from} → {to} ({reason})"));
///         }
///     }
/// }
///
/// let document = Document::parse("graph: g\nnodes: {a: {value: 1, next: b}, b: {value: 2}}\n", "g.yaml")?;
/// let (sender, _lines) = std::sync::mpsc::channel();
/// let engine = Engine::builder().observer(GraphEvents::of(&document, Log(sender))).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait GraphObserver: Send + Sync + 'static {
    /// Handles one event of a run.
    fn observe(&self, run: &RunId, event: &GraphEvent);

    /// Whether runs call the observer directly instead of its thread, as
    /// [`Observer::is_synchronous`] has it. Default: `false`.
    fn is_synchronous(&self) -> bool {
        false
    }
}

/// An event of a run of a graph.
///
/// `iteration` counts the visits of a node from 1. It is absent where the observer cannot know it: before the first end of
/// the node in a run that it has not followed from its start, or of which it missed observations. `branch` is a path such as
/// `collect/2`, as in [`Visit`](crate::Visit); it is absent outside of branches.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum GraphEvent {
    /// The run began.
    Started {
        /// The name of the graph.
        graph: Arc<str>,
    },
    /// A process took the run up where its journal ended. Interrupted visits are entered again.
    Resumed,
    /// A visit began.
    NodeEntered {
        /// The node.
        node: Arc<str>,
        /// Which visit of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        iteration: Option<u32>,
        /// The branch that the visit lies in.
        #[serde(skip_serializing_if = "Option::is_none")]
        branch: Option<Arc<str>>,
        /// The instruction of an agent, with its values; without rules, skills and context. Absent for other nodes, for a visit
        /// that ends before its agent runs and whose instruction has expressions, and for items with instructions of their own.
        #[serde(skip_serializing_if = "Option::is_none")]
        instruction: Option<Arc<str>>,
    },
    /// The work of a node called a tool.
    ToolCalled {
        /// The node.
        node: Arc<str>,
        /// Which visit of it.
        iteration: u32,
        /// The attempt, from 1.
        attempt: u32,
        /// The place of the item, in a node with `for_each`.
        #[serde(skip_serializing_if = "Option::is_none")]
        item: Option<u32>,
        /// The tool.
        tool: Arc<str>,
        /// Its input; null if the work does not say.
        #[serde(skip_serializing_if = "is_null")]
        input: Arc<Value>,
    },
    /// A tool has returned.
    ToolReturned {
        /// The node.
        node: Arc<str>,
        /// Which visit of it.
        iteration: u32,
        /// The attempt, from 1.
        attempt: u32,
        /// The place of the item, in a node with `for_each`.
        #[serde(skip_serializing_if = "Option::is_none")]
        item: Option<u32>,
        /// The tool.
        tool: Arc<str>,
        /// Whether the call succeeded.
        ok: bool,
        /// Its output; null if there is none.
        #[serde(skip_serializing_if = "is_null")]
        output: Arc<Value>,
        /// The text of the failure of a call without an output.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
    },
    /// The agent of a node runs again in the same attempt, since its result failed its checks; or a judge is asked again.
    WorkRepeated {
        /// The node.
        node: Arc<str>,
        /// Which visit of it.
        iteration: u32,
        /// The attempt, from 1.
        attempt: u32,
        /// The place of the item, in a node with `for_each`.
        #[serde(skip_serializing_if = "Option::is_none")]
        item: Option<u32>,
        /// The part of the work that is repeated.
        of: Repeated,
        /// Why: the checks that did not hold, or the failure of the judge.
        failure: Arc<str>,
    },
    /// The work of a node has come so far.
    Progress {
        /// The node.
        node: Arc<str>,
        /// Which visit of it.
        iteration: u32,
        /// The attempt, from 1.
        attempt: u32,
        /// The place of the item, in a node with `for_each`.
        #[serde(skip_serializing_if = "Option::is_none")]
        item: Option<u32>,
        /// How far, in words.
        text: Arc<str>,
    },
    /// An attempt failed, and another is to follow.
    NodeRetried {
        /// The node.
        node: Arc<str>,
        /// Which visit of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        iteration: Option<u32>,
        /// The number of the next attempt, from 2.
        attempt: u32,
        /// The failure.
        error: VisitError,
        /// The time until the next attempt. In JSON as milliseconds: `delay_ms`.
        #[serde(rename = "delay_ms", serialize_with = "milliseconds::serialize")]
        delay: Duration,
    },
    /// Something went otherwise than the author of the document may expect.
    Warning {
        /// The node.
        node: Arc<str>,
        /// Which visit of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        iteration: Option<u32>,
        /// The warning.
        text: Arc<str>,
    },
    /// A visit ended. Each visit has one exit.
    NodeExited {
        /// The node.
        node: Arc<str>,
        /// Which visit of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        iteration: Option<u32>,
        /// The branch that the visit lies in.
        #[serde(skip_serializing_if = "Option::is_none")]
        branch: Option<Arc<str>>,
        /// How the visit ended.
        status: VisitStatus,
        /// Whether the visit was beyond `max_visits`, so that the result before it stays, status and all.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        kept: bool,
        /// Why it failed, or was skipped.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<VisitError>,
        /// The result of the visit: its data, and the calls of tools.
        result: SharedOutcome,
    },
    /// A visit that has exited as a success failed afterwards: the branches that it opened fail as a whole, or conflict, or
    /// the route behind it has no value. Its exit comes before, and no other follows.
    VisitFailed {
        /// The node.
        node: Arc<str>,
        /// Which visit of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        iteration: Option<u32>,
        /// The branch that the visit lies in.
        #[serde(skip_serializing_if = "Option::is_none")]
        branch: Option<Arc<str>>,
        /// The failure.
        error: VisitError,
    },
    /// A route was taken.
    Routed {
        /// The node that it leaves.
        from: Arc<str>,
        /// The node that it leads to.
        to: Arc<str>,
        /// Why, as in [`RouteTaken`](crate::RouteTaken).
        reason: Arc<str>,
        /// The branch in which it was taken.
        #[serde(skip_serializing_if = "Option::is_none")]
        branch: Option<Arc<str>>,
    },
    /// The run waits for people, or for a time.
    Waiting,
    /// The run is paused, and nothing runs in it.
    Paused,
    /// The run is not paused any more.
    Unpaused,
    /// The observer was too slow: so many observations, of this run or of others, are missing before this one.
    Missed {
        /// How many.
        count: u64,
    },
    /// The run ended. Nothing follows, unless it is redriven.
    Ended {
        /// The status of the run.
        status: RunStatus,
        /// How the walk ended; absent unless it ended by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        end: Option<GraphStatus>,
        /// The latest result of each node, as [`GraphResult::results`](crate::GraphResult::results) has them. Absent where the
        /// observer has not seen all of them: of a run that it has not followed from its start, that the engine unloaded, or
        /// of which observations were missed. [`GraphRun::outcome`](crate::GraphRun::outcome) has them in any case.
        #[serde(skip_serializing_if = "Option::is_none")]
        results: Option<Arc<BTreeMap<Arc<str>, SharedOutcome>>>,
    },
}

/// Translates the core's observations of a document's runs for a [`GraphObserver`].
///
/// `Engine::builder().observer(GraphEvents::of(&document, observer))` gives it to an engine. Runs of other workflows are not
/// reported. Children of the document's graphs are, under their own ids.
pub struct GraphEvents<O> {
    graphs: HashMap<Arc<str>, Arc<Facts>>,
    observer: O,
    runs: Mutex<HashMap<RunId, RunState>>,
}

impl<O: GraphObserver> GraphEvents<O> {
    /// Observes the runs of every graph of the document.
    pub fn of(document: &Document, observer: O) -> Self {
        let graphs =
            document.graphs().iter().map(|graph| (graph.name.value.clone(), Arc::new(Facts::of(graph))));
        Self { graphs: graphs.collect(), observer, runs: Mutex::default() }
    }

    /// The events that an observation amounts to.
    fn follow(&self, facts: &Arc<Facts>, observation: &Observation) -> Vec<GraphEvent> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        match &observation.what {
            // Of which runs is unknown, so nothing that was counted is certain.
            Observed::Missed { count } => {
                runs.clear();
                return vec![GraphEvent::Missed { count: *count }];
            }
            Observed::RunUnloaded => {
                // An unloaded run has no results in memory, here neither.
                if let Some(run) = runs.get_mut(&observation.run) {
                    run.forget_results();
                }
                if runs.len() > UNLOADED {
                    runs.remove(&observation.run);
                }
                return Vec::new();
            }
            Observed::RunEnded { status } => {
                let run = runs.remove(&observation.run);
                let (end, results) = run.map(RunState::end).unwrap_or_default();
                return vec![GraphEvent::Ended { status: *status, end, results }];
            }
            _ => {}
        }
        if !runs.contains_key(&observation.run) {
            let is_whole = matches!(observation.what, Observed::RunStarted);
            runs.insert(observation.run.clone(), RunState::new(Arc::clone(facts), is_whole));
        }
        let Some(run) = runs.get_mut(&observation.run) else { return Vec::new() };
        run.follow(observation)
    }
}

impl<O: GraphObserver> Observer for GraphEvents<O> {
    fn observe(&self, observation: &Observation) {
        let Some(facts) = self.graphs.get(&observation.workflow) else { return };
        // Without the lock, since an observer may block.
        for event in self.follow(facts, observation) {
            self.observer.observe(&observation.run, &event);
        }
    }

    fn is_synchronous(&self) -> bool {
        self.observer.is_synchronous()
    }
}

impl<O> fmt::Debug for GraphEvents<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphEvents").field("graphs", &self.graphs.keys()).finish_non_exhaustive()
    }
}
