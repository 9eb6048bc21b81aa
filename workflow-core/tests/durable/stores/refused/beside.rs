//! A refused batch beside a failure that ends the run: its execution is dropped with the run, live and in the journal.

use super::*;

/// One step returns what the store does not want, and the other one fails.
struct Beside(Arc<AtomicUsize>);

#[workflow]
impl Beside {
    #[step]
    async fn good(&self, _begin: &Begin) -> Text {
        self.0.fetch_add(1, Ordering::SeqCst);
        Text(UNWANTED.into())
    }

    #[step]
    async fn bad(&self, _begin: &Begin) -> Result<(), StepError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(StepError::permanent("no"))
    }

    #[step]
    async fn end(&self, _text: &Text) -> Done {
        Done(0)
    }
}

/// The same, with clean-up.
struct CleansUp(Beside);

#[workflow]
impl CleansUp {
    #[step]
    async fn good(&self, begin: &Begin) -> Text {
        self.0.good(begin).await
    }

    #[step]
    async fn bad(&self, begin: &Begin) -> Result<(), StepError> {
        self.0.bad(begin).await
    }

    #[step]
    async fn end(&self, text: &Text) -> Done {
        self.0.end(text).await
    }

    #[step(on_end)]
    async fn undo(&self, _begin: &Begin) {}
}

fn of_good(report: &workflow_core::report::RunReport) -> ExecutionOutcome {
    report.trace.iter().find(|execution| &*execution.step == "good").unwrap().outcome.clone()
}

async fn is_dropped<W: Workflow<Output = Done>>(workflow: impl Fn(Beside) -> W) {
    let (store, returned) = (Picky::default().held_after(1), Arc::<AtomicUsize>::default());
    let build = || {
        let workflow = workflow(Beside(Arc::clone(&returned)));
        Engine::builder().replay_check(true).workflow(workflow).store(store.clone()).build().unwrap()
    };
    let first = build();
    let run = start::<W>(&first, 1).await;
    until(async || returned.load(Ordering::SeqCst) == 2).await;
    store.open();
    let error = run.outcome().await.unwrap_err();
    assert!(matches!(&error, RunError::StepFailed { step, .. } if &**step == "bad"), "{error:?}");
    let live = run.report().await.unwrap();
    let recorded = recorded(&store).await;
    let second = build();
    let loaded = second.attach::<W>("r").await.unwrap().report().await.unwrap();
    for report in [&live, recorded.report(), &loaded] {
        assert_eq!((of_good(report), report.violations.len()), (ExecutionOutcome::Dropped, 0), "{report}");
    }
    assert_eq!(recorded.explain().to_string(), run.explain().await.unwrap().to_string());
}

// S34
#[tokio::test]
async fn a_refused_batch_beside_a_failure_that_ends_the_run_is_dropped_with_it() {
    is_dropped(|beside| beside).await;
    is_dropped(CleansUp).await;
}
