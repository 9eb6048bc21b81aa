//! Middleware around the calls of steps: it can measure, limit, record or replace them. The scheduler does not know it:
//! its result is an execution's result like any other.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::StepError;
use crate::input::StepCall;
use crate::output::Emitted;
use crate::workflow::StepFuture;

/// Wraps every call of every step of an engine.
///
/// [`EngineBuilder::middleware`](crate::EngineBuilder::middleware) adds one. The first one added is the outermost. An
/// engine without middleware pays nothing for it. Preconditions are not wrapped.
///
/// # Contract
/// - `call` is called once per attempt that reaches its step: in the run's task, or in the task of a step that has one.
///   It must return at once; slow work belongs into the future.
/// - It wraps the step alone. For an attempt that begins with the step's compaction (`#[step(compact = …)]`) it is
///   called after the compaction, and not at all if that fails.
/// - The future is dropped like the step's own when the execution is dropped: it must leave nothing half done at an
///   `.await`. A panic in it is a failure of the execution.
/// - The execution commits its result, or fails with its error. It may call `next` once, or not at all and return
///   [`StepCall::commit`] or an error.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use workflow_core::prelude::*;
/// use workflow_core::middleware::{Middleware, Next};
/// use workflow_core::signature::{Emitted, StepCall};
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
    /// Handles the call, usually by calling `next`.
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>>;
}

impl<M: Middleware + ?Sized> Middleware for Arc<M> {
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        (**self).call(call, next)
    }
}

impl fmt::Debug for dyn Middleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Middleware")
    }
}

/// Steps with middleware around them.
pub(crate) trait Surrounded: Send + Sync {
    /// The middleware at this place, from the outermost on.
    fn middleware(&self, place: usize) -> Option<Arc<dyn Middleware>>;

    /// Calls the step itself.
    fn step(&self, step: usize, call: StepCall) -> StepFuture;

    fn step_name(&self, step: usize) -> &str;
}

/// The rest of the way to the step: further middleware, and then the step itself.
pub struct Next {
    host: Arc<dyn Surrounded>,
    step: usize,
    /// How many of the middlewares were called.
    asked: usize,
}

impl Next {
    /// The way through all middleware.
    pub(crate) fn all(host: Arc<dyn Surrounded>, step: usize) -> Self {
        Self { host, step, asked: 0 }
    }

    /// Calls the step with the inputs of its execution.
    pub fn call(self, call: StepCall) -> BoxFuture<'static, Result<Emitted, StepError>> {
        let Self { host, step, asked } = self;
        match host.middleware(asked) {
            Some(middleware) => middleware.call(call, Self { host, step, asked: asked + 1 }),
            None => host.step(step, call),
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("step", &self.host.step_name(self.step)).finish_non_exhaustive()
    }
}
