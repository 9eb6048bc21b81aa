//! A pause behind a refused batch (S61): the run is paused all the same, and the consequences of the refusal wait for the
//! end of the pause.

use workflow_core::Pause;

use super::*;

/// Makes an unwanted text, while an execution and a precondition are under way.
#[derive(Clone, Default)]
struct Works {
    /// Executions under way wait for its permits.
    gate: Gate,
    worked: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
    checked: Arc<AtomicUsize>,
    recovered: Arc<AtomicUsize>,
    /// How often the unwanted text was made.
    made: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Works {
    async fn pass(&self, count: &AtomicUsize) {
        count.fetch_add(1, Ordering::SeqCst);
        self.gate.0.acquire().await.unwrap().forget();
    }

    /// How often it worked, was asked, checked and recovered.
    fn counts(&self) -> [usize; 4] {
        [&self.worked, &self.asked, &self.checked, &self.recovered].map(|count| count.load(Ordering::SeqCst))
    }
}

#[workflow]
impl Works {
    #[step]
    async fn make(&self, begin: &Begin) -> Made {
        Made(begin.0)
    }

    #[step]
    async fn bad(&self, _made: &Made) -> Text {
        while self.counts()[..2] != [1, 1] {
            tokio::task::yield_now().await;
        }
        self.made.fetch_add(1, Ordering::SeqCst);
        Text(UNWANTED.into())
    }

    #[step(catches = [bad])]
    async fn recover(&self, failed: &StepFailed) -> Text {
        self.recovered.fetch_add(1, Ordering::SeqCst);
        Text(failed.error.to_string())
    }

    #[step]
    async fn slow(&self, made: &Made) -> Slow {
        self.pass(&self.worked).await;
        Slow(made.0)
    }

    #[step(precondition = may)]
    async fn checked(&self, _made: &Made) -> Checked {
        self.checked.fetch_add(1, Ordering::SeqCst);
        Checked(10)
    }

    #[precondition]
    async fn may(&self, _made: &Made) -> bool {
        self.pass(&self.asked).await;
        true
    }

    #[step]
    async fn all(&self, text: &Text, slow: &Slow, checked: &Checked) -> Finished {
        Finished(format!("{} {}", text.0, slow.0 + checked.0))
    }
}

// S28, S61
#[tokio::test]
async fn a_run_that_is_paused_while_a_batch_is_refused_is_paused_and_continues() {
    for how in [Pause::AfterRunning, Pause::Now] {
        let store = Picky::default().held_after(2);
        let works = Works::default();
        let engine = engine(works.clone(), &store);
        let run = start::<Works>(&engine, 1).await;
        // The step has returned, and its batch waits for the store.
        until(async || works.made.load(Ordering::SeqCst) == 1).await;
        let yields = async |times: usize| {
            for _ in 0..times {
                tokio::task::yield_now().await;
            }
        };
        yields(100).await;
        let opens = async {
            yields(100).await;
            store.open();
        };
        let (paused, ()) = tokio::join!(run.pause(how), opens);
        paused.unwrap();
        assert!(store.writes().iter().any(|write| !write.is_taken), "{:?}", store.writes());
        if how == Pause::AfterRunning {
            assert_eq!(run.status(), RunStatus::Running);
            works.gate.0.add_permits(2);
        }
        until(async || engine.find(run.id()).is_some_and(|run| run.status() == RunStatus::Paused)).await;
        assert_eq!(works.counts(), [1, 1, 0, 0], "{how:?}");
        run.unpause().await.unwrap();
        if how == Pause::Now {
            works.gate.0.add_permits(2);
        }
        let Finished(text) = run.outcome().await.unwrap();
        assert_eq!(text, "the store refuses the write: nobody wants that 11", "{how:?}");
        let begun = if how == Pause::Now { 2 } else { 1 };
        assert_eq!(works.counts(), [begun, begun, 1, 1], "{how:?}");
        assert_eq!(works.made.load(Ordering::SeqCst), 1, "{how:?}");
        let (report, recorded) = (run.report().await.unwrap(), recorded(&store).await);
        assert!(report.violations.is_empty(), "{report}");
        assert_eq!(
            (recorded.status(), recorded.report().log.len()),
            (RunStatus::Completed, report.log.len())
        );
    }
}
