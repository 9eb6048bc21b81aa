//! Builds the graph of a table.

use std::sync::Arc;

use super::{BranchBox, Edge, EdgeKind, Graph, Node, NodeKind};
use crate::spec::InputKind;
use crate::table::{DependencyTable, EventIndex, EventRow, InputRow, OutputRow, StepIndex, StepRow};

impl DependencyTable {
    /// The graph of the table. O(steps² × events).
    pub fn graph(&self) -> Graph {
        let mut graph = Graph {
            workflow: Arc::clone(&self.name),
            description: Arc::clone(&self.description),
            nodes: Vec::new(),
            edges: self.edges(),
            boxes: self.branch_boxes(),
        };
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
        let around = around.into_iter().filter(|(id, _)| used(id)).map(|(id, kind)| blank_node(id, kind));
        let steps = self.steps.iter().enumerate().map(|(i, step)| self.step_node(i, step));
        around.chain(steps).collect()
    }

    fn step_node(&self, index: usize, step: &StepRow) -> Node {
        Node {
            name: Arc::clone(&step.name),
            description: Arc::clone(&step.description),
            precondition: step.precondition.as_ref().map(|row| Arc::clone(&row.name)),
            max_executions: step.policy.max_executions,
            concurrency: step.policy.concurrency,
            at_most_once: step.policy.at_most_once,
            on_end: step.on_end,
            // Clean-up runs for the whole run.
            branch: self.box_of(step).filter(|_| step.on_end.is_none()),
            forecast: Some(self.forecast(StepIndex::at(index))),
            ..blank_node(&format!("s{index}"), NodeKind::Step)
        }
    }

    fn branch_boxes(&self) -> Vec<BranchBox> {
        // The box of the step that fans out, of each.
        let outer = self.fan_outs.iter().map(|fan_out| self.box_of(self.step(fan_out.step)));
        let outer: Vec<Option<usize>> = outer.collect();
        let within = |place: usize| outer[place].filter(|around| !lies_in(*around, place, &outer));
        let boxes = self.fan_outs.iter().enumerate().map(|(place, fan_out)| BranchBox {
            step: Arc::clone(&self.step(fan_out.step).name),
            item: Arc::clone(&self.event(fan_out.item).name),
            within: within(place),
            branches: None,
            failed: None,
            dropped: None,
        });
        boxes.collect()
    }

    /// The smallest fan-out to whose branches the step is confined. A step that takes failures of a branch
    /// and others runs elsewhere too.
    fn box_of(&self, step: &StepRow) -> Option<usize> {
        let takes: Vec<EventIndex> = step
            .inputs
            .iter()
            .filter(|input| !input.passive)
            .flat_map(|input| input.events.iter().copied())
            .collect();
        let of_branch = |own: &[EventIndex]| {
            let is_there = |event: &EventIndex| own.contains(event) && !self.is_emitted_outside(*event, own);
            let is_failure = |event: &&EventIndex| self.event(**event).fails.is_some();
            let (failures, others): (Vec<&EventIndex>, Vec<&EventIndex>) = takes.iter().partition(is_failure);
            let only_failures = !failures.is_empty() && failures.into_iter().all(is_there);
            only_failures || others.into_iter().any(is_there)
        };
        let boxes = self.fan_outs.iter().enumerate().filter(|(_, fan_out)| of_branch(&fan_out.own));
        boxes.min_by_key(|(_, fan_out)| fan_out.own.len()).map(|(place, _)| place)
    }

    /// Whether the event also occurs outside of branches: it comes from outside, or a step that takes nothing
    /// of the branch emits it in its own scope.
    fn is_emitted_outside(&self, event: EventIndex, own: &[EventIndex]) -> bool {
        let takes_own = |step: &StepRow| {
            let mut inputs = step.inputs.iter().filter(|input| !input.passive);
            inputs.any(|input| input.events.iter().any(|event| own.contains(event)))
        };
        let emits = |step: &StepRow| {
            step.failed == Some(event)
                || step.outputs.iter().any(|output| output.event == event && output.fan_out.is_none())
        };
        let outside = self.event(event).roles;
        outside.is_start()
            || outside.is_external()
            || self.steps.iter().any(|step| emits(step) && !takes_own(step))
    }

    fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            for input in step.inputs.iter().filter(|input| input.kind.takes_events()) {
                self.edges_into(&format!("s{index}"), input, step.on_end.is_some(), &mut edges);
            }
            for output in &step.outputs {
                self.edges_out(&format!("s{index}"), output, &mut edges);
            }
        }
        let ends_a_run = |row: &&EventRow| row.roles.is_stop() && row.roles.is_external();
        edges.extend(self.events.iter().filter(ends_a_run).map(|row| Edge {
            from: "outside".to_owned(),
            to: "stop".to_owned(),
            event: Arc::clone(&row.name),
            kind: EdgeKind::Outside,
            optional: true,
            passive: false,
            many: false,
            fan_out: false,
            timed: false,
            cleans_up: false,
        }));
        edges
    }

    /// Adds an edge from every source of the input.
    fn edges_into(&self, to: &str, input: &InputRow, cleans_up: bool, edges: &mut Vec<Edge>) {
        let collects = input.kind == InputKind::Gather;
        for event in if collects { &input.gathered } else { &input.events } {
            let event = *event;
            let row = self.event(event);
            let mut edge = |from: &str, output: Option<&OutputRow>| {
                edges.push(Edge {
                    from: from.to_owned(),
                    to: to.to_owned(),
                    event: Arc::clone(&row.name),
                    kind: if row.fails.is_some() { EdgeKind::Failure } else { edge_kind(input.kind) },
                    optional: input.optional,
                    passive: input.passive,
                    many: output.is_some_and(|output| output.many),
                    fan_out: output.is_some_and(|output| output.fan_out.is_some()) && !collects,
                    timed: output.is_some_and(|output| output.timed),
                    cleans_up,
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
            for (index, step) in self.steps.iter().enumerate() {
                let supplies = |output: &&OutputRow| {
                    output.event == event && (!collects || self.gathers_from(input, step, output))
                };
                for output in step.outputs.iter().filter(supplies) {
                    edge(&format!("s{index}"), Some(output));
                }
            }
        }
    }

    /// Whether the gather collects the events of this output: they are items of its fan-outs, or the step runs in
    /// branches of these.
    fn gathers_from(&self, gather: &InputRow, step: &StepRow, output: &OutputRow) -> bool {
        let mut fan_outs = gather.events.iter().filter_map(|event| self.event(*event).gathers);
        fan_outs.any(|fan_out| {
            let mut taken = step.inputs.iter().filter(|input| !input.passive).flat_map(|input| &input.events);
            let own = &self.fan_out(fan_out).own;
            output
                .fan_out
                .map_or_else(|| taken.any(|event| own.contains(event)), |of_items| of_items == fan_out)
        })
    }

    /// Adds the edge of an output that goes outside or that no step takes.
    fn edges_out(&self, from: &str, output: &OutputRow, edges: &mut Vec<Edge>) {
        let row = self.event(output.event);
        let gathered = || {
            self.steps
                .iter()
                .flat_map(|step| &step.inputs)
                .any(|input| input.gathered.contains(&output.event))
        };
        // Steps that the event does not trigger take it all the same: clean-up, and those that read it.
        let taken = || {
            let mut inputs = self.steps.iter().flat_map(|step| &step.inputs);
            inputs.any(|input| input.events.contains(&output.event))
        };
        let to = match row.roles {
            roles if roles.is_stop() => "stop",
            roles if roles.is_request() => "outside",
            _ if row.takers.is_empty() && !gathered() && !taken() => "unread",
            _ => return,
        };
        edges.push(Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            event: Arc::clone(&row.name),
            kind: EdgeKind::Outside,
            optional: output.least == 0,
            passive: false,
            many: output.many,
            fan_out: output.fan_out.is_some(),
            timed: output.timed,
            cleans_up: false,
        });
    }
}

/// Whether a box lies in another one, through any number of boxes. Fan-outs can be recursive; boxes cannot.
fn lies_in(place: usize, other: usize, outer: &[Option<usize>]) -> bool {
    let outwards = std::iter::successors(Some(place), |place| outer[*place]);
    outwards.take(outer.len() + 1).any(|place| place == other)
}

fn blank_node(id: &str, kind: NodeKind) -> Node {
    Node {
        id: id.to_owned(),
        name: id.into(),
        kind,
        description: "".into(),
        precondition: None,
        max_executions: None,
        concurrency: None,
        at_most_once: false,
        on_end: None,
        branch: None,
        forecast: None,
        ran: None,
    }
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
