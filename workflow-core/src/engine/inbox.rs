//! The inbox of an engine: reading a run's messages whenever the run is loaded, and when a caller says that there are
//! some (S67).
//!
//! ```text
//! load    ─▶ gate ─┐
//! notify  ─────────┴▶ one reader per run: pending ─▶ apply ─▶ settle ─▶ … ─▶ none left: gates open
//! ```
//!
//! A message is applied with its origin, so a message that a killed process had applied and not settled is applied
//! again, and changes nothing (S62).
//!
//! Invariant: at most one reader per run, so the messages of a run are applied in their order. A load or a notification
//! that comes while a reader is at work makes it ask again before it opens the gates.

use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::hash_map::Entry;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use futures_util::future::{Either, select};

use super::journals::Journals;
use super::registry::Lookup;
use super::reminders::{self, RETRY_DELAY};
use super::{Engine, Inner};
use crate::id::RunId;
use crate::outcome::SendError;
use crate::panics::{caught, caught_in, locked};
use crate::patience::StorePatience;
use crate::run::{AnyRun, InboxGate, Run, RunShared};
use crate::store::{Inbox, InboxMessage, StoreError, StoreFuture};

/// How many messages of a run one call of the inbox asks for.
const PAGE: usize = 64;

/// How often in a row an inbox may return messages again that were settled just before. Clients may put them in again.
const REPEATS: usize = 3;

/// The inbox of an engine, and its readers.
pub(super) struct EngineInbox {
    inbox: Arc<dyn Inbox>,
    patience: StorePatience,
    /// The runs whose messages are being read.
    readers: Mutex<HashMap<RunId, Reader>>,
}

/// The work of the reader of a run.
struct Reader {
    /// The run, as it was last loaded.
    run: Arc<RunShared>,
    /// Whether to ask again: a message may have come since the last question.
    again: bool,
    /// The gates that open when no message is left.
    gates: Vec<InboxGate>,
    /// When the inbox took the message that is being applied, or was last.
    at: Option<SystemTime>,
}

/// The gate of a run that is about to be spawned.
pub(super) struct Gated(InboxGate);

/// Why a reader stops with messages left.
enum Stop {
    /// The run stopped here, or another engine has it: an engine that continues it reads them.
    LeftOpen,
    /// The inbox or the store does not answer now.
    Unavailable(StoreError),
}

impl EngineInbox {
    pub(super) fn new(inbox: Arc<dyn Inbox>, patience: StorePatience) -> Self {
        Self { inbox, patience, readers: Mutex::default() }
    }

    /// Calls the inbox. A panic of it is an error.
    async fn call<T: Unpin>(&self, call: impl FnOnce(&dyn Inbox) -> StoreFuture<T>) -> Result<T, StoreError> {
        let answer = caught(|| call(&*self.inbox)).map_err(StoreError::unavailable)?;
        let answered = self.patience.wait(caught_in(answer)).await?;
        answered.unwrap_or_else(|panic| Err(StoreError::unavailable(panic)))
    }

    /// Notes that the run has to be read. Returns whether it needs a reader.
    fn enter(&self, run: Arc<RunShared>, gate: Option<InboxGate>) -> bool {
        match locked(&self.readers).entry(run.id.clone()) {
            Entry::Occupied(mut reader) => {
                let reader = reader.get_mut();
                (reader.run, reader.again) = (run, true);
                if let (Some(gate), Some(at)) = (&gate, reader.at) {
                    gate.frees_timers_until(at);
                }
                reader.gates.extend(gate);
                false
            }
            Entry::Vacant(reader) => {
                reader.insert(Reader { run, again: true, gates: gate.into_iter().collect(), at: None });
                true
            }
        }
    }

    /// The run whose messages are to be asked for. If there is nothing to ask, its gates open, and the reader is removed.
    fn asks(&self, run: &RunId) -> Option<Arc<RunShared>> {
        let mut readers = locked(&self.readers);
        let reader = readers.get_mut(run)?;
        if std::mem::take(&mut reader.again) {
            return Some(Arc::clone(&reader.run));
        }
        let reader = readers.remove(run);
        reader.iter().flat_map(|reader| &reader.gates).for_each(InboxGate::open);
        None
    }

    /// Removes the reader of a run that stopped here, unless the run was loaded again. Its gates stay closed.
    fn give_up(&self, run: &Arc<RunShared>) {
        let mut readers = locked(&self.readers);
        if readers.get(&run.id).is_some_and(|reader| Arc::ptr_eq(&reader.run, run)) {
            readers.remove(&run.id);
        }
    }

    /// Asks again, unless the reader was removed.
    fn asks_again(&self, run: &RunId) {
        if let Some(reader) = locked(&self.readers).get_mut(run) {
            reader.again = true;
        }
    }

    /// Frees the timers of the run that come before a message of this time.
    fn frees_timers_until(&self, run: &RunId, at: SystemTime) {
        if let Some(reader) = locked(&self.readers).get_mut(run) {
            reader.at = Some(at);
            reader.gates.iter().for_each(|gate| gate.frees_timers_until(at));
        }
    }

    /// Applies and settles the messages of a run until none is left.
    async fn read(&self, run: &AnyRun, journals: &Journals) -> Result<(), Stop> {
        let id = run.id();
        let (mut settled, mut repeats) = (HashSet::<Arc<str>>::new(), 0);
        loop {
            let page = self.call(|inbox| inbox.pending(id, PAGE)).await.map_err(Stop::Unavailable)?;
            if page.is_empty() {
                return Ok(());
            }
            repeats = if page.iter().any(|message| settled.contains(&message.id)) { repeats + 1 } else { 0 };
            if repeats > REPEATS {
                return Err(Stop::Unavailable(StoreError::unavailable(NotRemoved)));
            }
            settled.clear();
            for message in page {
                self.frees_timers_until(id, message.at);
                let result = self.apply(run, &message).await?;
                if result.is_err() && !journals.has_kept(id).await.map_err(Stop::Unavailable)? {
                    return Err(Stop::LeftOpen);
                }
                self.call(|inbox| inbox.settle(id, &message, result)).await.map_err(Stop::Unavailable)?;
                settled.insert(message.id);
            }
        }
    }

    /// Applies one message. Returns the reason if the run refuses it.
    async fn apply(&self, run: &AnyRun, message: &InboxMessage) -> Result<Result<(), String>, Stop> {
        let result = match caught_in(run.apply(message)).await {
            Ok(Err(SendError::NotLoaded { source, .. })) => return Err(Stop::Unavailable(source)),
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(panic) => Err(panic.to_string()),
        };
        // The journal may lack the act that was answered then.
        if run.is_left_open() { Err(Stop::LeftOpen) } else { Ok(result) }
    }
}

/// An inbox that returns messages again which were settled.
#[derive(Debug, thiserror::Error)]
#[error("the inbox returned a message again that was settled")]
struct NotRemoved;

impl Engine {
    /// Reads the inbox of a run now, because a message for it was put in. Returns whether the run is here.
    ///
    /// The call returns at once, and the engine applies the messages in a task of its own. An unloaded run is loaded for
    /// them. `false` if this engine does not have the run, or has no [inbox](crate::EngineBuilder::inbox): the engine that has
    /// the run, or takes it up next, reads the messages.
    /// [`Inbox`](crate::store::Inbox) has an example. O(1).
    pub fn notify_inbox(&self, run: &RunId) -> bool {
        self.inner.notify_inbox(run)
    }
}

impl Inner {
    fn notify_inbox(self: &Arc<Self>, run: &RunId) -> bool {
        if self.inbox.is_none() {
            return false;
        }
        match self.runs.find(run) {
            None => false,
            Some(Lookup::Driven(shared)) => {
                let Some(shared) = shared.upgrade() else { return false };
                self.read_inbox(&shared, None);
                true
            }
            Some(Lookup::Unloaded(_)) => {
                let (Some(runtime), Some(_task)) = (self.reminders.runtime(), self.ending.enter()) else {
                    return false;
                };
                // Its loading reads the messages, at once or once the store can be read again.
                runtime.spawn(self.ending.track(reminders::load(Arc::clone(self), run.clone())));
                true
            }
        }
    }

    /// Lets a run that is about to be spawned begin nothing before its inbox is read; `None` without an inbox.
    pub(super) fn gate(&self, run: &mut Run) -> Option<Gated> {
        self.inbox.as_ref().map(|_| Gated(run.wait_for_inbox()))
    }

    /// Reads the inbox of a run that was spawned with this gate.
    pub(super) fn read_gated(self: &Arc<Self>, shared: &Arc<RunShared>, gate: Option<Gated>) {
        if let Some(Gated(gate)) = gate {
            self.read_inbox(shared, Some(gate));
        }
    }

    /// Reads the inbox of a run in a task of its own, unless a reader is at work.
    pub(super) fn read_inbox(self: &Arc<Self>, shared: &Arc<RunShared>, gate: Option<InboxGate>) {
        let Some(inbox) = &self.inbox else { return };
        if !inbox.enter(Arc::clone(shared), gate) {
            return;
        }
        match (self.reminders.runtime(), self.ending.enter()) {
            (Some(runtime), Some(_task)) => {
                let (engine, run) = (Arc::clone(self), shared.id.clone());
                runtime.spawn(self.ending.track(async move { engine.read_all(&run).await }));
            }
            // The engine ends, and the next one reads them.
            _ => inbox.give_up(shared),
        }
    }

    /// Reads until no message is left, or the run stops here, or the engine ends.
    async fn read_all(&self, id: &RunId) {
        let Some(inbox) = &self.inbox else { return };
        while let Some(shared) = inbox.asks(id) {
            let run = AnyRun::new(Arc::clone(&shared));
            let read = pin!(inbox.read(&run, &self.journals));
            let error = match select(read, pin!(self.ending.begins())).await {
                Either::Left((Ok(()), _)) => continue,
                Either::Left((Err(Stop::Unavailable(error)), _)) if !run.status().is_ended() => error,
                Either::Left(_) | Either::Right(_) => {
                    inbox.give_up(&shared);
                    continue;
                }
            };
            tracing::warn!(run = %id, %error, "the messages of a run could not be read");
            let again = pin!(self.common.clock.sleep(RETRY_DELAY));
            if let Either::Right(_) = select(again, pin!(self.ending.begins())).await {
                inbox.give_up(&shared);
            }
            inbox.asks_again(id);
        }
    }
}
