//! The data of the events that a graph leaves in its run's log: results, tokens, joins and ends. Steps write them,
//! and traces and explanations read them. This file owns their form; it decides nothing.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

mod count;
mod result;
mod taken;

use count::CountOrFields;
pub(crate) use result::{About, Calls, Ended, NodeResult, Numbered, Traced, Verdict, data_of, part_of};
pub(crate) use taken::Taken;

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The names of events and steps that stand beside those of nodes. No node's id has a colon, a dot or an arrow.
pub(crate) mod names {
    use std::sync::Arc;

    pub(crate) const INPUT: &str = "graph.input";
    pub(crate) const OUTPUT: &str = "graph.output";
    pub(crate) const FAILURE: &str = "graph.failure";

    /// The event, or step, of a node's part.
    pub(crate) fn of(node: &str, part: &str) -> Arc<str> {
        format!("{node}:{part}").into()
    }

    /// The token of a route.
    pub(crate) fn token(from: &str, to: &str) -> Arc<str> {
        format!("{from}->{to}").into()
    }

    /// The token with which a branch begins.
    pub(crate) fn opening(from: &str, to: &str) -> Arc<str> {
        format!("{from}=>{to}").into()
    }

    /// The event of a variable's new value.
    pub(crate) fn variable(name: &str) -> Arc<str> {
        format!("vars.{name}").into()
    }
}

/// `graph.input`: the start of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Begin {
    /// As it was given; defaults are filled in where it is read.
    #[serde(default)]
    pub(crate) input: Value,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) dry_run: bool,
    /// For scripts: the runs of the node that began this child, before it. The script's entries go on there.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "is_default")]
    pub(crate) played: u32,
    /// The hash of the document that began the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) document: Option<Arc<str>>,
}

/// A count, which JSON may write as `2.0`.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let value = Value::deserialize(from)?;
    count_of(&value).ok_or_else(|| serde::de::Error::custom(format!("{value} is no count")))
}

/// The count that a JSON number is, if it is one.
pub(crate) fn count_of(value: &Value) -> Option<u32> {
    match (value.as_u64(), value.as_f64()) {
        (Some(count), _) => u32::try_from(count).ok(),
        (None, Some(count)) if count >= 0.0 && count.fract() == 0.0 => {
            format!("{:.0}", count.abs()).parse().ok()
        }
        _ => None,
    }
}

/// The state that a walk hands on from visit to visit. As JSON, the number of visits alone where it is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Visits so far.
    pub(crate) steps: u32,
    /// Prompts for guidance so far, for scripts.
    pub(crate) prompts: u32,
    /// Whether a failure was handled, or no route held.
    pub(crate) degraded: bool,
    /// The latest agent node on the path, in Hive documents with one conversation.
    pub(crate) agent: Option<Arc<str>>,
}

/// The fields of [`Carried`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Carried")]
struct CarriedFields {
    #[serde(default, skip_serializing_if = "is_default")]
    steps: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    prompts: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    degraded: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<Arc<str>>,
}

impl Carried {
    /// The number of visits, if it is all.
    fn count(&self) -> Option<u32> {
        match self {
            Self { steps, prompts: 0, degraded: false, agent: None } => Some(*steps),
            _ => None,
        }
    }
}

impl Serialize for Carried {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.count() {
            Some(steps) => serializer.serialize_u32(steps),
            None => CarriedFields::serialize(self, serializer),
        }
    }
}

impl CountOrFields for Carried {
    const EXPECTED: &str = "the number of visits, or a map with it";

    fn of_count(steps: u32) -> Self {
        Self { steps, ..Self::default() }
    }

    fn of_fields<'de, D: Deserializer<'de>>(fields: D) -> Result<Self, D::Error> {
        CarriedFields::deserialize(fields)
    }
}

impl<'de> Deserialize<'de> for Carried {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        count::read(deserializer)
    }
}

/// `a->b`: the route that was taken. As JSON, the number of visits alone where it was the only path and nothing else is to
/// say.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) carried: Carried,
    pub(crate) reason: Arc<str>,
    /// The failure that led here.
    pub(crate) error: Option<Failure>,
    pub(crate) warnings: Vec<Arc<str>>,
    /// Keys of a Hive document's memory.
    pub(crate) writes: Map<String, Value>,
}

/// The reason of a route that has no other beside it.
pub(crate) const ONLY_PATH: &str = "only path";

/// The same, shared by all routes.
fn only_path() -> Arc<str> {
    static TEXT: LazyLock<Arc<str>> = LazyLock::new(|| ONLY_PATH.into());
    Arc::clone(&TEXT)
}

/// The fields of [`Token`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Token")]
struct TokenFields {
    #[serde(rename = "walk", default)]
    carried: Carried,
    reason: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    writes: Map<String, Value>,
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self { carried, reason, error: None, warnings, writes }
                if **reason == *ONLY_PATH && warnings.is_empty() && writes.is_empty() =>
            {
                match carried.count() {
                    Some(steps) => serializer.serialize_u32(steps),
                    None => TokenFields::serialize(self, serializer),
                }
            }
            all => TokenFields::serialize(all, serializer),
        }
    }
}

impl CountOrFields for Token {
    const EXPECTED: &str = "the number of visits, or a map of a token";

    fn of_count(steps: u32) -> Self {
        Self {
            carried: Carried::of_count(steps),
            reason: only_path(),
            error: None,
            warnings: Vec::new(),
            writes: Map::new(),
        }
    }

    fn of_fields<'de, D: Deserializer<'de>>(fields: D) -> Result<Self, D::Error> {
        TokenFields::deserialize(fields)
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        count::read(deserializer)
    }
}

/// The part of any event of a walk that the next visit needs.
#[derive(Debug, Default)]
pub(crate) struct Came {
    pub(crate) carried: Carried,
    pub(crate) error: Option<Failure>,
}

/// The fields of [`Came`].
#[derive(Deserialize)]
#[serde(remote = "Came")]
struct CameFields {
    #[serde(rename = "walk", default)]
    carried: Carried,
    #[serde(default)]
    error: Option<Failure>,
}

impl CountOrFields for Came {
    const EXPECTED: &str = "the number of visits, or a map with it";

    fn of_count(steps: u32) -> Self {
        Self { carried: Carried::of_count(steps), error: None }
    }

    fn of_fields<'de, D: Deserializer<'de>>(fields: D) -> Result<Self, D::Error> {
        CameFields::deserialize(fields)
    }
}

impl<'de> Deserialize<'de> for Came {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        count::read(deserializer)
    }
}

/// A failure as expressions see it: `error.message`, `error.class`, `error.node`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) message: Arc<str>,
    pub(crate) class: Arc<str>,
    pub(crate) node: Arc<str>,
}

/// The status of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum VisitStatus {
    /// The node's work succeeded.
    #[default]
    Success,
    /// It failed, and the walk went on.
    Failed,
    /// It did not run: `requires` was not met, or the visit was beyond `max_visits` and there is no earlier result, whose status
    /// it would have.
    Skipped,
}

/// How often a node ran, and how often it asked a model, over all visits of a run. As JSON, the number of runs alone where it
/// asked none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) runs: u32,
    pub(crate) judged: u32,
    pub(crate) decided: u32,
}

/// The fields of [`Done`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Done")]
struct DoneFields {
    #[serde(default, skip_serializing_if = "is_default")]
    runs: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    judged: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    decided: u32,
}

impl Serialize for Done {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self { runs, judged: 0, decided: 0 } => serializer.serialize_u32(*runs),
            _ => DoneFields::serialize(self, serializer),
        }
    }
}

impl CountOrFields for Done {
    const EXPECTED: &str = "the number of runs, or a map with it";

    fn of_count(runs: u32) -> Self {
        Self { runs, ..Self::default() }
    }

    fn of_fields<'de, D: Deserializer<'de>>(fields: D) -> Result<Self, D::Error> {
        DoneFields::deserialize(fields)
    }
}

impl<'de> Deserialize<'de> for Done {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        count::read(deserializer)
    }
}

/// `n:count`: visits of a node that left no result, since its branch failed, with those before them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Count {
    /// The number of the last one.
    pub(crate) visit: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) done: Done,
}

impl Count {
    /// With one visit more, of so many runs.
    pub(crate) fn more(self, runs: u32) -> Self {
        let done = Done { runs: self.done.runs.saturating_add(runs), ..self.done };
        Self { visit: self.visit.saturating_add(1), done }
    }

    /// Both, of the same node: what is later counts more.
    pub(crate) fn or(self, other: Self) -> Self {
        let (done, more) = (self.done, other.done);
        Self {
            visit: self.visit.max(other.visit),
            done: Done {
                runs: done.runs.max(more.runs),
                judged: done.judged.max(more.judged),
                decided: done.decided.max(more.decided),
            },
        }
    }
}

/// `n:item`: the begin of a branch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Opened {
    #[serde(rename = "walk", default)]
    pub(crate) carried: Carried,
    pub(crate) to: Arc<str>,
    pub(crate) reason: Arc<str>,
    /// The failure that led here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
    /// Keys of a Hive document's memory.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) writes: Map<String, Value>,
}

/// `n:joined`: all branches of `n` have ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Joined {
    #[serde(rename = "walk", default)]
    pub(crate) carried: Carried,
    /// The failure of the branches as a whole, behind which the walk goes on here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
    pub(crate) failed: u32,
    pub(crate) branches: Vec<JoinedBranch>,
    /// Keys of a Hive document's memory: what the branches have written, merged.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) writes: Map<String, Value>,
}

/// One branch, as a join sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JoinedBranch {
    pub(crate) to: Arc<str>,
    pub(crate) status: BranchStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
}

/// The end of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BranchStatus {
    Arrived,
    Ended,
    Failed,
}

/// The status of a graph's run that ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GraphStatus {
    /// The walk came to its end.
    Completed,
    /// No route held, and the document lets the walk end there.
    NoMatch,
    /// A dry run came to the first node that chooses its route.
    DryRun,
    /// The walk made as many visits as `limits.steps` allows. The only status here that is no success.
    StepLimit,
}

/// `graph.output`: the end of a run.
#[expect(clippy::struct_field_names, reason = "the fields have the names of the event's data")]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Output {
    pub(crate) status: GraphStatus,
    /// The node at which the walk ended.
    pub(crate) at: Arc<str>,
    #[serde(default)]
    pub(crate) output: Value,
    #[serde(rename = "walk", default)]
    pub(crate) carried: Carried,
    /// Why the walk ended here, where a route could not be chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<Arc<str>>,
    /// The routes that a dry run did not take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) candidates: Vec<Arc<str>>,
}
