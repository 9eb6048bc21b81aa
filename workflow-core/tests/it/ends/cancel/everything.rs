//! Cancels every kind of step activity at every point (S31).

use workflow_core::blocking;
use workflow_core::prelude::*;

use super::{Cancel, Progress, Question, World, everywhere, in_every_order};
use crate::fixtures::{Begin, Done, Item, Part, Saw};

/// Two inputs, emitted events, display, contexts, an asynchronous precondition.
struct Joins(World);

#[workflow]
impl Joins {
    #[step]
    async fn first(&self, begin: &Begin, saws: &Emitter<Saw>, display: &Display) -> Result<Item, StepError> {
        let _guard = self.0.guarded_turn().await;
        for number in 0..2 {
            saws.emit(Saw(number.to_string()))?;
            display.show(Progress(number));
            self.0.points.turn().await;
        }
        Ok(Item(begin.0))
    }

    #[step(spawn)]
    async fn second(&self, begin: &Begin, display: &Display) -> Part {
        let _guard = self.0.guarded_turn().await;
        display.show(Progress(7));
        self.0.points.turn().await;
        Part(begin.0)
    }

    #[step]
    async fn note(&self, _saw: &Saw, thread: &ThreadContext) -> Result<(), StepError> {
        let _guard = self.0.guarded_turn().await;
        thread.update("saws", |count: Option<u32>| count.unwrap_or(0) + 1).await?;
        self.0.points.pass();
        Ok(())
    }

    #[step(precondition = is_time)]
    async fn join(&self, item: &Item, part: &Part, run: &RunContext) -> Result<Done, StepError> {
        let _guard = self.0.guarded_turn().await;
        let sum = run.update("sum", |sum: Option<u32>| sum.unwrap_or(0) + item.0 + part.0).await?;
        self.0.points.pass();
        Ok(Done(sum))
    }

    #[precondition]
    async fn is_time(&self, _item: &Item) -> bool {
        let _guard = self.0.guarded_turn().await;
        true
    }
}

/// A fan-out whose branches run in tasks of their own.
struct Branches(World);

#[workflow]
impl Branches {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        let _guard = self.0.guarded_turn().await;
        (0..begin.0 + 2).map(Item).collect()
    }

    #[step(spawn, concurrency = 2)]
    async fn work(&self, item: &Item, cancellation: &Cancellation) -> Result<Part, StepError> {
        let _guard = self.0.guarded_turn().await;
        cancellation.check()?;
        Ok(Part(item.0))
    }

    #[step]
    async fn gather(&self, parts: &Gather<Part>) -> Done {
        let _guard = self.0.guarded_turn().await;
        Done(u32::try_from(parts.len()).unwrap())
    }
}

/// Waits for an answer.
struct Asks(World);

#[workflow]
impl Asks {
    #[step]
    async fn ask(&self, _begin: &Begin) -> Question {
        let _guard = self.0.guarded_turn().await;
        Question
    }

    #[step]
    async fn take(&self, answer: &Reply<Question>) -> Done {
        let _guard = self.0.guarded_turn().await;
        Done(**answer)
    }
}

/// Computes on a thread.
struct Computes(World);

#[workflow]
impl Computes {
    #[step]
    async fn compute(&self, begin: &Begin) -> Result<Item, StepError> {
        let (guard, points, begin) = (self.0.alive.guard(), self.0.points.clone(), begin.0);
        points.chosen().await;
        let sum = blocking(move |cancellation| {
            let _guard = guard;
            for _ in 0..3 {
                points.pass();
                cancellation.check()?;
            }
            Ok::<_, workflow_core::errors::Cancelled>(begin)
        });
        Ok(Item(sum.await??))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        let _guard = self.0.guarded_turn().await;
        Done(item.0)
    }
}

// S31
#[test]
fn joins_emitters_display_and_contexts_can_be_cancelled_at_every_point() {
    everywhere(Joins, Cancel::AtPoint);
    everywhere(Joins, Cancel::AfterTurns);
}

// S31
#[test]
fn fan_outs_and_spawned_steps_can_be_cancelled_at_every_point() {
    everywhere(Branches, Cancel::AtPoint);
    everywhere(Branches, Cancel::AfterTurns);
}

// S31
#[test]
fn requests_can_be_cancelled_at_every_point() {
    everywhere(Asks, Cancel::AtPoint);
    everywhere(Asks, Cancel::AfterTurns);
}

// S31
#[test]
fn blocking_work_can_be_cancelled_at_every_point() {
    everywhere(Computes, Cancel::AtPoint);
}

// S31
#[test]
fn a_cancel_in_every_order_leaves_nothing() {
    in_every_order(Joins);
    in_every_order(Branches);
    in_every_order(Asks);
}
