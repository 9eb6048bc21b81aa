//! State besides events survives crashes: contexts, emitters, event sets, limits and preconditions (S3, S7, S18–S21,
//! S26).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Item, Note, Part, survive};

/// Counts in its contexts, at least once for each execution.
struct Counts;

#[workflow]
impl Counts {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn count(&self, item: &Item, run: &RunContext, thread: &ThreadContext) -> Result<Part, StepError> {
        run.increment("items", 1).await?;
        thread.increment("items", 1).await?;
        Ok(Part(item.0))
    }

    #[step(precondition = is_all)]
    async fn end(
        &self,
        begin: &Begin,
        parts: &List<Part>,
        run: RunContext,
        thread: ThreadContext,
    ) -> Result<Done, StepError> {
        let of_run: u32 = run.get("items").await?.unwrap_or(0);
        let of_thread: u32 = thread.get("items").await?.unwrap_or(0);
        assert!(of_run >= begin.0 && of_thread >= 10 + begin.0, "{of_run} and {of_thread}");
        Ok(Done(u32::try_from(parts.len()).unwrap()))
    }

    #[precondition]
    fn is_all(begin: &Begin, parts: &List<Part>) -> bool {
        parts.len() == begin.0 as usize
    }
}

/// Emits several events before it ends.
struct Streams;

#[workflow]
impl Streams {
    #[step]
    async fn stream(&self, begin: &Begin, items: &Emitter<Item>) -> Result<Part, StepError> {
        for item in 0..begin.0 {
            items.emit(Item(item))?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(Part(begin.0))
    }

    #[step]
    async fn end(&self, part: &Part, items: &FixedList<Item, 3>) -> Done {
        Done(part.0 + items.iter().map(|item| item.0).sum::<u32>())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, EventSet)]
enum Either {
    Item(Item),
    Part(Part),
}

/// Takes either of two, and emits either.
struct Chooses;

#[workflow]
impl Chooses {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Either> {
        (0..begin.0).map(|n| if n % 2 == 0 { Either::Item(Item(n)) } else { Either::Part(Part(n)) }).collect()
    }

    #[step(precondition = is_all)]
    async fn end(&self, begin: &Begin, all: &List<Either>) -> Done {
        let numbers = all.iter().map(|either| match either {
            Either::Item(item) => item.0,
            Either::Part(part) => 10 * part.0,
        });
        Done(begin.0 + numbers.sum::<u32>())
    }

    #[precondition]
    async fn is_all(&self, begin: &Begin, all: &List<Either>) -> bool {
        tokio::time::sleep(Duration::from_secs(1)).await;
        all.len() == begin.0 as usize
    }
}

/// Limited in how often and how many at once.
struct Limited;

#[workflow]
impl Limited {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(concurrency = 2, max_executions = 5)]
    async fn work(&self, item: &Item) -> Part {
        tokio::time::sleep(Duration::from_secs(1 + u64::from(item.0))).await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &FixedList<Part, 5>) -> Done {
        Done(parts.iter().map(|part| part.0).sum())
    }
}

/// A late optional input, and steps without output.
struct Optional;

#[workflow]
impl Optional {
    #[step]
    async fn make(&self, begin: &Begin) -> Option<Item> {
        (begin.0 > 2).then_some(Item(begin.0))
    }

    #[step]
    async fn nothing(&self, _begin: &Begin) {}

    #[step]
    async fn late(&self, note: &Note) -> Part {
        Part(note.0)
    }

    #[step(precondition = has_part)]
    async fn end(&self, item: &Item, part: Option<&Part>) -> Done {
        Done(item.0 + part.map_or(0, |part| part.0))
    }

    #[precondition]
    fn has_part(part: Option<&Part>) -> bool {
        part.is_some_and(|part| part.0 == 2)
    }
}

/// Requests repeatedly, at most four times.
struct Runaway;

#[workflow]
impl Runaway {
    #[step(max_executions = 4, loops, reruns)]
    async fn round(&self, begin: &Begin, item: Option<&Item>) -> Item {
        Item(begin.0 + item.map_or(0, |item| item.0))
    }

    #[step]
    async fn end(&self, items: &FixedList<Item, 4>) -> Done {
        Done(items.iter().map(|item| item.0).sum())
    }
}

survive! {
    contexts: Scenario::new(Counts).thread_context("items", 10_u32), 4;
    emitters: Scenario::new(Streams), 3;
    event_sets: Scenario::new(Chooses), 4;
    limits: Scenario::new(Limited), 7;
    optionals: Scenario::new(Optional).send(Note(1)).send(Note(2)), 3;
    loops_with_a_limit: Scenario::new(Runaway), 2;
    a_bound_for_all_executions: Scenario::new(Limited).engine(|engine| engine.max_concurrent_executions(1)), 6;
}
