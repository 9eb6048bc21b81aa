//! SWEny documents: what is refused, and how they run.

mod play;
mod problems;
mod sources;
mod tasks;
mod evaluations;
mod routing;
mod documents;
