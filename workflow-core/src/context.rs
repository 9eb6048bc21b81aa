//! State beside the log: counters and flags of one run, or of all runs of a thread (S26). This file owns the contract
//! of a store of such state; `handle` has the handles for steps. A write triggers no step (S11), and steps exchange
//! events, not context.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::id::{RunId, ThreadId};

mod error;
mod handle;
mod memory;
mod value;

pub use error::ContextError;
pub use handle::{RunContext, ThreadContext};
pub use memory::MemoryContexts;
pub use value::{ContextData, ContextValue};

pub(crate) use handle::PRIVATE_THREAD;

/// The owner of state: one run, or a thread with all its runs.
///
/// ```
/// use workflow_core::RunId;
/// use workflow_core::store::ContextScope;
/// assert_eq!(ContextScope::Run(RunId::new("order-17")).to_string(), "run order-17");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ContextScope {
    /// The state of one run.
    Run(RunId),
    /// The state of one thread.
    Thread(ThreadId),
}

impl fmt::Display for ContextScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => write!(f, "run {run}"),
            Self::Thread(thread) => write!(f, "thread {thread}"),
        }
    }
}

/// The change of [`ContextStore::update`]: from the current value to the new one.
///
/// `None` stands for no value, on both sides. An error changes nothing.
///
/// ```
/// use workflow_core::errors::ContextError;
/// use workflow_core::store::{ContextScope, ContextStore, ContextValue};
///
/// async fn mark(store: &dyn ContextStore, scope: &ContextScope) -> Result<(), ContextError> {
///     let mut change = |_: Option<ContextValue>| Ok(Some(ContextValue::new(true)));
///     store.update(scope, "marked", &mut change).await?;
///     Ok(())
/// }
/// ```
pub type ContextChange<'a> =
    &'a mut (dyn FnMut(Option<ContextValue>) -> Result<Option<ContextValue>, ContextError> + Send + 'a);

/// Stores the state of runs and threads.
///
/// A store maps a scope and a key to a value. Scopes are independent of each other, and so are keys. A store has five
/// duties and an optional one ([`scopes`](Self::scopes)). It does not know the meaning of a value, the end of a run, or
/// its caller.
///
/// **Order.** The calls on one key of one scope have a single order across all processes, and each call sees the
/// effects of all earlier ones. A call that has returned precedes every call that begins later. Calls on several keys
/// have no order.
///
/// **Atomicity.** Each call happens as a whole or not at all, and takes effect before its future returns `Ok`. No
/// commit follows. No caller ever sees half of a call.
///
/// **Errors.** An error other than [`ContextError::Unavailable`] means that nothing was changed. After
/// `Unavailable` the outcome is unknown: the caller may read, or repeat a call that is idempotent.
///
/// **Cancellation.** A future that is dropped before it completes leaves the call either done or not done. So a store
/// must not split a call in two parts with an `await` between them.
///
/// **Values.** A store of bytes asks a value for its JSON and returns values made from JSON. A store in memory keeps
/// the values themselves, serialises nothing, and returns `false` from [`serialises`](Self::serialises). Readers see no
/// difference, as long as their types survive serialisation. The store puts at most four arrays or objects of its own
/// around a value ([`MAX_JSON_DEPTH`](crate::store::MAX_JSON_DEPTH)).
///
/// The engine passes keys of at most 1 KiB. In a run's scope it stores one value of its own, under a key that begins
/// with a NUL: the run's private thread, whose values are removed with the run.
///
/// ```
/// use std::sync::Arc;
/// use workflow_core::ThreadId;
/// use workflow_core::store::{ContextScope, ContextStore, ContextValue, MemoryContexts};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::errors::ContextError> {
/// let store: Arc<dyn ContextStore> = Arc::new(MemoryContexts::default());
/// let scope = ContextScope::Thread(ThreadId::new("user-4"));
///
/// assert!(store.set(&scope, "greeted", Some(ContextValue::new(true))).await?.is_none());
/// let greeted = store.get(&scope, "greeted").await?.expect("just set");
/// assert!(greeted.get::<bool>().expect("a bool"));
/// # Ok(())
/// # }
/// ```
pub trait ContextStore: Send + Sync + 'static {
    /// Reads a value; `None` if there is none. Changes nothing.
    ///
    /// # Errors
    /// `Unavailable` if the store cannot read.
    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>>;

    /// Sets a value, or removes it (`None`). Returns the previous one. Idempotent for the stored value.
    ///
    /// # Errors
    /// `Unserialisable` from a store that keeps bytes, with nothing changed; `Unavailable`.
    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>>;

    /// Changes a value by a function of itself, atomically. Returns the stored result.
    ///
    /// This is compare-and-set in its general form. A store with remote values reads the current one, applies `change`,
    /// and sets the result if the value is still the one that it read; else it starts over.
    ///
    /// The store may apply `change` several times, each time to a newer value. The last call counts: its argument is
    /// the value that was replaced. `change` runs user code. A store holds no lock meanwhile, and lets a panic of it
    /// pass with nothing changed. Not idempotent.
    ///
    /// # Errors
    /// The error of `change`, with nothing changed; else as [`set`](Self::set).
    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>>;

    /// Lists the values of a scope in the order of the bytes of their keys, after `after`.
    ///
    /// Returns at most `at_most` entries, where 0 counts as 1, and at least one unless there are no more. `None` begins
    /// with the first key, and `after` need not exist. An empty scope has no entries. Changes nothing.
    ///
    /// To read a whole scope, call again with the last key of each page until a page is empty. A page may be short
    /// because its values are large.
    ///
    /// A page shows one moment, and several pages do not. A key that is first set or removed between two pages may be
    /// missing; every other key is listed once.
    ///
    /// The call takes the time to find the page's begin, and to read the page. A store without an order may read every
    /// key of the scope, but no other scope.
    /// # Errors
    /// `Unavailable` if the store cannot read; no part of the page is returned.
    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>>;

    /// Removes everything in a scope. An empty scope is no error. Idempotent.
    ///
    /// # Errors
    /// `Unavailable`. Part of the scope may be removed then, and the caller repeats the call.
    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>>;

    /// Whether the store serialises values as JSON. Default: `true`.
    ///
    /// If so, a handle serialises a value before it calls the store, and [refuses](ContextError::Unfit) a value that
    /// could not be read back; [`ContextValue::to_json`] then returns that JSON. A store of the values themselves
    /// returns `false`, and nothing is serialised. A store around another one returns the inner store's answer.
    fn serialises(&self) -> bool {
        true
    }

    /// Lists the scopes that have values, after `after`.
    ///
    /// Returns at most `at_most` scopes, where 0 counts as 1, and at least one unless there are no more. `None` begins
    /// with the first. Changes nothing.
    ///
    /// The order is the store's own and never changes. `after` ended an earlier page, and may have been cleared since.
    /// A scope that gets its first value or loses its last between two pages may be missing; every other scope is
    /// listed once.
    ///
    /// The engine calls this in [`resume_open_runs`](crate::Engine::resume_open_runs) and
    /// [`retain`](crate::Engine::retain), to clear contexts of ended runs whose process was killed before it cleared
    /// them. A store without this method lists no scope, and such contexts stay.
    /// # Errors
    /// `Unavailable` if the store cannot read; no part of the page is returned.
    fn scopes<'a>(
        &'a self,
        after: Option<&'a ContextScope>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<ContextScope>, ContextError>> {
        let _ = (after, at_most);
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

impl<S: ContextStore + ?Sized> ContextStore for Arc<S> {
    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        (**self).get(scope, key)
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        (**self).set(scope, key, value)
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        (**self).update(scope, key, change)
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        (**self).list(scope, after, at_most)
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        (**self).clear(scope)
    }

    fn serialises(&self) -> bool {
        (**self).serialises()
    }

    fn scopes<'a>(
        &'a self,
        after: Option<&'a ContextScope>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<ContextScope>, ContextError>> {
        (**self).scopes(after, at_most)
    }
}
