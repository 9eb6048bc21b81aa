//! Conformance suites for your own implementations of the core's traits:
//! [`context_store_conformance!`](crate::context_store_conformance) for a
//! [`ContextStore`](workflow_core::store::ContextStore), [`event_store_conformance!`](crate::event_store_conformance) for an
//! [`EventStore`](workflow_core::store::EventStore), [`observer_conformance!`](crate::observer_conformance) for an
//! [`Observer`](workflow_core::observe::Observer), and [`clock_conformance!`](crate::clock_conformance) for a
//! [`Clock`](workflow_core::Clock).
//!
//! Each macro expands to a module of tests, one for each testable sentence of the contract. That sentence is the test's
//! name. A failure reports the demand of the contract and what the test found instead.
//!
//! ```
//! # use workflow_core::store::MemoryContexts;
//! mod contexts_in_memory {
//!     use super::*;
//!     workflow_testkit::context_store_conformance!(MemoryContexts::default);
//! }
//! # fn main() {}
//! ```
//!
//! A suite tests visible behaviour in one process. It can show that a contract is broken, never that it holds: a race
//! that needs rare timing may pass. Crash safety and use by several processes are yours to test.
//!
//! This module owns the expansion into tests. The submodules own the checks, by suite.

#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod context_store;
#[doc(hidden)]
pub mod event_store;
#[doc(hidden)]
pub mod observer;
mod stage;

/// Expands to a module of tests, each of which passes the same expression to one check. The check names are listed
/// under the modules that contain them.
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
