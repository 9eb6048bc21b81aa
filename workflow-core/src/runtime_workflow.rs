//! Workflows that a program builds at run time: a table, and one function for all of its steps (S57). The module owns
//! their public form; engines host them like typed ones.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::error::StepError;
use crate::error::UnfitJson;
use crate::input::StepCall;
use crate::output::Emitted;
use crate::table::{DependencyTable, StepIndex};

/// The steps of a [`RuntimeWorkflow`].
///
/// Any `Fn(StepCall) -> impl Future<Output = Result<Emitted, StepError>>` is one; [`StepCall::step`] has the name of the
/// step. Implement the trait for steps with preconditions, and to check JSON from outside.
///
/// ```
/// use std::sync::Arc;
/// use futures::future::BoxFuture;
/// use serde_json::{Value, json};
/// use workflow_core::prelude::*;
/// use workflow_core::signature::{Emitted, Roles, StepCall};
/// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef, StepIndex};
/// use workflow_core::{RunOptions, RuntimeWorkflow, Steps, UnfitJson};
///
/// struct Doubler;
///
/// impl Steps for Doubler {
///     fn call(self: Arc<Self>, _: StepIndex, mut call: StepCall) -> BoxFuture<'static, Result<Emitted, StepError>> {
///         Box::pin(async move {
///             let number = call.input(0).json().and_then(Value::as_i64).ok_or_else(|| StepError::permanent("no number"))?;
///             call.emit("Doubled", json!(2 * number))?;
///             call.commit(())
///         })
///     }
///
///     fn accept(&self, event: &str, data: &Value) -> Result<(), UnfitJson> {
///         match event {
///             "Number" if !data.is_i64() => Err(UnfitJson::new("", "a whole number is needed")),
///             _ => Ok(()),
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let table = DependencyTable::builder("doubler")
///     .event(EventDef::new("Number", Roles::NONE.start()))
///     .event(EventDef::new("Doubled", Roles::NONE.stop()))
///     .step(StepDef::new("double").input(InputDef::one("Number")).output(OutputDef::event("Doubled")))
///     .build()?;
/// let engine = Engine::builder().workflows([RuntimeWorkflow::new(table, Doubler)]).build()?;
///
/// let run = engine.start_json("doubler", "Number", 21, RunOptions::new()).await?;
/// assert_eq!(run.outcome_any().await?.as_json(), Some(&json!(42)));
///
/// let refused = engine.start_json("doubler", "Number", "21", RunOptions::new()).await.unwrap_err();
/// assert_eq!(refused.to_string(), "`Number` cannot be read: a whole number is needed");
/// # Ok(())
/// # }
/// ```
pub trait Steps: Send + Sync + 'static {
    /// Runs the step of this row: reads the [inputs](StepCall::input) of the call, [emits](StepCall::emit) its outputs, and
    /// [commits](StepCall::commit) it. A panic fails the execution.
    fn call(
        self: Arc<Self>,
        step: StepIndex,
        call: StepCall,
    ) -> BoxFuture<'static, Result<Emitted, StepError>>;

    /// Answers the precondition of the step of this row, whose own parameters the call has. The run's task waits for it.
    ///
    /// # Errors
    /// An error fails the run. By default every call is one.
    fn check(&self, step: StepIndex, call: &mut StepCall) -> Result<bool, StepError> {
        let _ = step;
        let problem = format!("step `{}` has a precondition: implement `Steps::check`", call.step());
        Err(StepError::permanent(problem))
    }

    /// Checks the data of an event or a reply from outside, by the name that the table gives it, before it enters a run.
    ///
    /// By default it accepts any JSON. Events from a journal were accepted before and are not checked again.
    ///
    /// # Errors
    /// The caller of the engine receives the error, and nothing enters the run.
    fn accept(&self, event: &str, data: &Value) -> Result<(), UnfitJson> {
        let _ = (event, data);
        Ok(())
    }
}

impl<F, T> Steps for F
where
    F: Fn(StepCall) -> T + Send + Sync + 'static,
    T: Future<Output = Result<Emitted, StepError>> + Send + 'static,
{
    fn call(self: Arc<Self>, _: StepIndex, call: StepCall) -> BoxFuture<'static, Result<Emitted, StepError>> {
        Box::pin(async move { self(call).await })
    }
}

/// A workflow that a program builds at run time, for example from a document.
///
/// Its table comes from [`DependencyTable::builder`], its events are JSON, and one [`Steps`] runs all of its steps. It keeps
/// every rule that a typed workflow keeps: journals, joins, retries, fan-outs, requests, explanations. An engine hosts it
/// under the name of its table with [`EngineBuilder::workflows`](crate::EngineBuilder::workflows), and
/// [`Engine::start_json`](crate::Engine::start_json) starts it. The wire names of its events are its own: other workflows of
/// the engine may have the same. Typed and run-time workflows run each other as children with
/// [`Children::run_json`](crate::Children::run_json).
///
/// A clone shares table and steps, so another engine can host it.
///
/// The check of the table is that of the compiler for a typed workflow. Two things that the type of a step decides are
/// checked when an execution commits: it emits declared outputs only, and each as often as declared.
///
/// ```
/// use serde_json::json;
/// use workflow_core::prelude::*;
/// use workflow_core::signature::{Roles, StepCall};
/// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
/// use workflow_core::{RunOptions, RuntimeWorkflow};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let table = DependencyTable::builder("greeter")
///     .event(EventDef::new("Greet", Roles::NONE.start()))
///     .event(EventDef::new("Greeting", Roles::NONE.stop()))
///     .step(StepDef::new("greet").input(InputDef::one("Greet")).output(OutputDef::event("Greeting")))
///     .build()?;
/// let greeter = RuntimeWorkflow::new(table, |mut call: StepCall| async move {
///     let name = call.input(0).json().map(|greet| greet["name"].clone()).unwrap_or_default();
///     call.emit("Greeting", json!({ "text": format!("Hello, {}!", name.as_str().unwrap_or("you")) }))?;
///     call.commit(())
/// });
///
/// let engine = Engine::builder().workflows([greeter]).build()?;
/// let run = engine.start_json("greeter", "Greet", json!({ "name": "Ada" }), RunOptions::new()).await?;
/// assert_eq!(run.outcome_any().await?.to_json()?, json!({ "text": "Hello, Ada!" }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RuntimeWorkflow {
    pub(crate) table: Arc<DependencyTable>,
    pub(crate) steps: Arc<dyn Steps>,
}

impl RuntimeWorkflow {
    /// A workflow of this table with these steps.
    ///
    /// The builder of an engine reports a table whose events have Rust types.
    pub fn new(table: DependencyTable, steps: impl Steps) -> Self {
        Self::limited(table, steps, None)
    }

    /// The same with the most time that a run of it may be active, as
    /// [`RunOptions::timeout`](crate::RunOptions::timeout) says what counts.
    ///
    /// It goes before the [time of the engine](crate::EngineBuilder::run_timeout), and holds for each run, also one that a
    /// front end or a parent starts. Options of a run with a shorter time go before it; a longer one has no effect. A run that
    /// goes on in a later process, a redriven one included, has the time of the workflow that is hosted there.
    ///
    /// ```
    /// use std::time::Duration;
    /// use serde_json::json;
    /// use workflow_core::prelude::*;
    /// use workflow_core::signature::{Roles, StepCall};
    /// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
    /// use workflow_core::{RunOptions, RuntimeWorkflow};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let table = DependencyTable::builder("sleeper")
    ///     .event(EventDef::new("Sleep", Roles::NONE.start()))
    ///     .event(EventDef::new("Awake", Roles::NONE.stop()))
    ///     .step(StepDef::new("sleep").input(InputDef::one("Sleep")).output(OutputDef::event("Awake")))
    ///     .build()?;
    /// let sleeper = RuntimeWorkflow::with_timeout(table, Duration::from_millis(5), |_: StepCall| std::future::pending());
    ///
    /// let engine = Engine::builder().workflows([sleeper]).build()?;
    /// let run = engine.start_json("sleeper", "Sleep", json!(null), RunOptions::new()).await?;
    /// assert!(matches!(run.outcome_any().await, Err(RunError::TimedOut { after, .. }) if after == Duration::from_millis(5)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_timeout(table: DependencyTable, active: Duration, steps: impl Steps) -> Self {
        Self::limited(table, steps, Some(active))
    }

    fn limited(mut table: DependencyTable, steps: impl Steps, timeout: Option<Duration>) -> Self {
        let steps = Arc::new(steps);
        let checks = Arc::clone(&steps);
        table.edges.steps = Some(Arc::clone(&steps) as _);
        table.edges.accept = Some(Arc::new(move |event, data| checks.accept(event, data)));
        table.edges.timeout = timeout;
        Self { table: Arc::new(table), steps }
    }

    /// The table.
    pub fn table(&self) -> &DependencyTable {
        &self.table
    }
}

impl fmt::Debug for RuntimeWorkflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RuntimeWorkflow({})", self.table.name)
    }
}
