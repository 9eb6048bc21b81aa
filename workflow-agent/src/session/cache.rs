//! Values that a process keeps of its sessions: histories that it has read, and the queues of messages. Nothing in a
//! session depends on them.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use workflow_core::RunId;
use workflow_core::store::EngineId;

use super::Session;
use crate::entry::{Entry, HistoryRange};

/// The histories that a process remembers, and the characters in them.
const HISTORIES: usize = 64;
const CHARACTERS: usize = 16 * 1024 * 1024;
/// Messages of a session that may wait in a process.
const WAITING: usize = 64;
/// The queues from which on those that nobody uses are dropped.
const QUEUES: usize = 1_024;

/// A history that this process has read.
struct History {
    nonce: String,
    range: HistoryRange,
    entries: Vec<Arc<[Entry]>>,
    characters: usize,
}

fn histories() -> &'static Mutex<VecDeque<History>> {
    static HISTORIES: OnceLock<Mutex<VecDeque<History>>> = OnceLock::new();
    HISTORIES.get_or_init(Mutex::default)
}

/// The exchanges of a range, if this process remembers them.
pub(super) fn history(nonce: &str, range: &HistoryRange) -> Option<Vec<Arc<[Entry]>>> {
    let histories = histories().lock().unwrap_or_else(PoisonError::into_inner);
    let found = histories.iter().find(|history| history.nonce == nonce && history.range == *range);
    found.map(|history| history.entries.clone())
}

/// Remembers the exchanges of a range, and forgets the oldest ranges beyond the bounds.
pub(super) fn remember(nonce: String, range: HistoryRange, entries: Vec<Arc<[Entry]>>) {
    let characters = entries.iter().flat_map(|exchange| exchange.iter()).map(Entry::characters).sum();
    if characters > CHARACTERS {
        return;
    }
    let mut histories = histories().lock().unwrap_or_else(PoisonError::into_inner);
    let mut held: usize = histories.iter().map(|history| history.characters).sum();
    while histories.len() >= HISTORIES || held + characters > CHARACTERS {
        let Some(oldest) = histories.pop_front() else { break };
        held -= oldest.characters;
    }
    histories.push_back(History { nonce, range, entries, characters });
}

/// The queue of a session in this process.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Held by the message that is being said. Tokio's mutex is fair, so messages are said in order.
    pub(super) turn: tokio::sync::Mutex<()>,
    waiting: AtomicUsize,
}

/// A place in the queue, until it is dropped.
pub(super) struct Waiting(Arc<Queue>);

impl Waiting {
    /// A place in the queue, unless it is full.
    pub(super) fn enter(queue: &Arc<Queue>) -> Option<Self> {
        let enter = |waiting: usize| (waiting < WAITING).then_some(waiting + 1);
        queue.waiting.fetch_update(SeqCst, SeqCst, enter).ok()?;
        Some(Self(Arc::clone(queue)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, SeqCst);
    }
}

/// The queue of a session in an engine.
pub(super) fn queue(session: &Session) -> Arc<Queue> {
    type Queues = HashMap<(EngineId, RunId), Weak<Queue>>;
    static OF_SESSIONS: OnceLock<Mutex<Queues>> = OnceLock::new();
    let key = (session.engine.id().clone(), session.run_id(0));
    let mut queues = OF_SESSIONS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(queue) = queues.get(&key).and_then(Weak::upgrade) {
        return queue;
    }
    if queues.len() >= QUEUES {
        queues.retain(|_, queue| queue.strong_count() > 0);
    }
    let queue = Arc::<Queue>::default();
    queues.insert(key, Arc::downgrade(&queue));
    queue
}
