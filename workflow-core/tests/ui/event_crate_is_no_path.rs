use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(crate = 3)]
struct Question;

fn main() {}
