//! The workflows of the mutated journals, each of another shape. No step panics on any input.

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Retries, RetryPolicy, RunOptions, StepFailed};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Begin(pub(crate) u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Item(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Part(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Leaf(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Grown(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Total(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
pub(crate) struct Ask(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
pub(crate) struct Note(pub(crate) u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Late(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(version = 3, upgrade = older)]
pub(crate) struct Label {
    text: String,
}

fn older(_: u32, mut was: serde_json::Value) -> Result<serde_json::Value, String> {
    let text = was.get_mut("name").map(serde_json::Value::take).ok_or("it has no name")?;
    Ok(serde_json::json!({ "text": text }))
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Done(pub(crate) u32);

fn some(number: u32) -> std::ops::Range<u32> {
    // A changed journal may ask for any number.
    0..number.min(5)
}

fn sum(numbers: impl Iterator<Item = u32>) -> u32 {
    numbers.fold(0, u32::wrapping_add)
}

fn twice() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(2, Duration::from_secs(10)))
}

/// Branches with retries and children, a timer, a request, an outside event.
pub(crate) struct Whole;

#[workflow]
impl Whole {
    #[step]
    async fn open(&self, begin: &Begin) -> (FanOut<Item>, Timer<Late>) {
        let items = some(begin.0).map(Item).collect();
        (items, Timer::after(Duration::from_mins(1), Late(begin.0)))
    }

    #[step(retry = twice())]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        if item.0 == 1 && info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn add(&self, parts: &Gather<Part>, children: &Children) -> Result<Total, RunError> {
        let Done(more) = children.run::<Small>(Begin(1)).await?;
        Ok(Total(sum(parts.ok().map(|part| part.0)).wrapping_add(more)))
    }

    #[step]
    async fn ask(&self, total: &Total) -> Ask {
        Ask(total.0)
    }

    #[step]
    async fn end(&self, reply: &Reply<Ask>, note: &Note, late: &Late) -> Done {
        Done((**reply).wrapping_add(note.0).wrapping_add(late.0))
    }
}

pub(crate) struct Small;

#[workflow]
impl Small {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

/// Nested branches; some fail, wait for timers or make requests.
pub(crate) struct Nested;

#[workflow]
impl Nested {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        some(begin.0).map(Item).collect::<FanOut<_>>().concurrency(2).continue_others()
    }

    #[step]
    async fn split(&self, item: &Item) -> (FanOut<Leaf>, Timer<Late>) {
        let leaves = some(item.0.wrapping_add(1)).map(Leaf).collect::<FanOut<_>>().wait_all();
        (leaves, Timer::after(Duration::from_secs(u64::from(item.0 % 7)), Late(item.0)))
    }

    #[step(concurrency = 2)]
    async fn grow(&self, item: &Item, leaf: &Leaf) -> Result<Grown, StepError> {
        if item.0 == 2 && leaf.0 == 1 { Err(StepError::tool("bent")) } else { Ok(Grown(leaf.0)) }
    }

    #[step]
    async fn check(&self, late: &Late) -> Expiring<Ask> {
        Ask(late.0).expires_in(Duration::from_secs(5))
    }

    #[step]
    async fn part(&self, grown: &Gather<Grown>, _expired: &Expired<Ask>) -> Part {
        Part(sum(grown.ok().map(|grown| grown.0)))
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>, note: &Note) -> Done {
        Done(sum(parts.ok().map(|part| part.0)).wrapping_add(note.0))
    }
}

/// Lists, of any length and of two, a precondition, and limited steps.
pub(crate) struct Lists;

#[workflow]
impl Lists {
    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        some(begin.0).map(Item).collect()
    }

    #[step(concurrency = 1)]
    async fn double(&self, item: &Item, info: &RunInfo) -> (Part, Option<Label>) {
        (Part(item.0.wrapping_mul(2)), Some(Label { text: info.attempt().to_string() }))
    }

    #[step(max_executions = 1, reruns)]
    async fn pair(&self, items: &FixedList<Item, 2>, label: Option<&Label>) -> Total {
        Total(sum(items.iter().map(|item| item.0)) ^ u32::from(label.is_some()))
    }

    #[step(precondition = is_all)]
    async fn end(&self, begin: &Begin, parts: &List<Part>, total: &Total, note: &Note) -> Done {
        Done(sum(parts.iter().map(|part| part.0)).wrapping_add(begin.0).wrapping_add(total.0 ^ note.0))
    }

    #[precondition]
    async fn is_all(&self, begin: &Begin, parts: &List<Part>) -> bool {
        tokio::task::yield_now().await;
        parts.len() >= some(begin.0).len()
    }
}

/// A loop over timers.
pub(crate) struct Rounds;

#[workflow]
impl Rounds {
    #[step]
    async fn begin(&self, begin: &Begin) -> Timer<Late> {
        Timer::after(Duration::from_secs(3), Late(begin.0.min(5)))
    }

    #[step(loops, max_executions = 10)]
    async fn round(&self, late: &Late) -> (Option<Timer<Late>>, Option<Item>) {
        match late.0.min(5).checked_sub(1) {
            Some(left) => (Some(Timer::after(Duration::from_secs(3), Late(left))), None),
            None => (None, Some(Item(0))),
        }
    }

    #[step]
    async fn end(&self, _item: &Item, note: &Note) -> Done {
        Done(note.0)
    }
}

/// Failures that a step takes, that are tolerated, and that end the run.
pub(crate) struct Fails;

#[workflow]
impl Fails {
    #[step(retry = twice())]
    async fn first(&self, begin: &Begin, info: &RunInfo) -> Result<Item, StepError> {
        if info.attempt() < 9 { Err(StepError::transient("busy")) } else { Ok(Item(begin.0)) }
    }

    #[step(on_error = "continue")]
    async fn second(&self, begin: &Begin) -> Result<Part, StepError> {
        if begin.0 < 9 { Err(StepError::tool("broken")) } else { Ok(Part(begin.0)) }
    }

    #[step(catches = [first])]
    async fn instead(&self, failed: &StepFailed) -> Item {
        Item(failed.attempts)
    }

    #[step]
    async fn third(&self, item: &Item, note: &Note) -> Result<Done, StepError> {
        if note.0 < 9 { Err(StepError::rejected("no")) } else { Ok(Done(item.0)) }
    }
}

/// Awaited and started children, which wait and have children.
pub(crate) struct Parents;

#[workflow]
impl Parents {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Result<Item, StepError> {
        children.start_with::<Rounds>(Begin(begin.0), RunOptions::new().id("rounds")).await?;
        Ok(Item(begin.0))
    }

    #[step(retry = twice())]
    async fn second(&self, item: &Item, children: &Children, info: &RunInfo) -> Result<Part, StepError> {
        if info.attempt() == 1 {
            children.run::<Small>(Begin(item.0)).await?;
            return Err(StepError::transient("busy"));
        }
        // To the given depth.
        match item.0.min(3).checked_sub(1) {
            Some(deeper) => Ok(Part(children.run::<Self>(Begin(deeper)).await?.0)),
            None => Ok(Part(children.run::<Small>(Begin(7)).await?.0)),
        }
    }

    #[step]
    async fn ask(&self, part: &Part) -> Expiring<Ask> {
        Ask(part.0).expires_in(Duration::from_hours(3))
    }

    #[step(reruns)]
    async fn end(
        &self,
        part: &Part,
        reply: Option<&Reply<Ask>>,
        expired: Option<&Expired<Ask>>,
        note: Option<&Note>,
    ) -> Option<Done> {
        (reply.is_some() || expired.is_some() || note.is_some()).then_some(Done(part.0))
    }
}
