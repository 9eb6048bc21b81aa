//! One run, observation by observation. It holds the executions that run, and of each open scope the latest visits: both are
//! bounded by the graph and by the branches that are open.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use workflow_core::observe::{Observation, Observed};
use workflow_core::scheduler::Cause;
use workflow_core::{AnyEvent, DisplayItem, ErrorClass, ExecutionId, ScopeId};

use super::facts::{Facts, Instruction, NodeFacts};
use super::latest::{Exit, Visits};
use super::{GraphEvent, sign};
use crate::part::Part;
use crate::result::{NodeOutcome, SharedOutcome};
use crate::seen::{Activity, NodeActivity};
use crate::state::{Count, Ended, Output, Token, names, part_of};
use crate::trace::{EventName, ItemOf, JOINED, StepName};
use crate::{GraphStatus, VisitError, VisitStatus};

/// The results of a run that ended, by node.
type Results = Arc<BTreeMap<Arc<str>, SharedOutcome>>;

/// The state of one run.
#[derive(Debug)]
pub(super) struct RunState {
    facts: Arc<Facts>,
    /// Whether every observation of the run was seen, so that an unknown node is one that was not visited.
    is_whole: bool,
    /// Whether the latest result of every node is in `visits`.
    has_results: bool,
    /// The scopes of executions that run.
    running: HashMap<ExecutionId, ScopeId>,
    /// Visits that began, and whose instruction is still to come.
    entered: HashMap<ExecutionId, GraphEvent>,
    /// The execution whose events are being logged.
    current: Option<Current>,
    scopes: HashMap<ScopeId, Branch>,
    visits: Visits,
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
    /// The node that opened it.
    node: Arc<str>,
    path: Arc<str>,
    /// The item that opened it, as messages name it.
    item: Option<Arc<str>>,
}

impl RunState {
    pub(super) fn new(facts: Arc<Facts>, is_whole: bool) -> Self {
        Self {
            facts,
            is_whole,
            has_results: is_whole,
            running: HashMap::new(),
            entered: HashMap::new(),
            current: None,
            scopes: HashMap::new(),
            visits: Visits::default(),
            end: None,
        }
    }

    /// How the walk ended, and the results of its nodes if all of them were seen.
    pub(super) fn end(self) -> (Option<GraphStatus>, Option<Results>) {
        // A run that ended within branches has no join that would have published their results.
        let is_whole = matches!(self.end, Some(GraphStatus::Completed | GraphStatus::NoMatch));
        let results = self.has_results.then(|| Arc::new(self.visits.results(!is_whole)));
        (self.end, results)
    }

    /// Drops the results, so that an unloaded run keeps none in memory.
    pub(super) fn forget_results(&mut self) {
        self.has_results = false;
        self.visits.forget_results();
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
                let mut events = self.entered(*execution);
                let Some(step) = self.step(step) else { return events };
                let scope = self.running.get(execution).copied();
                events.push(GraphEvent::NodeRetried {
                    node: step.node.into(),
                    iteration: scope.and_then(|scope| self.open_visit(step, scope)),
                    attempt: attempt.saturating_add(1),
                    error: visit_error(*class, error),
                    delay: *retry_in,
                });
                events
            }
            Observed::ExecutionSucceeded { execution, step, .. } => {
                let scope = self.running.remove(execution);
                self.current = scope.map(|scope| Current {
                    execution: *execution,
                    step: Arc::clone(step),
                    scope,
                    opened: 0,
                });
                self.entered(*execution)
            }
            Observed::ExecutionFailed { execution, step, class, error, .. } => {
                let mut events = self.entered(*execution);
                let error = visit_error(*class, error);
                if let Some(scope) = self.running.remove(execution) {
                    events.extend(self.failed(step, scope, error));
                }
                events
            }
            Observed::ExecutionDropped { execution, .. } | Observed::CommitRefused { execution, .. } => {
                self.running.remove(execution);
                self.entered(*execution)
            }
            Observed::EventLogged { scope, event, cause, .. } => self.logged(*scope, event, *cause),
            Observed::Displayed(DisplayItem::Shown { execution, event, .. }) => {
                self.displayed(*execution, event)
            }
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
        let Some(step) = self.step(step).filter(|step| step.part == Part::Visit) else { return Vec::new() };
        self.visits.of(scope, step.node).exit = None;
        let instruction = self.facts(step.node).map(|facts| &facts.instruction);
        let (instruction, is_shown) = match instruction {
            Some(Instruction::Fixed(text)) => (Some(Arc::clone(text)), false),
            Some(Instruction::Shown) => (None, true),
            Some(Instruction::None) | None => (None, false),
        };
        let entered = GraphEvent::NodeEntered {
            node: step.node.into(),
            iteration: self.open_visit(step, scope),
            branch: self.path(scope),
            instruction,
        };
        if is_shown {
            // Its next observation has the instruction, or shows that there is none.
            self.entered.insert(execution, entered);
            return Vec::new();
        }
        vec![entered]
    }

    /// The begin of the visit, if it was not told yet.
    fn entered(&mut self, execution: ExecutionId) -> Vec<GraphEvent> {
        self.entered.remove(&execution).into_iter().collect()
    }

    fn displayed(&mut self, execution: ExecutionId, event: &AnyEvent) -> Vec<GraphEvent> {
        let mut events = self.entered(execution);
        let Some(shown) = event.downcast_ref::<NodeActivity>() else { return events };
        if let Activity::Instructed { instruction: text } = &shown.activity {
            if let Some(GraphEvent::NodeEntered { instruction, .. }) = events.first_mut() {
                *instruction = Some(Arc::clone(text));
            }
            return events;
        }
        events.extend(sign::event(shown.clone()));
        events
    }

    /// The failure of a visit that no step catches, and those of the visits whose branches fail with it.
    fn failed(&mut self, step: &str, scope: ScopeId, error: VisitError) -> Vec<GraphEvent> {
        let Some(step) = self.step(step) else { return Vec::new() };
        let Some(facts) = self.facts(step.node) else { return Vec::new() };
        let fails = match step.part {
            Part::Branch => false,
            Part::Caught => true,
            Part::Each => facts.at_once.items && !facts.catches,
            _ => !facts.catches,
        };
        if !fails {
            return Vec::new();
        }
        // The work of an item lies in its branch, and its node around it.
        let of_item =
            self.scopes.get(&scope).filter(|branch| branch.item.is_some() && *branch.node == *step.node);
        let outer = of_item.map(|branch| branch.parent);
        let error = match of_item.and_then(|branch| branch.item.as_ref()) {
            Some(item) => VisitError { message: format!("{item}: {}", error.message).into(), ..error },
            None => error,
        };
        let mut scope = outer.unwrap_or(scope);
        let mut events: Vec<_> = self.fails(step, scope, error.clone()).into_iter().collect();
        let message = format!("`{}` failed: {}", step.node, error.message);
        let error = VisitError { class: error.class, message: message.into() };
        while let Some(Branch { parent, node, .. }) = self.scopes.get(&scope) {
            let (parent, node) = (*parent, Arc::clone(node));
            if !self.facts(&node).is_some_and(|facts| facts.at_once.branches && !facts.catches) {
                break;
            }
            events.extend(self.fails_later(&node, parent, error.clone()));
            scope = parent;
        }
        events
    }

    /// A failed exit, or a failure after the exit.
    fn fails(&mut self, step: StepName<'_>, scope: ScopeId, error: VisitError) -> Option<GraphEvent> {
        let has_exited = self.visits.get(scope, step.node).is_some_and(|latest| latest.exit.is_some());
        if has_exited || self.is_after_exit(step) {
            // Items fail one after the other, and their node once.
            return if step.part == Part::Each { None } else { self.fails_later(step.node, scope, error) };
        }
        let iteration = self.open_visit(step, scope);
        let exit = Exit { visit: iteration.unwrap_or_default(), told: 0, has_failed: true };
        self.visits.of(scope, step.node).exit = Some(exit);
        Some(GraphEvent::NodeExited {
            node: step.node.into(),
            iteration,
            branch: self.path(scope),
            status: VisitStatus::Failed,
            kept: false,
            result: NodeOutcome::failed(iteration.unwrap_or_default(), &error).into(),
            error: Some(error),
        })
    }

    fn fails_later(&mut self, node: &str, scope: ScopeId, error: VisitError) -> Option<GraphEvent> {
        let iteration = self.latest_visit(node, scope);
        if let Some(exit) = &mut self.visits.of(scope, node).exit
            && std::mem::replace(&mut exit.has_failed, true)
        {
            return None;
        }
        Some(GraphEvent::VisitFailed { node: node.into(), iteration, branch: self.path(scope), error })
    }

    /// Whether the node of the step has left its result, and exited, before the step.
    fn is_after_exit(&self, step: StepName<'_>) -> bool {
        match step.part {
            Part::Route | Part::Branch | Part::Join => true,
            Part::Reply => self.facts(step.node).is_some_and(|facts| facts.pauses),
            _ => false,
        }
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
                let item = ItemOf::of(event.as_json()).map(|item| item.name().into());
                let (node, path) = (node.into(), path.into());
                self.scopes.insert(scope, Branch { parent, node, path, item });
                Vec::new()
            }
            (EventName::Result(node), Some(current)) => {
                let step = Arc::clone(&current.step);
                let step = StepName::of(&step);
                if step.is_some_and(|step| step.part == Part::Caught) {
                    // The branches that the visit had opened were dropped, and nothing gathers them.
                    self.close_below(scope);
                }
                part_of(event).map(|ended| self.ended(step, node, scope, (event, ended))).unwrap_or_default()
            }
            (EventName::Count(node), _) => {
                if let Some(count) = data::<Count>(event) {
                    // A later result of a branch has the greater number.
                    let latest = &mut self.visits.of(scope, node).visit;
                    *latest = Some(latest.map_or(count.visit, |visit| visit.max(count.visit)));
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

    /// A result entered the log: of a visit, by a join that publishes it, or once more after its visit has exited.
    fn ended(
        &mut self,
        step: Option<StepName<'_>>,
        node: &str,
        scope: ScopeId,
        (event, ended): (&AnyEvent, Ended),
    ) -> Vec<GraphEvent> {
        let result = SharedOutcome::of(event);
        self.visits.leave(scope, node, ended.visit, result.clone());
        let Some(step) = step.filter(|step| step.node == node && step.part != Part::Join) else {
            return Vec::new();
        };
        let error = ended.error.map(|error| VisitError { class: error.class, message: error.message });
        let has_failed = ended.status == VisitStatus::Failed;
        let latest = self.visits.of(scope, node);
        let before = latest.exit.as_ref().filter(|exit| exit.visit == ended.visit);
        let (told, is_again) = (before.map_or(0, |exit| exit.told), before.is_some());
        let failed_before = before.is_some_and(|exit| exit.has_failed);
        let told_now = ended.warnings.len();
        latest.exit =
            Some(Exit { visit: ended.visit, told: told_now, has_failed: has_failed || failed_before });
        let is_again = is_again || self.is_after_exit(step);
        let (node, iteration): (Arc<str>, _) = (node.into(), Some(ended.visit));
        let warning = |text| GraphEvent::Warning { node: Arc::clone(&node), iteration, text };
        let mut events: Vec<_> = ended.warnings.into_iter().skip(told).map(warning).collect();
        let branch = self.path(scope);
        if !is_again {
            let Ended { status, kept, .. } = ended;
            events.push(GraphEvent::NodeExited { node, iteration, branch, status, kept, error, result });
        } else if let Some(error) = error.filter(|_| has_failed && !failed_before) {
            events.push(GraphEvent::VisitFailed { node, iteration, branch, error });
        }
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
        if self.is_after_exit(step) {
            return latest;
        }
        match latest {
            Some(latest) => Some(latest.saturating_add(1)),
            None => self.is_whole.then_some(1),
        }
    }

    /// The number of the latest visit of a node that a scope sees.
    fn latest_visit(&self, node: &str, scope: ScopeId) -> Option<u32> {
        let outer = |inner: &ScopeId| self.scopes.get(inner).map(|branch| branch.parent);
        let mut scopes = std::iter::successors(Some(scope), outer);
        scopes.find_map(|scope| self.visits.get(scope, node)?.visit)
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
                self.visits.forget(scope);
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
