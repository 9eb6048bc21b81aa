//! The runs of the golden journals.

use std::sync::Arc;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{EngineBuilder, RunOptions};

use super::{BoxFuture, Golden, RunHandle, engine, journals, same_as_files};
use crate::fixtures::{Begin, Done, Item, Note, Part};
use crate::shapes::{Ask, Asks, Branches, Catches, Fails, Joins, Lists, Retries, Stalls, Waits};

async fn ends<W: Workflow>(run: &RunHandle<W>) {
    let _ = run.outcome().await;
}

// S39
#[tokio::test(start_paused = true)]
async fn joins() {
    Golden::<Joins>::new("joins", |engine| engine.workflow(Joins)).check(3).await;
}

// S39
#[tokio::test(start_paused = true)]
async fn lists_and_preconditions() {
    Golden::<Lists>::new("lists", |engine| engine.workflow(Lists)).check(3).await;
}

// S39, S48, S51
#[tokio::test(start_paused = true)]
async fn branches_that_gather() {
    Golden::<Branches>::new("branches", |engine| engine.workflow(Branches)).check(4).await;
}

// S36, S39
#[tokio::test(start_paused = true)]
async fn attempts() {
    let before = |run: RunHandle<Retries>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            // The second attempt has failed, and the third is due later.
            tokio::time::sleep(Duration::from_secs(20)).await;
            drop(run);
        })
    };
    let golden = Golden::<Retries>::new("attempts", |engine| engine.workflow(Retries));
    Golden { before, ..golden }.check(3).await;
}

/// Its input is too large until it is compacted.
struct Compacts;

#[workflow]
impl Compacts {
    #[step(compact = shorten)]
    async fn talk(&self, begin: &Begin, info: &RunInfo) -> Result<Item, StepError> {
        if info.attempt() == 1 { Err(StepError::context_limit("too long")) } else { Ok(Item(begin.0)) }
    }

    async fn shorten(&self) -> Result<(), StepError> {
        tokio::task::yield_now().await;
        Ok(())
    }

    #[step]
    async fn end(&self, item: &Item, note: &Note) -> Done {
        Done(item.0 + note.0)
    }
}

// S35, S36, S39
#[tokio::test(start_paused = true)]
async fn a_compaction_in_a_run_with_a_thread_of_its_own() {
    let golden = Golden::<Compacts>::new("compacts", |engine| engine.workflow(Compacts));
    let options = RunOptions::new().id("compacts");
    let before = |run: RunHandle<Compacts>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            run.settled().await;
        })
    };
    let after = |run: RunHandle<Compacts>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            run.send(Note(9)).await.unwrap();
            ends(&run).await;
        })
    };
    Golden { options, before, after, ..golden }.check(3).await;
}

// S29, S39
#[tokio::test(start_paused = true)]
async fn a_failure_that_is_taken() {
    Golden::<Catches>::new("caught", |engine| engine.workflow(Catches)).check(3).await;
}

// S29, S39
#[tokio::test(start_paused = true)]
async fn an_uncaught_failure() {
    Golden::<Fails>::new("failed", |engine| engine.workflow(Fails)).check(3).await;
}

// S30, S39
#[tokio::test(start_paused = true)]
async fn a_stall() {
    Golden::<Stalls>::new("stalled", |engine| engine.workflow(Stalls)).check(3).await;
}

// S39, S42
#[tokio::test(start_paused = true)]
async fn requests_of_which_one_is_answered() {
    async fn reply(run: &RunHandle<Asks>, reply: u32) {
        run.settled().await;
        let open = run.requests().await.unwrap();
        run.reply(open[0].id::<Ask>().unwrap(), reply).await.unwrap();
    }
    let golden = Golden::<Asks>::new("requests", |engine| engine.workflow(Asks));
    let before = |run: RunHandle<Asks>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            reply(&run, 5).await;
            run.settled().await;
        })
    };
    let after = |run: RunHandle<Asks>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            reply(&run, 7).await;
            ends(&run).await;
        })
    };
    Golden { before, after, ..golden }.check(2).await;
}

/// Asks several people, one after the other. The first two answers are enough.
pub(crate) struct Races;

#[workflow]
impl Races {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(1).until(2)
    }

    #[step]
    async fn ask(&self, item: &Item) -> Ask {
        Ask(item.0)
    }

    #[step]
    async fn take(&self, reply: &Reply<Ask>) -> Part {
        Part(**reply)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(
            parts.ok().map(|part| part.0).sum::<u32>()
                + 100 * u32::try_from(parts.dropped().count()).unwrap(),
        )
    }
}

// S39, S50
#[tokio::test(start_paused = true)]
async fn branches_that_wait_beside_a_bound_of_which_some_are_enough() {
    async fn reply(run: &RunHandle<Races>, reply: u32) {
        run.settled().await;
        let open = run.requests().await.unwrap();
        run.reply(open[1].id::<Ask>().unwrap(), reply).await.unwrap();
    }
    let golden = Golden::<Races>::new("races", |engine| engine.workflow(Races));
    let before = |run: RunHandle<Races>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            reply(&run, 5).await;
            run.settled().await;
        })
    };
    let after = |run: RunHandle<Races>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            reply(&run, 7).await;
            ends(&run).await;
        })
    };
    Golden { before, after, ..golden }.check(4).await;
}

// S32, S39, S42
#[tokio::test(start_paused = true)]
async fn timers_and_expiring_requests() {
    let golden = Golden::<Waits>::new("timers", |engine| engine.workflow(Waits));
    let before = |run: RunHandle<Waits>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(70)).await;
            drop(run);
        })
    };
    let after = |run: RunHandle<Waits>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            run.settled().await;
            run.send(Note(9)).await.unwrap();
            ends(&run).await;
        })
    };
    Golden { before, after, ..golden }.check(3).await;
}

// S32, S39
#[tokio::test(start_paused = true)]
async fn timers_that_are_pending() {
    let golden = Golden::<Waits>::new("pending", |engine| engine.workflow(Waits));
    let before = |run: RunHandle<Waits>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            run.settled().await;
        })
    };
    let after = |run: RunHandle<Waits>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            run.send(Note(9)).await.unwrap();
            ends(&run).await;
        })
    };
    Golden { before, after, ..golden }.check(3).await;
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Rang(u32);

/// Waits for its own timer.
pub(crate) struct Rings;

#[workflow]
impl Rings {
    #[step]
    async fn set(&self, begin: &Begin) -> Timer<Rang> {
        Timer::after(Duration::from_secs(20), Rang(begin.0))
    }

    #[step]
    async fn end(&self, rang: &Rang) -> Done {
        Done(rang.0)
    }
}

/// Has a waiting child.
pub(crate) struct Calls;

#[workflow]
impl Calls {
    #[step]
    async fn call(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        let options = RunOptions::new().id("child");
        Ok(Item(children.run_with::<Rings>(begin.clone(), options).await?.0))
    }

    #[step]
    async fn end(&self, item: &Item, note: &Note) -> Done {
        Done(item.0 + note.0)
    }
}

// S31, S39
#[tokio::test(start_paused = true)]
async fn a_parent_and_its_child() {
    let golden = Golden::<Calls>::new("family", |engine| engine.workflow(Calls).workflow(Rings));
    let before = |run: RunHandle<Calls>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            drop(run);
        })
    };
    let after = |run: RunHandle<Calls>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            run.send(Note(9)).await.unwrap();
            ends(&run).await;
        })
    };
    Golden { before, after, ..golden }.check(3).await;
}

/// Handles the failure of a child, and ends while another child waits.
pub(crate) struct Handles;

#[workflow]
impl Handles {
    #[step]
    async fn ask(&self, begin: &Begin, children: &Children) -> Item {
        let options = RunOptions::new().id("failing");
        Item(children.run_with::<Breaks>(begin.clone(), options).await.map_or(7, |done| done.0))
    }

    #[step]
    async fn call(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let options = RunOptions::new().id("waiting");
        children.run_with::<Rings>(begin.clone(), options).await
    }

    #[step]
    async fn end(&self, item: &Item, note: &Note) -> Done {
        Done(item.0 + note.0)
    }
}

/// Fails at once.
pub(crate) struct Breaks;

#[workflow]
impl Breaks {
    #[step]
    async fn end(&self, _begin: &Begin) -> Result<Done, StepError> {
        Err(StepError::permanent("broken"))
    }
}

// S39, S82
#[tokio::test(start_paused = true)]
async fn a_parent_whose_children_failed_and_were_cancelled() {
    let hosts = |engine: EngineBuilder| engine.workflow(Handles).workflow(Breaks).workflow(Rings);
    let golden = Golden::<Handles>::new("ended_children", hosts);
    let before = |run: RunHandle<Handles>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            run.send(Note(9)).await.unwrap();
            ends(&run).await;
        })
    };
    Golden { before, ..golden }.check(3).await;
}

// S31, S39
#[tokio::test(start_paused = true)]
async fn a_run_that_was_cancelled() {
    let golden = Golden::<Waits>::new("cancelled", |engine| engine.workflow(Waits));
    let before = |run: RunHandle<Waits>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            run.settled().await;
            run.cancel("not needed any more").await.unwrap();
            ends(&run).await;
        })
    };
    Golden { before, ..golden }.check(3).await;
}

/// Cleans up in three steps, one of which fails, and one of which is not wanted.
pub(crate) struct Cleans;

#[workflow]
impl Cleans {
    #[step]
    async fn book(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item, note: &Note) -> Done {
        Done(item.0 + note.0)
    }

    #[step(on_end, precondition = knows)]
    async fn wonder(&self, _begin: &Begin) {}

    #[precondition]
    fn knows(_begin: &Begin) -> Result<bool, StepError> {
        Err(StepError::permanent("nobody knows"))
    }

    #[step(on_end = ["cancelled", "failed"])]
    async fn unbook(&self, _item: &Item) {}

    #[step(on_end)]
    async fn fail(&self, _item: &Item) -> Result<(), StepError> {
        Err(StepError::permanent("stuck"))
    }
}

// S31, S39
#[tokio::test(start_paused = true)]
async fn a_run_that_cleaned_up() {
    let golden = Golden::<Cleans>::new("cleaned_up", |engine| engine.workflow(Cleans));
    let before = |run: RunHandle<Cleans>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            run.settled().await;
            run.cancel("not needed any more").await.unwrap();
            ends(&run).await;
        })
    };
    Golden { before, ..golden }.check(3).await;
}

/// Its precondition fails.
pub(crate) struct Wonders;

#[workflow]
impl Wonders {
    #[step(precondition = knows)]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[precondition]
    fn knows(_begin: &Begin) -> Result<bool, StepError> {
        Err(StepError::permanent("nobody knows"))
    }
}

// S18, S39
#[tokio::test(start_paused = true)]
async fn a_precondition_that_failed() {
    Golden::<Wonders>::new("wonders", |engine| engine.workflow(Wonders)).check(3).await;
}

/// Its configuration.
#[derive(Debug, Serialize, Deserialize)]
struct Setting {
    factor: u32,
}

/// Is slow, and has a configuration.
struct Slow;

#[workflow]
impl Slow {
    #[step]
    async fn begin(&self, begin: &Begin, setting: &Config<Setting>) -> Item {
        Item(begin.0 * setting.factor)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Done(item.0)
    }
}

// S32, S39
#[tokio::test(start_paused = true)]
async fn a_run_with_options_that_came_to_its_time() {
    let golden = Golden::<Slow>::new("options", |engine| engine.workflow(Slow).config(Setting { factor: 2 }));
    let options = RunOptions::new().id("options").thread("golden").metadata("tenant", "ä");
    let options = options.timeout(Duration::from_millis(1_500)).config::<Setting>(Setting { factor: 7 });
    Golden { options, ..golden }.check(3).await;
}

/// An event whose fields, and those in them, are not in alphabetical order.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Found {
    title: String,
    score: Score,
    more: serde_json::Value,
    #[serde(flatten)]
    again: Option<Score>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Score {
    points: u32,
    by: String,
}

/// Its configuration, with fields that are not in alphabetical order.
#[derive(Debug, Serialize, Deserialize)]
struct Weights {
    title: u32,
    body: u32,
}

struct Searches;

#[workflow]
impl Searches {
    #[step]
    async fn find(&self, begin: &Begin, weights: &Config<Weights>) -> Found {
        let score = Score { points: begin.0 * weights.title * weights.body, by: "hand".into() };
        let more = serde_json::json!({"z": [{"y": 1, "x": 2}], "a": null});
        Found { title: "keys".into(), score: score.clone(), more, again: Some(score) }
    }

    #[step]
    async fn end(&self, found: &Found) -> Done {
        Done(found.score.points)
    }
}

// S52, S39
#[tokio::test(start_paused = true)]
async fn keys_are_sorted() {
    let weights = Weights { title: 2, body: 3 };
    let golden = Golden::<Searches>::new("keys", |engine| {
        engine.workflow(Searches).config(Weights { title: 1, body: 1 })
    });
    let options = golden.options.clone().config::<Weights>(weights);
    Golden { options, ..golden }.check(3).await;
}

/// An event that has changed.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(version = 3)]
struct Label {
    text: String,
}

struct Labels;

#[workflow]
impl Labels {
    #[step]
    async fn label(&self, begin: &Begin) -> Label {
        Label { text: begin.0.to_string() }
    }

    #[step]
    async fn end(&self, label: &Label, note: &Note) -> Done {
        Done(label.text.parse::<u32>().unwrap_or_default() + note.0)
    }
}

// S39, S43
#[tokio::test(start_paused = true)]
async fn an_event_with_a_version() {
    let golden = Golden::<Labels>::new("version", |engine| engine.workflow(Labels));
    let before = |run: RunHandle<Labels>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            run.settled().await;
        })
    };
    let after = |run: RunHandle<Labels>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            run.send(Note(9)).await.unwrap();
            ends(&run).await;
        })
    };
    Golden { before, after, ..golden }.check(30).await;
}

mod grown {
    use super::*;

    /// An earlier form of `Labels`, with less.
    pub(super) struct Shop;

    #[workflow]
    impl Shop {
        #[step]
        async fn end(&self, _begin: &Begin, note: &Note) -> Done {
            Done(note.0)
        }
    }

    pub(super) mod now {
        use super::*;

        pub(in super::super) struct Shop;

        #[workflow]
        impl Shop {
            #[step]
            async fn end(&self, _begin: &Begin, note: &Note) -> Done {
                Done(note.0)
            }

            #[step]
            async fn count(&self, begin: &Begin) -> Part {
                Part(begin.0)
            }
        }
    }
}

// S39, S40, S41
#[tokio::test(start_paused = true)]
async fn a_run_that_was_resumed_with_another_table_and_once_more() {
    let store = Arc::new(MemoryStore::default());
    let options = RunOptions::new().id("resumed").thread("golden");
    let was: fn(EngineBuilder) -> EngineBuilder = |engine| engine.workflow(grown::Shop);
    let run = engine(&store, was).start_with::<grown::Shop>(Begin(3), options).await.unwrap();
    run.settled().await;
    let is: fn(EngineBuilder) -> EngineBuilder = |engine| engine.workflow(grown::now::Shop);
    for _ in 0..2 {
        let run = engine(&store, is).attach::<grown::now::Shop>("resumed").await.unwrap();
        run.settled().await;
    }
    let after = |run: RunHandle<grown::now::Shop>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            run.send(Note(9)).await.unwrap();
            ends(&run).await;
        })
    };
    same_as_files("resumed", journals(&store).await, after, is).await;
}
