use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(version = 2, upgrade = "from_earlier")]
struct Question;

fn main() {}
