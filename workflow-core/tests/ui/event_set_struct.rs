use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Enough;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Short;

#[derive(EventSet)]
struct Graded(Enough);

fn main() {}
