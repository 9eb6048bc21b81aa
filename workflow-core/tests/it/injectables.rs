//! What steps are handed besides events: the library's injectables and a user's own (S6).

use std::sync::Arc;

use workflow_core::prelude::*;
use workflow_core::{InputSpec, RunOptions, Slot, StepInput};

use crate::fixtures::{Alpha, Begin, Close, Done, Seen, report_of, report_when_settled, started};

struct Informed(Seen);

#[workflow(name = "informed")]
impl Informed {
    #[step(name = "look-around")]
    async fn look(&self, begin: &Begin, info: &RunInfo, owned: RunInfo) -> Done {
        self.0.note(format!("{} {} {} {}", info.run(), info.thread(), info.workflow(), info.step()));
        self.0.note(format!("{} {} {}", info.execution(), info.attempt(), info.scope()));
        assert_eq!(info.idempotency_key(), owned.idempotency_key());
        Done(begin.0)
    }
}

// S6
#[tokio::test]
async fn run_info_says_who_is_executing() {
    let seen = Seen::default();
    let engine = Engine::builder().workflow(Informed(seen.clone())).build().unwrap();
    let options = RunOptions::new().id("run-1").thread("user-4");
    let run = engine.start_with::<Informed>(Begin(1), options).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(seen.lines(), ["run-1 user-4 informed look-around", "x1 1 scope 0"]);
}

struct Keyed(Seen);

#[workflow]
impl Keyed {
    #[step(reruns)]
    async fn note(&self, alphas: List<Alpha>, info: RunInfo) {
        self.0.note(format!("{} {}", alphas.len(), info.idempotency_key()));
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S20
#[tokio::test]
async fn executions_of_one_run_have_different_idempotency_keys() {
    let seen = Seen::default();
    let run = started(Keyed(seen.clone()), 0).await;
    run.send(Alpha(1)).await.unwrap();
    run.send(Alpha(2)).await.unwrap();
    report_when_settled(&run).await;
    let lines = seen.lines();
    let keys: Vec<&str> = lines.iter().filter_map(|line| line.split_once(' ')).map(|(_, key)| key).collect();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
}

/// A request id, made of who is calling.
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

/// What a run's context says of its budget; an injectable that reads another.
struct Budget(RunContext);

impl StepInput for Budget {
    const SPEC: InputSpec = InputSpec::injected("Budget");
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Ok(Self(slot.run_context()))
    }
}

struct OwnInjectables(Seen);

#[workflow]
impl OwnInjectables {
    #[step(precondition = named)]
    async fn call(&self, begin: &Begin, owned: CallName, borrowed: &CallName, budget: Budget) -> Done {
        assert_eq!(owned, *borrowed);
        self.0.note(owned.0);
        let spent = budget.0.increment("spent", i64::from(begin.0)).await;
        Done(u32::try_from(spent.unwrap()).unwrap())
    }

    #[precondition]
    fn named(&self, name: &CallName) -> bool {
        self.0.note(format!("asked by {}", name.0));
        true
    }
}

// S6
#[tokio::test]
async fn a_users_own_injectable_is_handed_over_by_value_and_by_reference() {
    let seen = Seen::default();
    let engine = Engine::builder().workflow(OwnInjectables(seen.clone())).build().unwrap();
    let run = engine.start_with::<OwnInjectables>(Begin(3), RunOptions::new().id("r")).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(3));
    assert_eq!(seen.lines(), ["asked by r/call", "r/call"]);
}

struct Unavailable;

impl StepInput for Unavailable {
    const SPEC: InputSpec = InputSpec::injected("Unavailable");
    type Item<'a> = Self;

    fn fill(_: Slot<'_>) -> Result<Self, StepError> {
        Err(StepError::transient("the pool is empty"))
    }
}

struct Starved(Seen);

#[workflow]
impl Starved {
    #[step]
    async fn work(&self, begin: &Begin, _unavailable: Unavailable) -> Done {
        self.0.note("worked");
        Done(begin.0)
    }
}

// S6, S29
#[tokio::test]
async fn an_injectable_that_cannot_be_made_fails_the_execution_before_its_body() {
    let seen = Seen::default();
    let error = Starved(seen.clone()).run(Begin(1)).await.unwrap_err();
    let RunError::StepFailed { step, source, .. } = &error else { panic!("{error}") };
    assert_eq!((&**step, source.to_string()), ("work", "the pool is empty".to_owned()));
    assert!(seen.lines().is_empty());
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
    let report = report_of(Everything("x".into()), 1).await;
    assert_eq!(report.executions("take"), 1);
    assert_eq!(Everything("x".into()).run(Begin(1)).await.unwrap(), Done(42));
}
