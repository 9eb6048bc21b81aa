use workflow_core::prelude::*;

#[workflow]
struct Research;

fn main() {
    let _ = Research;
}
