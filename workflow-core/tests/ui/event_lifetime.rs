use workflow_core::prelude::*;

#[derive(Event)]
struct Question<'a>(&'a str);

fn main() {}
