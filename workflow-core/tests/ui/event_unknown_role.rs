use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(starts)]
struct Question;

fn starts<E: workflow_core::StartEvent>() {}

fn uses() {
    starts::<Question>();
}

fn main() {}
