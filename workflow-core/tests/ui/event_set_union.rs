use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Enough;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Short;

#[derive(EventSet)]
union Graded {
    a: u32,
}

fn main() {}
