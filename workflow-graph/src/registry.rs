//! The registry of everything that a program gives its documents. It checks nothing; `bind` does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use workflow_core::Workflow;
use workflow_core::table::DependencyTable;

use crate::{AgentExecutor, Document, NodeContext, NodeError, ScriptedExecutor, ToolExecutor};

mod executors;
mod function;

pub(crate) use executors::Executors;

use executors::Played;
use function::Registered;

#[cfg(test)]
mod tests;

/// The functions, executors and further graphs that documents name.
///
/// `Document::bind` checks a document against a registry, and finds every name that the registry lacks. One registry
/// serves any number of documents.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use workflow_graph::{NodeContext, NodeError, Registry};
///
/// #[derive(Deserialize)]
/// struct Find { order: String }
///
/// #[derive(Serialize)]
/// struct Order { paid: u64 }
///
/// let registry = Registry::new()
///     .function("orders.find", |find: Find, _| async move {
///         let paid = find.order.trim_start_matches('A').parse()?;
///         Ok::<_, NodeError>(Order { paid })
///     })
///     .allow_commands();
/// # drop(registry);
/// ```
#[derive(Default)]
pub struct Registry {
    executors: Executors,
    /// Names that several functions have. Documents that use them are refused.
    twice: BTreeSet<Arc<str>>,
    documents: Vec<Document>,
    /// Start events by the names of workflows.
    workflows: BTreeMap<&'static str, Vec<Arc<str>>>,
    allows_commands: bool,
}

impl Registry {
    /// A registry of nothing. Documents whose nodes are values, graphs and people need no more.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a function, which nodes call by `name`.
    ///
    /// Its input is the node's `with`, read by serde; an input that cannot be read fails the node, permanently, with the
    /// path of the mistake. A function without input takes `()`. Its output becomes the data of the node. Any error
    /// becomes a [`NodeError`], and is transient unless the function says otherwise.
    ///
    /// Documents that call a name which two functions have are refused, so that none replaces another unnoticed.
    ///
    /// ```
    /// use workflow_graph::{NodeContext, NodeError, Registry};
    ///
    /// async fn greet(name: String, context: NodeContext) -> Result<String, NodeError> {
    ///     if name.is_empty() {
    ///         return Err(NodeError::rejected("nobody is there"));
    ///     }
    ///     Ok(format!("Hello, {name}! This is visit {}.", context.iteration()))
    /// }
    ///
    /// let registry = Registry::new().function("greet", greet);
    /// # drop(registry);
    /// ```
    #[must_use]
    pub fn function<I, O, E, F, R>(self, name: impl Into<Arc<str>>, function: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + 'static,
        E: Into<NodeError> + 'static,
        F: Fn(I, NodeContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
    {
        let name = name.into();
        let registered = Registered::of(name.clone(), function);
        self.add(name, registered)
    }

    /// Adds a function, as [`function`](Self::function) does, with the schemas of its input and output.
    ///
    /// Documents are then checked by them: `with` has to give every required field, and expressions may read only fields
    /// that the output has.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    /// use workflow_graph::{NodeContext, NodeError, Registry};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Refund { order: String, cents: u64 }
    ///
    /// #[derive(Serialize, JsonSchema)]
    /// struct Refunded { cents: u64 }
    ///
    /// let registry = Registry::new().described("payments.refund", |refund: Refund, _| async move {
    ///     Ok::<_, NodeError>(Refunded { cents: refund.cents })
    /// });
    /// # drop(registry);
    /// ```
    #[must_use]
    pub fn described<I, O, E, F, R>(self, name: impl Into<Arc<str>>, function: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + 'static,
        E: Into<NodeError> + 'static,
        F: Fn(I, NodeContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
    {
        let name = name.into();
        let registered = Registered::of(name.clone(), function).described::<I, O>();
        self.add(name, registered)
    }

    fn add(mut self, name: Arc<str>, registered: Registered) -> Self {
        if self.executors.functions.insert(name.clone(), registered).is_some() {
            self.twice.insert(name);
        }
        self
    }

    /// The executor of agent nodes, which also answers the questions to models. A second one replaces it.
    #[must_use]
    pub fn agents(mut self, agents: impl AgentExecutor) -> Self {
        self.executors.agents = Some(Arc::new(agents));
        self
    }

    /// The executor of tool nodes. A second one replaces it.
    #[must_use]
    pub fn tools(mut self, tools: impl ToolExecutor) -> Self {
        self.executors.tools = Some(Arc::new(tools));
        self
    }

    /// Says which skills the executor of agents has, by name. Several calls add up.
    ///
    /// Without a call it is unknown which skills there are, and no node fails for want of one.
    ///
    /// ```
    /// use workflow_graph::Registry;
    ///
    /// let registry = Registry::new().skills(["github", "linear"]);
    /// # drop(registry);
    /// ```
    #[must_use]
    pub fn skills<S: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        let skills = self.executors.skills.get_or_insert_default();
        skills.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds the graphs of a document, which other documents may name as children.
    ///
    /// ```
    /// use workflow_graph::{Document, Registry};
    ///
    /// let pricing = Document::parse("graph: pricing\nnodes: {price: {value: {cents: 5}}}\n", "pricing.yaml")?;
    /// let registry = Registry::new().document(&pricing);
    /// # drop(registry);
    /// # Ok::<(), workflow_graph::CheckError>(())
    /// ```
    #[must_use]
    pub fn document(mut self, document: &Document) -> Self {
        self.documents.push(document.clone());
        self
    }

    /// Says that the engine hosts the typed workflow `W`, which nodes may name by the name of its table.
    ///
    /// The workflow itself is given to the engine.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_graph::Registry;
    ///
    /// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// #[event(start)]
    /// struct PriceAsked { cents: u64 }
    ///
    /// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// #[event(stop)]
    /// struct Price { cents: u64 }
    ///
    /// struct Pricing;
    ///
    /// #[workflow]
    /// impl Pricing {
    ///     #[step]
    ///     async fn price(&self, asked: &PriceAsked) -> Price {
    ///         Price { cents: asked.cents + asked.cents / 5 }
    ///     }
    /// }
    ///
    /// let registry = Registry::new().workflow::<Pricing>();
    /// # drop(registry);
    /// ```
    #[must_use]
    pub fn workflow<W: Workflow>(mut self) -> Self {
        // The engine reports what is wrong with a table.
        let starts = DependencyTable::from_spec(W::TABLE).map(|table| {
            let starts = table.events().iter().filter(|event| event.roles().is_start());
            starts.map(|event| event.name().into()).collect()
        });
        self.workflows.insert(W::TABLE.name(), starts.unwrap_or_default());
        self
    }

    /// Lets documents run programs of the machine, with the rights of this process.
    ///
    /// Without it a document with `command` is refused. Allow it for documents of authors that you trust only.
    #[must_use]
    pub fn allow_commands(mut self) -> Self {
        self.allows_commands = true;
        self
    }

    /// Lets a script stand in for functions, tools, agents, commands and people. A second one replaces it.
    ///
    /// Documents may then name functions and tools that the registry lacks, and no function or tool of the registry is called.
    /// Commands are played, so they need not be allowed.
    #[must_use]
    pub fn script(mut self, script: ScriptedExecutor) -> Self {
        self.executors.played = Some(Played::new(script));
        self
    }

    /// The functions, tools and agents of runs.
    pub(crate) fn executors(&self) -> &Executors {
        &self.executors
    }

    pub(crate) fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Start events by the names of workflows.
    pub(crate) fn workflows(&self) -> &BTreeMap<&'static str, Vec<Arc<str>>> {
        &self.workflows
    }

    pub(crate) fn allows_commands(&self) -> bool {
        self.allows_commands
    }

    pub(crate) fn has_twice(&self, function: &str) -> bool {
        self.twice.contains(function)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let documents: Vec<&str> = self.documents.iter().map(Document::name).collect();
        f.debug_struct("Registry")
            .field("executors", &self.executors)
            .field("documents", &documents)
            .field("workflows", &self.workflows.keys())
            .field("allows_commands", &self.allows_commands)
            .finish_non_exhaustive()
    }
}
