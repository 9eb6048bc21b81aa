use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = "Approval")]
struct Ask;

fn main() {}
