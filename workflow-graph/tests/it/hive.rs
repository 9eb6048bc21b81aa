//! Hive documents: refusals, each rule, and documents side by side with what the rules say of them.

mod support;
mod problems;
mod nodes;
mod edges;
mod branches;
mod conversation;
mod documents;
