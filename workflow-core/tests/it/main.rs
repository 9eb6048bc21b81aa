//! How the library behaves, seen from outside: one module per topic.

mod commit;
mod config;
mod contexts;
mod cost;
mod display;
mod ending;
mod engine;
mod events;
mod fixtures;
mod futures;
mod generics;
mod injectables;
mod inputs;
mod limits;
mod model;
mod observe;
mod outputs;
mod preconditions;
mod properties;
mod requests;
mod scheduling;
mod transcript;
