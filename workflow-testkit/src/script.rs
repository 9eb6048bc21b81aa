//! What comes from outside while a scenario runs: events and replies, each when it is due by the virtual clock, or,
//! where orders are explored, when it is its turn.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use tokio::time::Instant;
use workflow_core::{
    EventType, ExternalEvent, OpenRequest, Request, RunHandle, RunStatus, SendError, Seq, Workflow,
};

use crate::VirtualClock;
use crate::patience::{JUMPS, Patience};

/// How long nothing may happen, in virtual time, before a scenario is given up.
const IDLE: Duration = Duration::from_hours(365 * 24);

/// How much a script may send and reply, and how many timers may fire, before a scenario is given up: a run may ask for ever.
const ACTS: u32 = 10_000;

/// One thing that is sent or replied.
pub(crate) type Act<W> =
    Box<dyn for<'a> FnOnce(&'a RunHandle<W>) -> BoxFuture<'a, Result<(), SendError>> + Send + 'static>;

/// Everything that a scenario sends and replies.
pub(crate) struct Script<W> {
    /// What is sent when the run waits, one a wait.
    sends: VecDeque<Sent<W>>,
    /// What is sent at a time since the start.
    timed: Vec<(Duration, Sent<W>)>,
    replies: Vec<Replies<W>>,
    /// Whether the clock stands still while the run waits, but for the time that the test lets pass.
    pub(crate) until_it_waits: bool,
}

/// One event that is sent, or the end of the run.
pub(crate) struct Sent<W> {
    /// None if the run is cancelled.
    pub(crate) event: Option<EventType>,
    pub(crate) act: Act<W>,
}

/// How requests of one type are replied to.
struct Replies<W> {
    /// What the log calls the reply.
    name: &'static str,
    answers: fn(&OpenRequest) -> bool,
    after: Duration,
    reply: MakeReply<W>,
}

/// Makes the reply to a request; none if the request is of another type.
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

    /// Takes out everything that is sent, for who has an idea of his own of when it is: what is sent one after the other,
    /// and what each has a time of its own.
    pub(crate) fn take_sends(&mut self) -> (Vec<Sent<W>>, Vec<Sent<W>>) {
        (self.sends.drain(..).collect(), self.timed.drain(..).map(|(_, send)| send).collect())
    }

    /// Takes out what has arrived already, in a process that is gone: so long after the run began.
    pub(crate) fn has_arrived(&mut self, event: &str, after: Duration) {
        let is_it = |sent: &Sent<W>| sent.event.is_some_and(|sent| sent.name() == event);
        // Of those that have a time of their own the first one was it, unless it is still to come.
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

    /// What the log will call the reply to this request; none if it is not replied to.
    pub(crate) fn reply_name(&self, request: &OpenRequest) -> Option<&'static str> {
        Some(self.replies[self.replies_to(request)?].name)
    }

    /// The reply to this request, if it is replied to.
    pub(crate) fn reply_to(&mut self, request: &OpenRequest) -> Option<Act<W>> {
        let replies = self.replies_to(request)?;
        (self.replies[replies].reply)(request)
    }

    /// Takes out what is sent at a time since then.
    fn due_from(&mut self, since: Instant) -> Vec<(Instant, Due<W>)> {
        self.timed.drain(..).map(|(after, send)| (since + after.min(IDLE), Due::Send(send.act))).collect()
    }

    /// Who replies to this request: the later one of two.
    fn replies_to(&self, request: &OpenRequest) -> Option<usize> {
        self.replies.iter().rposition(|replies| (replies.answers)(request))
    }
}

impl<W: Workflow> Sent<W> {
    fn of<E: ExternalEvent>(event: E) -> Self {
        Self { event: Some(E::TYPE), act: Box::new(|run| run.send(event)) }
    }
}

/// A script that is being performed.
pub(crate) struct Performance<W> {
    run: RunHandle<W>,
    script: Script<W>,
    /// The requests that are replied to, or will be.
    taken: HashSet<Seq>,
    planned: Planned,
    due: Vec<(Instant, Due<W>)>,
    acts: u32,
    /// When the run's clock began.
    began: Instant,
    /// Until when the test lets time pass, whether the run waits or not.
    until: Instant,
    patience: Arc<Patience>,
}

/// When the replies are due that do not come at once, those included that have been given: by their requests, since the
/// run's clock began. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Planned(Arc<Mutex<HashMap<Seq, Duration>>>);

impl Planned {
    /// When the reply to this request is due; if nobody has said so yet, then.
    fn or_at(&self, request: Seq, then: Duration) -> Duration {
        // Nothing in there is ever left half-changed.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(request).or_insert(then)
    }
}

/// What happens at a point of the virtual clock.
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
                "the run does not end: for a year of virtual time nothing happened in it, so that a step or a \
                 precondition waits for something that cannot happen here",
            ),
            Self::TicksForEver => write!(
                f,
                "the run does not end: its clock jumped {JUMPS} times and nothing happened in it, so that something \
                 wakes up again and again while a step or a precondition waits for something that cannot happen here"
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

    /// Goes on with a script that was begun in a process that is gone; the run's clock goes on too.
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

    /// Performs until the run ends, or so much time has passed, it waits, and nothing in the script is left for it.
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
            let status = self.go_on().await?;
            let now = Instant::now();
            if status.is_ended() || now >= self.until {
                return Ok(status);
            }
            // Beyond two years tokio's timers do not go.
            tokio::time::sleep_until(self.until.min(now + IDLE)).await;
        }
    }

    /// Performs until the run ends, or waits and nothing in the script is left for it at its time.
    async fn go_on(&mut self) -> Result<RunStatus, GivenUp> {
        while self.acts < ACTS {
            let next = self.next();
            let until = next.map_or_else(|| Instant::now() + IDLE, |next| self.due[next].0);
            // Where both happen at once, the run has settled.
            match tokio::time::timeout_at(until, self.run.settled()).await {
                Ok(status) if status.is_ended() => return Ok(status),
                Ok(_) if self.wake(next, until).await => {}
                Ok(waiting) => return Ok(waiting),
                Err(_) => self.perform(next.ok_or(GivenUp::Idle)?).await,
            }
        }
        Err(GivenUp::AsksForEver)
    }

    /// Goes on with a run that waits; says whether there was anything to go on with. What is due next is so then.
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

    /// What is due first; of what is due at once, what was planned first.
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

    /// Replies to what is open, or sends what comes next; says whether there was anything to do or to plan.
    async fn on_wait(&mut self) -> bool {
        // An error says that the run has ended.
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

    /// Lets time pass to the next timer of the run, if that comes before this; says whether the run goes on by it.
    async fn on_timer(&mut self, until: Instant) -> bool {
        let Some(due) = self.next_timer().await.filter(|due| *due <= until) else {
            // One may have fired while this asked, and have ended the run.
            return self.run.status() != RunStatus::Waiting;
        };
        self.acts += 1;
        if due > Instant::now() {
            tokio::time::sleep_until(due).await;
        } else if self.next_timer().await == Some(due) {
            // The run has looked at it by now: its clock is behind, if only by a part of a millisecond.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        true
    }

    /// When the run's next timer is due.
    async fn next_timer(&mut self) -> Option<Instant> {
        // An error says that the run has ended.
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
        // The only errors say that the run has ended, or that the test has replied itself.
        let _ = act(&self.run).await;
    }
}
