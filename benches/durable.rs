//! Shared parts of the benches of durable runs: runs and their stores, and the lower bound of their cost.

pub mod bare;
pub mod chain;
pub mod records;
pub mod runs;
