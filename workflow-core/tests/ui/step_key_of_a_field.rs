//! The key at a limit is a method, and not a field of a parameter.

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin {
    customer: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done;

struct Pays;

#[workflow]
impl Pays {
    #[step(key = begin.customer)]
    async fn pay(&self, begin: &Begin) -> Done {
        let _ = &begin.customer;
        Done
    }
}

fn main() {}
