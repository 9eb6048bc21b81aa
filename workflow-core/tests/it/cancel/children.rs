//! Runs with runs below them, cancelled at every point of it: all of them have ended before the end is told (S31).

use workflow_core::StartError;
use workflow_core::prelude::*;

use super::{Cancel, World, everywhere, in_every_order};
use crate::fixtures::{Begin, Done, Item, Part};

/// Has so many generations below it, and in each a run that is waited for and one that is not.
struct Bears(World);

#[workflow]
impl Bears {
    #[step]
    async fn wait(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        let _guard = self.0.guarded_turn().await;
        let Some(below) = begin.0.checked_sub(1) else { return Ok(Item(0)) };
        let Done(below) = children.run::<Self>(Begin(below)).await?;
        self.0.points.turn().await;
        Ok(Item(below + 1))
    }

    #[step(spawn)]
    async fn leave(&self, begin: &Begin, children: &Children) -> Result<Part, StartError> {
        let _guard = self.0.guarded_turn().await;
        let Some(below) = begin.0.checked_sub(1) else { return Ok(Part(0)) };
        children.start::<Self>(Begin(below)).await?;
        self.0.points.turn().await;
        Ok(Part(0))
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        let _guard = self.0.guarded_turn().await;
        Done(item.0 + part.0)
    }
}

// S31
#[test]
fn runs_below_runs_can_be_cancelled_at_every_point() {
    everywhere(Bears, Cancel::AtPoint);
    everywhere(Bears, Cancel::AfterTurns);
}

// S31
#[test]
fn a_cancel_in_every_order_leaves_no_run_below() {
    in_every_order(Bears);
}
