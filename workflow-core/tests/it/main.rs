//! How the library behaves, seen from outside: one module per topic.

mod events;
mod fixtures;
mod injectables;
mod inputs;
mod limits;
mod model;
mod outputs;
mod properties;
mod scheduling;
mod transcript;
