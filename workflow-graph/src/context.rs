//! The surroundings of a node's work, beside its input. The walk makes them for each attempt.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use workflow_core::signature::Injectables;
use workflow_core::{Cancellation, Children, Display, Engine, RunContext, RunId};

use crate::retried::Again;
use crate::sight::Held;
use crate::state::Calls;
use crate::{Activity, NodeActivity, NodeError, ToolCall};

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

/// The longest text that is displayed, in bytes.
const MOST_TEXT: usize = 1 << 20;

/// A text within the bound of displays.
fn shown(text: &str) -> Arc<str> {
    text[..text.floor_char_boundary(MOST_TEXT)].into()
}

/// The surroundings of an attempt of a node: functions, tools and agents receive it.
///
/// Clones share everything.
///
/// ```
/// use serde_json::{Value, json};
/// use workflow_graph::{NodeContext, NodeError, Registry};
///
/// async fn import(pages: Vec<String>, context: NodeContext) -> Result<Value, NodeError> {
///     // An attempt after a crash continues where the one before it stood.
///     let mut done: usize = context.saved().await?.unwrap_or_default();
///     for page in pages.iter().skip(done) {
///         context.progress(format!("page {page}"));
///         done += 1;
///         context.save(done).await?;
///     }
///     Ok(json!({"pages": done, "key": context.idempotency_key()}))
/// }
///
/// let registry = Registry::new().function("pages.import", import);
/// # drop(registry);
/// ```
#[derive(Clone)]
pub struct NodeContext {
    parts: Arc<Parts>,
    /// Runs of the node in the present attempt, before this one.
    again: u32,
}

/// The parts that the walk gives an attempt.
pub(crate) struct Parts {
    pub(crate) run: RunId,
    pub(crate) node: Arc<str>,
    pub(crate) iteration: u32,
    /// From 1.
    pub(crate) attempt: u32,
    /// The place of the item, in a node with `for_each`.
    pub(crate) item: Option<u32>,
    /// The input of the graph, with its defaults.
    pub(crate) input: Held,
    /// The latest results that the node reads.
    pub(crate) results: Vec<(Arc<str>, Held)>,
    /// Runs of the node before this attempt, over all of its visits.
    pub(crate) runs: u32,
    pub(crate) services: Services,
}

/// What the run gives an attempt. Most is made when it is first asked for, since few functions ask for it.
pub(crate) struct Services {
    /// `None` in tests, which have everything.
    call: Option<Injectables>,
    pub(crate) key: OnceLock<String>,
    pub(crate) display: OnceLock<Display>,
    pub(crate) children: OnceLock<Children>,
    pub(crate) cancellation: OnceLock<Cancellation>,
    pub(crate) saved: OnceLock<RunContext>,
    /// This attempt, or one before it, may have saved work.
    may_have_saved: AtomicBool,
}

impl Services {
    pub(crate) fn of(call: Injectables, attempt: u32) -> Self {
        Self {
            saved: OnceLock::new(),
            may_have_saved: AtomicBool::new(attempt > 1 || call.may_have_begun()),
            call: Some(call),
            key: OnceLock::new(),
            display: OnceLock::new(),
            children: OnceLock::new(),
            cancellation: OnceLock::new(),
        }
    }

    fn key(&self) -> &str {
        let key = || self.call.as_ref().map(Injectables::idempotency_key).unwrap_or_default();
        self.key.get_or_init(key)
    }

    fn display(&self) -> &Display {
        let none = || Display::detached().0;
        self.display.get_or_init(|| self.call.as_ref().map_or_else(none, Injectables::display))
    }

    fn children(&self) -> &Children {
        let children = || self.call.as_ref().map_or_else(Children::detached, Injectables::children);
        self.children.get_or_init(children)
    }

    fn engine(&self) -> Result<Engine, NodeError> {
        let call = self.call.as_ref().ok_or_else(|| NodeError::permanent("no engine drives the run"))?;
        call.engine().map_err(|error| NodeError::permanent(error.to_string()))
    }

    /// # Errors
    /// If the step does not declare that it uses a context, which is a defect of the table.
    fn saved(&self) -> Result<&RunContext, NodeError> {
        let Some(call) = &self.call else { return Ok(self.saved.get_or_init(RunContext::in_memory)) };
        if let Some(saved) = self.saved.get() {
            return Ok(saved);
        }
        let saved = call.run_context().map_err(|error| NodeError::permanent(error.to_string()))?;
        Ok(self.saved.get_or_init(|| saved))
    }

    fn cancellation(&self) -> &Cancellation {
        let none = || Cancellation::detached().0;
        self.cancellation.get_or_init(|| self.call.as_ref().map_or_else(none, Injectables::cancellation))
    }
}

impl std::fmt::Debug for NodeContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Parts { run, node, iteration, attempt, .. } = &*self.parts;
        let mut debug = f.debug_struct("NodeContext");
        debug.field("run", run).field("node", node).field("iteration", iteration).field("attempt", attempt);
        debug.finish_non_exhaustive()
    }
}

impl NodeContext {
    pub(crate) fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts), again: 0 }
    }

    /// The same after this many runs in the present attempt.
    pub(crate) fn after(&self, runs: u32) -> Self {
        Self { parts: Arc::clone(&self.parts), again: self.again.saturating_add(runs) }
    }

    /// The id of the node.
    pub fn node(&self) -> &str {
        &self.parts.node
    }

    /// The run that visits the node.
    pub fn run(&self) -> &RunId {
        &self.parts.run
    }

    /// Which visit of the node in this run it is, from 1.
    pub fn iteration(&self) -> u32 {
        self.parts.iteration
    }

    /// Which attempt of the visit it is, from 1. In a node with `for_each` each item has attempts of its own.
    pub fn attempt(&self) -> u32 {
        self.parts.attempt
    }

    /// The place of the item in its list, from 0. `None` unless the node has `for_each`.
    pub fn item(&self) -> Option<u32> {
        self.parts.item
    }

    /// A key that is the same in every attempt of this visit, or item, also after a crash, and in no other one.
    ///
    /// Pass it to systems that perform each key once.
    ///
    /// ```
    /// use workflow_graph::{NodeContext, NodeError, Registry};
    ///
    /// # async fn pay(key: &str, cents: u64) -> Result<u64, std::io::Error> { Ok(cents + key.len() as u64) }
    /// let registry = Registry::new().function("pay", |cents: u64, context: NodeContext| async move {
    ///     Ok::<_, NodeError>(pay(context.idempotency_key(), cents).await?)
    /// });
    /// # drop(registry);
    /// ```
    pub fn idempotency_key(&self) -> &str {
        self.parts.services.key()
    }

    /// The input of the graph, with its defaults.
    pub fn input(&self) -> &Value {
        &self.parts.input
    }

    /// The data of the latest result of the node `id`. `None` if it has none, or if this node does not read it.
    ///
    /// Agents read what `reads` lists. Other nodes read what their expressions name.
    pub fn result(&self, id: &str) -> Option<&Value> {
        self.of_node(id)?.data()
    }

    /// The calls of tools in the latest result of the node `id`, in order: those of its agent, of all items in a node with
    /// `for_each`. Empty if it made none, or if this node does not read its result.
    pub fn calls(&self, id: &str) -> Vec<ToolCall> {
        let calls = self.of_node(id).and_then(|result| result.part::<Calls>().ok());
        calls.unwrap_or_default().calls
    }

    fn of_node(&self, id: &str) -> Option<&Held> {
        self.parts.results.iter().find(|(node, _)| **node == *id).map(|(_, result)| result)
    }

    /// The engine that drives the run.
    ///
    /// # Errors
    ///
    /// It drives the run no more, or the context is of no run, as in a test.
    pub fn engine(&self) -> Result<Engine, NodeError> {
        self.parts.services.engine()
    }

    /// Runs before this attempt of the node in this run, over all of its visits.
    pub(crate) fn runs(&self) -> u32 {
        self.parts.runs.saturating_add(self.again)
    }

    /// Shows viewers of the run how far the work is: an [`Activity::Progress`], which leaves at once.
    ///
    /// Never waits and never fails. A text beyond 1 MiB is cut.
    pub fn progress(&self, text: impl Into<Arc<str>>) {
        let text = text.into();
        let text = if text.len() > MOST_TEXT { shown(&text) } else { text };
        self.show(Activity::Progress { text });
    }

    /// Shows viewers of the run that the work calls a tool with this input. [`tool_returned`](Self::tool_returned) belongs to
    /// it. An input beyond 32 KiB of JSON is cut.
    ///
    /// The result of the node has the calls that an agent returns with it: [`AgentResult::calls`](crate::AgentResult::calls).
    pub fn tool_called(&self, tool: impl Into<Arc<str>>, input: impl Into<Value>) {
        let ToolCall { tool, input, .. } = ToolCall::returned(tool, input, Value::Null).bounded();
        self.show(Activity::ToolCalled { tool, input });
    }

    /// Shows viewers of the run how a call of a tool has ended. An output beyond 32 KiB of JSON is cut.
    pub fn tool_returned(&self, call: &ToolCall) {
        let ToolCall { tool, ok, output, error, .. } = call.clone().bounded();
        self.show(Activity::ToolReturned { tool, ok, output, error });
    }

    /// Shows the instruction of an agent that its visit has made. That of an item is not shown.
    pub(crate) fn instructed(&self, instruction: &str) {
        if self.item().is_none() {
            self.show(Activity::Instructed { instruction: shown(instruction) });
        }
    }

    /// Shows that something is tried again.
    pub(crate) fn again(&self, again: Again) {
        self.show(Activity::Again(again));
    }

    fn show(&self, activity: Activity) {
        let Parts { node, iteration, attempt, item, services, .. } = &*self.parts;
        let (iteration, attempt, item) = (*iteration, *attempt, *item);
        services.display().show(NodeActivity { node: node.clone(), iteration, attempt, item, activity });
    }

    /// Stores partial work, in place of what was saved before: later attempts of this visit, or item, find it.
    ///
    /// It is stored when the future completes, and outlives a crash if the engine has a store of contexts. The success of
    /// the visit removes it.
    ///
    /// # Errors
    ///
    /// The work has no JSON, which is permanent, or the store fails.
    pub fn save<T: Serialize>(&self, work: T) -> impl Future<Output = Result<(), NodeError>> + Send + use<T> {
        let work = serde_json::to_value(work).map_err(NodeError::permanent);
        let context = self.clone();
        async move {
            let services = &context.parts.services;
            services.may_have_saved.store(true, Ordering::Relaxed);
            Ok(services.saved()?.set(&context.saved_key(), work?).await?)
        }
    }

    /// The partial work that this attempt, or one before it, has saved. `None` if there is none.
    ///
    /// # Errors
    ///
    /// The work is no `T`, which is permanent, or the store fails.
    pub async fn saved<T: DeserializeOwned>(&self) -> Result<Option<T>, NodeError> {
        let services = &self.parts.services;
        let Some(work) = services.saved()?.get::<Value>(&self.saved_key()).await? else { return Ok(None) };
        services.may_have_saved.store(true, Ordering::Relaxed);
        match serde_path_to_error::deserialize(work) {
            Ok(work) => Ok(Some(work)),
            Err(error) => {
                let path = error.path().to_string();
                let at = if path == "." { String::new() } else { format!(" at `{path}`") };
                let message =
                    format!("the saved work of `{}` cannot be read{at}: {}", self.node(), error.inner());
                Err(NodeError::permanent(message))
            }
        }
    }

    /// Whether there may be saved work to remove.
    pub(crate) fn may_have_saved(&self) -> bool {
        self.parts.services.may_have_saved.load(Ordering::Relaxed)
    }

    /// Removes what was saved. The walk calls it after success. It writes nothing where nothing was saved.
    pub(crate) async fn forget(&self) -> Result<(), NodeError> {
        let (key, saved) = (self.saved_key(), self.parts.services.saved()?);
        if saved.get::<Value>(&key).await?.is_some() {
            saved.remove(&key).await?;
        }
        Ok(())
    }

    /// The key of the execution: no other visit, item or branch has it, and every attempt and every restart has.
    fn saved_key(&self) -> String {
        format!("graph.saved:{}", self.parts.services.key())
    }

    /// Starts child runs of this attempt: of typed workflows, and of graphs.
    pub fn children(&self) -> &Children {
        self.parts.services.children()
    }

    /// Tells the work that nobody waits for it any more.
    pub fn cancellation(&self) -> &Cancellation {
        self.parts.services.cancellation()
    }
}
