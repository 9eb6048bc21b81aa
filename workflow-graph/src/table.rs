//! Compiles a graph to the table of a run-time workflow: events, steps, and their inputs. The table is a function of
//! the graph. The walk runs its steps.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use workflow_core::signature::Roles;
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OutputDef, StepDef, StepPolicy, TableBuilder, TableError,
};

use crate::check::Layout;
use crate::document::model::{Failures, Graph, Next, Node, Reads, Work};
use crate::part::Part;
use crate::state::names;

mod events;
mod hive;
mod plan;
mod retry;

pub(crate) use retry::attempts;
mod ways;

pub(crate) use plan::{Inputs, Plan};
pub(crate) use ways::{branches, counts, target};

use plan::Draft;
use ways::{asks_model, leads_to, publishes_failed, shows_results};

/// Compiles `graph`, which has passed its checks.
///
/// # Errors
/// A defect of this crate: graphs that passed their checks have tables that the scheduler can work with.
pub(crate) fn compile(graph: &Graph, layout: &Layout) -> Result<Compiled, TableError> {
    let table = DependencyTable::builder(graph.name.value.clone());
    let table = table.description(graph.description.clone().unwrap_or_default());
    let token = |from: &Node, to: usize| names::token(&from.id.value, &graph.nodes[to].id.value);
    let of_node = |node| leads_to(graph, node).into_iter().map(|to| (to, token(node, to))).collect();
    let mut compiler = Compiler {
        graph,
        layout,
        table,
        plans: Vec::new(),
        known: HashSet::new(),
        into: Vec::new(),
        tokens: graph.nodes.iter().map(of_node).collect(),
        input: names::INPUT.into(),
        output: names::OUTPUT.into(),
    };
    compiler.into = compiler.triggers();
    compiler.events();
    for node in 0..graph.nodes.len() {
        compiler.node(node);
    }
    let table = compiler.table.build_unchecked()?;
    Ok(Compiled { table, plans: compiler.plans, tokens: compiler.tokens })
}

/// The table of a graph, and what its walk needs beside it.
pub(crate) struct Compiled {
    pub(crate) table: DependencyTable,
    /// By step.
    pub(crate) plans: Vec<Plan>,
    pub(crate) tokens: Tokens,
}

/// The tokens with which a visit of a node can end, by the places of the node and of that to which it leads.
pub(crate) type Tokens = Vec<Vec<(usize, Arc<str>)>>;

struct Compiler<'a> {
    graph: &'a Graph,
    layout: &'a Layout,
    table: TableBuilder,
    plans: Vec<Plan>,
    /// Tokens that have an event already.
    known: HashSet<Arc<str>>,
    /// The events that begin a visit, by node.
    into: Vec<Vec<Arc<str>>>,
    tokens: Tokens,
    /// Names that nearly every step shares.
    input: Arc<str>,
    output: Arc<str>,
}

impl Compiler<'_> {
    fn id(&self, node: usize) -> &Arc<str> {
        &self.graph.nodes[node].id.value
    }

    fn part(&self, node: usize, part: &str) -> Arc<str> {
        names::of(self.id(node), part)
    }

    fn opening(&self, from: usize, to: usize) -> Arc<str> {
        names::opening(self.id(from), self.id(to))
    }

    fn has_join(&self, node: usize) -> bool {
        matches!(self.graph.nodes[node].next, Next::Parallel(_))
    }

    /// By node, the events that begin a visit of it.
    fn triggers(&self) -> Vec<Vec<Arc<str>>> {
        let mut into = vec![Vec::new(); self.graph.nodes.len()];
        if let Some(start) = self.graph.start() {
            into[start].push(self.input.clone());
        }
        for (from, node) in self.graph.nodes.iter().enumerate() {
            for (to, token) in &self.tokens[from] {
                if !self.layout.arrives(from, *to) {
                    into[*to].push(token.clone());
                }
            }
            for to in branches(self.graph, node) {
                if self.layout.opener(self.layout.scope(to)) == Some(from) {
                    into[to].push(self.opening(from, to));
                }
            }
            if let Some(join) = self.layout.join(from).filter(|join| !self.layout.arrives(from, *join)) {
                into[join].push(names::of(&node.id.value, "joined"));
            }
        }
        into
    }

    fn add(&mut self, event: EventDef) {
        // A builder moves itself.
        let table = std::mem::replace(&mut self.table, DependencyTable::builder(Arc::default()));
        self.table = table.event(event);
    }

    fn control(&mut self, name: Arc<str>) {
        self.add(EventDef::new(name, Roles::NONE));
    }

    fn controls<const N: usize>(&mut self, names: [Arc<str>; N]) {
        for name in names {
            self.control(name);
        }
    }

    fn node(&mut self, place: usize) {
        let node = &self.graph.nodes[place];
        let is_human = matches!(node.work, Work::Human(_));
        let is_each = node.for_each.is_some();
        let into = self.into[place].clone();
        let visit = self.begin(place, Part::Visit, InputDef::one_of(into));
        let visit = self.sees(visit, place);
        let visit = match (is_each, is_human) {
            (true, _) => visit.output(OutputDef::optional_fan_out(self.part(place, "each-item"))),
            (false, true) => self.asks(visit, place),
            (false, false) => self.works(visit, place),
        };
        let visit = if self.pauses(place) { self.asks(visit, place) } else { visit };
        let visit = self.leaves(visit, place);
        self.push(visit);
        if is_each {
            let each = self.begin(place, Part::Each, InputDef::one(self.part(place, "each-item")));
            let each = self.sees(each, place);
            let each = if is_human { self.asks(each, place) } else { self.works(each, place) };
            self.push(each.output(OutputDef::optional(self.part(place, "done"))));
            let gathered = InputDef::gather_of(self.part(place, "each-item"), [self.part(place, "done")]);
            let collect = self.begin(place, Part::Collect, gathered);
            let collect = self.sees(collect, place);
            let collect = self.leaves(collect, place);
            self.push(collect);
        }
        if let Work::Human(human) = &node.work {
            let reply = self.begin(place, Part::Reply, InputDef::reply(self.part(place, "answer")));
            let mut reply = self.sees(reply, place);
            reply = if is_each {
                reply.inputs.item = Some(reply.passive(InputDef::one(self.part(place, "each-item"))));
                reply.output(OutputDef::optional(self.part(place, "done")))
            } else {
                self.leaves(reply, place)
            };
            self.push(reply);
            if human.expires.is_some() {
                let expired = self.begin(place, Part::Expired, InputDef::one(self.part(place, "expired")));
                self.push(expired);
            }
        }
        self.pause_reply(place);
        if asks_model(node) {
            let route = self.begin(place, Part::Route, InputDef::one(self.part(place, "choose")));
            let route = self.sees(route, place);
            let route = self.leaves(route, place);
            self.push(route);
        }
        if self.has_join(place) {
            self.parallel(place);
        }
        if node.on_failure.is_some() {
            let caught = self.begin(place, Part::Caught, InputDef::one(names::FAILURE));
            let caught = self.sees(caught, place);
            let mut caught = self.leaves(caught, place);
            if self.leaves_counts(place, Part::Caught) {
                for inner in self.layout.below(place) {
                    caught = caught.output(OutputDef::optional(self.part(*inner, "count")));
                }
            }
            caught.step = caught.step.catches(self.fails(place));
            self.push(caught);
        }
    }

    /// Whether a part of a node goes on behind branches that failed, and leaves the counts of their visits.
    fn leaves_counts(&self, place: usize, part: Part) -> bool {
        let node = &self.graph.nodes[place];
        let goes_on =
            matches!(&node.next, Next::Parallel(parallel) if parallel.failures != Failures::FailAll);
        match part {
            Part::Join => goes_on,
            Part::Caught => self.has_join(place),
            _ => false,
        }
    }

    /// The steps whose failures are failures of the visit.
    fn fails(&self, place: usize) -> Vec<Arc<str>> {
        let node = &self.graph.nodes[place];
        let mut steps = vec![node.id.value.clone()];
        if node.for_each.is_some() {
            steps.push(self.part(place, "collect"));
        } else if let Work::Human(human) = &node.work {
            steps.push(self.part(place, "reply"));
            steps.extend(human.expires.map(|_| self.part(place, "expired")));
        }
        if let Next::Decide(_) = node.next {
            steps.push(self.part(place, "route"));
        }
        if self.pauses(place) {
            steps.push(self.part(place, "reply"));
        }
        if self.has_join(place) {
            steps.push(self.part(place, "join"));
            // In Hive documents it may be the one that opens the branches.
            if asks_model(node) {
                steps.push(self.part(place, "route"));
            }
        }
        steps
    }

    fn parallel(&mut self, place: usize) {
        let node = &self.graph.nodes[place];
        let branch = self.begin(place, Part::Branch, InputDef::one(self.part(place, "item")));
        let openings = branches(self.graph, node).into_iter().map(|to| self.opening(place, to));
        let branch = openings.fold(branch, |branch, token| branch.output(OutputDef::optional(token)));
        self.push(branch);

        let within = self.layout.within(place);
        let all = self.layout.below(place);
        let join = self.layout.join(place);
        let mut published: Vec<Arc<str>> = Vec::new();
        let mut vars = BTreeSet::new();
        for inner in all {
            published.extend(self.layout.is_counted(self.graph, *inner).then(|| self.part(*inner, "count")));
            let inner = &self.graph.nodes[*inner];
            published.push(inner.id.value.clone());
            published.extend(counts(inner).then(|| names::of(&inner.id.value, "taken")));
            vars.extend(inner.set.iter().map(|(name, _)| names::variable(&name.value)));
        }
        published.extend(vars);
        let mut gathered = published.clone();
        for inner in within.iter().copied() {
            let id = &self.graph.nodes[inner].id.value;
            if self.has_join(inner) {
                gathered.extend([names::of(id, "joined"), names::of(id, "ended")]);
            }
            if let Some(join) = join {
                let tokens = self.tokens[inner].iter().filter(|(to, _)| *to == join);
                gathered.extend(tokens.map(|(_, token)| token.clone()));
            }
        }
        if let Some(join) = join.filter(|join| branches(self.graph, node).contains(join)) {
            gathered.push(self.opening(place, join));
        }
        self.gathers_writes(place, &mut gathered);
        let gather = self.begin(place, Part::Join, InputDef::gather_of(self.part(place, "item"), gathered));
        let mut gather = self.sees(gather, place);
        for event in published {
            gather = gather.output(OutputDef::optional(event));
        }
        for end in ["joined", "ended"] {
            gather = gather.output(OutputDef::optional(self.part(place, end)));
        }
        if self.layout.is_root(place) {
            gather = gather.output(OutputDef::optional(self.output.clone()));
        }
        self.push(gather);
    }

    fn begin(&self, place: usize, part: Part, trigger: InputDef) -> Draft {
        let id = self.id(place);
        let name = part.step(id);
        // Cycles are bounded by the graph itself, and no step is tried again but those that work.
        let step = StepDef::new(name).policy(StepPolicy::DEFAULT.loops()).retry(retry::none()).input(trigger);
        Draft { step, inputs: Inputs::default(), next: 1, plan: (place, part) }
    }

    /// Adds what the expressions of the node, and its visits, read.
    fn sees(&self, mut draft: Draft, place: usize) -> Draft {
        let node = &self.graph.nodes[place];
        if draft.plan.1 != Part::Visit {
            draft.inputs.token = draft.passive(InputDef::one_of(self.into[place].clone()));
        }
        draft.inputs.start = Some(draft.passive(InputDef::one(self.input.clone())));
        draft.inputs.own = Some(draft.passive(InputDef::one(node.id.value.clone())));
        if counts(node) {
            draft.inputs.taken = Some(draft.passive(InputDef::one(self.part(place, "taken"))));
        }
        let mut needs = self.layout.needs(place);
        // A model that decides sees what has been done so far, as agents do.
        needs.all |= matches!(node.reads, Reads::All) && shows_results(node, draft.plan.1);
        draft.inputs.named = needs.nodes.iter().copied().filter(|read| *read != place).collect();
        let counts = self.leaves_counts(place, draft.plan.1);
        if counts || draft.plan.1 == Part::Join && publishes_failed(node) {
            // The count of visits of a node that failed begins outside of its branch.
            needs.nodes.extend(self.layout.below(place));
        }
        if self.graph.hive().is_some() {
            draft.inputs.all = Some(draft.passive(InputDef::list(self.writers())));
        } else if needs.all {
            let results = self.graph.nodes.iter().map(|node| node.id.value.clone());
            draft.inputs.all = Some(draft.passive(InputDef::list(results)));
        } else {
            for read in needs.nodes.iter().filter(|read| **read != place) {
                let at = draft.passive(InputDef::one(self.id(*read).clone()));
                draft.inputs.results.push((*read, at));
            }
        }
        let read: BTreeSet<usize> = if needs.all {
            (0..self.graph.nodes.len()).collect()
        } else {
            needs.nodes.iter().copied().chain([place]).collect()
        };
        for read in read.into_iter().filter(|read| self.layout.is_counted(self.graph, *read)) {
            let at = draft.passive(InputDef::one(self.part(read, "count")));
            draft.inputs.counts.push((read, at));
        }
        // A value that the node sets may be read by what it does afterwards.
        for var in needs.vars {
            let at = draft.passive(InputDef::one(names::variable(&self.graph.vars[var].name.value)));
            draft.inputs.vars.push((var, at));
        }
        draft
    }

    /// Lets the step do the work of the node, with its attempts.
    fn works(&self, mut draft: Draft, place: usize) -> Draft {
        let node = &self.graph.nodes[place];
        draft.step = draft.step.retry(retry::of(self.graph, node));
        let mut policy = StepPolicy::DEFAULT.loops();
        if let Some(timeout) = node.timeout.or(self.graph.defaults.timeout) {
            policy = policy.timeout(timeout);
        }
        draft.step = draft.step.policy(policy);
        if matches!(node.work, Work::Function(_) | Work::Tool(_) | Work::Agent(_) | Work::Command(_)) {
            draft.step = draft.step.uses_context();
        }
        draft
    }

    fn asks(&self, draft: Draft, place: usize) -> Draft {
        let draft = draft.output(OutputDef::optional(self.part(place, "ask")));
        match &self.graph.nodes[place].work {
            Work::Human(human) if human.expires.is_some() => {
                draft.output(OutputDef::timer(self.part(place, "expired")))
            }
            _ => draft,
        }
    }

    /// Adds what a visit leaves at its end.
    fn leaves(&self, mut draft: Draft, place: usize) -> Draft {
        let node = &self.graph.nodes[place];
        let (decides, opens) = match draft.plan.1 {
            Part::Route => (false, node.hive().is_some() && self.has_join(place)),
            _ => (asks_model(node), self.has_join(place)),
        };
        draft = draft.output(OutputDef::optional(node.id.value.clone()));
        let mut vars = BTreeSet::new();
        for (name, _) in &node.set {
            vars.insert(names::variable(&name.value));
        }
        for var in vars {
            draft = draft.output(OutputDef::optional(var));
        }
        if counts(node) {
            draft = draft.output(OutputDef::optional(self.part(place, "taken")));
        }
        for (_, token) in &self.tokens[place] {
            draft = draft.output(OutputDef::optional(token.clone()));
        }
        if decides {
            draft = draft.output(OutputDef::optional(self.part(place, "choose")));
        }
        if opens {
            draft = draft.output(OutputDef::optional_fan_out(self.part(place, "item")));
            // Where the branches failed, `continue` goes on at the join.
            draft = draft.output(OutputDef::optional(self.part(place, "joined")));
        }
        draft.output(OutputDef::optional(self.output.clone()))
    }

    fn push(&mut self, draft: Draft) {
        let table = std::mem::replace(&mut self.table, DependencyTable::builder(Arc::default()));
        self.table = table.step(draft.step);
        let (node, part) = draft.plan;
        self.plans.push(Plan { node, part, inputs: draft.inputs });
    }
}
