//! Executions that are due and wait for their turn (S21): in explanations at any time, and in reports of active runs.

#![expect(clippy::needless_raw_string_hashes, reason = "`expect-test` writes expected texts this way")]

use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};
use workflow_core::prelude::*;
use workflow_core::{EngineBuilder, RunHandle, RunOptions};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Alpha, Begin, Done, Gate, Item, Part, everyone_else};

/// Works on this many items, one at a time, each at its gate.
struct Queueing(Gate);

#[workflow]
impl Queueing {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(concurrency = 1)]
    async fn work(&self, item: &Item) -> Part {
        self.0.pass().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, _begin: &Begin, parts: FixedList<Part, 3>) -> Done {
        Done(parts.iter().map(|part| part.0).sum())
    }
}

/// The same without a limit of its own, in branches.
struct Branching(Gate);

#[workflow]
impl Branching {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        self.0.pass().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

fn engine() -> EngineBuilder {
    Engine::builder().clock(VirtualClock::new())
}

async fn started<W: Workflow>(engine: &Engine, id: &str, begin: u32) -> RunHandle<W> {
    engine.start_with::<W>(Begin(begin), RunOptions::new().id(id)).await.unwrap()
}

/// Compares the run's present explanation.
async fn explained<W: Workflow>(run: &RunHandle<W>, expected: &Expect) {
    everyone_else().await;
    expected.assert_eq(&run.explain().await.unwrap().to_string());
}

async fn reported<W: Workflow>(run: &RunHandle<W>, expected: &Expect) {
    everyone_else().await;
    expected.assert_eq(&run.report_so_far().await.unwrap().to_string());
}

// S21
#[tokio::test(start_paused = true)]
async fn waiting_executions_are_distinguished_from_running_ones() {
    let gate = Gate::closed();
    let engine = engine().workflow(Queueing(gate.clone())).build().unwrap();
    let run = started::<Queueing>(&engine, "r", 3).await;
    explained(
        &run,
        &expect![[r#"
            run `r` of `Queueing`: running
            - no `Done` has ended the run yet
                `end` did not run
            - `list` ran once
                x1, triggered by #1 `Begin`
            - `work` ran once
                x2, triggered by #2 `Item` of `list`: still running
                not yet for #3 `Item` of `list`: x3 waits for its turn: `work` may run 1 at a time (`concurrency`): x2 runs
                not yet for #4 `Item` of `list`: x4 waits for its turn: `work` may run 1 at a time (`concurrency`): x2 runs
            - `end` did not run
                not for #1 `Begin`: it waited for 3 of `Part` (0 so far)
                it needs 3 of `Part` and has 0
                    `work` is still running"#]],
    )
    .await;
    reported(
        &run,
        &expect![[r#"
            run r of Queueing: running, clean
            step  executions          time
            list           1      0.000 ms
            work           1      0.000 ms
            end            0      0.000 ms
            2 executions of work wait for their turn: `work` may run 1 at a time (`concurrency`): x2 runs
        "#]],
    )
    .await;
    gate.let_pass(1);
    explained(
        &run,
        &expect![[r#"
            run `r` of `Queueing`: running
            - no `Done` has ended the run yet
                `end` did not run
            - `list` ran once
                x1, triggered by #1 `Begin`
            - `work` ran twice
                x2, triggered by #2 `Item` of `list`
                x3, triggered by #3 `Item` of `list`: still running
                not yet for #4 `Item` of `list`: x4 waits for its turn: `work` may run 1 at a time (`concurrency`): x3 runs
            - `end` did not run
                not for #1 `Begin`: it waited for 3 of `Part` (0 so far)
                not for #5 `Part` of `work`: it waited for 3 of `Part` (1 so far)
                it needs 3 of `Part` and has 1
                    `work` is still running"#]],
    )
    .await;
    gate.let_pass(2);
    assert_eq!(run.outcome().await.unwrap(), Done(6));
    assert!(run.report().await.unwrap().waiting.is_empty());
    explained(
        &run,
        &expect![[r#"
        run `r` of `Queueing`: completed
        - `list` ran once
            x1, triggered by #1 `Begin`
        - `work` ran 3 times
            x2, triggered by #2 `Item` of `list`
            x3, triggered by #3 `Item` of `list`
            x4, triggered by #4 `Item` of `list`
        - `end` ran once
            x5, triggered by #7 `Part` of `work`, with #1 `Begin` and a list of 3
            not for #1 `Begin`: it waited for 3 of `Part` (0 so far)
            not for #5 `Part` of `work`: it waited for 3 of `Part` (1 so far)
            not for #6 `Part` of `work`: it waited for 3 of `Part` (2 so far)"#]],
    )
    .await;
}

// S21, S31
#[tokio::test(start_paused = true)]
async fn an_execution_without_a_turn_did_not_run() {
    let engine = engine().workflow(Queueing(Gate::closed())).build().unwrap();
    let run = started::<Queueing>(&engine, "r", 3).await;
    everyone_else().await;
    run.cancel("enough").await.unwrap();
    assert!(run.outcome().await.is_err());
    explained(
        &run,
        &expect![[r#"
        run `r` of `Queueing`: cancelled
        - no `Done` ended the run
            `end` did not run
        - `list` ran once
            x1, triggered by #1 `Begin`
        - `work` ran once
            x2, triggered by #2 `Item` of `list`: dropped
            not for #3 `Item` of `list`: x3 was dropped before its turn came
            not for #4 `Item` of `list`: x4 was dropped before its turn came
        - `end` did not run
            not for #1 `Begin`: it waited for 3 of `Part` (0 so far)
            it needs 3 of `Part` and has 0
                `work` ran once and emitted nothing"#]],
    )
    .await;
    let report = run.report().await.unwrap();
    expect![[r#"
        run r of Queueing: cancelled, failed
        step  executions          time
        list           1      0.000 ms
        work           1      0.000 ms
        end            0      0.000 ms
    "#]]
    .assert_eq(&report.to_string());
    assert_eq!((report.executions("work"), report.waiting.len()), (1, 0));
}

// S21
#[tokio::test(start_paused = true)]
async fn an_execution_that_waits_for_its_run_says_so_with_its_branch() {
    let gate = Gate::closed();
    let engine = engine().workflow(Branching(gate.clone())).max_concurrent_executions(2);
    let engine = engine.build().unwrap();
    let run = started::<Branching>(&engine, "r", 4).await;
    explained(&run, &expect![[r#"
        run `r` of `Branching`: running
        - no `Done` has ended the run yet
            `end` did not run
        - `split` ran once
            x1, triggered by #1 `Begin`
        - `work` ran twice
            x2 in scope 1, triggered by #2 `Item` of `split`: still running
            x3 in scope 2, triggered by #3 `Item` of `split`: still running
            not yet for #4 `Item` of `split` in scope 3: x4 waits for its turn: the run may have 2 executions at a time (`max_concurrent_executions`): x2 and x3 run
            not yet for #5 `Item` of `split` in scope 4: x5 waits for its turn: the run may have 2 executions at a time (`max_concurrent_executions`): x2 and x3 run
        - `end` did not run
            it needs the gathered `Part`
                `split` fanned out, and not all of its 4 branches have settled"#]]).await;
    reported(
        &run,
        &expect![[r#"
            run r of Branching: running, clean
            step   executions          time
            split           1      0.000 ms
            work            2      0.000 ms
            end             0      0.000 ms
            split opened 4 branches
            2 executions of work wait for their turn: the run may have 2 executions at a time (`max_concurrent_executions`): x2 and x3 run
        "#]],
    )
    .await;
    let report = run.report_so_far().await.unwrap();
    let json = serde_json::to_string(&report.waiting).unwrap();
    expect![[r#"[{"execution":4,"step":"work","scope":3,"trigger":4,"inputs":[{"one":4}],"waits_for":{"run":{"limit":2,"held_by":[2,3]}}},{"execution":5,"step":"work","scope":4,"trigger":5,"inputs":[{"one":5}],"waits_for":{"run":{"limit":2,"held_by":[2,3]}}}]"#]].assert_eq(&json);
    gate.let_pass(4);
    assert_eq!(run.outcome().await.unwrap(), Done(10));
}

/// Starts this many children, and passes on their handles.
struct Starting(Arc<Mutex<Vec<RunHandle<Queueing>>>>);

#[workflow]
impl Starting {
    #[step]
    async fn start(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        for number in 1..=begin.0 {
            let child = children.start::<Queueing>(Begin(number)).await?;
            self.0.lock().unwrap().push(child);
        }
        Ok(Done(begin.0))
    }
}

// S21
#[tokio::test(start_paused = true)]
async fn an_execution_that_waits_for_a_childs_permit_says_so() {
    let (gate, started_children) = (Gate::closed(), Arc::default());
    let engine = engine().workflow(Queueing(gate.clone())).workflow(Starting(Arc::clone(&started_children)));
    let engine = engine.max_concurrent_children(1).build().unwrap();
    let run = started::<Starting>(&engine, "r", 3).await;
    assert_eq!(run.outcome().await.unwrap(), Done(3));
    let children = std::mem::take(&mut *started_children.lock().unwrap());
    explained(
        &children[0],
        &expect![[r#"
        run `r/start-x1.1` of `Queueing`: running
        - no `Done` has ended the run yet
            `end` did not run
        - `list` ran once
            x1, triggered by #1 `Begin`
        - `work` ran once
            x2, triggered by #2 `Item` of `list`: still running
        - `end` did not run
            not for #1 `Begin`: it waited for 3 of `Part` (0 so far)
            it needs 3 of `Part` and has 0
                `work` is still running"#]],
    )
    .await;
    explained(
        &children[1],
        &expect![[r#"
            run `r/start-x1.2` of `Queueing`: running
            - no `Done` has ended the run yet
                `end` did not run
            - `list` has not run yet
                not yet for #1 `Begin`: x1 waits for its turn: the engine has 1 permit for child runs (`max_concurrent_children`): run `r/start-x1.1` has it
            - `work` did not run
                it needs `Item`
                    `list` waits for its turn: the engine has 1 permit for child runs (`max_concurrent_children`): run `r/start-x1.1` has it
            - `end` did not run
                not for #1 `Begin`: it waited for 3 of `Part` (0 so far)
                it needs 3 of `Part` and has 0
                    `work` did not run"#]],
    )
    .await;
    reported(
        &children[1],
        &expect![[r#"
            run r/start-x1.2 of Queueing: running, clean
            step  executions          time
            list           0      0.000 ms
            work           0      0.000 ms
            end            0      0.000 ms
            1 execution of list waits for its turn: the engine has 1 permit for child runs (`max_concurrent_children`): run `r/start-x1.1` has it
        "#]],
    )
    .await;
    // The first run ends without the missing event.
    gate.let_pass(1);
    explained(
        &children[1],
        &expect![[r#"
            run `r/start-x1.2` of `Queueing`: running
            - no `Done` has ended the run yet
                `end` did not run
            - `list` ran once
                x1, triggered by #1 `Begin`
            - `work` ran once
                x2, triggered by #2 `Item` of `list`: still running
                not yet for #3 `Item` of `list`: x3 waits for its turn: `work` may run 1 at a time (`concurrency`): x2 runs
            - `end` did not run
                not for #1 `Begin`: it waited for 3 of `Part` (0 so far)
                it needs 3 of `Part` and has 0
                    `work` is still running"#]],
    )
    .await;
    explained(
        &children[2],
        &expect![[r#"
            run `r/start-x1.3` of `Queueing`: running
            - no `Done` has ended the run yet
                `end` did not run
            - `list` has not run yet
                not yet for #1 `Begin`: x1 waits for its turn: the engine has 1 permit for child runs (`max_concurrent_children`): run `r/start-x1.2` has it
            - `work` did not run
                it needs `Item`
                    `list` waits for its turn: the engine has 1 permit for child runs (`max_concurrent_children`): run `r/start-x1.2` has it
            - `end` did not run
                not for #1 `Begin`: it waited for 3 of `Part` (0 so far)
                it needs 3 of `Part` and has 0
                    `work` did not run"#]],
    )
    .await;
}

/// Waits for an outside event, and then at its gate.
struct Woken(Gate);

#[workflow]
impl Woken {
    #[step]
    async fn begin(&self, _begin: &Begin) {}

    #[step]
    async fn end(&self, alpha: &Alpha) -> Done {
        self.0.pass().await;
        Done(alpha.0)
    }
}

async fn woken(engine: EngineBuilder, gate: &Gate, expected: &Expect) {
    let engine = engine.workflow(Woken(gate.clone())).build().unwrap();
    let (one, other) =
        (started::<Woken>(&engine, "one", 0).await, started::<Woken>(&engine, "other", 0).await);
    everyone_else().await;
    one.send(Alpha(1)).await.unwrap();
    everyone_else().await;
    other.send(Alpha(2)).await.unwrap();
    explained(&other, expected).await;
    gate.let_pass(2);
    assert_eq!((one.outcome().await.unwrap(), other.outcome().await.unwrap()), (Done(1), Done(2)));
}

// S21, S30
#[tokio::test(start_paused = true)]
async fn a_woken_run_that_waits_for_a_permit_says_so() {
    let gate = Gate::closed();
    woken(
        engine().max_concurrent_runs(1),
        &gate,
        &expect![[r#"
            run `other` of `Woken`: running
            - no `Done` has ended the run yet
                `end` waits for its turn: the engine has 1 permit for runs (`max_concurrent_runs`): run `one` has it
            - `begin` ran once
                x1, triggered by #1 `Begin`
            - `end` has not run yet
                not yet for #2 `Alpha`: x2 waits for its turn: the engine has 1 permit for runs (`max_concurrent_runs`): run `one` has it"#]],
    )
    .await;
    woken(
        engine().max_concurrent_runs_of::<Woken>(1),
        &gate,
        &expect![[r#"
            run `other` of `Woken`: running
            - no `Done` has ended the run yet
                `end` waits for its turn: the engine has 1 permit for runs of `Woken` (`max_concurrent_runs_of`): run `one` has it
            - `begin` ran once
                x1, triggered by #1 `Begin`
            - `end` has not run yet
                not yet for #2 `Alpha`: x2 waits for its turn: the engine has 1 permit for runs of `Woken` (`max_concurrent_runs_of`): run `one` has it"#]],
    )
    .await;
}
