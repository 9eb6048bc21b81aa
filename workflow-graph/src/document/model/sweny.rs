//! The parts of a graph that only SWEny documents have.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Name, Path, Schema, Test};
use crate::problem::sink::At;
use crate::result::SourceHash;
use crate::skill::InlineSkill;

/// The words of a document on all its nodes.
#[derive(Debug, Default)]
pub(crate) struct SwenyGraph {
    pub(crate) rules: Vec<Arc<str>>,
    pub(crate) context: Vec<Arc<str>>,
    /// The skills that the document defines, by id.
    pub(crate) skills: BTreeMap<Arc<str>, InlineSkill>,
    /// The names of declared inputs, of which null is missing.
    pub(crate) inputs: Vec<Arc<str>>,
    /// Keys of the top level that the format leaves open.
    pub(crate) metadata: Map<String, Value>,
    /// Every source, in the order in which they were read.
    pub(crate) sources: Vec<SourceHash>,
}

impl SwenyGraph {
    /// The input without declared fields that are null, which counts as missing.
    pub(crate) fn without_nulls(&self, given: &Value) -> Value {
        match given {
            Value::Null if !self.inputs.is_empty() => Value::Object(Map::new()),
            Value::Object(map) => {
                let is_missing = |name: &str, value: &Value| {
                    value.is_null() && self.inputs.iter().any(|input| **input == *name)
                };
                let there = map.iter().filter(|(name, value)| !is_missing(name, value));
                there.map(|(name, value)| (name.clone(), value.clone())).collect()
            }
            other => other.clone(),
        }
    }

    /// Whether the input asks for a dry run. A text does not.
    pub(crate) fn is_dry(input: &Value) -> bool {
        input.get("dryRun") == Some(&Value::Bool(true))
    }
}

/// The parts of a node beside its task.
#[derive(Debug)]
pub(crate) struct SwenyNode {
    pub(crate) rules: Layer,
    pub(crate) context: Layer,
    pub(crate) judge_model: Option<Arc<str>>,
    /// Whether a failure that the agent itself reports counts as a success.
    pub(crate) is_fail_soft: bool,
    pub(crate) evaluators: Vec<Evaluator>,
    pub(crate) retry: Option<SwenyRetry>,
    /// The keys that `output` requires, and those that it describes.
    pub(crate) required: Vec<Arc<str>>,
    pub(crate) properties: Vec<Arc<str>>,
    /// The schema as it was written; agents receive it, and nothing is validated by it.
    pub(crate) output: Option<Schema>,
}

/// Texts of a node, with or without those of the document and the run before them.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    pub(crate) is_only: bool,
    pub(crate) texts: Vec<Arc<str>>,
}

/// One evaluation of a result.
#[derive(Debug)]
pub(crate) struct Evaluator {
    pub(crate) name: Name,
    pub(crate) kind: EvaluatorKind,
}

/// How an evaluation comes to its verdict.
#[derive(Debug)]
pub(crate) enum EvaluatorKind {
    /// By paths into the data.
    Value { required: Vec<Path>, matches: Vec<(Path, Test)> },
    /// By the calls of tools.
    Function { any: Vec<Name>, all: Vec<Name>, none: Vec<Name> },
    /// By a model.
    Judge { rubric: Arc<str>, pass_when: Arc<str>, model: Option<Arc<str>> },
}

/// Further attempts after failed evaluations.
#[derive(Debug)]
pub(crate) struct SwenyRetry {
    pub(crate) max: u32,
    pub(crate) guidance: Option<SwenyGuidance>,
}

/// The advice that an agent receives with its failures.
#[derive(Debug)]
pub(crate) enum SwenyGuidance {
    Text(Arc<str>),
    /// A model comments on the failures.
    Auto,
    /// A model answers this text.
    Reflect(Arc<str>),
}

/// The edges that leave a node, in the order of the document.
#[derive(Debug)]
pub(crate) struct SwenyEdges {
    pub(crate) edges: Vec<SwenyEdge>,
}

/// One edge.
#[derive(Debug)]
pub(crate) struct SwenyEdge {
    pub(crate) at: At,
    pub(crate) to: Name,
    pub(crate) when: Option<Arc<str>>,
    pub(crate) max: Option<u32>,
}

impl SwenyEdges {
    /// Whether any edge has a condition, whether it is used up or not.
    pub(crate) fn is_conditional(&self) -> bool {
        self.edges.iter().any(|edge| edge.when.is_some())
    }

    /// Whether edges are counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.edges.iter().any(|edge| edge.max.is_some())
    }
}
