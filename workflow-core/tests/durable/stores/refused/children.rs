//! Refused writes that had dropped executions with children.

use super::*;

/// Waits for a note.
struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn work(&self, begin: &Begin, note: &Note) -> Done {
        Done(begin.0 + note.0)
    }
}

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
        until(async || store.writes().iter().any(|write| !write.is_taken)).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        engine.attach::<Waits>(CHILD).await.unwrap().send(Note(1)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(1), "{awaits}: {}", run.report().await.unwrap());
    }
}
