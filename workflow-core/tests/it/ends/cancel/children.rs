//! Cancels runs with child runs at every point: all children have ended before the parent's end is reported (S31).

use workflow_core::prelude::*;

use super::{Cancel, World, everywhere, in_every_order};
use crate::fixtures::{Begin, Done, Item, Part};

/// Has this many generations of children. Each attempt has one child that it awaits and one that it only starts. In the
/// first run, this many attempts fail after that.
struct Bears {
    world: World,
    fails: u32,
}

impl Bears {
    async fn failed(&self, info: &RunInfo) -> Result<(), StepError> {
        self.world.points.turn().await;
        if info.parent().is_none() && info.attempt() <= self.fails {
            Err(StepError::tool("torn"))
        } else {
            Ok(())
        }
    }
}

#[workflow]
impl Bears {
    #[step]
    async fn wait(&self, begin: &Begin, children: &Children, info: &RunInfo) -> Result<Item, StepError> {
        let _guard = self.world.guarded_turn().await;
        let Some(below) = begin.0.checked_sub(1) else { return Ok(Item(0)) };
        let Done(below) = children.run::<Self>(Begin(below)).await?;
        self.failed(info).await?;
        Ok(Item(below + 1))
    }

    #[step(spawn)]
    async fn leave(&self, begin: &Begin, children: &Children, info: &RunInfo) -> Result<Part, StepError> {
        let _guard = self.world.guarded_turn().await;
        let Some(below) = begin.0.checked_sub(1) else { return Ok(Part(0)) };
        children.start::<Self>(Begin(below)).await?;
        self.failed(info).await?;
        Ok(Part(0))
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        let _guard = self.world.guarded_turn().await;
        Done(item.0 + part.0)
    }
}

// S31
#[test]
fn runs_below_runs_can_be_cancelled_at_every_point() {
    for fails in [0, 1] {
        everywhere(|world| Bears { world, fails }, Cancel::AtPoint);
        everywhere(|world| Bears { world, fails }, Cancel::AfterTurns);
    }
}

// S31
#[test]
fn a_cancel_in_every_order_leaves_no_run_below() {
    in_every_order(|world| Bears { world, fails: 0 });
    in_every_order(|world| Bears { world, fails: 1 });
}
