//! Distinguishes the outcomes of runs: how the run ended and with what, and the executions with their events. Events
//! are identified by their origin and value, not by their positions in the log.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use workflow_core::report::{
    BoundInput, BranchReport, ExecutionOutcome, ExecutionTrace, LoggedEvent, RunReport,
};
use workflow_core::table::InputKind;
use workflow_core::{ExecutionId, RunStatus, ScopeId, Seq};

use super::footprint::Interest;
use super::gate::Actor;

/// The outcome of a run, comparable with that of other runs.
///
/// Two outcomes are equal if the runs ended alike with the same output, and executed the same steps with the same
/// events, which emitted the same events. Events are the same if the same execution emitted them with the same values,
/// at any position in the log. The order of list elements counts. Events from outside that no execution has taken do
/// not count.
///
/// An outcome prints in one line, without events. So two outcomes that differ only in the events that executions took
/// print alike. [Replay](crate::Explore::replay) their [orders](crate::Explored::order_of) to see the difference.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Outcome {
    status: RunStatus,
    output: Option<String>,
    executions: BTreeMap<String, u64>,
    /// A digest of every execution with its inputs and outputs.
    lineage: u64,
}

impl Outcome {
    pub(super) fn of(report: &RunReport, arrived: &[Actor], interest: &Interest) -> Self {
        let executions = report.steps.iter().map(|row| (row.step.to_string(), row.executions)).collect();
        let output = (report.status == RunStatus::Completed).then(|| output(report)).flatten();
        let lineage = Lineage::of(report, arrived, interest);
        Self { status: report.status, output, executions, lineage }
    }

    /// How the run ended, or that it waits.
    pub fn status(&self) -> RunStatus {
        self.status
    }

    /// The stop event's name and JSON.
    pub fn output(&self) -> Option<&str> {
        self.output.as_deref()
    }

    /// The number of a step's executions in all scopes; 0 for an unknown step.
    pub fn executions(&self, step: &str) -> u64 {
        self.executions.get(step).copied().unwrap_or(0)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if let Some(output) = &self.output {
            write!(f, " with {output}")?;
        }
        let ran = self.executions.iter().filter(|(_, count)| **count > 0);
        let ran: Vec<String> = ran.map(|(step, count)| format!("{step} {count}")).collect();
        write!(f, "; executions: {}", ran.join(", "))
    }
}

fn output(report: &RunReport) -> Option<String> {
    let stop = report.log.iter().find(|logged| logged.value.roles().is_stop())?;
    let json = stop.value.to_json().map_or_else(|error| error.to_string(), |json| json.to_string());
    Some(format!("{} {json}", stop.event))
}

/// The origin of each event of a run, as digests.
struct Lineage<'a> {
    report: &'a RunReport,
    interest: &'a Interest,
    arrived: &'a [Actor],
    events: HashMap<Seq, u64>,
    executions: HashMap<ExecutionId, u64>,
    traces: HashMap<ExecutionId, &'a ExecutionTrace>,
    parents: HashMap<ScopeId, (ScopeId, Seq)>,
    logged: HashMap<Seq, &'a LoggedEvent>,
}

impl<'a> Lineage<'a> {
    fn of(report: &'a RunReport, arrived: &'a [Actor], interest: &'a Interest) -> u64 {
        let branches = report.branches.iter().map(|branch| (branch.scope, (branch.parent, branch.item)));
        let mut lineage = Self {
            report,
            interest,
            arrived,
            events: HashMap::new(),
            executions: HashMap::new(),
            traces: report.trace.iter().map(|trace| (trace.execution, trace)).collect(),
            parents: branches.collect(),
            logged: report.log.iter().map(|logged| (logged.seq, logged)).collect(),
        };
        lineage.trace_events();
        for trace in &report.trace {
            lineage.execution(trace);
        }
        let mut all: Vec<u64> = report.trace.iter().map(|trace| lineage.effects(trace)).collect();
        all.sort_unstable();
        digest(&all)
    }

    /// An execution's inputs precede its outputs in the log, so one pass is enough.
    fn trace_events(&mut self) {
        let mut outside = 0;
        for logged in &self.report.log {
            let origin = match logged.execution.and_then(|id| self.traces.get(&id).copied()) {
                Some(trace) => {
                    let place = trace.emitted.iter().position(|seq| *seq == logged.seq);
                    digest(&(self.execution(trace), place))
                }
                None if logged.expired.is_some() => {
                    digest(&("expired", logged.expired.and_then(|request| self.events.get(&request))))
                }
                None if logged.is_gathered() => self.gathered(logged),
                None => {
                    outside += 1;
                    self.arrival(outside)
                }
            };
            self.events.insert(logged.seq, digest(&(&logged.event, origin, value(logged))));
        }
    }

    /// The events of the fan-out's branches, each in order.
    fn gathered(&self, gathered: &LoggedEvent) -> u64 {
        let below = self.branches_of(gathered);
        let before = self.report.log.iter().take_while(|logged| logged.seq < gathered.seq);
        let mut branches = BTreeMap::<ScopeId, Vec<u64>>::new();
        for logged in before.filter(|logged| below.contains(&logged.scope)) {
            let event = self.events.get(&logged.seq).copied().unwrap_or(0);
            branches.entry(logged.scope).or_default().push(event);
        }
        let mut branches: Vec<u64> =
            branches.iter().map(|(scope, events)| digest(&(self.scope(*scope), events))).collect();
        branches.sort_unstable();
        let dropped =
            self.report.branches.iter().filter(|branch| branch.dropped && below.contains(&branch.scope));
        let mut dropped: Vec<u64> = dropped.map(|branch| self.scope(branch.scope)).collect();
        dropped.sort_unstable();
        digest(&(self.scope(gathered.scope), branches, dropped))
    }

    /// The branches opened for the items of the event, by the step it names.
    fn branches_of(&self, gathered: &LoggedEvent) -> HashSet<ScopeId> {
        let mut fan_outs = HashMap::<ExecutionId, Vec<&BranchReport>>::new();
        for branch in self.report.branches.iter().filter(|branch| branch.parent == gathered.scope) {
            fan_outs.entry(branch.opener).or_default().push(branch);
        }
        let held = gathered.value.to_json().ok();
        let item = |branch: &&BranchReport| self.logged.get(&branch.item)?.value.to_json().ok();
        let of_these = |branches: &&Vec<&BranchReport>| {
            let named = |branch: &&BranchReport| gathered.event.starts_with(&format!("{}.", branch.step));
            let items = branches.iter().map(item).collect::<Option<_>>().map(serde_json::Value::Array);
            branches.iter().all(named) && items == held
        };
        fan_outs.values().filter(of_these).flatten().map(|branch| branch.scope).collect()
    }

    /// The first is the start event.
    fn arrival(&self, place: usize) -> u64 {
        let arrived = place.checked_sub(2).and_then(|place| self.arrived.get(place));
        match arrived {
            Some(Actor::Reply(request)) => digest(&("reply", self.events.get(request))),
            Some(Actor::Send(place)) => digest(&("send", place)),
            _ => digest(&"start"),
        }
    }

    fn execution(&mut self, trace: &'a ExecutionTrace) -> u64 {
        if let Some(known) = self.executions.get(&trace.execution) {
            return *known;
        }
        let inputs = trace.inputs.iter().enumerate();
        let inputs: Vec<u64> = inputs.map(|(place, bound)| self.bound(trace, place, *bound)).collect();
        let outcome = match &trace.outcome {
            ExecutionOutcome::Succeeded => "succeeded",
            ExecutionOutcome::Failed { error, .. } => error,
            _ => "dropped",
        };
        let execution = digest(&(&trace.step, self.scope(trace.scope), inputs, outcome));
        self.executions.insert(trace.execution, execution);
        execution
    }

    /// An execution and what it left in the log.
    fn effects(&self, trace: &ExecutionTrace) -> u64 {
        let emitted = trace.emitted.iter().map(|seq| self.events.get(seq).copied());
        digest(&(self.executions.get(&trace.execution), emitted.collect::<Vec<_>>()))
    }

    fn bound(&self, trace: &ExecutionTrace, place: usize, bound: BoundInput) -> u64 {
        match bound {
            BoundInput::Nothing => 0,
            BoundInput::One(seq) => self.events.get(&seq).copied().unwrap_or(0),
            BoundInput::List(count) => {
                let list = self.listed(trace, place).take(count as usize);
                digest(&list.map(|logged| self.events.get(&logged.seq).copied()).collect::<Vec<_>>())
            }
        }
    }

    /// The events that the list parameter with this index can see, oldest first.
    fn listed(&self, trace: &'a ExecutionTrace, place: usize) -> impl Iterator<Item = &'a LoggedEvent> {
        let table = self.interest.table();
        let step = table.step_named(&trace.step).map(|step| &table.steps()[step.get()]);
        let input = step.and_then(|step| step.inputs().get(place));
        let lists = input.filter(|input| matches!(input.kind(), InputKind::List | InputKind::Fixed(_)));
        let names: Vec<&str> = lists.map_or_else(Vec::new, |input| {
            input.events().iter().map(|event| table.events()[event.get()].name()).collect()
        });
        let visible = self.visible(trace.scope);
        self.report.log.iter().filter(move |logged| {
            logged.seq <= trace.trigger && visible.contains(&logged.scope) && names.contains(&&*logged.event)
        })
    }

    /// A scope and those above it.
    fn visible(&self, scope: ScopeId) -> Vec<ScopeId> {
        let above = |scope: &ScopeId| self.parents.get(scope).map(|(parent, _)| *parent);
        std::iter::successors(Some(scope), above).collect()
    }

    /// A branch is known by its item.
    fn scope(&self, scope: ScopeId) -> u64 {
        let item = self.parents.get(&scope).and_then(|(_, item)| self.events.get(item));
        item.copied().unwrap_or(0)
    }
}

/// The value of an event; gathered events are in the branches.
fn value(logged: &LoggedEvent) -> u64 {
    if logged.is_gathered() {
        return 0;
    }
    match logged.value.to_json() {
        Ok(json) => json_digest(&json),
        Err(error) => digest(&error.to_string()),
    }
}

/// A digest that does not depend on the order of object members.
fn json_digest(json: &serde_json::Value) -> u64 {
    match json {
        serde_json::Value::Object(members) => {
            let members = members.iter().map(|(key, member)| (key, json_digest(member)));
            digest(&members.collect::<BTreeMap<_, _>>())
        }
        serde_json::Value::Array(items) => digest(&items.iter().map(json_digest).collect::<Vec<_>>()),
        scalar => digest(&scalar.to_string()),
    }
}

fn digest<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
