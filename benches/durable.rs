//! What the benches of durable runs share: runs and their stores, and what the least is that they could cost.

pub mod bare;
pub mod chain;
pub mod records;
pub mod runs;
