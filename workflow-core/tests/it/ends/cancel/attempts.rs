//! Cancels failing, slow and compacting attempts and the waits between them, at every point (S31, S35, S36).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Retries, RetryPolicy};

use super::{Cancel, Progress, World, everywhere, in_every_order};
use crate::fixtures::{Begin, Done, Item, Part};

fn soon() -> RetryPolicy {
    RetryPolicy::none()
        .on(ErrorClass::Transient, Retries::fixed(3, Duration::from_secs(2)))
        .on(ErrorClass::ContextLimit, Retries::fixed(1, Duration::ZERO))
}

/// Each step's first attempt fails, and the second succeeds after a delay.
struct Tries(World);

#[workflow]
impl Tries {
    #[step(retry = soon())]
    async fn fetch(
        &self,
        begin: &Begin,
        items: &Emitter<Item>,
        display: &Display,
        info: &RunInfo,
    ) -> Result<(), StepError> {
        let _guard = self.0.guarded_turn().await;
        display.show(Progress(info.attempt()));
        items.emit(Item(begin.0))?;
        self.0.points.turn().await;
        if info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(()) }
    }

    #[step(spawn, retry = soon(), timeout = "1s")]
    async fn hang(&self, begin: &Begin, info: &RunInfo) -> Part {
        let _guard = self.0.guarded_turn().await;
        tokio::time::sleep(if info.attempt() == 1 { Duration::MAX } else { Duration::ZERO }).await;
        self.0.points.turn().await;
        Part(begin.0)
    }

    #[step(compact = shorten, retry = soon())]
    async fn end(&self, item: &Item, _: &Part, run: RunContext, info: &RunInfo) -> Result<Done, StepError> {
        let _guard = self.0.guarded_turn().await;
        let attempts = run.increment("attempts", 1).await?;
        self.0.points.turn().await;
        if attempts == 1 {
            Err(StepError::context_limit("too long"))
        } else {
            Ok(Done(item.0 + info.attempt()))
        }
    }

    async fn shorten(&self, run: RunContext) -> Result<(), StepError> {
        let _guard = self.0.guarded_turn().await;
        run.set("shortened", true).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.points.turn().await;
        Ok(())
    }
}

// S31
#[test]
fn attempts_and_waits_for_the_next_can_be_cancelled_at_every_point() {
    everywhere(Tries, Cancel::AtPoint);
    everywhere(Tries, Cancel::InTime);
}

// S31
#[test]
fn a_cancel_in_every_order_leaves_no_attempt() {
    in_every_order(Tries);
}

/// Each branch's first attempt fails; a failure waits for the other branches.
struct Group(World);

#[workflow]
impl Group {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        let _guard = self.0.guarded_turn().await;
        (0..=begin.0).map(Item).collect::<FanOut<_>>().wait_all()
    }

    #[step(retry = soon(), concurrency = 2)]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        let _guard = self.0.guarded_turn().await;
        if info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        let _guard = self.0.guarded_turn().await;
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S31, S49
#[test]
fn attempts_in_branches_can_be_cancelled_at_every_point() {
    everywhere(Group, Cancel::AtPoint);
    everywhere(Group, Cancel::InTime);
    in_every_order(Group);
}
