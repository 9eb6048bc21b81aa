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
//! - A [`Scenario`] runs a workflow to its end, or until it waits for something that nobody sends, on a thread and a
//!   virtual clock of its own: an hour of waiting takes no time, steps interleave in the same order each time, and the
//!   times of a report are exact: see [`VirtualClock`].
//! - What comes from outside stands in its script: [`send`](ScenarioOf::send),
//!   [`send_after`](ScenarioOf::send_after), [`reply`](ScenarioOf::reply),
//!   [`reply_after`](ScenarioOf::reply_after).
//! - A run that waits is gone on with [by hand](TestRun::send), also [before](ScenarioOf::until_it_waits) a timer fires
//!   or a request expires.
//! - Steps are [replaced](ScenarioOf::replace) by functions, [failed](ScenarioOf::fail_first), or
//!   [answered by hand](ScenarioOf::mock); a stand-in that does not fit its step is refused where it is written.
//! - [Configuration](ScenarioOf::config), [options](ScenarioOf::options) and contexts
//!   ([run](ScenarioOf::run_context), [thread](ScenarioOf::thread_context)) are set before the run, and so is what else
//!   its [engine](ScenarioOf::engine) has.
//! - The [`TestRun`] that comes of it has the assertions, the transcript for golden tests, the report and the
//!   explanation.
//! - [`explore`](explore()) runs a scenario in every order that makes a difference, and finds the smallest one in which
//!   an assertion does not hold.
//! - [`crash_everywhere`](crash_everywhere()) kills a scenario's process at every append to its store and goes on from
//!   what is left.
//! - A [`FaultyStore`] refuses calls, loses answers or is late, where the test says or where a seed does.
//!
//! Failures panic, as assertions do, and say what the run did and why. Nothing is waited for by the real clock, and a
//! run that would not end fails its scenario: see [`Start`].
//!
//! What you write for a workflow to run on has a contract, and [`conformance`] has the tests for it. What the
//! scheduler has to do is written down a second time, as plainly as possible, in [`model`].

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
mod recording;
mod scenario;
mod script;
mod stage;
mod stand_in;
mod start;
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
pub use test_run::TestRun;

/// The guide to testing, compiled and run with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/testing.md")]
struct Guide;
