use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(reply = u32)]
struct Ask;

fn asks<R: workflow_core::Request<Reply = u32>>() {}

fn uses() {
    asks::<Ask>();
}

fn main() {}
