//! A step that the test answers by hand, call by call.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::mpsc;
use workflow_core::{Emitted, StepCall, StepError, StepInput, StepOutput, StepSpec};

use crate::cast::Player;
use crate::stand_in::{Answer, Misfit, fits_output, place};

/// How long a call waits for its answer, by the real clock: so long that only a test that forgot it meets it.
const PATIENCE: Duration = Duration::from_mins(1);

type Result = std::result::Result<Emitted, StepError>;

/// Stands in for a step whose calls a [`Handle`] answers: see [`ScenarioOf::mock`](crate::ScenarioOf::mock).
#[derive(Debug)]
pub struct Mock {
    calls: mpsc::UnboundedSender<Call>,
}

/// Receives the calls of a mocked step, for the test to look at and to answer.
///
/// Dropping it fails the calls that have not been received, and every later one.
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

/// One call of a mocked step. While it is out, the scenario's clock stands still.
///
/// Dropping it fails the call, with an error that says so.
pub struct Call {
    step: &'static StepSpec,
    /// None once it is answered.
    open: Option<StepCall>,
    answer: Sender<Option<Result>>,
}

impl Mock {
    /// A mock, to be given to a scenario, and the handle on it, for the test.
    pub fn pair() -> (Self, Handle) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { calls: sender }, Handle { calls: receiver })
    }

    /// What answers the calls of this step.
    pub(crate) fn player(self, step: &'static StepSpec) -> Player {
        Box::new(move |call| {
            let (answer, answered) = channel();
            let gone = Gone(answer.clone());
            let call = Call { step, open: Some(call), answer };
            // Where nobody holds the handle, the call comes back, and is dropped here.
            drop(self.calls.send(call));
            wait(answered, gone)
        })
    }
}

/// Waits for an answer on a blocking thread: a runtime's virtual clock stands still while one is busy.
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
        // An error says that nobody waits any more.
        let _ = self.0.send(None);
    }
}

impl Handle {
    /// The next call of the step, in the order in which they began; none if the scenario is over.
    ///
    /// It waits while there is none, so that the scenario has to be awaited at the same time, for example in a task.
    pub async fn next_call(&mut self) -> Option<Call> {
        self.calls.recv().await
    }
}

impl Call {
    /// The step's name.
    pub fn step(&self) -> &'static str {
        self.step.name()
    }

    /// Which attempt of its execution the call is, from 1.
    pub fn attempt(&self) -> u32 {
        self.open.as_ref().map_or(1, StepCall::attempt)
    }

    /// What one of the step's parameters was bound to, as a step would take it: `call.input::<&Question>()`. Take
    /// an `Arc` or a value to hold several at a time.
    ///
    /// # Panics
    /// If the step does not take it.
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

    /// Ends the call with what the step could return, as a [stand-in](crate::ScenarioOf::replace) does, or a `Result` of
    /// that. Nothing happens if its execution was dropped meanwhile.
    ///
    /// # Panics
    /// If the step could not return it.
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
        // An error says that the execution was dropped.
        let _ = self.answer.send(Some(result));
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.open.take().is_some() {
            // An error says that the execution was dropped.
            let _ = self.answer.send(None);
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({})", self.step.name())
    }
}
