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

struct Research;

#[workflow]
impl Research {
    fn respond(&self) {}
}

fn takes<W: Workflow>(_: W) {}

fn main() {
    takes(Research);
}
