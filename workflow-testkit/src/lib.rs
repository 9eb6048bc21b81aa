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
//! #1 Greet from outside: {\"name\":\"Ada\"}
//! x1 greet by #1: succeeded
//! #2 Greeting of x1: \"Hello, Ada!\"
//! completed with #2
//! ");
//! # }
//! ```
//!
//! # What a scenario has
//! - A [`Scenario`] runs a workflow until it ends, or until it waits for something outside the script. It has its own
//!   thread and virtual clock. So waiting takes no time, steps interleave in the same order each time, and the times of
//!   a report are exact: see [`VirtualClock`].
//! - The script contains the events and replies from outside: [`send`](ScenarioOf::send),
//!   [`send_after`](ScenarioOf::send_after), [`reply`](ScenarioOf::reply), [`reply_after`](ScenarioOf::reply_after).
//! - The test can continue a waiting run [by hand](TestRun::send), also [before](ScenarioOf::until_it_waits) a timer
//!   fires or a request expires.
//! - The test can [replace](ScenarioOf::replace) steps by functions, [fail](ScenarioOf::fail_first) their calls, or
//!   [answer them by hand](ScenarioOf::mock). A stand-in that does not fit its step fails at the line that adds it.
//! - The test sets [configuration](ScenarioOf::config), [options](ScenarioOf::options), contexts
//!   ([run](ScenarioOf::run_context), [thread](ScenarioOf::thread_context)) and other [engine](ScenarioOf::engine)
//!   settings before the run.
//! - The resulting [`TestRun`] has the assertions, the transcript for golden tests, the report and the explanation.
//! - [`Scenario::runtime`] runs a workflow that a program builds at run time, with events and replies as JSON:
//!   [`send_json`](ScenarioOf::send_json), [`reply_json`](ScenarioOf::reply_json).
//! - [`explore`](explore()) runs a scenario in every order that makes a difference, and finds the smallest one for
//!   which an assertion fails.
//! - [`crash_everywhere`](crash_everywhere()) kills a scenario's process at every append to its store and resumes the
//!   run.
//! - A [`FaultyStore`] refuses calls, loses answers or delays them, at named calls or at random ones from a seed.
//!
//! Failures panic, as assertions do, and print what the run did and why. No test waits for real time, and a run that
//! would not end fails its scenario: see [`Start`].
//!
//! [`conformance`] has the tests for your own stores, observers and clocks. [`model`] is a second, plain implementation
//! of the scheduler's rules.

mod cast;
mod clock;
pub mod conformance;
mod crash;
mod explore;
mod faulty;
mod journal;
mod mock;
pub mod model;
mod patience;
mod random;
mod recording;
mod scenario;
mod script;
mod stage;
mod stand_in;
mod start;
mod subject;
mod test_run;
mod transcript;

pub use clock::VirtualClock;
pub use crash::{Confirms, CrashEverywhere, CrashStore, Crashes, crash_everywhere};
pub use explore::{Explore, Explored, Outcome, Verdict, explore};
pub use faulty::{Fault, FaultyStore, Injected, StoreCall};
pub use mock::{Call, Handle, Mock};
pub use scenario::{Scenario, ScenarioOf};
pub use stand_in::StandIn;
pub use start::Start;
pub use subject::{Runtime, Tested};
pub use test_run::TestRun;

/// The guide to testing, compiled and run with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/testing.md")]
struct Guide;
