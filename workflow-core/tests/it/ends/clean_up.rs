//! Clean-up steps: at which ends they run, in which order, with what, and what they change (S31).

use std::time::Duration;

use expect_test::expect;
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::report::{CleanUpResult, Ending, ExecutionOutcome, NotRetried, Quality};
use workflow_core::{ErrorClass, Retries, RetryPolicy, RunError, RunStatus, SendError};
use workflow_testkit::{Scenario, TestRun, explore};

use crate::fixtures::{Alive, Begin, Close, Done, Gate, Item, Part, Seen, everyone_else, outcomes_of, until};

/// How the trip of [`Agency`] ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Pays,
    Fails,
    Stalls,
    Hangs,
}

/// Books an item and then a part, and pays both.
struct Agency {
    way: Way,
    seen: Seen,
    alive: Alive,
}

#[workflow]
impl Agency {
    #[step]
    async fn book_item(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn book_part(&self, item: &Item) -> Part {
        Part(item.0 + 1)
    }

    #[step]
    async fn pay(&self, part: &Part) -> Result<Option<Done>, StepError> {
        let _guard = self.alive.guard();
        match self.way {
            Way::Pays => Ok(Some(Done(part.0))),
            Way::Fails => Err(StepError::rejected("no money")),
            Way::Stalls => Ok(None),
            Way::Hangs => std::future::pending().await,
        }
    }

    #[step(on_end)]
    async fn unbook_item(&self, item: &Item, begin: &Begin, info: &RunInfo) {
        let ending = info.ending().map(ToString::to_string).unwrap_or_default();
        self.seen.note(format!("item {} of {}: {ending}", item.0, begin.0));
    }

    #[step(on_end)]
    async fn unbook_part(&self, part: &Part) {
        self.seen.note(format!("part {}", part.0));
    }

    #[step(on_end = "failed")]
    async fn apologise(&self, _begin: &Begin, info: &RunInfo) {
        let failed: Vec<_> = info.ending().into_iter().flat_map(Ending::failed).collect();
        self.seen.note(format!("{} failed: {}", failed[0].step, failed[0].error));
    }

    #[step(on_end = ["cancelled", "timed_out"])]
    async fn regret(&self, begin: &Begin) {
        self.seen.note(format!("regret {}", begin.0));
    }
}

fn agency(way: Way) -> (Agency, Seen) {
    let seen = Seen::default();
    (Agency { way, seen: seen.clone(), alive: Alive::default() }, seen)
}

// S31
#[tokio::test(start_paused = true)]
async fn a_run_that_completes_cleans_nothing_up() {
    let (agency, seen) = agency(Way::Pays);
    let run = Scenario::new(agency).start(Begin(3)).await;
    run.assert_output(&Done(4));
    run.assert_cleaned_up(&[]);
    assert!(seen.lines().is_empty() && run.report().clean_up.is_none());
}

// S31: the latest is undone first; nothing enters the log.
#[tokio::test(start_paused = true)]
async fn a_failed_run_undoes_the_latest_first() {
    let (agency, seen) = agency(Way::Fails);
    let run = Scenario::new(agency).start(Begin(3)).await;
    assert!(matches!(run.outcome(), Err(RunError::StepFailed { .. })));
    run.assert_cleaned_up(&["unbook_part", "unbook_item", "apologise"]);
    assert_eq!(
        seen.lines(),
        ["part 4", "item 3 of 3: failed: step `pay` failed (x3, rejected): no money", "pay failed: no money"]
    );
    assert_eq!(run.report().log.len(), 3);
    expect![[r"
        #1 Begin from outside: 3
        x1 book_item by #1: succeeded
        #2 Item of x1: 3
        x2 book_part by #2: succeeded
        #3 Part of x2: 4
        x3 pay by #3: failed (rejected): no money
        cleans up
        x4 unbook_part by #3: succeeded
        x5 unbook_item by #2 with #1: succeeded
        x6 apologise by #1: succeeded
        failed by x3
    "]]
    .assert_eq(&run.transcript());
}

// S31
#[tokio::test(start_paused = true)]
async fn a_stalled_run_cleans_up() {
    let (agency, seen) = agency(Way::Stalls);
    let run = Scenario::new(agency).start(Begin(3)).await;
    assert!(matches!(run.outcome(), Err(RunError::Stalled(_))), "{:?}", run.outcome());
    run.assert_cleaned_up(&["unbook_part", "unbook_item"]);
    assert_eq!(seen.lines(), ["part 4", "item 3 of 3: stalled"]);
}

// S31 S32
#[tokio::test(start_paused = true)]
async fn a_run_out_of_time_cleans_up() {
    let (agency, seen) = agency(Way::Hangs);
    let options = workflow_core::RunOptions::new().timeout(Duration::from_secs(5));
    let run = Scenario::new(agency).options(options).start(Begin(3)).await;
    assert!(matches!(run.outcome(), Err(RunError::TimedOut { .. })));
    run.assert_cleaned_up(&["unbook_part", "unbook_item", "regret"]);
    assert_eq!(seen.lines(), ["part 4", "item 3 of 3: timed out after 5s", "regret 3"]);
}

// S31: what ran is dropped before clean-up begins.
#[tokio::test]
async fn a_cancelled_run_drops_what_runs_and_then_cleans_up_before_the_cancel_returns() {
    let (agency, seen) = agency(Way::Hangs);
    let alive = agency.alive.clone();
    let engine = Engine::builder().workflow(agency).build().unwrap();
    let run = engine.start::<Agency>(Begin(3)).await.unwrap();
    until(|| alive.count() == 1).await;
    run.cancel("enough").await.unwrap();
    assert_eq!(alive.count(), 0);
    assert_eq!(seen.lines(), ["part 4", "item 3 of 3: cancelled: enough", "regret 3"]);
    assert_eq!(run.status(), RunStatus::Cancelled);
    let report = run.report().await.unwrap();
    assert_eq!(outcomes_of(&report, "pay"), [&ExecutionOutcome::Dropped]);
    assert_eq!(report.quality, Quality::Failed);
}

// S31: a waiting run that is cancelled, in memory and suspended.
#[tokio::test]
async fn a_waiting_run_that_is_cancelled_cleans_up() {
    let seen = Seen::default();
    let engine = Engine::builder().workflow(Waiter(seen.clone())).max_concurrent_runs(1).build().unwrap();
    let run = engine.start::<Waiter>(Begin(3)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let running = engine.start::<Waiter>(Begin(0)).await.unwrap();
    until(|| seen.lines() == ["hangs"]).await;
    // Clean-up needs the permit that the other run has.
    let cancelled = tokio::spawn(async move { run.cancel("enough").await });
    everyone_else().await;
    assert!(!cancelled.is_finished());
    running.cancel("enough").await.unwrap();
    cancelled.await.unwrap().unwrap();
    assert_eq!(seen.lines(), ["hangs", "undo 0", "undo 3 with 1"]);
}

/// Waits to be closed, or hangs. Notes whether there was an item, which is optional.
struct Waiter(Seen);

#[workflow]
impl Waiter {
    #[step]
    async fn begin(&self, begin: &Begin) -> Option<Item> {
        if begin.0 == 0 {
            self.0.note("hangs");
            std::future::pending::<()>().await;
        }
        Some(Item(1))
    }

    #[step]
    async fn close(&self, _close: &Close, _item: &Item) -> Done {
        Done(0)
    }

    #[step(on_end)]
    async fn undo(&self, begin: &Begin, item: Option<&Item>) {
        let item = item.map_or_else(String::new, |item| format!(" with {}", item.0));
        self.0.note(format!("undo {}{item}", begin.0));
    }
}

/// Fails at once, and cleans up in these ways.
struct Undoing {
    gate: Gate,
    seen: Seen,
}

#[workflow]
impl Undoing {
    #[step]
    async fn work(&self, begin: &Begin) -> Result<Done, StepError> {
        if begin.0 == 0 { Ok(Done(0)) } else { Err(StepError::permanent("broken")) }
    }

    #[step(on_end, precondition = is_even)]
    async fn evens(&self, _begin: &Begin) {
        self.seen.note("evens");
    }

    #[precondition]
    fn is_even(begin: &Begin) -> Result<bool, StepError> {
        if begin.0 > 100 { Err(StepError::permanent("too much")) } else { Ok(begin.0.is_multiple_of(2)) }
    }

    #[step(on_end)]
    async fn gated(&self, _begin: &Begin) {
        self.seen.note("gated");
        self.gate.pass().await;
    }

    #[step(on_end)]
    async fn fails(&self, _begin: &Begin) -> Result<(), StepError> {
        Err(StepError::tool("stuck"))
    }

    #[step(on_end)]
    async fn panics(&self, _begin: &Begin) {
        panic!("on purpose");
    }
}

fn undoing() -> (Undoing, Gate, Seen) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    (Undoing { gate: gate.clone(), seen: seen.clone() }, gate, seen)
}

// S31 S35: ties go in reverse order of declaration; failures are retried, reported, and change nothing.
#[tokio::test(start_paused = true)]
async fn failures_of_clean_up_are_retried_and_reported_and_change_no_outcome() {
    let (undoing, gate, _) = undoing();
    gate.let_pass(9);
    let run = Scenario::new(undoing).start(Begin(2)).await;
    run.assert_cleaned_up(&["panics", "fails", "gated", "evens"]);
    let Err(RunError::StepFailed { step, .. }) = run.outcome() else { panic!("{:?}", run.outcome()) };
    assert_eq!(&**step, "work");
    let fails = run.report().trace.iter().find(|trace| &*trace.step == "fails").unwrap();
    assert_eq!(fails.attempts.len(), 2, "class `tool` is retried twice");
    assert!(matches!(fails.outcome, ExecutionOutcome::Failed { .. }));
}

// S31 S18
#[tokio::test(start_paused = true)]
async fn preconditions_of_clean_up_hold_and_their_failures_change_no_outcome() {
    for (begin, result) in
        [(1, CleanUpResult::Refused), (101, CleanUpResult::PreconditionFailed { error: "too much".into() })]
    {
        let (undoing, gate, _) = undoing();
        gate.let_pass(9);
        let run = Scenario::new(undoing).start(Begin(begin)).await;
        run.assert_cleaned_up(&["panics", "fails", "gated"]);
        let clean_up = run.report().clean_up.as_ref().unwrap();
        assert_eq!((&*clean_up.steps[3].step, &clean_up.steps[3].result), ("evens", &result));
        assert!(matches!(run.outcome(), Err(RunError::StepFailed { .. })));
    }
}

/// How the execution of a clean-up step ended whose time was over.
fn over(within: Duration) -> ExecutionOutcome {
    ExecutionOutcome::Failed {
        class: ErrorClass::Transient,
        error: format!("its time for clean-up was over after {within:?}"),
        not_retried: NotRetried::CleanUpTime,
    }
}

// S85: by default as long as its retries, and then the next step has its turn.
#[tokio::test(start_paused = true)]
async fn each_clean_up_step_has_its_own_time() {
    let (undoing, _, seen) = undoing();
    let run = Scenario::new(undoing).start(Begin(2)).await;
    assert_eq!(seen.lines(), ["gated", "evens"]);
    run.assert_cleaned_up(&["panics", "fails", "gated", "evens"]);
    // Six retries with 140 s between them, and a minute for each attempt.
    let within = Duration::from_secs(7 * 60 + 140);
    assert_eq!(run.elapsed(), within);
    assert_eq!(outcomes_of(run.report(), "gated"), [&over(within)]);
    assert!(matches!(run.outcome(), Err(RunError::StepFailed { .. })));
}

// S85
#[tokio::test(start_paused = true)]
async fn the_time_for_clean_up_can_be_set() {
    let (undoing, _, seen) = undoing();
    let within = Duration::from_secs(7);
    let run = Scenario::new(undoing).engine(|engine| engine.cleanup_within(within)).start(Begin(2)).await;
    assert_eq!(run.elapsed(), within);
    assert_eq!(outcomes_of(run.report(), "gated"), [&over(within)]);
    assert_eq!(seen.lines(), ["gated", "evens"]);
}

/// Cleans up at a bank that is away for minutes.
struct Away {
    seen: Seen,
    asks_for: Duration,
}

#[workflow]
impl Away {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<Done, StepError> {
        Err(StepError::permanent("broken"))
    }

    /// Runs last.
    #[step(on_end)]
    async fn release(&self, _begin: &Begin) {
        self.seen.note("release");
    }

    #[step(on_end, precondition = is_asked)]
    async fn asked(&self, _begin: &Begin) {
        self.seen.note("asked");
    }

    #[precondition]
    async fn is_asked(&self, _begin: &Begin) -> bool {
        tokio::time::sleep(self.asks_for).await;
        true
    }

    #[step(
        on_end,
        timeout = "30s",
        retry = RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(4, Duration::from_mins(2)))
    )]
    async fn refund(&self, _begin: &Begin, info: &RunInfo) -> Result<(), StepError> {
        self.seen.note(format!("refund {}", info.attempt()));
        match info.attempt() {
            1 => Err(StepError::transient("away")),
            2..5 => std::future::pending().await,
            _ => Ok(()),
        }
    }
}

// S85
#[tokio::test(start_paused = true)]
async fn a_clean_up_step_has_the_time_that_its_retries_need() {
    let away = Away { seen: Seen::default(), asks_for: Duration::ZERO };
    let seen = away.seen.clone();
    let run = Scenario::new(away).start(Begin(2)).await;
    let refunds = (1..=5).map(|attempt| format!("refund {attempt}"));
    assert_eq!(seen.lines(), refunds.chain(["asked".into(), "release".into()]).collect::<Vec<_>>());
    assert_eq!(run.elapsed(), Duration::from_secs(4 * 120 + 3 * 30));
    assert!(run.report().clean_up.as_ref().unwrap().incomplete.is_empty());
    assert!(!run.report().to_string().contains("incomplete"));
}

// S85, S86
#[tokio::test(start_paused = true)]
async fn the_time_of_a_step_counts_for_its_precondition_too() {
    let away = Away { seen: Seen::default(), asks_for: Duration::from_hours(1) };
    let seen = away.seen.clone();
    let run = Scenario::new(away).start(Begin(2)).await;
    assert_eq!(seen.lines().last().map(String::as_str), Some("release"));
    let clean_up = run.report().clean_up.as_ref().unwrap();
    let error = "its time for clean-up was over after 560s".to_owned();
    assert_eq!(clean_up.steps[1].result, CleanUpResult::PreconditionFailed { error });
    assert_eq!(*clean_up.incomplete, ["asked".into()]);
}

/// Hangs, also in both of its clean-up steps.
struct Hangs;

#[workflow]
impl Hangs {
    #[step]
    async fn work(&self, _begin: &Begin) -> Done {
        std::future::pending().await
    }

    #[step(on_end)]
    async fn first(&self, _begin: &Begin) {
        std::future::pending::<()>().await;
    }

    #[step(on_end)]
    async fn second(&self, _begin: &Begin) {
        std::future::pending::<()>().await;
    }
}

// S85
#[tokio::test(start_paused = true)]
async fn an_engine_that_ends_its_runs_waits_for_the_time_of_all_their_clean_up_steps() {
    let within = Duration::from_secs(10);
    let engine = Engine::builder().workflow(Hangs).cleanup_within(within).build().unwrap();
    let run = engine.start::<Hangs>(Begin(1)).await.unwrap();
    everyone_else().await;
    engine.cancel_all("the office closes", Duration::from_secs(1)).await;
    let report = run.report().await.unwrap();
    for step in ["first", "second"] {
        assert_eq!(outcomes_of(&report, step), [&over(within)]);
    }
    assert_eq!(report.clean_up.as_ref().unwrap().incomplete, ["second".into(), "first".into()]);
}

// S86
#[tokio::test(start_paused = true)]
async fn the_report_has_the_clean_up_steps_that_are_left_undone() {
    let (undoing, gate, _) = undoing();
    gate.let_pass(9);
    // An odd number: `evens` is not wanted, so it is not unfinished.
    let run = Scenario::new(undoing).start(Begin(1)).await;
    let clean_up = run.report().clean_up.as_ref().unwrap();
    assert_eq!(*clean_up.incomplete, ["panics".into(), "fails".into()]);
    assert!(run.report().to_string().contains("; incomplete: panics, fails"), "{}", run.report());
    let json = serde_json::to_value(run.report()).unwrap();
    assert_eq!(json["clean_up"]["incomplete"], serde_json::json!(["panics", "fails"]));
}

// S31 S33
#[tokio::test]
async fn a_run_that_cleans_up_refuses_what_is_sent_and_has_not_ended() {
    let (undoing, gate, seen) = undoing();
    let engine = Engine::builder().workflow(undoing).retry(RetryPolicy::none()).build().unwrap();
    let run = engine.start::<Undoing>(Begin(2)).await.unwrap();
    until(|| seen.lines() == ["gated"]).await;
    assert_eq!(run.status(), RunStatus::CleaningUp);
    let report = run.report();
    let explanation = run.explain().await.unwrap();
    assert!(explanation.to_string().contains("`evens` has not run yet at this end"), "{explanation}");
    let mut cancelled = tokio::spawn({
        let run = run.clone();
        async move { run.cancel("too late").await }
    });
    everyone_else().await;
    assert!(!cancelled.is_finished() && run.status() == RunStatus::CleaningUp);
    gate.let_pass(9);
    let refused = (&mut cancelled).await.unwrap();
    assert!(matches!(refused, Err(SendError::Ended { status: RunStatus::Failed, .. })), "{refused:?}");
    assert_eq!(report.await.unwrap().status, RunStatus::Failed);
}

/// Sends to its own run in its clean-up.
struct Sending(Seen);

#[workflow]
impl Sending {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<Done, StepError> {
        Err(StepError::permanent("broken"))
    }

    #[step]
    async fn close(&self, _close: &Close) -> Done {
        Done(0)
    }

    #[step(on_end)]
    async fn wait(&self, _begin: &Begin) {
        self.0.note("waits");
        everyone_else().await;
        everyone_else().await;
    }
}

// S33
#[tokio::test]
async fn a_send_during_clean_up_is_refused_at_once_with_the_end() {
    let seen = Seen::default();
    let engine = Engine::builder().workflow(Sending(seen.clone())).build().unwrap();
    let run = engine.start::<Sending>(Begin(2)).await.unwrap();
    until(|| !seen.lines().is_empty()).await;
    assert_eq!(run.status(), RunStatus::CleaningUp);
    let refused = run.send(Close).await;
    assert!(matches!(refused, Err(SendError::Ended { status: RunStatus::Failed, .. })), "{refused:?}");
}

/// What an observer saw of a run's end.
#[derive(Clone, Default)]
struct Ends(Seen);

impl Observer for Ends {
    fn observe(&self, observation: &Observation) {
        match &observation.what {
            Observed::CleanUpStarted { status } => self.0.note(format!("cleans up, {status}")),
            Observed::ExecutionStarted { step, .. } => self.0.note(format!("{step} starts")),
            Observed::ExecutionDropped { step, .. } => self.0.note(format!("{step} dropped")),
            Observed::RunEnded { status } => self.0.note(format!("{status}")),
            _ => {}
        }
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

// S31
#[tokio::test]
async fn observers_see_what_is_dropped_then_the_clean_up_and_then_the_end() {
    let (agency, ends) = (agency(Way::Hangs).0, Ends::default());
    let alive = agency.alive.clone();
    let engine = Engine::builder().workflow(agency).observer(ends.clone()).build().unwrap();
    let run = engine.start::<Agency>(Begin(3)).await.unwrap();
    until(|| alive.count() == 1).await;
    run.cancel("enough").await.unwrap();
    let lines = ends.0.lines();
    assert_eq!(
        lines[3..],
        [
            "pay dropped",
            "cleans up, cancelled",
            "unbook_part starts",
            "unbook_item starts",
            "regret starts",
            "cancelled"
        ]
    );
}

// S31: whatever the order, each run cleans up what it did, in the reverse order of the log.
#[test]
fn every_order_cleans_up_the_latest_first() {
    let explored = explore(|| Scenario::new(Both).start(Begin(1))).orders(1_000);
    explored.assert(|run: &TestRun<Both>| {
        let log = &run.report().log;
        let Some(clean_up) = run.report().clean_up.as_ref() else {
            return run.status() == RunStatus::Completed;
        };
        let at = |event: &str| log.iter().position(|logged| &*logged.event == event);
        let mut undone: Vec<_> = [("undo_item", at("Item")), ("undo_part", at("Part"))].into();
        undone.retain(|(_, at)| at.is_some());
        undone.sort_by_key(|(_, at)| std::cmp::Reverse(*at));
        let steps: Vec<&str> = clean_up.steps.iter().map(|step| &*step.step).collect();
        let expected: Vec<&str> = undone.iter().map(|(step, _)| *step).chain(["undo_all"]).collect();
        steps == expected
    });
}

/// Two steps at a time, and a third that fails.
struct Both;

#[workflow]
impl Both {
    #[step]
    async fn item(&self, begin: &Begin) -> Item {
        tokio::task::yield_now().await;
        Item(begin.0)
    }

    #[step]
    async fn part(&self, begin: &Begin) -> Part {
        tokio::task::yield_now().await;
        Part(begin.0)
    }

    #[step]
    async fn both(&self, _item: &Item, _part: &Part) -> Done {
        Done(0)
    }

    #[step]
    async fn fail(&self, _begin: &Begin) -> Result<(), StepError> {
        tokio::task::yield_now().await;
        Err(StepError::permanent("broken"))
    }

    #[step(on_end)]
    async fn undo_item(&self, _item: &Item) {}

    #[step(on_end)]
    async fn undo_part(&self, _part: &Part) {}

    #[step(on_end)]
    async fn undo_all(&self, _begin: &Begin) {}
}

// S31
#[tokio::test(start_paused = true)]
async fn explanations_say_why_clean_up_steps_did_not_run() {
    let (agency, _) = agency(Way::Fails);
    let run = Scenario::new(agency).start(Begin(3)).await;
    let text = run.explanation().map(|explanation| explanation.to_string()).unwrap_or_default();
    assert!(
        text.contains(
            "`regret` did not run at this end: the run failed, and it runs at cancelled or timed out"
        ),
        "{text}"
    );
    assert!(text.contains("`unbook_item` ran once"), "{text}");

    let run = Scenario::new(AtOnce).start(Begin(3)).await;
    let text = run.explanation().map(|explanation| explanation.to_string()).unwrap_or_default();
    assert!(text.contains("`undo` did not run at this end: the log lacks what it requires"), "{text}");
    assert!(text.contains("it needs `Item`"), "{text}");
}

struct AtOnce;

#[workflow]
impl AtOnce {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<Item, StepError> {
        Err(StepError::permanent("broken"))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }

    #[step(on_end)]
    async fn undo(&self, _item: &Item) {}
}
