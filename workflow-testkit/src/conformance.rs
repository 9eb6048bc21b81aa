//! Suites that tell whether what you wrote keeps the contract of the trait it implements:
//! [`context_store_conformance!`](crate::context_store_conformance) for a
//! [`ContextStore`](workflow_core::ContextStore),
//! [`event_store_conformance!`](crate::event_store_conformance) for an
//! [`EventStore`](workflow_core::EventStore),
//! [`observer_conformance!`](crate::observer_conformance) for an [`Observer`](workflow_core::Observer), and
//! [`clock_conformance!`](crate::clock_conformance) for a [`Clock`](workflow_core::Clock).
//!
//! Each macro expands to a module of tests, one for each sentence of the contract that can be tested. The
//! name of a test is that sentence, and its failure says what the contract demands and what was found
//! instead.
//!
//! ```
//! # use workflow_core::MemoryContexts;
//! mod contexts_in_memory {
//!     use super::*;
//!     workflow_testkit::context_store_conformance!(MemoryContexts::default);
//! }
//! # fn main() {}
//! ```
//!
//! A suite goes by what can be seen from outside, and on one process. It can find that a contract is broken,
//! never that it is kept: a race that needs a rare timing may pass, and what survives a crash, or holds
//! between several processes, is yours to test.
//!
//! This module owns how checks are run. The checks themselves are below it, by suite.

#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod context_store;
#[doc(hidden)]
pub mod event_store;
#[doc(hidden)]
pub mod observer;
mod stage;

/// A module of tests, each of which hands the same expression to one check. The names of the checks stand
/// below the modules they are in.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_suite {
    ($suite:ident: $open:expr; $($topic:ident { $($check:ident)* })*) => {
        mod $suite {
            #[allow(unused_imports, reason = "a path that needs no import is just as good")]
            use super::*;

            $($(
                #[::core::prelude::v1::test]
                fn $check() {
                    $crate::conformance::$suite::$topic::$check($open)
                }
            )*)*
        }
    };
}
