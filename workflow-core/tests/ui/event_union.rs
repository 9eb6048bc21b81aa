use workflow_core::prelude::*;

#[derive(Event)]
union Either {
    a: u32,
    b: f32,
}

fn main() {}
