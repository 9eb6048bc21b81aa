//! The upper bounds of forecasts: the most executions and events of a scope.
//!
//! A step runs at most once per trigger and scope, so the events it takes bound its executions. The
//! executions of the emitting steps bound these events in turn. In a circle of steps only `max_executions`
//! sets a bound.
//!
//! The bounds are a fixed point from above: at first nothing but `max_executions` is a bound, and each round lowers
//! bounds by others. The rounds go from what triggers to what is triggered, so that without a circle one is enough.
//!
//! Example: a start event occurs once, so `plan(&Goal) -> Vec<Task>` runs once. The step may emit any number
//! of tasks, so `work(&Task) -> Done` has no bound per run, and its forecast is per `Task`. With
//! `max_executions` of 3, the bound is 3.

use super::scopes::{ScopeKind, Scopes, taken};
use crate::spec::InputKind;
use crate::table::lists::{Lists, Marks};
use crate::table::{DependencyTable, EventIndex, FanOutIndex, InputRow, StepIndex, StepRow};

/// An upper bound; `None` for no bound.
pub(super) type Most = Option<u64>;

/// The bounds of all steps and events, by scope. A node is an event or a step in one scope.
///
/// ```text
///  events in the root │ events in branches │ steps in the root │ steps in branches
/// ```
pub(super) struct Counts<'a> {
    scopes: &'a Scopes<'a>,
    /// By fan-out, the node of the first event in its branches. The others follow, in the order of their indices.
    first_event: Vec<usize>,
    /// The node of the first step in the root.
    first_step: usize,
    /// By node, its bound.
    most: Vec<Most>,
    /// By step, its triggers beside events, and its triggers that come too early.
    fixed: Vec<u64>,
    unready: Vec<u64>,
}

/// How one node bounds another.
#[derive(Clone, Copy)]
enum Factor {
    /// Each event is a trigger, and each execution has this many events.
    Times(u32),
    /// An execution has any number of events.
    Any,
    /// Not by itself: only the order counts.
    Order,
}

impl<'a> Counts<'a> {
    pub(super) fn of(scopes: &'a Scopes<'a>) -> Self {
        let table = scopes.table;
        let mut first_event = Vec::with_capacity(table.fan_outs.len());
        let mut next = table.events.len();
        for fan_out in &table.fan_outs {
            first_event.push(next);
            next += fan_out.own.len();
        }
        let mut marks = Marks::of(table.events.len());
        let (mut fixed_triggers, mut unready_triggers, mut limits) = (Vec::new(), Vec::new(), Vec::new());
        for step in &table.steps {
            fixed_triggers.push(fixed(step));
            unready_triggers.push(unready(step, &mut marks));
            limits.push(step.policy.max_executions.map(u64::from));
        }
        let mut counts = Self {
            scopes,
            first_event,
            first_step: next,
            most: Vec::new(),
            fixed: fixed_triggers,
            unready: unready_triggers,
        };
        counts.most = vec![None; next + table.steps.len() + scopes.in_branches().len()];
        let nodes = counts.nodes();
        let bounds = counts.bounds(&nodes);
        counts.settle(&nodes, &bounds, &limits);
        counts
    }

    fn table(&self) -> &'a DependencyTable {
        self.scopes.table
    }

    /// The most executions of the step in this scope.
    pub(super) fn runs(&self, scope: ScopeKind, step: StepIndex) -> Most {
        self.step_node(scope, step).map_or(Some(0), |node| self.most[node])
    }

    /// The most events of the type that this scope itself can have.
    fn count(&self, scope: ScopeKind, event: EventIndex) -> Most {
        self.event_node(scope, event).map_or(Some(0), |node| self.most[node])
    }

    /// By step, the fan-outs in whose branches it can run, with its bound there.
    pub(super) fn in_branches(&self) -> Lists<(FanOutIndex, Most)> {
        let steps = self.scopes.in_branches();
        let first = self.first_step + self.table().steps.len();
        let pairs = (0..self.table().fan_outs.len()).flat_map(|fan_out| {
            let nodes = steps.range(fan_out).map(move |place| first + place);
            let pairs = steps.row(fan_out).iter().zip(nodes);
            pairs.map(move |(step, node)| (step.get(), (FanOutIndex::at(fan_out), self.most[node])))
        });
        Lists::of(self.table().steps.len(), pairs.filter(|(_, (_, most))| *most != Some(0)))
    }

    fn event_node(&self, scope: ScopeKind, event: EventIndex) -> Option<usize> {
        match scope {
            None => self.scopes.has(None, event).then_some(event.get()),
            Some(fan_out) => {
                let place = self.table().fan_out(fan_out).own.binary_search(&event).ok()?;
                Some(self.first_event[fan_out.get()] + place)
            }
        }
    }

    fn step_node(&self, scope: ScopeKind, step: StepIndex) -> Option<usize> {
        match scope {
            None => self.scopes.runs_in_root(step).then_some(self.first_step + step.get()),
            Some(fan_out) => {
                let steps = self.scopes.in_branches();
                let place = steps.row(fan_out.get()).binary_search(&step).ok()?;
                let first = self.first_step + self.table().steps.len();
                Some(first + steps.range(fan_out.get()).start + place)
            }
        }
    }

    /// The nodes by number, without those that scopes cannot have.
    fn nodes(&self) -> Vec<Option<Node>> {
        let (table, scopes) = (self.table(), self.scopes);
        let fan_outs = || (0..table.fan_outs.len()).map(FanOutIndex::at);
        let of_root = (0..table.events.len()).map(|event| (None, EventIndex::at(event)));
        let own = fan_outs().flat_map(|of| table.fan_out(of).own.iter().map(move |event| (Some(of), *event)));
        let events = of_root
            .chain(own)
            .filter_map(|(scope, event)| Some((self.event_node(scope, event)?, Node::Event(scope, event))));
        let in_root = (0..table.steps.len()).map(|step| (None, StepIndex::at(step)));
        let in_branches = fan_outs().flat_map(|of| {
            let steps = scopes.in_branches().row(of.get()).iter();
            steps.map(move |step| (Some(of), *step))
        });
        let steps = in_root
            .chain(in_branches)
            .filter_map(|(scope, step)| Some((self.step_node(scope, step)?, Node::Step(scope, step))));
        let mut nodes = vec![None; self.most.len()];
        for (number, node) in events.chain(steps) {
            nodes[number] = Some(node);
        }
        nodes
    }

    /// By node, the nodes that bound it.
    fn bounds(&self, nodes: &[Option<Node>]) -> Lists<(usize, Factor)> {
        let mut bounds = Vec::new();
        for (node, of) in nodes.iter().enumerate() {
            match *of {
                Some(Node::Event(scope, request)) => {
                    let reply = self.table().event(request).reply;
                    let reply = reply.and_then(|reply| self.event_node(scope, reply));
                    bounds.extend(reply.map(|reply| (reply, (node, Factor::Times(1)))));
                }
                Some(Node::Step(scope, step)) => self.bounds_of_step(node, scope, step, &mut bounds),
                None => {}
            }
        }
        Lists::of(self.most.len(), bounds.iter().copied())
    }

    /// Adds the bounds of a step by events, and those of events by the step.
    fn bounds_of_step(
        &self,
        node: usize,
        scope: ScopeKind,
        step: StepIndex,
        bounds: &mut Vec<(usize, (usize, Factor))>,
    ) {
        let row = self.table().step(step);
        let emitted = self.emitted(row).filter_map(|(event, factor)| {
            let event = self.event_node(scope, event)?;
            Some((event, (node, factor)))
        });
        bounds.extend(emitted);
        for event in retriggering(row) {
            let seen = self.scopes.seen_from(scope).iter();
            let seen = seen.filter_map(|scope| self.event_node(*scope, event));
            bounds.extend(seen.map(|by| (node, (by, Factor::Times(1)))));
        }
        if scope.is_none() {
            let filling = fixed_lists(row).flat_map(|(input, _)| &input.events);
            let filling = filling.filter_map(|event| self.event_node(None, *event));
            bounds.extend(filling.map(|by| (node, (by, Factor::Order))));
        }
    }

    /// The events that the step adds to its own scope, failures and ends of fan-outs included.
    fn emitted(&self, row: &'a StepRow) -> impl Iterator<Item = (EventIndex, Factor)> + use<'a> {
        let table = self.table();
        let outputs = row.outputs.iter().map(|output| {
            let emitted = output.fan_out.map_or(output.event, |of| table.fan_out(of).gathered);
            (emitted, if output.many { Factor::Any } else { Factor::Times(1) })
        });
        // S60: an execution fails once, or each fan-out that it opened does.
        let fan_outs = row.outputs.iter().filter(|output| output.fan_out.is_some()).count();
        let fan_outs = u32::try_from(fan_outs.max(1)).unwrap_or(u32::MAX);
        let failed = row.failed.map(|failed| (failed, Factor::Times(fan_outs)));
        outputs.chain(failed)
    }

    /// Lowers the bounds until none becomes lower, from the limits of steps.
    fn settle(&mut self, nodes: &[Option<Node>], bounds: &Lists<(usize, Factor)>, limits: &[Most]) {
        for (node, of) in nodes.iter().enumerate() {
            if let Some(Node::Step(_, step)) = of {
                self.most[node] = limits[step.get()];
            }
        }
        let (order, has_circle) = ordered(bounds, nodes.len());
        // A circle can lower its bounds by one in each round, so the rounds have a bound too.
        for _ in 0..=nodes.len() {
            let mut is_lower = false;
            for node in &order {
                let most = match nodes[*node] {
                    Some(Node::Event(scope, event)) => self.most_events(scope, event, bounds.row(*node)),
                    Some(Node::Step(scope, step)) => self.most_executions(scope, step, bounds.row(*node)),
                    None => continue,
                };
                let most = lower(most, self.most[*node]);
                is_lower |= most != self.most[*node];
                self.most[*node] = most;
            }
            if !has_circle || !is_lower {
                return;
            }
        }
    }

    /// The most events of a scope itself, by those who emit them.
    fn most_events(&self, scope: ScopeKind, event: EventIndex, bounds: &[(usize, Factor)]) -> Most {
        let roles = self.table().event(event).roles;
        let is_given = match scope {
            None if roles.is_external() => return None,
            None => roles.is_start(),
            Some(fan_out) => self.table().fan_out(fan_out).item == event,
        };
        let bounded = bounds.iter().map(|(node, factor)| {
            let by = self.most[*node];
            match factor {
                Factor::Times(times) => by.and_then(|by| by.checked_mul(u64::from(*times))),
                Factor::Any => by.filter(|by| *by == 0),
                Factor::Order => Some(0),
            }
        });
        total(u64::from(is_given), bounded)
    }

    /// The most evaluations that lead to an execution: one per event and one per fixed list, without those at
    /// which a required input is still missing.
    fn most_executions(&self, scope: ScopeKind, step: StepIndex, bounds: &[(usize, Factor)]) -> Most {
        let has_fixed = self.fixed[step.get()] > 0;
        if scope.is_none() && has_fixed && self.waits_for_ever(self.table().step(step)) {
            return Some(0);
        }
        let triggers = bounds.iter().filter(|(_, factor)| matches!(factor, Factor::Times(_)));
        let triggers = total(self.fixed[step.get()], triggers.map(|(node, _)| self.most[*node]));
        triggers.map(|triggers| triggers.saturating_sub(self.unready[step.get()]))
    }

    /// Whether the step requires a fixed list longer than the root's number of events. Branches are not
    /// examined: a branch can lie in others of the same fan-out and see the events of all of them.
    fn waits_for_ever(&self, step: &StepRow) -> bool {
        fixed_lists(step).any(|(input, least)| {
            let counts = input.events.iter().map(|event| self.count(None, *event));
            total(0, counts).is_some_and(|most| most < u64::from(least))
        })
    }

    /// The one unbounded event type that the step, in the root, runs once per event of; `None` if there is no
    /// such single type.
    pub(super) fn only_unbounded(&self, step: StepIndex) -> Option<EventIndex> {
        let row = self.table().step(step);
        let (mut bounded, mut unbounded) = (self.fixed[step.get()], None);
        for event in retriggering(row) {
            match (self.count(None, event), unbounded) {
                (Some(count), _) => bounded = bounded.saturating_add(count),
                (None, None) => unbounded = Some(event),
                (None, Some(_)) => return None,
            }
        }
        let is_all = |event: &EventIndex| {
            bounded <= self.unready[step.get()] && self.table().event(*event).gathers.is_none()
        };
        unbounded.filter(is_all)
    }
}

/// An event or a step in one scope.
#[derive(Clone, Copy)]
enum Node {
    Event(ScopeKind, EventIndex),
    Step(ScopeKind, StepIndex),
}

/// The nodes, each behind those that bound it as far as there is no circle, and whether there is one.
fn ordered(bounds: &Lists<(usize, Factor)>, nodes: usize) -> (Vec<usize>, bool) {
    #[derive(Clone, Copy, PartialEq)]
    enum Walk {
        New,
        On,
        Done,
    }
    let (mut order, mut walk, mut has_circle) = (Vec::with_capacity(nodes), vec![Walk::New; nodes], false);
    // The way to the current node, with the number of its bounds that were walked. A chain may be longer than a stack.
    let mut way: Vec<(usize, usize)> = Vec::new();
    for first in 0..nodes {
        if walk[first] == Walk::New {
            walk[first] = Walk::On;
            way.push((first, 0));
        }
        while let Some((node, walked)) = way.last_mut() {
            let Some((next, _)) = bounds.row(*node).get(*walked) else {
                walk[*node] = Walk::Done;
                order.push(*node);
                way.pop();
                continue;
            };
            *walked += 1;
            has_circle |= walk[*next] == Walk::On;
            if walk[*next] == Walk::New {
                walk[*next] = Walk::On;
                way.push((*next, 0));
            }
        }
    }
    (order, has_circle)
}

/// The required fixed lists of the step, with their lengths.
fn fixed_lists(step: &StepRow) -> impl Iterator<Item = (&InputRow, u32)> {
    let required = taken(step).filter(|input| !input.optional);
    required.filter_map(|input| match input.kind {
        InputKind::Fixed(least) => Some((input, least)),
        _ => None,
    })
}

/// The executions that fixed lists trigger: one when they are complete, and for an optional list one before.
fn fixed(step: &StepRow) -> u64 {
    let fixed = taken(step).filter(|input| matches!(input.kind, InputKind::Fixed(_)));
    fixed.map(|input| 1 + u64::from(input.optional)).sum()
}

/// The event types of which each event can run the step again.
fn retriggering(step: &StepRow) -> Vec<EventIndex> {
    let inputs = taken(step).filter(|input| !matches!(input.kind, InputKind::Fixed(_)));
    let mut events: Vec<EventIndex> = inputs.flat_map(|input| input.events.iter().copied()).collect();
    events.sort_unstable();
    events.dedup();
    events
}

/// The number of evaluations that find the step unready. Before its first run every other required input has
/// had an event. These events differ where the inputs have no type in common.
fn unready(step: &StepRow, seen: &mut Marks) -> u64 {
    seen.clear();
    let mut distinct = 0_u64;
    for input in taken(step).filter(|input| !input.optional) {
        if input.events.iter().all(|event| !seen.has(event.get())) {
            seen.extend(input.events.iter().map(|event| event.get()));
            distinct += 1;
        }
    }
    distinct.saturating_sub(1)
}

/// The sum of bounds, which is no bound if one of them is none.
fn total(first: u64, mut bounds: impl Iterator<Item = Most>) -> Most {
    bounds.try_fold(first, |total, most| total.checked_add(most?))
}

fn lower(one: Most, other: Most) -> Most {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
