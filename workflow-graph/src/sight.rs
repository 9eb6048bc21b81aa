//! The sight of a visit: the input, variables, and the latest results in its scope, as names of expressions. It is made of the
//! inputs of one step, and holds events, not copies of them.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use workflow_core::AnyEvent;

use crate::document::model::Graph;
use crate::expression::Scope;
use crate::shorten;
use crate::state::{Count, Failure, Joined, NodeResult, data_of, part_of};

/// The values of names at a node.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    pub(crate) graph: Arc<Graph>,
    pub(crate) input: Held,
    /// The latest results in sight, by the places of their nodes.
    pub(crate) results: Vec<(usize, Held)>,
    /// New values of variables, by their places.
    pub(crate) vars: Vec<(usize, AnyEvent)>,
    /// Nodes that expressions name and that have no result in sight.
    pub(crate) unseen: Vec<usize>,
    /// The visits of nodes so far, where some left no result.
    pub(crate) counts: Vec<(usize, Count)>,
    /// The place of the node.
    pub(crate) node: usize,
    /// Which visit of the node it is.
    pub(crate) visit: u32,
    /// The result of this visit, once there is one.
    pub(crate) own: Option<Arc<NodeResult>>,
    /// Values that this visit has set.
    pub(crate) set: Vec<(usize, Value)>,
    pub(crate) error: Option<Failure>,
    pub(crate) joined: Option<Arc<Joined>>,
    /// The item and its place, in a node with `for_each`.
    pub(crate) item: Option<(Value, u32)>,
    pub(crate) built: Built,
}

/// A value that is part of an event, or made. Clones share it.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    Event(AnyEvent),
    /// A field of an event's data.
    Field(AnyEvent, &'static str),
    Made(Arc<Value>),
}

impl Held {
    /// A part of the result that it is.
    pub(crate) fn part<T>(&self) -> Result<T, serde_json::Error>
    where
        T: DeserializeOwned + for<'r> From<&'r NodeResult>,
    {
        match self {
            Self::Event(event) => part_of(event),
            made => T::deserialize(&**made),
        }
    }

    /// The data of the result that it is.
    pub(crate) fn data(&self) -> Option<&Value> {
        match self {
            Self::Event(event) => data_of(event),
            made => made.get("data"),
        }
    }
}

impl std::ops::Deref for Held {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Self::Event(event) => event.as_json().unwrap_or(&Value::Null),
            Self::Field(event, field) => {
                event.as_json().and_then(|value| value.get(field)).unwrap_or(&Value::Null)
            }
            Self::Made(value) => value,
        }
    }
}

/// Maps that are built when an expression reads them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Built {
    nodes: OnceLock<Value>,
    vars: OnceLock<Value>,
    more: OnceLock<[Value; 2]>,
}

impl Sight {
    /// The same after the node's work.
    pub(crate) fn with_own(&self, own: Arc<NodeResult>) -> Self {
        Self { own: Some(own), built: Built::default(), ..self.clone() }
    }

    /// Makes `own` the result of this visit.
    pub(crate) fn leave(&mut self, own: Arc<NodeResult>) {
        self.own = Some(own);
        // Maps that expressions have read are older than the result.
        self.built = Built::default();
    }

    /// Gives a node a new count of visits.
    pub(crate) fn count_to(&mut self, node: usize, count: Count) {
        self.counts.retain(|(known, _)| *known != node);
        self.counts.push((node, count));
        self.built = Built::default();
    }

    /// Gives a variable a new value.
    pub(crate) fn set(&mut self, place: usize, value: Value) {
        self.set.push((place, value));
        self.built.vars = OnceLock::new();
    }

    /// The data of the latest result of a node.
    pub(crate) fn data(&self, node: usize) -> Option<&Value> {
        match &self.own {
            Some(own) if node == self.node => Some(&own.data),
            _ => self.result(node)?.data(),
        }
    }

    /// The data of the latest result of the node with this name. Few results are in sight, so that none is looked up.
    fn named(&self, name: &str) -> Option<&Value> {
        let is_named = |place: usize| *self.graph.nodes[place].id.value == *name;
        match &self.own {
            Some(own) if is_named(self.node) => Some(&own.data),
            _ => {
                self.results.iter().find(|(place, _)| is_named(*place)).and_then(|(_, result)| result.data())
            }
        }
    }

    /// The latest result of a node, before that of this visit.
    pub(crate) fn result(&self, node: usize) -> Option<&Held> {
        self.results.iter().find(|(place, _)| *place == node).map(|(_, result)| result)
    }

    /// The visits of a node so far that left no result, with those before them.
    pub(crate) fn count(&self, node: usize) -> Count {
        self.counts.iter().find(|(place, _)| *place == node).map(|(_, count)| *count).unwrap_or_default()
    }

    /// The latest results, by name.
    pub(crate) fn all_results(&self) -> impl Iterator<Item = (Arc<str>, Held)> {
        let named =
            |(place, result): &(usize, Held)| (self.graph.nodes[*place].id.value.clone(), result.clone());
        self.results.iter().map(named)
    }

    /// The data of every result in sight and the input, by name, for agents.
    pub(crate) fn everything(&self) -> Value {
        let mut all = Map::new();
        all.insert("input".into(), Value::clone(&*self.input));
        for (place, result) in &self.results {
            let own = self.own.as_ref().filter(|_| *place == self.node).map(|own| &own.data);
            if let Some(data) = own.or_else(|| result.data()) {
                all.insert(self.graph.nodes[*place].id.value.to_string(), data.clone());
            }
        }
        Value::Object(all)
    }

    /// The same within the bound of questions to models, for a model that decides about a result.
    pub(crate) fn for_question(&self) -> Value {
        bounded(self.everything())
    }

    /// The value of a variable.
    pub(crate) fn variable(&self, place: usize) -> &Value {
        let set = self.set.iter().rev().find(|(of, _)| *of == place).map(|(_, value)| value);
        let seen = || self.vars.iter().find(|(of, _)| *of == place).and_then(|(_, event)| event.as_json());
        set.or_else(seen).unwrap_or(&self.graph.vars[place].first)
    }

    fn nodes(&self) -> &Value {
        self.built.nodes.get_or_init(|| {
            let mut nodes = Map::new();
            for place in &self.unseen {
                let id = self.graph.nodes[*place].id.value.to_string();
                nodes.insert(id, about(None, self.count(*place)));
            }
            for (place, value) in &self.results {
                let id = self.graph.nodes[*place].id.value.to_string();
                nodes.insert(id, about(Some(value), self.count(*place)));
            }
            // The present visit of the node counts, with or without a result.
            let id = self.graph.nodes[self.node].id.value.to_string();
            match &self.own {
                Some(own) => {
                    let mut map = Map::new();
                    map.insert("data".into(), own.data.clone());
                    map.insert("status".into(), serde_json::to_value(own.status).unwrap_or_default());
                    let error = own.error.as_ref().and_then(|error| serde_json::to_value(error).ok());
                    map.extend(error.map(|error| ("error".to_owned(), error)));
                    map.insert("visits".into(), self.visit.into());
                    nodes.insert(id, Value::Object(map));
                }
                None => match nodes.get_mut(&id) {
                    Some(known) => known["visits"] = self.visit.into(),
                    None => drop(nodes.insert(id, json!({ "visits": self.visit }))),
                },
            }
            Value::Object(nodes)
        })
    }

    fn vars(&self) -> &Value {
        self.built.vars.get_or_init(|| {
            let vars = self.graph.vars.iter().enumerate();
            vars.map(|(place, var)| (var.name.value.to_string(), self.variable(place).clone())).collect()
        })
    }

    /// `error` and `joined`.
    fn more(&self) -> &[Value; 2] {
        self.built.more.get_or_init(|| {
            let error = self.error.as_ref().and_then(|error| serde_json::to_value(error).ok());
            let joined = self.joined.as_ref().map(|joined| {
                json!({ "failed": joined.failed, "branches": serde_json::to_value(&joined.branches).unwrap_or_default() })
            });
            [error.unwrap_or_default(), joined.unwrap_or_default()]
        })
    }
}

/// The most bytes of JSON that a question to a model has of the results before it.
const QUESTION: usize = 256 << 10;

/// Input and results within the bound of questions to models.
pub(crate) fn bounded(context: Value) -> Value {
    match context {
        Value::Object(map) => Value::Object(shorten::members(map, QUESTION)),
        other => other,
    }
}

/// `nodes.x` of a node: its latest result in sight, if there is one, and its visits, those without a result included.
pub(crate) fn about(result: Option<&Value>, count: Count) -> Value {
    let mut map = Map::new();
    let mut visits = count.visit;
    if let Some(result) = result {
        let field = |name: &str| result.get(name).map(|field| (name.to_owned(), field.clone()));
        map.extend(["data", "error"].into_iter().filter_map(field));
        map.insert("status".into(), result.get("status").cloned().unwrap_or_else(|| "success".into()));
        let visit = result.get("visit").and_then(Value::as_u64).unwrap_or_default();
        visits = visits.max(u32::try_from(visit).unwrap_or(u32::MAX));
    }
    map.insert("visits".into(), visits.into());
    Value::Object(map)
}

impl Scope for Sight {
    fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        let each = self.graph.nodes[self.node].for_each.as_ref();
        if let (Some(each), Some((item, index))) = (each, &self.item) {
            if *each.item == *name {
                return Some(Cow::Borrowed(item));
            }
            if name == "index" {
                return Some(Cow::Owned((*index).into()));
            }
        }
        Some(Cow::Borrowed(match name {
            "input" => &*self.input,
            "vars" => self.vars(),
            "nodes" => self.nodes(),
            "visits" => return Some(Cow::Owned(self.visit.into())),
            "error" => self.more().first().filter(|_| self.error.is_some())?,
            "joined" => self.more().last().filter(|_| self.joined.is_some())?,
            node => self.named(node)?,
        }))
    }
}
