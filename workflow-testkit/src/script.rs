//! The events and replies from outside during a scenario, its cancels and pauses. Each comes when it is due by the virtual clock or, in an
//! exploration, at its turn.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures::future::{BoxFuture, Either, select};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use workflow_core::report::OpenRequest;
use workflow_core::{AnyRun, ExternalEvent, Pause, Request, RunHandle, RunStatus, SendError, Seq, Workflow};

use crate::VirtualClock;
use crate::patience::{JUMPS, Patience};

/// The maximum idle virtual time before a scenario is given up.
const IDLE: Duration = Duration::from_hours(365 * 24);

/// The maximum number of sends, replies and timer firings before a scenario is given up: a run may ask endlessly.
const ACTS: u32 = 10_000;

/// One send or reply.
pub(crate) type Act =
    Box<dyn for<'a> FnOnce(&'a AnyRun) -> BoxFuture<'a, Result<(), SendError>> + Send + 'static>;

/// All sends and replies of a scenario.
#[derive(Default)]
pub(crate) struct Script {
    /// The events to send, one per wait.
    sends: VecDeque<Sent>,
    /// The events to send at a time since the start.
    timed: Vec<(Duration, Sent)>,
    replies: Vec<Replies>,
    /// Whether the clock stands still while the run waits, except for `advance`.
    pub(crate) until_it_waits: bool,
}

/// One event to send, a cancel, a pause or an unpause.
pub(crate) struct Sent {
    pub(crate) what: What,
    pub(crate) act: Act,
}

/// An act from outside.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// An event of this name.
    Event(Arc<str>),
    Cancel,
    Pause,
    Unpause,
}

/// The replies to requests of one type.
struct Replies {
    /// The reply's event name in the log.
    name: Arc<str>,
    answers: Box<dyn Fn(&OpenRequest) -> bool + Send>,
    after: Duration,
    reply: MakeReply,
}

/// Makes the reply to a request; `None` for a request of another type.
type MakeReply = Box<dyn FnMut(&OpenRequest) -> Option<Act> + Send>;

impl Script {
    pub(crate) fn send(&mut self, event: Sent) {
        self.sends.push_back(event);
    }

    pub(crate) fn send_after(&mut self, after: Duration, event: Sent) {
        self.timed.push((after, event));
    }

    pub(crate) fn cancel_after(&mut self, after: Duration, reason: Arc<str>) {
        let act: Act = Box::new(|run| Box::pin(run.cancel(reason)));
        self.timed.push((after, Sent { what: What::Cancel, act }));
    }

    pub(crate) fn pause_after(&mut self, after: Duration, how: Pause) {
        let act: Act = Box::new(move |run| Box::pin(run.pause(how)));
        self.timed.push((after, Sent { what: What::Pause, act }));
    }

    pub(crate) fn unpause_after(&mut self, after: Duration) {
        let act: Act = Box::new(|run| Box::pin(run.unpause()));
        self.timed.push((after, Sent { what: What::Unpause, act }));
    }

    pub(crate) fn reply_after<R: Request>(
        &mut self,
        after: Duration,
        mut reply: impl FnMut(&R) -> R::Reply + Send + 'static,
    ) {
        let reply = move |open: &OpenRequest| {
            let (id, reply) = (open.id::<R>()?, reply(open.downcast_ref::<R>()?));
            let act: Act = Box::new(move |run| Box::pin(run.reply(id, reply)));
            Some(act)
        };
        let answers = Box::new(|open: &OpenRequest| open.id::<R>().is_some());
        self.replies.push(Replies { name: R::REPLY_NAME.into(), answers, after, reply: Box::new(reply) });
    }

    /// Replies to requests of this name. `name` is that of the reply in the log.
    pub(crate) fn reply_json_after(
        &mut self,
        after: Duration,
        (request, name): (Arc<str>, Arc<str>),
        mut reply: impl FnMut(&Value) -> Value + Send + 'static,
    ) {
        let answers = Box::new(move |open: &OpenRequest| open.name() == &*request);
        let reply = move |open: &OpenRequest| {
            let data = open.data().unwrap_or_else(|error| panic!("`{}` has no JSON: {error}", open.name()));
            let (request, reply) = (open.seq(), reply(&data));
            let act: Act = Box::new(move |run| Box::pin(run.reply_json(request, reply)));
            Some(act)
        };
        self.replies.push(Replies { name, answers, after, reply: Box::new(reply) });
    }

    /// Removes all sends, for an exploration: those in sequence, and those with times of their own.
    pub(crate) fn take_sends(&mut self) -> (Vec<Sent>, Vec<Sent>) {
        (self.sends.drain(..).collect(), self.timed.drain(..).map(|(_, send)| send).collect())
    }

    /// Removes a send that already arrived in an earlier process, this long after the run began.
    pub(crate) fn has_arrived(&mut self, event: &str, after: Duration) {
        self.remove(after, |what| matches!(what, What::Event(sent) if &**sent == event));
    }

    /// Removes a pause that already arrived likewise.
    pub(crate) fn has_paused(&mut self, after: Duration) {
        self.remove(after, |sent| matches!(sent, What::Pause));
    }

    /// Removes an unpause that already arrived likewise.
    pub(crate) fn has_unpaused(&mut self, after: Duration) {
        self.remove(after, |sent| matches!(sent, What::Unpause));
    }

    fn remove(&mut self, after: Duration, is: impl Fn(&What) -> bool) {
        let is_it = |sent: &Sent| is(&sent.what);
        // The first send with a time of its own matches, unless its time is still to come.
        let timed = self.timed.iter().enumerate().filter(|(_, (at, sent))| *at <= after && is_it(sent));
        if let Some((place, _)) = timed.min_by_key(|(_, (at, _))| *at) {
            self.timed.remove(place);
        } else if let Some(place) = self.sends.iter().position(is_it) {
            self.sends.remove(place);
        }
    }

    pub(crate) fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// The event name of the reply to this request; `None` if the script has no reply.
    pub(crate) fn reply_name(&self, request: &OpenRequest) -> Option<&str> {
        Some(&self.replies[self.replies_to(request)?].name)
    }

    /// The reply to this request, if the script has one.
    pub(crate) fn reply_to(&mut self, request: &OpenRequest) -> Option<Act> {
        let replies = self.replies_to(request)?;
        (self.replies[replies].reply)(request)
    }

    /// Removes the timed sends, with their times since then.
    fn due_from(&mut self, since: Instant) -> Vec<(Instant, Due)> {
        self.timed.drain(..).map(|(after, send)| (since + after.min(IDLE), Due::Send(send.act))).collect()
    }

    /// The entry that replies to this request: the later one of two.
    fn replies_to(&self, request: &OpenRequest) -> Option<usize> {
        self.replies.iter().rposition(|replies| (replies.answers)(request))
    }
}

impl Sent {
    pub(crate) fn of<E: ExternalEvent>(event: E) -> Self {
        Self { what: What::Event(E::NAME.into()), act: Box::new(|run| run.send(event)) }
    }

    pub(crate) fn json(event: Arc<str>, data: Value) -> Self {
        let name = Arc::clone(&event);
        Self { what: What::Event(event), act: Box::new(move |run| run.send_json(&name, data)) }
    }
}

/// Does not compile if no step of `W` takes `E`: neither does [`RunHandle::send`].
pub(crate) fn assert_taken<W: Workflow, E: ExternalEvent>() {
    type Send<W, E> = for<'a> fn(&'a RunHandle<W>, E) -> BoxFuture<'a, Result<(), SendError>>;
    let _: Send<W, E> = RunHandle::<W>::send::<E>;
}

/// The data of an event, for a run that takes JSON.
#[track_caller]
pub(crate) fn json_of(event: &str, data: impl Serialize) -> Value {
    serde_json::to_value(data).unwrap_or_else(|error| panic!("the data of `{event}` has no JSON: {error}"))
}

/// Why a run refused an event or a reply, if that is a mistake of the script. Otherwise the run has ended, or the test has
/// replied itself.
pub(crate) fn mistake(refused: &SendError) -> Option<String> {
    let is_one = matches!(
        refused,
        SendError::UnknownEvent { .. }
            | SendError::NotTaken { .. }
            | SendError::Unfit { .. }
            | SendError::UnfitReply { .. }
    );
    is_one.then(|| format!("the run refuses what the script sends: {refused}"))
}

/// The deadline of a run, which is asked for once.
#[derive(Clone, Copy)]
enum Asked {
    NotYet,
    Has(Option<SystemTime>),
}

/// A script in progress.
pub(crate) struct Performance {
    run: AnyRun,
    script: Script,
    /// The requests with a given or planned reply.
    taken: HashSet<Seq>,
    planned: Planned,
    due: Vec<(Instant, Due)>,
    acts: u32,
    /// What the run refused although it should not have.
    mistake: Option<String>,
    deadline: Asked,
    /// When the run's clock began.
    began: Instant,
    /// The time up to which the test lets time pass, whether the run waits or not.
    until: Instant,
    patience: Arc<Patience>,
}

/// The times of delayed replies, including given ones, by request, since the run's clock began. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Planned(Arc<Mutex<HashMap<Seq, Duration>>>);

impl Planned {
    /// The time of the reply to this request; plans `then` if there is none yet.
    fn or_at(&self, request: Seq, then: Duration) -> Duration {
        // No code leaves the map half-changed.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(request).or_insert(then)
    }
}

/// Whether nothing happens in the run by itself: it waits, or is paused.
pub(crate) fn rests(status: RunStatus) -> bool {
    matches!(status, RunStatus::Waiting | RunStatus::Paused)
}

/// An action at a point of the virtual clock.
enum Due {
    Send(Act),
    /// The reply to a request.
    Reply(OpenRequest),
}

/// Why a scenario was given up.
#[derive(Debug, Clone)]
pub(crate) enum GivenUp {
    Idle,
    TicksForEver,
    AsksForEver,
    /// The script has a mistake.
    Mistaken(String),
}

impl std::fmt::Display for GivenUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Idle => f.write_str(
                "the run does not end: for a year of virtual time nothing happened in it, so that a step, a precondition \
                 or the store waits for something that cannot happen here",
            ),
            Self::TicksForEver => write!(
                f,
                "the run does not end: its clock jumped {JUMPS} times and nothing happened in it, so that something \
                 wakes up again and again while a step, a precondition or the store waits for something that cannot happen here"
            ),
            Self::AsksForEver => {
                write!(f, "the run does not end: {ACTS} events and replies were sent to it, or timers fired")
            }
            Self::Mistaken(mistake) => f.write_str(mistake),
        }
    }
}

impl Performance {
    /// Begins the script of a run that has just been started.
    pub(crate) fn of(mut script: Script, run: AnyRun, began: Instant, patience: Arc<Patience>) -> Self {
        let now = Instant::now();
        let due = script.due_from(now);
        let (taken, planned) = (HashSet::new(), Planned::default());
        let (acts, mistake, deadline) = (0, None, Asked::NotYet);
        Self { run, script, taken, planned, due, acts, mistake, deadline, began, until: now, patience }
    }

    /// Continues a script from an earlier process, together with the run's clock.
    pub(crate) fn going_on(
        mut script: Script,
        run: AnyRun,
        began: Instant,
        patience: Arc<Patience>,
        planned: Planned,
    ) -> Self {
        let due = script.due_from(began);
        Self { planned, due, ..Self::of(script, run, began, patience) }
    }

    /// Performs the script until the run ends, or until this much time has passed and the run waits without an action.
    pub(crate) async fn settle(&mut self, time: Duration) -> Result<RunStatus, GivenUp> {
        let patience = Arc::clone(&self.patience);
        match select(pin!(patience.lost()), pin!(self.pass(time))).await {
            Either::Left(_) => Err(GivenUp::TicksForEver),
            Either::Right((settled, _)) => settled,
        }
    }

    async fn pass(&mut self, time: Duration) -> Result<RunStatus, GivenUp> {
        self.until = Instant::now() + time;
        loop {
            let status = self.perform_until_settled().await?;
            let now = Instant::now();
            if status.is_ended() || now >= self.until {
                return Ok(status);
            }
            // tokio's timers fail beyond two years.
            tokio::time::sleep_until(self.until.min(now + IDLE)).await;
        }
    }

    /// Performs the script until the run ends, or waits without an action of the script at that time.
    async fn perform_until_settled(&mut self) -> Result<RunStatus, GivenUp> {
        while self.acts < ACTS {
            if let Some(mistake) = self.mistake.take() {
                return Err(GivenUp::Mistaken(mistake));
            }
            let next = self.next();
            let until = next.map_or_else(|| Instant::now() + IDLE, |next| self.due[next].0);
            // If both happen at once, the run has settled.
            match tokio::time::timeout_at(until, self.run.settled()).await {
                Ok(status) if status.is_ended() => return Ok(status),
                Ok(_) if self.wake(next, until).await => {}
                Ok(waiting) => return Ok(waiting),
                Err(_) => self.perform(next.ok_or(GivenUp::Idle)?).await,
            }
        }
        Err(GivenUp::AsksForEver)
    }

    /// Continues a waiting run; returns whether there was anything to do. The next action is due at `then`.
    async fn wake(&mut self, next: Option<usize>, then: Instant) -> bool {
        // A paused run is left alone until its script unpauses it, except for its timers and what comes at its time.
        if self.run.status() != RunStatus::Paused && self.on_wait().await {
            return true;
        }
        let until = if self.script.until_it_waits { then.min(self.until.max(Instant::now())) } else { then };
        if self.on_timer(until).await {
            return true;
        }
        let Some(next) = next.filter(|_| then <= until) else { return false };
        self.perform(next).await;
        true
    }

    /// The action that is due first; of simultaneous ones, the one planned first.
    fn next(&self) -> Option<usize> {
        (0..self.due.len()).min_by_key(|place| self.due[*place].0)
    }

    async fn perform(&mut self, due: usize) {
        let (at, due) = self.due.remove(due);
        tokio::time::sleep_until(at).await;
        match due {
            Due::Send(act) => self.act(act).await,
            Due::Reply(request) => self.reply(&request).await,
        }
    }

    /// Replies to open requests, or sends the next event; returns whether there was anything to do or to plan.
    async fn on_wait(&mut self) -> bool {
        // An error means that the run has ended.
        let mut open = self.run.requests().await.unwrap_or_default();
        open.retain(|request| self.taken.insert(request.seq()));
        let mut acted = false;
        for request in open {
            acted |= self.on_request(request).await;
        }
        if acted {
            return true;
        }
        if self.due.iter().any(|(_, due)| matches!(due, Due::Reply(_))) {
            return false;
        }
        let Some(send) = self.script.sends.pop_front() else { return false };
        self.act(send.act).await;
        true
    }

    /// Lets time pass to the run's next timer, if that comes before this; returns whether the run continues.
    async fn on_timer(&mut self, until: Instant) -> bool {
        let Some(due) = self.next_timer().await.filter(|due| *due <= until) else {
            // A timer may have fired meanwhile, and ended the run.
            return !rests(self.run.status());
        };
        self.acts += 1;
        if due > Instant::now() {
            tokio::time::sleep_until(due).await;
        } else if self.next_timer().await == Some(due) {
            // The run has seen the timer by now: its clock is behind by less than a millisecond.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        true
    }

    /// The time of the run's next timer, or of its deadline.
    async fn next_timer(&mut self) -> Option<Instant> {
        // An error means that the run has ended.
        let timers = self.run.timers().await.ok()?;
        let timer = timers.first().map(|timer| timer.due);
        let due = timer.into_iter().chain(self.deadline().await).min()?;
        let due = due.duration_since(VirtualClock::beginning()).unwrap_or_default();
        self.began.checked_add(due).or_else(|| Some(Instant::now() + IDLE))
    }

    async fn deadline(&mut self) -> Option<SystemTime> {
        if let Asked::Has(known) = self.deadline {
            return known;
        }
        let report = self.run.report_so_far().await.ok()?;
        let deadline = report.deadline.map(|deadline| deadline.at);
        self.deadline = Asked::Has(deadline);
        deadline
    }

    async fn on_request(&mut self, request: OpenRequest) -> bool {
        let Some(replies) = self.script.replies_to(&request) else { return false };
        let after = self.script.replies[replies].after.min(IDLE);
        if after.is_zero() {
            self.reply(&request).await;
        } else {
            let at = self.planned.or_at(request.seq(), self.began.elapsed() + after);
            self.due.push((self.began + at, Due::Reply(request)));
        }
        true
    }

    async fn reply(&mut self, request: &OpenRequest) {
        if let Some(act) = self.script.reply_to(request) {
            self.act(act).await;
        }
    }

    async fn act(&mut self, act: Act) {
        self.acts += 1;
        if let Err(refused) = act(&self.run).await {
            self.mistake = mistake(&refused);
        }
    }
}
