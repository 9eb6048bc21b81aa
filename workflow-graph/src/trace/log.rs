//! A report, indexed for questions about its graph: executions by id, events by name and scope, branches by name.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use serde::de::DeserializeOwned;
use smallvec::SmallVec;
use workflow_core::report::{BranchReport, ExecutionOutcome, ExecutionTrace, LoggedEvent, RunReport};
use workflow_core::{ErrorClass, ExecutionId, ScopeId, Seq};

use super::StepName;
use crate::check;
use crate::document::model::{Failures, Graph, Next, Node};
use crate::part::Part;
use crate::state::{Failure, names};

/// The most steps from a part of a visit back to the execution that began it: a failure of a reply of a node, say.
const MOST_LINKS: usize = 8;

/// The places of events in a log, by name and scope.
type Places<'a> = HashMap<(&'a str, ScopeId), SmallVec<[usize; 2]>>;

/// The log of a run, with its graph.
#[derive(Debug)]
pub(crate) struct Log<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) report: &'a RunReport,
    /// By node, where its branches meet.
    pub(crate) joins: Vec<Option<usize>>,
    /// The failures that steps catch.
    failures: HashMap<Seq, ExecutionId>,
    /// The visits in each scope of each node, in order; nothing where none opens any.
    works: HashMap<(&'a str, ScopeId), Vec<ExecutionId>>,
    /// The places of events in the log, by name and scope, in order. Many questions need none of them.
    events: OnceCell<Places<'a>>,
    /// The places of the gathers of each scope, in order.
    gathers: HashMap<ScopeId, Vec<usize>>,
    /// The path of each branch, by its scope less one.
    branches: Vec<Arc<str>>,
    /// The scopes of branches that failed.
    failed: HashSet<ScopeId>,
    /// The executions with a branch that failed.
    with_failures: HashSet<ExecutionId>,
    /// Whether a visit without a result was counted: few runs have one, and the others need not ask for the names of counts.
    has_counts: bool,
}

impl<'a> Log<'a> {
    pub(crate) fn of(graph: &'a Graph, report: &'a RunReport) -> Self {
        let mut log = Self {
            graph,
            report,
            joins: check::joins(graph),
            failures: HashMap::new(),
            works: HashMap::new(),
            events: OnceCell::new(),
            gathers: HashMap::new(),
            branches: Vec::with_capacity(report.branches.len()),
            failed: HashSet::new(),
            with_failures: HashSet::new(),
            has_counts: false,
        };
        // A node without items opens no branch, and the document may have changed since.
        let opens = |node: &Node| node.for_each.is_some() || matches!(node.next, Next::Parallel(_));
        let has_works = !report.branches.is_empty() || graph.nodes.iter().any(opens);
        for execution in &report.trace {
            if let Some(failure) = execution.failure {
                log.failures.insert(failure, execution.execution);
            }
            if has_works && matches!(StepName::of(&execution.step), Some(StepName { part: Part::Visit, .. }))
            {
                log.works.entry((&execution.step, execution.scope)).or_default().push(execution.execution);
            }
        }
        for (place, event) in report.log.iter().enumerate() {
            // A node may have the name that the log gives to gathers.
            if event.is_gathered() {
                log.gathers.entry(event.scope).or_default().push(place);
            } else {
                log.has_counts |= event.event.ends_with(":count");
            }
        }
        let mut opened: HashMap<ExecutionId, u32> = HashMap::new();
        for branch in &report.branches {
            let number = opened.entry(branch.opener).or_default();
            *number += 1;
            let node = StepName::of(&branch.step).map_or(&*branch.step, |step| step.node);
            let path = match log.branch(branch.parent) {
                Some(outer) => format!("{outer}/{node}/{number}"),
                None => format!("{node}/{number}"),
            };
            log.branches.push(path.into());
        }
        log.note_failed();
        log
    }

    /// Notes the branches that failed: one with an execution that failed in it, and one with branches that failed it as a whole.
    fn note_failed(&mut self) {
        // Inner branches come after those around them.
        for branch in self.report.branches.iter().rev() {
            if !branch.failed && !self.failed.contains(&branch.scope) {
                continue;
            }
            self.failed.insert(branch.scope);
            self.with_failures.insert(branch.opener);
            let is_caught = self.execution(branch.opener).is_some_and(|opener| opener.failure.is_some());
            if self.fails_all(branch) && !is_caught {
                self.failed.insert(branch.parent);
            }
        }
    }

    /// Whether the failure of a branch fails all of its fan-out.
    pub(crate) fn fails_all(&self, branch: &BranchReport) -> bool {
        let node = StepName::of(&branch.step).and_then(|step| self.graph.find(step.node));
        let failures =
            node.map(|node| &self.graph.nodes[node]).and_then(|node| match (&node.for_each, &node.next) {
                (Some(each), _) => Some(each.failures),
                (None, Next::Parallel(parallel)) => Some(parallel.failures),
                _ => None,
            });
        failures == Some(Failures::FailAll)
    }

    /// Whether the branch has failed.
    pub(crate) fn has_failed(&self, branch: &BranchReport) -> bool {
        self.failed.contains(&branch.scope)
    }

    /// The failure for good of an execution.
    pub(crate) fn failed(execution: &ExecutionTrace) -> Option<(ErrorClass, &str)> {
        match &execution.outcome {
            ExecutionOutcome::Failed { class, error, .. } => Some((*class, error)),
            _ => None,
        }
    }

    /// The event with this number.
    pub(crate) fn event(&self, seq: Seq) -> Option<&'a LoggedEvent> {
        self.report.log.get(usize::try_from(seq.0).ok()?.checked_sub(1)?)
    }

    pub(crate) fn execution(&self, id: ExecutionId) -> Option<&'a ExecutionTrace> {
        // They are in the order in which they were scheduled: nearly always that of their ids.
        let trace = &self.report.trace;
        let place = usize::try_from(id.0).ok()?.checked_sub(1)?;
        let at = trace.get(place).filter(|execution| execution.execution == id);
        let near =
            || trace.binary_search_by_key(&id, |execution| execution.execution).ok().map(|at| &trace[at]);
        at.or_else(near).or_else(|| trace.iter().find(|execution| execution.execution == id))
    }

    /// The failure that this event is, which a step catches.
    pub(crate) fn failure(&self, event: Seq) -> Option<Failure> {
        let failed = self.execution(*self.failures.get(&event)?)?;
        let (class, error) = Self::failed(failed)?;
        let node = StepName::of(&failed.step)?.node.into();
        Some(Failure { message: error.into(), class: class.to_string().into(), node })
    }

    /// The path of the branch of a scope. Nothing for the run itself.
    pub(crate) fn branch(&self, scope: ScopeId) -> Option<&Arc<str>> {
        self.branches.get(usize::try_from(scope.0).ok()?.checked_sub(1)?)
    }

    /// The branch of a scope. Nothing for the run itself.
    pub(crate) fn branch_report(&self, scope: ScopeId) -> Option<&'a BranchReport> {
        self.report.branches.get(usize::try_from(scope.0).ok()?.checked_sub(1)?)
    }

    /// Whether a branch that the execution opened has failed.
    pub(crate) fn has_failed_branch(&self, opener: ExecutionId) -> bool {
        self.with_failures.contains(&opener)
    }

    /// The scope around a branch.
    pub(crate) fn parent(&self, scope: ScopeId) -> Option<ScopeId> {
        self.branch_report(scope).map(|branch| branch.parent)
    }

    /// The scope, and those around it, from the inside out.
    pub(crate) fn scopes(&self, scope: ScopeId) -> impl Iterator<Item = ScopeId> + '_ {
        std::iter::successors(Some(scope), |inner| self.parent(*inner))
    }

    /// Whether a scope is this branch, or lies in it.
    pub(crate) fn is_inside(&self, scope: ScopeId, branch: ScopeId) -> bool {
        self.scopes(scope).any(|scope| scope == branch)
    }

    fn events(&self) -> &Places<'a> {
        self.events.get_or_init(|| {
            let mut events: Places<'_> = HashMap::with_capacity(self.report.log.len());
            // A node may have the name that the log gives to gathers.
            let log = self.report.log.iter().enumerate().filter(|(_, event)| !event.is_gathered());
            for (place, event) in log {
                events.entry((&*event.event, event.scope)).or_default().push(place);
            }
            events
        })
    }

    /// The latest event of this name that `scope` saw at `until`: the innermost scope that has one wins.
    pub(crate) fn latest(&self, name: &str, scope: ScopeId, until: Seq) -> Option<&'a LoggedEvent> {
        self.scopes(scope).find_map(|scope| {
            let places = self.events().get(&(name, scope))?;
            let count = places.partition_point(|place| self.report.log[*place].seq <= until);
            places[..count].last().map(|place| &self.report.log[*place])
        })
    }

    /// The latest count of visits of a node that left no result, where [`latest`](Self::latest) would find it.
    pub(crate) fn counted(&self, node: &str, scope: ScopeId, until: Seq) -> Option<&'a LoggedEvent> {
        if !self.has_counts {
            return None;
        }
        self.latest(&names::of(node, "count"), scope, until)
    }

    /// The time from the begin of the run to the event.
    pub(crate) fn since_begin(&self, event: &LoggedEvent) -> Duration {
        let begin = self.report.log.first().map_or(event.at, |first| first.at);
        event.at.duration_since(begin).unwrap_or_default()
    }

    /// The execution that began the visit of which `execution` is a part.
    pub(crate) fn visit_of(&self, execution: &'a ExecutionTrace) -> Option<&'a ExecutionTrace> {
        let mut current = execution;
        for _ in 0..MOST_LINKS {
            let step = StepName::of(&current.step)?;
            let before = match step.part {
                Part::Visit => return Some(current),
                Part::Reply | Part::Expired => {
                    let answer = self.event(current.trigger)?;
                    self.event(answer.reply_to.or(answer.expired)?)?.execution?
                }
                Part::Caught => *self.failures.get(&current.trigger)?,
                Part::Route | Part::Branch | Part::Each => self.event(current.trigger)?.execution?,
                Part::Join | Part::Collect => {
                    let works = self.works.get(&(step.node, current.scope))?;
                    let count = works.partition_point(|work| *work < current.execution);
                    *works[..count].last()?
                }
            };
            current = self.execution(before)?;
        }
        None
    }

    /// When a branch that failed had ended: as a step caught the failure of the branches with which it ended, its own or
    /// those around it, or as they were gathered. Nothing if neither happened.
    pub(crate) fn settled(&self, scope: ScopeId) -> Option<Seq> {
        let end = |scope| {
            let opener = self.execution(self.branch_report(scope)?.opener)?;
            opener.failure.or_else(|| self.gathered(scope))
        };
        self.scopes(scope).find_map(end)
    }

    /// The execution that opened branches in the visit that `began` began.
    pub(crate) fn opener(&self, began: ExecutionId) -> Option<&'a ExecutionTrace> {
        let mut openers = self.report.branches.iter().filter_map(|branch| self.execution(branch.opener));
        openers.find(|opener| self.visit_of(opener).is_some_and(|visit| visit.execution == began))
    }

    /// The number of the gather that ended the branch of a scope; nothing if none did.
    pub(crate) fn gathered(&self, scope: ScopeId) -> Option<Seq> {
        let branch = self.branch_report(scope)?;
        let places = self.gathers.get(&branch.parent)?;
        let count = places.partition_point(|place| self.report.log[*place].seq < branch.item);
        places.get(count).map(|place| self.report.log[*place].seq)
    }
}

/// The data of an event that a graph left; nothing if it has another form.
pub(crate) fn data<T: DeserializeOwned>(event: &LoggedEvent) -> Option<T> {
    T::deserialize(event.value.as_json()?).ok()
}
