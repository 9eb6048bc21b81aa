//! A store under test, and the time limit of its calls.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use workflow_core::store::EventStore;

use super::watched::Watched;
use crate::conformance::stage::{LIMIT, run_while};

type Open<S> = Box<dyn FnOnce() -> S>;

/// Opens a store.
pub struct Subject<S> {
    open: Open<S>,
    reopen: Option<Open<S>>,
    patience: Duration,
}

/// The handles of a check on one backend: one, or two where the store can be reopened.
pub(super) type Handles = Vec<Arc<dyn EventStore>>;

impl<S: EventStore> Subject<S> {
    /// A store that is opened by this function.
    pub fn new(open: impl FnOnce() -> S + 'static) -> Self {
        Self { open: Box::new(open), reopen: None, patience: LIMIT }
    }

    /// Sets the function that opens a second handle on the same backend.
    #[must_use]
    pub fn reopen(self, reopen: impl FnOnce() -> S + 'static) -> Self {
        Self { reopen: Some(Box::new(reopen)), ..self }
    }

    /// Sets how long a call may take.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Opens the store and runs a check of it to its end.
    pub(super) fn check<C: Future<Output = ()> + Send + 'static>(
        self,
        check: impl FnOnce(Arc<dyn EventStore>) -> C,
    ) {
        self.check_handles(false, |handles| check(Arc::clone(&handles[0])));
    }

    /// The same with two handles.
    pub(super) fn check_two<C: Future<Output = ()> + Send + 'static>(
        self,
        check: impl FnOnce([Arc<dyn EventStore>; 2]) -> C,
    ) {
        self.check_handles(true, |handles| {
            let two = <[_; 2]>::try_from(handles);
            check(two.unwrap_or_else(|_| panic!("two handles are tested of a store that can be reopened")))
        });
    }

    fn check_handles<C: Future<Output = ()> + Send + 'static>(
        self,
        both: bool,
        check: impl FnOnce(Handles) -> C,
    ) {
        let calls = Arc::default();
        let watched = |open: Open<S>| -> Arc<dyn EventStore> { Arc::new(Watched::new(open(), &calls)) };
        let open = || {
            let first = watched(self.open);
            let second = self.reopen.filter(|_| both).map(watched);
            std::iter::once(first).chain(second).collect::<Handles>()
        };
        run_while(self.patience, &*calls, open, check);
    }
}

impl<S> fmt::Debug for Subject<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("patience", &self.patience).finish_non_exhaustive()
    }
}
