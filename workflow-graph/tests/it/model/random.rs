//! Random documents: first nodes and routes, composed of blocks that the reader accepts, then expressions over the nodes
//! that can have run before.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

use super::document::{Conflicts, Doc, Entry, Failures, Next, Node, OnFailure, Parallel, Route, Work};
use super::expression::{Cond, Expr};
use super::walk::Status;

const VARS: [&str; 2] = ["a", "b"];
const MOST_NODES: usize = 14;
const MOST_DEPTH: usize = 5;

/// A document of this seed. Not all are accepted.
pub(super) fn document(seed: u64) -> Doc {
    let mut maker = Maker { rng: Rng::with_seed(seed), nodes: BTreeMap::new() };
    let start = maker.block(None, 0, true);
    let mut doc = Doc {
        start,
        nodes: maker.nodes,
        vars: VARS.iter().map(|name| ((*name).to_owned(), 0)).collect(),
        steps: None,
        input: maker.rng.i64(0..5),
        output: None,
    };
    if maker.rng.u8(..3) == 0 {
        doc.steps = Some(maker.rng.u32(2..25));
    }
    fill(&mut doc, &mut maker.rng);
    doc
}

struct Maker {
    rng: Rng,
    nodes: BTreeMap<String, Node>,
}

type Exit<'a> = Option<&'a str>;

/// A condition that `fill` replaces.
fn later() -> Cond {
    Cond::HasError
}

fn route(to: Exit<'_>) -> Route {
    Route { to: to.map(str::to_owned), when: None, max: None }
}

impl Maker {
    fn one_in(&mut self, of: u32) -> bool {
        self.rng.u32(..of) == 0
    }

    fn some_when(&mut self, of: u32) -> Option<Cond> {
        self.one_in(of).then(later)
    }

    fn id(&mut self) -> String {
        let id = format!("n{}", self.nodes.len());
        let node = Node {
            work: Work::Value(Expr::Int(0)),
            requires: None,
            max_visits: None,
            set: None,
            on_failure: OnFailure::Fail,
            next: Next::Routes(Vec::new()),
            is_end_without_match: false,
        };
        self.nodes.insert(id.clone(), node);
        id
    }

    /// Gives a node its work and its routes. `ends`: the walk, or its branch, may end behind it.
    fn node(&mut self, id: &str, next: Next, exit: Exit<'_>, depth: usize, ends: bool) {
        let work = if self.one_in(2) {
            Work::Value(Expr::Int(0))
        } else {
            let entries = self.rng.usize(1..4);
            let script = (0..entries).map(|_| match self.rng.u8(..6) {
                0 => Entry::Fail { is_permanent: self.one_in(2) },
                _ => Entry::Data(self.rng.i64(0..6)),
            });
            let script = script.collect();
            let attempts = if self.one_in(4) { 2 } else { 1 };
            Work::Function { with: self.one_in(4).then_some(Expr::Int(0)), attempts, script }
        };
        let requires = self.one_in(7).then(|| (later(), self.one_in(2)));
        let max_visits = self.one_in(12).then(|| self.rng.u32(1..3));
        let set = self.one_in(2).then(|| (VARS[self.rng.usize(..VARS.len())].to_owned(), Expr::Int(0)));
        let on_failure = self.on_failure(id, exit, depth, ends);
        let is_end_without_match = ends && self.one_in(2);
        let old = self.nodes.get_mut(id).unwrap();
        let max_visits = old.max_visits.or(max_visits);
        *old = Node { work, requires, max_visits, set, on_failure, next, is_end_without_match };
    }

    fn on_failure(&mut self, id: &str, exit: Exit<'_>, depth: usize, ends: bool) -> OnFailure {
        let to = if exit.is_some() || ends { exit } else { return OnFailure::Fail };
        match self.rng.u8(..12) {
            0 | 1 => OnFailure::Continue,
            2 | 3 => OnFailure::Routes(vec![route(to)]),
            4 => OnFailure::Routes(vec![Route { when: Some(later()), ..route(to) }]),
            5 => {
                let again =
                    Route { max: Some(self.rng.u32(1..3)), when: self.some_when(3), ..route(Some(id)) };
                OnFailure::Routes(vec![again, route(to)])
            }
            6 if self.nodes.len() < MOST_NODES => {
                let handler = self.block(exit, depth + 2, ends);
                OnFailure::Routes(vec![route(Some(&handler))])
            }
            7 if ends => OnFailure::Routes(vec![route(None)]),
            _ => OnFailure::Fail,
        }
    }

    /// A part that leads to `exit`. Returns the node where it begins.
    fn block(&mut self, exit: Exit<'_>, depth: usize, ends: bool) -> String {
        if depth >= MOST_DEPTH || self.nodes.len() >= MOST_NODES {
            return self.single(exit, depth, ends);
        }
        match self.rng.u8(..12) {
            0 => self.single(exit, depth, ends),
            1..=3 => {
                let second = self.block(exit, depth + 1, ends);
                self.block(Some(&second), depth + 1, ends)
            }
            4 | 5 => self.choice(exit, depth, ends),
            6 | 7 => self.cycle(exit, depth, ends),
            _ => self.parallel(exit, depth, ends),
        }
    }

    fn single(&mut self, exit: Exit<'_>, depth: usize, ends: bool) -> String {
        let id = self.id();
        self.node(&id, Next::Routes(vec![route(exit)]), exit, depth, ends);
        id
    }

    fn choice(&mut self, exit: Exit<'_>, depth: usize, ends: bool) -> String {
        let id = self.id();
        let first = self.block(exit, depth + 1, ends);
        let mut routes = vec![Route { when: Some(later()), ..route(Some(&first)) }];
        if self.one_in(2) {
            let to = match (ends, self.rng.u8(..4)) {
                (true, 0) => None,
                (true, 1) => Some(self.block(None, depth + 1, true)),
                (true, 2) => Some(self.apart(depth + 1)),
                _ => Some(self.block(exit, depth + 1, ends)),
            };
            let max = self.one_in(3).then(|| self.rng.u32(1..3));
            routes.push(Route { when: Some(later()), max, ..route(to.as_deref()) });
        }
        if !self.one_in(5) {
            routes.push(route(exit));
        }
        self.node(&id, Next::Routes(routes), exit, depth, ends);
        id
    }

    /// A cycle, bounded by a route or by a node.
    fn cycle(&mut self, exit: Exit<'_>, depth: usize, ends: bool) -> String {
        let id = self.id();
        let body = if self.one_in(4) { id.clone() } else { self.block(Some(&id), depth + 1, ends) };
        let is_by_route = !self.one_in(3);
        let back = Route {
            when: if is_by_route { self.some_when(2) } else { Some(later()) },
            max: is_by_route.then(|| self.rng.u32(1..4)),
            ..route(Some(&body))
        };
        if !is_by_route {
            self.nodes.get_mut(&id).unwrap().max_visits = Some(self.rng.u32(1..4));
        }
        self.node(&id, Next::Routes(vec![back, route(exit)]), exit, depth, ends);
        body
    }

    fn parallel(&mut self, exit: Exit<'_>, depth: usize, ends: bool) -> String {
        let id = self.id();
        let join = match exit {
            Some(exit) if self.one_in(3) => exit.to_owned(),
            _ => self.single(exit, depth, ends),
        };
        let is_join_written = self.one_in(2);
        let count = self.rng.usize(if is_join_written { 1..4 } else { 2..4 });
        let targets: Vec<String> = (0..count)
            .map(|place| match place {
                1.. if is_join_written && self.one_in(4) => self.block(None, depth + 1, true),
                _ => self.block(Some(&join), depth + 1, is_join_written),
            })
            .collect();
        let next = self.fan_out(targets, Some(join), is_join_written);
        self.node(&id, next, exit, depth, ends);
        id
    }

    /// Branches that never meet.
    fn apart(&mut self, depth: usize) -> String {
        let id = self.id();
        let targets = (0..self.rng.usize(2..4)).map(|_| self.block(None, depth + 1, true)).collect();
        let next = self.fan_out(targets, None, false);
        self.node(&id, next, None, depth, true);
        id
    }

    fn fan_out(&mut self, targets: Vec<String>, join: Option<String>, is_join_written: bool) -> Next {
        let branches = targets.into_iter().map(|to| (to, self.some_when(4))).collect();
        let failures = [Failures::FailAll, Failures::ContinueOthers, Failures::WaitAll][self.rng.usize(..3)];
        let conflicts = [Conflicts::Error, Conflicts::LastWins, Conflicts::FirstWins][self.rng.usize(..3)];
        let concurrency = self.one_in(5).then_some(1);
        Next::Parallel(Parallel { branches, join, is_join_written, failures, conflicts, concurrency })
    }
}

/// The order of nodes, as the reader knows it.
struct Order {
    /// By node, those that can have run before it.
    before: BTreeMap<String, BTreeSet<String>>,
    caught_into: BTreeSet<String>,
    joins: BTreeSet<String>,
    /// Joins of nodes that may continue after their branches failed: `joined` is not decided there.
    vague: BTreeSet<String>,
}

impl Order {
    fn of(doc: &Doc) -> Self {
        let mut before: BTreeMap<String, BTreeSet<String>> =
            doc.nodes.keys().map(|id| (id.clone(), BTreeSet::new())).collect();
        let (mut edges, mut caught_into) = (Vec::new(), BTreeSet::new());
        let (mut joins, mut vague) = (BTreeSet::new(), BTreeSet::new());
        for (id, node) in &doc.nodes {
            match &node.next {
                Next::Routes(routes) => {
                    edges.extend(routes.iter().filter_map(|r| Some((id, r.to.as_ref()?))));
                }
                Next::Parallel(parallel) => {
                    edges.extend(parallel.branches.iter().map(|(to, _)| (id, to)));
                    joins.extend(parallel.join.clone());
                    if matches!(node.on_failure, OnFailure::Continue) {
                        vague.extend(parallel.join.clone());
                    }
                }
            }
            if let OnFailure::Routes(routes) = &node.on_failure {
                let caught: Vec<&String> = routes.iter().filter_map(|route| route.to.as_ref()).collect();
                edges.extend(caught.iter().map(|to| (id, *to)));
                caught_into.extend(caught.into_iter().cloned());
            }
        }
        let mut is_growing = true;
        while std::mem::take(&mut is_growing) {
            for (from, to) in &edges {
                let mut known = before[*from].clone();
                known.insert((*from).clone());
                let of = before.get_mut(*to).unwrap();
                let count = of.len();
                of.extend(known);
                is_growing |= of.len() > count;
            }
        }
        Self { before, caught_into, joins, vague }
    }
}

/// Expressions at one place.
struct Pen<'a> {
    rng: &'a mut Rng,
    /// Nodes to read.
    known: Vec<&'a str>,
    has_joined: bool,
    has_error: bool,
    /// Nothing errs: what a check that errs does, the rules do not say.
    is_safe: bool,
}

impl Pen<'_> {
    fn known(&mut self) -> Option<String> {
        self.rng.choice(&self.known).map(|id| (*id).to_owned())
    }

    fn atom(&mut self) -> Expr {
        let node = self.known();
        match (self.rng.u8(..12), node) {
            (0, _) => Expr::Input,
            (1 | 2, _) => Expr::Var(VARS[self.rng.usize(..VARS.len())].to_owned()),
            (3, _) => Expr::Visits,
            (4, _) if self.has_joined => Expr::JoinedFailed,
            (5, _) if self.has_joined => Expr::JoinedBranches,
            (6, Some(node)) if !self.is_safe => Expr::Data(node),
            (7 | 8, Some(node)) => Expr::DataOr(node, self.rng.i64(0..4)),
            (9, Some(node)) => Expr::VisitsOf(node),
            _ => Expr::Int(self.rng.i64(0..5)),
        }
    }

    fn expr(&mut self) -> Expr {
        let (a, b) = (self.atom(), self.atom());
        match self.rng.u8(..6) {
            // A template of a value that is missing is null, and the model has numbers alone.
            0 | 1 if matches!(a, Expr::Data(_)) => Expr::Add(Box::new(a), Box::new(Expr::Int(0))),
            0 | 1 => a,
            2 | 3 => Expr::Mod(Box::new(Expr::Add(Box::new(a), Box::new(b))), 13),
            4 => Expr::Mod(Box::new(Expr::Sub(Box::new(a), Box::new(b))), 11),
            _ => Expr::Mod(Box::new(Expr::Mul(Box::new(a), Box::new(b))), 7),
        }
    }

    fn cond(&mut self) -> Cond {
        let node = self.known();
        match (self.rng.u8(..10), node) {
            (0, _) => Cond::Not(Box::new(self.cond())),
            (1, _) => Cond::And(Box::new(self.cond()), Box::new(self.cond())),
            (2, _) => Cond::Or(Box::new(self.cond()), Box::new(self.cond())),
            (3, Some(node)) => {
                let status = [Status::Success, Status::Failed, Status::Skipped][self.rng.usize(..3)];
                Cond::StatusIs(node, status)
            }
            (4, Some(node)) => Cond::HasData(node),
            (5, _) if self.has_error => Cond::HasError,
            (6 | 7, _) => Cond::Equal(self.expr(), self.expr()),
            _ => Cond::Less(self.expr(), self.expr()),
        }
    }
}

fn fill(doc: &mut Doc, rng: &mut Rng) {
    let order = Order::of(doc);
    for (id, node) in &mut doc.nodes {
        let joined = order.joins.contains(id) && !order.vague.contains(id);
        let caught = order.caught_into.contains(id) && !order.joins.contains(id);
        let before: Vec<&str> = order.before[id].iter().map(String::as_str).collect();
        let mut behind = before.clone();
        behind.push(id);
        let mut pen = Pen { rng, known: before, has_joined: joined, has_error: caught, is_safe: false };
        match &mut node.work {
            Work::Value(expr) => *expr = pen.expr(),
            Work::Function { with, .. } => with.iter_mut().for_each(|with| *with = pen.expr()),
        }
        pen.is_safe = true;
        node.requires.iter_mut().for_each(|(check, _)| *check = pen.cond());
        (pen.is_safe, pen.known) = (false, behind);
        node.set.iter_mut().for_each(|(_, expr)| *expr = pen.expr());
        pen.has_error |= matches!(node.on_failure, OnFailure::Continue) && !order.joins.contains(id);
        match &mut node.next {
            Next::Routes(list) => whens(list, &mut pen),
            Next::Parallel(parallel) => {
                parallel
                    .branches
                    .iter_mut()
                    .filter_map(|(_, when)| when.as_mut())
                    .for_each(|when| *when = pen.cond());
            }
        }
        // Its failure is not one of a visit after a join.
        (pen.has_error, pen.has_joined) = (true, false);
        if let OnFailure::Routes(list) = &mut node.on_failure {
            whens(list, &mut pen);
        }
    }
    let known = doc.nodes.keys().map(String::as_str).collect();
    let mut pen = Pen { rng, known, has_joined: false, has_error: false, is_safe: true };
    let of = |expr: Expr| match expr {
        Expr::Visits | Expr::JoinedFailed | Expr::JoinedBranches => Expr::Input,
        other => other,
    };
    let has_output = pen.rng.u8(..3) > 0;
    let output: BTreeMap<String, Expr> =
        [("x", of(pen.atom())), ("y", of(pen.atom()))].map(|(key, expr)| (key.to_owned(), expr)).into();
    doc.output = has_output.then_some(output);
}

fn whens(list: &mut [Route], pen: &mut Pen<'_>) {
    list.iter_mut().filter_map(|route| route.when.as_mut()).for_each(|when| *when = pen.cond());
}
