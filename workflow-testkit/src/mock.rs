//! A step that the test answers by hand, call by call.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::mpsc;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::table::StepSpec;
use workflow_core::{StepError, StepInput, StepOutput};

use crate::cast::Player;
use crate::stand_in::{Answer, Misfit, fits_output, place};

/// The time that a call waits for its answer, in real time: only a test that forgot the call reaches it.
const PATIENCE: Duration = Duration::from_mins(1);

type Result = std::result::Result<Emitted, StepError>;

/// A stand-in for a step, whose calls a [`Handle`] answers: see [`ScenarioOf::mock`](crate::ScenarioOf::mock).
#[derive(Debug)]
pub struct Mock {
    calls: mpsc::UnboundedSender<Call>,
}

/// Receives the calls of a mocked step, for the test to inspect and answer.
///
/// Dropping the handle fails the calls it has not received, and every later one.
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_testkit::{Mock, Scenario};
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
/// let (mock, mut handle) = Mock::pair();
/// let scenario = Scenario::new(Research).mock("retrieve", mock);
/// let run = tokio::spawn(scenario.start(Question("why".into())).into_future());
///
/// let mut call = handle.next_call().await.expect("the step is called");
/// assert_eq!(call.input::<&Question>().0, "why");
/// call.answer(Fact("therefore".into()));
/// run.await.unwrap().assert_output(&Answer("therefore".into()));
/// assert!(handle.next_call().await.is_none());
/// # }
/// ```
#[derive(Debug)]
pub struct Handle {
    calls: mpsc::UnboundedReceiver<Call>,
}

/// One call of a mocked step.
///
/// While the call is open, the scenario's clock stands still.
///
/// Dropping the call fails it, with an error that says so.
pub struct Call {
    step: &'static StepSpec,
    /// The call; `None` once answered.
    open: Option<StepCall>,
    answer: Sender<Option<Result>>,
}

impl Mock {
    /// Creates a mock for a scenario, and the test's handle on it.
    pub fn pair() -> (Self, Handle) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { calls: sender }, Handle { calls: receiver })
    }

    /// The function that answers the calls of this step.
    pub(crate) fn player(self, step: &'static StepSpec) -> Player {
        Box::new(move |call| {
            let (answer, answered) = channel();
            let gone = Gone(answer.clone());
            let call = Call { step, open: Some(call), answer };
            // If the handle is gone, the send returns the call, and this drops it.
            drop(self.calls.send(call));
            wait(answered, gone)
        })
    }
}

/// Waits for an answer on a blocking thread: the virtual clock stands still while a blocking thread is busy.
fn wait(answered: Receiver<Option<Result>>, gone: Gone) -> Answer {
    async move {
        let _gone = gone;
        let answer = tokio::task::spawn_blocking(move || answered.recv_timeout(PATIENCE)).await?;
        match answer {
            Ok(Some(answer)) => answer,
            Err(RecvTimeoutError::Timeout) => {
                Err(StepError::permanent(format!("the test did not answer within {} s", PATIENCE.as_secs())))
            }
            Ok(None) | Err(RecvTimeoutError::Disconnected) => {
                Err(StepError::permanent("the test dropped the call without an answer"))
            }
        }
    }
    .boxed()
}

/// Ends the wait for an answer when the execution is dropped.
struct Gone(Sender<Option<Result>>);

impl Drop for Gone {
    fn drop(&mut self) {
        // The send fails only if no call waits any more.
        let _ = self.0.send(None);
    }
}

impl Handle {
    /// Returns the step's next call, in order; `None` once the scenario is over.
    ///
    /// The call waits for the scenario, so await the scenario concurrently, for example in a task.
    pub async fn next_call(&mut self) -> Option<Call> {
        self.calls.recv().await
    }
}

impl Call {
    /// The step's name.
    pub fn step(&self) -> &'static str {
        self.step.name()
    }

    /// The attempt number within the execution, from 1.
    pub fn attempt(&self) -> u32 {
        self.open.as_ref().map_or(1, StepCall::attempt)
    }

    /// The value of one of the step's parameters, as the step would take it.
    ///
    /// For example `call.input::<&Question>()`. Take an `Arc` or a value to hold several at a time.
    ///
    /// # Panics
    /// Panics if the step has no such parameter.
    #[track_caller]
    pub fn input<I: StepInput>(&mut self) -> I::Item<'_> {
        let step = self.step;
        let place = place(step, &I::SPEC, &[]);
        let place = place.unwrap_or_else(|| panic!("{}", Misfit::takes_other(step, &I::SPEC)));
        let slot = self.open.as_mut().and_then(|call| call.slots().nth(place));
        let input =
            slot.map(I::fill).transpose().unwrap_or_else(|error| panic!("`{}`: {error}", step.name()));
        input.expect("a call has a slot for each of its parameters until it is answered")
    }

    /// Ends the call with a value that the step could return.
    ///
    /// The value may also be less, as for a [stand-in](crate::ScenarioOf::replace), or a `Result`. If the execution was
    /// dropped meanwhile, this does nothing.
    ///
    /// # Panics
    /// Panics if the step could not return the value.
    #[track_caller]
    pub fn answer<T: StepOutput>(mut self, output: T) {
        if let Err(misfit) = fits_output(self.step, &T::SPEC) {
            panic!("the answer does not fit: {misfit}");
        }
        if let Some(call) = self.open.take() {
            self.end(call.commit(output));
        }
    }

    /// Ends the call with an error.
    pub fn fail(mut self, error: StepError) {
        self.open.take();
        self.end(Err(error));
    }

    fn end(&self, result: Result) {
        // An error means that the execution was dropped.
        let _ = self.answer.send(Some(result));
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.open.take().is_some() {
            // An error means that the execution was dropped.
            let _ = self.answer.send(None);
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({})", self.step.name())
    }
}
