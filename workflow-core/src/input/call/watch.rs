//! What middleware sees of the injected values that a step takes. The module owns the view; the call notes what is taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::StepCall;

/// A kind of value that a step asks for, as a bit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked(u8);

impl Asked {
    pub(crate) const NUMBERS: Self = Self(1);
    pub(crate) const ENGINE: Self = Self(2);
}

/// What a step has asked of its call besides inputs, as far as it may differ from run to run.
///
/// A step that has one of these values may do something else when the same events come in another order. Tools that try
/// orders need to know. [`StepCall::watch`] returns it. Clones are views of the same call.
#[derive(Debug, Clone, Default)]
pub struct CallWatch(Arc<AtomicU8>);

impl CallWatch {
    /// Whether the step asked for numbers that count what was before it.
    ///
    /// These are the number of its execution, that of its scope, and the positions of its events in the log. A
    /// [`RunInfo`](crate::RunInfo) has all of them, and the ids of [`Children`](crate::Children) have the first.
    pub fn saw_numbers(&self) -> bool {
        self.has(Asked::NUMBERS)
    }

    /// Whether the step asked for the [`Engine`](crate::Engine), through which it can see any run.
    pub fn saw_engine(&self) -> bool {
        self.has(Asked::ENGINE)
    }

    pub(super) fn note(&self, asked: Asked) {
        self.0.fetch_or(asked.0, Ordering::Relaxed);
    }

    fn has(&self, asked: Asked) -> bool {
        self.0.load(Ordering::Relaxed) & asked.0 != 0
    }
}

impl StepCall {
    /// Watches what is asked of this call from now on, by the step and by middleware around it.
    ///
    /// Middleware that calls it before [`Next::call`](crate::middleware::Next::call) sees what the step asks. An attempt has
    /// a call of its own. Costs two allocations per call, and nothing if nobody watches.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use futures::future::BoxFuture;
    /// use workflow_core::middleware::{Middleware, Next};
    /// use workflow_core::prelude::*;
    /// use workflow_core::signature::{Emitted, StepCall};
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Charge { cents: u64 }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Charged { key: String }
    /// # struct Payments;
    /// # #[workflow]
    /// # impl Payments {
    /// #     #[step]
    /// #     async fn charge(&self, _: &Charge, info: &RunInfo) -> Charged { Charged { key: info.idempotency_key() } }
    /// # }
    ///
    /// #[derive(Clone, Default)]
    /// struct Curious(Arc<AtomicBool>);
    ///
    /// impl Middleware for Curious {
    ///     fn call(&self, mut call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
    ///         let (watch, seen) = (call.watch(), Arc::clone(&self.0));
    ///         Box::pin(async move {
    ///             let called = next.call(call).await;
    ///             seen.fetch_or(watch.saw_numbers(), Ordering::Relaxed);
    ///             called
    ///         })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let curious = Curious::default();
    /// let engine = Engine::builder().workflow(Payments).middleware(curious.clone()).build()?;
    /// engine.start::<Payments>(Charge { cents: 5 }).await?.outcome().await?;
    /// // The key has the positions of the events of the step.
    /// assert!(curious.0.load(Ordering::Relaxed));
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&mut self) -> CallWatch {
        self.frame.taken().watch.get_or_init(CallWatch::default).clone()
    }
}
