//! Compactions in combinations: in every order, in branches, in tasks of their own, and cancelled (S23, S25, S31, S35).

use std::time::Duration;

use expect_test::expect;
use futures::future::BoxFuture;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::{ErrorClass, Retries, RetryPolicy, RunStatus};
use workflow_testkit::{Scenario, explore};

use crate::fixtures::{Alive, Begin, Close, Done, Item, Part, Seen};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(display)]
struct Trying(u32);

/// Has a conversation in each branch, all over one history, which must fit into 4.
struct Talks;

fn often() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::ContextLimit, Retries::fixed(4, Duration::ZERO))
}

#[workflow]
impl Talks {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(compact = shorten, retry = often())]
    async fn talk(&self, item: &Item, run: RunContext, display: &Display) -> Result<Part, StepError> {
        display.show(Trying(item.0));
        let said: i64 = run.get("said").await?.unwrap_or(0);
        if said > 4 { Err(StepError::context_limit("too long")) } else { Ok(Part(item.0)) }
    }

    async fn shorten(&self, run: RunContext, item: &Item) -> Result<(), StepError> {
        run.increment(&format!("compactions of {}", item.0), 1).await?;
        run.update("said", |said: Option<i64>| said.unwrap_or(0) / 2).await?;
        Ok(())
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>, run: RunContext) -> Result<Saw, StepError> {
        let mut compactions = Vec::new();
        for part in parts.ok() {
            compactions.push(run.get::<u64>(&format!("compactions of {}", part.0)).await?.unwrap_or(0));
        }
        Ok(Saw { parts: parts.len(), compactions })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Saw {
    parts: usize,
    compactions: Vec<u64>,
}

// S25, S35
#[test]
fn each_branch_compacts_before_its_next_attempt_in_every_order() {
    let explored = explore(|| Scenario::new(Talks).run_context("said", 8).start(Begin(2)));
    let explored = explored.assert(|run| {
        run.assert_quality(Quality::Clean);
        let traces = run.report().trace.iter().filter(|trace| &*trace.step == "talk");
        let failed: Vec<u64> = traces
            .map(|trace| {
                assert!(trace.attempts.iter().all(|failed| failed.compacts));
                trace.attempts.len() as u64
            })
            .collect();
        assert_eq!(run.outcome().unwrap(), &Saw { parts: 2, compactions: failed });
        assert_eq!(run.displayed::<Trying>().len(), 2);
    });
    assert!(explored.outcomes().count() > 1, "{explored}");
}

/// Makes a number smaller.
struct Halves(Alive);

#[workflow]
impl Halves {
    #[step]
    async fn halve(&self, begin: &Begin, display: &Display) -> Done {
        let _alive = self.0.guard();
        display.show(Trying(begin.0));
        tokio::time::sleep(Duration::from_secs(begin.0.into())).await;
        Done(begin.0 / 2)
    }
}

/// Compacts through a child, and emits and displays meanwhile.
struct Thorough {
    alive: Alive,
    seen: Seen,
}

#[workflow]
impl Thorough {
    #[step(spawn, compact = shorten, timeout = "30s")]
    async fn ask(
        &self,
        begin: &Begin,
        items: &Emitter<Item>,
        display: &Display,
        children: &Children,
        info: &RunInfo,
    ) -> Result<Part, StepError> {
        let _alive = self.alive.guard();
        self.seen.note(format!("attempt {}", info.attempt()));
        items.emit(Item(info.attempt()))?;
        display.show(Trying(100 + info.attempt()));
        if info.attempt() < 3 {
            return Err(StepError::context_limit("too long"));
        }
        let halved = children.run::<Halves>(begin.clone()).await?;
        Ok(Part(halved.0))
    }

    async fn shorten(
        &self,
        children: &Children,
        display: &Display,
        items: &Emitter<Item>,
        begin: &Begin,
        info: &RunInfo,
    ) -> Result<(), StepError> {
        let _alive = self.alive.guard();
        self.seen.note(format!("compaction before {}", info.attempt()));
        display.show(Trying(200 + info.attempt()));
        let halved = children.run::<Halves>(Begin(10 * begin.0)).await?;
        items.emit(Item(halved.0))?;
        Ok(())
    }

    #[step]
    async fn end(&self, items: &FixedList<Item, 2>, part: &Part, _: &Close) -> Done {
        Done(items.iter().map(|item| item.0).sum::<u32>() + part.0)
    }
}

impl Middleware for Seen {
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        self.note(format!("call {} of {}", call.attempt(), call.step()));
        next.call(call)
    }
}

// S23, S25
#[tokio::test]
async fn a_compaction_has_what_its_step_has_and_leaves_what_its_attempt_leaves() {
    let (alive, seen) = (Alive::default(), Seen::default());
    let twice = RetryPolicy::none().on(ErrorClass::ContextLimit, Retries::fixed(2, Duration::from_secs(1)));
    let scenario = Scenario::new(Thorough { alive: alive.clone(), seen: seen.clone() }).retry(twice);
    let scenario = scenario.host(Halves(alive.clone())).engine(|engine| engine.middleware(seen.clone()));
    let run = scenario.send(Close).start(Begin(2)).await;
    assert_eq!(alive.count(), 0);
    let calls: Vec<String> = seen.lines().into_iter().filter(|line| !line.contains("halve")).collect();
    expect![[r#"
        [
            "call 1 of ask",
            "attempt 1",
            "compaction before 2",
            "call 2 of ask",
            "attempt 2",
            "compaction before 3",
            "call 3 of ask",
            "attempt 3",
            "call 1 of end",
        ]
    "#]]
    .assert_debug_eq(&calls);
    expect![[r"
        #1 Begin from outside: 2
        x1 ask by #1: succeeded
           showed Trying: 101
           took back what it showed
           attempt 1 failed (context_limit): too long; retried after 1s
           showed Trying: 202
           runs scenario/ask-x1.a2.1 of Halves
           scenario/ask-x1.a2.1 showed Trying: 20
           scenario/ask-x1.a2.1 completed
           showed Trying: 102
           took back what it showed
           attempt 2 failed (context_limit): too long; retried after 1s
           showed Trying: 203
           runs scenario/ask-x1.a3.1 of Halves
           scenario/ask-x1.a3.1 showed Trying: 20
           scenario/ask-x1.a3.1 completed
           showed Trying: 103
           runs scenario/ask-x1.a3.2 of Halves
           scenario/ask-x1.a3.2 showed Trying: 2
           scenario/ask-x1.a3.2 completed
        #2 Item of x1: 10
        #3 Item of x1: 3
        #4 Part of x1: 1
        waits
        #5 Close from outside
        x2 end by #5 with a list of 2, #4: succeeded
        #6 Done of x2: 14
        completed with #6
    "]]
    .assert_eq(&run.transcript());
}

// S31
#[tokio::test]
async fn a_compaction_that_is_cancelled_takes_its_child_along_and_leaves_nothing() {
    let alive = Alive::default();
    let scenario = Scenario::new(Thorough { alive: alive.clone(), seen: Seen::default() });
    let scenario = scenario.host(Halves(alive.clone())).cancel_after(Duration::from_secs(15), "enough");
    let run = scenario.send(Close).start(Begin(2)).await;
    assert_eq!((run.status(), alive.count()), (RunStatus::Cancelled, 0));
    let children: Vec<_> =
        run.report().children.iter().map(|child| (child.child.attempt, child.status)).collect();
    assert_eq!(children, [(2, RunStatus::Cancelled)]);
    run.assert_emitted::<Item>(0);
}

// S25, S31
#[tokio::test]
async fn a_compaction_that_takes_too_long_takes_its_child_along_and_what_it_showed_back() {
    let alive = Alive::default();
    let scenario = Scenario::new(Thorough { alive: alive.clone(), seen: Seen::default() });
    let run = scenario.host(Halves(alive.clone())).start(Begin(6)).await;
    let Err(RunError::StepFailed { class, .. }) = run.outcome() else { panic!("{}", run.transcript()) };
    assert_eq!((*class, alive.count()), (ErrorClass::Transient, 0));
    let statuses = run.report().children.iter().map(|child| child.status);
    assert!(statuses.clone().count() > 1 && statuses.clone().all(|status| status == RunStatus::Cancelled));
    assert_eq!(run.displayed::<Trying>(), [] as [&Trying; 0]);
    run.assert_emitted::<Item>(0);
}
