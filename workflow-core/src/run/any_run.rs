//! The handle of a run of any workflow: what a program does with a run that it has started.

use std::any::Any;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::{BoxFuture, Either, select};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::RunShared;
use super::outside::{Entrance, read_reply, unknown_event};
use super::view::EndedState;
use crate::display::{DisplayPosition, DisplayStream};
use crate::event::{Answered, AnyEvent, EventType, ExternalEvent, Request};
use crate::explain::Explanation;
use crate::id::{MAX_ORIGIN_BYTES, Origin, Pause, RunId, RunStatus, Seq, ThreadId};
use crate::json;
use crate::outcome::{RunError, SendError};
use crate::panics::Contained;
use crate::report::{OpenRequest, PendingTimer, RequestId, RunReport};
use crate::store::StoreError;
use crate::table::EventIndex;

/// Makes the log entry of a reply from its request and the number of that. Fails if the request has another type.
pub(crate) type MakeReply = Box<dyn FnOnce(Seq, &AnyEvent) -> Result<AnyEvent, SendError> + Send>;

/// The request that a reply is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReplyTarget {
    /// The request of this number.
    At(Seq),
    /// The only open request of this type, which has this number if the reply was read for it (S79).
    OnlyOf(EventIndex, Option<Seq>),
}

/// A message from a handle to its run, with the channel for the answer.
pub(crate) enum Command {
    Send {
        event: AnyEvent,
        index: EventIndex,
        done: oneshot::Sender<Result<(), SendError>>,
    },
    Reply {
        to: ReplyTarget,
        make: MakeReply,
        done: oneshot::Sender<Result<(), SendError>>,
    },
    Timers {
        done: oneshot::Sender<Vec<PendingTimer>>,
    },
    RetryNow {
        done: oneshot::Sender<usize>,
    },
    Requests {
        done: oneshot::Sender<Vec<OpenRequest>>,
    },
    Explain {
        done: oneshot::Sender<Explanation>,
    },
    Report {
        done: oneshot::Sender<RunReport>,
    },
    /// The answer says whether the run ends.
    Cancel {
        reason: Arc<str>,
        done: oneshot::Sender<bool>,
    },
    Pause {
        how: Pause,
        done: oneshot::Sender<Result<(), SendError>>,
    },
    Unpause {
        done: oneshot::Sender<Result<(), SendError>>,
    },
    /// Has the run write that its engine keeps it. The answer comes once the store has that.
    Keep {
        done: oneshot::Sender<()>,
    },
    /// A send, a reply, a cancel, a pause or an unpause, with an origin. Boxed, so that the others need no room for it.
    By(Box<(Arc<Origin>, Command)>),
}

impl Command {
    /// Whether it cancels the run.
    pub(super) fn is_cancel(&self) -> bool {
        match self {
            Self::Cancel { .. } => true,
            Self::By(by) => by.1.is_cancel(),
            _ => false,
        }
    }

    /// Whether it pauses the run.
    pub(super) fn is_pause(&self) -> bool {
        match self {
            Self::Pause { .. } => true,
            Self::By(by) => by.1.is_pause(),
            _ => false,
        }
    }

    /// Whether it unpauses the run.
    pub(super) fn is_unpause(&self) -> bool {
        match self {
            Self::Unpause { .. } => true,
            Self::By(by) => by.1.is_unpause(),
            _ => false,
        }
    }
}

/// A handle of a run of any workflow.
///
/// It is for front ends, which know workflows and events by name. [`RunHandle`](crate::RunHandle) is the handle for
/// programs that know the type of the workflow, and has these methods too.
///
/// Clones are handles of the same run. A run does not depend on its handles: it continues after the last one is dropped.
/// All methods can be called at any time. Their futures are `Send`; dropping one abandons the call, never the run. If the run
/// stopped here and its journal is open, calls that would reach it return [`SendError::Stopped`].
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet { name: String }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeting(String);
/// # struct Greeter;
/// # #[workflow]
/// # impl Greeter {
/// #     #[step]
/// #     async fn greet(&self, greet: &Greet) -> Greeting {
/// #         Greeting(format!("Hello, {}!", greet.name))
/// #     }
/// # }
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Greeter).build()?;
/// let id = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?.id().clone();
///
/// if let Some(run) = engine.find(&id) {
///     assert_eq!(run.workflow(), "Greeter");
///     let stop = run.outcome_any().await?;
///     assert_eq!((stop.name(), stop.to_json()?), ("Greeting", serde_json::json!("Hello, Ada!")));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AnyRun {
    pub(super) shared: Arc<RunShared>,
    /// Of the messages of this handle.
    origin: Option<Arc<Origin>>,
}

impl AnyRun {
    pub(crate) fn new(shared: Arc<RunShared>) -> Self {
        Self { shared, origin: None }
    }

    /// The same handle, whose events, replies, cancels, pauses and unpauses have this origin.
    ///
    /// The journal and the report have it. Its [id](Origin::id) makes a call idempotent: the call does nothing and succeeds
    /// if the run's journal has a start, an event, a reply, a cancel, a pause or an unpause with the same id, also after the run's end. So a
    /// caller that got no answer can repeat the call. The arguments are checked first: a repetition that cannot be read or
    /// is too large fails. A refused call leaves no id.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::Origin;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Open;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(external)]
    /// # struct Note(u32);
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Closed(u32);
    /// struct Desk;
    ///
    /// #[workflow]
    /// impl Desk {
    ///     #[step]
    ///     async fn close(&self, _open: &Open, notes: &FixedList<Note, 2>) -> Closed {
    ///         Closed(notes.iter().map(|note| note.0).sum())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Desk).build()?;
    /// let run = engine.start::<Desk>(Open).await?;
    /// let first = run.with_origin(Origin::new().by("ada").id("message-1"));
    /// first.send(Note(1)).await?;
    /// first.send(Note(1)).await?; // a repetition
    /// run.with_origin(Origin::new().by("ada").id("message-2")).send(Note(2)).await?;
    /// assert_eq!(run.outcome().await?, Closed(3));
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_origin(&self, origin: Origin) -> Self {
        Self { shared: Arc::clone(&self.shared), origin: Some(Arc::new(origin)) }
    }

    /// The engine of the run, without its type.
    pub(crate) fn engine_parts(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self.shared.common.engine()?)
    }

    /// The id of the run.
    pub fn id(&self) -> &RunId {
        &self.shared.id
    }

    /// The name of the run's workflow.
    pub fn workflow(&self) -> &str {
        self.shared.table.name()
    }

    /// The id of the thread to which the run belongs.
    pub fn thread(&self) -> &ThreadId {
        self.shared.thread()
    }

    /// The time now, by the engine's clock, which the deadlines of requests and timers are of.
    pub fn now(&self) -> SystemTime {
        self.shared.common.clock.now()
    }

    /// The current status of the run.
    pub fn status(&self) -> RunStatus {
        self.shared.status()
    }

    /// Waits until the run is settled: it [waits](RunStatus::Waiting), is [paused](RunStatus::Paused), or has ended. Returns
    /// that status.
    ///
    /// A run waits for a timer, or for an event or a reply from outside. A paused one waits to be unpaused. A run whose step
    /// waits for a child works, also while the child waits for the outside. A settled *branch* of a fan-out is another
    /// matter: it has no work left, and an open request keeps it from settling.
    pub async fn settled(&self) -> RunStatus {
        let is_settled =
            |status| matches!(status, RunStatus::Waiting | RunStatus::Paused) || RunStatus::is_ended(status);
        self.shared.wait_for(is_settled).await
    }

    /// Subscribes to the run's display, from the oldest item that the run still has.
    ///
    /// A run keeps its last 1,024 items by default. Any number of viewers can subscribe. A viewer that falls
    /// further behind receives the number of items that it missed, and never slows the run. The stream ends
    /// after [`DisplayItem::Ended`](crate::DisplayItem::Ended).
    pub fn display(&self) -> DisplayStream {
        self.view(None)
    }

    /// Subscribes to the run's display behind this [position](DisplayStream::position), which an earlier viewer has read.
    ///
    /// Items that the run has dropped meanwhile are [missed](crate::DisplayItem::Missed), with their number. After a restart
    /// of the engine the run has none of the earlier items: the viewer first receives `Missed` without a number, and then
    /// everything since the restart. After the position of `Ended` it receives `Ended` again. A position of the future
    /// counts as that of the last item. [`DisplayPosition`] has an example.
    pub fn display_after(&self, position: DisplayPosition) -> DisplayStream {
        self.view(Some(position))
    }

    fn view(&self, after: Option<DisplayPosition>) -> DisplayStream {
        let viewer = self.shared.display().subscribe(after, Some(Arc::clone(&self.shared) as _));
        self.shared.view();
        viewer
    }

    /// Sends an event to the run, and returns once the event is in the log.
    ///
    /// A stop event of the workflow ends the run. If the returned future is dropped early, the event may or may not
    /// enter the log.
    ///
    /// # Errors
    /// [`SendError::NotTaken`] if the event's type is none of the workflow's. [`SendError::Ended`] if the run has ended. [`SendError::TooLarge`] if the event is larger than the
    /// engine's [`max_event_bytes`](crate::EngineBuilder::max_event_bytes). [`SendError::Unfit`] if the event
    /// has no JSON that the engine's store could give back. [`SendError::Refused`] if the store refuses the
    /// event for another reason. [`SendError::NotLoaded`] if the run waits unloaded in its store, and the
    /// store cannot read it now.
    pub fn send<E: ExternalEvent>(&self, event: E) -> BoxFuture<'_, Result<(), SendError>> {
        let (index, event) = (self.index_of(&E::TYPE), AnyEvent::new(event));
        Box::pin(async move { self.send_to(index?, event).await })
    }

    /// Sends an event as JSON, by its name, and returns once the event is in the log.
    ///
    /// The JSON is read as the event's type before anything happens.
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Open;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(external)]
    /// # struct Note { lines: Vec<String> }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Closed(usize);
    /// # struct Desk;
    /// # #[workflow]
    /// # impl Desk {
    /// #     #[step]
    /// #     async fn close(&self, _open: &Open, note: &Note) -> Closed { Closed(note.lines.len()) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Desk).build()?;
    /// let run = engine.start_json("Desk", "Open", (), Default::default()).await?;
    ///
    /// let unfit = run.send_json("Note", json!({"lines": ["a", 2]})).await.unwrap_err();
    /// assert!(unfit.to_string().starts_with("`Note` cannot be read: at `lines[1]`, "));
    /// let unknown = run.send_json("Close", ()).await.unwrap_err();
    /// assert_eq!(unknown.to_string(), "the workflow takes no external event `Close`: it has `Note`");
    ///
    /// run.send_json("Note", json!({"lines": ["a", "b"]})).await?;
    /// assert_eq!(run.outcome_any().await?.to_json()?, json!(2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SendError::UnknownEvent`] with the events that fit. [`SendError::Unfit`] with the path of the mistake.
    /// Otherwise those of [`send`](Self::send).
    pub fn send_json(&self, event: &str, data: impl Serialize) -> BoxFuture<'_, Result<(), SendError>> {
        let read = Entrance::Send.read(&self.shared.table, event, json::fit(&data, usize::MAX));
        Box::pin(async move {
            match read {
                Ok((index, event)) => self.send_to(index, event).await,
                Err(_) if self.shared.status().is_ended() => self.unless_known(self.ended().await).await,
                Err(refused) => Err(refused.into()),
            }
        })
    }

    async fn send_to(&self, index: EventIndex, mut event: AnyEvent) -> Result<(), SendError> {
        self.check_origin()?;
        self.shared.common.event_check().check(&mut event, 1)?;
        match self.ask(|done| self.by(Command::Send { event, index, done })).await {
            Ok(sent) => sent,
            Err(no_answer) => self.unless_known(no_answer.into()).await,
        }
    }

    /// The command, with the origin of the handle.
    fn by(&self, command: Command) -> Command {
        match &self.origin {
            Some(origin) => Command::By(Box::new((Arc::clone(origin), command))),
            None => command,
        }
    }

    /// Refuses an origin that is too long.
    fn check_origin(&self) -> Result<(), SendError> {
        let excess = self.origin.as_ref().and_then(|origin| origin.excess());
        excess.map_or(Ok(()), |bytes| Err(SendError::OriginTooLong { bytes, limit: MAX_ORIGIN_BYTES }))
    }

    /// The answer of a run that has ended or stopped here: `Ok` if its journal has the act of this origin.
    async fn unless_known(&self, error: SendError) -> Result<(), SendError> {
        let (Some(origin), SendError::Ended { .. } | SendError::Stopped { .. }) = (&self.origin, &error)
        else {
            return Err(error);
        };
        let kept = self.kept().await.ok();
        if kept.is_some_and(|kept| kept.knows(origin)) { Ok(()) } else { Err(error) }
    }

    /// Replies to an open request, with the reply type of the request.
    ///
    /// [`requests`](Self::requests) lists the open requests. Returns once the reply is in the log.
    ///
    /// # Errors
    /// [`SendError::Answered`] if the request has a reply already. [`SendError::Expired`] if it has expired.
    /// [`SendError::NotOpen`] if there is no such request. [`SendError::WrongRequest`] if the request is not
    /// an `R`. [`SendError::Ended`] if the run has ended.
    ///
    /// The request stays open after [`SendError::TooLarge`] if the reply is too large, [`SendError::Unfit`]
    /// if it has no JSON that the engine's store could give back, [`SendError::Refused`] if the store refuses
    /// it for another reason, and [`SendError::NotLoaded`] if the run waits unloaded in its store, and the
    /// store cannot read it now.
    pub async fn reply<R: Request>(&self, request: RequestId<R>, reply: R::Reply) -> Result<(), SendError> {
        // `Contained`: the run drops a reply that it does not take, and that drop may panic.
        let reply = Contained::new(reply);
        self.reply_typed::<R>(ReplyTarget::At(request.seq()), reply).await
    }

    async fn reply_typed<R: Request>(
        &self,
        to: ReplyTarget,
        reply: Contained<R::Reply>,
    ) -> Result<(), SendError> {
        // Serialised here, because the run's task must not run user code for a caller.
        let json = self.shared.common.event_check().check_value(R::REPLY_NAME, &*reply)?;
        let make: MakeReply = Box::new(move |request, asked| match asked.downcast::<R>() {
            Some(asked) => Ok(answer::<R>(asked, reply, json)),
            None => {
                Err(SendError::WrongRequest { request, asked: asked.name().to_owned(), answered: R::NAME })
            }
        });
        self.reply_with(to, make).await
    }

    /// Replies to the one open request of type `R`.
    ///
    /// The run finds the request and takes the reply in one act, and the call returns once the reply is in the log. If
    /// several people may answer, or the run may ask again, give the handle an [origin](Self::with_origin): a repetition with
    /// the same id changes nothing and succeeds, also if the request is closed by then, or another one is open. A program that
    /// shows a person a certain request replies to that one, with its number, by [`reply`](Self::reply).
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Order { cents: u64 }
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(request, reply = bool)]
    /// # struct Approve { cents: u64 }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Decided(bool);
    /// # struct Orders;
    /// #[workflow]
    /// impl Orders {
    ///     #[step]
    ///     async fn ask(&self, order: &Order) -> Approve { Approve { cents: order.cents } }
    ///     #[step]
    ///     async fn decide(&self, approved: &Reply<Approve>) -> Decided { Decided(**approved) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Orders).build()?;
    /// let run = engine.start::<Orders>(Order { cents: 500 }).await?;
    /// run.settled().await;
    /// run.reply_to::<Approve>(true).await?;
    /// assert_eq!(run.outcome().await?, Decided(true));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SendError::SeveralOpen`] with the numbers of the open requests of the type, of which you choose one with
    /// [`reply`](Self::reply). If none is open, [`SendError::Answered`], [`SendError::Expired`] or [`SendError::NotOpen`]
    /// for the latest one, and [`SendError::NotAsked`] if the run has made none. [`SendError::UnknownRequest`] if the workflow has no
    /// request of this Rust type; those of a run-time workflow have none, and take
    /// [`reply_to_json`](Self::reply_to_json). Otherwise those of [`reply`](Self::reply).
    pub async fn reply_to<R: Request>(&self, reply: R::Reply) -> Result<(), SendError> {
        let reply = Contained::new(reply);
        let index = self.shared.table.by_type.get(&R::TYPE.type_id());
        let index = index.ok_or_else(|| self.unknown_request(R::NAME))?;
        self.reply_typed::<R>(ReplyTarget::OnlyOf(*index, None), reply).await
    }

    /// Replies with JSON, for front ends that know no types. [`OpenRequest`] has an example.
    ///
    /// # Errors
    /// [`SendError::UnfitReply`] if the JSON is no reply to this request, which then stays open; otherwise
    /// those of [`reply`](Self::reply).
    pub async fn reply_json(&self, request: Seq, reply: serde_json::Value) -> Result<(), SendError> {
        self.check_origin()?;
        let open = match self.requests().await {
            Ok(open) => open,
            Err(error) => return self.unless_known(error).await,
        };
        let asked = open.into_iter().find(|open| open.seq() == request);
        let read = asked.map(|asked| self.read_reply(&asked, reply)).transpose()?;
        let not_open = SendError::NotOpen { request };
        self.reply_with(ReplyTarget::At(request), Box::new(move |_, _| read.ok_or(not_open))).await
    }

    /// Replies with JSON to the one open request of this name, as [`reply_to`](Self::reply_to) does for its type.
    ///
    /// The JSON is read for the request that is open when the call begins. If that is closed meanwhile, another one does not
    /// get the reply.
    ///
    /// # Errors
    /// [`SendError::UnknownRequest`] with the names that the workflow has. [`SendError::UnfitReply`] if the JSON is no reply
    /// to the request. Otherwise those of [`reply_to`](Self::reply_to).
    pub async fn reply_to_json(&self, request: &str, reply: serde_json::Value) -> Result<(), SendError> {
        self.check_origin()?;
        let table = &self.shared.table;
        let index = table.event_named(request).filter(|index| table.event(*index).roles.is_request());
        let index = index.ok_or_else(|| self.unknown_request(request))?;
        let open = match self.requests().await {
            Ok(open) => open,
            Err(error) => return self.unless_known(error).await,
        };
        let open: Vec<OpenRequest> = open.into_iter().filter(|open| open.name() == request).collect();
        let (seq, read) = match &open[..] {
            [only] => (Some(only.seq()), Ok(self.read_reply(only, reply)?)),
            // The run says why, unless it has the origin of the call, or a request is open by now.
            [] => (None, Err(SendError::NotAsked { asked: request.into() })),
            several => (None, Err(SendError::several(request.into(), several.iter().map(OpenRequest::seq)))),
        };
        self.reply_with(ReplyTarget::OnlyOf(index, seq), Box::new(move |_, _| read)).await
    }

    /// Reads a reply to this request. Here, because the run's task must not run user code for a caller.
    fn read_reply(&self, asked: &OpenRequest, reply: serde_json::Value) -> Result<AnyEvent, SendError> {
        let mut read = read_reply(&self.shared.table, asked.seq(), &asked.event, reply)?;
        self.shared.common.event_check().check(&mut read, 1)?;
        Ok(read)
    }

    fn unknown_request(&self, asked: &str) -> SendError {
        let requests = self.shared.table.events.iter().filter(|row| row.roles.is_request());
        let (asked, fitting) = unknown_event(asked, requests.map(|row| &row.name));
        SendError::UnknownRequest { asked, fitting }
    }

    async fn reply_with(&self, to: ReplyTarget, make: MakeReply) -> Result<(), SendError> {
        self.check_origin()?;
        match self.ask(|done| self.by(Command::Reply { to, make, done })).await {
            Ok(replied) => replied,
            Err(no_answer) => self.unless_known(no_answer.into()).await,
        }
    }

    /// Lists the open requests, oldest first.
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run has ended: no request is open any more. [`SendError::NotLoaded`] if the
    /// run waits unloaded in its store, and the store cannot read it now.
    pub async fn requests(&self) -> Result<Vec<OpenRequest>, SendError> {
        Ok(self.ask(|done| Command::Requests { done }).await?)
    }

    /// Lists the pending timers in the order in which they will fire.
    ///
    /// These are the timers that steps have set, and those of requests that expire.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct OrderPlaced;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Lapsed;
    /// # struct Orders;
    /// # #[workflow]
    /// # impl Orders {
    /// #     #[step]
    /// #     async fn place(&self, _order: &OrderPlaced) -> Timer<Lapsed> {
    /// #         Timer::after(Duration::from_secs(3_600), Lapsed)
    /// #     }
    /// # }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Orders).build()?;
    /// let run = engine.start::<Orders>(OrderPlaced).await?;
    /// run.settled().await;
    /// let timers = run.timers().await?;
    /// assert_eq!((&*timers[0].step, &*timers[0].event), ("place", "Lapsed"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run has ended: no timer is pending any more. [`SendError::NotLoaded`] if the
    /// run waits unloaded in its store, and the store cannot read it now.
    pub async fn timers(&self) -> Result<Vec<PendingTimer>, SendError> {
        Ok(self.ask(|done| Command::Timers { done }).await?)
    }

    /// Begins the next attempts of failed executions now, without the rest of their delays.
    ///
    /// Returns how many waited for a delay. Attempts keep their numbers, and later failures have the delays of their
    /// policy again. The journal has the call, so an attempt does not wait again after a restart.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Order;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Paid;
    /// struct Orders;
    ///
    /// #[workflow]
    /// impl Orders {
    ///     #[step]
    ///     async fn pay(&self, _order: &Order, info: &RunInfo) -> Result<Paid, StepError> {
    ///         // The second attempt follows after ten seconds.
    ///         if info.attempt() == 1 { Err(StepError::transient("no route to the bank")) } else { Ok(Paid) }
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Orders).build()?;
    /// let run = engine.start::<Orders>(Order).await?;
    /// while run.retry_now().await? == 0 {
    ///     tokio::task::yield_now().await;
    /// }
    /// assert_eq!(run.outcome().await?, Paid);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run has ended. [`SendError::NotLoaded`] if the run waits unloaded in its store,
    /// and the store cannot read it now.
    pub async fn retry_now(&self) -> Result<usize, SendError> {
        Ok(self.ask(|done| Command::RetryNow { done }).await?)
    }

    /// Explains why each step ran or did not. Works at any time, also after the end.
    ///
    /// # Errors
    /// [`RunError::Detached`] if the task of the run disappeared, and the run's state with it.
    /// [`RunError::Store`] if the run waits unloaded in its store, and the store cannot read it now.
    pub async fn explain(&self) -> Result<Arc<Explanation>, RunError> {
        match self.ask(|done| Command::Explain { done }).await {
            Ok(explanation) => Ok(Arc::new(explanation)),
            Err(NoAnswer::NotLoaded { source, .. }) => Err(RunError::Store { source }),
            Err(NoAnswer::Ended(_)) => Ok(self.kept().await?.explanation(&self.shared)),
        }
    }

    /// Cancels the run, and returns once it has ended.
    ///
    /// The run drops its executions, and nothing enters its log any more. Its clean-up steps, if it has any, run before it
    /// ends. A cancel of a run that cleans up already changes nothing: it waits for the end, and returns
    /// [`SendError::Ended`].
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::RunStatus;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Print { pages: u32 }
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Printed;
    /// # struct Printer;
    /// # #[workflow]
    /// # impl Printer {
    /// #     #[step]
    /// #     async fn print(&self, _print: &Print) -> Printed { std::future::pending().await }
    /// # }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = Engine::builder().workflow(Printer).build()?;
    /// let run = engine.start::<Printer>(Print { pages: 900 }).await?;
    /// run.cancel("out of paper").await?;
    /// assert_eq!(run.status(), RunStatus::Cancelled);
    /// assert_eq!(run.outcome().await.unwrap_err().to_string(), "the run was cancelled: out of paper");
    /// assert!(run.cancel("again").await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run had ended before. [`SendError::Stopped`] if the run stops here and its journal does
    /// not have the cancel: its store failed, or another engine has the run. [`SendError::NotLoaded`] if the run waits
    /// unloaded in its store, and the store cannot read it now.
    pub async fn cancel(&self, reason: impl Into<Arc<str>>) -> Result<(), SendError> {
        self.check_origin()?;
        let reason = reason.into();
        match self.ask(|done| self.by(Command::Cancel { reason, done })).await {
            Ok(false) => Ok(()),
            Ok(true) => match self.shared.finished().await.left_by() {
                Some(source) if self.shared.common.is_durable && !self.shared.signals.cancel_is_kept() => {
                    self.unless_known(SendError::Stopped { run: self.shared.id.clone(), source }).await
                }
                _ => Ok(()),
            },
            Err(no_answer) => self.unless_known(no_answer.into()).await,
        }
    }

    /// Pauses the run, and returns once its journal has that.
    ///
    /// From then on no execution, attempt or precondition begins. Events, replies and timers enter the log as ever, and
    /// the steps that they trigger begin once the run is [unpaused](Self::unpause). Executions under way continue, or are
    /// dropped, as `how` says. An execution that ends, a stop event from outside, or a cancel can end the paused run. Once nothing
    /// runs, the status is [`Paused`](RunStatus::Paused): the run has no permit, its active time stands still, and the
    /// engine may unload it.
    ///
    /// Children that executions wait for pause with the run. A pause survives restarts and other engines.
    /// Pausing a paused run changes nothing, except that [`Pause::Now`] drops what still runs.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::{Pause, RunStatus};
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Order;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(external)]
    /// # struct Paid;
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Shipped;
    /// # struct Orders;
    /// #[workflow]
    /// impl Orders {
    ///     #[step]
    ///     async fn ship(&self, _order: &Order, _paid: &Paid) -> Shipped { Shipped }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Orders).build()?;
    /// let run = engine.start::<Orders>(Order).await?;
    ///
    /// run.pause(Pause::AfterRunning).await?;
    /// assert_eq!(run.settled().await, RunStatus::Paused);
    /// run.send(Paid).await?;
    /// let report = run.report_so_far().await?;
    /// assert_eq!((report.executions("ship"), report.waiting[0].waits_for.to_string()), (0, "the run is paused".into()));
    ///
    /// run.unpause().await?;
    /// assert_eq!(run.outcome().await?, Shipped);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run has ended, or cleans up. [`SendError::NoStore`] for [`Pause::Now`] without a store.
    /// [`SendError::NotLoaded`] if the run waits unloaded in its store, and the store cannot read it now.
    pub async fn pause(&self, how: Pause) -> Result<(), SendError> {
        self.check_origin()?;
        match self.ask(|done| self.by(Command::Pause { how, done })).await {
            Ok(paused) => paused,
            Err(no_answer) => self.unless_known(no_answer.into()).await,
        }
    }

    /// Unpauses the run, and returns once its journal has that.
    ///
    /// Preconditions that were deferred are asked first. Then deferred executions start, in the order in which they
    /// became due. A child that is paused with its parent continues with the parent. Unpausing a run that is not paused
    /// changes nothing. [`pause`](Self::pause) has an example.
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run has ended, or cleans up. [`SendError::NotLoaded`] if the run waits unloaded in its
    /// store, and the store cannot read it now.
    pub async fn unpause(&self) -> Result<(), SendError> {
        self.check_origin()?;
        match self.ask(|done| self.by(Command::Unpause { done })).await {
            Ok(unpaused) => unpaused,
            Err(no_answer) => self.unless_known(no_answer.into()).await,
        }
    }

    /// Waits for the end, and returns the stop event. Can be called any number of times.
    ///
    /// # Errors
    /// A [`RunError`] with the reason why the run did not complete.
    pub async fn outcome_any(&self) -> Result<AnyEvent, RunError> {
        self.shared.outcome().await
    }

    /// Waits for the end, and returns the run's report.
    ///
    /// # Errors
    /// [`RunError::Detached`] if the task of the run disappeared, and the run's state with it. A failed run
    /// has a report like any other.
    pub async fn report(&self) -> Result<Arc<RunReport>, RunError> {
        self.shared.finished().await;
        self.shared.report().ok_or(RunError::Detached)
    }

    /// Returns the report of the run so far. After the end it is that of [`report`](Self::report).
    ///
    /// Executions that wait for their turn are listed in [`waiting`](RunReport::waiting). Costs O(events +
    /// executions) in the run's task, which does nothing else meanwhile.
    ///
    /// # Errors
    /// [`RunError::Detached`] if the task of the run disappeared, and the run's state with it.
    /// [`RunError::Store`] if the run waits unloaded in its store, and the store cannot read it now.
    pub async fn report_so_far(&self) -> Result<Arc<RunReport>, RunError> {
        match self.ask(|done| Command::Report { done }).await {
            Ok(report) => Ok(Arc::new(report)),
            Err(NoAnswer::NotLoaded { source, .. }) => Err(RunError::Store { source }),
            Err(NoAnswer::Ended(_)) => self.report().await,
        }
    }

    async fn kept(&self) -> Result<&EndedState, RunError> {
        self.shared.finished().await.kept.as_ref().ok_or(RunError::Detached)
    }

    fn index_of(&self, event: &EventType) -> Result<EventIndex, SendError> {
        let index = self.shared.table.by_type.get(&event.type_id());
        index.copied().ok_or_else(|| SendError::NotTaken { event: event.name().into() })
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, NoAnswer> {
        let (done, mut answer) = oneshot::channel();
        let mut command = command(done);
        let shared = &self.shared;
        while let Err(back) = shared.signals.send(command).await {
            command = back;
            let woken = shared.wake().await;
            if !woken.map_err(|source| NoAnswer::NotLoaded { run: shared.id.clone(), source })? {
                return Err(NoAnswer::Ended(self.ended().await));
            }
        }
        // A run that ends may leave a command unread, and thus unanswered.
        let answered = match select(&mut answer, pin!(shared.ended())).await {
            Either::Left((answered, _)) => answered.ok(),
            Either::Right(_) => answer.try_recv().ok(),
        };
        match answered {
            Some(answer) => Ok(answer),
            None => Err(NoAnswer::Ended(self.ended().await)),
        }
    }

    async fn ended(&self) -> SendError {
        let (shared, run) = (&self.shared, self.shared.id.clone());
        let status = shared.wait_for(RunStatus::is_ended).await;
        match shared.finished().await.left_by().filter(|_| shared.common.is_durable) {
            Some(source) => SendError::Stopped { run, source },
            None => SendError::Ended { run, status },
        }
    }
}

/// The reason why a run did not answer.
enum NoAnswer {
    /// The run has ended.
    Ended(SendError),
    /// The run is unloaded and could not be loaded.
    NotLoaded { run: RunId, source: StoreError },
}

impl From<NoAnswer> for SendError {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::Ended(error) => error,
            NoAnswer::NotLoaded { run, source } => Self::NotLoaded { run, source },
        }
    }
}

/// The log entry of a reply, with its JSON if the store needs it.
fn answer<R: Request>(asked: Arc<R>, reply: Contained<R::Reply>, json: Option<Box<RawValue>>) -> AnyEvent {
    let reply = AnyEvent::from_erased(Arc::new(Answered::new(asked, reply)));
    match json {
        Some(json) => reply.with_json(json, 1),
        None => reply,
    }
}

impl fmt::Debug for AnyRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyRun").field("run", &self.shared).finish_non_exhaustive()
    }
}
