//! The executors of a registry, as runs call them: the program's own, or a script in their place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::function::{Function, Registered};
use crate::{AgentExecutor, NodeContext, NodeError, ScriptedExecutor, ToolExecutor};

/// The functions, tools and agents that nodes call. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Executors {
    pub(super) functions: BTreeMap<Arc<str>, Registered>,
    pub(super) agents: Option<Arc<dyn AgentExecutor>>,
    pub(super) tools: Option<Arc<dyn ToolExecutor>>,
    pub(super) skills: Option<BTreeSet<Arc<str>>>,
    pub(super) played: Option<Played>,
}

/// A script in each of its roles.
#[derive(Clone)]
pub(super) struct Played {
    script: ScriptedExecutor,
    function: Arc<dyn Function>,
    agents: Arc<dyn AgentExecutor>,
    tools: Arc<dyn ToolExecutor>,
}

impl Played {
    pub(super) fn new(script: ScriptedExecutor) -> Self {
        let function = PlayedFunction(script.clone());
        let (agents, tools) = (Arc::new(script.clone()), Arc::new(script.clone()));
        Self { script, function: Arc::new(function), agents, tools }
    }
}

struct PlayedFunction(ScriptedExecutor);

impl Function for PlayedFunction {
    fn call(&self, _: Value, context: NodeContext) -> BoxFuture<'static, Result<Value, NodeError>> {
        let script = self.0.clone();
        Box::pin(async move { script.play(&context).await })
    }
}

impl Executors {
    /// The function of this name. With a script, every name is one.
    pub(crate) fn function(&self, name: &str) -> Option<Arc<dyn Function>> {
        match &self.played {
            Some(played) => Some(played.function.clone()),
            None => self.functions.get(name).map(|registered| registered.function.clone()),
        }
    }

    pub(crate) fn agents(&self) -> Option<&Arc<dyn AgentExecutor>> {
        self.played.as_ref().map(|played| &played.agents).or(self.agents.as_ref())
    }

    pub(crate) fn tools(&self) -> Option<&Arc<dyn ToolExecutor>> {
        self.played.as_ref().map(|played| &played.tools).or(self.tools.as_ref())
    }

    /// The skills that the agents have; nothing if it is not known.
    pub(crate) fn skills(&self) -> Option<&BTreeSet<Arc<str>>> {
        self.skills.as_ref()
    }

    pub(crate) fn script(&self) -> Option<&ScriptedExecutor> {
        self.played.as_ref().map(|played| &played.script)
    }

    /// The names of the functions of the program, also where a script stands in for them.
    pub(crate) fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(|name| &**name)
    }

    /// The schema of a function's input, if it has one.
    pub(crate) fn input_of(&self, function: &str) -> Option<&Value> {
        self.functions.get(function)?.input.as_deref()
    }

    /// The schema of a function's output, if it has one.
    pub(crate) fn output_of(&self, function: &str) -> Option<&Value> {
        self.functions.get(function)?.output.as_deref()
    }
}

impl fmt::Debug for Executors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executors")
            .field("functions", &self.functions.keys())
            .field("agents", &self.agents.is_some())
            .field("tools", &self.tools.is_some())
            .field("skills", &self.skills)
            .field("script", &self.script())
            .finish_non_exhaustive()
    }
}
