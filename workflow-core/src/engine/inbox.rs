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
use futures_util::{StreamExt as _, stream};

use super::journals::Journals;
use super::load::{LoadedBy, Resumes as _};
use super::registry::Lookup;
use super::reminders::{self, MAX_CONCURRENT_LOADS, RETRY_DELAY};
use super::{Engine, Inner};
use crate::clock::EngineClock;
use crate::error::chain;
use crate::id::RunId;
use crate::outcome::{ResumeError, SendError};
use crate::panics::{caught, caught_in, locked};
use crate::patience::StorePatience;
use crate::run::{AnyRun, InboxGate, Run, RunShared};
use crate::store::{Inbox, InboxMessage, RunQuery, StoreError, StoreFuture};
use crate::text::bounded;

/// How many messages of a run one call of the inbox asks for.
const PAGE: usize = 64;

/// How often in a row an inbox may return messages again that were settled just before. Clients may put them in again.
const REPEATS: usize = 3;

/// The inbox of an engine, and its readers.
pub(super) struct EngineInbox {
    inbox: Arc<dyn Inbox>,
    patience: StorePatience,
    clock: EngineClock,
    /// The runs whose messages are being read.
    readers: Mutex<HashMap<RunId, Reader>>,
    /// The runs that are looked up because a message came and they are not here. At most [`MAX_CONCURRENT_LOADS`].
    /// `true` if another message came meanwhile.
    looked_up: Mutex<HashMap<RunId, bool>>,
    /// The question which runs have messages.
    listing: Mutex<Listing>,
}

/// The question which of the runs that were taken up have messages.
#[derive(Default)]
struct Listing {
    /// Whether a task asks. At most one does.
    is_at_work: bool,
    /// Whether to ask: runs were taken up since the last question.
    again: bool,
    /// Whether the inbox did not say so when it was asked last.
    is_away: bool,
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
    /// Why the inbox could not be read or settled when it was called last.
    problem: Option<Arc<str>>,
}

/// The gate of a run that is about to be spawned.
pub(super) struct Gated(InboxGate);

/// Why a reader stops with messages left.
enum Stop {
    /// The run stopped here, or another engine has it: an engine that continues it reads them.
    LeftOpen,
    /// The inbox, or the store of the run, does not answer now.
    Unavailable(StoreError),
    /// The store does not say now whose the run is.
    StoreAway(StoreError),
}

impl EngineInbox {
    pub(super) fn new(inbox: Arc<dyn Inbox>, patience: StorePatience, clock: EngineClock) -> Self {
        let (readers, looked_up, listing) = Default::default();
        Self { inbox, patience, clock, readers, looked_up, listing }
    }

    /// Calls the inbox. A panic of it is an error.
    async fn call<T: Unpin>(&self, call: impl FnOnce(&dyn Inbox) -> StoreFuture<T>) -> Result<T, StoreError> {
        let answer = caught(|| call(&*self.inbox)).map_err(StoreError::unavailable)?;
        let answered = self.patience.wait(caught_in(answer)).await?;
        answered.unwrap_or_else(|panic| Err(StoreError::unavailable(panic)))
    }

    /// Calls the inbox for a run. An inbox that does not answer for a while counts as away until it does.
    async fn call_for<T: Unpin>(
        &self,
        run: &RunId,
        call: impl FnOnce(&dyn Inbox) -> StoreFuture<T>,
    ) -> Result<T, StoreError> {
        let answer = pin!(self.call(call));
        // The clock is asked only if the answer is not there at once.
        let answer = match select(answer, pin!(async { self.clock.sleep(RETRY_DELAY).await })).await {
            Either::Left((answer, _)) => return answer,
            Either::Right(((), answer)) => answer,
        };
        self.note_problem(run, Some(problem_of(&StoreError::unavailable(Late))));
        let answer = answer.await;
        self.note_problem(run, None);
        answer
    }

    /// Notes that the run has to be read. Returns whether it needs a reader.
    fn enter(&self, run: Arc<RunShared>, gate: Option<InboxGate>) -> bool {
        match locked(&self.readers).entry(run.id.clone()) {
            Entry::Occupied(mut reader) => {
                let reader = reader.get_mut();
                if !Arc::ptr_eq(&reader.run, &run) {
                    // The gates of an earlier load hold nothing any more.
                    reader.gates.clear();
                }
                (reader.run, reader.again) = (run, true);
                if let (Some(gate), Some(at)) = (&gate, reader.at) {
                    gate.frees_timers_until(at);
                }
                if let (Some(gate), Some(problem)) = (&gate, &reader.problem) {
                    gate.note_problem(Some(Arc::clone(problem)));
                }
                reader.gates.extend(gate);
                false
            }
            Entry::Vacant(reader) => {
                let gates = gate.into_iter().collect();
                reader.insert(Reader { run, again: true, gates, at: None, problem: None });
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

    /// Tells the runs that wait for their inbox why it cannot be read; `None` once it answers again.
    fn note_problem(&self, run: &RunId, problem: Option<Arc<str>>) {
        if let Some(reader) = locked(&self.readers).get_mut(run)
            && reader.problem != problem
        {
            reader.gates.iter().for_each(|gate| gate.note_problem(problem.clone()));
            reader.problem = problem;
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
    async fn read(&self, shared: &Arc<RunShared>, journals: &Journals) -> Result<(), Stop> {
        let (id, run) = (&shared.id, &AnyRun::new(Arc::clone(shared)));
        let (mut settled, mut repeats) = (HashSet::<Arc<str>>::new(), 0);
        loop {
            let page = self.call_for(id, |inbox| inbox.pending(id, PAGE)).await.map_err(Stop::Unavailable)?;
            self.note_problem(id, None);
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
                if result.is_err() && !self.refuses(shared, journals).await? {
                    return Ok(());
                }
                let settles = self.call_for(id, |inbox| inbox.settle(id, &message, result));
                settles.await.map_err(Stop::Unavailable)?;
                settled.insert(message.id);
            }
        }
    }

    /// Whether a refusal of the run counts: the store has the run as this engine's own, or as ended, and it was not loaded again
    /// meanwhile. If it was, the reader asks again.
    async fn refuses(&self, run: &Arc<RunShared>, journals: &Journals) -> Result<bool, Stop> {
        // Before, the store may list the engine that had the run.
        run.status.begun().await;
        if !journals.has_kept(&run.id).await.map_err(Stop::StoreAway)? {
            return Err(Stop::LeftOpen);
        }
        Ok(locked(&self.readers).get(&run.id).is_some_and(|reader| Arc::ptr_eq(&reader.run, run)))
    }

    /// Whether the inbox could not be read or settled for some run when it was called last.
    pub(super) fn is_away(&self) -> bool {
        locked(&self.listing).is_away || locked(&self.readers).values().any(|reader| reader.problem.is_some())
    }

    /// Applies one message. Returns the reason if the run refuses it.
    async fn apply(&self, run: &AnyRun, message: &InboxMessage) -> Result<Result<(), String>, Stop> {
        let result = match caught_in(run.apply(message)).await {
            Ok(Err(SendError::NotLoaded { source, .. })) => return Err(Stop::Unavailable(source)),
            Ok(result) => result.map_err(|error| bounded(error.to_string())),
            Err(panic) => Err(bounded(panic.to_string())),
        };
        // The journal may lack the act that was answered then.
        if run.is_left_open() { Err(Stop::LeftOpen) } else { Ok(result) }
    }
}

/// The error of an inbox, for reports.
fn problem_of(error: &StoreError) -> Arc<str> {
    match error {
        StoreError::Unavailable { source } => chain(&**source).into(),
        error => chain(error).into(),
    }
}

/// An inbox that has not answered for [`RETRY_DELAY`].
#[derive(Debug, thiserror::Error)]
#[error("it has not answered for {} s", RETRY_DELAY.as_secs())]
struct Late;

/// An inbox that returns messages again which were settled.
#[derive(Debug, thiserror::Error)]
#[error("the inbox returned a message again that was settled")]
struct NotRemoved;

/// The entry of a run that is looked up.
struct LookedUp {
    engine: Arc<Inner>,
    run: RunId,
}

impl LookedUp {
    /// `None` if the run is being looked up, which then is done again, or too many are.
    fn enter(engine: &Arc<Inner>, run: &RunId) -> Option<Self> {
        let mut looked_up = locked(&engine.inbox.as_ref()?.looked_up);
        if let Some(again) = looked_up.get_mut(run) {
            *again = true;
            return None;
        }
        if looked_up.len() >= MAX_CONCURRENT_LOADS {
            return None;
        }
        looked_up.insert(run.clone(), false);
        Some(Self { engine: Arc::clone(engine), run: run.clone() })
    }

    /// Whether to look the run up again: a message came since the last time. Otherwise this removes the entry.
    fn again(&self) -> bool {
        let Some(inbox) = &self.engine.inbox else { return false };
        let mut looked_up = locked(&inbox.looked_up);
        let again = looked_up.get_mut(&self.run).is_some_and(std::mem::take);
        if !again {
            looked_up.remove(&self.run);
        }
        again
    }
}

/// The task that asks which of the runs that were taken up have messages. If it is dropped with its runtime, the next restart
/// or claim spawns another.
struct Lister {
    engine: Arc<Inner>,
    /// Set once the listing says that no task is at work, because another task may have set that again.
    is_done: bool,
}

impl Lister {
    /// Asks until the inbox has answered and no run was taken up since, or the engine ends.
    async fn list(mut self) {
        let engine = Arc::clone(&self.engine);
        let Some(inbox) = &engine.inbox else { return };
        let mut ends = pin!(engine.ending.begins());
        while self.asks(inbox) {
            let asked = pin!(engine.load_those_with_messages(inbox));
            let Either::Left((asked, _)) = select(asked, ends.as_mut()).await else { return };
            locked(&inbox.listing).is_away = asked.is_err();
            if let Err(error) = asked {
                tracing::warn!(%error, "the runs that have messages could not be asked for");
                locked(&inbox.listing).again = true;
                let again = pin!(engine.common.clock.sleep(RETRY_DELAY));
                if let Either::Right(_) = select(again, ends.as_mut()).await {
                    return;
                }
            }
        }
    }

    /// Whether to ask. Otherwise the next runs that are taken up need another task.
    fn asks(&mut self, inbox: &EngineInbox) -> bool {
        let mut listing = locked(&inbox.listing);
        listing.is_at_work = listing.again;
        self.is_done = !listing.again;
        std::mem::take(&mut listing.again)
    }
}

impl Drop for Lister {
    fn drop(&mut self) {
        if let Some(inbox) = self.engine.inbox.as_ref().filter(|_| !self.is_done) {
            locked(&inbox.listing).is_at_work = false;
        }
    }
}

impl Engine {
    /// Reads the inbox of a run now, because a message for it was put in. Returns whether the run is here.
    ///
    /// The call returns at once, and the engine applies the messages in a task of its own. An unloaded run is loaded for
    /// them. `false` if this engine does not have the run, or has no [inbox](crate::EngineBuilder::inbox): the engine that has
    /// the run, or takes it up next, reads the messages. If the store says that the run has ended, this engine refuses them, of
    /// at most 32 such runs at a time; those of others stay until the next call.
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
            None => {
                self.look_up(run);
                false
            }
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

    /// Loads the runs that were taken up without their journals and have messages (S87), in a task of its own: an inbox that
    /// is away or does not answer delays no restart.
    pub(super) fn load_waiting_with_messages(self: &Arc<Self>) {
        let (Some(inbox), Some(runtime)) = (&self.inbox, self.reminders.runtime()) else { return };
        let Some(_task) = self.ending.enter() else { return };
        let mut listing = locked(&inbox.listing);
        listing.again = true;
        if !std::mem::replace(&mut listing.is_at_work, true) {
            let lister = Lister { engine: Arc::clone(self), is_done: false };
            runtime.spawn(self.ending.track(lister.list()));
        }
    }

    async fn load_those_with_messages(self: &Arc<Self>, inbox: &EngineInbox) -> Result<(), StoreError> {
        let load = |run| reminders::load(Arc::clone(self), run);
        if let Some(runs) = inbox.call(Inbox::runs_with_messages).await? {
            let waiting = runs.into_iter().filter(|run| self.runs.is_new_waiting(run));
            stream::iter(waiting).for_each_concurrent(MAX_CONCURRENT_LOADS, load).await;
            return Ok(());
        }
        let asked = stream::iter(self.runs.new_waiting()).map(async |run| {
            match inbox.call(|inbox| inbox.pending(&run, 1)).await {
                Ok(pending) if pending.is_empty() => Ok(()),
                Err(error @ (StoreError::Unavailable { .. } | StoreError::ShutDown)) => Err(error),
                // Once it is loaded, the run says which message is damaged.
                Ok(_) | Err(_) => {
                    load(run).await;
                    Ok(())
                }
            }
        });
        let first = |so_far: Result<(), StoreError>, asked| async move { so_far.and(asked) };
        asked.buffer_unordered(MAX_CONCURRENT_LOADS).fold(Ok(()), first).await
    }

    /// Refuses the messages of a run that is not here if it has ended, in a task of its own.
    fn look_up(self: &Arc<Self>, run: &RunId) {
        let (Some(runtime), Some(_task)) = (self.reminders.runtime(), self.ending.enter()) else { return };
        let Some(looked_up) = LookedUp::enter(self, run) else { return };
        let (engine, id) = (Arc::clone(self), run.clone());
        runtime.spawn(self.ending.track(async move {
            loop {
                let refused = pin!(engine.refuse_if_ended(&id));
                if let Either::Left((Err(error), _)) = select(refused, pin!(engine.ending.begins())).await {
                    tracing::warn!(run = %id, %error, "the messages of a run that is not here could not be refused");
                }
                if !looked_up.again() {
                    return;
                }
            }
        }));
    }

    /// Reads the inbox of a run that has ended and has messages. Does nothing for any other run.
    async fn refuse_if_ended(self: &Arc<Self>, id: &RunId) -> Result<(), ResumeError> {
        let (Some(inbox), Ok(store)) = (&self.inbox, self.journals.store()) else { return Ok(()) };
        let stored = store.runs(&RunQuery::new().run(id.clone())).await.map_err(ResumeError::Store)?;
        let Some(ended) = stored.into_iter().find(|stored| stored.run.status.is_ended()) else {
            return Ok(());
        };
        let pending = inbox.call(|inbox| inbox.pending(id, 1)).await.map_err(ResumeError::Store)?;
        if !pending.is_empty() {
            // Looking back at a run that has ended reads its inbox. A run that was redriven meanwhile ends elsewhere.
            self.load(id, Some(ended.end), LoadedBy::Handle(None)).await?;
        }
        Ok(())
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
            let read = pin!(inbox.read(&shared, &self.journals));
            let is_open = || !shared.status().is_ended();
            let (error, problem) = match select(read, pin!(self.ending.begins())).await {
                Either::Left((Ok(()), _)) => continue,
                Either::Left((Err(Stop::Unavailable(error)), _)) if is_open() => {
                    let problem = problem_of(&error);
                    (error, Some(problem))
                }
                Either::Left((Err(Stop::StoreAway(error)), _)) if is_open() => (error, None),
                Either::Left(_) | Either::Right(_) => {
                    inbox.give_up(&shared);
                    continue;
                }
            };
            tracing::warn!(run = %id, %error, "the messages of a run could not be read");
            inbox.note_problem(id, problem);
            let again = pin!(self.common.clock.sleep(RETRY_DELAY));
            if let Either::Right(_) = select(again, pin!(self.ending.begins())).await {
                inbox.give_up(&shared);
            }
            inbox.asks_again(id);
        }
    }
}
