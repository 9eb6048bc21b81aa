use workflow_core::prelude::*;

#[derive(EventSet)]
enum Graded {}

fn main() {}
