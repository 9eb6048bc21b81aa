//! Inboxes: messages to runs, stored until the engine that drives the run has applied them (S67).

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{StoreError, StoreFuture};
use crate::id::{Origin, Pause, RunId, Seq};
use crate::panics::locked;

/// Stores messages to runs until they are applied, for clients without a handle on the run: it may be unloaded, in
/// another process, or in none.
///
/// A client puts a message in: the trait has no method for it, since each inbox has its own, such as
/// [`MemoryInbox::put`]. If the client knows an engine that may have the run, it calls
/// [`Engine::notify_inbox`](crate::Engine::notify_inbox); otherwise the message waits. The engine applies the messages of
/// a run in their order: whenever it loads or resumes the run, before anything begins in it, and when it is notified. It
/// settles each once the run's journal has it, or once the run has refused it. A process that is killed in between
/// leaves the message, and the next engine applies it again, which changes nothing: the journal has its id.
///
/// A message to a run that has ended is refused when a caller attaches to the run, or calls
/// [`Engine::notify_inbox`](crate::Engine::notify_inbox); until then it stays. A start of a run reads no inbox. A refusal
/// is settled once the run's journal has the cause, such as an earlier reply.
///
/// **Order.** The calls for one run have a single order, and each sees the effects of all earlier ones. A message that
/// `put` has acknowledged stays until it is settled.
///
/// **Errors.** After an error the engine asks again after five seconds. A run that is being loaded begins nothing meanwhile,
/// has no permit, and its report says so with [`WaitsFor::Inbox`](crate::report::WaitsFor::Inbox). A panic counts as
/// [`StoreError::Unavailable`]. The engine waits for an answer without a limit of time, until it ends: set one in the inbox.
/// After five seconds without an answer the report says so, and the run gives its permit up.
///
/// ```
/// use std::sync::Arc;
/// use workflow_core::prelude::*;
/// use workflow_core::RunOptions;
/// use workflow_core::store::{MemoryInbox, RunMessage};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Order;
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(external)]
/// struct Paid { by: String }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Shipped(String);
/// # struct Orders;
/// # #[workflow]
/// # impl Orders {
/// #     #[step]
/// #     async fn ship(&self, _order: &Order, paid: &Paid) -> Shipped { Shipped(paid.by.clone()) }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let inbox = Arc::new(MemoryInbox::default());
/// let engine = Engine::builder().workflow(Orders).inbox(Arc::clone(&inbox)).build()?;
/// let run = engine.start_with::<Orders>(Order, RunOptions::new().id("order-17")).await?;
///
/// let data = serde_json::json!({ "by": "ada" });
/// inbox.put("order-17", "payment-4", RunMessage::Send { event: "Paid".into(), data })?;
/// assert!(engine.notify_inbox(&"order-17".into()));
/// assert_eq!(run.outcome().await?, Shipped("ada".into()));
/// # Ok(())
/// # }
/// ```
pub trait Inbox: Send + Sync + 'static {
    /// The first messages to a run, oldest first: at most `at_most`, where 0 counts as 1. An empty list for a run without messages.
    /// Changes nothing.
    ///
    /// # Errors
    /// `Unavailable`.
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>>;

    /// Removes a message that the run has applied, or has refused for this reason, if the inbox has just this message.
    /// Another one that a client put in with the same id meanwhile stays. Idempotent.
    ///
    /// `message` is the value that [`pending`](Self::pending) returned. The inbox must find it equal to the one that it has,
    /// in its content as well as its id: an inbox that stores less, such as a coarser time, returns from `pending` just that.
    ///
    /// # Errors
    /// `Unavailable`; the message may or may not be removed then.
    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()>;

    /// The runs that have messages, each once and in any order. Default: `None`, the inbox does not list them.
    ///
    /// An engine that takes up waiting runs asks once, and loads those that have messages. Of an inbox that does not list
    /// them it asks for the first [pending](Self::pending) message of each of these runs.
    ///
    /// # Errors
    /// `Unavailable`.
    fn runs_with_messages(&self) -> StoreFuture<Option<Vec<RunId>>> {
        StoreFuture::ready(Ok(None))
    }
}

impl<I: Inbox + ?Sized> Inbox for Arc<I> {
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        (**self).pending(run, at_most)
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        (**self).settle(run, message, result)
    }

    fn runs_with_messages(&self) -> StoreFuture<Option<Vec<RunId>>> {
        (**self).runs_with_messages()
    }
}

/// A message to a run in its inbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InboxMessage {
    /// The id, unique among the acts of the run: see [`Origin::id`]. At most 256 bytes: the run refuses a longer one.
    pub id: Arc<str>,
    /// The author, by any name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<str>>,
    /// The message.
    pub message: RunMessage,
    /// When the inbox took it, by its own clock.
    pub at: SystemTime,
}

impl InboxMessage {
    /// A message without an author.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use workflow_core::store::{InboxMessage, RunMessage};
    ///
    /// let message = InboxMessage::new("stop-4", RunMessage::Unpause, SystemTime::UNIX_EPOCH).by("ada");
    /// assert_eq!(message.origin().to_string(), "ada (stop-4)");
    /// ```
    pub fn new(id: impl Into<Arc<str>>, message: RunMessage, at: SystemTime) -> Self {
        Self { id: id.into(), by: None, message, at }
    }

    /// Sets the author.
    pub fn by(self, by: impl Into<Arc<str>>) -> Self {
        Self { by: Some(by.into()), ..self }
    }

    /// The origin that the journal has once the message is applied.
    pub fn origin(&self) -> Origin {
        let origin = Origin::new().id(Arc::clone(&self.id));
        match &self.by {
            Some(by) => origin.by(Arc::clone(by)),
            None => origin,
        }
    }
}

/// An act of a client on a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunMessage {
    /// An event from outside: [`AnyRun::send_json`](crate::AnyRun::send_json).
    Send {
        /// The wire name of the event.
        event: Arc<str>,
        /// Its data.
        data: Value,
    },
    /// The reply to a request: [`AnyRun::reply_json`](crate::AnyRun::reply_json).
    Reply {
        /// The sequence number of the request.
        request: Seq,
        /// The data of the reply.
        data: Value,
    },
    /// A cancel: [`AnyRun::cancel`](crate::AnyRun::cancel).
    Cancel {
        /// The reason.
        reason: Arc<str>,
    },
    /// A pause: [`AnyRun::pause`](crate::AnyRun::pause).
    Pause {
        /// The fate of executions under way.
        how: Pause,
    },
    /// The end of a pause: [`AnyRun::unpause`](crate::AnyRun::unpause).
    Unpause,
}

impl RunMessage {
    /// The name of the act: `send`, `reply`, `cancel`, `pause` or `unpause`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Send { .. } => "send",
            Self::Reply { .. } => "reply",
            Self::Cancel { .. } => "cancel",
            Self::Pause { .. } => "pause",
            Self::Unpause => "unpause",
        }
    }
}

/// A message that its run has refused, also because it had ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RefusedMessage {
    /// The run.
    pub run: RunId,
    /// The message.
    pub message: InboxMessage,
    /// The reason, as an error of the call would say it.
    pub reason: String,
}

impl RefusedMessage {
    /// How many refused messages an inbox of this project keeps; the oldest go first.
    pub const KEPT: usize = 1_000;

    /// A message to this run that was refused for this reason.
    pub fn new(run: RunId, message: InboxMessage, reason: String) -> Self {
        Self { run, message, reason }
    }
}

/// An inbox in memory, for tests and for engines without a store. Its messages end with the process.
pub struct MemoryInbox {
    state: Mutex<State>,
    capacity: usize,
}

#[derive(Default)]
struct State {
    pending: HashMap<RunId, VecDeque<InboxMessage>>,
    /// How many messages are pending, of all runs.
    count: usize,
    /// Oldest first.
    refused: VecDeque<RefusedMessage>,
}

/// The inbox has no room for another message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the inbox has {capacity} messages, and has no room for more: let engines take some, or enlarge it")]
#[non_exhaustive]
pub struct InboxFull {
    /// The most pending messages.
    pub capacity: usize,
}

impl Default for MemoryInbox {
    /// An inbox with room for 10,000 pending messages.
    fn default() -> Self {
        Self::with_capacity(10_000)
    }
}

impl MemoryInbox {
    /// An inbox with room for so many pending messages, at least one.
    pub fn with_capacity(messages: usize) -> Self {
        Self { state: Mutex::default(), capacity: messages.max(1) }
    }

    /// Puts a message in. A message that is pending with the same id stays as it is.
    ///
    /// # Errors
    /// [`InboxFull`].
    pub fn put(
        &self,
        run: impl Into<RunId>,
        id: impl Into<Arc<str>>,
        message: RunMessage,
    ) -> Result<(), InboxFull> {
        self.put_message(run, InboxMessage::new(id, message, SystemTime::now()))
    }

    /// The same, with an author and a time.
    ///
    /// # Errors
    /// [`InboxFull`].
    pub fn put_message(&self, run: impl Into<RunId>, message: InboxMessage) -> Result<(), InboxFull> {
        let mut state = locked(&self.state);
        let (run, capacity) = (run.into(), self.capacity);
        let pending = state.pending.get(&run);
        if pending.is_some_and(|pending| pending.iter().any(|known| known.id == message.id)) {
            return Ok(());
        }
        if state.count >= capacity {
            return Err(InboxFull { capacity });
        }
        state.pending.entry(run).or_default().push_back(message);
        state.count += 1;
        Ok(())
    }

    /// The last refused messages, oldest first: at most [`RefusedMessage::KEPT`].
    pub fn refused(&self) -> Vec<RefusedMessage> {
        locked(&self.state).refused.iter().cloned().collect()
    }
}

impl Inbox for MemoryInbox {
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        let state = locked(&self.state);
        let pending = state.pending.get(run).into_iter().flatten();
        StoreFuture::ready(Ok::<_, StoreError>(pending.take(at_most.max(1)).cloned().collect()))
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        let mut state = locked(&self.state);
        let Some(pending) = state.pending.get_mut(run) else { return StoreFuture::ready(Ok(())) };
        let at = pending.iter().position(|pending| pending == message);
        let message = at.and_then(|at| pending.remove(at));
        if pending.is_empty() {
            state.pending.remove(run);
        }
        if let Some(message) = message {
            state.count -= 1;
            if let Err(reason) = result {
                if state.refused.len() == RefusedMessage::KEPT {
                    state.refused.pop_front();
                }
                state.refused.push_back(RefusedMessage::new(run.clone(), message, reason));
            }
        }
        StoreFuture::ready(Ok(()))
    }

    fn runs_with_messages(&self) -> StoreFuture<Option<Vec<RunId>>> {
        StoreFuture::ready(Ok(Some(locked(&self.state).pending.keys().cloned().collect())))
    }
}

impl fmt::Debug for MemoryInbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = locked(&self.state);
        f.debug_struct("MemoryInbox")
            .field("pending", &state.count)
            .field("refused", &state.refused.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn ids(inbox: &MemoryInbox, run: &str, at_most: usize) -> Vec<String> {
        let pending = inbox.pending(&run.into(), at_most).now_or_never().expect("it is ready").unwrap();
        pending.iter().map(|message| message.id.to_string()).collect()
    }

    fn settle(inbox: &MemoryInbox, id: &str, result: &Result<(), String>) {
        let run = "a".into();
        let pending = inbox.pending(&run, 1_000).now_or_never().expect("it is ready").unwrap();
        let Some(message) = pending.into_iter().find(|message| *message.id == *id) else { return };
        let mut another = message.clone();
        another.message = RunMessage::Pause { how: Pause::Now };
        for message in [another, message.clone(), message] {
            inbox.settle(&run, &message, result.clone()).now_or_never().expect("it is ready").unwrap();
        }
    }

    // S67
    #[test]
    fn messages_stay_in_their_order_until_they_are_settled() {
        let inbox = MemoryInbox::default();
        for id in ["1", "2", "3", "2"] {
            inbox.put("a", id, RunMessage::Unpause).unwrap();
        }
        assert_eq!((ids(&inbox, "a", 2), ids(&inbox, "b", 2)), (vec!["1".into(), "2".into()], vec![]));
        assert_eq!(ids(&inbox, "a", 0), ["1"]);
        for _ in 0..2 {
            settle(&inbox, "2", &Err("no".into()));
        }
        assert_eq!(ids(&inbox, "a", 9), ["1", "3"]);
        let refused = inbox.refused();
        assert_eq!((refused.len(), &*refused[0].message.id, &refused[0].reason[..]), (1, "2", "no"));
    }

    // S67
    #[test]
    fn an_inbox_is_bounded() {
        let inbox = MemoryInbox::with_capacity(1);
        inbox.put("a", "1", RunMessage::Unpause).unwrap();
        assert_eq!(inbox.put("b", "1", RunMessage::Unpause), Err(InboxFull { capacity: 1 }));
        inbox.put("a", "1", RunMessage::Unpause).unwrap();
        settle(&inbox, "1", &Ok(()));
        for refused in 0..RefusedMessage::KEPT + 7 {
            inbox.put("a", refused.to_string(), RunMessage::Unpause).unwrap();
            settle(&inbox, &refused.to_string(), &Err("no".into()));
        }
        let refused = inbox.refused();
        assert_eq!((refused.len(), &*refused[0].message.id), (RefusedMessage::KEPT, "7"));
        assert!(locked(&inbox.state).pending.is_empty());
    }

    // S67
    #[test]
    fn messages_have_json() {
        let message = RunMessage::Reply { request: Seq(4), data: serde_json::json!({ "ok": true }) };
        let message = InboxMessage::new("1", message, SystemTime::UNIX_EPOCH);
        let json = serde_json::to_value(&message).unwrap();
        assert_eq!(json["message"], serde_json::json!({ "reply": { "request": 4, "data": { "ok": true } } }));
        assert_eq!(serde_json::from_value::<InboxMessage>(json).unwrap(), message);
    }
}
