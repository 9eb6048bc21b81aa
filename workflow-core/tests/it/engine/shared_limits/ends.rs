//! Attempts that leave the queue, and permits that are released (S70).

use super::*;

/// The holder of the only permit, and its waiters.
async fn two() -> (Pays, Engine, RunHandle<Pays>, RunHandle<Pays>) {
    let pays = Pays::new();
    let engine =
        Engine::builder().workflow(pays.clone()).limit("bank", Limit::concurrent(1)).build().unwrap();
    let first = start::<Pays>(&engine, "a", 0).await;
    let second = start::<Pays>(&engine, "b", 0).await;
    (pays, engine, first, second)
}

// S70
#[tokio::test]
async fn a_run_that_is_cancelled_while_it_waits_leaves_the_queue() {
    let (pays, engine, first, second) = two().await;
    let third = start::<Pays>(&engine, "c", 0).await;
    second.cancel("not needed").await.unwrap();
    assert!(second.report().await.unwrap().waiting.is_empty());
    pays.gate.let_pass(2);
    ends([first, third]).await;
    assert_eq!(pays.seen.lines(), ["a", "c"]);
}

// S70
#[tokio::test]
async fn a_run_that_is_cancelled_releases_its_permit() {
    let (pays, _engine, first, second) = two().await;
    first.cancel("not needed").await.unwrap();
    everyone_else().await;
    assert_eq!(pays.seen.lines(), ["a", "b"]);
    pays.gate.let_pass(1);
    ends([second]).await;
}

// S70
#[tokio::test]
async fn a_run_whose_task_is_gone_releases_its_permit_and_its_place() {
    let pays = Pays::new();
    let limited =
        Engine::builder().workflow(pays.clone()).limit("bank", Limit::concurrent(1)).build().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (other, began) = (limited.clone(), pays.seen.clone());
    runtime.spawn(async move {
        let _runs = [start::<Pays>(&other, "a", 0).await, start::<Pays>(&other, "b", 0).await];
        std::future::pending::<()>().await;
    });
    crate::fixtures::until(|| began.lines().len() == 1).await;
    let third = start::<Pays>(&limited, "c", 0).await;
    runtime.shutdown_background();
    pays.gate.let_pass(1);
    ends([third]).await;
    assert!(!pays.seen.lines().contains(&"b".to_owned()) || pays.seen.lines().len() == 3);
}

/// Fails a number of times before it succeeds.
struct Fails {
    times: AtomicU32,
    seen: Seen,
}

#[workflow]
impl Fails {
    #[step(limit = "bank", retry = RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(3, SECOND)))]
    async fn pay(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.seen.note(format!("{} {}", info.run(), info.attempt()));
        if self.times.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Err(StepError::transient("busy"));
        }
        self.times.store(0, Ordering::SeqCst);
        Ok(Done(begin.0))
    }
}

// S70
#[tokio::test(start_paused = true)]
async fn a_retry_takes_the_limit_again_and_holds_nothing_during_its_delay() {
    let fails = Fails { times: AtomicU32::new(1), seen: Seen::default() };
    let seen = fails.seen.clone();
    let engine = Engine::builder().workflow(fails).clock(VirtualClock::new());
    let engine = engine.limit("bank", Limit::concurrent(1)).build().unwrap();
    let first = start::<Fails>(&engine, "a", 0).await;
    let second = start::<Fails>(&engine, "b", 0).await;
    ends([second]).await;
    assert_eq!(seen.lines(), ["a 1", "b 1"]);
    let report = first.report().await.unwrap();
    assert_eq!(seen.lines(), ["a 1", "b 1", "a 2"]);
    assert_eq!((report.executions("pay"), report.trace[0].attempts.len()), (1, 1));
}

/// Takes a second, and may take no more than two.
struct Slow(Gate);

#[workflow]
impl Slow {
    #[step(limit = "bank", timeout = "2s", on_error = "continue")]
    async fn pay(&self, _: &Begin) {
        self.0.pass().await;
    }

    #[step]
    async fn end(&self, _: &Close) -> Done {
        Done(0)
    }
}

// S70
#[tokio::test(start_paused = true)]
async fn no_timeout_runs_while_an_attempt_waits_and_one_that_strikes_releases_the_permit() {
    let gate = Gate::closed();
    let engine = Engine::builder().workflow(Slow(gate.clone())).clock(VirtualClock::new());
    let engine = engine.retry(RetryPolicy::none()).limit("bank", Limit::concurrent(1)).build().unwrap();
    let [a, b, c] = [
        start::<Slow>(&engine, "a", 0).await,
        start::<Slow>(&engine, "b", 0).await,
        start::<Slow>(&engine, "c", 0).await,
    ];
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    gate.let_pass(1);
    everyone_else().await;
    for (run, outcome) in [(a, "timed out"), (b, "timed out"), (c, "")] {
        run.send(Close).await.unwrap();
        let report = run.report().await.unwrap();
        let said = format!("{:?}", report.trace[0].outcome).to_lowercase();
        assert_eq!(said.contains("failed"), !outcome.is_empty(), "{said}");
    }
}

/// Races: the first branch fails, and drops the others.
struct Races(Gate);

#[workflow]
impl Races {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(limit = "bank")]
    async fn pay(&self, item: &Item) -> Result<Part, StepError> {
        self.0.pass().await;
        Err(StepError::permanent(format!("{} is refused", item.0)))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

// S70
#[tokio::test]
async fn branches_that_are_dropped_leave_the_queue() {
    let (gate, pays) = (Gate::closed(), Pays::new());
    let engine = Engine::builder().workflow(Races(gate.clone())).workflow(pays.clone());
    let engine = engine.limit("bank", Limit::concurrent(1)).build().unwrap();
    let races = start::<Races>(&engine, "a", 5).await;
    let run = start::<Pays>(&engine, "b", 0).await;
    gate.let_pass(1);
    races.outcome().await.unwrap_err();
    pays.gate.let_pass(1);
    ends([run]).await;
    let report = races.report().await.unwrap();
    assert_eq!(report.executions("pay"), 1 + 4, "dropped executions are in the report of an ended run");
}
