//! A store of bytes, like one on a disk: every value goes through its JSON, and every call takes some time.

use std::collections::HashMap;
use std::sync::Mutex;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::task::yield_now;
use workflow_core::errors::ContextError;
use workflow_core::store::{ContextChange, ContextScope, ContextStore, ContextValue};

pub(crate) struct JsonContexts {
    /// Each has a version, so that an update notices a concurrent write.
    rows: Mutex<HashMap<(ContextScope, String), (u64, String)>>,
}

type Row = Option<(u64, String)>;

impl JsonContexts {
    pub(crate) fn open(_path: &str) -> Self {
        Self { rows: Mutex::default() }
    }

    fn row(&self, scope: &ContextScope, key: &str) -> Row {
        self.rows.lock().unwrap().get(&(scope.clone(), key.to_owned())).cloned()
    }

    /// Writes a text if the stored one has this version; any version if none is named.
    fn write(
        &self,
        scope: &ContextScope,
        key: &str,
        text: Option<String>,
        seen: Option<&Row>,
    ) -> Result<Row, ()> {
        let mut rows = self.rows.lock().unwrap();
        let place = (scope.clone(), key.to_owned());
        let there = rows.get(&place).cloned();
        if seen.is_some_and(|seen| *seen != there) {
            return Err(());
        }
        match text {
            Some(text) => rows.insert(place, (there.as_ref().map_or(0, |(version, _)| version + 1), text)),
            None => rows.remove(&place),
        };
        Ok(there)
    }
}

fn to_text(key: &str, value: Option<ContextValue>) -> Result<Option<String>, ContextError> {
    let json = value.map(|value| value.to_json()).transpose();
    let json = json.map_err(|error| ContextError::Unserialisable { key: key.into(), source: error.into() });
    Ok(json?.map(|json| json.to_string()))
}

fn to_value(row: Row) -> Option<ContextValue> {
    row.map(|(_, text)| ContextValue::from_json(text.parse().unwrap()))
}

impl ContextStore for JsonContexts {
    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        async move {
            yield_now().await;
            Ok(to_value(self.row(scope, key)))
        }
        .boxed()
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        async move {
            let text = to_text(key, value)?;
            yield_now().await;
            Ok(to_value(self.write(scope, key, text, None).unwrap()))
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
            loop {
                let seen = self.row(scope, key);
                let next = to_text(key, change(to_value(seen.clone()))?)?;
                yield_now().await;
                if self.write(scope, key, next.clone(), Some(&seen)).is_ok() {
                    return Ok(to_value(next.map(|text| (0, text))));
                }
            }
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        async move {
            yield_now().await;
            let rows = self.rows.lock().unwrap();
            let own =
                rows.iter().filter(|((of, key), _)| of == scope && after.is_none_or(|after| **key > *after));
            let mut page: Vec<(String, ContextValue)> = own
                .map(|((_, key), (_, text))| (key.clone(), ContextValue::from_json(text.parse().unwrap())))
                .collect();
            page.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            page.truncate(at_most.max(1));
            Ok(page)
        }
        .boxed()
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        async move {
            yield_now().await;
            self.rows.lock().unwrap().retain(|(of, _), _| of != scope);
            Ok(())
        }
        .boxed()
    }
}
