//! Compiles a draft into dense indices, topics and masks, and collects every problem.
//!
//! The order matters: names and graph are checked on the draft first. Then rows are added, with internal
//! events for fan-outs and caught failures; gathers are matched to fan-outs; and inputs get their topics and
//! conditions last, since these steps change which events an input takes.
//!
//! ```text
//!  draft rows ─▶ steps, declared events
//!                  │ take_failures     + one internal event per caught step
//!                  │ match_gathers     + events of Gather inputs: the ends of fitting fan-outs
//!                  │ index_inputs      + topics, conditions, takers
//!                  ▼ note_uses         + direct steps, lists, greatest counts
//!               DependencyTable
//! ```
//!
//! An example of two steps, `a(&E) -> F` and `b(List<F>, &E)`:
//!
//! | | `takers` | `topics` | `direct` |
//! | --- | --- | --- | --- |
//! | `E` | `a`, `b` | 0: one `E` | none: two steps take it |
//! | `F` | `b` | 1: one `F` | none: `b` takes `E` too |

use std::sync::{Arc, OnceLock};

use foldhash::HashMap;
use smallvec::SmallVec;

use super::draft::{EventDraft, InputDraft, OutputDraft, PreconditionDraft, StepDraft, TableDraft};
use super::graph::Strictness;
use super::{
    Condition, DependencyTable, Edges, EventIndex, EventRow, FanOutIndex, FanOutRow, InputRow, Names,
    OutputRow, PreconditionRow, StepIndex, StepRow, TopicIndex, TopicRow,
};
use crate::event::Roles;
use crate::spec::{InputKind, TableError, TableProblem};

impl TableDraft {
    pub(super) fn compile(self, strictness: Strictness) -> Result<DependencyTable, TableError> {
        let workflow = Arc::clone(&self.name);
        match self.compile_with_problems(strictness) {
            (table, problems) if problems.is_empty() => Ok(table),
            (_, problems) => Err(TableError::new(&workflow, problems)),
        }
    }

    /// Compiles the table whatever its problems, and returns both. Such a table can be drawn but not run.
    pub(super) fn compile_with_problems(
        mut self,
        strictness: Strictness,
    ) -> (DependencyTable, Vec<TableProblem>) {
        let mut compiler = Compiler::of(&self);
        self.check_rows(strictness);
        compiler.problems.append(&mut self.problems);
        compiler.check_event_names(&mut self);
        compiler.check_step_names(&self);
        let (problems, branches) = self.check_graph(strictness);
        compiler.problems.extend(problems);
        for step in &self.steps {
            compiler.step(step);
        }
        compiler.table.take_failures(&self);
        compiler.table.match_gathers(&branches);
        compiler.assert_gathers_fit();
        compiler.index_inputs();
        compiler.note_uses();
        compiler.table.name_internal_events(self.events.len());
        (compiler.table, compiler.problems)
    }
}

/// Collects the rows of a table and its problems.
struct Compiler {
    table: DependencyTable,
    /// The topics by their event types.
    topics: HashMap<SmallVec<[EventIndex; 2]>, TopicIndex>,
    problems: Vec<TableProblem>,
}

impl Compiler {
    fn of(draft: &TableDraft) -> Self {
        let events: Vec<EventRow> = draft.events.iter().map(event_row).collect();
        let typed = draft.events.iter().enumerate();
        let by_type = typed.filter_map(|(i, event)| Some((event.rust?.0, EventIndex::at(i)))).collect();
        let of_clean_up = (0..draft.steps.len()).filter(|step| draft.steps[*step].on_end.is_some());
        let table = DependencyTable {
            clean_up: of_clean_up.map(StepIndex::at).collect(),
            name: Arc::clone(&draft.name),
            description: Arc::clone(&draft.description),
            events,
            steps: Vec::with_capacity(draft.steps.len()),
            topics: Vec::new(),
            fan_outs: Vec::new(),
            conditions: 0,
            by_type,
            names: Names::with_room(draft.events.len(), draft.steps.len()),
            edges: Edges::of(draft),
            recorded: OnceLock::new(),
            forecasts: OnceLock::new(),
        };
        Self { table, topics: HashMap::default(), problems: Vec::new() }
    }

    /// Asserts that each gather that the rules accept fits a fan-out.
    fn assert_gathers_fit(&self) {
        let mut inputs = self.table.steps.iter().flat_map(|step| &step.inputs);
        let fits = |input: &InputRow| input.kind != InputKind::Gather || !input.events.is_empty();
        debug_assert!(!self.problems.is_empty() || inputs.all(fits), "the rules let a stray gather pass");
    }

    /// S1: reports two types of one name. Their events become unclear, since a step may take one for the
    /// other.
    fn check_event_names(&mut self, draft: &mut TableDraft) {
        for twin in 0..draft.events.len() {
            let name = &draft.events[twin].name;
            let first = self.table.names.add_event(name, EventIndex::at(twin)).get();
            // Events without a name have a problem of their own.
            if first != twin && !name.is_empty() {
                let types = [first, twin].map(|place| draft.events[place].type_name().to_owned());
                self.problems.push(TableProblem::DuplicateEvent { event: name.to_string(), types });
                draft.events[first].unclear = true;
                draft.events[twin].unclear = true;
            }
        }
    }

    /// Reports steps of one name, and a table without steps.
    fn check_step_names(&mut self, draft: &TableDraft) {
        for (place, step) in draft.steps.iter().enumerate() {
            let first = self.table.names.add_step(&step.name, StepIndex::at(place));
            if first.get() != place && !step.name.is_empty() {
                self.problems.push(TableProblem::DuplicateStep { step: step.name.to_string() });
            }
        }
        if draft.steps.is_empty() {
            self.problems.push(TableProblem::NoSteps);
        }
    }

    fn step(&mut self, step: &StepDraft) {
        let index = StepIndex::at(self.table.steps.len());
        let row = StepRow {
            name: Arc::clone(&step.name),
            description: Arc::clone(&step.description),
            inputs: step.inputs.iter().map(input_row).collect(),
            outputs: step.outputs.iter().map(|output| self.output(index, &step.name, output)).collect(),
            precondition: step.precondition.as_ref().map(|row| precondition_row(step, row)),
            policy: step.policy,
            on_end: step.on_end,
            limit: step.limit.clone().map(Box::new),
            key: step.key.clone().map(Box::new),
            failed: None,
            required: SmallVec::new(),
            joins_gather: joins_gather(step) && step.on_end.is_none(),
            may_repeat: step.on_end.is_none()
                && step.inputs.iter().any(|input| matches!(input.kind, InputKind::Fixed(_))),
        };
        self.check_step(step);
        self.table.steps.push(row);
    }

    /// Reports limits and timeouts of 0.
    fn check_step(&mut self, step: &StepDraft) {
        let name = || step.name.to_string();
        for (limit, value) in
            [("max_executions", step.policy.max_executions), ("concurrency", step.policy.concurrency)]
        {
            if value == Some(0) {
                self.problems.push(TableProblem::ZeroLimit { step: name(), limit });
            }
        }
        if step.policy.timeout.is_some_and(|timeout| timeout.is_zero()) {
            self.problems.push(TableProblem::ZeroTimeout { step: name() });
        }
    }

    fn output(&mut self, step: StepIndex, step_name: &str, output: &OutputDraft) -> OutputRow {
        let event = EventIndex::at(output.event);
        let fan_out = output.fan_out.then(|| self.fan_out(step, step_name, event));
        let OutputDraft { least, many, timed, .. } = *output;
        OutputRow { event, least, many, timed, fan_out }
    }

    /// Adds a fan-out and the internal event that completes it.
    fn fan_out(&mut self, step: StepIndex, step_name: &str, item: EventIndex) -> FanOutIndex {
        let index = FanOutIndex::at(self.table.fan_outs.len());
        let gathered = EventIndex::at(self.table.events.len());
        let name = format!("{step_name}.{}.gathered", self.table.event(item).name);
        let draft = EventDraft::new(name.into(), Roles::NONE);
        self.table.events.push(EventRow { gathers: Some(index), ..event_row(&draft) });
        self.table.fan_outs.push(FanOutRow { step, item, gathered, carried: Vec::new(), own: vec![item] });
        index
    }

    /// Gives each input that takes events its topic and condition, and lists its step among the takers.
    fn index_inputs(&mut self) {
        for step in 0..self.table.steps.len() {
            for input in 0..self.table.steps[step].inputs.len() {
                self.index_input(StepIndex::at(step), input);
            }
        }
    }

    /// Indexes one input: its topic, its condition, and its step as a taker of the topic's events.
    fn index_input(&mut self, step: StepIndex, input: usize) {
        let row = &self.table.step(step).inputs[input];
        let (kind, optional, passive) = (row.kind, row.optional, row.passive);
        if !kind.takes_events() {
            return;
        }
        let topic = self.topic(step, input);
        // S11: events do not trigger clean-up. S58: nor does a passive input trigger its step.
        if self.table.step(step).on_end.is_none() && !passive {
            self.note_takers(step, topic);
        }
        self.note_kind(step, topic, kind);
        // An optional input has a topic, to be bound, but no condition.
        let condition = (!optional).then(|| self.condition(topic, kind));
        let row = &mut self.table.steps[step.get()];
        row.inputs[input].topic = Some(topic);
        row.inputs[input].condition = condition;
        if let Some(condition) = condition {
            row.required.push(condition.bit);
        }
    }

    /// Derives per event its direct step and the kinds of lists that take it.
    fn note_uses(&mut self) {
        let Self { table, .. } = self;
        for topic in &mut table.topics {
            let conditions = topic.conditions.iter().map(|condition| condition.least);
            let fixed = topic.fixed.iter().map(|(_, count)| *count);
            topic.most = conditions.chain(fixed).max().unwrap_or(0);
        }
        for event in &mut table.events {
            event.direct = match event.takers[..] {
                [step] if takes_one_event(&table.steps[step.get()]) => Some(step),
                _ => None,
            };
            let mut topics = event.topics.iter().map(|topic| &table.topics[topic.get()]);
            event.listed = topics.clone().any(|topic| topic.listed);
            event.fills = topics.any(|topic| !topic.fixed.is_empty());
        }
    }

    /// The topic of the event types that an input takes, which is added if it is new.
    fn topic(&mut self, step: StepIndex, input: usize) -> TopicIndex {
        let events = &self.table.step(step).inputs[input].events;
        if let Some(known) = self.topics.get(&events[..]) {
            return *known;
        }
        let events = events.clone();
        let index = TopicIndex::at(self.table.topics.len());
        for event in &events {
            let topics = &mut self.table.events[event.get()].topics;
            // A type that is named twice in an input is one event.
            if topics.last() != Some(&index) {
                topics.push(index);
            }
        }
        self.table.topics.push(TopicRow { events: events.clone(), ..TopicRow::default() });
        self.topics.insert(events, index);
        index
    }

    /// Adds the step to the takers of each event, once and in declaration order.
    fn note_takers(&mut self, step: StepIndex, topic: TopicIndex) {
        for event in &self.table.topics[topic.get()].events {
            let takers = &mut self.table.events[event.get()].takers;
            if takers.last() != Some(&step) {
                takers.push(step);
            }
        }
    }

    /// Marks how the input takes the topic: as a list, or as a fixed list of this length.
    fn note_kind(&mut self, step: StepIndex, topic: TopicIndex, kind: InputKind) {
        let topic = &mut self.table.topics[topic.get()];
        topic.listed |= matches!(kind, InputKind::List | InputKind::Fixed(_));
        if let InputKind::Fixed(count) = kind {
            topic.fixed.push((step, count));
        }
    }

    /// The condition of an input of this kind on the topic, which is added with the next bit if it is new.
    fn condition(&mut self, topic: TopicIndex, kind: InputKind) -> Condition {
        let least = if let InputKind::Fixed(count) = kind { count } else { 1 };
        let conditions = &mut self.table.topics[topic.get()].conditions;
        if let Some(known) = conditions.iter().find(|condition| condition.least == least) {
            return *known;
        }
        let condition = Condition { bit: self.table.conditions, topic, least };
        conditions.push(condition);
        self.table.conditions += 1;
        condition
    }
}

/// Whether the step takes a gather beside other events.
fn joins_gather(step: &StepDraft) -> bool {
    let kinds = || step.inputs.iter().filter(|input| input.triggers()).map(|input| input.kind);
    kinds().any(|kind| kind == InputKind::Gather) && kinds().count() > 1
}

/// Whether the step takes one event and nothing else decides whether it runs.
fn takes_one_event(row: &StepRow) -> bool {
    let mut inputs = row.inputs.iter().filter(|input| input.kind.takes_events());
    let is_single = |input: &InputRow| !matches!(input.kind, InputKind::List | InputKind::Fixed(_));
    inputs.next().is_some_and(is_single)
        && inputs.next().is_none()
        && row.precondition.is_none()
        && row.policy.max_executions.is_none()
}

fn precondition_row(step: &StepDraft, row: &PreconditionDraft) -> PreconditionRow {
    // An input that no slot fills is reported with the graph.
    let slot = |input: &InputDraft| step.inputs.iter().position(|of_step| fills(of_step, input));
    let slots = row.inputs.iter().map(|input| if input.kind.takes_events() { slot(input) } else { None });
    let configs = row.inputs.iter().filter_map(|input| input.config);
    let used = row.inputs.iter().find(|input| input.uses_context);
    PreconditionRow {
        name: Arc::clone(&row.name),
        slots: slots.collect(),
        configs: configs.collect(),
        context: used.map(|input| Arc::clone(&input.label)),
    }
}

/// Whether a step's input fills that of a precondition: it takes the same events in the same way, and is
/// required if the precondition requires it.
fn fills(of_step: &InputDraft, wanted: &InputDraft) -> bool {
    of_step.takes_same(wanted) && (wanted.optional || !of_step.optional)
}

pub(super) fn event_row(event: &EventDraft) -> EventRow {
    EventRow {
        name: Arc::clone(&event.name),
        roles: event.roles,
        type_id: event.rust.map(|(id, _)| id),
        type_name: event.rust.map(|(_, name)| name),
        version: event.version,
        decode: event.decode,
        upgrade: event.upgrade,
        takers: SmallVec::new(),
        direct: None,
        fills: false,
        listed: false,
        topics: SmallVec::new(),
        reply: event.reply.map(EventIndex::at),
        expired: event.expired.map(EventIndex::at),
        gathers: None,
        fails: None,
        carried: false,
    }
}

fn input_row(input: &InputDraft) -> InputRow {
    let events = input.events.iter().copied().map(EventIndex::at);
    let (gathered, events) = match input.kind {
        InputKind::Gather => (events.collect(), SmallVec::new()),
        _ => (Vec::new(), events.collect()),
    };
    InputRow {
        kind: input.kind,
        optional: input.optional,
        passive: input.passive,
        item: input.item.map(EventIndex::at),
        gathered,
        events,
        topic: None,
        condition: None,
        config: input.config,
        uses_context: input.uses_context,
        may_start_children: input.may_start_children,
        label: Arc::clone(&input.label),
    }
}
