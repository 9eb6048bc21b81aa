use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Enough;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Short;

#[derive(EventSet)]
enum Graded {
    Enough,
    Short(Short),
}

fn main() {}
