//! The handle on a run: what a program does with a run it has started.

use std::fmt;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{BoxFuture, Either, select};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::request::{OpenRequest, RequestId};
use super::view::Kept;
use super::{PendingTimer, RunReport, RunShared, RunStatus};
use crate::display::DisplayStream;
use crate::error::{RunError, SendError, with_causes};
use crate::event::{AnyEvent, EventType, ExternalEvent, FromEvent, Request, Unfit};
use crate::explain::Explanation;
use crate::id::{RunId, Seq, ThreadId};
use crate::input::Answered;
use crate::panics::{Contained, Panicked, caught};
use crate::store::StoreError;
use crate::table::EventIndex;
use crate::workflow::Workflow;

/// Makes the log entry of a reply out of its request, which may be of another type.
pub(crate) type MakeReply = Box<dyn FnOnce(&AnyEvent) -> Result<AnyEvent, SendError> + Send>;

/// What a handle asks of its run.
pub(crate) enum Command {
    Send { event: AnyEvent, index: EventIndex, done: oneshot::Sender<Result<(), SendError>> },
    Reply { request: Seq, make: MakeReply, done: oneshot::Sender<Result<(), SendError>> },
    Timers { done: oneshot::Sender<Vec<PendingTimer>> },
    Requests { done: oneshot::Sender<Vec<OpenRequest>> },
    Explain { done: oneshot::Sender<Explanation> },
    Report { done: oneshot::Sender<RunReport> },
    Cancel { reason: Arc<str>, done: oneshot::Sender<()> },
}

/// A handle on a run of workflow `W`.
///
/// Clones are handles on the same run. Dropping every handle leaves the run as it is: it goes on. All
/// methods can be called at any time; their futures are `Send` and `'static`-friendly, and dropping one
/// drops the question, never the run.
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
/// let run = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?;
/// assert_eq!(run.outcome().await?, Greeting("Hello, Ada!".into()));
/// assert_eq!(run.report().await?.executions("greet"), 1);
/// # Ok(())
/// # }
/// ```
pub struct RunHandle<W> {
    pub(super) shared: Arc<RunShared>,
    workflow: PhantomData<fn() -> W>,
}

impl<W> RunHandle<W> {
    pub(crate) fn new(shared: Arc<RunShared>) -> Self {
        Self { shared, workflow: PhantomData }
    }
}

impl<W: Workflow> RunHandle<W> {
    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.shared.id
    }

    /// The thread the run belongs to.
    pub fn thread(&self) -> &ThreadId {
        self.shared.thread()
    }

    /// Where the run stands now.
    pub fn status(&self) -> RunStatus {
        self.shared.status()
    }

    /// Waits until the run waits for a timer or for something from outside, or has ended; says which.
    pub async fn settled(&self) -> RunStatus {
        self.shared.wait_for(|status| status != RunStatus::Running).await
    }

    /// What the run shows, from the oldest item that is still kept; as many viewers as wanted (S25).
    ///
    /// The last 1,024 items are kept. A viewer that is slower than that is told how many it missed, and
    /// never slows the run. The stream ends after [`DisplayItem::Ended`](crate::DisplayItem::Ended).
    pub fn display(&self) -> DisplayStream {
        self.shared.display().subscribe(Some(Arc::clone(&self.shared)))
    }

    /// Sends an event in. An event type that no step of `W` takes does not compile.
    ///
    /// Returns when the event is in the log. If the returned future is dropped before, the event may or may
    /// not be taken.
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run has ended (S33), [`SendError::TooLarge`] if the event is larger than the engine's
    /// [`max_event_bytes`](crate::EngineBuilder::max_event_bytes), [`SendError::Unfit`] if it has no JSON that the engine's
    /// store could give back, [`SendError::Refused`] if the store refuses it for another reason.
    pub fn send<E: ExternalEvent>(&self, event: E) -> BoxFuture<'_, Result<(), SendError>> {
        const { crate::check::taken_from_outside::<W, E>() };
        Box::pin(self.send_any(AnyEvent::new(event)))
    }

    async fn send_any(&self, mut event: AnyEvent) -> Result<(), SendError> {
        let index = self.index_of(&event.event_type())?;
        self.shared.common.event_check().check(&mut event, 1)?;
        self.ask(|done| Command::Send { event, index, done }).await?
    }

    /// Replies to an open request, which [`requests`](Self::requests) lists. The reply's type is the
    /// request's.
    ///
    /// # Errors
    /// [`SendError::Answered`] if it was answered before, [`SendError::Expired`] if its time has run out,
    /// [`SendError::NotOpen`] if there is no such request, [`SendError::WrongRequest`] if the request is not an
    /// `R`, [`SendError::TooLarge`] if the reply is too large, [`SendError::Unfit`] if it has no JSON that the engine's
    /// store could give back or [`SendError::Refused`] if the store refuses it for another reason, in which cases the
    /// request stays open, [`SendError::Ended`] if the run has ended.
    pub async fn reply<R: Request>(&self, request: RequestId<R>, reply: R::Reply) -> Result<(), SendError> {
        // The run drops what it does not take.
        let (request, reply) = (request.seq(), Contained::new(reply));
        // Here, and not in the run's task, whose business it is not how people serialise.
        let json = self.shared.common.event_check().check_value(R::REPLY_NAME, &*reply)?;
        let make: MakeReply = Box::new(move |asked| match asked.downcast::<R>() {
            Some(asked) => Ok(answer::<R>(asked, reply, json)),
            None => {
                Err(SendError::WrongRequest { request, asked: asked.name().to_owned(), answered: R::NAME })
            }
        });
        self.reply_with(request, make).await
    }

    /// Replies with JSON, for front ends that know no types. [`OpenRequest`] has an example.
    ///
    /// # Errors
    /// [`SendError::UnfitReply`] if it is no reply to this request, which stays open then; otherwise as
    /// [`reply`](Self::reply).
    pub async fn reply_json(&self, request: Seq, reply: serde_json::Value) -> Result<(), SendError> {
        let open = self.requests().await?;
        let asked = open.into_iter().find(|open| open.seq() == request).map(|open| open.event);
        // Read here, and not in the run's task, whose business it is not how people deserialise.
        let mut read = asked.map(|asked| read_reply(request, &asked, reply)).transpose()?;
        if let Some(reply) = &mut read {
            self.shared.common.event_check().check(reply, 1)?;
        }
        let not_open = SendError::NotOpen { request };
        self.reply_with(request, Box::new(move |_| read.ok_or(not_open))).await
    }

    async fn reply_with(&self, request: Seq, make: MakeReply) -> Result<(), SendError> {
        self.ask(|done| Command::Reply { request, make, done }).await?
    }

    /// The open requests, oldest first.
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run has ended: nothing is open any more.
    pub async fn requests(&self) -> Result<Vec<OpenRequest>, SendError> {
        Ok(self.ask(|done| Command::Requests { done }).await?)
    }

    /// The timers that are pending, in the order in which they will fire: those that steps have set, and those of
    /// requests that expire.
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
    /// [`SendError::Ended`] if the run has ended: nothing is pending any more.
    pub async fn timers(&self) -> Result<Vec<PendingTimer>, SendError> {
        Ok(self.ask(|done| Command::Timers { done }).await?)
    }

    /// Why each step ran, or why it did not; at any time, also after the end.
    ///
    /// # Errors
    /// [`RunError::Abandoned`] if the task that drove the run is gone, and its state with it.
    pub async fn explain(&self) -> Result<Arc<Explanation>, RunError> {
        match self.ask(|done| Command::Explain { done }).await {
            Ok(explanation) => Ok(Arc::new(explanation)),
            Err(Unasked::NotLoaded { source, .. }) => Err(RunError::Store { source }),
            Err(Unasked::Ended(_)) => Ok(self.kept().await?.explanation(&self.shared)),
        }
    }

    /// Ends the run: its executions are dropped and nothing enters its log any more (S31). Returns when the
    /// run has ended.
    ///
    /// # Errors
    /// [`SendError::Ended`] if the run had ended before.
    pub async fn cancel(&self, reason: impl Into<Arc<str>>) -> Result<(), SendError> {
        let reason = reason.into();
        self.ask(|done| Command::Cancel { reason, done }).await?;
        self.shared.finished().await;
        Ok(())
    }

    /// Waits for the end and returns what the run ended with. Can be called any number of times.
    ///
    /// # Errors
    /// [`RunError`] says how the run ended if it did not complete.
    pub async fn outcome(&self) -> Result<W::Output, RunError> {
        output_of::<W>(&self.shared.outcome().await?)
    }

    /// Waits for the end and returns what the run did (S34).
    ///
    /// # Errors
    /// [`RunError::Abandoned`] if the task that drove the run is gone, and its state with it. A run that
    /// failed has a report like any other.
    pub async fn report(&self) -> Result<Arc<RunReport>, RunError> {
        self.shared.finished().await;
        self.shared.report().ok_or(RunError::Abandoned)
    }

    /// What the run did so far, at any time; after the end the same as [`report`](Self::report).
    ///
    /// Executions that wait for their turn (S21) are not in it yet. O(events + executions) for the run, which does
    /// nothing else meanwhile.
    ///
    /// # Errors
    /// [`RunError::Abandoned`] if the task that drove the run is gone, and its state with it.
    pub async fn report_so_far(&self) -> Result<Arc<RunReport>, RunError> {
        match self.ask(|done| Command::Report { done }).await {
            Ok(report) => Ok(Arc::new(report)),
            Err(Unasked::NotLoaded { source, .. }) => Err(RunError::Store { source }),
            Err(Unasked::Ended(_)) => self.report().await,
        }
    }

    async fn kept(&self) -> Result<&Kept, RunError> {
        self.shared.finished().await.kept.as_ref().ok_or(RunError::Abandoned)
    }

    fn index_of(&self, event: &EventType) -> Result<EventIndex, SendError> {
        let index = self.shared.table.by_type.get(&event.type_id());
        index.copied().ok_or(SendError::NotTaken { event: event.name() })
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Unasked> {
        let (done, mut answer) = oneshot::channel();
        let mut command = command(done);
        let shared = &self.shared;
        while let Err(back) = shared.signals.send(command).await {
            command = back;
            let woken = shared.wake().await;
            if !woken.map_err(|source| Unasked::NotLoaded { run: shared.id.clone(), source })? {
                return Err(Unasked::Ended(self.ended().await));
            }
        }
        // What is sent while a run ends may be left unread, and unanswered.
        let answered = match select(&mut answer, pin!(shared.ended())).await {
            Either::Left((answered, _)) => answered.ok(),
            Either::Right(_) => answer.try_recv().ok(),
        };
        match answered {
            Some(answer) => Ok(answer),
            None => Err(Unasked::Ended(self.ended().await)),
        }
    }

    async fn ended(&self) -> SendError {
        let status = self.shared.wait_for(RunStatus::is_ended).await;
        SendError::Ended { run: self.shared.id.clone(), status }
    }
}

/// Why a run did not answer.
enum Unasked {
    Ended(SendError),
    NotLoaded { run: RunId, source: StoreError },
}

impl From<Unasked> for SendError {
    fn from(unasked: Unasked) -> Self {
        match unasked {
            Unasked::Ended(error) => error,
            Unasked::NotLoaded { run, source } => Self::NotLoaded { run, problem: with_causes(&source) },
        }
    }
}

/// The log entry of a reply, with its JSON where that was made.
fn answer<R: Request>(asked: Arc<R>, reply: Contained<R::Reply>, json: Option<Box<RawValue>>) -> AnyEvent {
    let reply = AnyEvent::from_erased(Arc::new(Answered::new(asked, reply)));
    match json {
        Some(json) => reply.with_json(json, 1),
        None => reply,
    }
}

fn read_reply(request: Seq, asked: &AnyEvent, reply: serde_json::Value) -> Result<AnyEvent, SendError> {
    let unfit = |path: String, problem: String| {
        let asked = asked.name().to_owned();
        SendError::UnfitReply { request, asked, path, problem }
    };
    let form = asked.reply_form().ok_or_else(|| {
        unfit(String::new(), "its type does not derive `Event`, which knows how replies are read".into())
    })?;
    (form.read)(asked, reply).map_err(|Unfit { path, problem }| unfit(path, problem))
}

/// The run's output, out of the event that ended it.
pub(crate) fn output_of<W: Workflow>(stop: &AnyEvent) -> Result<W::Output, RunError> {
    let event = stop.name();
    let output = caught(|| W::Output::from_event(stop))
        .map_err(|Panicked { message }| RunError::OutputPanicked { event, message })?;
    output.ok_or_else(|| RunError::UnexpectedStop { event, workflow: W::TABLE.name() })
}

impl<W> Clone for RunHandle<W> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), workflow: PhantomData }
    }
}

impl<W> fmt::Debug for RunHandle<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").field("run", &self.shared).finish_non_exhaustive()
    }
}
