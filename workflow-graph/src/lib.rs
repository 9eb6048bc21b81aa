//! Workflows as documents: YAML or JSON, checked as a whole before anything runs.
//!
//! A document names nodes and routes. [`Document::load`] reads one, and reports every problem at once, each with its
//! place, its remedy and the names that the author may have meant. Nothing runs documents yet.
//!
//! ```
//! use workflow_graph::Document;
//!
//! let text = "
//! graph: greeting
//! input: {type: object, properties: {name: {type: string}}, required: [name]}
//! nodes:
//!   greet: {value: 'Hello, ${ input.name }!'}
//! ";
//! let document = Document::parse(text, "greeting.yaml")?;
//! assert_eq!(document.name(), "greeting");
//! # Ok::<(), workflow_graph::CheckError>(())
//! ```

mod document;
mod check;
#[cfg_attr(not(test), expect(dead_code, unused_imports, reason = "the compiler of tables evaluates them"))]
mod expression;
mod problem;

pub use document::Document;
pub use problem::{CheckError, Code, Location, Problem, Severity};
