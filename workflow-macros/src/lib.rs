//! The attribute and derive macros of `workflow-core`, which re-exports them: depend on that crate.
//!
//! Nothing is decided here. A macro reads syntax and emits data plus a thin shim; what a parameter or a
//! return type means is found by the compiler, through the traits that its type implements.

use proc_macro::TokenStream;

mod docs;
mod event;
mod event_set;
mod function;
mod keys;
mod krate;
mod lifetimes;
mod mistakes;
mod near;
mod place;
mod precondition;
mod renamed;
mod usable;
mod workflow;

/// Makes a type an event, with the roles given in `#[event(…)]`.
///
/// | key | meaning |
/// |---|---|
/// | `start` | opens a run |
/// | `stop` | ends its run |
/// | `display` | is shown to people; on its own it never drives a step |
/// | `external` | may be sent into a run from outside |
/// | `control` | drives steps; the default, needed only to say so beside `display` |
/// | `request`, `reply = Type` | asks the outside and waits for a reply of that type |
/// | `name = "…"` | the stable wire name; by default the type's own |
/// | `version = 2` | the version of its JSON, from 1, which is the default |
/// | `upgrade = path` | the function that makes this version of an older one |
/// | `crate = path` | where the library is, if not at `::workflow_core` |
///
/// ```
/// use workflow_core::prelude::*;
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(start, display, name = "shop.order")]
/// struct Order {
///     lines: Vec<String>,
/// }
/// ```
///
/// # Events that have changed
/// Journals have events as JSON, each with its version. What serde's own attributes cannot read of an earlier shape, such
/// as with `#[serde(default)]`, a function upgrades: it is given the version and the JSON that a journal has, and returns
/// the JSON of this version, or says why it cannot (anything that can be displayed). It is called when a run goes on or is
/// looked back at, for events of older versions only. A newer version than the type's is refused, and so is an older one
/// without `upgrade`. What was upgraded is not written again: the journal stays as it is.
///
/// ```
/// use serde_json::{Value, json};
/// use workflow_core::prelude::*;
///
/// /// Version 1 had one line of text.
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(start, name = "shop.order", version = 2, upgrade = order_from)]
/// struct Order {
///     lines: Vec<String>,
/// }
///
/// fn order_from(version: u32, data: Value) -> Result<Value, String> {
///     match version {
///         1 => Ok(json!({ "lines": [data["line"]] })),
///         other => Err(format!("nobody knows orders of version {other}")),
///     }
/// }
/// ```
///
/// Events that timers hold are upgraded like those in a log, and so are requests. A reply is of no event type: its JSON has
/// no version, so that its type's `Deserialize` has to read what was written.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(item: TokenStream) -> TokenStream {
    event::expand(item.into()).into()
}

/// Makes an enum "either of" several events, as an input and as an output.
///
/// Every variant holds one event that is `Clone`, or an `Arc` of any event. `#[event_set(crate = path)]`
/// says where the library is, if not at `::workflow_core`.
///
/// ```
/// use std::sync::Arc;
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Enough(u32);
/// # #[derive(Debug, Serialize, Deserialize, Event)]
/// # struct Short(u32);
///
/// #[derive(Debug, EventSet)]
/// enum Graded {
///     Enough(Enough),
///     Short(Arc<Short>),
/// }
/// ```
#[proc_macro_derive(EventSet, attributes(event_set))]
pub fn derive_event_set(item: TokenStream) -> TokenStream {
    event_set::expand(item.into()).into()
}

/// Makes the `#[step]` methods of an impl block a workflow.
///
/// | key | meaning |
/// |---|---|
/// | `output = Type` | what a run ends with, where several stop events can end it: their `EventSet` enum |
/// | `name = "…"` | the stable name; by default the type's own |
/// | `crate = path` | where the library is, if not at `::workflow_core` |
///
/// The compiler checks the graph of the steps: that runs can begin, that every step can run, that nothing loops
/// for ever, and that runs end with the output. It does so for up to 512 steps, 1,024 parameters, as many
/// outputs, and 128 fan-outs, and warns where a workflow is larger; such a one, like any other, is checked when
/// an engine is built or a run begins.
///
/// Each mistake is reported by `cargo check`, at its parameter, attribute or step. What a generic workflow
/// (`impl<T> Greeter<T>`) takes and emits is known only where its parameters are: `cargo build` checks it there,
/// where it is run or added to an engine, and reports the first mistake.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet { name: String }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeting(String);
/// # struct Greeter;
///
/// #[workflow]
/// impl Greeter {
///     #[step]
///     async fn greet(&self, greet: &Greet) -> Greeting {
///         Greeting(format!("Hello, {}!", greet.name))
///     }
/// }
/// ```
#[proc_macro_attribute]
pub fn workflow(arguments: TokenStream, item: TokenStream) -> TokenStream {
    workflow::expand(arguments.into(), &item.into()).into()
}

/// Marks a method of a `#[workflow]` impl block as a step: its parameters say when it runs, its return type
/// what it emits.
///
/// | key | meaning |
/// |---|---|
/// | `precondition = path` | is asked before each execution: a `#[precondition]` method or free function |
/// | `max_executions = N` | at most so many executions |
/// | `concurrency = N` | at most so many at a time |
/// | `timeout = "30s"` | no attempt takes longer: one that does is dropped and fails as transient; `ms`, `s`, `m`, `h`, `d` |
/// | `retry = EXPR` | a `RetryPolicy` of its own, made when an engine is built; the default is the engine's |
/// | `compact = method` | is called after a failure of class `context_limit`, before the next attempt: an `async fn` of this impl block without an attribute, which is given any of the step's parameters and returns nothing or a `Result<(), E>` |
/// | `on_error = "continue"` | a failure is recorded and the run goes on; the default is `"fail"` |
/// | `catches = [step, …]` | takes the failures of these steps as `StepFailed`; the default is those of every step that takes none |
/// | `spawn` | every execution is a task of its own |
/// | `reruns` | is meant to run again for later arrivals |
/// | `loops` | may emit what it takes, and be part of a loop that only other steps end |
/// | `name = "…"` | the stable name; by default the method's own |
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Question(String);
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Reranked(u32);
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Answer(String);
/// # struct Research { rerank: bool }
/// #[workflow]
/// impl Research {
///     #[step]
///     async fn rerank(&self, question: &Question) -> Option<Reranked> {
///         self.rerank.then(|| Reranked(question.0.len() as u32))
///     }
///
///     #[precondition]
///     fn rerank_done(&self, reranked: Option<&Reranked>) -> bool {
///         !self.rerank || reranked.is_some()
///     }
///
///     #[step(precondition = rerank_done, max_executions = 1)]
///     async fn respond(&self, question: &Question, reranked: Option<&Reranked>) -> Answer {
///         Answer(format!("{}: {:?}", question.0, reranked))
///     }
/// }
/// ```
#[proc_macro_attribute]
pub fn step(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    workflow::stray_step(&item.into()).into()
}

/// Marks a function as a precondition: it is asked whether a step that has all it needs should run now.
///
/// Sync or async; a free function, or in a `#[workflow]` impl block a method with or without `&self`. Its
/// parameters are found by type among the step's inputs and the injectables. It returns `bool`, or
/// `Result<bool, E>`. On a free function, `#[precondition(crate = path)]` says where the library is, if not
/// at `::workflow_core`.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Default, Serialize, Deserialize)]
/// # struct Settings { rerank: bool }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Reranked(u32);
///
/// #[precondition]
/// fn rerank_done(config: &Config<Settings>, reranked: Option<&Reranked>) -> bool {
///     !config.rerank || reranked.is_some()
/// }
/// ```
#[proc_macro_attribute]
pub fn precondition(arguments: TokenStream, item: TokenStream) -> TokenStream {
    precondition::expand(arguments.into(), &item.into()).into()
}
