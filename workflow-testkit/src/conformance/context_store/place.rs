//! One key of one scope of a store under test, with calls that fail the check where the store reports an
//! error.

use std::sync::Arc;

use workflow_core::RunId;
use workflow_core::errors::ContextError;
use workflow_core::store::{ContextScope, ContextStore, ContextValue};

/// The values that most checks write.
pub(super) type Number = i64;

#[derive(Clone)]
pub(super) struct Place {
    pub(super) store: Arc<dyn ContextStore>,
    pub(super) scope: ContextScope,
    pub(super) key: Arc<str>,
}

impl Place {
    /// A place that no other check uses.
    pub(super) fn new(store: &Arc<dyn ContextStore>) -> Self {
        Self { store: Arc::clone(store), scope: ContextScope::Run(RunId::generate()), key: "key".into() }
    }

    pub(super) fn at_key(&self, key: &str) -> Self {
        Self { key: key.into(), ..self.clone() }
    }

    pub(super) fn in_scope(&self, scope: ContextScope) -> Self {
        Self { scope, ..self.clone() }
    }

    pub(super) async fn value(&self) -> Option<ContextValue> {
        self.store.get(&self.scope, &self.key).await.unwrap_or_else(|error| self.reported("get", &error))
    }

    pub(super) async fn read(&self) -> Option<Number> {
        number(self.value().await)
    }

    pub(super) async fn put_value(&self, value: Option<ContextValue>) -> Option<ContextValue> {
        let set = self.store.set(&self.scope, &self.key, value).await;
        set.unwrap_or_else(|error| self.reported("set", &error))
    }

    pub(super) async fn put(&self, number: Number) -> Option<Number> {
        self::number(self.put_value(Some(ContextValue::new(number))).await)
    }

    pub(super) async fn remove(&self) -> Option<Number> {
        number(self.put_value(None).await)
    }

    /// Updates by a function of numbers.
    pub(super) async fn change(
        &self,
        mut change: impl FnMut(Option<Number>) -> Option<Number> + Send,
    ) -> Option<Number> {
        let mut change = |there| Ok(change(number(there)).map(ContextValue::new));
        let updated = self.store.update(&self.scope, &self.key, &mut change).await;
        number(updated.unwrap_or_else(|error| self.reported("update", &error)))
    }

    pub(super) async fn increment(&self) -> Option<Number> {
        self.change(|there| Some(there.unwrap_or(0) + 1)).await
    }

    pub(super) async fn list_values(
        &self,
        after: Option<&str>,
        at_most: usize,
    ) -> Vec<(String, ContextValue)> {
        let listed = self.store.list(&self.scope, after, at_most).await;
        listed.unwrap_or_else(|error| self.reported("list", &error))
    }

    pub(super) async fn list(&self, after: Option<&str>, at_most: usize) -> Vec<(String, Number)> {
        let listed = self.list_values(after, at_most).await.into_iter();
        listed.filter_map(|(key, value)| Some((key, number(Some(value))?))).collect()
    }

    pub(super) async fn clear(&self) {
        let cleared = self.store.clear(&self.scope).await;
        cleared.unwrap_or_else(|error| self.reported("clear", &error));
    }

    fn reported(&self, call: &str, error: &ContextError) -> ! {
        panic!(
            "`{call}` has no reason to fail here, but reported for {:?} of {}: {error}",
            self.key, self.scope
        )
    }
}

pub(super) fn number(value: Option<ContextValue>) -> Option<Number> {
    value.map(|value| {
        let read = value.get::<Number>();
        read.unwrap_or_else(|error| panic!("a number that was stored is read back as a number, but: {error}"))
    })
}
