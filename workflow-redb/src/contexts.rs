//! The store of contexts: each call is one job, and an update compares and sets until it succeeds.

use std::ops::Bound;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use redb::TableHandle as _;
use serde::ser::Error as _;
use serde_json::Value;
use workflow_core::errors::ContextError;
use workflow_core::store::{ContextChange, ContextScope, ContextStore, ContextValue};

use crate::error::{BadValue, WorkError};
use crate::format::{CONTEXTS, beginning_with, context_key, context_prefix, parse_context_key};
use crate::journal::PAGE_BYTES;
use crate::store::RedbStore;
use crate::tables::{ReadError, Tables, View, bytes_at};

/// The depth up to which `serde_json` reads.
pub(crate) const MAX_DEPTH: usize = 127;

/// JSON of a value; `None` for no value.
type Stored = Option<Vec<u8>>;

impl RedbStore {
    async fn context_bytes(&self, key: Vec<u8>) -> Result<Stored, ContextError> {
        let read = move |view: &View| bytes_at(&view.contexts, &key).map_err(ReadError::from);
        self.shared().read::<_, ContextError>(read).await
    }

    async fn replace(&self, scope: &ContextScope, name: &str, value: Stored) -> Result<Stored, ContextError> {
        let key = context_key(scope, name);
        let bytes = key.len() + value.as_ref().map_or(0, Vec::len);
        let work = move |tables: &mut Tables<'_>| put(tables, &key, value.as_deref());
        Ok(self.shared().queue.commit(bytes, work).await?)
    }

    /// Replaces the value if it is still `seen`. Otherwise `Err` has the current value.
    async fn replace_seen(
        &self,
        key: Vec<u8>,
        seen: Stored,
        value: Stored,
    ) -> Result<Result<(), Stored>, WorkError> {
        let bytes = key.len() + value.as_ref().map_or(0, Vec::len);
        let work = move |tables: &mut Tables<'_>| {
            let there = bytes_at(&*tables.contexts()?, &key)?;
            if there != seen {
                return Ok(Err(there));
            }
            put(tables, &key, value.as_deref())?;
            Ok(Ok(()))
        };
        self.shared().queue.commit(bytes, work).await
    }

    /// Applies `change` in the caller's task, without any lock. Of concurrent callers one succeeds in each round, so
    /// callers do not block each other for ever.
    async fn apply(
        &self,
        scope: &ContextScope,
        name: &str,
        change: ContextChange<'_>,
    ) -> Result<Option<ContextValue>, ContextError> {
        let key = context_key(scope, name);
        let mut seen = self.context_bytes(key.clone()).await?;
        loop {
            let next = change(value_of(name, seen.as_deref())?)?;
            let bytes = next.as_ref().map(|value| bytes_of(name, value)).transpose()?;
            match self.replace_seen(key.clone(), seen, bytes).await? {
                Ok(()) => return Ok(next),
                Err(there) => seen = there,
            }
        }
    }

    async fn clear_scope(&self, scope: &ContextScope) -> Result<(), ContextError> {
        let keys = beginning_with(context_prefix(scope));
        let bytes = keys.start.len();
        let work = move |tables: &mut Tables<'_>| {
            Ok(tables.contexts()?.retain_in(&*keys.start..&*keys.end, |_, _| false)?)
        };
        Ok(self.shared().queue.commit(bytes, work).await?)
    }
}

/// A page of a context.
pub(crate) fn list(
    view: &View,
    scope: &ContextScope,
    after: Option<&str>,
    at_most: usize,
) -> Result<Vec<(String, ContextValue)>, ReadError<ContextError>> {
    let keys = beginning_with(context_prefix(scope));
    let after = after.map(|after| context_key(scope, after));
    let start = after.as_deref().map_or(Bound::Included(&*keys.start), Bound::Excluded);
    let (mut page, mut bytes, mut last) = (Vec::new(), 0, after.clone());
    for entry in view.contexts.range::<&[u8]>((start, Bound::Excluded(&*keys.end)))? {
        let (key, value) = entry?;
        // As for pages of runs.
        if last.as_deref().is_some_and(|last| key.value() <= last) {
            continue;
        }
        last = Some(key.value().to_vec());
        // A key that is no text is skipped; a check reports it.
        let Some((_, name)) = parse_context_key(key.value()) else { continue };
        let value = value.value();
        match parsed(name, value) {
            Ok(parsed) => page.push((name.to_owned(), parsed)),
            // The next page begins with it.
            Err(_) if !page.is_empty() => break,
            Err(error) => return Err(ReadError::Own(error)),
        }
        bytes += value.len();
        if page.len() >= at_most.max(1) || bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(page)
}

/// A page of the contexts that have values, in the order of their keys. One look-up finds each.
fn scopes(
    view: &View,
    after: Option<&ContextScope>,
    at_most: usize,
) -> Result<Vec<ContextScope>, ReadError<ContextError>> {
    let mut start = after.map(|after| beginning_with(context_prefix(after)).end).unwrap_or_default();
    let mut page = Vec::new();
    while page.len() < at_most.max(1) {
        let Some(entry) = view.contexts.range::<&[u8]>(&*start..)?.next() else { break };
        let (key, _) = entry?;
        if key.value() < &*start {
            // Only in a damaged table. The next look-up would find the same key again.
            let name = CONTEXTS.name();
            return Err(redb::Error::Corrupted(format!("the keys of `{name}` are out of order")).into());
        }
        match parse_context_key(key.value()) {
            Some((scope, _)) => {
                start = beginning_with(context_prefix(&scope)).end;
                page.push(scope);
            }
            // A key that is no value's is skipped; a check reports it.
            None => start = [key.value(), &[0]].concat(),
        }
    }
    Ok(page)
}

/// Sets or removes a value. Returns the previous one.
fn put(tables: &mut Tables<'_>, key: &[u8], value: Option<&[u8]>) -> Result<Stored, redb::Error> {
    let was = match value {
        Some(value) => tables.contexts()?.insert(key, value)?,
        None => tables.contexts()?.remove(key)?,
    };
    Ok(was.map(|was| was.value().to_vec()))
}

fn bytes_of(name: &str, value: &ContextValue) -> Result<Vec<u8>, ContextError> {
    let bytes = value.to_json().and_then(|json| {
        // A value that no reader could decode is not written.
        let is_readable = is_at_most_so_deep(&json, MAX_DEPTH);
        let too_deep = || serde_json::Error::custom(format_args!("it is nested more than {MAX_DEPTH} deep"));
        if is_readable { serde_json::to_vec(&json) } else { Err(too_deep()) }
    });
    bytes.map_err(|error| ContextError::Unserialisable { key: name.into(), source: Arc::new(error) })
}

/// Whether arrays and objects nest at most this deep.
pub(crate) fn is_at_most_so_deep(json: &Value, depth: usize) -> bool {
    match json {
        Value::Array(items) => depth > 0 && items.iter().all(|item| is_at_most_so_deep(item, depth - 1)),
        Value::Object(members) => {
            depth > 0 && members.values().all(|member| is_at_most_so_deep(member, depth - 1))
        }
        _ => true,
    }
}

fn value_of(name: &str, bytes: Option<&[u8]>) -> Result<Option<ContextValue>, ContextError> {
    bytes.map(|bytes| parsed(name, bytes)).transpose()
}

fn parsed(name: &str, bytes: &[u8]) -> Result<ContextValue, ContextError> {
    let bad = |source| ContextError::unavailable(BadValue { name: name.to_owned(), source });
    Ok(ContextValue::from_json(serde_json::from_slice(bytes).map_err(bad)?))
}

impl ContextStore for RedbStore {
    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        async move { value_of(key, self.context_bytes(context_key(scope, key)).await?.as_deref()) }.boxed()
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        async move {
            let bytes = value.as_ref().map(|value| bytes_of(key, value)).transpose()?;
            value_of(key, self.replace(scope, key, bytes).await?.as_deref())
        }
        .boxed()
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.apply(scope, key, change).boxed()
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        let (scope, after) = (scope.clone(), after.map(str::to_owned));
        let read = move |view: &View| list(view, &scope, after.as_deref(), at_most);
        self.shared().read(read).boxed()
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        self.clear_scope(scope).boxed()
    }

    fn scopes<'a>(
        &'a self,
        after: Option<&'a ContextScope>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<ContextScope>, ContextError>> {
        let after = after.cloned();
        self.shared().read(move |view: &View| scopes(view, after.as_ref(), at_most)).boxed()
    }
}
