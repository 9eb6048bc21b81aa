//! Parameters besides events: the library's injectables and a user's own (S6).

use std::sync::Arc;

use workflow_core::prelude::*;
use workflow_core::signature::{InputSpec, Slot};
use workflow_core::{RunOptions, StepInput};
use workflow_testkit::Scenario;

use crate::fixtures::{Alpha, Begin, Close, Done, Saw, saw};

struct Informed;

#[workflow(name = "informed")]
impl Informed {
    #[step(name = "look-around")]
    async fn look(&self, begin: &Begin, info: &RunInfo, owned: RunInfo) -> (Saw, Saw, Done) {
        assert_eq!(info.idempotency_key(), owned.idempotency_key());
        let names = format!("{} {} {} {}", info.run(), info.thread(), info.workflow(), info.step());
        let numbers = format!("{} {} {}", info.execution(), info.attempt(), info.scope());
        (Saw(names), Saw(numbers), Done(begin.0))
    }
}

// S6
#[tokio::test]
async fn run_info_says_who_is_executing() {
    let options = RunOptions::new().id("run-1").thread("user-4");
    let run = Scenario::new(Informed).options(options).start(Begin(1)).await;
    assert_eq!(saw(&run), ["run-1 user-4 informed look-around", "x1 1 scope 0"]);
}

struct Keyed;

#[workflow]
impl Keyed {
    #[step(reruns)]
    async fn note(&self, _alphas: List<Alpha>, info: RunInfo) -> Saw {
        Saw(info.idempotency_key().clone())
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S20
#[tokio::test]
async fn executions_of_one_run_have_different_idempotency_keys() {
    let keys = saw(&Scenario::new(Keyed).send(Alpha(1)).send(Alpha(2)).start(Begin(0)).await);
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
}

/// A request id, made from the caller.
#[derive(Debug, Clone, PartialEq)]
struct CallName(String);

impl CallName {
    fn of(slot: &Slot<'_>) -> Self {
        let info = slot.run_info();
        Self(format!("{}/{}", info.run(), info.step()))
    }
}

impl StepInput for CallName {
    const SPEC: InputSpec = InputSpec::injected("CallName");
    type Item<'a> = CallName;

    fn fill(slot: Slot<'_>) -> Result<CallName, StepError> {
        Ok(Self::of(&slot))
    }
}

impl StepInput for &CallName {
    const SPEC: InputSpec = InputSpec::injected("CallName");
    type Item<'a> = &'a CallName;

    fn fill(slot: Slot<'_>) -> Result<&CallName, StepError> {
        let name = CallName::of(&slot);
        Ok(slot.keep(name))
    }
}

/// The budget from a run's context; an injectable that reads another.
struct Budget(RunContext);

impl StepInput for Budget {
    const SPEC: InputSpec = InputSpec::injected("Budget");
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Ok(Self(slot.run_context()))
    }
}

struct OwnInjectables;

#[workflow]
impl OwnInjectables {
    #[step(precondition = named)]
    async fn call(&self, begin: &Begin, owned: CallName, borrowed: &CallName, budget: Budget) -> (Saw, Done) {
        assert_eq!(owned, *borrowed);
        let spent = budget.0.increment("spent", i64::from(begin.0)).await;
        (Saw(owned.0), Done(u32::try_from(spent.unwrap()).unwrap()))
    }

    #[precondition]
    fn named(name: &CallName) -> bool {
        name.0 == "r/call"
    }
}

// S6
#[tokio::test]
async fn a_users_own_injectable_is_passed_by_value_and_by_reference() {
    let run = Scenario::new(OwnInjectables).options(RunOptions::new().id("r")).start(Begin(3)).await;
    run.assert_output(&Done(3));
    assert_eq!(saw(&run), ["r/call"]);
}

struct Unavailable;

impl StepInput for Unavailable {
    const SPEC: InputSpec = InputSpec::injected("Unavailable");
    type Item<'a> = Self;

    fn fill(_: Slot<'_>) -> Result<Self, StepError> {
        Err(StepError::permanent("the pool is empty"))
    }
}

struct Starved;

#[workflow]
impl Starved {
    #[step]
    async fn work(&self, _begin: &Begin, _unavailable: Unavailable) -> Done {
        panic!("the body runs")
    }
}

// S6, S29
#[tokio::test]
async fn an_injectable_that_cannot_be_made_fails_the_execution_before_its_body() {
    let run = Scenario::new(Starved).start(Begin(1)).await;
    let expected =
        "#1 Begin from outside: 1\nx1 work by #1: failed (permanent): the pool is empty\nfailed by x1\n";
    assert_eq!(run.transcript(), expected);
}

struct Everything(Arc<str>);

#[workflow]
impl Everything {
    #[step(reruns)]
    async fn take(
        &self,
        begin: Begin,
        run: &RunContext,
        thread: ThreadContext,
        config: &Config<Settings>,
        display: &Display,
        info: &RunInfo,
        never: Option<&Close>,
    ) -> Result<Done, StepError> {
        assert!(never.is_none() && format!("{display:?}").contains(info.step()));
        run.set("n", begin.0).await?;
        thread.set("n", config.extra).await?;
        let run = run.get::<u32>("n").await?;
        let thread = thread.get::<u32>("n").await?;
        Ok(Done(run.zip(thread).map_or(0, |(run, thread)| run + thread) + u32::try_from(self.0.len())?))
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Settings {
    #[serde(default = "forty")]
    extra: u32,
}

fn forty() -> u32 {
    40
}

// S6, S8
#[tokio::test]
async fn injectables_never_keep_a_step_waiting() {
    let run = Scenario::new(Everything("x".into())).start(Begin(1)).await;
    run.assert_executions("take", 1);
    run.assert_output(&Done(42));
}
