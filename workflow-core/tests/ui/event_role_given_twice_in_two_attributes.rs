use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
#[event(display)]
struct Question;

fn main() {}
