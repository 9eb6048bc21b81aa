//! Builds the graph of a table.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{BranchBox, Edge, EdgeKind, Graph, Node, NodeKind};
use crate::spec::InputKind;
use crate::table::{
    DependencyTable, EventIndex, EventRow, FanOutIndex, InputRow, Lists, OutputRow, StepIndex, StepRow,
};

impl DependencyTable {
    /// The graph of the table. About O(size of the table and of its graph), and the
    /// [forecasts](DependencyTable::forecast) if this is their first use.
    pub fn graph(&self) -> Graph {
        Drawing::of(self).graph()
    }
}

/// A table, with what its graph asks for often.
struct Drawing<'a> {
    table: &'a DependencyTable,
    /// By event, the outputs of its type, in declaration order: the step, and the place among its outputs.
    outputs: Lists<(usize, usize)>,
    /// By event, the steps that name it in an input that is not passive.
    takers: Lists<usize>,
    /// By event, the fan-outs whose branches can have it themselves.
    holders: Lists<usize>,
    /// By event, whether a step takes it in any way.
    taken: Vec<bool>,
    /// By step, the box that it is drawn in.
    boxes: Vec<Option<usize>>,
}

impl<'a> Drawing<'a> {
    fn of(table: &'a DependencyTable) -> Self {
        let events = table.events.len();
        let outputs = table.steps.iter().enumerate().flat_map(|(step, row)| {
            let outputs = row.outputs.iter().enumerate();
            outputs.map(move |(place, output)| (output.event.get(), (step, place)))
        });
        let held = table.fan_outs.iter().enumerate();
        let held = held.flat_map(|(place, row)| row.own.iter().map(move |event| (event.get(), place)));
        let takers = table.steps.iter().enumerate().flat_map(|(step, row)| {
            let inputs = row.inputs.iter().filter(|input| !input.passive);
            inputs.flat_map(|input| &input.events).map(move |event| (event.get(), step))
        });
        let mut taken = vec![false; events];
        for input in table.steps.iter().flat_map(|step| &step.inputs) {
            // Steps that the event does not trigger take it all the same: clean-up, and those that read it.
            input.events.iter().chain(&input.gathered).for_each(|event| taken[event.get()] = true);
        }
        let mut drawing = Self {
            table,
            outputs: Lists::of(events, outputs),
            takers: Lists::of(events, takers),
            holders: Lists::of(events, held),
            taken,
            boxes: Vec::new(),
        };
        drawing.boxes = table.steps.iter().map(|step| drawing.box_of(step)).collect();
        drawing
    }

    fn graph(&self) -> Graph {
        let mut graph = Graph::new(Arc::clone(&self.table.name));
        graph.description = Arc::clone(&self.table.description);
        graph.edges = self.edges();
        graph.boxes = self.branch_boxes();
        graph.nodes = self.nodes(&graph.edges);
        graph
    }

    fn nodes(&self, edges: &[Edge]) -> Vec<Node> {
        let used = |id: &str| edges.iter().any(|edge| edge.from == id || edge.to == id);
        let around = [
            ("start", NodeKind::Start),
            ("outside", NodeKind::Outside),
            ("stop", NodeKind::Stop),
            ("unread", NodeKind::Unread),
        ];
        let around = around.into_iter().filter(|(id, _)| used(id)).map(|(id, kind)| Node::new(id, kind));
        let steps = self.table.steps.iter().enumerate().map(|(i, step)| self.step_node(i, step));
        around.chain(steps).collect()
    }

    fn step_node(&self, index: usize, step: &StepRow) -> Node {
        Node {
            description: Arc::clone(&step.description),
            precondition: step.precondition.as_ref().map(|row| Arc::clone(&row.name)),
            max_executions: step.policy.max_executions,
            concurrency: step.policy.concurrency,
            at_most_once: step.policy.at_most_once,
            on_end: step.on_end,
            // Clean-up runs for the whole run.
            branch: self.boxes[index].filter(|_| step.on_end.is_none()),
            forecast: Some(self.table.forecast(StepIndex::at(index))),
            ..Node::named(Arc::clone(&step.name), format!("s{index}"), NodeKind::Step)
        }
    }

    fn branch_boxes(&self) -> Vec<BranchBox> {
        let fan_outs = &self.table.fan_outs;
        // The box of the step that fans out, of each.
        let outer: Vec<Option<usize>> =
            fan_outs.iter().map(|fan_out| self.boxes[fan_out.step.get()]).collect();
        let within = |place: usize| outer[place].filter(|around| !lies_in(*around, place, &outer));
        let boxes = fan_outs.iter().enumerate().map(|(place, fan_out)| {
            let step = Arc::clone(&self.table.step(fan_out.step).name);
            let item = Arc::clone(&self.table.event(fan_out.item).name);
            BranchBox { within: within(place), ..BranchBox::new(step, item) }
        });
        boxes.collect()
    }

    /// The smallest fan-out to whose branches the step is confined. A step that takes failures of a branch
    /// and others runs elsewhere too.
    fn box_of(&self, step: &StepRow) -> Option<usize> {
        let takes = step.inputs.iter().filter(|input| !input.passive).flat_map(|input| &input.events);
        let is_failure = |event: &EventIndex| self.table.event(*event).fails.is_some();
        let (failures, others): (Vec<EventIndex>, Vec<EventIndex>) =
            takes.partition(|event| is_failure(event));
        let boxes_with = |event: EventIndex| {
            let holders = self.holders.row(event.get()).iter().copied();
            holders.filter(move |place| !self.is_emitted_outside(event, *place))
        };
        // By box, how many of the failures it has.
        let mut caught: HashMap<usize, usize> = HashMap::new();
        for place in failures.iter().flat_map(|event| boxes_with(*event)) {
            *caught.entry(place).or_default() += 1;
        }
        let only_failures = caught.into_iter().filter(|(_, count)| *count == failures.len());
        let of_others = others.iter().flat_map(|event| boxes_with(*event));
        let boxes = only_failures.map(|(place, _)| place).chain(of_others);
        boxes.min_by_key(|place| (self.table.fan_outs[*place].own.len(), *place))
    }

    /// Whether the event also occurs outside of branches: it comes from outside, or a step that takes nothing
    /// of the branch emits it in its own scope.
    fn is_emitted_outside(&self, event: EventIndex, fan_out: usize) -> bool {
        let branch = &self.table.fan_outs[fan_out];
        let takes_own = |step: &StepRow| {
            let mut inputs = step.inputs.iter().filter(|input| !input.passive);
            inputs.any(|input| input.events.iter().any(|event| branch.has(*event)))
        };
        let row = self.table.event(event);
        let outputs = self.outputs.row(event.get()).iter().map(|(step, place)| {
            let step = &self.table.steps[*step];
            (step, &step.outputs[*place])
        });
        let emitters = outputs.filter(|(_, output)| output.fan_out.is_none()).map(|(step, _)| step);
        let failing = row.fails.map(|step| self.table.step(step));
        let mut emitters = emitters.chain(failing);
        row.roles.is_start() || row.roles.is_external() || emitters.any(|step| !takes_own(step))
    }

    fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (index, step) in self.table.steps.iter().enumerate() {
            let id = format!("s{index}");
            for input in step.inputs.iter().filter(|input| input.kind.takes_events()) {
                self.edges_into(&id, input, step.on_end.is_some(), &mut edges);
            }
            edges.extend(step.outputs.iter().filter_map(|output| self.edge_out(&id, output)));
        }
        let ends_a_run = |row: &&EventRow| row.roles.is_stop() && row.roles.is_external();
        edges.extend(self.table.events.iter().filter(ends_a_run).map(|row| Edge {
            kind: EdgeKind::Outside,
            optional: true,
            ..Edge::new("outside", "stop", Arc::clone(&row.name))
        }));
        edges
    }

    /// Adds an edge from every source of the input.
    fn edges_into(&self, to: &str, input: &InputRow, cleans_up: bool, edges: &mut Vec<Edge>) {
        let collects = input.kind == InputKind::Gather;
        for event in if collects { &input.gathered[..] } else { &input.events } {
            let row = self.table.event(*event);
            let mut edge = |from: &str, output: Option<&OutputRow>| {
                edges.push(Edge {
                    kind: if row.fails.is_some() { EdgeKind::Failure } else { edge_kind(input.kind) },
                    optional: input.optional,
                    passive: input.passive,
                    many: output.is_some_and(|output| output.many),
                    fan_out: output.is_some_and(|output| output.fan_out.is_some()) && !collects,
                    timed: output.is_some_and(|output| output.timed),
                    cleans_up,
                    ..Edge::new(from, to, Arc::clone(&row.name))
                });
            };
            let roles = row.roles;
            if let Some(step) = row.fails {
                edge(&format!("s{}", step.get()), None);
            }
            if roles.is_start() {
                edge("start", None);
            }
            if roles.is_external() || roles.is_reply() {
                edge("outside", None);
            }
            let collected = collects.then(|| self.collected_outputs(input, *event));
            for (index, place) in collected.as_deref().unwrap_or_else(|| self.outputs.row(event.get())) {
                edge(&format!("s{index}"), Some(&self.table.steps[*index].outputs[*place]));
            }
        }
    }

    /// The outputs of the event that the gather collects, in declaration order: they open its fan-outs, or their steps
    /// run in branches of these.
    fn collected_outputs(&self, gather: &InputRow, event: EventIndex) -> Vec<(usize, usize)> {
        let fan_outs = || gather.events.iter().filter_map(|end| self.table.event(*end).gathers);
        let mut in_branches: HashSet<usize> = HashSet::new();
        for own in fan_outs().flat_map(|fan_out| &self.table.fan_out(fan_out).own) {
            in_branches.extend(self.takers.row(own.get()));
        }
        let opens: HashSet<FanOutIndex> = fan_outs().collect();
        let openers = fan_outs().map(|fan_out| self.table.fan_out(fan_out).step.get());
        let mut steps: Vec<usize> = in_branches.iter().copied().chain(openers).collect();
        steps.sort_unstable();
        steps.dedup();
        let outputs = steps.into_iter().flat_map(|step| {
            let outputs = self.table.steps[step].outputs.iter().enumerate();
            outputs.map(move |(place, output)| (step, place, output))
        });
        let is_collected = |step: usize, output: &OutputRow| match output.fan_out {
            Some(fan_out) => opens.contains(&fan_out),
            None => in_branches.contains(&step),
        };
        let outputs = outputs.filter(|(_, _, output)| output.event == event);
        let outputs = outputs.filter(|(step, _, output)| is_collected(*step, output));
        outputs.map(|(step, place, _)| (step, place)).collect()
    }

    /// The edge of an output that goes outside or that no step takes.
    fn edge_out(&self, from: &str, output: &OutputRow) -> Option<Edge> {
        let row = self.table.event(output.event);
        let to = match row.roles {
            roles if roles.is_stop() => "stop",
            roles if roles.is_request() => "outside",
            _ if !self.taken[output.event.get()] => "unread",
            _ => return None,
        };
        Some(Edge {
            kind: EdgeKind::Outside,
            optional: output.least == 0,
            many: output.many,
            fan_out: output.fan_out.is_some(),
            timed: output.timed,
            ..Edge::new(from, to, Arc::clone(&row.name))
        })
    }
}

/// Whether a box lies in another one, through any number of boxes. Fan-outs can be recursive; boxes cannot.
fn lies_in(place: usize, other: usize, outer: &[Option<usize>]) -> bool {
    let outwards = std::iter::successors(Some(place), |place| outer[*place]);
    outwards.take(outer.len() + 1).any(|place| place == other)
}

fn edge_kind(kind: InputKind) -> EdgeKind {
    match kind {
        InputKind::List => EdgeKind::List,
        InputKind::Fixed(count) => EdgeKind::Fixed(count),
        InputKind::Reply => EdgeKind::Reply,
        InputKind::Gather => EdgeKind::Gather,
        InputKind::One | InputKind::Injected | InputKind::Emitter => EdgeKind::One,
    }
}
