//! Preconditions: their parameters, the times of their evaluation, and the effect of their failure (S18).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use workflow_core::errors::SharedError;
use workflow_core::prelude::*;
use workflow_core::{RunOptions, RunStatus};
use workflow_testkit::Scenario;

use crate::fixtures::{Alpha, Begin, Beta, Close, Done, Item, Part, Saw, Seen, saw};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
struct Settings {
    skip_review: bool,
    least: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { skip_review: false, least: 2 }
    }
}

struct Reviewed;

#[workflow]
impl Reviewed {
    #[step]
    async fn begin(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    /// The precondition's parameters have other names and another order: types decide.
    #[step(precondition = reviewed)]
    async fn publish(&self, item: &Item, review: Option<&Beta>, _settings: &Config<Settings>) -> (Saw, Done) {
        (Saw(format!("{} {}", item.0, review.is_some())), Done(item.0))
    }

    #[precondition]
    fn reviewed(skip: &Config<Settings>, beta: Option<&Beta>, what: &Item) -> bool {
        assert_eq!(what.0, 1);
        skip.skip_review || beta.is_some()
    }
}

// S18
#[tokio::test]
async fn a_precondition_reads_a_configuration_of_the_run() {
    let skip = RunOptions::new().config::<Settings>(serde_json::json!({ "skip_review": true }));
    let run = Scenario::new(Reviewed).options(skip).start(Begin(1)).await;
    run.assert_output(&Done(1));
    assert_eq!(saw(&run), ["1 false"]);
}

// S18
#[tokio::test]
async fn a_step_that_was_refused_is_asked_again_at_its_next_trigger() {
    let mut run = Scenario::new(Reviewed).start(Begin(1)).await;
    run.assert_waiting();
    run.assert_executions("publish", 0);
    run.handle().send(Beta(1)).await.unwrap();
    run.settled().await;
    run.assert_output(&Done(1));
    assert_eq!(saw(&run), ["1 true"]);
}

struct Complete;

#[workflow]
impl Complete {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(precondition = enough)]
    async fn end(&self, items: &List<Item>) -> Done {
        Done(u32::try_from(items.len()).unwrap())
    }

    #[precondition]
    async fn enough(items: &List<Item>, settings: Config<Settings>) -> bool {
        tokio::task::yield_now().await;
        items.len() >= settings.least
    }
}

// S18, S12
#[tokio::test]
async fn a_precondition_reads_the_list_that_its_step_would_get() {
    assert_eq!(Complete.run(Begin(2)).await.unwrap(), Done(2));
    Scenario::new(Complete).start(Begin(1)).await.assert_stalled("its precondition `enough` said no");
}

struct Budgeted;

#[workflow]
impl Budgeted {
    #[step]
    async fn spend(&self, begin: &Begin, context: &RunContext) -> Result<Item, StepError> {
        context.set("left", begin.0).await?;
        Ok(Item(begin.0))
    }

    #[step(precondition = affordable)]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }

    #[precondition]
    async fn affordable(item: &Item, context: &RunContext) -> Result<bool, StepError> {
        Ok(context.get::<u32>("left").await?.is_some_and(|left| left >= item.0 && left > 10))
    }
}

// S18
#[tokio::test]
async fn an_asynchronous_precondition_reads_the_runs_context() {
    assert_eq!(Budgeted.run(Begin(11)).await.unwrap(), Done(11));
    Scenario::new(Budgeted).start(Begin(10)).await.assert_stalled("its precondition `affordable` said no");
}

struct UsesSelf {
    least: u32,
}

#[workflow]
impl UsesSelf {
    #[step(precondition = Self::large)]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[precondition]
    fn large(&self, begin: &Begin) -> bool {
        begin.0 >= self.least
    }
}

// S18, S22
#[tokio::test]
async fn a_precondition_may_borrow_the_workflow() {
    assert_eq!(UsesSelf { least: 3 }.run(Begin(3)).await.unwrap(), Done(3));
    Scenario::new(UsesSelf { least: 4 }).start(Begin(3)).await.assert_stalled("`large` said no");
}

mod free {
    use workflow_core::prelude::*;

    use crate::fixtures::Begin;

    #[precondition]
    pub(super) fn odd(begin: &Begin) -> bool {
        !begin.0.is_multiple_of(2)
    }

    #[precondition]
    pub(super) async fn later(begin: Option<&Begin>) -> Result<bool, std::num::TryFromIntError> {
        tokio::task::yield_now().await;
        Ok(u8::try_from(begin.map_or(0, |begin| begin.0))? < 200)
    }
}

struct Free;

#[workflow]
impl Free {
    #[step(precondition = free::odd)]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(precondition = free::later)]
    async fn end(&self, item: &Item, _begin: &Begin) -> Done {
        Done(item.0)
    }
}

// S18
#[tokio::test]
async fn a_free_function_may_be_a_precondition_sync_or_async() {
    assert_eq!(Free.run(Begin(1)).await.unwrap(), Done(1));
    Scenario::new(Free).start(Begin(2)).await.assert_stalled("`odd` said no");
    Scenario::new(Free).start(Begin(201)).await.assert_stalled("`later` said no");
}

// S18
#[test]
fn a_free_function_that_is_a_precondition_can_still_be_called() {
    assert!(free::odd(&Begin(1)));
}

#[derive(Debug)]
struct Unreachable;

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the quota service is unreachable")
    }
}

impl std::error::Error for Unreachable {}

/// The way the precondition of `guarded` fails.
#[derive(Clone, Copy)]
enum Way {
    Error,
    Panic,
}

impl Way {
    fn fail(self) -> Result<bool, Unreachable> {
        match self {
            Self::Error => Err(Unreachable),
            Self::Panic => panic!("the quota is negative"),
        }
    }
}

struct Failing {
    way: Way,
    seen: Seen,
}

#[workflow]
impl Failing {
    #[step(precondition = within_quota)]
    async fn guarded(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[precondition]
    fn within_quota(&self, _begin: &Begin) -> Result<bool, Unreachable> {
        self.way.fail()
    }

    #[step]
    async fn other(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(precondition = noted)]
    async fn another(&self, begin: &Begin) -> Part {
        Part(begin.0)
    }

    #[precondition]
    fn noted(&self, begin: &Begin) -> bool {
        self.seen.note(begin.0.to_string());
        false
    }
}

struct FailingLater {
    way: Way,
}

#[workflow]
impl FailingLater {
    #[step(precondition = within_quota)]
    async fn guarded(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[precondition]
    async fn within_quota(&self, _begin: &Begin) -> Result<bool, Unreachable> {
        tokio::task::yield_now().await;
        self.way.fail()
    }
}

fn failed_precondition(error: RunError) -> (Arc<str>, Arc<str>, SharedError) {
    let RunError::PreconditionFailed { step, precondition, source, .. } = error else { panic!("{error}") };
    (step, precondition, source)
}

// S18
#[tokio::test]
async fn an_error_in_a_precondition_fails_the_run_and_names_step_and_precondition() {
    let error = Failing { way: Way::Error, seen: Seen::default() }.run(Begin(1)).await.unwrap_err();
    let text = "precondition `within_quota` of step `guarded` failed: the quota service is unreachable";
    assert_eq!(error.to_string(), text);
    let (step, precondition, source) = failed_precondition(error);
    assert_eq!((&*step, &*precondition), ("guarded", "within_quota"));
    assert!(source.downcast_ref::<Unreachable>().is_some());
}

// S18, S27
#[tokio::test]
async fn a_panic_in_a_precondition_fails_the_run_and_names_step_and_precondition() {
    let error = Failing { way: Way::Panic, seen: Seen::default() }.run(Begin(1)).await.unwrap_err();
    let (step, precondition, source) = failed_precondition(error);
    assert_eq!((&*step, &*precondition), ("guarded", "within_quota"));
    assert_eq!(source.to_string(), "it panicked: the quota is negative");
}

// S18, S27
#[tokio::test]
async fn an_asynchronous_precondition_fails_the_run_alike() {
    for (way, text) in [(Way::Error, "unreachable"), (Way::Panic, "the quota is negative")] {
        let error = FailingLater { way }.run(Begin(1)).await.unwrap_err();
        let (step, precondition, source) = failed_precondition(error);
        assert_eq!((&*step, &*precondition), ("guarded", "within_quota"));
        assert!(source.to_string().contains(text));
    }
}

// S18
#[tokio::test]
async fn the_other_steps_of_the_trigger_are_still_evaluated() {
    let seen = Seen::default();
    let run = Scenario::new(Failing { way: Way::Error, seen: seen.clone() }).start(Begin(1)).await;
    assert_eq!(run.status(), RunStatus::Failed);
    run.assert_executions("guarded", 0);
    run.assert_executions("other", 1);
    assert_eq!(seen.lines(), [""; 0], "nothing begins in a run that has ended");
}

struct Slow;

#[workflow]
impl Slow {
    #[step(precondition = allowed)]
    async fn work(&self, alpha: &Alpha) -> Saw {
        Saw(format!("worked {}", alpha.0))
    }

    #[precondition]
    async fn allowed(_alpha: &Alpha) -> bool {
        tokio::time::sleep(Duration::from_hours(1)).await;
        true
    }

    #[step]
    async fn free(&self, alpha: &Alpha) -> Saw {
        Saw(format!("free {}", alpha.0))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S18
#[tokio::test]
async fn a_precondition_that_waits_holds_nothing_else_up() {
    let scenario = Scenario::new(Slow).send_after(Duration::ZERO, Alpha(1));
    let run = scenario.send_after(Duration::ZERO, Alpha(2)).send(Close).start(Begin(0)).await;
    // The run did not wait, and so was not closed, before both had agreed.
    run.assert_output(&Done(0));
    assert_eq!(saw(&run), ["free 1", "free 2", "worked 1", "worked 2"]);
}

// S18, S28
#[tokio::test]
async fn a_precondition_that_still_waits_at_the_end_is_dropped() {
    let scenario = Scenario::new(Slow).send_after(Duration::ZERO, Alpha(1));
    let run = scenario.send_after(Duration::ZERO, Close).start(Begin(0)).await;
    run.assert_output(&Done(0));
    run.assert_executions("work", 0);
}

struct ByValue;

#[workflow]
impl ByValue {
    #[step(precondition = sound)]
    async fn end(&self, begin: &Begin, item: &Item) -> Done {
        Done(begin.0 + item.0)
    }

    #[step]
    async fn make(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[precondition]
    #[expect(clippy::needless_pass_by_value, reason = "what this is about")]
    fn sound(shared: Arc<Item>, owned: Begin) -> bool {
        shared.0 == owned.0
    }
}

// S18
#[tokio::test]
async fn a_precondition_may_take_its_steps_events_by_value_or_shared() {
    assert_eq!(ByValue.run(Begin(2)).await.unwrap(), Done(4));
}

/// Panics when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "on drop");
    }
}

struct Mined;

#[workflow]
impl Mined {
    #[step(precondition = never_answers)]
    async fn work(&self, begin: &Begin) -> Part {
        Part(begin.0)
    }

    #[precondition]
    async fn never_answers(_begin: &Begin, context: RunContext) -> Result<bool, StepError> {
        let _grenade = Grenade;
        context.set("asked", 1).await?;
        std::future::pending().await
    }

    #[step]
    async fn end(&self, _close: &Close, context: &RunContext) -> Result<Done, StepError> {
        Ok(Done(context.get("asked").await?.unwrap_or(0)))
    }
}

// S18, S27
#[tokio::test]
async fn a_precondition_that_panics_when_it_is_dropped_does_not_harm_its_run() {
    let run = Scenario::new(Mined).send_after(Duration::from_secs(1), Close).start(Begin(1)).await;
    run.assert_output(&Done(1));
}
