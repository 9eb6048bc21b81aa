//! Fills the graph of a draft, so that tables built at run time obey the same rules as those that the
//! compiler checks.

use super::draft::{EventDraft, InputDraft, OutputDraft, StepDraft, TableDraft};
use crate::event::Roles;
use crate::spec::check::{
    GraphEvent, GraphFanOut, GraphInput, GraphMember, GraphOutput, GraphStep, Rows, RuleGraph, SourcePlace,
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
    /// Everything that is wrong with the graph.
    pub(super) fn graph_problems(&self, strictness: Strictness) -> Vec<TableProblem> {
        let mut space = Space::of(self);
        let mut graph = space.graph();
        self.fill(&mut graph);
        graph.unclear = self.events.iter().any(|event| event.unclear);
        graph.explore();
        debug_assert!(!graph.overflowed(), "the memory of a graph is counted from its draft");
        let (graph, steps) = (&graph, 0..self.steps.len());
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
            let known = self.events.iter().position(|row| row.is(member));
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
        });
    }
}

fn fill_input(graph: &mut RuleGraph<'_, '_>, input: &InputDraft) {
    graph.push_input(input.kind, input.optional, input.passive);
    input.events.iter().for_each(|event| graph.push_member(*event));
    input.item.iter().for_each(|item| graph.set_item(*item));
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
    own: Vec<bool>,
    seen: Vec<bool>,
}

impl<'n> Space<'n> {
    fn of(draft: &TableDraft) -> Self {
        let fan_outs = draft.all_outputs().filter(|output| output.fan_out).count();
        let gathers = draft.all_inputs().filter(|input| input.kind == InputKind::Gather).count();
        let members: usize = draft.all_inputs().map(|input| input.events.len()).sum();
        // Each step may fail, and be caught by each.
        let failures = draft.steps.iter().filter(|step| draft.takes_failures(step));
        let failures = failures.map(|step| step.inputs.len() * draft.steps.len()).sum::<usize>();
        let caught = if failures > 0 { draft.steps.len() } else { 0 };
        let events = draft.events.len() + draft.output.len() + fan_outs + caught;
        Self {
            events: vec![GraphEvent::new("", Roles::NONE); events],
            steps: vec![GraphStep::new(""); draft.steps.len()],
            inputs: vec![GraphInput::NONE; draft.all_inputs().count()],
            // Each stands with its parameter and, for a step's, with its event; a gather's with each fan-out.
            members: vec![GraphMember::NONE; 2 * members + gathers * fan_outs + failures],
            outputs: vec![GraphOutput::NONE; draft.all_outputs().count()],
            fan_outs: vec![GraphFanOut::NONE; fan_outs],
            pending: vec![0; events],
            own: vec![false; events * (fan_outs + 1)],
            seen: vec![false; events * (fan_outs + 1)],
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
            own: Rows::in_memory(&mut self.own),
            seen: Rows::in_memory(&mut self.seen),
            expects: false,
            has_disjoint: false,
            unclear: false,
        }
    }
}
