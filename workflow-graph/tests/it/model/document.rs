//! The part of the format that the model has, and its text for the reader. It checks nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::expression::{Cond, Expr};

#[derive(Debug, Clone)]
pub(super) struct Doc {
    pub(super) start: String,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) vars: BTreeMap<String, i64>,
    pub(super) steps: Option<u32>,
    pub(super) input: i64,
    pub(super) output: Option<BTreeMap<String, Expr>>,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) work: Work,
    /// `requires`, and whether an unmet one skips the visit.
    pub(super) requires: Option<(Cond, bool)>,
    pub(super) max_visits: Option<u32>,
    pub(super) set: Option<(String, Expr)>,
    pub(super) on_failure: OnFailure,
    pub(super) next: Next,
    pub(super) is_end_without_match: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Work {
    Value(Expr),
    Function { with: Option<Expr>, attempts: u32, script: Vec<Entry> },
}

/// An entry of a script.
#[derive(Debug, Clone, Copy)]
pub(super) enum Entry {
    Data(i64),
    Fail { is_permanent: bool },
}

#[derive(Debug, Clone)]
pub(super) enum OnFailure {
    Fail,
    Continue,
    Routes(Vec<Route>),
}

#[derive(Debug, Clone)]
pub(super) enum Next {
    Routes(Vec<Route>),
    Parallel(Parallel),
}

/// Absent: to the end of the walk.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) to: Option<String>,
    pub(super) when: Option<Cond>,
    pub(super) max: Option<u32>,
}

#[derive(Debug, Clone)]
pub(super) struct Parallel {
    pub(super) branches: Vec<(String, Option<Cond>)>,
    pub(super) join: Option<String>,
    /// The reader finds it otherwise.
    pub(super) is_join_written: bool,
    pub(super) failures: Failures,
    pub(super) conflicts: Conflicts,
    pub(super) concurrency: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failures {
    FailAll,
    ContinueOthers,
    WaitAll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflicts {
    Error,
    LastWins,
    FirstWins,
}

impl Doc {
    /// Its JSON, which is YAML too.
    pub(super) fn text(&self) -> String {
        let nodes: Map<String, Value> =
            self.nodes.iter().map(|(id, node)| (id.clone(), node.json())).collect();
        let mut whole = json!({"graph": "g", "start": self.start, "vars": self.vars, "nodes": nodes});
        if let Some(steps) = self.steps {
            whole["limits"] = json!({"steps": steps});
        }
        if let Some(output) = &self.output {
            whole["output"] =
                output.iter().map(|(key, expr)| (key.clone(), json!(expr.template()))).collect();
        }
        whole.to_string()
    }

    /// The script that plays its functions.
    pub(super) fn script(&self) -> Value {
        let entry = |entry: &Entry| match entry {
            Entry::Data(number) => json!({"data": {"v": number}}),
            Entry::Fail { is_permanent: true } => json!({"fail": "no", "class": "permanent"}),
            Entry::Fail { is_permanent: false } => json!({"fail": "away"}),
        };
        let played = self.nodes.iter().filter_map(|(id, node)| match &node.work {
            Work::Function { script, .. } => Some((id.clone(), script.iter().map(entry).collect())),
            Work::Value(_) => None,
        });
        json!({"nodes": played.collect::<Map<String, Value>>()})
    }

    pub(super) fn begin(&self) -> Value {
        json!({"n": self.input})
    }
}

impl Node {
    fn json(&self) -> Value {
        let mut node = match &self.work {
            Work::Value(expr) => json!({"value": {"v": expr.template()}}),
            Work::Function { with, attempts, .. } => {
                let mut node = json!({"function": "f", "retry": "none"});
                if *attempts > 1 {
                    node["retry"] = json!({"attempts": attempts, "first": "1ms"});
                }
                if let Some(with) = with {
                    node["with"] = json!({"a": with.template()});
                }
                node
            }
        };
        match &self.requires {
            Some((check, true)) => node["requires"] = json!({"all": [check.text()], "otherwise": "skip"}),
            Some((check, false)) => node["requires"] = json!([check.text()]),
            None => {}
        }
        if let Some(most) = self.max_visits {
            node["max_visits"] = json!(most);
        }
        if let Some((name, expr)) = &self.set {
            node["set"] = json!({name: expr.template()});
        }
        match &self.on_failure {
            OnFailure::Fail => {}
            OnFailure::Continue => node["on_failure"] = json!("continue"),
            OnFailure::Routes(list) => node["on_failure"] = routes(list),
        }
        node["next"] = match &self.next {
            Next::Routes(list) => routes(list),
            Next::Parallel(parallel) => parallel.json(),
        };
        if matches!(&self.next, Next::Routes(list) if list.iter().all(Route::is_conditional)) {
            node["on_no_match"] = json!(if self.is_end_without_match { "end" } else { "fail" });
        }
        node
    }
}

fn routes(list: &[Route]) -> Value {
    match list {
        [only] if !only.is_conditional() => json!(only.to.as_deref().unwrap_or("end")),
        list => list.iter().map(Route::json).collect(),
    }
}

impl Route {
    pub(super) fn is_conditional(&self) -> bool {
        self.when.is_some() || self.max.is_some()
    }

    fn json(&self) -> Value {
        let mut route = json!({"to": self.to.as_deref().unwrap_or("end")});
        if let Some(when) = &self.when {
            route["when"] = json!(when.text());
        }
        if let Some(max) = self.max {
            route["max"] = json!(max);
        }
        route
    }
}

impl Parallel {
    fn json(&self) -> Value {
        let branch = |(to, when): &(String, Option<Cond>)| match when {
            Some(when) => json!({"to": to, "when": when.text()}),
            None => json!(to),
        };
        let mut next = json!({"parallel": self.branches.iter().map(branch).collect::<Vec<_>>()});
        if self.is_join_written {
            next["join"] = json!(self.join);
        }
        match self.failures {
            Failures::FailAll => {}
            Failures::ContinueOthers => next["failures"] = json!("continue_others"),
            Failures::WaitAll => next["failures"] = json!("wait_all"),
        }
        next["conflicts"] = match self.conflicts {
            Conflicts::Error => json!("error"),
            Conflicts::LastWins => json!("last_wins"),
            Conflicts::FirstWins => json!("first_wins"),
        };
        if let Some(most) = self.concurrency {
            next["concurrency"] = json!(most);
        }
        next
    }
}
