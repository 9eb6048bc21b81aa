//! Cancels timers and expiring requests at every point (S31, S32).

use std::time::Duration;

use workflow_core::prelude::*;

use super::{Cancel, Question, World, everywhere, in_every_order};
use crate::fixtures::{Begin, Done, Item, Part, Saw};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tick;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Unheard;

/// Sets timers in the run and in branches, makes requests without replies, and waits for all of them.
struct Later(World);

#[workflow]
impl Later {
    #[step]
    async fn ask(&self, _begin: &Begin) -> (Expiring<Unheard>, Question) {
        let _guard = self.0.guarded_turn().await;
        (Unheard.expires_in(3 * SECOND), Question)
    }

    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let _guard = self.0.guarded_turn().await;
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn nap(&self, item: &Item) -> Timer<Part> {
        let _guard = self.0.guarded_turn().await;
        Timer::after(SECOND + item.0 * SECOND, Part(item.0))
    }

    #[step]
    async fn wake(&self, parts: &Gather<Part>) -> (Saw, Timer<Tick>) {
        let _guard = self.0.guarded_turn().await;
        (Saw(parts.len().to_string()), Timer::after(2 * SECOND, Tick))
    }

    #[step]
    async fn end(&self, _: &Tick, _: &Reply<Question>, _: &Expired<Unheard>) -> Done {
        let _guard = self.0.guarded_turn().await;
        Done(0)
    }
}

// S31
#[test]
fn timers_and_requests_that_expire_can_be_cancelled_at_every_point() {
    everywhere(Later, Cancel::AtPoint);
    everywhere(Later, Cancel::InTime);
}

// S31
#[test]
fn a_cancel_in_every_order_leaves_no_timer() {
    in_every_order(Later);
}
