//! Shared state beside the log: counters and flags of one run, or of all runs of a thread (S26). This file
//! owns what a store of such state promises; the handles that steps are given are in `handle`. Nothing here
//! triggers a step (S11), and what steps hand to each other are events, not context.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::{RunId, ThreadId};

mod error;
mod handle;
mod memory;
mod value;

pub use error::ContextError;
pub use handle::{RunContext, ThreadContext};
pub use memory::MemoryContexts;
pub use value::{ContextData, ContextValue};

pub(crate) use handle::PRIVATE_THREAD;

/// Whose state it is: a run's own, or that of a thread, which all of its runs share.
///
/// ```
/// use workflow_core::{ContextScope, RunId};
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

/// What [`ContextStore::update`] applies: from the value that is there to the one that shall be. `None`
/// stands for no value, on both sides; an error leaves everything as it was.
///
/// ```
/// use workflow_core::{ContextError, ContextStore, ContextScope, ContextValue};
///
/// async fn mark(store: &dyn ContextStore, scope: &ContextScope) -> Result<(), ContextError> {
///     let mut change = |_: Option<ContextValue>| Ok(Some(ContextValue::new(true)));
///     store.update(scope, "marked", &mut change).await?;
///     Ok(())
/// }
/// ```
pub type ContextChange<'a> =
    &'a mut (dyn FnMut(Option<ContextValue>) -> Result<Option<ContextValue>, ContextError> + Send + 'a);

/// Where the state of runs and threads is kept.
///
/// A store maps a scope and a key to a value. Scopes are independent of each other; so are keys. It has five
/// duties and one that it may leave out ([`scopes`](Self::scopes)), and no other knowledge: it does not know what a value
/// means, when a run ends, or who asks.
///
/// **Order.** The calls on one key of one scope have a single order, and each sees all that came before it,
/// from whichever process that came. A call that has returned comes before every call that begins later.
/// Across keys there is no order to rely on.
///
/// **Atomicity.** Each call happens as a whole or not at all, and takes effect before its future returns
/// `Ok`; there is no commit to wait for (S26). No caller ever sees half of a call.
///
/// **Errors.** An error other than [`ContextError::Unavailable`] means that nothing was changed. After
/// `Unavailable` the outcome is unknown: the caller may read, or repeat a call that is idempotent.
///
/// **Cancellation.** A future that is dropped before it returns leaves the call either done or not done. A
/// store must therefore not split a call in two parts with an `await` between them.
///
/// **Values.** A store that keeps bytes asks a value for its JSON and gives back values made from JSON; one
/// that keeps everything in memory keeps the values as they are, never serialises, and
/// [says so](Self::serialises). Readers cannot tell the two apart, as long as the types they use survive their own
/// serialisation. The store puts at most four arrays or objects of its own around a value
/// ([`MAX_JSON_DEPTH`](crate::MAX_JSON_DEPTH)).
///
/// The engine never passes a key of more than 1 KiB. In the scope of a run it keeps one value of its own, under a key
/// that begins with a NUL: which thread was made for the run alone, so that what is in it goes with the run.
///
/// ```
/// use std::sync::Arc;
/// use workflow_core::{ContextScope, ContextStore, ContextValue, MemoryContexts, ThreadId};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::ContextError> {
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
    /// Reads a value; `None` where there is none. Changes nothing, so it can be repeated at will.
    ///
    /// # Errors
    /// `Unavailable` if the store cannot tell what it has.
    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>>;

    /// Puts a value in place, or removes the one that is there (`None`), and returns the one that was.
    /// Putting the same value twice leaves what putting it once leaves.
    ///
    /// # Errors
    /// `Unserialisable` from a store that keeps bytes, with nothing changed; `Unavailable`.
    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>>;

    /// Changes a value by a function of itself, atomically, and returns what is stored in the end.
    ///
    /// This is compare-and-set in its general form: a store whose values are elsewhere reads the one that is
    /// there, applies `change`, and sets the result if what is there is still what it read, or else begins
    /// again.
    ///
    /// The store may apply `change` several times, each time to a newer value: what counts is the last
    /// call, whose argument is the value that was replaced. `change` runs user code: a store holds no lock
    /// while it runs, and lets a panic of it pass with nothing changed. Not idempotent.
    ///
    /// # Errors
    /// Whatever `change` returned, with nothing changed; else as [`set`](Self::set).
    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>>;

    /// The keys of a scope with their values, in the order of the bytes of the keys: those that come after
    /// `after`, or all if it is `None`. At most so many, where 0 is taken as 1, and at least one unless there
    /// are no more. Of a scope that has nothing there are none. Changes nothing.
    ///
    /// `after` need not be a key that is there. To read a whole scope, ask again after the last key of each
    /// page until a page is empty: a store may end a page early where values are large.
    ///
    /// A page shows one moment; several pages do not. A key that is set for the first time or removed
    /// between two pages is listed or not; every other is listed once.
    ///
    /// It takes the time of finding where the page begins, and that of the page; a store that keeps no order
    /// may look at every key of the scope, but at no other scope.
    ///
    /// # Errors
    /// `Unavailable` if the store cannot tell what it has; then there is no part of the page.
    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>>;

    /// Removes everything in a scope. A scope that has nothing is no error, so it can be repeated at will.
    ///
    /// # Errors
    /// `Unavailable`; part of the scope may then be gone, and the call is to be repeated.
    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>>;

    /// Whether the store keeps values as JSON, so that they have to come back from that. By default it does.
    ///
    /// If so, a value is serialised before the store is given it, and [refused](ContextError::Unfit) if it could not be
    /// read back; [`ContextValue::to_json`] then answers with the JSON that was made. A store that keeps the values
    /// themselves answers `false`: nothing is serialised. A store around another one answers for that one.
    fn serialises(&self) -> bool {
        true
    }

    /// The scopes that have values, after `after`, or from the first if it is `None`. At most so many, where 0 is taken
    /// as 1, and at least one unless there are no more. Changes nothing.
    ///
    /// The order is the store's own and never changes. `after` is a scope that an earlier page ended with, which may
    /// have been cleared since. A scope that gets its first value or loses its last between two pages is listed or not;
    /// every other is listed once.
    ///
    /// The engine asks for them in [`resume_open_runs`](crate::Engine::resume_open_runs) and
    /// [`retain`](crate::Engine::retain), to clear the contexts of runs whose process was killed between their end and
    /// the removal of their contexts. A store that does not implement this lists none, and keeps such contexts.
    ///
    /// # Errors
    /// `Unavailable` if the store cannot tell what it has; then there is no part of the page.
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
