//! Testing workflows: run one in memory, then assert on its output, its executions and its transcript.
//!
//! ```
//! use workflow_core::prelude::*;
//! use workflow_testkit::Scenario;
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! #[event(start)]
//! struct Greet { name: String }
//!
//! #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
//! #[event(stop)]
//! struct Greeting(String);
//!
//! struct Greeter;
//!
//! #[workflow]
//! impl Greeter {
//!     #[step]
//!     async fn greet(&self, greet: &Greet) -> Greeting {
//!         Greeting(format!("Hello, {}!", greet.name))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let run = Scenario::new(Greeter).start(Greet { name: "Ada".into() }).await;
//! run.assert_output(&Greeting("Hello, Ada!".into()));
//! run.assert_executions("greet", 1);
//! assert_eq!(run.transcript(), "\
//! #1 Greet
//! x1 greet by #1: succeeded
//! #2 Greeting of x1
//! completed
//! ");
//! # }
//! ```
//!
//! Failures panic, as assertions do, and say what the run did.

mod cast;
mod journal;
mod mock;
mod scenario;
mod script;
mod stage;
mod stand_in;
mod start;
mod test_run;
mod transcript;

pub use mock::{Call, Handle, Mock};
pub use scenario::{Scenario, ScenarioOf};
pub use stand_in::StandIn;
pub use start::Start;
pub use test_run::TestRun;
