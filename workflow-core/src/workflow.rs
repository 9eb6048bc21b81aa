//! The trait a workflow implements, by `#[workflow]`: a static table and a way to call its steps.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::draw::Graph;
use crate::error::StepError;
use crate::event::{FromEvent, StartEvent};
use crate::input::{InputSpec, StepCall};
use crate::output::Emitted;
use crate::table::{DependencyTable, TableSpec};

mod run;

pub use run::Running;

/// A call of a step, with its workflow and what it was bound to: it ends with what the step emits.
#[doc(hidden)]
pub type StepFuture = Pin<Box<dyn Future<Output = Result<Emitted, StepError>> + Send>>;

/// A running compaction, which borrows its workflow and its call.
#[doc(hidden)]
pub type Compaction<'a> = Pin<Box<dyn Future<Output = Result<(), StepError>> + Send + 'a>>;

/// A set of steps with a static dependency table. Write `#[workflow]` on an impl block and it is
/// implemented; see the [crate's front page](crate).
///
/// ```
/// use workflow_core::prelude::*;
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(start)]
/// struct Greet { name: String }
///
/// #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// #[event(stop)]
/// struct Greeting(String);
///
/// struct Greeter;
///
/// #[workflow]
/// impl Greeter {
///     #[step]
///     async fn greet(&self, greet: &Greet) -> Greeting {
///         Greeting(format!("Hello, {}!", greet.name))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), RunError> {
/// let greeting = Greeter.run(Greet { name: "Ada".into() }).await?;
/// assert_eq!(greeting, Greeting("Hello, Ada!".into()));
/// assert_eq!(Greeter::TABLE.name(), "Greeter");
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workflow",
    label = "not a workflow",
    note = "write `#[workflow]` on the impl block that holds its steps"
)]
pub trait Workflow: Sized + Send + Sync + 'static {
    /// What a run ends with: the stop event, or with several the [`EventSet`](crate::EventSet) named in
    /// `#[workflow(output = …)]`.
    type Output: FromEvent + Send + 'static;

    /// The steps and what each of them takes, emits and waits for.
    const TABLE: &'static TableSpec;

    /// Runs the workflow in memory and returns what it ended with.
    ///
    /// The run lives in the returned future, which needs no engine, no configuration beyond defaults, and
    /// no task of its own: dropping it cancels the run. A start event that no step takes does not compile.
    ///
    /// # Errors
    /// [`RunError`](crate::RunError) says how the run ended if it did not complete.
    fn run<S: StartEvent>(self, start: S) -> Running<Self> {
        const { crate::check::all(Self::TABLE) };
        const { crate::check::taken_from_outside::<Self, S>() };
        Running::new(self, start)
    }

    /// The workflow as a graph, to be drawn as Mermaid or DOT, or read as JSON; nothing is run.
    fn graph() -> Graph {
        DependencyTable::for_drawing(Self::TABLE).graph()
    }

    /// Calls the step of this row. Nothing of it is done before the future is polled.
    #[doc(hidden)]
    fn call(this: Arc<Self>, step: usize, call: StepCall) -> StepFuture;

    /// Asks the precondition of the step of this row.
    #[doc(hidden)]
    fn check(this: &Arc<Self>, step: usize, call: &mut StepCall) -> Check;

    /// Makes smaller what the step of this row works with, before it is attempted again.
    #[doc(hidden)]
    fn compact<'a>(_: &'a Self, _: usize, _: &'a mut StepCall) -> Result<Compaction<'a>, StepError> {
        Err(crate::kind::no_such_row())
    }
}

/// What a compaction may return: nothing, or `Result<(), E>`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned by a compaction",
    label = "neither `()` nor a `Result` of it",
    note = "return nothing, or `Result<(), E>` where `E` is an error"
)]
pub trait Compacted {
    /// Why it could not be done, if it could not.
    fn compacted(self) -> Result<(), StepError>;
}

impl Compacted for () {
    fn compacted(self) -> Result<(), StepError> {
        Ok(())
    }
}

impl<E: Into<StepError>> Compacted for Result<(), E> {
    fn compacted(self) -> Result<(), StepError> {
        self.map_err(Into::into)
    }
}

/// A precondition's answer, or the way to it.
#[doc(hidden)]
pub enum Check {
    /// It answered at once.
    Answered(Result<bool, StepError>),
    /// It is asynchronous.
    Pending(Pin<Box<dyn Future<Output = Result<bool, StepError>> + Send>>),
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Answered(_) => "Check::Answered",
            Self::Pending(_) => "Check::Pending",
        })
    }
}

/// What a precondition may return: `bool`, or `Result<bool, E>`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned by a precondition",
    label = "not a yes or no",
    note = "return `bool`, or `Result<bool, E>` where `E` is an error"
)]
pub trait Verdict {
    /// Yes, no, or why neither could be said.
    fn verdict(self) -> Result<bool, StepError>;
}

impl Verdict for bool {
    fn verdict(self) -> Result<bool, StepError> {
        Ok(self)
    }
}

impl<E: Into<StepError>> Verdict for Result<bool, E> {
    fn verdict(self) -> Result<bool, StepError> {
        self.map_err(Into::into)
    }
}

/// A precondition that is a free function: `#[precondition]` implements it for a type of the same name.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a precondition",
    label = "not a precondition",
    note = "write `#[precondition]` on the function"
)]
pub trait Precondition {
    /// The function's name.
    const NAME: &'static str;

    /// Its parameters.
    const INPUTS: &'static [InputSpec];

    /// Asks it.
    fn check(call: &mut StepCall) -> Check;
}
