//! The events and replies from outside during a scenario. Each comes when it is due by the virtual clock or, in an
//! exploration, at its turn.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use tokio::time::Instant;
use workflow_core::report::OpenRequest;
use workflow_core::signature::EventType;
use workflow_core::{ExternalEvent, Request, RunHandle, RunStatus, SendError, Seq, Workflow};

use crate::VirtualClock;
use crate::patience::{JUMPS, Patience};

/// The maximum idle virtual time before a scenario is given up.
const IDLE: Duration = Duration::from_hours(365 * 24);

/// The maximum number of sends, replies and timer firings before a scenario is given up: a run may ask endlessly.
const ACTS: u32 = 10_000;

/// One send or reply.
pub(crate) type Act<W> =
    Box<dyn for<'a> FnOnce(&'a RunHandle<W>) -> BoxFuture<'a, Result<(), SendError>> + Send + 'static>;

/// All sends and replies of a scenario.
pub(crate) struct Script<W> {
    /// The events to send, one per wait.
    sends: VecDeque<Sent<W>>,
    /// The events to send at a time since the start.
    timed: Vec<(Duration, Sent<W>)>,
    replies: Vec<Replies<W>>,
    /// Whether the clock stands still while the run waits, except for `advance`.
    pub(crate) until_it_waits: bool,
}

/// One event to send, or a cancel.
pub(crate) struct Sent<W> {
    /// The event; `None` for a cancel.
    pub(crate) event: Option<EventType>,
    pub(crate) act: Act<W>,
}

/// The replies to requests of one type.
struct Replies<W> {
    /// The reply's event name in the log.
    name: &'static str,
    answers: fn(&OpenRequest) -> bool,
    after: Duration,
    reply: MakeReply<W>,
}

/// Makes the reply to a request; `None` for a request of another type.
type MakeReply<W> = Box<dyn FnMut(&OpenRequest) -> Option<Act<W>> + Send>;

impl<W> Default for Script<W> {
    fn default() -> Self {
        Self { sends: VecDeque::new(), timed: Vec::new(), replies: Vec::new(), until_it_waits: false }
    }
}

impl<W: Workflow> Script<W> {
    pub(crate) fn send<E: ExternalEvent>(&mut self, event: E) {
        self.sends.push_back(Sent::of(event));
    }

    pub(crate) fn send_after<E: ExternalEvent>(&mut self, after: Duration, event: E) {
        self.timed.push((after, Sent::of(event)));
    }

    pub(crate) fn cancel_after(&mut self, after: Duration, reason: Arc<str>) {
        let act: Act<W> = Box::new(|run| Box::pin(run.cancel(reason)));
        self.timed.push((after, Sent { event: None, act }));
    }

    pub(crate) fn reply_after<R: Request>(
        &mut self,
        after: Duration,
        mut reply: impl FnMut(&R) -> R::Reply + Send + 'static,
    ) {
        let reply = move |open: &OpenRequest| {
            let (id, reply) = (open.id::<R>()?, reply(open.downcast_ref::<R>()?));
            let act: Act<W> = Box::new(move |run| Box::pin(run.reply(id, reply)));
            Some(act)
        };
        let answers = |open: &OpenRequest| open.id::<R>().is_some();
        self.replies.push(Replies { name: R::REPLY_NAME, answers, after, reply: Box::new(reply) });
    }

    /// Removes all sends, for an exploration: those in sequence, and those with times of their own.
    pub(crate) fn take_sends(&mut self) -> (Vec<Sent<W>>, Vec<Sent<W>>) {
        (self.sends.drain(..).collect(), self.timed.drain(..).map(|(_, send)| send).collect())
    }

    /// Removes a send that already arrived in an earlier process, this long after the run began.
    pub(crate) fn has_arrived(&mut self, event: &str, after: Duration) {
        let is_it = |sent: &Sent<W>| sent.event.is_some_and(|sent| sent.name() == event);
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
    pub(crate) fn reply_name(&self, request: &OpenRequest) -> Option<&'static str> {
        Some(self.replies[self.replies_to(request)?].name)
    }

    /// The reply to this request, if the script has one.
    pub(crate) fn reply_to(&mut self, request: &OpenRequest) -> Option<Act<W>> {
        let replies = self.replies_to(request)?;
        (self.replies[replies].reply)(request)
    }

    /// Removes the timed sends, with their times since then.
    fn due_from(&mut self, since: Instant) -> Vec<(Instant, Due<W>)> {
        self.timed.drain(..).map(|(after, send)| (since + after.min(IDLE), Due::Send(send.act))).collect()
    }

    /// The entry that replies to this request: the later one of two.
    fn replies_to(&self, request: &OpenRequest) -> Option<usize> {
        self.replies.iter().rposition(|replies| (replies.answers)(request))
    }
}

impl<W: Workflow> Sent<W> {
    fn of<E: ExternalEvent>(event: E) -> Self {
        Self { event: Some(E::TYPE), act: Box::new(|run| run.send(event)) }
    }
}

/// A script in progress.
pub(crate) struct Performance<W> {
    run: RunHandle<W>,
    script: Script<W>,
    /// The requests with a given or planned reply.
    taken: HashSet<Seq>,
    planned: Planned,
    due: Vec<(Instant, Due<W>)>,
    acts: u32,
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

/// An action at a point of the virtual clock.
enum Due<W> {
    Send(Act<W>),
    /// The reply to a request.
    Reply(OpenRequest),
}

/// Why a scenario was given up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GivenUp {
    Idle,
    TicksForEver,
    AsksForEver,
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
        }
    }
}

impl<W: Workflow> Performance<W> {
    /// Begins the script of a run that has just been started.
    pub(crate) fn of(
        mut script: Script<W>,
        run: RunHandle<W>,
        began: Instant,
        patience: Arc<Patience>,
    ) -> Self {
        let now = Instant::now();
        let due = script.due_from(now);
        let (taken, planned) = (HashSet::new(), Planned::default());
        Self { run, script, taken, planned, due, acts: 0, began, until: now, patience }
    }

    /// Continues a script from an earlier process, together with the run's clock.
    pub(crate) fn going_on(
        mut script: Script<W>,
        run: RunHandle<W>,
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
        if self.on_wait().await {
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
            return self.run.status() != RunStatus::Waiting;
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

    /// The time of the run's next timer.
    async fn next_timer(&mut self) -> Option<Instant> {
        // An error means that the run has ended.
        let timers = self.run.timers().await.ok()?;
        let due = timers.first()?.due.duration_since(VirtualClock::beginning()).unwrap_or_default();
        self.began.checked_add(due).or_else(|| Some(Instant::now() + IDLE))
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

    async fn act(&mut self, act: Act<W>) {
        self.acts += 1;
        // An error means only that the run has ended, or that the test has replied itself.
        let _ = act(&self.run).await;
    }
}
