//! How often routes were taken.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use workflow_core::AnyEvent;

/// `n:taken`: how often each counted route of a node was taken, by its key. As JSON a map; nodes have few such routes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken(Vec<(Arc<str>, u64)>);

impl Taken {
    /// What the event has. An event in another form counts nothing.
    pub(crate) fn of(event: &AnyEvent) -> Self {
        match event.typed_output::<Self>() {
            Some(taken) => taken.clone(),
            None => Self::deserialize(event.as_json().unwrap_or(&Value::Null)).unwrap_or_default(),
        }
    }

    /// How often the route with this key was taken.
    pub(crate) fn times(&self, key: &str) -> u64 {
        self.0.iter().find(|(known, _)| **known == *key).map_or(0, |(_, times)| *times)
    }

    /// With one time more.
    pub(crate) fn more(mut self, key: String) -> Self {
        match self.0.iter_mut().find(|(known, _)| **known == *key) {
            Some((_, times)) => *times = times.saturating_add(1),
            None => self.0.push((key.into(), 1)),
        }
        self
    }
}

impl Serialize for Taken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, times)| (key, times)))
    }
}

impl<'de> Deserialize<'de> for Taken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(|taken| Self(taken.into_iter().collect()))
    }
}
