//! Fills the graph of a draft, so that tables built at run time obey the same rules as those that the
//! compiler checks.

use super::draft::{EventDraft, InputDraft, OutputDraft, StepDraft, TableDraft};
use crate::event::Roles;
use crate::spec::check::{
    Cell, Cells, GraphEvent, GraphFanOut, GraphInput, GraphMember, GraphOutput, GraphStep, Rows, RuleGraph,
    Scopes, SourcePlace, Wait,
};
use crate::spec::{InputKind, TableProblem};

/// How strictly to check the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Only what the scheduler cannot work without.
    Scheduler,
    /// Every rule.
    Everything,
}

impl TableDraft {
    /// Everything that is wrong with the graph, and its branches.
    pub(super) fn check_graph(&self, strictness: Strictness) -> (Vec<TableProblem>, Branches) {
        let unclear = self.events.iter().any(|event| event.unclear);
        let mut room = 1;
        loop {
            let mut space = Space::of(self, room);
            let mut graph = space.graph();
            self.fill(&mut graph);
            graph.unclear = unclear;
            graph.explore();
            if !graph.overflowed() {
                return (self.problems_of(&graph, strictness), Branches::of(&graph));
            }
            // How much lies in branches is known only afterwards.
            room *= 2;
        }
    }

    fn problems_of(&self, graph: &RuleGraph<'_, '_>, strictness: Strictness) -> Vec<TableProblem> {
        let steps = 0..self.steps.len();
        let places = steps.flat_map(|step| (0..).map_while(move |at| graph.place(step, at)));
        let places =
            places.chain([SourcePlace::Whole, SourcePlace::End]).filter(|place| !self.is_unclear(*place));
        let mistakes = places.filter_map(|place| match strictness {
            Strictness::Scheduler if !graph.unclear => graph.mistake(place),
            _ => graph.own_mistake(place),
        });
        let said =
            mistakes.filter(|mistake| strictness == Strictness::Everything || mistake.is_of_scheduler());
        said.map(TableProblem::from).collect()
    }

    /// Whether it is open what a parameter of a precondition takes.
    fn is_unclear(&self, place: SourcePlace) -> bool {
        let SourcePlace::Precondition(step, input) = place else { return false };
        let asked = self.steps[step].precondition.as_ref();
        asked.is_some_and(|asked| asked.inputs[input].is_unclear(&self.events))
    }

    fn fill<'n>(&'n self, graph: &mut RuleGraph<'_, 'n>) {
        for event in &self.events {
            graph.events.push(graph_event(event));
        }
        for (request, event) in self.events.iter().enumerate() {
            if let Some(reply) = event.reply {
                graph.pair(request, reply);
            }
        }
        self.steps.iter().for_each(|step| fill_step(graph, step, &self.events));
        self.expect_output(graph);
    }

    /// What no step takes or emits has no place in the table, but its name may have to be said.
    fn expect_output<'n>(&'n self, graph: &mut RuleGraph<'_, 'n>) {
        for member in self.output.iter().filter(|_| self.output.iter().all(|event| !event.name.is_empty())) {
            let known = self.place_of(member);
            let event =
                known.unwrap_or_else(|| graph.events.push(GraphEvent::new(member.name, member.roles)));
            graph.expect(event);
        }
    }

    pub(super) fn all_inputs(&self) -> impl Iterator<Item = &InputDraft> {
        let asked = self.steps.iter().filter_map(|step| step.precondition.as_ref());
        let asked = asked.flat_map(|precondition| &precondition.inputs);
        self.steps.iter().flat_map(|step| &step.inputs).chain(asked)
    }

    pub(super) fn all_outputs(&self) -> impl Iterator<Item = &OutputDraft> {
        self.steps.iter().flat_map(|step| &step.outputs)
    }
}

/// An unclear event can come from anywhere, and ends nothing.
fn graph_event(draft: &EventDraft) -> GraphEvent<'_> {
    let event = GraphEvent::new(&draft.name, draft.roles);
    let given = event.given || draft.unclear || draft.meant;
    GraphEvent { given, stops: event.stops && !draft.unclear, ..event }
}

fn fill_step<'n>(graph: &mut RuleGraph<'_, 'n>, draft: &'n StepDraft, events: &[EventDraft]) {
    let step = GraphStep {
        limit: draft.policy.max_executions,
        loops: draft.policy.loops,
        cleans_up: draft.on_end.is_some(),
        unclear: draft.inputs.iter().any(|input| input.is_unclear(events)),
        catches: &draft.catches,
        ..GraphStep::new(&draft.name)
    };
    graph.push_step(step);
    draft.inputs.iter().for_each(|input| fill_input(graph, input));
    graph.close_inputs();
    if let Some(precondition) = &draft.precondition {
        precondition.inputs.iter().for_each(|input| fill_input(graph, input));
        graph.close_precondition(&precondition.name);
    }
    for output in &draft.outputs {
        graph.push_output(GraphOutput {
            event: output.event,
            always: output.least > 0 && !output.fan_out,
            choices: output.choices,
            many: output.many,
            fan_out: output.fan_out.then_some(0),
            returned: output.returned,
            ..GraphOutput::NONE
        });
    }
}

fn fill_input(graph: &mut RuleGraph<'_, '_>, input: &InputDraft) {
    graph.push_input(input.kind, input.optional, input.passive);
    input.events.iter().for_each(|event| graph.push_member(*event));
    input.item.iter().for_each(|item| graph.set_item(*item));
}

/// An event that branches can have.
#[derive(Debug, Clone, Copy)]
pub(super) enum BranchEvent {
    /// A declared event, by its place.
    Declared(usize),
    /// The end of a fan-out, by its number.
    EndOf(usize),
    /// The failure of a step, by its place.
    FailureOf(usize),
}

/// What the exploration of a graph says of its branches.
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// Pairs of a fan-out and an event that its branches themselves can have.
    pub(super) own: Vec<(usize, BranchEvent)>,
    /// Pairs of a gather and a fan-out that it fits, in order; the gather is a step and the place among its inputs.
    pub(super) gathers: Vec<((usize, usize), usize)>,
}

impl Branches {
    fn of(graph: &RuleGraph<'_, '_>) -> Self {
        let own = &graph.scopes.own;
        let in_branches = (0..own.len()).filter(|cell| own.row(*cell) > 0);
        let own = in_branches.map(|cell| (own.row(cell) - 1, Self::event(graph, own.column(cell))));
        let mut gathers = Vec::new();
        for input in 0..graph.inputs.len() {
            let row = graph.inputs.get(input);
            let Some(step) = row.step.filter(|_| row.kind == InputKind::Gather) else { continue };
            let gather = (step, input - graph.steps.get(step).inputs.start);
            let linked = std::iter::successors(row.linked, |member| graph.members.get(*member).other);
            let ends = linked.filter_map(|member| graph.events.get(graph.members.get(member).event).gathers);
            gathers.extend(ends.map(|end| (gather, end)));
        }
        gathers.sort_unstable();
        Self { own: own.collect(), gathers }
    }

    fn event(graph: &RuleGraph<'_, '_>, event: usize) -> BranchEvent {
        let row = graph.events.get(event);
        match (row.gathers, row.fails) {
            (Some(fan_out), _) => BranchEvent::EndOf(fan_out),
            (_, Some(step)) => BranchEvent::FailureOf(step),
            _ => BranchEvent::Declared(event),
        }
    }
}

/// The memory of a graph.
struct Space<'n> {
    events: Vec<GraphEvent<'n>>,
    steps: Vec<GraphStep<'n>>,
    inputs: Vec<GraphInput>,
    members: Vec<GraphMember>,
    outputs: Vec<GraphOutput>,
    fan_outs: Vec<GraphFanOut>,
    pending: Vec<usize>,
    order: Vec<usize>,
    own: (Vec<Cell>, Vec<u32>),
    around: (Vec<Cell>, Vec<u32>),
    visits: (Vec<Cell>, Vec<u32>),
    waits: Vec<Wait>,
}

impl<'n> Space<'n> {
    /// The memory for a draft, with this many times the usual room for what lies in branches and what steps catch.
    fn of(draft: &TableDraft, room: usize) -> Self {
        let (steps, inputs) = (draft.steps.len(), draft.all_inputs().count());
        let fan_outs = draft.all_outputs().filter(|output| output.fan_out).count();
        let members: usize = draft.all_inputs().map(|input| input.events.len()).sum();
        let catches = draft.steps.iter().any(|step| draft.takes_failures(step));
        let caught = if catches { steps } else { 0 };
        let events = draft.events.len() + draft.output.len() + fan_outs + caught;
        // A table without fan-outs has no scopes.
        let scopes = if fan_outs > 0 { room } else { 0 };
        let cells = |count: usize| {
            let count = (count * scopes).next_power_of_two();
            (vec![Cell::NONE; count], vec![0; 2 * count])
        };
        Self {
            events: vec![GraphEvent::new("", Roles::NONE); events],
            steps: vec![GraphStep::new(""); steps],
            inputs: vec![GraphInput::NONE; inputs],
            // Each stands with its parameter and, for a step's, with its event.
            members: vec![GraphMember::NONE; 2 * members + (2 * caught + 2 * fan_outs + 8) * room],
            outputs: vec![GraphOutput::NONE; draft.all_outputs().count()],
            fan_outs: vec![GraphFanOut::NONE; fan_outs],
            pending: vec![0; events],
            order: vec![0; events + steps],
            own: cells(events + events / 2),
            around: cells(4 * fan_outs),
            visits: cells(steps + steps / 2),
            waits: vec![Wait::NONE; (2 * (members + caught) + 8) * scopes],
        }
    }

    fn graph(&mut self) -> RuleGraph<'_, 'n> {
        RuleGraph {
            events: Rows::in_memory(&mut self.events),
            steps: Rows::in_memory(&mut self.steps),
            inputs: Rows::in_memory(&mut self.inputs),
            members: Rows::in_memory(&mut self.members),
            outputs: Rows::in_memory(&mut self.outputs),
            fan_outs: Rows::in_memory(&mut self.fan_outs),
            pending: Rows::in_memory(&mut self.pending),
            order: Rows::in_memory(&mut self.order),
            scopes: Scopes {
                own: Cells::in_memory(&mut self.own.0, &mut self.own.1),
                around: Cells::in_memory(&mut self.around.0, &mut self.around.1),
                visits: Cells::in_memory(&mut self.visits.0, &mut self.visits.1),
                waits: Rows::in_memory(&mut self.waits),
            },
            expects: false,
            has_disjoint: false,
            unclear: false,
        }
    }
}
