//! What had begun before a pause behind a refused batch does not begin again (S61, S69).

use workflow_core::Pause;

use super::*;

#[derive(Clone)]
struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

/// Makes an unwanted text, while an execution is under way. Both happen at most once.
#[derive(Clone, Default)]
struct Works {
    gate: Gate,
    worked: Arc<AtomicUsize>,
    made: Arc<AtomicUsize>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Made2(u32);

#[workflow]
impl Works {
    #[step]
    async fn make(&self, begin: &Begin) -> Made2 {
        Made2(begin.0)
    }

    #[step(at_most_once)]
    async fn bad(&self, _made: &Made2) -> Text {
        while self.worked.load(Ordering::SeqCst) < 1 {
            tokio::task::yield_now().await;
        }
        self.made.fetch_add(1, Ordering::SeqCst);
        Text(UNWANTED.into())
    }

    #[step(catches = [bad, slow])]
    async fn recover(&self, _failed: &StepFailed) -> Item {
        Item(1)
    }

    #[step(at_most_once)]
    async fn slow(&self, made: &Made2) -> Item {
        self.worked.fetch_add(1, Ordering::SeqCst);
        self.gate.0.acquire().await.unwrap().forget();
        Item(made.0)
    }

    #[step]
    async fn end(&self, items: &FixedList<Item, 2>, note: &Note) -> Done {
        Done(note.0 + u32::try_from(items.len()).unwrap())
    }
}

/// How often the text was made and the other execution worked, when the run has completed. `ends_meanwhile`: that one ends
/// in the pause, before the store answers.
async fn counts(how: Pause, ends_meanwhile: bool) -> (usize, usize) {
    let store = Picky::default().held_after(2);
    let works = Works::default();
    let engine = engine(works.clone(), &store);
    let run = start::<Works>(&engine, 1).await;
    until(async || works.made.load(Ordering::SeqCst) == 1).await;
    let yields = async |times: usize| {
        for _ in 0..times {
            tokio::task::yield_now().await;
        }
    };
    yields(100).await;
    let opens = async {
        yields(100).await;
        if ends_meanwhile {
            works.gate.0.add_permits(1);
            yields(100).await;
        }
        store.open();
    };
    let (paused, ()) = tokio::join!(run.pause(how), opens);
    paused.unwrap();
    assert!(store.writes().iter().any(|write| !write.is_taken), "{:?}", store.writes());
    if how == Pause::AfterRunning && !ends_meanwhile {
        works.gate.0.add_permits(1);
    }
    until(async || engine.find(run.id()).is_some_and(|run| run.status() == RunStatus::Paused)).await;
    run.unpause().await.unwrap();
    works.gate.0.add_permits(5);
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(3), "{how:?}");
    (works.made.load(Ordering::SeqCst), works.worked.load(Ordering::SeqCst))
}

// S28, S61, S69
#[tokio::test]
async fn an_execution_that_had_begun_before_the_pause_happens_once() {
    for (how, ends_meanwhile) in
        [(Pause::AfterRunning, false), (Pause::AfterRunning, true), (Pause::Now, false)]
    {
        assert_eq!(counts(how, ends_meanwhile).await, (1, 1), "{how:?}, {ends_meanwhile}");
    }
}
