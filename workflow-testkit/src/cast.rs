//! The stand-ins of a scenario, by step.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::{RunId, StepError};

use crate::stand_in::{Answer, StandIn};

/// The stand-ins, by step. A step without an entry runs its own code.
#[derive(Default)]
pub(crate) struct Cast {
    parts: HashMap<Box<str>, Part>,
    /// The run whose steps are replaced; `None` until the run is known.
    run: Option<RunId>,
}

/// The stand-ins of one step: in front of it, and in its place.
#[derive(Default)]
struct Part {
    failures: Option<Failures>,
    player: Option<Player>,
    /// Whether the test answers the calls through a [`Mock`](crate::Mock).
    by_hand: bool,
}

/// Answers the calls of a step.
pub(crate) type Player = Box<dyn Fn(StepCall) -> Answer + Send + Sync>;

/// Fails the first calls.
struct Failures {
    left: AtomicU32,
    error: Box<dyn Fn() -> StepError + Send + Sync>,
}

impl Cast {
    /// Child runs have steps of their own, which may be called the same.
    pub(crate) fn of(self, run: RunId) -> Self {
        Self { run: Some(run), ..self }
    }

    pub(crate) fn replace<T>(&mut self, step: &str, stand_in: impl StandIn<T>, places: Vec<usize>) {
        let player: Player = Box::new(move |call| stand_in.answer(call, &places));
        self.play(step, player, false);
    }

    pub(crate) fn mock(&mut self, step: &str, player: Player) {
        self.play(step, player, true);
    }

    fn play(&mut self, step: &str, player: Player, by_hand: bool) {
        let part = self.parts.entry(step.into()).or_default();
        (part.player, part.by_hand) = (Some(player), by_hand);
    }

    pub(crate) fn fail_first(
        &mut self,
        step: &str,
        calls: u32,
        error: impl Fn() -> StepError + Send + Sync + 'static,
    ) {
        let failures = Failures { left: AtomicU32::new(calls), error: Box::new(error) };
        self.parts.entry(step.into()).or_default().failures = Some(failures);
    }

    /// Counts calls of the step that failed in an earlier process.
    pub(crate) fn have_failed(&mut self, step: &str, calls: u32) {
        let failures = self.parts.get_mut(step).and_then(|part| part.failures.as_mut());
        if let Some(Failures { left, .. }) = failures {
            *left.get_mut() = left.get_mut().saturating_sub(calls);
        }
    }

    /// The name of a mocked step, if there is any.
    pub(crate) fn mocked(&self) -> Option<&str> {
        self.parts.iter().filter(|(_, part)| part.by_hand).map(|(step, _)| &**step).min()
    }

    /// Whether the first calls of the step fail, so that the result of a call depends on earlier calls.
    pub(crate) fn fails_first(&self, step: &str) -> bool {
        self.parts.get(step).is_some_and(|part| part.failures.is_some())
    }
}

impl Failures {
    fn next(&self) -> Option<StepError> {
        let fails = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        fails.is_ok().then(|| (self.error)())
    }
}

impl Middleware for Cast {
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        let is_its_own = self.run.as_ref().is_none_or(|run| run == call.run());
        let part = self.parts.get(call.step()).filter(|_| is_its_own);
        let Some(part) = part else { return next.call(call) };
        if let Some(error) = part.failures.as_ref().and_then(Failures::next) {
            return std::future::ready(Err(error)).boxed();
        }
        match &part.player {
            Some(player) => player(call),
            None => next.call(call),
        }
    }
}

impl fmt::Debug for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.parts.keys()).finish()
    }
}
