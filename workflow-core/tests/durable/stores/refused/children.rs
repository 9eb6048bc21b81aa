//! Refused writes that had dropped executions with children.

use super::*;
use crate::fixtures::{Part, Waits};

/// The first branch that settles drops the other, which waits for a child or has started one.
struct Races {
    awaits: bool,
    /// The first branch may return.
    gate: Arc<Semaphore>,
}

#[workflow]
impl Races {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().until(1).continue_others()
    }

    #[step]
    async fn work(&self, item: &Item, children: &Children) -> Result<Text, RunError> {
        if item.0 == 0 {
            self.gate.acquire().await.unwrap().forget();
            return Ok(text_of(0, &[0]));
        }
        let named = RunOptions::new().id("c");
        let Done(done) = if self.awaits {
            children.run_with::<Waits>(Begin(1), named).await?
        } else {
            children.start_with::<Waits>(Begin(1), named).await?.outcome().await?
        };
        Ok(Text(format!("{done} fine")))
    }

    #[step]
    async fn end(&self, texts: &Gather<Text>) -> Done {
        Done(u32::try_from(texts.branches().flat_map(|branch| branch.events()).count()).unwrap())
    }
}

const CHILD: &str = "r/work-x3.c";

/// Waits until the store has refused a write, and for what follows from that.
async fn refused(store: &Picky) {
    until(async || store.writes().iter().any(|write| !write.is_taken)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

// S31, S38
#[tokio::test]
async fn a_child_goes_on_whose_execution_only_a_refused_write_had_dropped() {
    for awaits in [true, false] {
        let (store, gate) = (Picky::default(), Arc::new(Semaphore::new(0)));
        let races = Races { awaits, gate: Arc::clone(&gate) };
        let engine = Engine::builder().workflow(races).workflow(Waits).store(store.clone()).build().unwrap();
        let run = start::<Races>(&engine, 2).await;
        until(async || engine.find(&CHILD.into()).is_some_and(|run| run.status() == RunStatus::Waiting))
            .await;
        gate.add_permits(1);
        refused(&store).await;
        engine.attach::<Waits>(CHILD).await.unwrap().send(Note(1)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(1), "{awaits}: {}", run.report().await.unwrap());
    }
}

/// The branch of the second level waits for a child. Its neighbour drops it, and so does the other branch of the first
/// level.
struct Nested {
    neighbour: Arc<Semaphore>,
    other: Arc<Semaphore>,
}

#[workflow]
impl Nested {
    #[step]
    async fn open(&self, _begin: &Begin) -> FanOut<Item> {
        (0..2).map(Item).collect::<FanOut<_>>().until(1).continue_others()
    }

    #[step]
    async fn branch(&self, item: &Item) -> (Option<FanOut<Part>>, Option<Text>) {
        if item.0 == 1 {
            self.other.acquire().await.unwrap().forget();
            return (None, Some(Text("fine".into())));
        }
        let parts = (0..2).map(Part).collect::<FanOut<_>>();
        (Some(parts.until(1).continue_others()), None)
    }

    #[step]
    async fn work(&self, part: &Part, children: &Children) -> Result<Said, RunError> {
        if part.0 == 0 {
            self.neighbour.acquire().await.unwrap().forget();
            return Ok(Said(UNWANTED.into()));
        }
        let Done(done) = children.run_with::<Waits>(Begin(1), RunOptions::new().id("c")).await?;
        Ok(Said(done.to_string()))
    }

    #[step]
    async fn settle(&self, said: &Gather<Said>) -> Text {
        Text(said.branches().count().to_string())
    }

    #[step]
    async fn end(&self, _texts: &Gather<Text>, note: &Note) -> Done {
        Done(note.0)
    }
}

// S31, S38
#[tokio::test]
async fn a_child_ends_whose_execution_another_write_drops_after_the_refused_one() {
    let (store, neighbour, other) =
        (Picky::default(), Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let nested = Nested { neighbour: Arc::clone(&neighbour), other: Arc::clone(&other) };
    let engine = Engine::builder().workflow(nested).workflow(Waits).store(store.clone()).build().unwrap();
    let run = start::<Nested>(&engine, 1).await;
    let child = "r/work-x5.c";
    until(async || engine.find(&child.into()).is_some_and(|run| run.status() == RunStatus::Waiting)).await;
    let child = engine.attach::<Waits>(child).await.unwrap();
    store.hold();
    for gate in [neighbour, other] {
        gate.add_permits(1);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(child.status(), RunStatus::Waiting, "the store lacks what drops its execution");
    store.open();
    assert!(matches!(child.outcome().await, Err(RunError::Cancelled { .. })));
    assert!(store.writes().iter().any(|write| !write.is_taken));
    run.send(Note(7)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7), "{}", run.report().await.unwrap());
}

/// The second branch has a thread of its own, and begins its child in the poll in which it was dropped.
struct Late {
    gate: Arc<Semaphore>,
    attempts: Arc<AtomicUsize>,
}

#[workflow]
impl Late {
    #[step]
    async fn open(&self, _begin: &Begin) -> FanOut<Item> {
        (0..2).map(Item).collect::<FanOut<_>>().until(1).continue_others()
    }

    #[step(spawn)]
    async fn work(&self, item: &Item, children: &Children, dropped: &Cancellation) -> Result<Text, RunError> {
        if item.0 == 0 {
            self.gate.acquire().await.unwrap().forget();
            return Ok(text_of(0, &[0]));
        }
        if self.attempts.fetch_add(1, Ordering::SeqCst) == 0 {
            while !dropped.is_cancelled() {
                std::thread::yield_now();
            }
        }
        let Done(done) = children.run_with::<Waits>(Begin(1), RunOptions::new().id("c")).await?;
        Ok(Text(format!("{done} fine")))
    }

    #[step]
    async fn end(&self, texts: &Gather<Text>) -> Done {
        Done(u32::try_from(texts.branches().flat_map(|branch| branch.events()).count()).unwrap())
    }
}

// S31, S38
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_child_goes_on_that_a_dropped_step_began_before_the_store_refused_the_drop() {
    let store = Picky::default();
    let (gate, attempts) = (Arc::new(Semaphore::new(0)), Arc::<AtomicUsize>::default());
    let late = Late { gate: Arc::clone(&gate), attempts: Arc::clone(&attempts) };
    let engine = Engine::builder().workflow(late).workflow(Waits).store(store.clone()).build().unwrap();
    let run = start::<Late>(&engine, 1).await;
    until(async || attempts.load(Ordering::SeqCst) == 1).await;
    store.hold();
    gate.add_permits(1);
    until(async || engine.find(&CHILD.into()).is_some()).await;
    store.open();
    refused(&store).await;
    engine.attach::<Waits>(CHILD).await.unwrap().send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1), "{}", run.report().await.unwrap());
}

/// The second branch waits for a child in its first attempt, and not when it begins again.
struct Forgets {
    gate: Arc<Semaphore>,
    attempts: AtomicUsize,
    succeeds: bool,
}

#[workflow]
impl Forgets {
    #[step]
    async fn open(&self, _begin: &Begin) -> FanOut<Item> {
        (0..2).map(Item).collect::<FanOut<_>>().until(1).continue_others()
    }

    #[step]
    async fn work(&self, item: &Item, children: &Children) -> Result<Text, StepError> {
        if item.0 == 0 {
            self.gate.acquire().await.unwrap().forget();
            return Ok(text_of(0, &[0]));
        }
        if self.attempts.fetch_add(1, Ordering::SeqCst) == 0 {
            children.run_with::<Waits>(Begin(1), RunOptions::new().id("c")).await?;
        }
        if self.succeeds { Ok(Text("fine".into())) } else { Err(StepError::permanent("on purpose")) }
    }

    #[step]
    async fn end(&self, _texts: &Gather<Text>, note: &Note) -> Done {
        Done(note.0)
    }
}

// S31, S38
#[tokio::test]
async fn a_child_ends_for_which_its_execution_does_not_ask_when_it_begins_again() {
    for succeeds in [true, false] {
        let (store, gate) = (Picky::default(), Arc::new(Semaphore::new(0)));
        let forgets = Forgets { gate: Arc::clone(&gate), attempts: AtomicUsize::new(0), succeeds };
        let engine =
            Engine::builder().workflow(forgets).workflow(Waits).store(store.clone()).build().unwrap();
        let run = start::<Forgets>(&engine, 1).await;
        until(async || engine.find(&CHILD.into()).is_some_and(|run| run.status() == RunStatus::Waiting))
            .await;
        let child = engine.attach::<Waits>(CHILD).await.unwrap();
        gate.add_permits(1);
        until(async || child.status() == RunStatus::Cancelled).await;
        if succeeds {
            run.send(Note(7)).await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), Done(7), "{}", run.report().await.unwrap());
        }
    }
}
