//! Missing inputs: the events that a step lacks if it never ran, their possible producers, and the reason why
//! each produced none.
//!
//! The search is recursive only where a missing event stands for another one: the reply for its request, the
//! end of a fan-out for its opening. Otherwise each producer has a reason of its own, and the reader follows
//! from step to step.
//!
//! Example: `join` takes `A` and `B` and has an `A`. The missing input is `B`. Its producer `make_b` ran once
//! and emitted only `C`, so the reason is `EmittedNone`. If `B` came from outside, the reason would be
//! `NotSent`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::source::{Moment, NOW, Source, StepFacts};
use super::{Cited, MissingInput, MissingProducer, WhyNotProduced};
use crate::id::{ScopeId, Seq};
use crate::report::HOLDERS;
use crate::spec::InputKind;
use crate::table::{EventIndex, FanOutIndex, InputRow, StepIndex, StepRow};

/// A scope at a moment of the run.
#[derive(Debug, Clone, Copy)]
struct Viewpoint {
    scope: ScopeId,
    until: Moment,
}

impl Source<'_> {
    /// The required inputs that a scope could not fill at that moment (S13).
    pub(super) fn missing(&self, step: &StepRow, scope: ScopeId, until: Moment) -> Vec<MissingInput> {
        let missing = self.short(step, Viewpoint { scope, until });
        missing.map(|(input, have, need)| self.missing_input(input, have, need)).collect()
    }

    /// For each of these steps, the inputs missing where the step came closest to running. O(decisions).
    pub(super) fn missing_by_step(&self, idle: impl Fn(StepIndex) -> bool) -> Vec<Vec<MissingProducer>> {
        let viewpoints = self.closest(&idle);
        let steps = self.table().steps.iter().enumerate().map(|(i, row)| (StepIndex::at(i), row));
        let missing = steps.map(|(index, row)| {
            let anywhere = Viewpoint { scope: ScopeId::ROOT, until: NOW };
            let viewpoint = viewpoints.get(&index).copied().unwrap_or(anywhere);
            if idle(index) { self.missing_of(row, viewpoint) } else { Vec::new() }
        });
        missing.collect()
    }

    /// The viewpoint at which each step had the fewest inputs missing. A branch counts as of its last
    /// evaluation, since later events were never evaluated there.
    fn closest(&self, idle: impl Fn(StepIndex) -> bool) -> HashMap<StepIndex, Viewpoint> {
        let mut last: BTreeMap<(StepIndex, ScopeId), Moment> = BTreeMap::new();
        let decisions = self.scheduler.decisions().enumerate();
        for (moment, decision) in decisions.filter(|(_, decision)| idle(decision.step)) {
            last.insert((decision.step, decision.scope), moment);
        }
        let mut closest: HashMap<StepIndex, ((usize, bool), Viewpoint)> = HashMap::new();
        for ((step, scope), until) in last {
            let viewpoint = Viewpoint { scope, until };
            let short: Vec<_> = self.short(self.table().step(step), viewpoint).collect();
            // An event that came too late is the better explanation.
            let late = short.iter().any(|(input, ..)| self.late(input, viewpoint).is_some());
            let lacks = (short.len(), !late);
            let known = closest.entry(step).or_insert((lacks, viewpoint));
            if lacks < known.0 {
                *known = (lacks, viewpoint);
            }
        }
        closest.into_iter().map(|(step, (_, viewpoint))| (step, viewpoint)).collect()
    }

    /// The missing inputs of one step at a viewpoint, each with its producers or the event that came too late.
    fn missing_of(&self, step: &StepRow, viewpoint: Viewpoint) -> Vec<MissingProducer> {
        let required = step.inputs.iter().any(|input| input.condition.is_some());
        if !required {
            return self.any_of_optional(step, viewpoint).into_iter().collect();
        }
        let short = self.short(step, viewpoint);
        let missing = short.map(|(input, have, need)| MissingProducer {
            input: self.missing_input(input, have, need),
            producers: match self.late(input, viewpoint) {
                Some(late) => vec![self.why_late(late, step, viewpoint)],
                None => self.producers(&input.events, viewpoint.scope),
            },
        });
        missing.collect()
    }

    /// An event that would have filled the input, had it come in time.
    fn late(&self, input: &InputRow, viewpoint: Viewpoint) -> Option<(Seq, bool)> {
        self.first_after(viewpoint.scope, &input.events, viewpoint.until)
    }

    /// Explains an event that came after the viewpoint was last evaluated.
    fn why_late(
        &self,
        (seq, was_evaluated): (Seq, bool),
        step: &StepRow,
        viewpoint: Viewpoint,
    ) -> WhyNotProduced {
        let event = self.cite(seq);
        match self.item_of(viewpoint.scope) {
            Some(branch) if was_evaluated && !self.scheduler.board().is_open(viewpoint.scope) => {
                let own = step.inputs.iter().filter(|input| {
                    let joins = !matches!(input.kind, InputKind::Gather | InputKind::Reply);
                    joins && input.condition.is_some() && self.holds(viewpoint.scope, &input.events)
                });
                // Failures cannot be gathered.
                let gathered = own.flat_map(|input| &input.events);
                let gathered = gathered.filter(|event| self.table().event(**event).fails.is_none());
                let gather = gathered.map(|event| self.name(*event)).collect();
                WhyNotProduced::ArrivedLate { event, branch, gather }
            }
            _ => WhyNotProduced::NotEvaluated { event },
        }
    }

    /// The missing input of a step with only optional inputs (S9): any of its events would do.
    fn any_of_optional(&self, step: &StepRow, viewpoint: Viewpoint) -> Option<MissingProducer> {
        let mut events: Vec<EventIndex> = Vec::new();
        let (mut single, mut or) = (Vec::new(), Vec::new());
        for input in step.inputs.iter().filter(|input| input.triggers()) {
            let joins = matches!(input.kind, InputKind::Gather | InputKind::Reply);
            let new = input.events.iter().filter(|event| !events.contains(event));
            let new: Vec<EventIndex> = new.copied().collect();
            if joins {
                or.push(self.missing_input(input, 0, 1));
            } else {
                single.extend(&new);
            }
            events.extend(new);
        }
        let single = (!single.is_empty()).then(|| missing(self.names(&single), InputKind::One));
        let mut inputs = single.into_iter().chain(or);
        let first = inputs.next()?;
        (self.visible(viewpoint.scope, &events, viewpoint.until) == 0).then(|| MissingProducer {
            input: MissingInput { or: inputs.collect(), ..first },
            producers: self.producers(&events, viewpoint.scope),
        })
    }

    /// The inputs that have fewer events than they need, with both numbers.
    fn short<'r>(
        &self,
        step: &'r StepRow,
        viewpoint: Viewpoint,
    ) -> impl Iterator<Item = (&'r InputRow, u32, u32)> {
        let required = step.inputs.iter().filter_map(|input| Some((input, input.condition?.least)));
        let counted = required.map(move |(input, need)| {
            (input, self.visible(viewpoint.scope, &input.events, viewpoint.until), need)
        });
        counted.filter(|(_, have, need)| have < need)
    }

    fn missing_input(&self, input: &InputRow, have: u32, need: u32) -> MissingInput {
        let events = match input.kind {
            InputKind::Reply => self
                .names(&input.events.iter().filter_map(|reply| self.request_of(*reply)).collect::<Vec<_>>()),
            // Of a gather without events, people know the item.
            InputKind::Gather if input.gathered.is_empty() => self.names(input.item.as_slice()),
            InputKind::Gather => self.names(&input.gathered),
            _ => self.names(&input.events),
        };
        MissingInput { have, need, ..missing(events, input.kind) }
    }

    /// The wire names of the events. Failures share one name, under which steps take them.
    fn names(&self, events: &[EventIndex]) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = Vec::with_capacity(events.len());
        for event in events {
            let is_failure = self.table().event(*event).fails.is_some();
            let name = if is_failure { self.failure_name() } else { self.name(*event) };
            if !is_failure || !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn name(&self, event: EventIndex) -> Arc<str> {
        Arc::clone(&self.table().event(event).name)
    }

    fn request_of(&self, reply: EventIndex) -> Option<EventIndex> {
        self.table().events.iter().position(|event| event.reply == Some(reply)).map(EventIndex::at)
    }

    /// Each stop event with its possible producers.
    pub(super) fn missing_stops(&self) -> Vec<MissingProducer> {
        let events = self.table().events.iter().enumerate();
        let stops = events.filter(|(_, event)| event.roles.is_stop()).map(|(i, _)| EventIndex::at(i));
        let missing = stops.map(|stop| MissingProducer {
            input: missing(self.names(&[stop]), InputKind::One),
            producers: self.producers(&[stop], ScopeId::ROOT),
        });
        missing.collect()
    }

    /// Every possible producer of one of the events, each once.
    fn producers(&self, events: &[EventIndex], scope: ScopeId) -> Vec<WhyNotProduced> {
        let mut producers: Vec<WhyNotProduced> = Vec::new();
        let steps = self.table().steps.iter().enumerate();
        for (i, step) in steps.filter(|(_, step)| emits_any(step, events)) {
            producers.push(self.why_not_produced(StepIndex::at(i), step, events, scope));
        }
        producers.extend(self.why_not_failed(events, scope));
        for event in events.iter().filter(|event| self.table().event(**event).fails.is_none()) {
            let row = self.table().event(*event);
            match (row.gathers, self.request_of(*event)) {
                (Some(fan_out), _) => producers.extend(self.why_not_gathered(fan_out, scope)),
                (_, Some(request)) => producers.extend(self.why_not_replied(request, scope)),
                _ => producers.extend(self.why_not_from_outside(*event)),
            }
        }
        producers
    }

    /// Explains an event that no step emitted: it was not sent, another start event began the run, or nothing
    /// emits it.
    fn why_not_from_outside(&self, event: EventIndex) -> Option<WhyNotProduced> {
        let roles = self.table().event(event).roles;
        if roles.is_external() {
            return Some(WhyNotProduced::NotSent { event: self.name(event), sent: self.sent(event) });
        }
        if roles.is_start() {
            let began_with = self.report.log.first().map_or_else(|| "?".into(), |first| first.event.clone());
            return Some(WhyNotProduced::NotBegunWith { event: self.name(event), began_with });
        }
        let nobody = !self.table().steps.iter().any(|step| emits_any(step, &[event]));
        nobody.then(|| WhyNotProduced::NoProducer { event: self.name(event) })
    }

    /// Explains a missing reply; for a request that no step made, explains why not.
    fn why_not_replied(&self, request: EventIndex, scope: ScopeId) -> Vec<WhyNotProduced> {
        if self.was_logged(request) {
            let (expired, request) = (self.has_expired(request), self.name(request));
            return vec![if expired {
                WhyNotProduced::Expired { request }
            } else {
                WhyNotProduced::NotReplied { request }
            }];
        }
        self.producers(&[request], scope)
    }

    /// Explains a fan-out that is not complete; for one that no step opened, explains why not.
    fn why_not_gathered(&self, fan_out: FanOutIndex, scope: ScopeId) -> Vec<WhyNotProduced> {
        let (index, item) = (self.table().fan_out(fan_out).step, self.table().fan_out(fan_out).item);
        let step = self.table().step(index);
        let opened = self.report.branches.iter().filter(|branch| branch.step == step.name);
        let (branches, failed) = opened
            .fold((0, 0), |(branches, failed), branch| (branches + 1, failed + u64::from(branch.failed)));
        if branches > 0 {
            let (unopened, open) = self.unopened(&step.name);
            let step = Arc::clone(&step.name);
            return vec![WhyNotProduced::NotGathered { step, branches, failed, unopened, open }];
        }
        vec![match self.why_not_produced(index, step, &[item], scope) {
            // A fan-out without items would be complete.
            WhyNotProduced::OpenedNone { step: name, executions } => {
                let (only, limit) = (self.emitted_by(index), self.limit_reached(index, step));
                WhyNotProduced::EmittedNone { step: name, executions, limit, only }
            }
            why => why,
        }]
    }

    /// How many branches of a step's fan-outs wait for others to settle; if some do, the items of the first open ones.
    fn unopened(&self, step: &Arc<str>) -> (u64, Vec<Cited>) {
        if self.report.status.is_ended() {
            return (0, Vec::new());
        }
        let board = self.scheduler.board();
        let branches = self.report.branches.iter().filter(|branch| branch.step == *step && !branch.dropped);
        let (mut open, others): (Vec<_>, Vec<_>) = branches.partition(|branch| board.is_open(branch.scope));
        // The bound leaves out those that only wait.
        open.retain(|branch| !board.only_waits(branch.scope));
        let unopened = others.iter().filter(|branch| self.is_unevaluated(branch.item)).count() as u64;
        let open = if unopened == 0 { &[][..] } else { &open[..open.len().min(HOLDERS)] };
        (unopened, open.iter().map(|branch| self.cite(branch.item)).collect())
    }

    /// Explains why one step did not produce the events. The order of the tests is the order in which the
    /// reasons exclude each other.
    fn why_not_produced(
        &self,
        index: StepIndex,
        row: &StepRow,
        events: &[EventIndex],
        scope: ScopeId,
    ) -> WhyNotProduced {
        let (facts, step) = (self.facts(index), Arc::clone(&row.name));
        let executions = facts.executions;
        let emitted = events.iter().filter_map(|event| facts.emitted.get(event)).flatten();
        let (seen, elsewhere) = emitted.fold((0, 0), |(seen, elsewhere), other| {
            if self.sees(scope, *other) { (seen + 1, elsewhere) } else { (seen, elsewhere + 1) }
        });
        if let Some(after) = self.pending_for(row, events) {
            return WhyNotProduced::TimerPending { step, after };
        }
        match (&facts.last_error, &facts.waits_for) {
            _ if elsewhere > 0 => WhyNotProduced::EmittedInBranches { step, events: elsewhere, seen },
            _ if facts.is_running => {
                let StepFacts { next_attempt, running, .. } = *facts;
                WhyNotProduced::Running { step, next_attempt, running }
            }
            (_, Some(waits_for)) => WhyNotProduced::Waiting { step, waits_for: waits_for.clone() },
            _ if executions == 0 => self.why_idle(index, row),
            (Some(error), _) => WhyNotProduced::Failed {
                step,
                executions,
                failures: facts.failures,
                error: Arc::clone(error),
                events: seen,
                only: self.emitted_by(index),
            },
            _ if seen > 0 => WhyNotProduced::EmittedSome { step, executions, events: seen },
            _ => self.emitted_none(index, row, events),
        }
    }

    /// The time at which the step's first timer for one of the events fires.
    fn pending_for(&self, row: &StepRow, events: &[EventIndex]) -> Option<Duration> {
        let mut timers = self.report.timers.iter().filter(|timer| timer.step == row.name);
        let wanted = |event: &Arc<str>| events.iter().any(|index| self.table().event(*index).name == *event);
        timers.find(|timer| wanted(&timer.event)).map(|timer| timer.after)
    }

    /// Explains a step that ran and emitted none of the events.
    fn emitted_none(&self, index: StepIndex, row: &StepRow, events: &[EventIndex]) -> WhyNotProduced {
        let step = Arc::clone(&row.name);
        let executions = self.facts(index).executions;
        let mut outputs = row.outputs.iter().filter(|output| events.contains(&output.event));
        if outputs.all(|output| output.fan_out.is_some()) {
            return WhyNotProduced::OpenedNone { step, executions };
        }
        let (only, limit) = (self.emitted_by(index), self.limit_reached(index, row));
        WhyNotProduced::EmittedNone { step, executions, limit, only }
    }

    fn emitted_by(&self, step: StepIndex) -> Vec<Arc<str>> {
        let emitted = self.facts(step).emitted.keys();
        let emitted = emitted.filter(|event| self.table().event(**event).fails.is_none());
        emitted.map(|event| self.name(*event)).collect()
    }

    fn limit_reached(&self, step: StepIndex, row: &StepRow) -> Option<u32> {
        row.policy.max_executions.filter(|_| self.facts(step).came_to_its_limit)
    }

    /// Explains a step that never ran: by its precondition if that said no, else by its own missing inputs.
    fn why_idle(&self, index: StepIndex, row: &StepRow) -> WhyNotProduced {
        let step = Arc::clone(&row.name);
        match &row.precondition {
            Some(precondition) if self.facts(index).was_refused => {
                WhyNotProduced::Refused { step, precondition: Arc::clone(&precondition.name) }
            }
            _ => WhyNotProduced::DidNotRun { step },
        }
    }
}

/// An input that needs one of these events.
fn missing(events: Vec<Arc<str>>, kind: InputKind) -> MissingInput {
    MissingInput { events, kind, have: 0, need: 1, or: Vec::new() }
}

fn emits_any(step: &StepRow, events: &[EventIndex]) -> bool {
    step.outputs.iter().any(|output| events.contains(&output.event))
}
