//! The handles for steps: typed reads and writes of one scope. The store's contract says when a write takes effect.

use std::fmt;
use std::sync::Arc;

use super::{ContextData, ContextError, ContextScope, ContextStore, ContextValue, MemoryContexts};
use crate::id::{RunId, ThreadId};
use crate::json::Misfit;

/// The most bytes of a key.
const MAX_KEY_LENGTH: usize = 1024;

/// In the scope of a run, this key holds the run's private thread, once that thread has a value. Steps cannot see it.
pub(crate) const PRIVATE_THREAD: &str = "\0workflow.private_thread";

/// Generates a public handle. Both have the same methods, and a step can ask for either.
macro_rules! context_handle {
    ($(#[$doc:meta])* $name:ident, $scope:ident, $id:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            handle: Handle,
        }

        impl $name {
            pub(crate) fn new(scope: $id, store: Arc<dyn ContextStore>) -> Self {
                Self { handle: Handle { scope: ContextScope::$scope(scope), store } }
            }

            /// A context of this handle and its clones only, to call a step in a test.
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), workflow_core::errors::ContextError> {
            #[doc = concat!("use workflow_core::", stringify!($name), ";")]
            ///
            #[doc = concat!("let context = ", stringify!($name), "::in_memory();")]
            /// assert_eq!(context.get::<u32>("rounds").await?, None);
            /// # Ok(())
            /// # }
            /// ```
            pub fn in_memory() -> Self {
                Self::new($id::generate(), Arc::new(MemoryContexts::default()))
            }

            /// Reads a value; `None` if there is none.
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), workflow_core::errors::ContextError> {
            #[doc = concat!("# let context = workflow_core::", stringify!($name), "::in_memory();")]
            /// context.set("rounds", 2_u32).await?;
            /// assert_eq!(context.get::<u64>("rounds").await?, Some(2));
            /// assert!(context.get::<String>("rounds").await.is_err());
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            /// [`ContextError::WrongType`] if the value is no `T`, and errors of the store.
            pub async fn get<T: ContextData>(&self, key: &str) -> Result<Option<T>, ContextError> {
                self.handle.get(key).await
            }

            /// Sets a value, whatever the type of the previous one.
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), workflow_core::errors::ContextError> {
            #[doc = concat!("# let context = workflow_core::", stringify!($name), "::in_memory();")]
            /// context.set("locale", "de".to_owned()).await?;
            /// assert!(context.set(&"k".repeat(2000), true).await.is_err());
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            /// [`ContextError::KeyTooLong`]. [`ContextError::Unfit`] if the store serialises and the value has no JSON
            /// that could be read back. Errors of the store.
            pub async fn set<T: ContextData>(&self, key: &str, value: T) -> Result<(), ContextError> {
                self.handle.set(key, value).await
            }

            /// Removes a value. Returns whether there was one.
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), workflow_core::errors::ContextError> {
            #[doc = concat!("# let context = workflow_core::", stringify!($name), "::in_memory();")]
            /// context.set("paused", true).await?;
            /// assert!(context.remove("paused").await?);
            /// assert!(!context.remove("paused").await?);
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            /// [`ContextError::KeyTooLong`], and errors of the store.
            pub async fn remove(&self, key: &str) -> Result<bool, ContextError> {
                self.handle.remove(key).await
            }

            /// Changes a value by a function of itself, atomically. Returns the new value.
            ///
            /// If another write comes between, the function is called again. So it should only compute.
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), workflow_core::errors::ContextError> {
            #[doc = concat!("# let context = workflow_core::", stringify!($name), "::in_memory();")]
            /// let best = |score: u32| move |best: Option<u32>| best.unwrap_or(0).max(score);
            /// assert_eq!(context.update("best", best(7)).await?, 7);
            /// assert_eq!(context.update("best", best(3)).await?, 7);
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            /// [`ContextError::WrongType`] if the stored value is no `T`. [`ContextError::Unfit`] if the new value
            /// cannot be stored; the stored one is then unchanged. Errors of the store.
            pub async fn update<T: ContextData>(
                &self,
                key: &str,
                mut change: impl FnMut(Option<T>) -> T + Send,
            ) -> Result<T, ContextError> {
                self.handle.update(key, |there| Ok(change(there))).await
            }

            /// Adds to a number, atomically. Returns the sum. A missing number counts as 0.
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), workflow_core::errors::ContextError> {
            #[doc = concat!("# let context = workflow_core::", stringify!($name), "::in_memory();")]
            /// assert_eq!(context.increment("rounds", 1).await?, 1);
            /// assert_eq!(context.increment("rounds", 2).await?, 3);
            /// assert!(context.increment("rounds", i64::MAX).await.is_err());
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            /// [`ContextError::Overflow`] if the sum is no `i64`, and [`ContextError::WrongType`] if the stored value
            /// is no such number; both change nothing. Errors of the store.
            pub async fn increment(&self, key: &str, by: i64) -> Result<i64, ContextError> {
                self.handle.increment(key, by).await
            }

            /// Lists values with their keys, in the order of the bytes of the keys, after `after`.
            ///
            /// Returns at most `at_most` entries, where 0 counts as 1, and at least one unless there are no more.
            /// `None` begins with the first key, and `after` need not exist.
            ///
            /// A page shows one moment. To read everything, call again with the last key of each page until a page is
            /// empty. A key that is first set or removed meanwhile may be missing.
            ///
            /// ```
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
            #[doc = concat!("# let context = workflow_core::", stringify!($name), "::in_memory();")]
            /// for (key, number) in [("visits/bath", 2), ("visits/ulm", 3), ("votes", 1)] {
            ///     context.set(key, number).await?;
            /// }
            /// let mut visits = 0;
            /// for (key, value) in context.list(Some("visits/"), 100).await? {
            ///     if key.starts_with("visits/") {
            ///         visits += value.get::<i32>()?;
            ///     }
            /// }
            /// assert_eq!(visits, 5);
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            /// [`ContextError::KeyTooLong`] for `after`, and errors of the store.
            pub async fn list(
                &self,
                after: Option<&str>,
                at_most: usize,
            ) -> Result<Vec<(String, ContextValue)>, ContextError> {
                self.handle.list(after, at_most).await
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.handle.scope)
            }
        }
    };
}

context_handle! {
    /// The state of one run, shared by its steps: counters and flags.
    ///
    /// Steps exchange data as events, and not here. A call is atomic and takes effect at once. Writes of an attempt
    /// stay if the attempt fails. A write triggers no step.
    ///
    /// ```
    /// use workflow_core::RunContext;
    /// use workflow_core::errors::ContextError;
    ///
    /// async fn may_search_again(context: &RunContext) -> Result<bool, ContextError> {
    ///     Ok(context.increment("searches", 1).await? <= 3)
    /// }
    /// ```
    RunContext, Run, RunId
}

context_handle! {
    /// The state of one thread, shared by the steps of all its runs.
    ///
    /// Several runs may use it at the same time. A run that was started without a thread has a private one. A call is
    /// atomic and takes effect at once. Writes of an attempt stay if the attempt fails. A write triggers no step.
    ///
    /// ```
    /// use workflow_core::ThreadContext;
    /// use workflow_core::errors::ContextError;
    ///
    /// async fn is_first_contact(thread: &ThreadContext) -> Result<bool, ContextError> {
    ///     Ok(thread.increment("contacts", 1).await? == 1)
    /// }
    /// ```
    ThreadContext, Thread, ThreadId
}

#[derive(Clone)]
struct Handle {
    scope: ContextScope,
    store: Arc<dyn ContextStore>,
}

impl Handle {
    async fn get<T: ContextData>(&self, key: &str) -> Result<Option<T>, ContextError> {
        check(key)?;
        let found = self.store.get(&self.scope, key).await?;
        found.map(|value| read(key, &value)).transpose()
    }

    async fn set<T: ContextData>(&self, key: &str, value: T) -> Result<(), ContextError> {
        check(key)?;
        let value = self.value(key, value)?;
        self.store.set(&self.scope, key, Some(value)).await?;
        Ok(())
    }

    /// The value for the store: with its JSON, if the store serialises.
    fn value<T: ContextData>(&self, key: &str, value: T) -> Result<ContextValue, ContextError> {
        let value = ContextValue::new(value);
        if !self.store.serialises() {
            return Ok(value);
        }
        value.fit::<T>().map_err(|misfit| unfit(key, misfit))
    }

    async fn remove(&self, key: &str) -> Result<bool, ContextError> {
        check(key)?;
        Ok(self.store.set(&self.scope, key, None).await?.is_some())
    }

    async fn update<T: ContextData>(
        &self,
        key: &str,
        mut change: impl FnMut(Option<T>) -> Result<T, ContextError> + Send,
    ) -> Result<T, ContextError> {
        check(key)?;
        let mut change = |there: Option<ContextValue>| {
            let there = there.map(|value| read(key, &value)).transpose()?;
            self.value(key, change(there)?).map(Some)
        };
        let kept = self.store.update(&self.scope, key, &mut change).await?;
        read(key, &kept.ok_or_else(|| ContextError::NotKept { key: key.into() })?)
    }

    async fn list(
        &self,
        after: Option<&str>,
        at_most: usize,
    ) -> Result<Vec<(String, ContextValue)>, ContextError> {
        after.map_or(Ok(()), check)?;
        let mut page = self.store.list(&self.scope, after, at_most).await?;
        let length = page.len();
        page.retain(|(key, _)| key != PRIVATE_THREAD);
        // An empty page would tell the caller that there are no more.
        if page.is_empty() && length > 0 {
            return self.store.list(&self.scope, Some(PRIVATE_THREAD), at_most).await;
        }
        Ok(page)
    }

    async fn increment(&self, key: &str, by: i64) -> Result<i64, ContextError> {
        let add = |there: Option<i64>| {
            let value = there.unwrap_or(0);
            value.checked_add(by).ok_or_else(|| ContextError::Overflow { key: key.into(), value, by })
        };
        self.update(key, add).await
    }
}

fn check(key: &str) -> Result<(), ContextError> {
    match key.len() {
        ..=MAX_KEY_LENGTH => Ok(()),
        length => Err(ContextError::KeyTooLong { length, limit: MAX_KEY_LENGTH }),
    }
}

fn unfit(key: &str, misfit: Misfit) -> ContextError {
    let (path, problem) = misfit.into_unfit();
    ContextError::Unfit { key: key.into(), path, problem }
}

fn read<T: ContextData>(key: &str, value: &ContextValue) -> Result<T, ContextError> {
    value.get().map_err(|source| ContextError::WrongType {
        key: key.into(),
        expected: std::any::type_name::<T>(),
        source: Arc::new(source),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::error::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt as _;
    use futures::future::BoxFuture;
    use serde::ser::SerializeMap as _;
    use serde::{Deserialize, Serialize, Serializer};
    use static_assertions::assert_impl_all;

    use super::super::ContextChange;
    use super::*;
    use crate::error::UnfitValue;

    assert_impl_all!(RunContext: Send, Sync, Clone, fmt::Debug);
    assert_impl_all!(ThreadContext: Send, Sync, Clone, fmt::Debug);

    /// A value that must never be serialised.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    struct MemoryOnly(u32);

    impl Serialize for MemoryOnly {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("serialised in memory")
        }
    }

    #[tokio::test]
    async fn in_memory_nothing_is_serialised() {
        let context = RunContext::in_memory();
        context.set("k", MemoryOnly(1)).await.unwrap();
        assert_eq!(context.get("k").await.unwrap(), Some(MemoryOnly(1)));
        let bumped = context.update("k", |there: Option<MemoryOnly>| MemoryOnly(there.unwrap().0 + 1)).await;
        assert_eq!(bumped.unwrap(), MemoryOnly(2));
        let listed = context.list(None, 10).await.unwrap();
        assert_eq!(listed[0].1.get::<MemoryOnly>().unwrap(), MemoryOnly(2));
        assert!(context.remove("k").await.unwrap());
    }

    #[tokio::test]
    async fn a_number_is_read_at_another_width() {
        let context = RunContext::in_memory();
        context.set("k", 7_u32).await.unwrap();
        assert_eq!(context.get::<u64>("k").await.unwrap(), Some(7));
        assert_eq!(context.increment("k", 1).await.unwrap(), 8);
        assert_eq!(context.get::<u32>("k").await.unwrap(), Some(8));
    }

    // S26
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn concurrent_writes_of_one_key_all_count() {
        let context = ThreadContext::in_memory();
        let count = |context: ThreadContext| async move {
            for _ in 0..500 {
                context.increment("n", 1).await.unwrap();
                context.update("m", |there: Option<u64>| there.unwrap_or(0) + 1).await.unwrap();
            }
        };
        let tasks: Vec<_> = (0..4).map(|_| tokio::spawn(count(context.clone()))).collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(context.get::<i64>("n").await.unwrap(), Some(2000));
        assert_eq!(context.get::<u64>("m").await.unwrap(), Some(2000));
    }

    // S26
    #[tokio::test]
    async fn a_write_is_seen_by_every_handle_of_its_scope_at_once_and_by_no_other() {
        let store: Arc<dyn ContextStore> = Arc::new(MemoryContexts::default());
        let [first, second] = [(); 2].map(|()| ThreadContext::new("t".into(), Arc::clone(&store)));
        let stranger = ThreadContext::new("u".into(), Arc::clone(&store));
        let run = RunContext::new("t".into(), store);
        first.set("k", 1).await.unwrap();
        assert_eq!(second.get::<i32>("k").await.unwrap(), Some(1));
        assert_eq!(stranger.get::<i32>("k").await.unwrap(), None);
        assert_eq!(run.get::<i32>("k").await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_value_of_another_type_is_an_error_that_keeps_its_source_and_the_value() {
        let context = RunContext::in_memory();
        context.set("k", "text".to_owned()).await.unwrap();
        let error = context.get::<u8>("k").await.unwrap_err();
        assert_eq!(error.to_string(), "the context value `k` cannot be read as `u8`");
        assert!(error.source().is_some());
        let update = context.update("k", |_: Option<u8>| 1).await;
        assert!(matches!(update, Err(ContextError::WrongType { .. })));
        assert_eq!(context.get::<String>("k").await.unwrap().as_deref(), Some("text"));
    }

    #[tokio::test]
    async fn an_increment_of_no_number_and_one_that_overflows_are_errors() {
        let context = RunContext::in_memory();
        context.set("text", "1".to_owned()).await.unwrap();
        context.set("high", u64::MAX).await.unwrap();
        context.set("edge", i64::MIN).await.unwrap();
        for key in ["text", "high"] {
            let error = context.increment(key, 1).await.unwrap_err();
            assert!(matches!(error, ContextError::WrongType { expected: "i64", .. }));
        }
        let error = context.increment("edge", -1).await.unwrap_err();
        assert!(matches!(error, ContextError::Overflow { value: i64::MIN, by: -1, .. }));
        assert_eq!(context.get::<i64>("edge").await.unwrap(), Some(i64::MIN));
    }

    #[tokio::test]
    async fn a_key_of_one_kibibyte_is_allowed_and_no_longer_one() {
        let context = RunContext::in_memory();
        context.set(&"k".repeat(1024), 1).await.unwrap();
        let long = "k".repeat(1025);
        let refused = [
            context.set(&long, 1).await.unwrap_err(),
            context.get::<u8>(&long).await.unwrap_err(),
            context.remove(&long).await.unwrap_err(),
            context.increment(&long, 1).await.unwrap_err(),
            context.list(Some(&long), 1).await.unwrap_err(),
        ];
        assert!(refused.iter().all(|error| matches!(error, ContextError::KeyTooLong { length: 1025, .. })));
    }

    /// Keeps JSON in memory, as a durable store would. A test can let it lose every update.
    struct JsonContexts {
        inner: MemoryContexts,
        forgetful: bool,
    }

    impl JsonContexts {
        fn encode(key: &str, value: &ContextValue) -> Result<ContextValue, ContextError> {
            let json = value.to_json().map_err(|source| ContextError::Unserialisable {
                key: key.into(),
                source: Arc::new(source),
            })?;
            Ok(ContextValue::from_json(json))
        }
    }

    impl ContextStore for JsonContexts {
        fn get<'a>(
            &'a self,
            scope: &'a ContextScope,
            key: &'a str,
        ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
            self.inner.get(scope, key)
        }

        fn set<'a>(
            &'a self,
            scope: &'a ContextScope,
            key: &'a str,
            value: Option<ContextValue>,
        ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
            async move {
                let json = value.map(|value| Self::encode(key, &value)).transpose()?;
                self.inner.set(scope, key, json).await
            }
            .boxed()
        }

        fn update<'a>(
            &'a self,
            scope: &'a ContextScope,
            key: &'a str,
            change: ContextChange<'a>,
        ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
            async move {
                let mut encoded = |there| {
                    let next = change(there)?.filter(|_| !self.forgetful);
                    next.map(|value| Self::encode(key, &value)).transpose()
                };
                self.inner.update(scope, key, &mut encoded).await
            }
            .boxed()
        }

        fn list<'a>(
            &'a self,
            scope: &'a ContextScope,
            after: Option<&'a str>,
            at_most: usize,
        ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
            self.inner.list(scope, after, at_most)
        }

        fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
            self.inner.clear(scope)
        }
    }

    fn on_json(forgetful: bool) -> RunContext {
        let store = JsonContexts { inner: MemoryContexts::default(), forgetful };
        RunContext::new(RunId::generate(), Arc::new(store))
    }

    #[tokio::test]
    async fn a_serialising_store_reads_the_same() {
        let context = on_json(false);
        context.set("k", vec![1_u8]).await.unwrap();
        assert_eq!(context.get::<Vec<u64>>("k").await.unwrap(), Some(vec![1]));
        assert_eq!(context.increment("n", 5).await.unwrap(), 5);
        assert_eq!(context.update("n", |n: Option<u8>| n.unwrap() * 2).await.unwrap(), 10);
    }

    #[tokio::test]
    async fn a_store_that_loses_an_update_is_an_error() {
        let error = on_json(true).increment("n", 1).await.unwrap_err();
        assert!(matches!(error, ContextError::NotKept { key } if &*key == "n"));
    }

    fn is_unfit(error: &ContextError, at: &str, because: &UnfitValue) -> bool {
        matches!(error, ContextError::Unfit { key, path, problem } if &**key == "k" && path == at && problem == because)
    }

    #[tokio::test]
    async fn a_serialising_store_gets_no_json_that_cannot_be_read_back() {
        let context = on_json(false);
        context.set("k", vec![1.5]).await.unwrap();
        let error = context.set("k", vec![Some(1.0), Some(f64::NAN)]).await.unwrap_err();
        assert!(is_unfit(&error, "[1]", &UnfitValue::NotFinite), "{error:?}");
        assert!(error.source().is_none(), "the text has the problem");
        let text = "the context value `k` cannot be stored: at `[1]`, the number is NaN or infinite";
        assert!(error.to_string().starts_with(text), "{error}");
        let error =
            context.update("k", |there: Option<Vec<f32>>| vec![there.unwrap()[0] / 0.0]).await.unwrap_err();
        assert!(is_unfit(&error, "[0]", &UnfitValue::NotFinite), "{error:?}");
        let error = context.set("k", MemoryOnly(1)).await.unwrap_err();
        let panicked = UnfitValue::Panicked { message: "serialised in memory".into() };
        assert!(is_unfit(&error, "", &panicked), "{error:?}");
        assert_eq!(context.get::<Vec<f64>>("k").await.unwrap(), Some(vec![1.5]));
    }

    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[serde(tag = "kind")]
    enum Account {
        Balance { cents: i128 },
        Shares { by_owner: BTreeMap<u32, u8> },
    }

    #[tokio::test]
    async fn a_serialising_store_gets_nothing_that_its_own_type_does_not_read() {
        let context = on_json(false);
        for account in [Account::Balance { cents: 5 }, Account::Shares { by_owner: [(1, 2)].into() }] {
            let error = context.set("k", vec![account.clone()]).await.unwrap_err();
            let ContextError::Unfit { path, problem, .. } = &error else { panic!("{error:?}") };
            assert_eq!(&**path, "[0]");
            assert!(matches!(problem, UnfitValue::NotReadBack { .. }), "{error}");
            let text = "the context value `k` cannot be stored: at `[0]`, its `Deserialize` refuses what its";
            assert!(error.to_string().starts_with(text), "{error}");
            let error = context.update("k", |_: Option<Account>| account.clone()).await.unwrap_err();
            assert!(matches!(error, ContextError::Unfit { .. }), "{error}");
        }
        assert!(context.get::<Account>("k").await.unwrap().is_none());
        context.set("k", Account::Shares { by_owner: BTreeMap::new() }).await.unwrap();
        assert!(context.get::<Account>("k").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_value_is_serialised_once_for_a_serialising_store() {
        #[derive(Clone, Default, Deserialize)]
        struct Counted {
            #[serde(skip)]
            times: Arc<AtomicUsize>,
        }
        impl Serialize for Counted {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.times.fetch_add(1, Ordering::SeqCst);
                serializer.serialize_map(Some(0))?.end()
            }
        }
        let counted = Counted::default();
        on_json(false).set("k", counted.clone()).await.unwrap();
        assert_eq!(counted.times.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_store_in_memory_accepts_a_value_without_json() {
        let store: Arc<dyn ContextStore> = Arc::new(Arc::new(MemoryContexts::default()));
        let context = RunContext::new(RunId::generate(), store);
        context.set("k", f64::INFINITY).await.unwrap();
        assert_eq!(context.get("k").await.unwrap(), Some(f64::INFINITY));
    }

    #[test]
    fn every_call_can_move_between_threads() {
        fn sendable(_: impl Send) {}
        let context = RunContext::in_memory();
        sendable(context.get::<String>("k"));
        sendable(context.set("k", 1));
        sendable(context.remove("k"));
        sendable(context.increment("k", 1));
        sendable(context.list(Some("k"), 1));
        let step = 2;
        sendable(context.update("k", |n: Option<i32>| n.unwrap_or(0) + step));
    }

    #[test]
    fn debug_output_names_the_scope() {
        let context = RunContext::new("order-17".into(), Arc::new(MemoryContexts::default()));
        assert_eq!(format!("{context:?}"), "RunContext(run order-17)");
    }
}
