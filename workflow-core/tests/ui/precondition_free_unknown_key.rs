use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question {
    text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Retrieved(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer(String);

#[precondition(name = "ready")]
fn ready(_question: &Question) -> bool {
    true
}

fn main() {}
