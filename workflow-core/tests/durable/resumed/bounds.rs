//! Bounded fan-outs in journals of releases in which branches that wait counted within the bound (S39, S50). The bound
//! of such a fan-out goes on counting every open branch, so each branch opens and sees what it did.

use std::sync::Arc;

use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, OpenedFanOut, Position, Record, RunQuery, Write};
use workflow_core::{RunHandle, RunOptions, RunStatus};

use crate::fixtures::{Begin, Done, Item, Note, Part};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Seen(u32, Option<u32>);

/// One branch after the other asks, and looks at the notes that are there when it opens.
struct Asks;

#[workflow]
impl Asks {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(1)
    }

    #[step]
    async fn ask(&self, item: &Item) -> Ask {
        Ask(item.0)
    }

    #[step(reruns)]
    async fn look(&self, item: &Item, note: Option<&Note>) -> Seen {
        Seen(item.0, note.map(|note| note.0))
    }

    #[step]
    async fn take(&self, reply: &Reply<Ask>) -> Part {
        Part(**reply)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

const RUN: &str = "asks";

fn engine(store: &Arc<MemoryStore>) -> Engine {
    Engine::builder().workflow(Asks).store(Arc::clone(store)).replay_check(true).build().unwrap()
}

fn opened(record: &mut Record) -> &mut [OpenedFanOut] {
    if let Record::ExecutionSucceeded { fan_outs, .. } = record { fan_outs } else { &mut [] }
}

/// A store with the journal up to the batch that opened the fan-out; `only_busy` is what its record has.
async fn opened_with(only_busy: bool) -> Arc<MemoryStore> {
    let whole = Arc::new(MemoryStore::default());
    let run = engine(&whole).start_with::<Asks>(Begin(3), RunOptions::new().id(RUN)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let stored = whole.runs(&RunQuery::new()).await.unwrap().remove(0);
    let mut records = whole.read(&stored.id, Position(0), usize::MAX).await.unwrap();
    // The start, its event, the success of `split`, and three items.
    records.truncate(6);
    let fan_out = &mut opened(&mut records[2])[0];
    assert!(fan_out.only_busy, "the branches can wait");
    fan_out.only_busy = only_busy;
    let store = Arc::new(MemoryStore::default());
    store.append(&stored.id, Position(0), Write { records, run: stored.run }).await.unwrap();
    store
}

/// The next process of the run, which has a new engine.
async fn resumed(store: &Arc<MemoryStore>) -> RunHandle<Asks> {
    let run = engine(store).attach::<Asks>(RUN).await.unwrap();
    run.settled().await;
    run
}

async fn asked(run: &RunHandle<Asks>) -> Vec<u32> {
    let open = run.requests().await.unwrap();
    open.iter().filter_map(|open| Some(open.downcast_ref::<Ask>()?.0)).collect()
}

async fn reply(run: &RunHandle<Asks>, number: u32) {
    let open = run.requests().await.unwrap();
    let ask = open.iter().find(|open| open.downcast_ref() == Some(&Ask(number))).unwrap();
    run.reply(ask.id::<Ask>().unwrap(), number).await.unwrap();
    run.settled().await;
}

fn seen(report: &workflow_core::report::RunReport) -> Vec<(u32, Option<u32>)> {
    let seen = report.log.iter().filter_map(|logged| logged.value.downcast_ref::<Seen>());
    seen.map(|seen| (seen.0, seen.1)).collect()
}

// S39, S50
#[tokio::test]
async fn in_an_earlier_journal_a_branch_that_waits_counts_until_the_fan_out_is_gathered() {
    let store = opened_with(false).await;
    for number in 0..3 {
        // Each process replays what the ones before did, and the replay check compares both.
        let run = resumed(&store).await;
        assert_eq!(asked(&run).await, [number]);
        run.send(Note(number)).await.unwrap();
        run.settled().await;
        reply(&run, number).await;
        if number == 2 {
            assert_eq!(run.outcome().await.unwrap(), Done(3));
            // Each branch looked when it opened, behind the note that came before.
            let expected = [(0, None), (0, Some(0)), (1, Some(0)), (1, Some(1)), (2, Some(1)), (2, Some(2))];
            assert_eq!(seen(&run.report().await.unwrap()), expected);
        }
    }
}

// S39, S50
#[tokio::test]
async fn a_fan_out_of_today_opens_the_others_while_its_branches_wait() {
    let store = opened_with(true).await;
    let run = resumed(&store).await;
    assert_eq!(asked(&run).await, [0, 1, 2]);
    drop(run);
    let run = resumed(&store).await;
    assert_eq!(asked(&run).await, [0, 1, 2]);
    for number in [2, 0, 1] {
        reply(&run, number).await;
    }
    assert_eq!(run.outcome().await.unwrap(), Done(3));
}
