//! How the library behaves, seen from outside: one module per topic.

mod events;
mod fixtures;
mod inputs;
mod model;
mod outputs;
mod properties;
mod transcript;
