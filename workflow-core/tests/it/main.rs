//! How the library behaves, seen from outside: one module per topic.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod allocations;
mod caught;
mod children;
mod clocks;
mod commit;
mod config;
mod contexts;
mod cost;
mod display;
mod draw;
mod ending;
mod endings_in_detail;
mod engine;
mod events;
mod expiry;
mod explain;
mod fairness;
mod fan_out;
mod fan_out_scale;
mod fixtures;
mod forecasts;
mod futures;
mod generics;
mod graph_checks;
mod injectables;
mod inputs;
mod join_bugs;
mod journals;
mod limits;
mod middleware;
mod observe;
mod outputs;
mod places;
mod preconditions;
mod properties;
mod requests;
mod runaway;
mod scheduler;
mod scheduling;
mod sizes;
mod spans;
mod stalls;
mod timeouts;
mod timers;
