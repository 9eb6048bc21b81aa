use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(strat, name = "", display, display, max = 3)]
struct Question;

fn main() {}
