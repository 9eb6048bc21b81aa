//! The model of a graph, after reading, for checks and compilers. It has no behaviour beyond look-ups.

#![expect(dead_code, reason = "the compiler of tables reads the rest of the model")]

use foldhash::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jsonschema::Validator;
use serde_json::Value;

use super::template::{Expression, Template};
use crate::problem::sink::At;

pub(crate) mod hive;
pub(crate) mod sweny;
pub(crate) mod unread;

use hive::{HiveGraph, HiveNode};
use sweny::{SwenyEdges, SwenyGraph, SwenyNode};
use unread::{GraphUnread, Unread};

/// A value and the place where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) at: At,
}

/// A name that the document writes somewhere.
pub(crate) type Name = Located<Arc<str>>;

/// One graph of a file.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) name: Name,
    pub(crate) description: Option<Arc<str>>,
    pub(crate) input: Option<Schema>,
    pub(crate) vars: Vec<Var>,
    pub(crate) output: Option<Template>,
    /// Absent: the first node.
    pub(crate) start: Option<Name>,
    pub(crate) limits: Limits,
    pub(crate) defaults: Defaults,
    /// In the order of declaration. Their ids differ.
    pub(crate) nodes: Vec<Node>,
    /// Places of `nodes` by id.
    pub(crate) ids: HashMap<Arc<str>, usize>,
    pub(crate) unread: GraphUnread,
    /// The format from which the graph comes.
    pub(crate) dialect: Dialect,
}

/// The format of a document, with what only that format has.
#[derive(Debug)]
pub(crate) enum Dialect {
    Native,
    Sweny(Box<SwenyGraph>),
    Hive(Box<HiveGraph>),
}

/// The parts that only nodes of an imported format have.
#[derive(Debug)]
pub(crate) enum Extras {
    None,
    Sweny(Box<SwenyNode>),
    Hive(Box<HiveNode>),
}

impl Graph {
    /// The parts that only Hive documents have.
    pub(crate) fn hive(&self) -> Option<&HiveGraph> {
        match &self.dialect {
            Dialect::Hive(hive) => Some(hive),
            Dialect::Native | Dialect::Sweny(_) => None,
        }
    }

    /// The place of the node where a run begins; nothing if `start` names no node.
    pub(crate) fn start(&self) -> Option<usize> {
        match &self.start {
            Some(name) => self.find(&name.value),
            None => (!self.nodes.is_empty()).then_some(0),
        }
    }

    /// The place of the node `id`.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.ids.get(id).copied()
    }
}

/// A declared variable.
#[derive(Debug)]
pub(crate) struct Var {
    pub(crate) name: Name,
    pub(crate) first: Value,
}

/// A compiled JSON Schema, and its text.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    pub(crate) at: At,
    pub(crate) value: Arc<Value>,
    pub(crate) validator: Arc<Validator>,
}

/// Bounds of a run.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) steps: u32,
    pub(crate) time: Option<Duration>,
    pub(crate) items: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 200, time: None, items: 10_000 }
    }
}

/// Values for nodes that state none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Defaults {
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry: Option<Retry>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) judge_model: Option<Arc<str>>,
    pub(crate) on_no_match: Option<OnNoMatch>,
}

/// One node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: Name,
    pub(crate) description: Option<Arc<str>>,
    pub(crate) work: Work,
    /// Absent: `{}`.
    pub(crate) with: Option<Template>,
    /// Where the fields of `with` stand, if it is a map; else where it stands itself, without a name.
    pub(crate) with_at: Vec<(Arc<str>, At)>,
    pub(crate) reads: Reads,
    pub(crate) output: Option<Schema>,
    pub(crate) requires: Option<Requires>,
    pub(crate) ensure: Option<Ensure>,
    pub(crate) retry: Option<Located<Retry>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_visits: Option<u32>,
    pub(crate) for_each: Option<ForEach>,
    pub(crate) set: Vec<(Name, Template)>,
    pub(crate) on_failure: Option<OnFailure>,
    pub(crate) next: Next,
    pub(crate) on_no_match: Option<OnNoMatch>,
    pub(crate) extras: Extras,
    pub(crate) unread: Unread,
}

impl Node {
    /// The parts that only nodes of Hive documents have.
    pub(crate) fn hive(&self) -> Option<&HiveNode> {
        match &self.extras {
            Extras::Hive(hive) => Some(hive),
            Extras::None | Extras::Sweny(_) => None,
        }
    }
}

/// The work of a node.
#[derive(Debug)]
pub(crate) enum Work {
    Function(Name),
    Tool(Name),
    Agent(Box<Agent>),
    Command(Box<Command>),
    Human(Box<Human>),
    Value(Template),
    Graph(Name),
    Workflow { name: Name, start: Name },
}

/// A task for an agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) instruction: Template,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) allow: Option<Vec<Name>>,
    pub(crate) deny: Vec<Name>,
    pub(crate) skills: Vec<Name>,
    pub(crate) max_turns: Option<u32>,
    pub(crate) rules: Vec<Template>,
    pub(crate) background: Vec<Template>,
}

/// A program that runs without a shell.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) run: Vec<Template>,
    pub(crate) stdin: Option<Template>,
    pub(crate) env: Vec<(Name, Template)>,
    pub(crate) parse: Option<Parse>,
}

/// How the output of a command becomes data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parse {
    Json,
    Text,
}

/// A question to people.
#[derive(Debug)]
pub(crate) struct Human {
    pub(crate) at: At,
    pub(crate) ask: Template,
    pub(crate) reply: Option<Schema>,
    pub(crate) expires: Option<Duration>,
}

/// The results that an agent sees.
#[derive(Debug)]
pub(crate) enum Reads {
    All,
    Only(Vec<Name>),
}

/// Checks before a node runs.
#[derive(Debug)]
pub(crate) struct Requires {
    pub(crate) all: Vec<Check>,
    pub(crate) otherwise: Otherwise,
}

/// The consequence of an unmet `requires`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Otherwise {
    Fail,
    Skip,
}

/// Checks after a node ran.
#[derive(Debug)]
pub(crate) struct Ensure {
    pub(crate) all: Vec<Check>,
    pub(crate) retries: u32,
    pub(crate) guidance: Option<Guidance>,
}

/// The advice that an agent receives with its failure.
#[derive(Debug)]
pub(crate) enum Guidance {
    Auto,
    Text(Template),
}

/// One check.
#[derive(Debug)]
pub(crate) struct Check {
    /// Absent for a bare expression, which its source names.
    pub(crate) name: Option<Name>,
    pub(crate) at: At,
    pub(crate) rule: Rule,
}

/// The condition of a check.
#[derive(Debug)]
pub(crate) enum Rule {
    Expression(Expression),
    Required(Vec<Path>),
    Path { path: Path, test: Test },
    Called { any: Vec<Name>, all: Vec<Name>, none: Vec<Name> },
    Judge { rubric: Template, pass_when: Arc<str>, model: Option<Arc<str>> },
}

/// The condition on the values at a path.
#[derive(Debug)]
pub(crate) enum Test {
    Equals(Value),
    In(Vec<Value>),
    Matches(regex::Regex),
}

/// A path of a check: `any:a.b[*].c`.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) at: At,
    pub(crate) source: Arc<str>,
    /// Whether `any:` stands before it: at least one of the elements has to fit.
    pub(crate) is_any: bool,
    pub(crate) segments: Vec<Segment>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Key(Arc<str>),
    Index(usize),
    Every,
}

/// Attempts by the executor.
#[derive(Debug, Clone)]
pub(crate) enum Retry {
    None,
    Attempts {
        attempts: Option<u32>,
        first: Option<Duration>,
        factor: Option<f64>,
        most: Option<Duration>,
        jitter: Option<f64>,
    },
}

/// A node that runs once per item.
#[derive(Debug)]
pub(crate) struct ForEach {
    pub(crate) list: Expression,
    pub(crate) item: Arc<str>,
    pub(crate) concurrency: u32,
    pub(crate) failures: Failures,
}

/// The consequence of a failure for the other branches or items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failures {
    FailAll,
    ContinueOthers,
    WaitAll,
}

/// The winner where two branches write one variable or result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflicts {
    Error,
    LastWins,
    FirstWins,
}

/// Where a failure leads.
#[derive(Debug)]
pub(crate) enum OnFailure {
    To(Name),
    Routes(Vec<Route>),
    Continue,
}

/// The consequence where no route holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnNoMatch {
    Fail,
    End,
}

/// Where a node leads.
#[derive(Debug)]
pub(crate) enum Next {
    End,
    To(Name),
    Routes(Vec<Route>),
    Parallel(Box<Parallel>),
    Decide(Box<Decide>),
    Sweny(Box<SwenyEdges>),
}

/// One route of a list.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) at: At,
    pub(crate) to: Target,
    pub(crate) when: Option<Expression>,
    pub(crate) max: Option<u32>,
    pub(crate) id: Option<Name>,
}

/// A node, or the end of the walk.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Node(Name),
    End,
}

/// Branches that run at the same time.
#[derive(Debug)]
pub(crate) struct Parallel {
    pub(crate) at: At,
    pub(crate) branches: Vec<Branch>,
    pub(crate) join: Option<Name>,
    pub(crate) failures: Failures,
    /// Absent: `error`, and the author did not say so.
    pub(crate) conflicts: Option<Conflicts>,
    pub(crate) concurrency: Option<u32>,
}

/// One branch of a parallel node.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) to: Name,
    pub(crate) when: Option<Expression>,
}

/// A choice of a model.
#[derive(Debug)]
pub(crate) struct Decide {
    pub(crate) question: Template,
    pub(crate) choices: Vec<Choice>,
    pub(crate) otherwise: Target,
}

/// One choice of a model.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) at: At,
    pub(crate) to: Target,
    pub(crate) about: Option<Arc<str>>,
}
