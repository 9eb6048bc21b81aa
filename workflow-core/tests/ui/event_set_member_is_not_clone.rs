use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Enough;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Short;

#[derive(Debug, Serialize, Deserialize, Event)]
struct Long;

#[derive(EventSet)]
enum Graded {
    Enough(Enough),
    Long(Long),
}

fn main() {}
