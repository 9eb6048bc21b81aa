//! The setup of a run: the workflow, its configuration, stand-ins for its steps, and the script of events and replies.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use workflow_core::signature::Roles;
use workflow_core::store::{ContextData, ContextValue};
use workflow_core::table::StepSpec;
use workflow_core::{
    ConfigLayers, Engine, EngineBuilder, ErrorClass, ExternalEvent, Pause, Request, RetryPolicy, RunOptions,
    RuntimeWorkflow, StartEvent, StepError, Workflow,
};

use crate::cast::Cast;
use crate::mock::Mock;
use crate::script::{Script, Sent, assert_taken, json_of};
use crate::stand_in::{self, Misfit, StandIn};
use crate::start::Start;
use crate::subject::{Runtime, Subject, Tested};

/// The number of displayed items that a scenario keeps.
const SHOWN: usize = 1 << 16;

/// Runs a workflow in memory, by itself, on virtual time.
#[derive(Debug)]
pub enum Scenario {}

/// A [`Scenario`] of one workflow. All settings are optional; [`start`](Self::start) ends the setup.
///
/// ```
/// use std::time::Duration;
/// use workflow_core::prelude::*;
/// use workflow_testkit::Scenario;
///
/// #[derive(Debug, Serialize, Deserialize, Event)]
/// #[event(start)]
/// struct RefundAsked { cents: u64 }
///
/// #[derive(Debug, Serialize, Deserialize)]
/// struct Approval { granted: bool }
///
/// #[derive(Debug, Serialize, Deserialize, Event)]
/// #[event(request, reply = Approval)]
/// struct ApproveRefund { cents: u64 }
///
/// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// #[event(stop)]
/// struct Refunded { cents: u64 }
///
/// struct Refunds;
///
/// #[workflow]
/// impl Refunds {
///     #[step]
///     async fn ask(&self, refund: &RefundAsked) -> ApproveRefund {
///         ApproveRefund { cents: refund.cents }
///     }
///
///     #[step]
///     async fn pay(&self, approval: &Reply<ApproveRefund>) -> Refunded {
///         Refunded { cents: if approval.granted { approval.request().cents } else { 0 } }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let a_day = Duration::from_hours(24);
/// let run = Scenario::new(Refunds)
///     .reply_after(a_day, |request: &ApproveRefund| Approval { granted: request.cents < 1_000 })
///     .start(RefundAsked { cents: 500 })
///     .await;
/// run.assert_output(&Refunded { cents: 500 });
/// assert_eq!(run.elapsed(), a_day);
/// # }
/// ```
///
/// The run's options and the contexts that it finds belong to the setup too:
///
/// ```
/// use std::time::Duration;
/// use workflow_core::prelude::*;
/// use workflow_core::RunOptions;
/// use workflow_testkit::Scenario;
/// # #[derive(Debug, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Hello;
/// # #[derive(Debug, Serialize, Deserialize, Event)]
/// # #[event(external)]
/// # struct Name(String);
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Welcome(String);
/// struct Doorman;
///
/// #[workflow]
/// impl Doorman {
///     #[step]
///     async fn greet(
///         &self, _: &Hello, name: &Name, run: &RunContext, thread: &ThreadContext,
///     ) -> Result<Welcome, StepError> {
///         let greeting = run.get::<String>("greeting").await?.unwrap_or_default();
///         Ok(Welcome(format!("{greeting}, {}, visit {}", name.0, thread.increment("visits", 1).await?)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let run = Scenario::new(Doorman)
///     .options(RunOptions::new().thread("ada").metadata("door", "front"))
///     .run_context("greeting", "Hi".to_owned())
///     .thread_context("visits", 6)
///     .send_after(Duration::from_secs(60), Name("Ada".into()))
///     .start(Hello)
///     .await;
/// run.assert_output(&Welcome("Hi, Ada, visit 7".into()));
/// assert_eq!(run.elapsed(), Duration::from_secs(60));
/// assert_eq!(run.report().metadata["door"], "front");
/// # }
/// ```
#[must_use = "a scenario runs when it is started"]
pub struct ScenarioOf<W: Tested> {
    pub(crate) subject: Subject,
    pub(crate) engine: EngineBuilder,
    pub(crate) options: RunOptions,
    pub(crate) run_context: Vec<(String, ContextValue)>,
    pub(crate) thread_context: Vec<(String, ContextValue)>,
    pub(crate) script: Script,
    pub(crate) cast: Cast,
    pub(crate) is_drawn: bool,
    workflow: PhantomData<fn() -> W>,
}

impl Scenario {
    /// Creates a scenario of this workflow, with default configuration.
    #[expect(clippy::new_ret_no_self, reason = "the workflow's type is part of what is made")]
    pub fn new<W: Workflow>(workflow: W) -> ScenarioOf<W> {
        ScenarioOf::of(Subject::typed::<W>(), Engine::builder().workflow(workflow))
    }

    /// Creates a scenario of a workflow that a program builds at run time.
    ///
    /// Its events are JSON: [`start_json`](ScenarioOf::start_json), [`send_json`](ScenarioOf::send_json) and
    /// [`reply_json`](ScenarioOf::reply_json) take them, [`TestRun::outcome`](crate::TestRun::outcome) and
    /// [`TestRun::emitted_json`](crate::TestRun::emitted_json) return them. Everything else is as for a typed workflow, except
    /// for [stand-ins](ScenarioOf::replace): the test gives the workflow other steps instead.
    ///
    /// ```
    /// use std::time::Duration;
    /// use serde_json::{Value, json};
    /// use workflow_core::prelude::*;
    /// use workflow_core::signature::{Roles, StepCall};
    /// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
    /// use workflow_core::{InputValue, RuntimeWorkflow};
    /// use workflow_testkit::{Scenario, explore};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let table = DependencyTable::builder("refunds")
    ///     .event(EventDef::new("RefundAsked", Roles::NONE.start()))
    ///     .event(EventDef::new("Approve", Roles::NONE.request()))
    ///     .event(EventDef::reply_to("Approved", "Approve"))
    ///     .event(EventDef::new("Refunded", Roles::NONE.stop()))
    ///     .step(StepDef::new("ask").input(InputDef::one("RefundAsked")).output(OutputDef::event("Approve")))
    ///     .step(StepDef::new("pay").input(InputDef::reply("Approved")).output(OutputDef::event("Refunded")))
    ///     .build()?;
    /// let refunds = RuntimeWorkflow::new(table, |mut call: StepCall| async move {
    ///     let (event, value) = match call.input(0) {
    ///         InputValue::Reply { request, reply } => {
    ///             let cents = request.as_json().filter(|_| *reply == json!(true)).cloned();
    ///             ("Refunded", cents.unwrap_or(json!(0)))
    ///         }
    ///         asked => ("Approve", asked.json().cloned().unwrap_or_default()),
    ///     };
    ///     call.emit(event, value)?;
    ///     call.commit(())
    /// });
    ///
    /// let asked = || {
    ///     let cheap = |cents: &Value| json!(cents.as_u64() < Some(1_000));
    ///     Scenario::runtime(refunds.clone()).reply_json_after(Duration::from_hours(1), "Approve", cheap).start_json("RefundAsked", 500)
    /// };
    /// let explored = explore(asked).assert(|run| run.assert_output(&json!(500)));
    /// assert!(explored.is_exhaustive());
    /// # Ok(())
    /// # }
    /// ```
    pub fn runtime(workflow: RuntimeWorkflow) -> ScenarioOf<Runtime> {
        let engine = Engine::builder().workflows([workflow.clone()]);
        ScenarioOf::of(Subject::Runtime(workflow), engine)
    }
}

impl<W: Tested> ScenarioOf<W> {
    fn of(subject: Subject, engine: EngineBuilder) -> Self {
        Self {
            subject,
            engine: engine.display_capacity(SHOWN),
            options: RunOptions::new(),
            run_context: Vec::new(),
            thread_context: Vec::new(),
            script: Script::default(),
            cast: Cast::default(),
            is_drawn: false,
            workflow: PhantomData,
        }
    }

    /// Sets the configuration `C`.
    pub fn config<C: DeserializeOwned + Serialize + Send + Sync + 'static>(mut self, config: C) -> Self {
        self.engine = self.engine.config::<C>(ConfigLayers::defaults(config));
        self
    }

    /// Hosts another workflow, so that steps can run it as a [child](workflow_core::Children).
    ///
    /// Children use the same virtual time. Stand-ins, mocks and failures apply only to the scenario's own run: to test
    /// a parent without the work of its children, host the child with simple fields. A transcript names the children of
    /// each execution and how they ended.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::Scenario;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Ask(u64);
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer(u64);
    /// # struct Doubling;
    /// # #[workflow]
    /// # impl Doubling {
    /// #     #[step]
    /// #     async fn double(&self, ask: &Ask) -> Answer { Answer(ask.0 * 2) }
    /// # }
    /// struct Parent;
    ///
    /// #[workflow]
    /// impl Parent {
    ///     #[step]
    ///     async fn delegate(&self, ask: &Ask, children: &Children) -> Result<Answer, RunError> {
    ///         children.run::<Doubling>(ask.clone()).await
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let run = Scenario::new(Parent).host(Doubling).start(Ask(21)).await;
    /// run.assert_output(&Answer(42));
    /// # }
    /// ```
    pub fn host<C: Workflow>(mut self, child: C) -> Self {
        self.engine = self.engine.workflow(child);
        self
    }

    /// Hosts another workflow under a name, as [`EngineBuilder::workflow_named`] does; otherwise as [`host`](Self::host).
    ///
    /// Several hosted workflows may have one Rust type. A step names the one that it runs.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::RunOptions;
    /// use workflow_testkit::Scenario;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Ask(u64);
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer(u64);
    /// struct Times(u64);
    ///
    /// #[workflow]
    /// impl Times {
    ///     #[step]
    ///     async fn multiply(&self, ask: &Ask) -> Answer { Answer(ask.0 * self.0) }
    /// }
    ///
    /// struct Parent;
    ///
    /// #[workflow]
    /// impl Parent {
    ///     #[step]
    ///     async fn delegate(&self, ask: &Ask, children: &Children) -> Result<Answer, RunError> {
    ///         children.run_with::<Times>(ask.clone(), RunOptions::new().workflow("triple")).await
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let scenario = Scenario::new(Parent).host_named("double", Times(2)).host_named("triple", Times(3));
    /// scenario.start(Ask(14)).await.assert_output(&Answer(42));
    /// # }
    /// ```
    pub fn host_named<C: Workflow>(mut self, name: impl Into<Arc<str>>, child: C) -> Self {
        self.engine = self.engine.workflow_named(name, child);
        self
    }

    /// Hosts a workflow that a program builds at run time, so that steps can run it as a child by its name; otherwise as
    /// [`host`](Self::host).
    pub fn host_runtime(mut self, child: RuntimeWorkflow) -> Self {
        self.engine = self.engine.workflows([child]);
        self
    }

    /// Changes the run's engine: its store of journals, observers, middleware, limits.
    ///
    /// Common settings have methods here: [`config`](Self::config), [`host`](Self::host), [`retry`](Self::retry),
    /// [`classify`](Self::classify).
    ///
    /// The scenario always sets clock and contexts itself. A store or middleware that waits for another thread or the
    /// network looks idle to the clock, as a step does: see [`Start`]. In an [exploration](crate::explore()), each run
    /// has an engine of its own that is changed in the same way, except for the limit of concurrent executions, which
    /// is removed. State outside the engine is shared by all runs.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use workflow_core::prelude::*;
    /// use workflow_core::store::{EventStore, MemoryStore, Position};
    /// use workflow_testkit::Scenario;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Question(String);
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer(String);
    /// # struct Research;
    /// # #[workflow]
    /// # impl Research {
    /// #     #[step]
    /// #     async fn answer(&self, question: &Question) -> Answer {
    /// #         Answer(question.0.clone())
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), workflow_core::store::StoreError> {
    /// let store = Arc::new(MemoryStore::default());
    /// let scenario = Scenario::new(Research).engine(|engine| engine.store(store.clone()));
    /// scenario.start(Question("why".into())).await.assert_output(&Answer("why".into()));
    /// assert!(!store.read(&"scenario".into(), Position(0), 100).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn engine(mut self, change: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        self.engine = change(self.engine);
        self
    }

    /// Sets the retry policy for all steps without their own; delays take no real time.
    ///
    /// Default: that of every engine, [`RetryPolicy::standard`].
    ///
    /// The same as [`engine`](Self::engine) with [`EngineBuilder::retry`]; the later setting counts.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.engine = self.engine.retry(policy);
        self
    }

    /// Sets the class of errors of a type that come out of steps by `?`.
    ///
    /// The same as [`engine`](Self::engine) with [`EngineBuilder::classify`]; of two settings for one type, the later
    /// counts.
    pub fn classify<E: Error + 'static>(
        mut self,
        class: impl Fn(&E) -> ErrorClass + Send + Sync + 'static,
    ) -> Self {
        self.engine = self.engine.classify(class);
        self
    }

    /// Sets id, thread, metadata and configuration of the run.
    ///
    /// Default: the run and its thread are both called `scenario`, so that values derived from these names are the same
    /// each time.
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    /// Puts a value into the run's context before the start.
    ///
    /// The later value of a key counts.
    pub fn run_context<T: ContextData>(mut self, key: impl Into<String>, value: T) -> Self {
        self.run_context.push((key.into(), ContextValue::new(value)));
        self
    }

    /// Puts a value into the thread's context before the start.
    ///
    /// Earlier runs of the thread would leave such values.
    ///
    /// The later value of a key counts.
    pub fn thread_context<T: ContextData>(mut self, key: impl Into<String>, value: T) -> Self {
        self.thread_context.push((key.into(), ContextValue::new(value)));
        self
    }

    /// Sends an event as JSON, by its name, when the run waits; otherwise as [`send`](ScenarioOf::send).
    ///
    /// The workflow is of either kind. The run fails if it refuses the data.
    ///
    /// # Panics
    /// Panics if the workflow has no external event of this name, or the data has no JSON.
    #[track_caller]
    pub fn send_json(mut self, event: &str, data: impl Serialize) -> Self {
        let sent = self.sent(event, data);
        self.script.send(sent);
        self
    }

    /// Sends an event as JSON, by its name, after this much virtual time; otherwise as [`send_after`](ScenarioOf::send_after).
    ///
    /// # Panics
    /// As [`send_json`](Self::send_json).
    #[track_caller]
    pub fn send_json_after(mut self, after: Duration, event: &str, data: impl Serialize) -> Self {
        let sent = self.sent(event, data);
        self.script.send_after(after, sent);
        self
    }

    #[track_caller]
    fn sent(&self, event: &str, data: impl Serialize) -> Sent {
        self.subject.assert_event(event, "external event", Roles::is_external);
        Sent::json(event.into(), json_of(event, data))
    }

    /// Replies with JSON to every request of this name, whenever the run waits and one is open; otherwise as
    /// [`reply`](ScenarioOf::reply).
    ///
    /// The workflow is of either kind. The closure receives the data of the request. The run fails if it refuses the reply.
    ///
    /// # Panics
    /// Panics if the workflow has no request of this name.
    #[track_caller]
    pub fn reply_json(self, request: &str, reply: impl FnMut(&Value) -> Value + Send + 'static) -> Self {
        self.reply_json_after(Duration::ZERO, request, reply)
    }

    /// The same, this much virtual time after the run began to wait for the reply.
    ///
    /// # Panics
    /// As [`reply_json`](Self::reply_json).
    #[track_caller]
    pub fn reply_json_after(
        mut self,
        after: Duration,
        request: &str,
        reply: impl FnMut(&Value) -> Value + Send + 'static,
    ) -> Self {
        self.subject.assert_event(request, "request", Roles::is_request);
        let named = (request.into(), self.subject.reply_to(request));
        self.script.reply_json_after(after, named, reply);
        self
    }

    /// Cancels the run after this much virtual time since the start, unless it has ended.
    ///
    /// In an [exploration](crate::explore()), the run is cancelled at every point.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// use workflow_core::RunStatus;
    /// use workflow_testkit::{Scenario, explore};
    /// # #[derive(Debug, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Open;
    /// # #[derive(Debug, Serialize, Deserialize, Event)]
    /// # struct Opened;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Closed;
    /// struct Door;
    ///
    /// #[workflow]
    /// impl Door {
    ///     #[step]
    ///     async fn open(&self, _open: &Open) -> Opened { Opened }
    ///
    ///     #[step]
    ///     async fn close(&self, _opened: &Opened) -> Closed { Closed }
    /// }
    ///
    /// let leaving = || Scenario::new(Door).cancel_after(Duration::ZERO, "everybody left").start(Open);
    /// let explored = explore(leaving).assert(|run| match run.status() {
    ///     RunStatus::Cancelled => run.emitted::<Closed>().is_empty(),
    ///     status => status == RunStatus::Completed,
    /// });
    /// assert_eq!(explored.to_string(), "tried 3 of 3 orders that can be told apart");
    /// ```
    pub fn cancel_after(mut self, after: Duration, reason: impl Into<Arc<str>>) -> Self {
        self.script.cancel_after(after, reason.into());
        self
    }

    /// Pauses the run after this much virtual time since the start, unless it has ended.
    ///
    /// While the run is paused, replies and the events of [`send`](Self::send) wait, since it does not wait for them. In an
    /// [exploration](crate::explore()), the run is paused at every point.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// use workflow_core::Pause;
    /// use workflow_testkit::{Scenario, explore};
    /// # #[derive(Debug, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Open;
    /// # #[derive(Debug, Serialize, Deserialize, Event)]
    /// # struct Opened;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Closed;
    /// struct Door;
    ///
    /// #[workflow]
    /// impl Door {
    ///     #[step]
    ///     async fn open(&self, _open: &Open) -> Opened { Opened }
    ///
    ///     #[step]
    ///     async fn close(&self, _opened: &Opened) -> Closed { Closed }
    /// }
    ///
    /// let hour = Duration::from_secs(3_600);
    /// let paused = move || {
    ///     let door = Scenario::new(Door).pause_after(Duration::ZERO, Pause::AfterRunning);
    ///     door.unpause_after(hour).start(Open)
    /// };
    /// // An unpause that comes before the pause leaves the run paused.
    /// explore(paused).assert(|run| run.status().is_ended() || run.report().paused.is_some());
    /// ```
    pub fn pause_after(mut self, after: Duration, how: Pause) -> Self {
        self.script.pause_after(after, how);
        self
    }

    /// Unpauses the run after this much virtual time since the start, unless it has ended.
    ///
    /// In an [exploration](crate::explore()), the run is unpaused at every point, also before it is paused.
    pub fn unpause_after(mut self, after: Duration) -> Self {
        self.script.unpause_after(after);
        self
    }

    /// Returns to the test whenever the run waits.
    ///
    /// That includes pending timers, expiring requests, and later actions of the script.
    ///
    /// Without this setting, time passes for such a run. So a request may expire before the test can
    /// [reply](crate::TestRun::reply) by hand. With it, the clock stands still once the run waits and the script has no
    /// action for that time; only [`advance`](crate::TestRun::advance) lets time pass for a waiting run. While a step
    /// is active, or waits for its next attempt, the clock jumps as usual, and the script's timed events are sent when
    /// due.
    ///
    /// In an [exploration](crate::explore()) it has no effect: time passes there in every order that makes a
    /// difference.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::Scenario;
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(start)]
    /// struct RefundAsked { cents: u64 }
    ///
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(request, reply = bool)]
    /// struct ApproveRefund { cents: u64 }
    ///
    /// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// #[event(stop)]
    /// struct Refunded { cents: u64 }
    ///
    /// struct Refunds;
    ///
    /// #[workflow]
    /// impl Refunds {
    ///     #[step]
    ///     async fn ask(&self, refund: &RefundAsked) -> Expiring<ApproveRefund> {
    ///         ApproveRefund { cents: refund.cents }.expires_in(Duration::from_hours(24))
    ///     }
    ///
    ///     #[step]
    ///     async fn pay(&self, approval: &Reply<ApproveRefund>) -> Refunded {
    ///         Refunded { cents: if **approval { approval.request().cents } else { 0 } }
    ///     }
    ///
    ///     #[step]
    ///     async fn refuse(&self, _: &Expired<ApproveRefund>) -> Refunded { Refunded { cents: 0 } }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), workflow_core::SendError> {
    /// let asked = || Scenario::new(Refunds).until_it_waits().start(RefundAsked { cents: 500 });
    ///
    /// let mut run = asked().await;
    /// let request = run.requests()[0].id::<ApproveRefund>().unwrap();
    /// run.reply(request, true).await?;
    /// run.settled().await;
    /// run.assert_output(&Refunded { cents: 500 });
    ///
    /// let mut run = asked().await;
    /// run.advance(Duration::from_hours(24)).await;
    /// run.assert_output(&Refunded { cents: 0 });
    /// # Ok(())
    /// # }
    /// ```
    pub fn until_it_waits(mut self) -> Self {
        self.script.until_it_waits = true;
        self
    }

    /// Fails the first calls of a step, across all its executions and attempts.
    ///
    /// Each fails with an error from this function. Later calls reach the step or its stand-in. Of two settings for one
    /// step, the later counts.
    ///
    /// Each attempt is a call. So the [retry policy](Self::retry) and the error's class decide whether an execution
    /// fails. By default, up to three attempts follow a transient failure, after 10, 30 and 90 seconds of virtual time:
    /// an execution survives three such failures, but not four. With [`RetryPolicy::none`], the first failure fails the
    /// execution.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use workflow_core::RetryPolicy;
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::Scenario;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Question(String);
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer(String);
    /// # struct Research;
    /// # #[workflow]
    /// # impl Research {
    /// #     #[step]
    /// #     async fn answer(&self, question: &Question) -> Answer {
    /// #         Answer(question.0.clone())
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let busy = || Scenario::new(Research).fail_first("answer", 2, || StepError::transient("busy"));
    ///
    /// let run = busy().start(Question("why".into())).await;
    /// run.assert_output(&Answer("why".into()));
    /// run.assert_executions("answer", 1);
    /// assert_eq!(run.elapsed(), Duration::from_secs(10 + 30));
    ///
    /// let run = busy().retry(RetryPolicy::none()).start(Question("why".into())).await;
    /// assert!(matches!(run.outcome(), Err(RunError::StepFailed { attempts: 1, .. })));
    /// # }
    /// ```
    ///
    /// # Panics
    /// Panics if the workflow has no such step.
    #[track_caller]
    pub fn fail_first(
        mut self,
        step: &str,
        calls: u32,
        error: impl Fn() -> StepError + Send + Sync + 'static,
    ) -> Self {
        if let Some(lacks) = self.subject.lacks_step(step) {
            panic!("{lacks}");
        }
        self.cast.fail_first(step, calls, error);
        self
    }

    /// Makes a failed assertion print the run's picture too, as a block of Mermaid.
    ///
    /// The picture is the workflow's graph with the run laid over it: how often each step ran and failed, and how many
    /// branches it opened. Editors and forges draw such a block. It stands behind the explanation.
    ///
    /// ```should_panic
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::Scenario;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Ask(u64);
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer(u64);
    /// # struct Doubling;
    /// # #[workflow]
    /// # impl Doubling {
    /// #     #[step]
    /// #     async fn double(&self, ask: &Ask) -> Answer { Answer(ask.0 * 2) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let run = Scenario::new(Doubling).draw_on_panic().start(Ask(2)).await;
    /// run.assert_output(&Answer(5));
    /// # }
    /// ```
    pub fn draw_on_panic(mut self) -> Self {
        self.is_drawn = true;
        self
    }
}

impl<W: Workflow> ScenarioOf<W> {
    /// Sends an event when the run waits.
    ///
    /// Several events are sent one per wait, in the given order, after replies to open requests. Events left when the
    /// run ends are not sent; [`send_after`](Self::send_after) without delay sends at once. An event type that no step
    /// of `W` takes does not compile:
    ///
    /// ```compile_fail
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::Scenario;
    /// # #[derive(Debug, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Opened;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Closed;
    /// #[derive(Debug, Serialize, Deserialize, Event)]
    /// #[event(external)]
    /// struct Note(u32);
    ///
    /// struct Desk;
    ///
    /// #[workflow]
    /// impl Desk {
    ///     #[step]
    ///     async fn close(&self, _: &Opened) -> Closed { Closed }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// Scenario::new(Desk).send(Note(1)).start(Opened).await;
    /// # }
    /// ```
    pub fn send<E: ExternalEvent>(mut self, event: E) -> Self {
        assert_taken::<W, E>();
        self.script.send(Sent::of(event));
        self
    }

    /// Sends an event after this much virtual time, whether the run waits or not.
    ///
    /// The time counts from the start. A run that has ended by then gets nothing.
    pub fn send_after<E: ExternalEvent>(mut self, after: Duration, event: E) -> Self {
        assert_taken::<W, E>();
        self.script.send_after(after, Sent::of(event));
        self
    }

    /// Replies to every request of type `R`, whenever the run waits and one is open.
    ///
    /// All open requests get replies, the oldest first. Of two replies to one type of request, the later setting
    /// counts.
    pub fn reply<R: Request>(self, reply: impl FnMut(&R) -> R::Reply + Send + 'static) -> Self {
        self.reply_after(Duration::ZERO, reply)
    }

    /// The same, this much virtual time after the run began to wait for the reply.
    pub fn reply_after<R: Request>(
        mut self,
        after: Duration,
        reply: impl FnMut(&R) -> R::Reply + Send + 'static,
    ) -> Self {
        self.script.reply_after(after, reply);
        self
    }

    /// Replaces a step by a function.
    ///
    /// The function takes any or none of the step's parameters, in any order, each in a form that a step may take
    /// (`&E`, `E` and `Arc<E>` are equivalent). It returns what the step could return, or fewer possibilities, such as
    /// `Fact` for a step that returns `Option<Fact>` or `Vec<Fact>`, but never more. It may also return a `Result`, or
    /// a future that borrows nothing, and it may return the events that the step sends through an `Emitter`. The step's
    /// precondition is still evaluated. Of two functions for one step, the later counts.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::Scenario;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Question(String);
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Fact(String);
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer(String);
    /// # struct Research;
    /// # async fn asked(question: &str) -> String { format!("the service knows of {question}") }
    /// #[workflow]
    /// impl Research {
    ///     #[step]
    ///     async fn retrieve(&self, question: &Question) -> Fact {
    ///         Fact(asked(&question.0).await)
    ///     }
    ///
    ///     #[step]
    ///     async fn answer(&self, fact: &Fact) -> Answer {
    ///         Answer(fact.0.clone())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let scenario = Scenario::new(Research).replace("retrieve", |question: &Question| Fact(question.0.to_uppercase()));
    /// scenario.start(Question("why".into())).await.assert_output(&Answer("WHY".into()));
    /// # }
    /// ```
    ///
    /// # Panics
    /// Panics if the workflow has no such step, or the function does not fit the step's parameters or return type.
    #[track_caller]
    pub fn replace<T>(mut self, step: &str, stand_in: impl StandIn<T>) -> Self {
        let step = Self::step(step);
        let places =
            places(step, &stand_in).unwrap_or_else(|misfit| panic!("the stand-in does not fit: {misfit}"));
        self.cast.replace(step.name(), stand_in, places);
        self
    }

    /// Replaces a step by a [`Mock`], whose calls the test answers by hand.
    ///
    /// A scenario with a mock cannot be [explored](crate::explore()). Virtual time stands still while a call is open. A
    /// call without an answer fails after a minute of real time. Of two mocks or [stand-ins](Self::replace) for one
    /// step, the later counts.
    ///
    /// # Panics
    /// Panics if the workflow has no such step.
    #[track_caller]
    pub fn mock(mut self, step: &str, mock: Mock) -> Self {
        let step = Self::step(step);
        self.cast.mock(step.name(), mock.player(step));
        self
    }

    #[track_caller]
    fn step(name: &str) -> &'static StepSpec {
        stand_in::step(W::TABLE, name).unwrap_or_else(|misfit| panic!("{misfit}"))
    }

    /// Ends the setup; await the result to run the scenario.
    ///
    /// The run continues until it ends or waits for something outside the script.
    ///
    /// A start event that no step of `W` takes does not compile.
    pub fn start(self, event: impl StartEvent) -> Start<W> {
        Start::new(self, event)
    }
}

impl ScenarioOf<Runtime> {
    /// Ends the setup; await the result to run the scenario.
    ///
    /// The run begins with this start event, whose data is JSON, and continues until it ends or waits for something outside
    /// the script. It cannot start if the workflow refuses the data.
    ///
    /// # Panics
    /// Panics if the workflow has no start event of this name, or the data has no JSON.
    #[track_caller]
    pub fn start_json(self, event: &str, data: impl Serialize) -> Start<Runtime> {
        self.subject.assert_event(event, "start event", Roles::is_start);
        let data = json_of(event, data);
        Start::json(self, event.to_owned(), data)
    }
}

/// The slots of a step that a stand-in's parameters take.
fn places<T, S: StandIn<T>>(step: &'static StepSpec, _: &S) -> Result<Vec<usize>, Misfit> {
    S::signature().places(step)
}

impl<W: Tested> fmt::Debug for ScenarioOf<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("workflow", &self.subject).finish_non_exhaustive()
    }
}
