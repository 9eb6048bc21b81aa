//! The trait of a workflow, which `#[workflow]` implements: a static table and a way to call its steps.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::draw::Graph;
use crate::error::StepError;
use crate::event::{Event, FromEvent};
use crate::input::StepCall;
use crate::output::Emitted;
use crate::spec::check::taken_from_outside;
use crate::spec::{InputSpec, TableSpec};
use crate::table::{DependencyTable, TableShape};

/// A call of a step, with its workflow and its inputs. Its result is the step's emission.
#[doc(hidden)]
pub type StepFuture = Pin<Box<dyn Future<Output = Result<Emitted, StepError>> + Send>>;

/// A running compaction. It borrows its workflow and its call.
#[doc(hidden)]
pub type Compaction<'a> = Pin<Box<dyn Future<Output = Result<(), StepError>> + Send + 'a>>;

/// A set of steps with a static dependency table.
///
/// `#[workflow]` on an impl block implements it: see the [crate's front page](crate).
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
    /// The output of a run: the stop event, or with several the [`EventSet`](crate::EventSet) named in
    /// `#[workflow(output = …)]`.
    type Output: FromEvent + Send + 'static;

    /// The steps and what each of them takes, emits and waits for.
    const TABLE: &'static TableSpec;

    /// The workflow as a graph, for Mermaid, DOT or JSON. Runs nothing.
    fn graph() -> Graph {
        DependencyTable::for_drawing(Self::TABLE).graph()
    }

    /// The shape of the workflow's table, as a journal records it.
    ///
    /// [`TableShape::differences`] compares it with the shape of another version, and a test can store it as JSON.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::table::TableShape;
    ///
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Greet { name: String }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Greeting(String);
    /// # struct Greeter;
    /// # #[workflow]
    /// # impl Greeter {
    /// #     #[step]
    /// #     async fn greet(&self, greet: &Greet) -> Greeting { Greeting(greet.name.clone()) }
    /// # }
    /// # fn main() -> Result<(), serde_json::Error> {
    /// let deployed = serde_json::to_string(&Greeter::shape())?; // a file in your repository
    ///
    /// let deployed: TableShape = serde_json::from_str(&deployed)?;
    /// assert!(deployed.differences(&Greeter::shape()).is_empty());
    /// # Ok(())
    /// # }
    /// ```
    fn shape() -> TableShape {
        DependencyTable::for_drawing(Self::TABLE).shape()
    }

    /// Calls the step of this row. Nothing happens before the first poll.
    #[doc(hidden)]
    fn call(this: Arc<Self>, step: usize, call: StepCall) -> StepFuture;

    /// Evaluates the precondition of this row's step.
    #[doc(hidden)]
    fn check(this: &Arc<Self>, step: usize, call: &mut StepCall) -> Check;

    /// Calls the limit key of this row's step, before an attempt waits for its limit.
    #[doc(hidden)]
    fn limit_key(_: &Arc<Self>, _: usize, _: &mut StepCall) -> Check<String> {
        Check::Answered(Ok(String::new()))
    }

    /// Calls the compaction of this row's step, before the step's next attempt.
    #[doc(hidden)]
    fn compact<'a>(_: &'a Self, _: usize, _: &'a mut StepCall) -> Result<Compaction<'a>, StepError> {
        Err(no_such_row())
    }
}

/// Fails to compile, in a const context, unless `W` takes `E`.
///
/// A step takes `E`, or `E` is a stop event of `W`. It is for your own functions that start or address runs of `W` by name or
/// over a network, where the types that this crate checks are gone. [`Engine::start`](crate::Engine::start) and
/// [`RunHandle::send`](crate::RunHandle::send) check the same by themselves. Call it as
/// `const { assert_taken::<W, E>() }`, which costs nothing at run time; outside of a const context it panics then.
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_core::{ExternalEvent, assert_taken};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Open;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(external)]
/// # struct Note(String);
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Closed(usize);
/// # struct Desk;
/// # #[workflow]
/// # impl Desk {
/// #     #[step]
/// #     async fn close(&self, _open: &Open, note: &Note) -> Closed { Closed(note.0.len()) }
/// # }
/// /// The body of a request that sends an event to a run on another machine.
/// fn to_send<W: Workflow, E: ExternalEvent + Serialize>(event: &E) -> serde_json::Result<String> {
///     const { assert_taken::<W, E>() };
///     serde_json::to_string(&(E::NAME, event))
/// }
///
/// assert_eq!(to_send::<Desk, Note>(&Note("hi".into())).unwrap(), r#"["Note","hi"]"#);
/// ```
///
/// ```compile_fail
/// # use workflow_core::prelude::*;
/// # use workflow_core::assert_taken;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Open;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(external)]
/// # struct Bill;
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Closed;
/// # struct Desk;
/// # #[workflow]
/// # impl Desk {
/// #     #[step]
/// #     async fn close(&self, _open: &Open) -> Closed { Closed }
/// # }
/// const _: () = assert_taken::<Desk, Bill>(); // no step of `Desk` takes `Bill`
/// ```
#[track_caller]
pub const fn assert_taken<W: Workflow, E: Event>() {
    taken_from_outside::<E>(W::TABLE);
}

/// The result of a compaction: nothing, or `Result<(), E>`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned by a compaction",
    label = "neither `()` nor a `Result` of it",
    note = "return nothing, or `Result<(), E>` where `E` is an error"
)]
pub trait Compacted {
    /// The error of the compaction, if it failed.
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

/// The answer of a precondition or of a limit key, or the future of it.
#[doc(hidden)]
pub enum Check<T = bool> {
    /// The answer of a synchronous function.
    Answered(Result<T, StepError>),
    /// The future of an asynchronous function.
    Pending(Pin<Box<dyn Future<Output = Result<T, StepError>> + Send>>),
}

impl<T> std::fmt::Debug for Check<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Answered(_) => "Check::Answered",
            Self::Pending(_) => "Check::Pending",
        })
    }
}

/// The result of a limit key or of an idempotency key: a text or a number, or `Result` of one.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned as a key",
    label = "not a key",
    note = "return `String`, `&str`, `Arc<str>`, `Cow<str>`, an integer, an id of the library, or `Result` of one of these"
)]
pub trait LimitKey {
    /// The key as text, or the error.
    fn limit_key(self) -> Result<String, StepError>;
}

/// A value that is a key as it is.
#[doc(hidden)]
pub trait KeyValue: Into<KeyText> {}

/// A key as text.
#[doc(hidden)]
#[derive(Debug)]
pub struct KeyText(String);

macro_rules! keys {
    ($($ty:ty),+ $(,)?) => {
        $(
            impl From<$ty> for KeyText {
                fn from(key: $ty) -> Self {
                    Self(key.to_string())
                }
            }

            impl KeyValue for $ty {}
        )+
    };
}

keys! {
    &str, &String, Arc<str>, Box<str>, std::borrow::Cow<'_, str>, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64,
    i128, isize, crate::id::RunId, crate::id::ThreadId, &crate::id::RunId, &crate::id::ThreadId, &Arc<str>,
}

impl From<String> for KeyText {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl KeyValue for String {}

impl<T: KeyValue> LimitKey for T {
    fn limit_key(self) -> Result<String, StepError> {
        Ok(self.into().0)
    }
}

impl<T: KeyValue, E: Into<StepError>> LimitKey for Result<T, E> {
    fn limit_key(self) -> Result<String, StepError> {
        self.map(|key| key.into().0).map_err(Into::into)
    }
}

/// The result of a precondition: `bool`, or `Result<bool, E>`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned by a precondition",
    label = "not a yes or no",
    note = "return `bool`, or `Result<bool, E>` where `E` is an error"
)]
pub trait Verdict {
    /// The answer, or the error.
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

/// A precondition that is a free function. `#[precondition]` implements it for a type of the same name.
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

    /// Evaluates it.
    fn check(call: &mut StepCall) -> Check;
}

/// The error of calling a row that the workflow does not have.
#[doc(hidden)]
pub fn no_such_row() -> StepError {
    StepError::permanent("the workflow has no step in this row")
}
