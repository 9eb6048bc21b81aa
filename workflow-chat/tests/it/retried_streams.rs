//! Streamed texts of attempts that fail: their retraction comes before the next attempt's first piece, for every viewer
//! and observer, however the attempt failed (S25).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream};
use workflow_chat::{Chunk, ShowText as _};
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::{DisplayItem, ErrorClass, ExecutionId, Retries, RetryPolicy};
use workflow_testkit::{Scenario, VirtualClock, explore};

use crate::fixtures::{Begin, Done, Gate, Item, Part};

/// Fails three attempts of each of its steps after some pieces of text, each in another way.
struct Stuttering;

impl Stuttering {
    fn soon() -> RetryPolicy {
        let soon = Retries::fixed(3, Duration::ZERO);
        let classes = [ErrorClass::Transient, ErrorClass::Tool, ErrorClass::Permanent];
        classes.into_iter().fold(RetryPolicy::standard(), |policy, class| policy.on(class, soon.clone()))
    }

    /// Streams a few pieces, and fails or hangs in the first attempts.
    async fn talk(display: &Display, info: &RunInfo) -> Result<(), StepError> {
        let attempt = info.attempt();
        let pieces = ["a", "<think>b</think>", "c"].map(str::to_owned);
        let pieces = stream::iter(pieces).then(|piece: String| async {
            tokio::task::yield_now().await;
            piece
        });
        display.stream_text(pieces).await;
        match attempt {
            1 => Err(StepError::tool("torn")),
            2 => panic!("on purpose"),
            3 => std::future::pending().await,
            _ => Ok(()),
        }
    }
}

#[workflow]
impl Stuttering {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(retry = Self::soon(), timeout = "30s")]
    async fn inside(&self, item: &Item, display: &Display, info: &RunInfo) -> Result<Part, StepError> {
        Self::talk(display, info).await?;
        Ok(Part(item.0))
    }

    #[step(retry = Self::soon(), timeout = "30s", spawn)]
    async fn apart(&self, item: &Item, display: &Display, info: &RunInfo) -> Result<Part, StepError> {
        Self::talk(display, info).await?;
        Ok(Part(item.0))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

/// Where an item is from: the runs on the way to it, and the execution.
type Origin = (String, ExecutionId);

/// Asserts that attempts follow each other, each retracted before the next. Returns the pieces that count.
fn in_order<'a>(items: impl IntoIterator<Item = &'a DisplayItem>) -> BTreeMap<Origin, String> {
    let mut texts: BTreeMap<Origin, (u32, Option<String>)> = BTreeMap::new();
    for item in items {
        let (path, item) = match item {
            DisplayItem::Child { path, item } => {
                (path.last().map_or("", |child| child.run.as_str()), &**item)
            }
            item => ("", item),
        };
        match item {
            DisplayItem::Shown { execution, attempt, .. } => {
                let text = texts.entry((path.to_owned(), *execution)).or_default();
                if text.1.is_none() {
                    *text = (*attempt, Some(String::new()));
                }
                assert_eq!(text.0, *attempt, "{item:?} before the retraction of {}", text.0);
                let piece = item.event::<Chunk>().map(|chunk| &*chunk.text);
                text.1.as_mut().unwrap().push_str(piece.unwrap_or("*"));
            }
            DisplayItem::Retracted { execution, attempt, .. } => {
                let text = texts.get_mut(&(path.to_owned(), *execution)).expect("something was shown");
                assert_eq!((text.0, text.1.is_some()), (*attempt, true), "{item:?}");
                text.1 = None;
            }
            _ => {}
        }
    }
    texts.into_iter().filter_map(|(origin, (_, text))| Some((origin, text?))).collect()
}

/// Notes everything that is displayed.
#[derive(Clone, Default)]
struct Noting(Arc<Mutex<Vec<DisplayItem>>>);

impl Observer for Noting {
    fn observe(&self, observation: &Observation) {
        if let Observed::Displayed(item) = &observation.what {
            self.0.lock().unwrap().push(item.clone());
        }
    }
}

// S25
#[tokio::test(start_paused = true)]
async fn pieces_are_retracted_before_those_of_the_next_attempt_however_the_attempt_failed() {
    let noted = Noting::default();
    let clock = VirtualClock::new();
    let engine = Engine::builder().workflow(Stuttering).clock(clock).observer(noted.clone()).build().unwrap();
    let run = engine.start::<Stuttering>(Begin(3)).await.unwrap();
    let seen: Vec<DisplayItem> = run.display().collect().await;
    run.outcome().await.unwrap();
    let texts = in_order(&seen);
    assert_eq!((texts.len(), texts.values().all(|text| text == "a*c")), (6, true), "{texts:?}");
    let retracted = seen.iter().filter(|item| matches!(item, DisplayItem::Retracted { .. })).count();
    assert_eq!(retracted, 18);
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    assert_eq!(in_order(&*noted.0.lock().unwrap()), texts);
}

/// Two executions, each with a torn first attempt.
struct Pair;

#[workflow]
impl Pair {
    #[step(retry = Stuttering::soon())]
    async fn one(&self, _: &Begin, display: &Display, info: &RunInfo) -> Result<Item, StepError> {
        torn(display, info).await.map(|()| Item(1))
    }

    #[step(retry = Stuttering::soon())]
    async fn other(&self, _: &Begin, display: &Display, info: &RunInfo) -> Result<Part, StepError> {
        torn(display, info).await.map(|()| Part(2))
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

async fn torn(display: &Display, info: &RunInfo) -> Result<(), StepError> {
    display.chunk("x");
    tokio::task::yield_now().await;
    display.chunk("y");
    if info.attempt() == 1 { Err(StepError::tool("torn")) } else { Ok(()) }
}

// S25
#[test]
fn pieces_are_retracted_in_order_whichever_execution_goes_first() {
    let explored = explore(|| Scenario::new(Pair).start(Begin(0))).assert(|run| {
        run.assert_output(&Done(3));
        let handle = run.handle().display();
        let seen: Vec<DisplayItem> = handle.collect::<Vec<_>>().now_or_never().unwrap();
        let texts = in_order(&seen);
        assert_eq!((texts.len(), texts.values().all(|text| text == "xy")), (2, true), "{texts:?}");
    });
    assert!(explored.is_exhaustive() && explored.tried() > 1, "{explored}");
}

/// Runs a child that fails an attempt of its own, and then fails its own first attempt.
struct Above;

#[workflow]
impl Above {
    #[step(retry = Stuttering::soon())]
    async fn ask(&self, begin: &Begin, children: &Children, info: &RunInfo) -> Result<Done, StepError> {
        let done = children.run::<Pair>(begin.clone()).await?;
        if info.attempt() == 1 { Err(StepError::tool("torn")) } else { Ok(done) }
    }
}

// S25
#[tokio::test]
async fn pieces_of_children_are_retracted_with_their_attempt_and_with_the_one_that_ran_them() {
    let run = Scenario::new(Above).host(Pair).start(Begin(0)).await;
    run.assert_output(&Done(3));
    let seen: Vec<DisplayItem> = run.handle().display().collect().await;
    let own = seen.iter().position(|item| matches!(item, DisplayItem::Retracted { .. })).unwrap();
    let of_run = |items: &[DisplayItem], run: &str| {
        let from = |item: &DisplayItem| matches!(item, DisplayItem::Child { path, .. } if path[0].run.as_str() == run);
        items.iter().filter(|item| from(item)).count()
    };
    assert_eq!(
        (of_run(&seen[..own], "scenario/ask-x1.1"), of_run(&seen[own..], "scenario/ask-x1.1")),
        (10, 0)
    );
    assert_eq!(of_run(&seen[own..], "scenario/ask-x1.a2.1"), 10);
    assert_eq!(in_order(&seen[own + 1..]).values().collect::<Vec<_>>(), ["xy", "xy"]);
    // One item at a time, as a viewer does: what is left is the second attempt's.
    let mut stands: Vec<&DisplayItem> = Vec::new();
    for item in &seen {
        stands.retain(|shown| !item.retracts(shown));
        stands.push(item);
    }
    assert_eq!(stands.iter().filter_map(|item| item.event::<Chunk>()).count(), 4);
    let mut left = stands.iter().filter(|item| item.event::<Chunk>().is_some());
    assert!(left.all(|item| matches!(item, DisplayItem::Child { path, .. } if path[0].attempt == 2)));
}

/// Streams two pieces and fails; then streams ten and ends.
struct Late(Gate);

#[workflow]
impl Late {
    #[step(retry = Stuttering::soon())]
    async fn talk(&self, begin: &Begin, display: &Display, info: &RunInfo) -> Result<Done, StepError> {
        let pieces = if info.attempt() == 1 { 0..2 } else { 2..12 };
        pieces.for_each(|piece| display.chunk(piece.to_string()));
        self.0.pass().await;
        if info.attempt() == 1 { Err(StepError::tool("torn")) } else { Ok(Done(begin.0)) }
    }
}

// S25
#[tokio::test]
async fn a_viewer_that_is_too_slow_for_the_next_attempt_gets_the_retraction_all_the_same() {
    let gate = Gate::closed();
    let engine = Engine::builder().workflow(Late(gate.clone())).display_capacity(2).build().unwrap();
    let run = engine.start::<Late>(Begin(1)).await.unwrap();
    let mut viewer = run.display();
    let read = [viewer.next().await.unwrap(), viewer.next().await.unwrap()];
    gate.let_pass(2);
    run.outcome().await.unwrap();
    let rest: Vec<DisplayItem> = viewer.collect().await;
    let [
        DisplayItem::Retracted { attempt: 1, .. },
        DisplayItem::Missed { count: Some(8) },
        DisplayItem::Shown { attempt: 2, .. },
        DisplayItem::Shown { attempt: 2, .. },
        DisplayItem::Ended { .. },
    ] = &rest[..]
    else {
        panic!("{rest:?}")
    };
    let texts = in_order(read.iter().chain(&rest));
    assert_eq!(texts.values().collect::<Vec<_>>(), ["1011"]);
}
