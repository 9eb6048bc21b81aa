//! A step takes the expiry of a request that has none.

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Ask;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done;

struct Asks;

#[workflow]
impl Asks {
    #[step]
    async fn ask(&self, _begin: &Begin) -> Ask {
        Ask
    }

    #[step]
    async fn take(&self, _reply: &Reply<Ask>) -> Done {
        Done
    }

    #[step]
    async fn late(&self, _expired: &Expired<Ask>) -> Done {
        Done
    }
}

fn main() {}
