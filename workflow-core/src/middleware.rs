//! What stands around the calls of steps: measuring, limiting, recording or replacing them, without touching the
//! steps. Scheduling knows nothing of it: what comes back is an execution's result like any other.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::StepError;
use crate::input::StepCall;
use crate::output::Emitted;
use crate::run::Host;

/// Stands around every call of every step of an engine.
///
/// [`EngineBuilder::middleware`](crate::EngineBuilder::middleware) adds one; the one that was added first is the
/// outermost. An engine without any pays nothing for them. Preconditions are not calls of steps.
///
/// # Contract
/// - `call` is asked once per attempt that comes to its step, where the step would be called: in the run's task, or in
///   that of a step which has one of its own. It must return at once; what takes time belongs into the future.
/// - It stands around the step alone. An attempt that begins with the step's compaction (`#[step(compact = …)]`) asks
///   it when that is done, and not at all if that fails: middleware does not see what the compaction does or fails with.
/// - The future is dropped like the step's own when the execution is dropped (S28, S31): it must not leave anything
///   half done at an `.await`. A panic in it is a failure of the execution (S27).
/// - What it returns is what the execution commits or fails with (S23). It may ask `next` once, or not at all and
///   answer by [`StepCall::commit`] or an error.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use workflow_core::prelude::*;
/// use workflow_core::{Emitted, Middleware, Next, StepCall};
/// use futures::future::BoxFuture;
/// # #[derive(Debug, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet { name: String }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeting(String);
/// # struct Greeter;
/// # #[workflow]
/// # impl Greeter {
/// #     #[step]
/// #     async fn greet(&self, greet: &Greet) -> Greeting {
/// #         Greeting(format!("Hello, {}!", greet.name))
/// #     }
/// # }
///
/// /// Counts the calls that succeed.
/// #[derive(Default)]
/// struct Successes(Arc<AtomicU64>);
///
/// impl Middleware for Successes {
///     fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
///         let count = Arc::clone(&self.0);
///         Box::pin(async move {
///             let emitted = next.call(call).await?;
///             count.fetch_add(1, Ordering::Relaxed);
///             Ok(emitted)
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let count = Arc::new(AtomicU64::new(0));
/// let engine = Engine::builder().workflow(Greeter).middleware(Successes(Arc::clone(&count))).build()?;
/// engine.start::<Greeter>(Greet { name: "Ada".into() }).await?.outcome().await?;
/// assert_eq!(count.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
pub trait Middleware: Send + Sync + 'static {
    /// Answers the call, usually by what `next` answers.
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>>;
}

impl fmt::Debug for dyn Middleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Middleware")
    }
}

/// The rest of the way to the step: further middleware, then the step itself.
pub struct Next {
    host: Arc<Host>,
    step: usize,
    /// How much of the middleware has been asked.
    asked: usize,
}

impl Next {
    /// The whole way.
    pub(crate) fn all(host: Arc<Host>, step: usize) -> Self {
        Self { host, step, asked: 0 }
    }

    /// Calls the step with what its execution was bound to.
    pub fn call(self, call: StepCall) -> BoxFuture<'static, Result<Emitted, StepError>> {
        let Self { host, step, asked } = self;
        match host.middleware.get(asked).map(Arc::clone) {
            Some(middleware) => middleware.call(call, Self { host, step, asked: asked + 1 }),
            None => host.step(step, call),
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("step", &self.host.table.steps[self.step].name).finish_non_exhaustive()
    }
}
