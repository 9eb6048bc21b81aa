//! Conversations over several runs, each of which continues one before it. Their entries stay in the logs of the runs:
//! nothing is copied, so two runs can continue the same one, and journals grow linearly.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use workflow_core::errors::chain as causes;
use workflow_core::prelude::*;
use workflow_core::report::RunReport;
use workflow_core::store::EngineId;
use workflow_core::{ResumeError, RunError, RunId};

use crate::agent::Prompt;
use crate::entry::{Entry, Marker};
use crate::session::{begins_anew, stored};

/// The exchanges that a process remembers, and the characters in them. Conversations of more runs than these read the logs
/// of the earlier ones anew for each request.
const EXCHANGES: usize = 4_096;
const CHARACTERS: usize = 16 * 1024 * 1024;

/// The run that a run continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Continues {
    /// A run that has answered, in the same engine or its store.
    pub(crate) run: RunId,
    /// The run whose child it is.
    pub(crate) parent: RunId,
    /// The begin of another part of the work, between the two runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) marker: Option<Marker>,
}

/// The entries of the runs before, from the last summary on. If they fill the window, the run summarises them before its
/// first model call.
pub(crate) async fn entries(
    engine: &Engine,
    continues: &Continues,
    window: u64,
) -> Result<Vec<Entry>, StepError> {
    let mut left = crate::compact::most_before(window);
    let mut newest: VecDeque<Entry> = VecDeque::new();
    let mut next = Some(continues.clone());
    while let Some(Continues { run, parent, marker }) = next {
        let exchange = exchange(engine, &run, &parent).await?;
        let rest = left.checked_sub(exchange.characters);
        if rest.is_none() && !newest.is_empty() {
            break;
        }
        left = rest.unwrap_or(0);
        let entries = exchange.entries.iter().cloned().chain(marker.map(Entry::Marker));
        entries.rev().for_each(|entry| newest.push_front(entry));
        next = if begins_anew(&exchange.entries) { None } else { exchange.continues.clone() };
    }
    Ok(newest.into())
}

/// A run's part of a conversation.
struct Exchange {
    entries: Vec<Entry>,
    characters: usize,
    continues: Option<Continues>,
}

async fn exchange(engine: &Engine, run: &RunId, parent: &RunId) -> Result<Arc<Exchange>, StepError> {
    if let Some(found) = remembered(engine.id(), run) {
        return Ok(found);
    }
    let report = report(engine, run, parent).await?;
    let prompt = report.log.iter().find_map(|logged| logged.value.downcast::<Prompt>());
    let logged: Vec<_> = report.log.iter().filter_map(|logged| logged.value.downcast::<Entry>()).collect();
    let own: Vec<&Entry> = logged.iter().map(|entry| &**entry).collect();
    let entries = stored(&own);
    let characters = entries.iter().map(Entry::characters).sum();
    let continues = prompt.and_then(|prompt| prompt.continues.clone());
    let exchange = Arc::new(Exchange { entries, characters, continues });
    remember(engine.id(), run, &exchange);
    Ok(exchange)
}

/// The report of a run that has answered: its own, or without a store, in which an ended run is gone, the one that its parent has.
pub(crate) async fn report(
    engine: &Engine,
    run: &RunId,
    parent: &RunId,
) -> Result<Arc<RunReport>, StepError> {
    let found = match engine.find(run) {
        Some(found) => found,
        None => match engine.attach_any(run.clone()).await {
            Ok(found) => found,
            Err(ResumeError::Store(error)) => return Err(StepError::transient(error)),
            Err(error) => {
                let held = of_parent(engine, run, parent).await;
                return held.ok_or_else(|| lost(run, &error));
            }
        },
    };
    found.report_so_far().await.map_err(|error| match error {
        RunError::Store { .. } => StepError::transient(error),
        error => lost(run, &error),
    })
}

async fn of_parent(engine: &Engine, run: &RunId, parent: &RunId) -> Option<Arc<RunReport>> {
    let report = engine.find(parent)?.report_so_far().await.ok()?;
    report.children.iter().find(|child| child.child.run == *run)?.report.clone()
}

fn lost(run: &RunId, error: &(dyn std::error::Error + 'static)) -> StepError {
    StepError::permanent(format!(
        "run `{run}`, which the conversation continues, cannot be read: {}",
        causes(error)
    ))
}

/// The exchanges that this process has read. A run that has answered changes no more.
#[derive(Default)]
struct Cache {
    found: HashMap<(EngineId, RunId), Arc<Exchange>>,
    /// The oldest first.
    order: VecDeque<(EngineId, RunId)>,
    characters: usize,
}

impl Cache {
    /// Remembers an exchange, and forgets the oldest ones beyond the bounds.
    fn add(&mut self, key: (EngineId, RunId), exchange: &Arc<Exchange>) {
        if exchange.characters > CHARACTERS || self.found.contains_key(&key) {
            return;
        }
        while self.order.len() >= EXCHANGES || self.characters + exchange.characters > CHARACTERS {
            let Some(oldest) = self.order.pop_front() else { break };
            let forgotten = self.found.remove(&oldest).map_or(0, |exchange| exchange.characters);
            self.characters -= forgotten;
        }
        self.characters += exchange.characters;
        self.order.push_back(key.clone());
        self.found.insert(key, Arc::clone(exchange));
    }
}

static REMEMBERED: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);

fn remembered(engine: &EngineId, run: &RunId) -> Option<Arc<Exchange>> {
    let cache = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    cache.found.get(&(engine.clone(), run.clone())).map(Arc::clone)
}

fn remember(engine: &EngineId, run: &RunId, exchange: &Arc<Exchange>) {
    let mut cache = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    cache.add((engine.clone(), run.clone()), exchange);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(characters: usize) -> Arc<Exchange> {
        Arc::new(Exchange { entries: Vec::new(), characters, continues: None })
    }

    fn key(number: usize) -> (EngineId, RunId) {
        (EngineId::from("engine"), RunId::from(format!("run-{number}")))
    }

    /// A92
    #[test]
    fn a_process_forgets_the_oldest_exchanges_beyond_its_bounds() {
        let mut cache = Cache::default();
        for number in 0..EXCHANGES + 2 {
            cache.add(key(number), &exchange(1));
            cache.add(key(number), &exchange(1));
        }
        assert_eq!(
            (cache.found.len(), cache.order.len(), cache.characters),
            (EXCHANGES, EXCHANGES, EXCHANGES)
        );
        assert!(!cache.found.contains_key(&key(1)) && cache.found.contains_key(&key(2)));

        cache.add(key(0), &exchange(CHARACTERS - 1));
        assert_eq!((cache.found.len(), cache.characters), (2, CHARACTERS));
        cache.add(key(1), &exchange(CHARACTERS + 1));
        assert!(!cache.found.contains_key(&key(1)), "it is too long to be remembered");
    }
}
