//! Workflows as documents: YAML or JSON, checked as a whole before anything runs.
//!
//! A document names nodes and routes. [`Document::load`] reads one, and reports every problem at once, each with its
//! place, its remedy and the names that the author may have meant. [`Document::bind`] connects it to the functions, tools
//! and agents of a [`Registry`], and makes workflows of its graphs, which an [`Engine`](workflow_core::Engine) hosts like any
//! other: journal, resume, questions to people, retries, children and limits are the engine's. A [`GraphRun`] starts runs,
//! answers their questions, and returns their results.
//!
//! ```
//! use serde_json::json;
//! use workflow_core::Engine;
//! use workflow_graph::{Document, GraphRun, NodeError, Registry};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = "
//! graph: refund
//! input: {type: object, properties: {cents: {type: integer}}, required: [cents]}
//! nodes:
//!   check:
//!     value: {is_large: '${ input.cents > 10000 }'}
//!     next:
//!       - {when: check.is_large, to: refuse}
//!       - {to: pay}
//!   pay: {function: bank.refund, with: '${ input.cents }'}
//!   refuse: {value: too much}
//! ";
//! let registry = Registry::new()
//!     .function("bank.refund", |cents: u64, _| async move { Ok::<_, NodeError>(format!("{cents} cents are paid")) });
//! let document = Document::parse(text, "refund.yaml")?;
//! let engine = Engine::builder().workflows(document.bind(&registry)?).build()?;
//!
//! let run = GraphRun::start(&engine, "refund", json!({"cents": 500})).await?;
//! assert_eq!(run.outcome().await?.output, "500 cents are paid");
//! # Ok(())
//! # }
//! ```
//!
//! The guide `docs/guide/graphs.md` is the way in: branches and joins, people, failures, cycles, items, agents, tests with
//! scripts, new versions of documents. The page `docs/graph-format.md` lists every key of a document.

mod document;
mod import;
mod skill;
mod check;
mod expression;
mod problem;
mod executor;
mod tool_call;
mod retried;
mod context;
mod seen;
mod state;
mod part;
mod script;
mod registry;
mod bind;
mod bound;
mod calls;
mod hash;
mod shorten;
mod node;
mod command;
mod schema;
mod begin;
mod sight;
mod table;
mod error;
mod walk;
mod routes;
mod draw;
mod trace;
mod explain;
mod observe;
mod result;
mod run;
mod recorded;
#[cfg(test)]
mod fixtures;

pub use calls::{Unbound, UnboundKind};
pub use context::NodeContext;
pub use document::Document;
pub use error::{GraphError, UnfitField};
pub use executor::{
    AgentExecutor, AgentResult, AgentStatus, AgentTask, Choice, ConversationMode, HiveTask, Mend, NodeError,
    Offer, PriorAgent, Prompt, Purpose, Question, ToolExecutor,
};
pub use explain::{
    BranchEnd, BranchState, Decided, Decision, Dropped, Explanation, FailedHow, FailedItem, FailedItems, Led,
    Meeting, NodeExplanation, NotTaken, OtherRoute, SeenValue, VisitsEnded, Wait, WhyNot,
};
pub use import::{BranchConflicts, BranchFailures, Format, HiveOptions, SwenyOptions};
pub use observe::{GraphEvent, GraphEvents, GraphObserver};
pub use problem::{CheckError, Code, Location, Problem, Severity};
pub use recorded::RecordedGraph;
pub use registry::Registry;
pub use result::{GraphFailure, GraphResult, NodeOutcome, SharedOutcome, SourceHash};
pub use retried::{Again, Repeated};
pub use run::{Gate, GateId, GraphOptions, GraphRun, RunGraph};
pub use script::ScriptedExecutor;
pub use seen::{Activity, NodeActivity};
pub use skill::InlineSkill;
pub use state::{GraphStatus, VisitStatus};
pub use tool_call::ToolCall;
pub use trace::{RouteTaken, Trace, Visit, VisitError};

/// The page of the guide, compiled and run with the other examples of this crate.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../docs/guide/graphs.md")]
    struct Graphs;
}
