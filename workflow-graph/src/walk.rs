//! The steps of a graph's table: each does one part of a visit. This file owns the way in; a part is a file of its own.
//! Nothing is stored between calls: a step finds everything among its inputs.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value};
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::table::StepIndex;
use workflow_core::{StepError, Steps, UnfitJson};

use crate::check::Layout;
use crate::document::model::{Dialect, Graph, Work};
use crate::part::Part;
use crate::registry::Executors;
use crate::state::names;
use crate::table::{Plan, Tokens};
use crate::{begin, schema};

mod visit;
mod work;
mod child;
mod leave;
mod each;
mod people;
mod caught;
mod decide;
mod join;
mod sweny;
mod hive;

pub(crate) use hive::{Names, written};
pub(crate) use leave::label;

/// A graph, bound to what does the work of its nodes.
pub(crate) struct Walk {
    pub(crate) graph: Arc<Graph>,
    pub(crate) layout: Layout,
    pub(crate) plans: Vec<Plan>,
    pub(crate) executors: Arc<Executors>,
    /// Defaults of the top-level properties of the input.
    pub(crate) defaults: Map<String, Value>,
    tokens: Tokens,
    /// Every graph that was bound together with this one, by name.
    children: Arc<HashMap<Arc<str>, Child>>,
}

/// A graph that others name as a child.
#[derive(Debug)]
pub(crate) struct Child {
    /// The hash of its document.
    pub(crate) document: Arc<str>,
    /// Whether its document bounds the time of its runs.
    pub(crate) is_bounded: bool,
}

impl Walk {
    pub(crate) fn new(
        graph: Arc<Graph>,
        layout: Layout,
        (plans, tokens): (Vec<Plan>, Tokens),
        executors: Arc<Executors>,
        children: Arc<HashMap<Arc<str>, Child>>,
    ) -> Self {
        let defaults = graph.input.as_ref().map(|schema| schema::defaults(&schema.value)).unwrap_or_default();
        Self { graph, layout, plans, executors, defaults, tokens, children }
    }

    /// The hash of the document.
    pub(crate) fn document(&self) -> Option<Arc<str>> {
        self.children.get(&self.graph.name.value).map(|child| child.document.clone())
    }

    fn id(&self, node: usize) -> &Arc<str> {
        &self.graph.nodes[node].id.value
    }

    /// The token of a route.
    fn token(&self, from: usize, to: usize) -> Result<&Arc<str>, StepError> {
        let token = self.tokens[from].iter().find(|(place, _)| *place == to).map(|(_, token)| token);
        token.ok_or_else(|| StepError::permanent("the graph has no such route"))
    }

    /// The input of a run, with its defaults.
    pub(crate) fn input(&self, given: &Value) -> Value {
        begin::input(&self.graph, &self.defaults, given)
    }

    /// Whether a run sees its input as it was given.
    fn takes_as_given(&self, given: &Value) -> bool {
        matches!(self.graph.dialect, Dialect::Native) && schema::is_filled(given, &self.defaults)
    }

    fn plan(&self, step: StepIndex) -> Result<&Plan, StepError> {
        self.plans.get(step.get()).ok_or_else(|| StepError::permanent("the graph has no such step"))
    }

    /// A part of a visit in a step of its own.
    async fn part(self: Arc<Self>, step: StepIndex, call: StepCall) -> Result<Emitted, StepError> {
        let plan = self.plan(step)?;
        match plan.part {
            Part::Visit => Box::pin(Arc::clone(&self).visit(step, call)).await,
            Part::Each => self.each(plan, call).await,
            Part::Collect => self.collect(plan, call).await,
            Part::Reply => self.reply(plan, call).await,
            Part::Expired => Err(self.expired(plan)),
            Part::Caught => self.caught(plan, call),
            Part::Route => self.route(plan, call).await,
            Part::Branch => self.branch(plan, call),
            Part::Join => self.join(plan, call),
        }
    }
}

impl Steps for Walk {
    fn call(
        self: Arc<Self>,
        step: StepIndex,
        call: StepCall,
    ) -> BoxFuture<'static, Result<Emitted, StepError>> {
        // Most calls are visits. Their future holds nothing of the other parts, so that it is small.
        match self.plan(step) {
            Ok(Plan { part: Part::Visit, .. }) => Box::pin(self.visit(step, call)),
            _ => Box::pin(self.part(step, call)),
        }
    }

    fn accept(&self, event: &str, data: &Value) -> Result<(), UnfitJson> {
        if event == names::INPUT {
            return begin::accept(&self.graph, &self.defaults, data);
        }
        let node = event.strip_suffix(":answer").and_then(|id| self.graph.find(id));
        if node.is_some_and(|node| self.graph.nodes[node].hive().is_some()) && !data.is_object() {
            return Err(UnfitJson::new("", "the reply to a pause is a map of keys of memory"));
        }
        let Some(Work::Human(human)) = node.map(|node| &self.graph.nodes[node].work) else { return Ok(()) };
        let Some(schema) = &human.reply else { return Ok(()) };
        match schema::unfit(schema, data).into_iter().next() {
            Some(unfit) => Err(UnfitJson::new(unfit.path, unfit.problem)),
            None => Ok(()),
        }
    }
}

/// A value with the fields of `T`, which are read without a copy of the others.
fn read<'a, T: Deserialize<'a>>(value: &'a Value) -> Result<T, StepError> {
    T::deserialize(value).map_err(|error| unread(&error))
}

fn unread(error: &serde_json::Error) -> StepError {
    StepError::permanent(format!("the log has an event in another form: {error}"))
}
