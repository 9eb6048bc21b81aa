//! Ends of runs whose attempts wait for a named limit: clean-up steps with limits, and timeouts of runs (S70, S31, S32).

use std::pin::pin;

use super::*;

/// Pays, and pays back at an end: both at the bank.
#[derive(Clone)]
struct Books(Pays);

#[workflow]
impl Books {
    #[step]
    async fn book(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(limit = "bank")]
    async fn pay(&self, item: &Item, info: &RunInfo) -> Done {
        self.0.seen.note(format!("{} pays", info.run()));
        self.0.gate.pass().await;
        Done(item.0)
    }

    #[step(on_end, limit = "bank")]
    async fn pay_back(&self, _: &Item, info: &RunInfo) {
        self.0.seen.note(format!("{} pays back", info.run()));
        self.0.gate.pass().await;
    }
}

fn books(clean_up: Duration) -> (Pays, Engine) {
    let pays = Pays::new();
    let engine = Engine::builder().workflow(Books(pays.clone())).workflow(pays.clone());
    let engine = engine.cleanup_within(clean_up).limit("bank", Limit::concurrent(1));
    (pays, engine.clock(VirtualClock::new()).build().unwrap())
}

// S70, S31
#[tokio::test(start_paused = true)]
async fn a_clean_up_step_waits_for_its_limit_and_its_run_does_not_wait_any_more_for_others() {
    let (pays, engine) = books(Duration::from_mins(1));
    let first = start::<Pays>(&engine, "a", 0).await;
    let cleans = start::<Books>(&engine, "r", 0).await;
    let last = start::<Pays>(&engine, "b", 0).await;
    let mut cancel = pin!(cleans.cancel("not needed"));
    assert!(futures::poll!(cancel.as_mut()).is_pending());
    everyone_else().await;
    assert_eq!(cleans.status(), RunStatus::CleaningUp);
    let report = cleans.report_so_far().await.unwrap();
    let waiting: Vec<_> = report.waiting.iter().map(|waiting| (&*waiting.step, &waiting.waits_for)).collect();
    assert!(matches!(waiting[..], [("pay_back", WaitsFor::Limit { before: 1, .. })]), "{waiting:?}");
    pays.gate.let_pass(3);
    ends([first, last]).await;
    cancel.await.unwrap();
    assert!(matches!(cleans.outcome().await, Err(RunError::Cancelled { .. })));
    assert_eq!(pays.seen.lines(), ["a", "b", "r pays back"]);
}

// S70, S31
#[tokio::test(start_paused = true)]
async fn a_clean_up_that_is_over_leaves_the_queue() {
    let (pays, engine) = books(SECOND);
    let first = start::<Pays>(&engine, "a", 0).await;
    let cleans = start::<Books>(&engine, "r", 0).await;
    cleans.cancel("not needed").await.unwrap();
    assert!(matches!(cleans.outcome().await, Err(RunError::Cancelled { .. })));
    let last = start::<Pays>(&engine, "b", 0).await;
    pays.gate.let_pass(2);
    ends([first, last]).await;
    assert_eq!(pays.seen.lines(), ["a", "b"]);
}

// S70, S32
#[tokio::test(start_paused = true)]
async fn the_time_of_a_run_counts_while_its_attempts_wait_and_its_end_leaves_the_queue() {
    let pays = Pays::new();
    let engine = Engine::builder().workflow(pays.clone()).clock(VirtualClock::new());
    let engine = engine.limit("bank", Limit::concurrent(1)).build().unwrap();
    let first = start::<Pays>(&engine, "a", 0).await;
    let options = RunOptions::new().id("b").timeout(SECOND);
    let second = engine.start_with::<Pays>(Begin(0), options).await.unwrap();
    let third = start::<Pays>(&engine, "c", 0).await;
    assert!(matches!(second.outcome().await, Err(RunError::TimedOut { .. })));
    pays.gate.let_pass(2);
    ends([first, third]).await;
    assert_eq!(pays.seen.lines(), ["a", "c"]);
}
