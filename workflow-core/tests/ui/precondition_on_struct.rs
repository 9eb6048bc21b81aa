use workflow_core::prelude::*;

#[precondition]
struct Ready;

fn main() {}
