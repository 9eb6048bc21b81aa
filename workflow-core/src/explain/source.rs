//! The facts from which explanations are made, indexed for lookups.
//!
//! A *moment* is the number of a decision. Evaluation mostly follows the log, except for items of branches
//! that open late (S50). So moments rather than positions decide which events a step saw.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::{Arrival, Cited, FailedStep, Unconsumed};
use crate::failure::StepFailed;
use crate::id::{ExecutionId, RunStatus, ScopeId, Seq};
use crate::report::{ExecutionOutcome, ExecutionTrace, LoggedEvent, RunReport, RunningAttempt, WaitsFor};
use crate::scheduler::{End, Scheduler, Verdict};
use crate::spec::InputKind;
use crate::table::{DependencyTable, EventIndex, EventRow, FanOutRow, StepIndex};

/// The table, log, trace and decisions of a run.
pub(super) struct Source<'a> {
    pub(super) scheduler: &'a Scheduler,
    pub(super) report: &'a RunReport,
    /// By execution, its index in the trace and its step.
    executions: HashMap<ExecutionId, (usize, StepIndex)>,
    steps: Vec<StepFacts>,
    /// The limits that executions wait for, of those that have not begun.
    waiting: HashMap<ExecutionId, &'a WaitsFor>,
    /// By position, the moment of the first evaluation of the event; `NEVER` if there was none.
    evaluated: Vec<Moment>,
    /// The events by scope and type, in the order of their evaluation.
    positions: HashMap<(ScopeId, EventIndex), Vec<(Moment, Seq)>>,
    /// The number of events from outside, by type.
    sent: HashMap<EventIndex, u64>,
    /// The last position, by event type.
    last: BTreeMap<EventIndex, Seq>,
    /// The fan-outs, by the names of the events that complete them.
    gathered: HashMap<&'a str, &'a FanOutRow>,
    /// By branch, the scope that opened it, and its item.
    branches: HashMap<ScopeId, (ScopeId, Seq)>,
}

/// A number in the sequence of decisions. Events without an evaluation come after all of them.
pub(super) type Moment = usize;

/// After all decisions.
pub(super) const NOW: Moment = Moment::MAX - 1;
/// The moment of events that were never evaluated.
const NEVER: Moment = Moment::MAX;

/// The history of one step.
#[derive(Default)]
pub(super) struct StepFacts {
    /// The number of executions.
    pub(super) executions: u64,
    /// The limit that the first execution that has not begun waits for.
    pub(super) waits_for: Option<WaitsFor>,
    pub(super) failures: u64,
    pub(super) last_error: Option<Arc<str>>,
    /// The scopes in which it failed.
    failed_in: BTreeSet<ScopeId>,
    pub(super) is_running: bool,
    /// The earliest next attempt, if every running execution only waits for one.
    pub(super) next_attempt: Option<Duration>,
    /// The attempt that has been running for longest.
    pub(super) running: Option<RunningAttempt>,
    /// Whether its precondition said no at least once.
    pub(super) was_refused: bool,
    /// Whether an evaluation found it at its `max_executions`.
    pub(super) came_to_its_limit: bool,
    /// The scopes of the events that it emitted, by type.
    pub(super) emitted: BTreeMap<EventIndex, Vec<ScopeId>>,
}

impl StepFacts {
    /// Adds an execution that runs or waits for its next attempt.
    fn runs(&mut self, next_attempt: Option<Duration>, running: Option<RunningAttempt>) {
        let both = self.running.into_iter().chain(running);
        self.running = both.max_by_key(|attempt| attempt.running_for);
        self.next_attempt = match (self.next_attempt, next_attempt) {
            (None, next) if !self.is_running => next,
            (Some(one), Some(other)) => Some(one.min(other)),
            _ => None,
        };
        self.is_running = true;
    }
}

impl<'a> Source<'a> {
    /// Indexes the facts. O(events + executions + decisions).
    pub(super) fn of(scheduler: &'a Scheduler, report: &'a RunReport) -> Self {
        let mut source = Self {
            scheduler,
            report,
            executions: HashMap::with_capacity(report.trace.len()),
            steps: scheduler.table().steps.iter().map(|_| StepFacts::default()).collect(),
            waiting: report.waiting.iter().map(|row| (row.execution, &row.waits_for)).collect(),
            evaluated: vec![NEVER; report.log.len() + 1],
            positions: HashMap::new(),
            sent: HashMap::new(),
            last: BTreeMap::new(),
            gathered: HashMap::new(),
            branches: HashMap::with_capacity(report.branches.len()),
        };
        let branches = report.branches.iter();
        source.branches.extend(branches.map(|branch| (branch.scope, (branch.parent, branch.item))));
        let fan_outs = scheduler.table().fan_outs.iter();
        let named = fan_outs.map(|row| (&*scheduler.table().event(row.gathered).name, row));
        source.gathered.extend(named);
        source.read_trace();
        source.read_decisions();
        source.read_log();
        source
    }

    fn read_trace(&mut self) {
        let steps = self.table().steps.iter().enumerate();
        let names: HashMap<&str, StepIndex> = steps.map(|(i, row)| (&*row.name, StepIndex::at(i))).collect();
        for (place, trace) in self.report.trace.iter().enumerate() {
            let Some(step) = names.get(&*trace.step).copied() else { continue };
            self.executions.insert(trace.execution, (place, step));
            let facts = &mut self.steps[step.get()];
            facts.executions += 1;
            match &trace.outcome {
                ExecutionOutcome::Failed { error, .. } => {
                    facts.failures += 1;
                    facts.failed_in.insert(trace.scope);
                    facts.last_error = Some(error.as_str().into());
                }
                ExecutionOutcome::Running => facts.runs(trace.next_attempt, trace.running),
                ExecutionOutcome::Succeeded | ExecutionOutcome::Refused | ExecutionOutcome::Dropped => {}
            }
        }
        for waiting in &self.report.waiting {
            let Some(step) = names.get(&*waiting.step).copied() else { continue };
            self.steps[step.get()].waits_for.get_or_insert_with(|| waiting.waits_for.clone());
        }
    }

    fn read_log(&mut self) {
        let events = self.table().events.iter().enumerate();
        let names: HashMap<&str, EventIndex> =
            events.map(|(i, row)| (&*row.name, EventIndex::at(i))).collect();
        for logged in &self.report.log {
            let Some(event) = names.get(&*logged.event).copied() else { continue };
            self.last.insert(event, logged.seq);
            let evaluated = self.evaluated_at(logged.seq);
            self.positions.entry((logged.scope, event)).or_default().push((evaluated, logged.seq));
            match logged.execution.and_then(|id| self.executions.get(&id)).copied() {
                Some((place, step)) => {
                    self.read_failed_fan_out(logged, place, step);
                    self.steps[step.get()].emitted.entry(event).or_default().push(logged.scope);
                }
                None => *self.sent.entry(event).or_default() += 1,
            }
        }
    }

    /// A failure of an execution that succeeded is that of a fan-out which it opened (S60).
    fn read_failed_fan_out(&mut self, logged: &LoggedEvent, place: usize, step: StepIndex) {
        let trace = &self.report.trace[place];
        if trace.failure == Some(logged.seq)
            && trace.outcome == ExecutionOutcome::Succeeded
            && let Some(failed) = logged.value.payload_ref::<StepFailed>()
        {
            let facts = &mut self.steps[step.get()];
            facts.failures += 1;
            facts.failed_in.insert(trace.scope);
            facts.last_error = Some(Arc::clone(&failed.error));
        }
    }

    fn read_decisions(&mut self) {
        for (moment, decision) in self.scheduler.decisions().enumerate() {
            let first = usize::try_from(decision.trigger.0).ok().and_then(|at| self.evaluated.get_mut(at));
            if let Some(first) = first {
                *first = (*first).min(moment);
            }
            let facts = &mut self.steps[decision.step.get()];
            facts.was_refused |= decision.verdict == Verdict::Refused;
            facts.came_to_its_limit |= decision.verdict == Verdict::LimitReached;
        }
    }

    fn evaluated_at(&self, seq: Seq) -> Moment {
        let at = usize::try_from(seq.0).ok();
        at.and_then(|at| self.evaluated.get(at)).copied().unwrap_or(NEVER)
    }

    /// Whether the event was never evaluated.
    pub(super) fn is_unevaluated(&self, seq: Seq) -> bool {
        self.evaluated_at(seq) == NEVER
    }

    pub(super) fn table(&self) -> &'a DependencyTable {
        self.scheduler.table()
    }

    pub(super) fn facts(&self, step: StepIndex) -> &StepFacts {
        &self.steps[step.get()]
    }

    pub(super) fn execution(&self, id: ExecutionId) -> Option<&'a ExecutionTrace> {
        self.report.trace.get(self.executions.get(&id)?.0)
    }

    /// The limit that the execution waits for; `None` if it began or was dropped.
    pub(super) fn waits_for(&self, id: ExecutionId) -> Option<&'a WaitsFor> {
        self.waiting.get(&id).copied()
    }

    /// Describes the event at this position with its producer.
    pub(super) fn cite(&self, seq: Seq) -> Cited {
        let logged = usize::try_from(seq.0).ok().and_then(|at| self.report.log.get(at.checked_sub(1)?));
        let producer = logged.and_then(|logged| self.execution(logged.execution?));
        let fan_out = logged.and_then(|logged| self.gathered.get(&*logged.event)).copied();
        let opener = fan_out.map(|fan_out| self.table().step(fan_out.step));
        // The name of a failure event contains its step.
        let producer = producer.filter(|trace| trace.failure != Some(seq)).map(|trace| &trace.step);
        let producer = producer.or(opener.map(|step| &step.name));
        Cited {
            seq,
            event: logged.map_or_else(|| "?".into(), |logged| Arc::clone(&logged.event)),
            gathered: fan_out.map(|fan_out| Arc::clone(&self.table().event(fan_out.item).name)),
            producer: producer.map(Arc::clone),
        }
    }

    /// The number of events of these types that a scope saw at a moment (S12).
    pub(super) fn visible(&self, scope: ScopeId, events: &[EventIndex], until: Moment) -> u32 {
        let seen = self.around(scope, events).map(|of_type| of_type.partition_point(|(at, _)| *at <= until));
        u32::try_from(seen.sum::<usize>()).unwrap_or(u32::MAX)
    }

    /// The first event of these types, in sight of the scope, that was evaluated after the moment or never;
    /// and whether it was evaluated.
    pub(super) fn first_after(
        &self,
        scope: ScopeId,
        events: &[EventIndex],
        until: Moment,
    ) -> Option<(Seq, bool)> {
        let after = self.around(scope, events).filter_map(|of_type| {
            let (at, seq) = of_type.get(of_type.partition_point(|(at, _)| *at <= until))?;
            Some((*at, *seq))
        });
        after.min().map(|(at, seq)| (seq, at != NEVER))
    }

    /// The events of these types in the scopes that this scope sees (S45), by type and scope.
    fn around(&self, scope: ScopeId, events: &[EventIndex]) -> impl Iterator<Item = &[(Moment, Seq)]> {
        let keys = self.outwards(scope).flat_map(|scope| events.iter().map(move |event| (scope, *event)));
        keys.filter_map(|key| self.positions.get(&key)).map(Vec::as_slice)
    }

    /// The number of events of the type in the scopes that this scope sees, and in others.
    pub(super) fn seen_and_elsewhere(&self, scope: ScopeId, event: EventIndex) -> (u64, u64) {
        let of_type = self.positions.iter().filter(|((_, other), _)| *other == event);
        of_type.fold((0, 0), |(seen, elsewhere), ((other, _), positions)| {
            let count = positions.len() as u64;
            if self.sees(scope, *other) { (seen + count, elsewhere) } else { (seen, elsewhere + count) }
        })
    }

    /// Whether the scope itself has an event of one of these types.
    pub(super) fn holds(&self, scope: ScopeId, events: &[EventIndex]) -> bool {
        events.iter().any(|event| self.positions.contains_key(&(scope, *event)))
    }

    /// The item of a branch; `None` for the root.
    pub(super) fn item_of(&self, branch: ScopeId) -> Option<Cited> {
        self.branches.get(&branch).map(|(_, item)| self.cite(*item))
    }

    /// Whether a scope sees the events of another one (S45).
    pub(super) fn sees(&self, scope: ScopeId, other: ScopeId) -> bool {
        self.outwards(scope).any(|scope| scope == other)
    }

    /// The scope and its ancestors, innermost first.
    fn outwards(&self, scope: ScopeId) -> impl Iterator<Item = ScopeId> {
        std::iter::successors(Some(scope), |scope| self.branches.get(scope).map(|(parent, _)| *parent))
    }

    /// The number of events of the type that came from outside.
    pub(super) fn sent(&self, event: EventIndex) -> u64 {
        self.sent.get(&event).copied().unwrap_or(0)
    }

    /// Whether any scope has an event of the type.
    pub(super) fn was_logged(&self, event: EventIndex) -> bool {
        self.last.contains_key(&event)
    }

    /// Whether a request of the type expired and none is open any more.
    pub(super) fn has_expired(&self, request: EventIndex) -> bool {
        let is_open = self.scheduler.open_requests().any(|(_, event)| event == request);
        let expired = self.table().event(request).expired;
        !is_open && expired.is_some_and(|expired| self.was_logged(expired))
    }

    /// The failed steps, whether the run continued or not.
    pub(super) fn failed(&self) -> Vec<FailedStep> {
        let steps = self.table().steps.iter().zip(&self.steps);
        let failed = steps.filter(|(row, _)| !row.cleans_up()).filter_map(|(row, facts)| {
            Some(FailedStep {
                step: Arc::clone(&row.name),
                executions: facts.executions,
                failures: facts.failures,
                error: Arc::clone(facts.last_error.as_ref()?),
                branches: facts.failed_in.iter().filter_map(|scope| self.item_of(*scope)).collect(),
            })
        });
        failed.collect()
    }

    /// The types that can arrive from outside; none for a run that ended in another way than by stalling.
    pub(super) fn can_arrive(&self) -> Vec<Arrival> {
        let is_open =
            matches!(self.report.status, RunStatus::Running | RunStatus::Waiting | RunStatus::Paused);
        let has_stalled =
            self.report.status == RunStatus::Stalled || self.scheduler.end() == Some(&End::Stalled);
        if !is_open && !has_stalled {
            return Vec::new();
        }
        let name = |event| Arc::clone(&self.table().event(event).name);
        let events = self.table().events.iter();
        // A stop event ends the run though no step takes it.
        let has_effect = |event: &&EventRow| !event.takers.is_empty() || event.roles.is_stop();
        let external = events.filter(|event| event.roles.is_external() && has_effect(event));
        let external = external.map(|event| Arrival { kind: InputKind::One, event: Arc::clone(&event.name) });
        let requests: BTreeSet<EventIndex> = self.scheduler.open_requests().map(|(_, event)| event).collect();
        let replies =
            requests.into_iter().map(|event| Arrival { kind: InputKind::Reply, event: name(event) });
        external.chain(replies).collect()
    }

    /// Whether a step takes the event, be it one that the event does not trigger: for clean-up, or as a passive input.
    fn is_taken(&self, event: EventIndex) -> bool {
        let mut inputs = self.table().steps.iter().flat_map(|step| &step.inputs);
        inputs.any(|input| input.events.contains(&event))
    }

    /// The events in the log that no step takes: neither directly nor by a gather, nor the reply to a
    /// request.
    pub(super) fn unconsumed(&self) -> Vec<Unconsumed> {
        let unconsumed = self.last.iter().filter_map(|(event, seq)| {
            let row = self.table().event(*event);
            let reply = row.reply.is_some_and(|reply| !self.table().event(reply).takers.is_empty());
            let kind = match row.roles.is_request() {
                true if reply => return None,
                true => InputKind::Reply,
                false => InputKind::One,
            };
            let is_taken = !row.takers.is_empty() || row.carried || self.is_taken(*event);
            let is_internal = row.gathers.is_some() || row.roles.is_stop();
            let unconsumed = Unconsumed { kind, last: self.cite(*seq) };
            (kind == InputKind::Reply || !(is_taken || is_internal)).then_some(unconsumed)
        });
        unconsumed.collect()
    }
}
