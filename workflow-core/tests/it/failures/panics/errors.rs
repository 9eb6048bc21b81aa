//! Errors that cannot be read, or dropped.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use tracing_subscriber::layer::SubscriberExt as _;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::observe::{Observation, Observer, TracingObserver};
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::store::MemoryStore;
use workflow_core::{ErrorClass, RetryPolicy, RunStatus, StepFailed};

use super::{Bomb, Fine, explode, failures_of, goes_on};
use crate::fixtures::{Begin, Done, Item, Part, Seen};

/// The misbehaviour of an error.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    Display,
    Debug,
    Source,
    /// Its `Display` fails, without a panic.
    Unwritable,
    Drop,
    /// All of it.
    Everything,
}

impl Trouble {
    const ALL: [Self; 6] =
        [Self::Display, Self::Debug, Self::Source, Self::Unwritable, Self::Drop, Self::Everything];

    fn comes_of(self, what: Self) {
        if self == what || self == Self::Everything {
            if self == Self::Everything { explode() } else { panic!("no {what:?}") }
        }
    }
}

struct Mute(Trouble);

impl fmt::Display for Mute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.comes_of(Trouble::Display);
        if self.0 == Trouble::Unwritable { Err(fmt::Error) } else { f.write_str("mute") }
    }
}

impl fmt::Debug for Mute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.comes_of(Trouble::Debug);
        f.write_str("Mute")
    }
}

impl Error for Mute {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.comes_of(Trouble::Source);
        None
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        self.0.comes_of(Trouble::Drop);
    }
}

/// The text reported in its place.
fn said(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Display => "the error's `Display` panicked: no Display",
        Trouble::Everything => "the error's `Display` panicked: no message",
        Trouble::Unwritable => "the error's `Display` failed",
        Trouble::Debug | Trouble::Source | Trouble::Drop => "mute",
    }
}

struct Failing(Trouble);

#[workflow]
impl Failing {
    #[step]
    async fn fail(&self, _begin: &Begin) -> Result<Done, Mute> {
        Err(Mute(self.0))
    }
}

/// Records everything.
struct Scribe(Seen);

impl Observer for Scribe {
    fn observe(&self, observation: &Observation) {
        self.0.note(format!("{observation:?}"));
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

/// An engine on which observers read errors.
fn watched(seen: &Seen) -> workflow_core::EngineBuilder {
    let once = workflow_core::Retries::fixed(1, std::time::Duration::ZERO);
    Engine::builder()
        .workflow(Fine)
        .retry(RetryPolicy::standard().on(ErrorClass::Permanent, once))
        .observer(Scribe(seen.clone()))
        .observer(TracingObserver::new())
        .store(MemoryStore::default())
}

// S27
#[tokio::test]
async fn an_unreadable_error_is_the_failure_of_its_step_for_every_reader() {
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::sink);
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    for trouble in Trouble::ALL {
        let seen = Seen::default();
        let engine = watched(&seen).workflow(Failing(trouble)).build().unwrap();
        let run = engine.start::<Failing>(Begin(1)).await.unwrap();
        let error = run.outcome().await.unwrap_err();
        assert!(error.to_string().ends_with(said(trouble)), "{error}");
        assert!(!format!("{error:?}").is_empty());
        assert!(error.source().is_none(), "{trouble:?}");
        assert!(error.cause().is_some_and(|cause| cause.source().is_none()), "{trouble:?}");
        let report = run.report().await.unwrap();
        assert_eq!(
            (report.status, failures_of(&report, "fail")),
            (RunStatus::Failed, vec![said(trouble).into()])
        );
        assert!(run.explain().await.unwrap().to_string().contains(said(trouble)));
        assert!(seen.lines().iter().any(|line| line.contains("ExecutionFailed")), "{trouble:?}");
        drop((error, report, run));
        goes_on(&engine).await;
    }
}

struct Refusing(Trouble);

#[workflow]
impl Refusing {
    #[step(precondition = now)]
    async fn at_once(&self, _begin: &Begin) -> Done {
        Done(0)
    }

    #[step(precondition = later)]
    async fn in_time(&self, _begin: &Begin) -> Done {
        Done(0)
    }

    #[precondition]
    fn now(&self, begin: &Begin) -> Result<bool, Mute> {
        if begin.0 == 0 { Err(Mute(self.0)) } else { Ok(false) }
    }

    #[precondition]
    async fn later(&self, _begin: &Begin) -> Result<bool, Mute> {
        tokio::task::yield_now().await;
        Err(Mute(self.0))
    }
}

// S18, S27
#[tokio::test]
async fn an_error_of_a_precondition_that_cannot_be_read_fails_its_run_alone() {
    for (trouble, begin) in Trouble::ALL.into_iter().flat_map(|trouble| [(trouble, 0), (trouble, 1)]) {
        let engine = watched(&Seen::default()).workflow(Refusing(trouble)).build().unwrap();
        let run = engine.start::<Refusing>(Begin(begin)).await.unwrap();
        let error = run.outcome().await.unwrap_err();
        assert!(matches!(error, RunError::PreconditionFailed { .. }), "{error}");
        assert!(error.to_string().ends_with(said(trouble)), "{error}");
        drop((run.explain().await.unwrap(), error, run));
        goes_on(&engine).await;
    }
}

/// Fails in place of a step's call.
struct InTheWay(Trouble);

impl Middleware for InTheWay {
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        let trouble = self.0;
        if call.run().as_str() == "fine" {
            return next.call(call);
        }
        Box::pin(async move { Err(StepError::tool(Mute(trouble))) })
    }
}

// S27
#[tokio::test]
async fn an_error_of_middleware_that_cannot_be_read_is_the_failure_of_its_execution() {
    for trouble in Trouble::ALL {
        let engine = watched(&Seen::default()).middleware(InTheWay(trouble)).build().unwrap();
        let run = engine.start::<Fine>(Begin(1)).await.unwrap();
        let report = run.report().await.unwrap();
        assert_eq!(failures_of(&report, "end"), [said(trouble)]);
        let options = workflow_core::RunOptions::new().id("fine");
        let fine = engine.start_with::<Fine>(Begin(7), options).await.unwrap();
        assert_eq!(fine.outcome().await.unwrap(), Done(7));
    }
}

struct Catching(Trouble);

#[workflow]
impl Catching {
    #[step]
    async fn open(&self, _begin: &Begin) -> FanOut<Item> {
        [0, 1].into_iter().map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn fail(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 == 0 { Err(Mute(self.0).into()) } else { Ok(Part(1)) }
    }

    #[step]
    async fn again(&self, parts: &Gather<Part>) -> Result<Part, Mute> {
        let failures = parts.failed().map(|branch| branch.failure().unwrap().to_string());
        assert_eq!(failures.collect::<Vec<_>>(), [format!("step `fail` failed: {}", said(self.0))]);
        Err(Mute(self.0))
    }

    #[step(catches = [again])]
    async fn end(&self, failed: &StepFailed) -> Done {
        assert_eq!(&*failed.error, said(self.0));
        Done(1)
    }
}

// S27, S29, S49
#[tokio::test]
async fn a_failure_that_cannot_be_read_is_caught_and_gathered_like_any_other() {
    for trouble in Trouble::ALL {
        let engine = watched(&Seen::default()).workflow(Catching(trouble)).build().unwrap();
        let run = engine.start::<Catching>(Begin(1)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(1), "{trouble:?}");
    }
}

// S27, S35
#[tokio::test]
async fn a_classifier_that_panics_with_an_undroppable_payload_sets_no_class() {
    let engine = Engine::builder().workflow(Fine).workflow(Failing(Trouble::Source));
    let engine = engine.classify(|_: &Mute| std::panic::panic_any(Bomb(1))).build().unwrap();
    let run = engine.start::<Failing>(Begin(1)).await.unwrap();
    let error = run.outcome().await.unwrap_err();
    assert!(matches!(error, RunError::StepFailed { class: ErrorClass::Permanent, .. }), "{error}");
    goes_on(&engine).await;
}

#[test]
fn errors_that_cannot_be_dropped_are_dropped_though_a_thread_panics() {
    let errors = || Arc::new([(); 2].map(|()| StepError::tool(Mute(Trouble::Everything))));
    drop(errors());
    let panicked = std::panic::catch_unwind(|| {
        let _errors = errors();
        panic!("while they are there");
    });
    assert!(panicked.is_err());
}
