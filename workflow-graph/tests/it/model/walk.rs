//! The walk by the rules (G10–G26), one visit after the other. Where branches race, it follows each possible order, so
//! a document has several expected results.
//!
//! Decisions where the rules are silent are the constants and the comments that begin with "Decision".

#![expect(clippy::option_option, clippy::result_large_err, reason = "the model stays short")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::{Value, json};

use super::document::{Conflicts, Doc, Entry, Failures, Next, Node, OnFailure, Parallel, Route, Work};

/// More orders than this are not followed.
const MOST_ORDERS: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Status {
    Success,
    Failed,
    Skipped,
}

impl Status {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// A node, the status of a visit, and its number.
pub(super) type Seen = (String, Status, u32);

/// How a run ends in one of the possible orders.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expected {
    /// `completed`, `no_match`, `step_limit` or `failed`.
    pub(super) status: &'static str,
    /// Where the walk ended; if it failed, the node that failed.
    pub(super) at: String,
    /// Absent without success.
    pub(super) output: Option<Value>,
    pub(super) quality: &'static str,
    /// Visits that there are.
    pub(super) visits: Vec<Seen>,
    /// Visits that there may be: of branches that were dropped.
    pub(super) optional: Vec<Seen>,
    /// Nodes outside of branches, in order.
    pub(super) path: Vec<String>,
    /// Absent where the run ends within a branch, or fails.
    pub(super) results: Option<BTreeMap<String, (Status, Value)>>,
    pub(super) vars: BTreeMap<String, i64>,
    pub(super) steps: u32,
}

/// The sight of a scope.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) vars: BTreeMap<String, i64>,
    results: BTreeMap<String, NodeState>,
    /// How often the routes with `max` were taken: by node, whether it is one of `on_failure`, and place.
    taken: BTreeMap<(String, bool, usize), u32>,
    written: BTreeSet<String>,
    steps: u32,
    is_degraded: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct NodeState {
    /// Absent during the first visit.
    status: Option<Status>,
    data: Option<i64>,
    visits: u32,
    /// Entries of the script that were played.
    runs: usize,
}

impl State {
    pub(super) fn data(&self, node: &str) -> Option<i64> {
        self.results.get(node)?.data
    }

    pub(super) fn status(&self, node: &str) -> Option<Status> {
        self.results.get(node)?.status
    }

    /// G11
    pub(super) fn visits(&self, node: &str) -> u32 {
        self.results.get(node).map_or(0, |result| result.visits)
    }

    /// Counts visits that failed in branches, without results.
    fn count(&mut self, failed: &[(String, usize)]) {
        for (node, runs) in failed {
            let none = NodeState { status: None, data: None, visits: 0, runs: 0 };
            let result = self.results.entry(node.clone()).or_insert(none);
            result.visits += 1;
            result.runs += runs;
            self.steps += 1;
        }
    }

    fn fail(&mut self, node: &str) {
        if let Some(result) = self.results.get_mut(node) {
            (result.status, result.data) = (Some(Status::Failed), None);
        }
    }
}

/// The sight of an expression.
#[derive(Debug)]
pub(super) struct Sight<'a> {
    pub(super) input: i64,
    pub(super) node: &'a str,
    pub(super) state: &'a State,
    pub(super) has_error: bool,
    /// Branches that failed, and all.
    pub(super) joined: Option<(i64, i64)>,
}

/// How a visit came about: behind a failure, behind branches of which so many failed of so many.
#[derive(Debug, Clone, Copy, Default)]
struct Token {
    has_error: bool,
    joined: Option<(i64, i64)>,
}

const PLAIN: Token = Token { has_error: false, joined: None };
const ERROR: Token = Token { has_error: true, joined: None };

/// Where a visit leads.
enum Go {
    To(String, Token),
    End,
    NoMatch,
    Branches(Vec<String>, Token),
}

/// The end of a branch, or of the whole.
struct End {
    at: String,
    state: State,
    how: How,
}

enum How {
    Arrived,
    Ended,
    NoMatch,
    /// The innermost node that failed, what the failing node had left before, and the visits that failed: from the innermost
    /// outwards to this one, each with the entries of the script that it played.
    Failed(String, Option<NodeState>, Vec<(String, usize)>),
    StepLimit {
        is_in_branch: bool,
    },
}

/// All ends that the document may have; nothing if they are too many.
pub(super) fn expected(doc: &Doc) -> Option<Vec<Expected>> {
    let mut found: Vec<Expected> = Vec::new();
    let mut choices: Vec<(usize, usize)> = Vec::new();
    for _ in 0..MOST_ORDERS {
        let mut walk = Walk { doc, choices, chosen: 0, seen: Vec::new(), path: Vec::new(), depth: 0 };
        let end = walk.run();
        if !found.contains(&end) {
            found.push(end);
        }
        choices = walk.choices;
        while choices.pop_if(|(choice, width)| *choice + 1 == *width).is_some() {}
        match choices.last_mut() {
            Some((choice, _)) => *choice += 1,
            None => return Some(found),
        }
    }
    None
}

struct Walk<'a> {
    doc: &'a Doc,
    /// Each with how many there were.
    choices: Vec<(usize, usize)>,
    chosen: usize,
    /// Visits, and whether each is optional.
    seen: Vec<(Seen, bool)>,
    path: Vec<String>,
    depth: usize,
}

impl Walk<'_> {
    fn choose(&mut self, width: usize) -> usize {
        if width < 2 {
            return 0;
        }
        if self.chosen == self.choices.len() {
            self.choices.push((0, width));
        }
        self.chosen += 1;
        self.choices[self.chosen - 1].0
    }

    fn run(&mut self) -> Expected {
        let doc = self.doc;
        let state = State { vars: doc.vars.clone(), ..State::default() };
        let End { at, state, how } = self.walk(state, (doc.start.clone(), PLAIN), None);
        // G25, G26
        let (status, at) = match &how {
            How::Ended | How::Arrived => ("completed", at),
            How::NoMatch => ("no_match", at),
            How::StepLimit { .. } => ("step_limit", at),
            How::Failed(cause, ..) => ("failed", cause.clone()),
        };
        let is_success = matches!(status, "completed" | "no_match");
        let quality = match (is_success, state.is_degraded) {
            (false, _) => "failed",
            (true, true) => "degraded",
            (true, false) => "clean",
        };
        let data = |data: Option<i64>| data.map_or(Value::Null, |v| json!({"v": v}));
        let output = is_success.then(|| match &doc.output {
            Some(output) => {
                let sight =
                    Sight { input: doc.input, node: "", state: &state, has_error: false, joined: None };
                output.iter().map(|(key, expr)| (key.clone(), json!(expr.value(&sight)))).collect()
            }
            None => data(state.data(&at)),
        });
        let has_results = is_success || matches!(how, How::StepLimit { is_in_branch: false });
        let results = state
            .results
            .iter()
            .filter_map(|(id, result)| Some((id.clone(), (result.status?, data(result.data)))));
        let results = has_results.then(|| results.collect());
        let all = std::mem::take(&mut self.seen);
        let of = |optional| {
            let mut seen: Vec<Seen> =
                all.iter().filter(|(_, is)| *is == optional).map(|(seen, _)| seen.clone()).collect();
            seen.sort();
            seen
        };
        let (visits, optional, path) = (of(false), of(true), std::mem::take(&mut self.path));
        let State { vars, steps, .. } = state;
        Expected { status, at, output, quality, visits, optional, path, results, vars, steps }
    }

    /// Visits nodes from `at` until the walk ends, or arrives at the join.
    fn walk(&mut self, mut state: State, (mut at, mut token): (String, Token), join: Option<&str>) -> End {
        loop {
            if join == Some(&*at) {
                return End { at, state, how: How::Arrived };
            }
            // G23
            if state.steps >= self.doc.steps.unwrap_or(200) {
                let is_in_branch = self.depth > 0;
                return End { at, state, how: How::StepLimit { is_in_branch } };
            }
            state.steps += 1;
            if self.depth == 0 {
                self.path.push(at.clone());
            }
            let node = &self.doc.nodes[&at];
            let before = state.clone();
            let place = self.seen.len();
            let visit = before.visits(&at) + 1;
            let mut kept = before.results.get(&at).cloned();
            let mut is_first = true;
            let mut failing = Vec::new();
            let mut go = if let Some((status, go)) = self.visit(&at, node, &mut state, token) {
                self.seen.push(((at.clone(), status, visit), false));
                Ok(go)
            } else {
                // It leaves nothing but its failure: no variable, no route (G10, G19).
                // Decision: an attempt that fails before its work has used up an entry of the script.
                let runs = state.results.get(&at).map_or(0, |result| result.runs);
                let played = before.results.get(&at).map_or(0, |result| result.runs);
                let runs = runs.max(played + 1);
                failing.push((at.clone(), runs - played));
                state = before;
                let failed = NodeState { status: Some(Status::Failed), data: None, visits: visit, runs };
                state.results.insert(at.clone(), failed);
                self.seen.push(((at.clone(), Status::Failed, visit), false));
                is_first = false;
                self.caught(&at, node, (&mut state, token), None).ok_or(at.clone())
            };
            if let (Ok(Go::Branches(targets, by)), Next::Parallel(parallel)) = (&go, &node.next) {
                kept = state.results.get(&at).cloned();
                go = match self.branches(&at, parallel, (targets, *by), &mut state) {
                    Ok(go) => Ok(go),
                    Err(Stop::Run(end)) => return end,
                    Err(Stop::Failed(cause, below)) => {
                        // Decision: the visit of a parallel node is the failed one then, if its document goes on.
                        let is_caught = is_first && !matches!(node.on_failure, OnFailure::Fail);
                        let seen = std::mem::replace(
                            &mut self.seen[place],
                            ((at.clone(), Status::Failed, visit), !is_caught),
                        );
                        self.seen.push((seen.0, true));
                        state.fail(&at);
                        let all = i64::try_from(targets.len()).unwrap();
                        let join = Some((parallel.join.as_deref(), all));
                        let mut counted = state.clone();
                        counted.count(&below);
                        let go =
                            is_caught.then(|| self.caught(&at, node, (&mut counted, token), join)).flatten();
                        if go.is_some() {
                            state = counted;
                        }
                        // Decision: a failure within `on_failure` is one of the node alone, and forgets those below it.
                        failing = if is_caught { Vec::new() } else { below };
                        failing.push((at.clone(), 1));
                        go.ok_or(if is_caught { at.clone() } else { cause })
                    }
                };
            }
            let how = match go {
                Ok(Go::To(to, by)) => {
                    (at, token) = (to, by);
                    continue;
                }
                Ok(Go::NoMatch) => {
                    state.is_degraded = true;
                    How::NoMatch
                }
                Ok(_) => How::Ended,
                Err(cause) => How::Failed(cause, kept, failing),
            };
            return End { at, state, how };
        }
    }

    fn sight<'s>(&self, node: &'s str, state: &'s State, token: Token) -> Sight<'s> {
        Sight { input: self.doc.input, node, state, has_error: token.has_error, joined: token.joined }
    }

    /// One visit (G10). Nothing: it failed.
    fn visit(&self, id: &str, node: &Node, state: &mut State, token: Token) -> Option<(Status, Go)> {
        let first = NodeState { status: None, data: None, visits: 0, runs: 0 };
        let result = state.results.entry(id.to_owned()).or_insert(first);
        result.visits += 1;
        let status = if node.max_visits.is_some_and(|most| result.visits > most) {
            // G21. Visits before it may have left no result.
            result.status = result.status.or(Some(Status::Skipped));
            Status::Skipped
        } else if let Some((check, is_skipping)) = &node.requires
            && !check.holds(&self.sight(id, state, token))?
        {
            // G20
            let result = is_skipping.then(|| state.results.get_mut(id))??;
            (result.status, result.data) = (Some(Status::Skipped), None);
            Status::Skipped
        } else {
            let data = self.work(id, node, state, token)?;
            let result = state.results.get_mut(id)?;
            (result.status, result.data) = (Some(Status::Success), Some(data));
            if let Some((name, expr)) = &node.set {
                let value = expr.value(&self.sight(id, state, token))?;
                state.vars.insert(name.clone(), value);
                state.written.insert(name.clone());
            }
            Status::Success
        };
        Some((status, self.next(id, node, state, token)?))
    }

    /// Attempts (G17).
    fn work(&self, id: &str, node: &Node, state: &mut State, token: Token) -> Option<i64> {
        match &node.work {
            Work::Value(expr) => expr.value(&self.sight(id, state, token)),
            Work::Function { with, attempts, script } => {
                if let Some(with) = with {
                    with.value(&self.sight(id, state, token))?;
                }
                let runs = &mut state.results.get_mut(id)?.runs;
                for _ in 0..*attempts {
                    let entry = script[(*runs).min(script.len() - 1)];
                    *runs += 1;
                    match entry {
                        Entry::Data(data) => return Some(data),
                        Entry::Fail { is_permanent: true } => return None,
                        Entry::Fail { is_permanent: false } => {}
                    }
                }
                None
            }
        }
    }

    /// G12, G14
    fn next(&self, id: &str, node: &Node, state: &mut State, token: Token) -> Option<Go> {
        match &node.next {
            Next::Routes(routes) => match self.first(id, routes, false, state, token)? {
                Some(route) => Some(route.to.clone().map_or(Go::End, |to| Go::To(to, PLAIN))),
                None => node.is_end_without_match.then_some(Go::NoMatch),
            },
            Next::Parallel(parallel) => {
                let sight = self.sight(id, state, token);
                let mut targets = Vec::new();
                for (to, when) in &parallel.branches {
                    if when.as_ref().map_or(Some(true), |when| when.holds(&sight))? {
                        targets.push(to.clone());
                    }
                }
                Some(Go::Branches(targets, PLAIN))
            }
        }
    }

    /// The first route that holds. Decision: the condition of one that is used up is not evaluated.
    fn first<'r>(
        &self,
        id: &str,
        routes: &'r [Route],
        is_caught: bool,
        state: &mut State,
        token: Token,
    ) -> Option<Option<&'r Route>> {
        for (place, route) in routes.iter().enumerate() {
            let key = (id.to_owned(), is_caught, place);
            let used = state.taken.get(&key).copied().unwrap_or(0);
            if route.max.is_some_and(|max| used >= max) {
                continue;
            }
            if route.when.as_ref().map_or(Some(true), |when| when.holds(&self.sight(id, state, token)))? {
                if route.max.is_some() {
                    state.taken.insert(key, used + 1);
                }
                return Some(Some(route));
            }
        }
        Some(None)
    }

    /// Where a failure leads (G19). Decision: nothing catches a failure if no route of `on_failure` holds or a condition
    /// errs there, nor what fails after `continue`. `joined` is the join of a parallel node whose branches failed.
    fn caught(
        &self,
        id: &str,
        node: &Node,
        (state, token): (&mut State, Token),
        joined: Option<(Option<&str>, i64)>,
    ) -> Option<Go> {
        // Its routes see `joined`, too.
        let seen = Token { has_error: true, ..token };
        let go = match (&node.on_failure, joined) {
            (OnFailure::Fail, _) => None,
            (OnFailure::Routes(routes), _) => {
                let route = self.first(id, routes, true, state, seen)??;
                Some(route.to.clone().map_or(Go::End, |to| Go::To(to, ERROR)))
            }
            (OnFailure::Continue, None) => match self.next(id, node, state, seen)? {
                Go::To(to, _) => Some(Go::To(to, ERROR)),
                Go::Branches(targets, _) => Some(Go::Branches(targets, ERROR)),
                other => Some(other),
            },
            // Decision: all branches have failed there.
            (OnFailure::Continue, Some((join, all))) => {
                let token = Token { has_error: true, joined: Some((all, all)) };
                Some(join.map_or(Go::End, |join| Go::To(join.to_owned(), token)))
            }
        }?;
        state.is_degraded = true;
        Some(go)
    }

    /// Branches, and where they meet (G14–G16).
    fn branches(
        &mut self,
        id: &str,
        parallel: &Parallel,
        (targets, by): (&[String], Token),
        state: &mut State,
    ) -> Result<Go, Stop> {
        let without_arrival = if parallel.join.is_some() { Go::NoMatch } else { Go::End };
        if targets.is_empty() {
            return Ok(without_arrival);
        }
        let base = state.clone();
        let mut ends: Vec<(End, Range<usize>)> = Vec::new();
        self.depth += 1;
        for to in targets {
            let (first, scope) = (self.seen.len(), State { written: BTreeSet::new(), ..base.clone() });
            let end = self.walk(scope, (to.clone(), by), parallel.join.as_deref());
            ends.push((end, first..self.seen.len()));
        }
        self.depth -= 1;
        let drops = |how: &How| match how {
            How::StepLimit { .. } => true,
            How::Failed(..) => parallel.failures == Failures::FailAll,
            _ => false,
        };
        let dropping: Vec<usize> = (0..ends.len()).filter(|place| drops(&ends[*place].0.how)).collect();
        if !dropping.is_empty() {
            let first = dropping[self.choose(dropping.len())];
            for (place, (_, seen)) in ends.iter().enumerate().filter(|(place, _)| *place != first) {
                debug_assert_ne!(place, first);
                self.seen[seen.clone()].iter_mut().for_each(|(_, is_optional)| *is_optional = true);
            }
            let (end, _) = ends.swap_remove(first);
            // Decision: a parallel node that fails forgets its branches, results, variables, steps, but for the visits that failed.
            return Err(match end.how {
                How::Failed(cause, _, failing) => Stop::Failed(cause, failing),
                _ => Stop::Run(end),
            });
        }
        let ends: Vec<End> = ends.into_iter().map(|(end, _)| end).collect();
        self.publish_variables(id, parallel.conflicts, &ends, state)?;
        let (mut failed, mut opened, mut is_joined) = (0, 0, false);
        for End { at, state: mut branch, how } in ends {
            opened += 1;
            is_joined |= matches!(how, How::Arrived | How::Failed(..));
            state.steps += branch.steps - base.steps;
            state.is_degraded |= branch.is_degraded;
            if let How::Failed(_, kept, mut failing) = how {
                failed += 1;
                state.is_degraded = true;
                // Under `continue_others` a node that failed leaves no result where branches meet, but its visit counts.
                if parallel.failures != Failures::WaitAll
                    && let Some(result) = branch.results.get_mut(&at)
                {
                    let kept = kept.unwrap_or(NodeState { status: None, data: None, visits: 0, runs: 0 });
                    *result = NodeState { status: kept.status, data: kept.data, ..result.clone() };
                }
                failing.pop();
                let steps = branch.steps;
                branch.count(&failing);
                state.steps += branch.steps - steps;
            }
            // No node is in two branches (G8), so that each was changed by one.
            let changed = |(id, result): &(String, NodeState)| base.results.get(id) != Some(result);
            state.results.extend(branch.results.into_iter().filter(changed));
            state
                .taken
                .extend(branch.taken.into_iter().filter(|(key, count)| base.taken.get(key) != Some(count)));
        }
        match &parallel.join {
            Some(join) if is_joined => {
                Ok(Go::To(join.clone(), Token { has_error: false, joined: Some((failed, opened)) }))
            }
            _ => Ok(without_arrival),
        }
    }

    /// G16. A branch that failed writes nothing (Hive); one that ended without an arrival does.
    fn publish_variables(
        &mut self,
        id: &str,
        conflicts: Conflicts,
        ends: &[End],
        state: &mut State,
    ) -> Result<(), Stop> {
        let writing = || ends.iter().filter(|end| !matches!(end.how, How::Failed(..)));
        let is_contested =
            |name: &String| writing().filter(|end| end.state.written.contains(name)).count() > 1;
        let (mut settling, mut order) = (Vec::new(), Vec::new());
        for end in writing() {
            let is_racing = end.state.written.iter().any(is_contested);
            if is_racing && conflicts == Conflicts::Error {
                return Err(Stop::Failed(id.to_owned(), Vec::new()));
            }
            if is_racing { settling.push(end) } else { order.push(end) }
        }
        while !settling.is_empty() {
            let next = self.choose(settling.len());
            order.push(settling.remove(next));
        }
        if conflicts == Conflicts::FirstWins {
            order.reverse();
        }
        for name in order.iter().flat_map(|end| &end.state.written) {
            state.written.insert(name.clone());
        }
        for end in order {
            let written = end.state.written.iter().map(|name| (name.clone(), end.state.vars[name]));
            state.vars.extend(written);
        }
        Ok(())
    }
}

/// Branches that do not meet.
enum Stop {
    /// The run ends within one.
    Run(End),
    /// The parallel node fails, because of this node, and with these visits.
    Failed(String, Vec<(String, usize)>),
}
