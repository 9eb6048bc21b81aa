//! One run, observation by observation. It holds the executions that run, and of each open scope the latest visits: both are
//! bounded by the graph and by the branches that are open.

use std::collections::HashMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use workflow_core::observe::{Observation, Observed};
use workflow_core::scheduler::Cause;
use workflow_core::{AnyEvent, DisplayItem, ErrorClass, ExecutionId, ScopeId};

use super::GraphEvent;
use super::facts::{Facts, NodeFacts};
use crate::part::Part;
use crate::seen::{Activity, NodeActivity};
use crate::state::{Count, Ended, Output, Token, names, part_of};
use crate::trace::{EventName, JOINED, StepName};
use crate::{GraphStatus, VisitError, VisitStatus};

/// The state of one run.
#[derive(Debug)]
pub(super) struct RunState {
    facts: Arc<Facts>,
    /// Whether every observation of the run was seen, so that an unknown node is one that was not visited.
    is_whole: bool,
    /// The scopes of executions that run.
    running: HashMap<ExecutionId, ScopeId>,
    /// The execution whose events are being logged.
    current: Option<Current>,
    scopes: HashMap<ScopeId, Branch>,
    /// The number of each node's latest visit, by scope.
    visits: HashMap<ScopeId, HashMap<Arc<str>, u32>>,
    end: Option<GraphStatus>,
}

#[derive(Debug)]
struct Current {
    execution: ExecutionId,
    step: Arc<str>,
    scope: ScopeId,
    /// The branches that it has opened so far.
    opened: u32,
}

#[derive(Debug)]
struct Branch {
    parent: ScopeId,
    path: Arc<str>,
}

impl RunState {
    pub(super) fn new(facts: Arc<Facts>, is_whole: bool) -> Self {
        Self {
            facts,
            is_whole,
            running: HashMap::new(),
            current: None,
            scopes: HashMap::new(),
            visits: HashMap::new(),
            end: None,
        }
    }

    /// How the walk ended.
    pub(super) fn end(self) -> Option<GraphStatus> {
        self.end
    }

    pub(super) fn follow(&mut self, observation: &Observation) -> Vec<GraphEvent> {
        match &observation.what {
            Observed::RunStarted => vec![GraphEvent::Started { graph: observation.workflow.clone() }],
            Observed::RunResumed => vec![GraphEvent::Resumed],
            Observed::RunWaiting => vec![GraphEvent::Waiting],
            Observed::RunPaused => vec![GraphEvent::Paused],
            Observed::RunUnpaused => vec![GraphEvent::Unpaused],
            Observed::ExecutionStarted { execution, step, scope, .. } => {
                self.started(*execution, step, *scope)
            }
            Observed::AttemptFailed { execution, step, attempt, class, error, retry_in, .. } => {
                let Some(step) = self.step(step) else { return Vec::new() };
                let scope = self.running.get(execution).copied();
                vec![GraphEvent::NodeRetried {
                    node: step.node.into(),
                    iteration: scope.and_then(|scope| self.open_visit(step, scope)),
                    attempt: attempt.saturating_add(1),
                    error: visit_error(*class, error),
                    delay: *retry_in,
                }]
            }
            Observed::ExecutionSucceeded { execution, step, .. } => {
                let scope = self.running.remove(execution);
                self.current = scope.map(|scope| Current {
                    execution: *execution,
                    step: Arc::clone(step),
                    scope,
                    opened: 0,
                });
                Vec::new()
            }
            Observed::ExecutionFailed { execution, step, class, error, .. } => {
                let scope = self.running.remove(execution);
                let error = visit_error(*class, error);
                scope.and_then(|scope| self.failed(step, scope, error)).into_iter().collect()
            }
            Observed::ExecutionDropped { execution, .. } | Observed::CommitRefused { execution, .. } => {
                self.running.remove(execution);
                Vec::new()
            }
            Observed::EventLogged { scope, event, cause, .. } => self.logged(*scope, event, *cause),
            Observed::Displayed(DisplayItem::Shown { event, .. }) => displayed(event).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The node and the part of a step, if the graph has the node.
    fn step<'n>(&self, step: &'n str) -> Option<StepName<'n>> {
        StepName::of(step).filter(|step| self.facts.nodes.contains_key(step.node))
    }

    fn facts(&self, node: &str) -> Option<&NodeFacts> {
        self.facts.nodes.get(node)
    }

    fn started(&mut self, execution: ExecutionId, step: &str, scope: ScopeId) -> Vec<GraphEvent> {
        self.running.insert(execution, scope);
        let step = self.step(step).filter(|step| step.part == Part::Visit);
        let entered = step.map(|step| GraphEvent::NodeEntered {
            node: step.node.into(),
            iteration: self.open_visit(step, scope),
            branch: self.path(scope),
        });
        entered.into_iter().collect()
    }

    /// The failure of a visit that no step catches.
    fn failed(&self, step: &str, scope: ScopeId, error: VisitError) -> Option<GraphEvent> {
        let step = self.step(step)?;
        let facts = self.facts(step.node)?;
        let fails = match step.part {
            Part::Branch => false,
            Part::Caught => true,
            Part::Each => facts.item_fails && !facts.catches,
            _ => !facts.catches,
        };
        // The work of an item lies in its branch, and its node around it.
        let outer = self.scopes.get(&scope).filter(|_| step.part == Part::Each).map(|branch| branch.parent);
        let scope = outer.unwrap_or(scope);
        fails.then(|| GraphEvent::NodeExited {
            node: step.node.into(),
            iteration: self.open_visit(step, scope),
            branch: self.path(scope),
            status: VisitStatus::Failed,
            error: Some(error),
        })
    }

    fn logged(&mut self, scope: ScopeId, event: &AnyEvent, cause: Cause) -> Vec<GraphEvent> {
        let is_gather = event.event_type().is_some_and(|kind| kind.name() == "gathered");
        if is_gather {
            self.close_below(scope);
            return Vec::new();
        }
        let current = self.current.as_mut().filter(|current| cause == Cause::Execution(current.execution));
        match (EventName::of(event.name()), current) {
            (EventName::Item, Some(current)) => {
                current.opened += 1;
                let node = StepName::of(&current.step).map_or(&*current.step, |step| step.node);
                let (parent, number) = (current.scope, current.opened);
                let path = match self.scopes.get(&parent) {
                    Some(outer) => format!("{}/{node}/{number}", outer.path),
                    None => format!("{node}/{number}"),
                };
                self.scopes.insert(scope, Branch { parent, path: path.into() });
                Vec::new()
            }
            (EventName::Result(node), Some(current)) => {
                let step = StepName::of(&current.step);
                let is_caught = step.is_some_and(|step| step.part == Part::Caught);
                let is_own = step.is_some_and(|step| step.node == node && step.part != Part::Join);
                if is_caught {
                    // The branches that the visit had opened were dropped, and nothing gathers them.
                    self.close_below(scope);
                }
                let ended = part_of(event);
                ended.map(|ended| self.ended(node, scope, ended, is_own)).unwrap_or_default()
            }
            (EventName::Count(node), _) => {
                if let Some(count) = data::<Count>(event) {
                    // A later result of a branch has the greater number.
                    let latest = self.visits.entry(scope).or_default().entry(node.into()).or_default();
                    *latest = count.visit.max(*latest);
                }
                Vec::new()
            }
            (EventName::Token { from, to }, _) => {
                data(event).map(|token| self.token(from, to, scope, token)).unwrap_or_default()
            }
            (EventName::Joined(from), _) => {
                let to = self.facts(from).and_then(|facts| facts.join.clone());
                let branch = self.path(scope);
                let routed =
                    to.map(|to| GraphEvent::Routed { from: from.into(), to, reason: JOINED.into(), branch });
                routed.into_iter().collect()
            }
            _ => {
                if event.name() == names::OUTPUT {
                    self.end = data::<Output>(event).map(|output| output.status);
                }
                Vec::new()
            }
        }
    }

    fn ended(&mut self, node: &str, scope: ScopeId, ended: Ended, is_own: bool) -> Vec<GraphEvent> {
        self.visits.entry(scope).or_default().insert(node.into(), ended.visit);
        if !is_own {
            return Vec::new();
        }
        let (node, iteration): (Arc<str>, _) = (node.into(), Some(ended.visit));
        let warning = |text| GraphEvent::Warning { node: Arc::clone(&node), iteration, text };
        let mut events: Vec<_> = ended.warnings.into_iter().map(warning).collect();
        events.push(GraphEvent::NodeExited {
            node,
            iteration,
            branch: self.path(scope),
            status: ended.status,
            error: ended.error.map(|error| VisitError { class: error.class, message: error.message }),
        });
        events
    }

    fn token(&self, from: &str, to: &str, scope: ScopeId, token: Token) -> Vec<GraphEvent> {
        let iteration = self.latest_visit(from, scope);
        let warning = |text| GraphEvent::Warning { node: from.into(), iteration, text };
        let mut events: Vec<_> = token.warnings.into_iter().map(warning).collect();
        let branch = self.path(scope);
        events.push(GraphEvent::Routed { from: from.into(), to: to.into(), reason: token.reason, branch });
        events
    }

    /// The number of the visit that a step is a part of.
    fn open_visit(&self, step: StepName<'_>, scope: ScopeId) -> Option<u32> {
        let latest = self.latest_visit(step.node, scope);
        match step.part {
            // Their node has left its result already.
            Part::Route | Part::Branch | Part::Join => latest,
            _ => match latest {
                Some(latest) => Some(latest.saturating_add(1)),
                None => self.is_whole.then_some(1),
            },
        }
    }

    /// The number of the latest visit of a node that a scope sees.
    fn latest_visit(&self, node: &str, scope: ScopeId) -> Option<u32> {
        let outer = |inner: &ScopeId| self.scopes.get(inner).map(|branch| branch.parent);
        let mut scopes = std::iter::successors(Some(scope), outer);
        scopes.find_map(|scope| self.visits.get(&scope)?.get(node).copied())
    }

    fn path(&self, scope: ScopeId) -> Option<Arc<str>> {
        self.scopes.get(&scope).map(|branch| Arc::clone(&branch.path))
    }

    /// Forgets the branches below a scope, which have all ended.
    fn close_below(&mut self, scope: ScopeId) {
        let mut open = vec![scope];
        while let Some(outer) = open.pop() {
            let inner: Vec<ScopeId> = self
                .scopes
                .iter()
                .filter(|(_, branch)| branch.parent == outer)
                .map(|(scope, _)| *scope)
                .collect();
            for scope in inner {
                self.scopes.remove(&scope);
                self.visits.remove(&scope);
                open.push(scope);
            }
        }
    }
}

fn visit_error(class: ErrorClass, error: &str) -> VisitError {
    VisitError { class: class.to_string().into(), message: error.into() }
}

fn data<T: DeserializeOwned>(event: &AnyEvent) -> Option<T> {
    T::deserialize(event.as_json()?).ok()
}

fn displayed(event: &AnyEvent) -> Option<GraphEvent> {
    let NodeActivity { node, iteration, attempt, item, activity } =
        event.downcast_ref::<NodeActivity>()?.clone();
    Some(match activity {
        Activity::Progress { text } => GraphEvent::Progress { node, iteration, attempt, item, text },
        Activity::ToolCalled { tool } => GraphEvent::ToolCalled { node, iteration, attempt, item, tool },
        Activity::ToolReturned { tool, ok } => {
            GraphEvent::ToolReturned { node, iteration, attempt, item, tool, ok }
        }
    })
}
