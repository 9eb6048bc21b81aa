//! A store with one fault of any kind.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use workflow_core::RunId;
use workflow_core::errors::ContextError;
use workflow_core::store::{ContextChange, ContextScope, ContextStore, ContextValue, MemoryContexts};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    ForgetsWrites,
    ReadingRemoves,
    WritesTooLate,
    SetReturnsTheNewValue,
    RemovesNothing,
    RemovingNothingIsAnError,
    TakesRunsForThreads,
    JoinsScopeAndKey,
    IgnoresCase,
    CutsKeys,
    SetsInTwoParts,
    UpdatesInTwoParts,
    UpdatesWithoutLooking,
    UpdateReturnsTheOldValue,
    UpdateKeepsWhatIsRemoved,
    LocksWhileChanging,
    FailedChangeRemoves,
    HidesTheErrorOfAChange,
    PanicRemoves,
    HidesPanics,
    TakesNullForNothing,
    KeepsOnlyText,
    RemovesBeforeItSerialises,
    HidesThatItSerialises,
    ClearsOneKeyOnly,
    ClearsEverything,
    ClearsKeyByKey,
    ClearingNothingIsAnError,
    ListsInTheOrderOfUtf16,
    ListsTheKeyItBeginsAfter,
    PagesLeaveAGap,
    PagesAreCounted,
    PagesAreTooLong,
    PagesOfNoneAreEmpty,
    ListsAllAfterAKeyThatIsNotThere,
    ListsThreadsWithRuns,
    ListsWhatWasRemoved,
    ListingRemoves,
    ListingNothingIsAnError,
}

use Fault::*;

/// Behaves correctly except for one fault.
pub(crate) struct Faulty {
    fault: Fault,
    inner: Arc<MemoryContexts>,
    lock: tokio::sync::Mutex<()>,
    /// The written keys, for faults of `clear`.
    written: Mutex<BTreeSet<(String, String)>>,
    /// The number of listed keys, for a fault of `list`.
    listed: AtomicUsize,
}

type Returned = Result<Option<ContextValue>, ContextError>;
type Listed = Result<Vec<(String, ContextValue)>, ContextError>;

impl Faulty {
    pub(crate) fn new(fault: Fault) -> Self {
        Self {
            fault,
            inner: Arc::default(),
            lock: tokio::sync::Mutex::default(),
            written: Mutex::default(),
            listed: AtomicUsize::new(0),
        }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn scope(&self, scope: &ContextScope) -> ContextScope {
        match scope {
            _ if self.is(JoinsScopeAndKey) => ContextScope::Run(RunId::new("all")),
            ContextScope::Thread(thread) if self.is(TakesRunsForThreads) => {
                ContextScope::Run(thread.as_str().into())
            }
            scope => scope.clone(),
        }
    }

    fn key(&self, scope: &ContextScope, key: &str) -> String {
        match self.fault {
            JoinsScopeAndKey => format!("{scope}:{key}"),
            IgnoresCase => key.to_lowercase(),
            CutsKeys => key.chars().take(255).collect(),
            _ => key.to_owned(),
        }
    }

    fn kept(&self, value: ContextValue) -> Option<ContextValue> {
        match self.fault {
            TakesNullForNothing if value.to_json().is_ok_and(|json| json.is_null()) => None,
            KeepsOnlyText => Some(value.to_json().map_or(value, |json| ContextValue::new(json.to_string()))),
            _ => Some(value),
        }
    }

    async fn read(&self, scope: &ContextScope, key: &str) -> Returned {
        let _turn = self.turn().await;
        let (of, place) = (self.scope(scope), self.key(scope, key));
        let value = self.inner.get(&of, &place).await;
        if self.is(ReadingRemoves) {
            self.inner.set(&of, &place, None).await?;
        }
        value
    }

    async fn write(&self, scope: &ContextScope, key: &str, value: Option<ContextValue>) -> Returned {
        let _turn = self.turn().await;
        let (of, place) = (self.scope(scope), self.key(scope, key));
        let value = value.and_then(|value| self.kept(value));
        self.written.lock().unwrap().insert((of.to_string(), place.clone()));
        match self.fault {
            ForgetsWrites => self.inner.get(&of, &place).await,
            SetReturnsTheNewValue => self.inner.set(&of, &place, value.clone()).await.map(|_| value),
            RemovesNothing if value.is_none() => self.inner.get(&of, &place).await,
            RemovingNothingIsAnError if value.is_none() => {
                let removed = self.inner.set(&of, &place, None).await?;
                removed.map(Some).ok_or_else(|| ContextError::unavailable(std::fmt::Error))
            }
            RemovesBeforeItSerialises => {
                let removed = self.inner.set(&of, &place, None).await?;
                unserialisable(&place, value.as_ref())?;
                self.inner.set(&of, &place, value).await.map(|_| removed)
            }
            HidesThatItSerialises => {
                unserialisable(&place, value.as_ref())?;
                self.inner.set(&of, &place, value).await
            }
            SetsInTwoParts => {
                let removed = self.inner.set(&of, &place, None).await?;
                a_while().await;
                self.inner.set(&of, &place, value).await.map(|_| removed)
            }
            _ => self.inner.set(&of, &place, value).await,
        }
    }

    /// Takes the lock, in a store that has one.
    async fn turn(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if self.is(LocksWhileChanging) { Some(self.lock.lock().await) } else { None }
    }

    async fn change(&self, scope: &ContextScope, key: &str, change: ContextChange<'_>) -> Returned {
        let _turn = self.turn().await;
        let (of, place) = (self.scope(scope), self.key(scope, key));
        match self.fault {
            UpdatesInTwoParts => {
                let there = self.inner.set(&of, &place, None).await?;
                let next = change(there)?;
                a_while().await;
                self.inner.set(&of, &place, next.clone()).await.map(|_| next)
            }
            UpdatesWithoutLooking => {
                let next = change(self.inner.get(&of, &place).await?)?;
                self.inner.set(&of, &place, next.clone()).await.map(|_| next)
            }
            UpdateReturnsTheOldValue => {
                let mut old = None;
                let mut noting = |there: Option<ContextValue>| {
                    old.clone_from(&there);
                    change(there)
                };
                self.inner.update(&of, &place, &mut noting).await?;
                Ok(old)
            }
            UpdateKeepsWhatIsRemoved => {
                let mut keeping = |there: Option<ContextValue>| Ok(change(there.clone())?.or(there));
                self.inner.update(&of, &place, &mut keeping).await
            }
            HidesPanics => {
                let mut quiet = |there| {
                    let changed = catch_unwind(AssertUnwindSafe(|| change(there)));
                    changed.unwrap_or_else(|_| Err(ContextError::unavailable(std::fmt::Error)))
                };
                self.inner.update(&of, &place, &mut quiet).await
            }
            PanicRemoves => {
                let there = self.inner.set(&of, &place, None).await?;
                let next = change(there.clone());
                let kept = if next.is_ok() { next.clone()? } else { there };
                self.inner.set(&of, &place, kept).await?;
                next
            }
            FailedChangeRemoves => {
                let changed = self.inner.update(&of, &place, change).await;
                if changed.is_err() {
                    self.inner.set(&of, &place, None).await?;
                }
                changed
            }
            HidesTheErrorOfAChange => {
                let changed = self.inner.update(&of, &place, change).await;
                changed.map_err(ContextError::unavailable)
            }
            _ => {
                let mut kept = |there| Ok(change(there)?.and_then(|value| self.kept(value)));
                self.inner.update(&of, &place, &mut kept).await
            }
        }
    }

    async fn list_all(&self, scope: &ContextScope) -> Listed {
        let mut all = self.inner.list(scope, None, usize::MAX).await?;
        match (self.fault, scope) {
            (ListsInTheOrderOfUtf16, _) => {
                all.sort_by_key(|(key, _)| key.encode_utf16().collect::<Vec<u16>>());
            }
            (ListsThreadsWithRuns, ContextScope::Run(run)) => {
                let thread = ContextScope::Thread(run.as_str().into());
                all.extend(self.inner.list(&thread, None, usize::MAX).await?);
                all.sort_by(|(one, _), (other, _)| one.cmp(other));
                all.dedup_by(|(one, _), (other, _)| one == other);
            }
            (ListsWhatWasRemoved, _) => {
                let written = self.written.lock().unwrap();
                let own = written.iter().filter(|(of, _)| *of == scope.to_string());
                let gone = own.filter(|(_, key)| all.iter().all(|(there, _)| there != key));
                let gone: Vec<_> = gone.map(|(_, key)| (key.clone(), ContextValue::new(0))).collect();
                all.extend(gone);
                all.sort_by(|(one, _), (other, _)| one.cmp(other));
            }
            _ => {}
        }
        Ok(all)
    }

    async fn page(&self, scope: &ContextScope, after: Option<&str>, at_most: usize) -> Listed {
        let all = self.list_all(&self.scope(scope)).await?;
        if self.is(PagesAreCounted) {
            a_while().await;
        }
        let place_of = |after: &str| all.iter().position(|(key, _)| key == after);
        let begins = match (self.fault, after) {
            (_, None) => 0,
            (ListsTheKeyItBeginsAfter, Some(after)) => all.partition_point(|(key, _)| **key < *after),
            (PagesLeaveAGap, Some(after)) => all.partition_point(|(key, _)| **key <= *after) + 1,
            (PagesAreCounted, Some(_)) => self.listed.load(Ordering::Relaxed),
            (ListsAllAfterAKeyThatIsNotThere, Some(after)) => place_of(after).map_or(0, |place| place + 1),
            (ListsInTheOrderOfUtf16, Some(after)) => place_of(after).map_or(all.len(), |place| place + 1),
            (_, Some(after)) => all.partition_point(|(key, _)| **key <= *after),
        };
        let at_most = match self.fault {
            PagesAreTooLong => at_most.saturating_add(1),
            PagesOfNoneAreEmpty => at_most,
            _ => at_most.max(1),
        };
        let page: Vec<_> = all.into_iter().skip(begins).take(at_most).collect();
        self.listed.store(begins + page.len(), Ordering::Relaxed);
        match self.fault {
            ListingRemoves => self.inner.clear(scope).await?,
            ListingNothingIsAnError if page.is_empty() && after.is_none() => {
                return Err(ContextError::unavailable(std::fmt::Error));
            }
            _ => {}
        }
        Ok(page)
    }

    async fn empty(&self, scope: &ContextScope) -> Result<(), ContextError> {
        let of = self.scope(scope);
        let written: Vec<(String, String)> = self.written.lock().unwrap().iter().cloned().collect();
        let mut own = written.iter().filter(|(scope, _)| *scope == of.to_string());
        match self.fault {
            ClearsOneKeyOnly => {
                let Some((_, key)) = own.next() else { return Ok(()) };
                self.inner.set(&of, key, None).await.map(drop)
            }
            ClearsKeyByKey => {
                for (_, key) in own {
                    self.inner.set(&of, key, None).await?;
                    a_while().await;
                }
                Ok(())
            }
            ClearsEverything => {
                for (scope, _) in &written {
                    let name = scope.trim_start_matches("run ");
                    self.inner.clear(&ContextScope::Run(name.into())).await?;
                }
                Ok(())
            }
            ClearingNothingIsAnError if own.next().is_none() => {
                Err(ContextError::unavailable(std::fmt::Error))
            }
            _ => self.inner.clear(&of).await,
        }
    }
}

/// Long enough for others to come between.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

fn unserialisable(key: &str, value: Option<&ContextValue>) -> Result<(), ContextError> {
    let unserialisable = |error| ContextError::Unserialisable { key: key.into(), source: Arc::new(error) };
    value.map_or(Ok(()), |value| value.to_json().map(drop).map_err(unserialisable))
}

impl ContextStore for Faulty {
    fn get<'a>(&'a self, scope: &'a ContextScope, key: &'a str) -> BoxFuture<'a, Returned> {
        self.read(scope, key).boxed()
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Returned> {
        if self.is(WritesTooLate) {
            return async move {
                let there = self.inner.get(scope, key).await;
                let (inner, scope, key) = (Arc::clone(&self.inner), scope.clone(), key.to_owned());
                tokio::spawn(async move {
                    a_while().await;
                    inner.set(&scope, &key, value).await
                });
                there
            }
            .boxed();
        }
        self.write(scope, key, value).boxed()
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Returned> {
        self.change(scope, key, change).boxed()
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Listed> {
        self.page(scope, after, at_most).boxed()
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        self.empty(scope).boxed()
    }

    fn serialises(&self) -> bool {
        !self.is(HidesThatItSerialises)
    }
}
