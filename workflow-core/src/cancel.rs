//! The cooperative side of cancelling: a token that tells the work of an execution that nobody waits for it any
//! more. Futures need none, since they are dropped; what blocks a thread does.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use crate::id::ExecutionId;
use crate::latch::Latch;

/// Says when nobody waits for an execution any more: `cancellation: &Cancellation`.
///
/// It is for work that cannot be dropped, such as a thread or another process. It says so when the execution is
/// dropped because its run was cancelled or has ended, or because its branch was dropped (S28, S31, S49), and also
/// once the attempt has failed, as it has when its `timeout` is over, or the step has returned: what it left behind has
/// no use any more. Another attempt has a cancellation of its own. Clones say the same. A step that takes none pays
/// nothing while it runs; of one that is dropped, the run keeps its number.
///
/// ```
/// use workflow_core::{Cancellation, Cancelled};
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
pub struct Cancellation(Latch);

/// Nobody waits for the execution any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled: nobody waits for the execution any more")]
pub struct Cancelled;

impl Cancellation {
    /// A cancellation of no run, to call by hand what takes one, in a test: it says so when the second value is
    /// dropped.
    ///
    /// ```
    /// let (cancellation, source) = workflow_core::Cancellation::detached();
    /// assert!(!cancellation.is_cancelled());
    /// drop(source);
    /// assert!(cancellation.is_cancelled());
    /// ```
    pub fn detached() -> (Self, CancellationSource) {
        let token = Latch::default();
        (Self(token.clone()), CancellationSource(token))
    }

    /// Whether nobody waits any more. Costs as little as reading a flag.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_raised()
    }

    /// Waits until nobody waits any more. Dropping the future gives up the wait.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (cancellation, source) = workflow_core::Cancellation::detached();
    /// let waits = tokio::spawn(async move { cancellation.cancelled().await });
    /// drop(source);
    /// waits.await.expect("it was told");
    /// # }
    /// ```
    pub async fn cancelled(&self) {
        self.0.raised().await;
    }

    /// The same as an error, for `?` between two pieces of work.
    ///
    /// # Errors
    /// [`Cancelled`] if nobody waits any more.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancellation").field(&self.is_cancelled()).finish()
    }
}

/// Cancels what [`Cancellation::detached`] made when it is dropped.
#[derive(Debug)]
#[must_use = "dropping it cancels"]
pub struct CancellationSource(Latch);

impl Drop for CancellationSource {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// The cancellations that a run's executions hold. An execution that is dropped is told by its run, and not only when
/// its future is gone: one that computes in a task of its own cannot be dropped before it comes to an `.await`.
#[derive(Debug, Default)]
pub(crate) struct Cancellations(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Made for the first who has something to do with it.
    held: Option<Box<Held>>,
    /// Whether the run has ended.
    closed: bool,
}

#[derive(Debug, Default)]
struct Held {
    /// Several of one execution have numbers of their own.
    open: BTreeMap<(ExecutionId, u64), Latch>,
    next: u64,
    /// Dropped executions, some of which may be about to take theirs on other threads.
    told: HashSet<ExecutionId>,
}

impl Cancellations {
    /// The cancellation of a call, until the call [ends](Self::end).
    pub(crate) fn lease(&self, execution: ExecutionId) -> Lease {
        let token = Latch::default();
        let mut state = self.lock();
        let closed = state.closed;
        let held = state.held.get_or_insert_default();
        if closed || held.told.contains(&execution) {
            token.raise();
        }
        held.next += 1;
        let place = (execution, held.next);
        if !token.is_raised() {
            held.open.insert(place, token.clone());
        }
        drop(state);
        Lease { place, token }
    }

    /// The call is over.
    pub(crate) fn end(&self, lease: &Lease) {
        let held = self.lock().held.as_mut().and_then(|held| held.open.remove(&lease.place));
        drop(held);
        lease.token.raise();
    }

    /// The execution was dropped.
    pub(crate) fn tell(&self, execution: ExecutionId) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let held = state.held.get_or_insert_default();
        held.told.insert(execution);
        let of_it = held.open.range((execution, 0)..=(execution, u64::MAX));
        let places: SmallVec<[_; 1]> = of_it.map(|(place, _)| *place).collect();
        let tokens: SmallVec<[_; 1]> = places.iter().filter_map(|place| held.open.remove(place)).collect();
        drop(state);
        cancel(tokens);
    }

    /// The execution was dropped, and begins again.
    pub(crate) fn revoke(&self, execution: ExecutionId) {
        if let Some(held) = self.lock().held.as_mut() {
            held.told.remove(&execution);
        }
    }

    /// The run has ended.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let held = state.held.take();
        drop(state);
        if let Some(held) = held {
            cancel(held.open.into_values());
        }
    }

    /// What is held is never left half-changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes who waits: foreign code, which is never run under the lock.
fn cancel(tokens: impl IntoIterator<Item = Latch>) {
    tokens.into_iter().for_each(|token| token.raise());
}

/// The cancellation of one call.
#[derive(Debug)]
pub(crate) struct Lease {
    place: (ExecutionId, u64),
    token: Latch,
}

impl Lease {
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
    fn an_execution_that_takes_its_own_after_it_was_dropped_is_told_at_once() {
        let all = Cancellations::default();
        all.tell(ExecutionId(3));
        assert!(all.lease(ExecutionId(3)).cancellation().is_cancelled());
        assert!(!all.lease(ExecutionId(4)).cancellation().is_cancelled());
        all.close();
        assert!(all.lease(ExecutionId(4)).cancellation().is_cancelled());
    }

    #[test]
    fn each_call_of_an_execution_is_told_and_other_executions_are_not() {
        let all = Cancellations::default();
        let leases = [3, 3, 4].map(|execution| all.lease(ExecutionId(execution)));
        all.tell(ExecutionId(3));
        let told = leases.each_ref().map(|lease| lease.cancellation().is_cancelled());
        assert_eq!(told, [true, true, false]);
    }

    #[test]
    fn nothing_is_kept_of_what_has_ended() {
        let all = Cancellations::default();
        let ended = all.lease(ExecutionId(1));
        all.end(&ended);
        assert!(ended.cancellation().is_cancelled());
        let told = all.lease(ExecutionId(2));
        all.tell(ExecutionId(2));
        assert!(all.lock().held.as_ref().is_some_and(|held| held.open.is_empty()));
        all.close();
        all.tell(ExecutionId(3));
        assert!(all.lock().held.is_none());
        all.end(&told);
    }
}
