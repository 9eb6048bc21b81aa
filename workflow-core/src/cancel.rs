//! Cooperative cancelling: a token by which blocking work learns that its execution was dropped. Futures need none,
//! because the run drops them.
//!
//! ```text
//! step asks for a `Cancellation` ── lease ──▶ Cancellations (per run): open[(execution, n)] = token
//! execution dropped by the run   ── tell ───▶ its open tokens fire; later leases of it fire at once
//! call returns, fails, times out ── end ────▶ this call's token fires
//! run ends                       ── close ──▶ all tokens fire
//! ```
//!
//! Invariant: each lease is in `open` until its token fires, so no blocking work misses its signal.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tokio_util::sync::CancellationToken;

use crate::id::ExecutionId;

/// Tells blocking work that its execution was dropped: `cancellation: &Cancellation`.
///
/// It is for work that cannot be dropped, such as a thread or another process. It fires when the execution is dropped,
/// because the run was cancelled or has ended, or the execution's branch was dropped. It also fires when the attempt
/// fails or times out, and when the step returns, because work that the step left behind is of no use then.
///
/// Each attempt has a cancellation of its own. Clones fire together. A step without one costs nothing while it runs;
/// for a dropped execution the run stores its number.
///
/// ```
/// use workflow_core::Cancellation;
/// use workflow_core::errors::Cancelled;
///
/// fn sum(numbers: &[u64], cancellation: &Cancellation) -> Result<u64, Cancelled> {
///     let mut sum = 0;
///     for chunk in numbers.chunks(1_000) {
///         cancellation.check()?;
///         sum += chunk.iter().sum::<u64>();
///     }
///     Ok(sum)
/// }
///
/// let (cancellation, source) = Cancellation::detached();
/// assert_eq!(sum(&[1, 2, 3], &cancellation), Ok(6));
/// drop(source);
/// assert_eq!(sum(&[1, 2, 3], &cancellation), Err(Cancelled));
/// ```
#[derive(Clone)]
pub struct Cancellation(CancellationToken);

/// The execution was dropped or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled: the execution was dropped or has ended")]
pub struct Cancelled;

impl Cancellation {
    /// A cancellation without a run, for tests. It fires when the second value is dropped.
    ///
    /// ```
    /// let (cancellation, source) = workflow_core::Cancellation::detached();
    /// assert!(!cancellation.is_cancelled());
    /// drop(source);
    /// assert!(cancellation.is_cancelled());
    /// ```
    pub fn detached() -> (Self, CancellationSource) {
        let token = CancellationToken::new();
        (Self(token.clone()), CancellationSource(token))
    }

    /// Whether the cancellation has fired. Costs a flag behind a lock that is rarely held.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the cancellation fires. Dropping the future ends the wait.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (cancellation, source) = workflow_core::Cancellation::detached();
    /// let waits = tokio::spawn(async move { cancellation.cancelled().await });
    /// drop(source);
    /// waits.await.expect("it fires");
    /// # }
    /// ```
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }

    /// The same as an error, for `?` between two pieces of work.
    ///
    /// # Errors
    /// [`Cancelled`] if the cancellation has fired.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancellation").field(&self.is_cancelled()).finish()
    }
}

/// Fires the cancellation of [`Cancellation::detached`] when it is dropped.
#[derive(Debug)]
#[must_use = "dropping it cancels"]
pub struct CancellationSource(CancellationToken);

impl Drop for CancellationSource {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The cancellations of a run's executions. The run fires those of a dropped execution at once, and does not wait for
/// the drop of its future: a future that computes in a task of its own is dropped only at its next `.await`.
#[derive(Debug, Default)]
pub(crate) struct Cancellations(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Allocated for the first cancellation or dropped execution.
    active: Option<Box<Active>>,
    /// Whether the run has ended.
    closed: bool,
}

#[derive(Debug, Default)]
struct Active {
    /// The tokens that have not fired, with a number for each call of an execution.
    open: BTreeMap<(ExecutionId, u64), CancellationToken>,
    next: u64,
    /// Dropped executions. Another thread may be about to take a cancellation for one of them.
    dropped: HashSet<ExecutionId>,
}

impl Cancellations {
    /// The cancellation of a call, until the call [ends](Self::end).
    pub(crate) fn lease(&self, execution: ExecutionId) -> CancelRegistration {
        let token = CancellationToken::new();
        let mut state = self.lock();
        let closed = state.closed;
        let active = state.active.get_or_insert_default();
        if closed || active.dropped.contains(&execution) {
            token.cancel();
        }
        active.next += 1;
        let place = (execution, active.next);
        if !token.is_cancelled() {
            active.open.insert(place, token.clone());
        }
        drop(state);
        CancelRegistration { place, token }
    }

    /// Ends a call: its cancellation fires.
    pub(crate) fn end(&self, lease: &CancelRegistration) {
        let active = self.lock().active.as_mut().and_then(|active| active.open.remove(&lease.place));
        drop(active);
        lease.token.cancel();
    }

    /// Fires the cancellations of a dropped execution.
    pub(crate) fn tell(&self, execution: ExecutionId) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let active = state.active.get_or_insert_default();
        active.dropped.insert(execution);
        let of_it = active.open.range((execution, 0)..=(execution, u64::MAX));
        let places: SmallVec<[_; 1]> = of_it.map(|(place, _)| *place).collect();
        let tokens: SmallVec<[_; 1]> = places.iter().filter_map(|place| active.open.remove(place)).collect();
        drop(state);
        cancel(tokens);
    }

    /// A dropped execution begins again: its later cancellations do not fire at once.
    pub(crate) fn revoke(&self, execution: ExecutionId) {
        if let Some(active) = self.lock().active.as_mut() {
            active.dropped.remove(&execution);
        }
    }

    /// The run has ended.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let active = state.active.take();
        drop(state);
        if let Some(active) = active {
            cancel(active.open.into_values());
        }
    }

    /// No operation leaves the state half-changed, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fires tokens. Wakers are foreign code, so the caller holds no lock.
fn cancel(tokens: impl IntoIterator<Item = CancellationToken>) {
    tokens.into_iter().for_each(|token| token.cancel());
}

/// The cancellation of one call.
#[derive(Debug)]
pub(crate) struct CancelRegistration {
    place: (ExecutionId, u64),
    token: CancellationToken,
}

impl CancelRegistration {
    pub(crate) fn cancellation(&self) -> Cancellation {
        Cancellation(self.token.clone())
    }
}

#[cfg(test)]
mod tests {
    use static_assertions::assert_impl_all;

    use super::*;

    assert_impl_all!(Cancellation: Send, Sync, Clone, fmt::Debug);

    #[test]
    fn a_cancellation_taken_after_the_drop_of_its_execution_fires_at_once() {
        let all = Cancellations::default();
        all.tell(ExecutionId(3));
        assert!(all.lease(ExecutionId(3)).cancellation().is_cancelled());
        assert!(!all.lease(ExecutionId(4)).cancellation().is_cancelled());
        all.close();
        assert!(all.lease(ExecutionId(4)).cancellation().is_cancelled());
    }

    #[test]
    fn a_drop_fires_every_call_of_the_execution_and_of_no_other() {
        let all = Cancellations::default();
        let leases = [3, 3, 4].map(|execution| all.lease(ExecutionId(execution)));
        all.tell(ExecutionId(3));
        let dropped = leases.each_ref().map(|lease| lease.cancellation().is_cancelled());
        assert_eq!(dropped, [true, true, false]);
    }

    #[test]
    fn ended_calls_leave_no_state() {
        let all = Cancellations::default();
        let ended = all.lease(ExecutionId(1));
        all.end(&ended);
        assert!(ended.cancellation().is_cancelled());
        let dropped = all.lease(ExecutionId(2));
        all.tell(ExecutionId(2));
        assert!(all.lock().active.as_ref().is_some_and(|active| active.open.is_empty()));
        all.close();
        all.tell(ExecutionId(3));
        assert!(all.lock().active.is_none());
        all.end(&dropped);
    }
}
