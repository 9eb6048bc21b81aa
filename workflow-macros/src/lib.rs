//! The attribute and derive macros of `workflow-core` and `workflow-agent`, which re-export them: depend on those crates.
//!
//! The macros decide nothing. A macro reads syntax and emits data and thin shims. The compiler finds out what
//! a parameter or a return type means, through the traits that the type implements. Each macro has three
//! phases: parse, validate, generate. After a mistake, a macro still emits what it understood, so that one
//! mistake is one error.

use proc_macro::TokenStream;

mod docs;
mod event;
mod event_set;
mod function;
mod keys;
mod krate;
mod levels;
mod lifetimes;
mod mistakes;
mod near;
mod span_range;
mod precondition;
mod renamed;
mod tool;
mod tools;
mod usable;
mod workflow;

/// Makes a type an event, with the roles given in `#[event(…)]`.
///
/// | key | meaning |
/// |---|---|
/// | `start` | opens a run |
/// | `stop` | ends its run |
/// | `display` | is shown to people; with this role alone it never drives a step |
/// | `external` | can be sent into a run from outside |
/// | `control` | drives steps: the default, needed only beside `display` |
/// | `request`, `reply = Type` | asks the outside and waits for a reply of that type |
/// | `name = "…"` | the stable wire name; default: the name of the type |
/// | `version = 2` | the version of its JSON, from 1; default: 1 |
/// | `upgrade = path` | a function that converts the JSON of older versions |
/// | `crate = path` | the path of the library; default: `::workflow_core` |
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/event.md"))]
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(item: TokenStream) -> TokenStream {
    event::expand(item.into()).into()
}

/// Makes an enum "either of" several events, as input and as output.
///
/// Every variant has one event that is `Clone`, or an `Arc` of any event. `#[event_set(crate = path)]` sets
/// the path of the library. Default: `::workflow_core`.
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/event_set.md"))]
#[proc_macro_derive(EventSet, attributes(event_set))]
pub fn derive_event_set(item: TokenStream) -> TokenStream {
    event_set::expand(item.into()).into()
}

/// Makes the `#[step]` methods of an impl block a workflow.
///
/// | key | meaning |
/// |---|---|
/// | `output = Type` | the type of a run's result, where several stop events can end it: their `EventSet` enum |
/// | `name = "…"` | the stable name; default: the name of the type |
/// | `crate = path` | the path of the library; default: `::workflow_core` |
///
/// The compiler checks the graph of the steps: runs can begin, every step can run, nothing loops for ever,
/// and runs end with the output. The compiler checks workflows of up to 512 steps, 1,024 parameters, 1,024
/// outputs and 128 fan-outs, and warns about a larger one. Building an engine or starting a run checks every
/// workflow again.
///
/// `cargo check` reports each mistake at its parameter, attribute or step. The inputs and outputs of a
/// generic workflow (`impl<T> Greeter<T>`) depend on its type parameters. So `cargo build` checks such a
/// workflow where it is run or added to an engine, and reports the first mistake.
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/workflow.md"))]
#[proc_macro_attribute]
pub fn workflow(arguments: TokenStream, item: TokenStream) -> TokenStream {
    workflow::expand(arguments.into(), &item.into()).into()
}

/// Marks a method of a `#[workflow]` impl block as a step. Its parameters decide when it runs, and its return
/// type declares what it emits.
///
/// | key | meaning |
/// |---|---|
/// | `precondition = path` | the `#[precondition]` method or free function that is evaluated before each execution |
/// | `max_executions = N` | the most executions; a branch of a fan-out counts its own |
/// | `concurrency = N` | the most concurrent executions |
/// | `timeout = "30s"` | the longest duration of an attempt; a longer one is dropped and fails with class `transient`; units: `ms`, `s`, `m`, `h`, `d` |
/// | `retry = EXPR` | the `RetryPolicy` of the step, made when an engine is built; default: the engine's |
/// | `compact = method` | runs after a failure of class `context_limit`, before the next attempt: an `async fn` of this impl block without an attribute, which takes any of the step's parameters and returns nothing or a `Result<(), E>` |
/// | `at_most_once` | an attempt that may have begun in an earlier process, timed out or panicked is not made again: the execution fails with class `in_doubt`, which no policy retries; errors that the step returns are retried as usual |
/// | `limit = "name"` | the engine's limit of the step's attempts, over all runs: `Engine::builder().limit("name", …)` |
/// | `limit_key = method` | makes the key at that limit: a `fn` or `async fn` of this impl block without an attribute, which takes any of the step's parameters and returns a text, an integer, or a `Result` of one |
/// | `key = method` | makes the end of an execution's idempotency key, `RunInfo::idempotency_key`, after run, scope and step: a method like that of `limit_key`; default: the sequence numbers of the events that the execution takes |
/// | `on_error = "continue"` | records a failure and lets the run continue; default: `"fail"` |
/// | `catches = [step, …]` | takes the failures of these steps as `StepFailed`; default: those of every step that takes none |
/// | `on_end` | makes it a clean-up step: it runs at every end of a run but `Completed`, once, if the log has what it requires, and emits nothing |
/// | `on_end = "failed"` | the same at this end only: `"failed"`, `"stalled"`, `"cancelled"` or `"timed_out"`; several in brackets, `["failed", "cancelled"]` |
/// | `spawn`, `spawn = false` | runs every execution as a task of its own, or none; default: executions of a step that computes for long, on a runtime with several threads |
/// | `reruns` | declares that the step should run again for later arrivals |
/// | `loops` | allows the step to emit an event that it takes, and to be part of a loop that only other steps end |
/// | `name = "…"` | the stable name; default: the name of the method |
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/step.md"))]
#[proc_macro_attribute]
pub fn step(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    workflow::stray_step(&item.into()).into()
}

/// Marks a function as a precondition, which decides whether a ready step runs now.
///
/// The function may be sync or async. Write a free function, or in a `#[workflow]` impl block a method with
/// or without `&self`. The parameters are any of the step's inputs and injected parameters, found by type.
/// The result is `bool` or `Result<bool, E>`. On a free function, `#[precondition(crate = path)]` sets the
/// path of the library. Default: `::workflow_core`.
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/precondition.md"))]
#[proc_macro_attribute]
pub fn precondition(arguments: TokenStream, item: TokenStream) -> TokenStream {
    precondition::expand(arguments.into(), &item.into()).into()
}

/// Makes an async function a tool: a function that a model can call. `workflow-agent` re-exports the macro.
///
/// The doc comment is the description that the model reads. Owned parameters are the arguments: their types implement
/// `Deserialize` and `JsonSchema`, their doc comments become descriptions, an `Option` need not be given, and attributes of
/// serde and schemars apply. `&ToolContext` is injected. The function returns a `ToolOutput`, any value that implements
/// `Serialize`, or a `Result` of one of these, whose error converts into `ToolError`.
///
/// | key | meaning |
/// |---|---|
/// | `read_only` | a call changes nothing: such calls run side by side, and again after a crash |
/// | `idempotent` | a second call with the same idempotency key has no further effect |
/// | `independent` | the order among other calls makes no difference: it runs beside them, and none waits for it |
/// | `approval` | a person approves each call; also `"always"`, `"acts"` (unless the tool is read-only), `"never"` (the default), or the path of a function `fn(&Value) -> bool` of the arguments |
/// | `timeout = "30s"` | the longest duration of a call; default: 120 s; units: `ms`, `s`, `m`, `h`, `d` |
/// | `name = "…"` | the name for the model, one to 64 letters, digits, `_` or `-`; default: the name of the function |
/// | `crate = path` | the path of the library; default: `::workflow_agent`; for methods at `#[tools]` |
///
/// The function stays callable: it returns a `ToolFuture`, which gives what the function returns. The function itself is
/// the value for `.tool(…)` of an agent, by the trait `IntoTool`.
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/tool.md"))]
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(arguments.into(), &item.into()).into()
}

/// Makes the `#[tool]` methods of an impl block tools that share the value, with its fields for what they depend on.
/// `workflow-agent` re-exports the macro.
///
/// The type implements `ToolSet`, for `.tools(…)` of an agent. The type must be `Send`, `Sync` and `'static`, and its tools
/// share it in an `Arc`. Methods take `&self`. Methods without `#[tool]` stay as they are.
/// `#[tools(crate = path)]` sets the path of the library. Default: `::workflow_agent`.
///
#[cfg_attr(not(doctest), doc = include_str!("../docs/tools.md"))]
#[proc_macro_attribute]
pub fn tools(arguments: TokenStream, item: TokenStream) -> TokenStream {
    tools::expand(arguments.into(), &item.into()).into()
}
