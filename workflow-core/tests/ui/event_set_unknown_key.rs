use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Enough;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Short;

#[derive(EventSet)]
#[event_set(name = "graded")]
enum Graded {
    Enough(Enough),
}

fn main() {}
