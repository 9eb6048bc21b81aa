use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "the question")]
struct Question;

fn main() {}
