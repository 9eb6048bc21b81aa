//! The names of expressions as a visit saw them, out of the log.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::{Map, Value, json};
use workflow_core::report::{ExecutionTrace, LoggedEvent};
use workflow_core::{ScopeId, Seq};

use super::SeenValue;
use super::memory::Memory;
use crate::document::model::Work;
use crate::document::template::{Expression, Template};
use crate::expression::{Scope, short};
use crate::routes::RouteKind;
use crate::sight::about;
use crate::state::{Begin, Count, Joined, Token, names};
use crate::trace::{EventName, History, Log, data};
use crate::{begin, schema};

/// The most bytes of a value that an explanation has in full.
const VALUE: usize = 1_000;

/// The log as the routes of one visit saw it: what was visible when the visit's last step began, and what that left.
pub(super) struct View<'l, 'a> {
    log: &'l Log<'a>,
    /// The step that began the visit: the node.
    node: &'a str,
    scope: ScopeId,
    until: Seq,
    /// The events of the step that took the route.
    own: Vec<&'a LoggedEvent>,
    /// Which visit of its node it is.
    visit: u32,
    /// The failure that led to the visit, or away from it.
    error: Option<Value>,
    joined: Option<Value>,
    input: OnceCell<Value>,
    vars: OnceCell<Value>,
    nodes: OnceCell<Value>,
    /// Of Hive documents.
    memory: OnceCell<Option<Memory>>,
}

impl<'l, 'a> View<'l, 'a> {
    /// The view of the visit at this place, as its routes of this kind have it.
    pub(super) fn at(log: &'l Log<'a>, history: &History, place: usize, kind: RouteKind) -> Option<Self> {
        let visited = &history.visited[place];
        let (began, mut ended) = (log.execution(visited.began)?, log.execution(visited.ended_by)?);
        if kind == RouteKind::Branch {
            // The visit may have ended later, with the failure of its branches.
            ended = log.opener(visited.began).unwrap_or(ended);
        }
        let iteration = history.trace.visits[place].iteration;
        // Only routes of a failure see that of the visit itself.
        Some(Self::of(log, began, ended, iteration, kind == RouteKind::Failure))
    }

    /// The values of the paths of an expression.
    pub(super) fn seen(&self, expression: &Expression) -> Vec<SeenValue> {
        let bounded = |value: Value| match value.to_string().len() {
            ..=VALUE => value,
            _ => short(&value).into(),
        };
        let values = expression.parsed.values(self).into_iter();
        let seen = values.map(|(path, value)| {
            let ends = match value {
                None => expression.parsed.end_of(&path, self),
                Some(Value::Null) => self.origin(&path),
                Some(_) => None,
            };
            SeenValue { path, value: value.map(bounded), ends }
        });
        seen.collect()
    }

    /// Where a null comes from: the expression of the value that the document writes for it.
    fn origin(&self, path: &str) -> Option<String> {
        let (node, key) = path.split_once('.')?;
        let Work::Value(Template::Map(fields)) = &self.log.graph.nodes[self.log.graph.find(node)?].work
        else {
            return None;
        };
        let (_, field) = fields.iter().find(|(name, _)| **name == *key)?;
        let Template::Expression(written) = field else { return None };
        let source = written.parsed.source();
        // What the value read may have changed since.
        let root = source.split(['.', '[']).next().unwrap_or_default();
        let is_later = |root: &LoggedEvent| self.event(node).is_none_or(|event| root.seq > event.seq);
        let has_changed = self.event(root).is_some_and(is_later);
        let ends = written.parsed.end_of(source, self).filter(|_| !has_changed);
        Some(format!("from `{source}`{}", ends.map_or_else(String::new, |ends| format!(", where {ends}"))))
    }

    /// Whether a condition holds, by the rules of its document.
    pub(super) fn holds(&self, condition: &Expression) -> Result<bool, String> {
        let holds = match self.log.graph.hive() {
            Some(_) => condition.parsed.evaluate_hive_condition(self),
            None => condition.parsed.evaluate_condition(self),
        };
        holds.map_err(|error| error.to_string())
    }

    /// How often the route with this key had been taken before.
    pub(super) fn used(&self, key: &str) -> u64 {
        let taken = self.log.latest(&names::of(self.node, "taken"), self.scope, self.until);
        taken.and_then(|event| event.value.as_json()?.get(key)?.as_u64()).unwrap_or_default()
    }

    /// The view of a visit that `began` began and `ended` ended. `is_failure`: `error` is its own.
    pub(super) fn of(
        log: &'l Log<'a>,
        began: &'a ExecutionTrace,
        ended: &'a ExecutionTrace,
        visit: u32,
        is_failure: bool,
    ) -> Self {
        let own: Vec<_> = ended.emitted.iter().filter_map(|seq| log.event(*seq)).collect();
        let trigger = log.event(began.trigger);
        let of_trigger = || {
            let joined = || trigger.and_then(data::<Joined>).and_then(|joined| joined.error);
            let error = trigger.and_then(data::<Token>).and_then(|token| token.error).or_else(joined);
            error.map(|error| json!(error))
        };
        let of_result = || {
            let result = own.iter().find(|event| *event.event == *began.step);
            let error = result.and_then(|result| result.value.as_json()?.get("error").cloned());
            // A visit that failed for good has left no result, and its routes saw the failure itself.
            error.or_else(|| log.failure(ended.trigger).map(|error| json!(error)))
        };
        let joined = trigger.filter(|event| matches!(EventName::of(&event.event), EventName::Joined(_)));
        let joined = joined
            .and_then(data::<Joined>)
            .map(|joined| json!({"failed": joined.failed, "branches": joined.branches}));
        let error = if is_failure { of_result() } else { of_trigger() };
        Self {
            log,
            node: &began.step,
            scope: began.scope,
            until: ended.trigger,
            own,
            visit,
            error,
            joined,
            input: OnceCell::new(),
            vars: OnceCell::new(),
            nodes: OnceCell::new(),
            memory: OnceCell::new(),
        }
    }

    /// The latest event of this name that the visit saw or left.
    fn event(&self, name: &str) -> Option<&'a LoggedEvent> {
        let own = self.own.iter().rev().find(|event| *event.event == *name).copied();
        own.or_else(|| self.log.latest(name, self.scope, self.until))
    }

    /// The data of a node's latest result.
    fn data(&self, node: &str) -> Option<&'a Value> {
        self.log.graph.find(node)?;
        self.event(node)?.value.as_json()?.get("data").or(Some(&Value::Null))
    }

    /// The input of the run, with the defaults of its schema.
    fn input(&self) -> Value {
        let start = self.log.latest(names::INPUT, ScopeId::ROOT, self.until);
        let given = start.and_then(data::<Begin>).map(|begin| begin.input).unwrap_or_default();
        let graph = self.log.graph;
        let schema = graph.input.as_ref();
        let defaults = schema.map(|schema| schema::defaults(&schema.value)).unwrap_or_default();
        begin::input(graph, &defaults, &given)
    }

    fn vars(&self) -> Value {
        let value = |name: &str| self.event(&names::variable(name)).and_then(|event| event.value.as_json());
        let vars = self.log.graph.vars.iter().map(|var| {
            let name = &*var.name.value;
            (name.to_owned(), value(name).unwrap_or(&var.first).clone())
        });
        Value::Object(vars.collect())
    }

    fn nodes(&self) -> Value {
        let mut nodes = Map::new();
        for node in &self.log.graph.nodes {
            let id = &*node.id.value;
            let mut own = self.own.iter().rev();
            let name = names::of(id, "count");
            let count = own.find(|event| event.event == name).copied();
            let count =
                count.or_else(|| self.log.counted(id, self.scope, self.until)).and_then(data::<Count>);
            let result = self.event(id).and_then(|event| event.value.as_json());
            let mut about = about(result, count.unwrap_or_default());
            // The present visit counts, with or without a result.
            if id == self.node {
                about["visits"] = self.visit.into();
            }
            nodes.insert(id.to_owned(), about);
        }
        Value::Object(nodes)
    }
}

impl Scope for View<'_, '_> {
    fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        let memory = self.memory.get_or_init(|| {
            let result = self.event(self.node)?.value.as_json()?;
            Memory::of(self.log, self.node, result, || self.input(), (self.scope, self.until), &self.own)
        });
        if let Some(memory) = memory {
            return memory.get(name);
        }
        Some(match name {
            "input" => Cow::Borrowed(self.input.get_or_init(|| self.input())),
            "vars" => Cow::Borrowed(self.vars.get_or_init(|| self.vars())),
            "nodes" => Cow::Borrowed(self.nodes.get_or_init(|| self.nodes())),
            "visits" => Cow::Owned(self.visit.into()),
            "error" => Cow::Borrowed(self.error.as_ref()?),
            "joined" => Cow::Borrowed(self.joined.as_ref()?),
            node => Cow::Borrowed(self.data(node)?),
        })
    }
}
