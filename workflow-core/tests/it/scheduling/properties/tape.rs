//! Random bytes and the workflow that they encode. Any bytes encode a valid workflow, and small bytes a simple one, so
//! that a failing case shrinks to a readable one.

use std::fmt;

use proptest::array::{uniform4, uniform24};
use proptest::collection::vec;
use proptest::num::u8::ANY;
use proptest::strategy::Strategy;
use workflow_core::table::OnEnd;
use workflow_testkit::model::{Plan, PlannedEvent, PlannedInput, PlannedOutput, PlannedStep, Take};

/// The content of a random run: rows of the table, and the moves.
#[derive(Clone)]
pub(crate) struct Tape {
    events: Vec<u8>,
    steps: Vec<[u8; 24]>,
    limit: u8,
    pub(super) manner: u8,
    pub(super) answers: Vec<u8>,
    pub(super) moves: Vec<[u8; 4]>,
}

/// Whether steps may fan out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Plain,
    FanOuts,
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A failure prints the plan and the transcript, which say more than the bytes.
        f.write_str("Tape")
    }
}

pub(crate) fn tapes() -> impl Strategy<Value = Tape> {
    let rows = (vec(ANY, 0..=11), vec(uniform24(ANY), 1..=12), ANY);
    let play = (ANY, vec(ANY, 1..=8), vec(uniform4(ANY), 0..=48));
    (rows, play).prop_map(|((events, steps, limit), (manner, answers, moves))| Tape {
        events,
        steps,
        limit,
        manner,
        answers,
        moves,
    })
}

impl Tape {
    /// The workflow the bytes stand for.
    pub(super) fn plan(&self, shape: Shape) -> Plan {
        // With few types more of them join, which branches need; few steps limit the cost.
        let (types, rows) = if shape == Shape::FanOuts { (6, 8) } else { (11, 12) };
        let events = planned_events(&self.events[..types.min(self.events.len())]);
        let steps = self.steps.iter().take(rows).map(|row| planned_step(row, &events, shape));
        let mut steps: Vec<PlannedStep> = steps.collect();
        if shape == Shape::FanOuts {
            fan_out_first(&mut steps[0], self.limit, &events);
        }
        // Few runs reach a limit; those that do must not exceed it.
        let executions = if self.limit % 8 == 5 { 1 + usize::from(self.limit / 32) } else { 100_000 };
        let mut plan = Plan { events, steps, executions };
        make_passives_fit(&mut plan);
        make_clean_up_fit(&mut plan);
        make_catches_fit(&mut plan);
        make_gathers_fit(&mut plan);
        collect_more(&mut plan);
        plan
    }
}

/// Reads bytes in order; zeros once they are used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.next()) % limit
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// The first event is a start event; every request is followed, after all others, by its reply and its expiry.
fn planned_events(bytes: &[u8]) -> Vec<PlannedEvent> {
    let mut events = vec![PlannedEvent { start: true, ..PlannedEvent::default() }];
    events.extend(bytes.iter().map(|byte| {
        let kind = byte % 64;
        PlannedEvent {
            external: matches!(kind, 30..=45 | 63),
            reply: matches!(kind, 46..=57).then_some(0),
            stop: matches!(kind, 60..=63),
            start: matches!(kind, 58 | 59),
            failure: matches!(kind, 20..=29),
            ..PlannedEvent::default()
        }
    }));
    for request in 0..events.len() {
        if events[request].reply.is_some() {
            events[request].reply = Some(events.len());
            events.push(PlannedEvent { replies_to: Some(request), ..PlannedEvent::default() });
            events[request].expired = Some(events.len());
            events.push(PlannedEvent { expires: Some(request), ..PlannedEvent::default() });
        }
    }
    events
}

fn planned_step(row: &[u8], events: &[PlannedEvent], shape: Shape) -> PlannedStep {
    let mut bytes = Bytes(row);
    let inputs = bytes.one_of(&[1, 1, 1, 2, 2, 2, 3, 4]);
    let outputs = bytes.one_of(&[1, 1, 2, 0, 3]);
    PlannedStep {
        has_precondition: bytes.one_of(&[false, false, true]),
        max_executions: bytes.one_of(&[None, None, None, Some(1), Some(2), Some(3)]),
        concurrency: bytes.one_of(&[None, None, None, Some(1), Some(2)]),
        limited: bytes.one_of(&[false, false, true]),
        continue_on_error: bytes.one_of(&[false, false, true]),
        outputs: planned_outputs(&mut bytes, outputs, events, shape),
        inputs: (0..inputs).map(|_| planned_input(&mut bytes, events, shape)).collect(),
        // `make_catches_fit` corrects these once all steps exist.
        catches: (0..bytes.one_of(&[0, 1, 2])).map(|_| usize::from(bytes.next())).collect(),
        // `make_clean_up_fit` corrects these once all steps exist.
        on_end: ends(row[23]),
    }
}

fn planned_outputs(
    bytes: &mut Bytes<'_>,
    count: usize,
    events: &[PlannedEvent],
    shape: Shape,
) -> Vec<PlannedOutput> {
    let mut outputs = Vec::new();
    for _ in 0..count {
        let byte = bytes.below(251);
        let event = byte % events.len();
        let output = match byte / events.len() % 4 {
            1 if shape == Shape::FanOuts => PlannedOutput::FanOut(event),
            2 | 3 if events[event].reply.is_some() => PlannedOutput::Expiring(event),
            3 => PlannedOutput::Timer(event),
            _ => PlannedOutput::Events(event),
        };
        if !outputs.contains(&output) && is_emitted(events[event]) {
            outputs.push(output);
        }
    }
    outputs
}

fn planned_input(bytes: &mut Bytes<'_>, events: &[PlannedEvent], shape: Shape) -> PlannedInput {
    let (kind, first, more) = (bytes.next(), bytes.below(events.len()), bytes.next());
    let optional = more % 4 == 3;
    let count = 1 + u32::from(more / 4 % 4);
    let second = usize::from(more / 16) % events.len();
    let union = if second == first { vec![first] } else { vec![first, second] };
    let (take, events) = match kind % 20 {
        0..=7 => (Take::One, vec![first]),
        8 | 9 => (Take::One, union),
        10 | 11 => (Take::List, vec![first]),
        12 => (Take::List, union),
        13 | 14 => (Take::Fixed(count), vec![first]),
        15 => (Take::Fixed(count), union),
        16 | 17 => reply_or_one(events, first),
        _ if shape == Shape::FanOuts => (Take::Gather, vec![first]),
        _ => (Take::One, vec![first]),
    };
    // `make_passives_fit` corrects it once all inputs of the step exist.
    PlannedInput { take, optional, passive: kind / 20 % 4 == 1, events, item: None }
}

/// The reply to the first request from `first` on, or a plain input if there is no request.
fn reply_or_one(events: &[PlannedEvent], first: usize) -> (Take, Vec<usize>) {
    let mut from_first = (0..events.len()).map(|offset| (first + offset) % events.len());
    match from_first.find_map(|event| events[event].reply) {
        Some(reply) => (Take::Reply, vec![reply]),
        None => (Take::One, vec![first]),
    }
}

/// Makes the first step fan out as soon as the run starts.
fn fan_out_first(step: &mut PlannedStep, pick: u8, events: &[PlannedEvent]) {
    let item = usize::from(pick) % events.len();
    let output = PlannedOutput::FanOut(item);
    if is_emitted(events[item]) && !step.outputs.contains(&output) {
        step.outputs.push(output);
    }
    step.inputs = vec![PlannedInput { events: vec![0], ..PlannedInput::default() }];
}

/// Whether steps can emit it: replies come only from outside, and failures only from the library.
fn is_emitted(event: PlannedEvent) -> bool {
    event.replies_to.is_none() && event.expires.is_none() && !event.failure
}

/// The ends of every fifth step or so.
fn ends(byte: u8) -> Option<OnEnd> {
    const ONE: [OnEnd; 4] = [OnEnd::FAILED, OnEnd::STALLED, OnEnd::CANCELLED, OnEnd::TIMED_OUT];
    match byte % 16 {
        1 | 2 => Some(OnEnd::ANY),
        3 => Some(ONE[usize::from(byte / 16) % 4].and(ONE[usize::from(byte / 64)])),
        _ => None,
    }
}

/// S58: passive inputs take one event or a list, no failures, and never stand alone.
fn make_passives_fit(plan: &mut Plan) {
    let events = &plan.events;
    for step in &mut plan.steps {
        for input in &mut step.inputs {
            let can_be = matches!(input.take, Take::One | Take::List);
            input.passive &= can_be && !input.events.iter().any(|event| events[*event].failure);
        }
        if step.inputs.iter().all(|input| input.passive) {
            step.inputs[0].passive = false;
        }
    }
}

/// S31: clean-up emits and catches nothing, and nothing but clean-up makes no run.
fn make_clean_up_fit(plan: &mut Plan) {
    let events = &plan.events;
    for (number, step) in plan.steps.iter_mut().enumerate() {
        let takes = step.inputs.iter().flat_map(|input| &input.events).any(|event| events[*event].failure);
        step.on_end = step.on_end.filter(|_| number > 0 && !takes);
        if step.on_end.is_some() {
            step.outputs.clear();
            step.catches.clear();
        }
    }
}

/// Lets steps that take failures name others to catch, and no other step name any.
fn make_catches_fit(plan: &mut Plan) {
    let (events, steps) = (&plan.events, plan.steps.len());
    let cleans_up: Vec<bool> = plan.steps.iter().map(|step| step.on_end.is_some()).collect();
    for (number, step) in plan.steps.iter_mut().enumerate() {
        let takes = step.inputs.iter().flat_map(|input| &input.events).any(|event| events[*event].failure);
        let caught = step
            .catches
            .iter()
            .map(|caught| caught % steps)
            .filter(|caught| *caught != number && !cleans_up[*caught]);
        let mut caught: Vec<usize> = caught.filter(|_| takes).collect();
        caught.dedup();
        step.catches = caught;
    }
}

/// Changes the gathers that fit no fan-out, or fan-outs of several items. Returns whether there were any.
fn make_some_gather_fit(plan: &mut Plan, items: &[usize]) -> bool {
    let own = plan.branch_events();
    let inputs = plan.steps.iter_mut().flat_map(|step| &mut step.inputs);
    let mut changed = false;
    for input in inputs.filter(|input| input.take == Take::Gather) {
        let Some(any) = items.get(input.events[0] % items.len().max(1)) else {
            (input.take, changed) = (Take::One, true);
            continue;
        };
        let is_named = |item: usize| input.item.is_none_or(|named| named == item);
        let fitting = items
            .iter()
            .zip(&own)
            .filter(|(item, events)| is_named(**item) && events.contains(&input.events[0]));
        let mut fitting: Vec<usize> = fitting.map(|(item, _)| *item).collect();
        fitting.sort_unstable();
        fitting.dedup();
        match fitting[..] {
            [] => (input.events, input.item, changed) = (vec![*any], Some(*any), true),
            [_] => {}
            // Any of them.
            _ => (input.item, changed) = (Some(fitting[input.events[0] % fitting.len()]), true),
        }
    }
    changed
}

/// S59: some gathers that name their item collect further events, which the branches may have or not, or none.
fn collect_more(plan: &mut Plan) {
    let events = &plan.events;
    for input in plan.steps.iter_mut().flat_map(|step| &mut step.inputs) {
        let first = input.events[0];
        let more = (first + 1) % events.len();
        match (input.take, input.item) {
            (Take::Gather, Some(item)) if item != first && first % 3 == 2 => input.events.clear(),
            (Take::Gather, Some(_)) if more != first && !events[more].failure => input.events.push(more),
            _ => {}
        }
    }
}

/// Makes every gather collect an event and every fan-out end in a gather, as a table requires (S48).
fn make_gathers_fit(plan: &mut Plan) {
    let items: Vec<usize> = plan.fan_outs().iter().map(|place| place.item).collect();
    // A gather that names an item takes less, and other gathers may fit nothing then. A new step can fail, and what
    // takes failures may run in further branches.
    loop {
        while make_some_gather_fit(plan, &items) {}
        let is_gathered = |item: usize| {
            plan.steps.iter().filter(|step| step.on_end.is_none()).flat_map(|step| &step.inputs).any(
                |input| {
                    let is_named = input.item.is_none_or(|named| named == item);
                    input.take == Take::Gather && input.events == [item] && is_named
                },
            )
        };
        let Some(item) = items.iter().copied().find(|item| !is_gathered(*item)) else { break };
        let (take, events) = (Take::Gather, vec![item]);
        let input = PlannedInput { take, events, item: Some(item), ..PlannedInput::default() };
        plan.steps.push(PlannedStep { inputs: vec![input], ..PlannedStep::default() });
    }
}
