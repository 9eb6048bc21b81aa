//! One run in a chosen order.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use workflow_core::{EventType, RunHandle, RunStatus, ScopeId, SendError, Workflow};

use super::footprint::{Footprint, Interest};
use super::gate::{Actor, Gate, Op, OpId};
use super::hooks;
use super::order::{Choose, Order};
use super::outside::Outside;
use super::quiet::{IDLE, Quiet};
use super::report::Caveats;
use crate::journal::Journal;
use crate::script::{Script, Sent};
use crate::start::{Failure, Prepared};
use crate::{Start, TestRun};

mod ask;
mod time;

use ask::Said;

/// How many operations a run may have.
pub(super) const MOST_OPERATIONS: usize = 4_096;

/// The operations in words that are shown of a run: so many of its first, and of its last.
const SHOWN: usize = 50;

/// What is said of a run in which nothing can go on any more.
const STUCK: &str =
    "the run does not end: a step or a precondition waits for something that cannot happen here";

/// A point at which an operation was chosen.
#[derive(Debug)]
pub(super) struct Moment {
    /// What could go next, in the order in which it came to the gate.
    pub(super) ops: Vec<Op>,
    pub(super) chosen: usize,
}

impl Moment {
    pub(super) fn op(&self) -> &Op {
        &self.ops[self.chosen]
    }
}

/// A run that has been driven in some order.
#[derive(Debug)]
pub(super) struct Played<W: Workflow> {
    pub(super) moments: Vec<Moment>,
    /// The run, when it has ended or waits for what is not in the script; none if it was given up. A run that is broken
    /// is shown as it stands, if it can be.
    pub(super) run: Option<TestRun<W>>,
    /// Why there is no end to it, or no going on.
    pub(super) broken: Option<String>,
    /// What was at the gate when it was given up.
    pub(super) left: Vec<Op>,
    /// What came from outside, in order.
    pub(super) arrived: Vec<Actor>,
    pub(super) opens_branches_in_turn: bool,
    pub(super) caveats: Caveats,
    /// What the run lives on, if it waits.
    _runtime: Runtime,
}

impl<W: Workflow> Played<W> {
    /// The choices that led here.
    pub(super) fn order(&self) -> Order {
        let choices = self.moments.iter().filter(|moment| moment.ops.len() > 1);
        Order::new(choices.map(|moment| moment.chosen).collect())
    }
}

/// Runs a scenario in the order that is chosen.
///
/// # Panics
/// If it cannot be started.
pub(super) fn play<W: Workflow>(
    start: Start<W>,
    interest: &Arc<Interest>,
    choose: &mut dyn Choose,
) -> Played<W> {
    let (runtime, quiet) = Quiet::runtime();
    let (gate, outside, run) = (Arc::<Gate>::default(), Outside::default(), start.run_id());
    let hooks = hooks::gated(run, &gate, &outside, interest);
    let Prepared { started, mut script, journal } = start.prepare(hooks);
    let (in_turn, at_any_time) = script.take_sends();
    let (in_turn_until, sends) = (in_turn.len(), in_turn.into_iter().chain(at_any_time).map(Some).collect());
    let begun = runtime.block_on(async { started.await.map(|handle| (handle, Instant::now())) });
    let (handle, since) = begun.unwrap_or_else(|failure| panic!("{failure}"));
    let mut stage = Stage {
        handle,
        sends,
        in_turn_until,
        script,
        gate,
        outside,
        interest,
        quiet,
        moments: Vec::new(),
        arrived: Vec::new(),
        acts: Vec::new(),
        said: Said::default(),
        since,
        times: 0,
        gave_up_on_time: false,
    };
    let settled = runtime.block_on(async {
        let settled = stage.perform(choose).await;
        stage.note_arrived().await;
        settled
    });
    let (mut broken, left) = match settled {
        End::Settled => (None, None),
        End::GivenUp(left) => (None, Some(left)),
        End::Broken(why) => (Some(why), None),
    };
    let mut run = None;
    if left.is_none() {
        let handle = stage.handle.clone();
        let seen = runtime.block_on(async { seen(handle, journal, since, broken.is_some()).await });
        match seen {
            Ok(seen) => run = seen,
            Err(failure) => broken = Some(broken.unwrap_or_else(|| failure.to_string())),
        }
    }
    Played {
        run,
        broken,
        left: left.unwrap_or_default(),
        opens_branches_in_turn: stage.gate.opens_branches_in_turn(),
        caveats: Caveats {
            gave_up_on_time: stage.gave_up_on_time,
            had_children: stage.outside.had_children(),
        },
        moments: stage.moments,
        arrived: stage.arrived,
        _runtime: runtime,
    }
}

/// What can be asserted on, or shown.
async fn seen<W: Workflow>(
    handle: RunHandle<W>,
    journal: Journal,
    since: Instant,
    broken: bool,
) -> Result<Option<TestRun<W>>, Failure> {
    if !broken {
        return TestRun::driven(handle, journal, since.elapsed()).await.map(Some);
    }
    // The task that drives the run may be what does not go on.
    let seen = TestRun::driven_so_far(handle, journal, since.elapsed());
    tokio::time::timeout(IDLE, seen).await.map_or(Ok(None), |seen| seen.map(Some))
}

/// How the driving of a run ended.
enum End {
    /// It has ended, or waits.
    Settled,
    /// With what was at the gate.
    GivenUp(Vec<Op>),
    /// Why it does not go on, or goes on for ever.
    Broken(String),
}

struct Stage<'a, W: Workflow> {
    handle: RunHandle<W>,
    /// None for what has been sent.
    sends: Vec<Option<Sent<W>>>,
    /// How many of these, from the first, are sent one after the other.
    in_turn_until: usize,
    script: Script<W>,
    gate: Arc<Gate>,
    outside: Outside,
    interest: &'a Arc<Interest>,
    quiet: Arc<Quiet>,
    moments: Vec<Moment>,
    arrived: Vec<Actor>,
    /// What was sent or replied, in order, and is not known to have been taken.
    acts: Vec<(Actor, JoinHandle<Result<(), SendError>>)>,
    said: Said,
    /// When the run began.
    since: Instant,
    /// How often time has passed.
    times: u64,
    gave_up_on_time: bool,
}

impl<W: Workflow> Stage<'_, W> {
    /// Until the run ends or waits, is given up or proves broken.
    async fn perform(&mut self, choose: &mut dyn Choose) -> End {
        loop {
            self.quiet.reached().await;
            self.note_last();
            if self.handle.status().is_ended() {
                return End::Settled;
            }
            let ops = self.ops().await;
            if ops.is_empty() {
                return End::Settled;
            }
            if self.moments.len() == MOST_OPERATIONS {
                return End::Broken(format!(
                    "the run does not end: it has more than {MOST_OPERATIONS} operations"
                ));
            }
            if let Some(end) = self.choose(ops, choose).await {
                return end;
            }
        }
    }

    /// Notes of the last operation what shows only afterwards: that it has ended the run, or that what it was to commit
    /// has become a failure.
    fn note_last(&self) {
        let failed = self.outside.take_failed();
        let Some(op) = self.moments.last().map(Moment::op) else { return };
        let failed = matches!(op.id.actor, Actor::Execution(execution) if failed.contains(&execution));
        // A run stalls when nothing is left, whatever was last.
        let status = self.handle.status();
        let ends = status.is_ended() && status != RunStatus::Stalled || self.has_dropped(op);
        if ends || failed && op.footprint.is_of_events() {
            self.interest.widen(op.id);
        }
    }

    /// Whether others were dropped with the last operation: of a run whose store has not confirmed it, that is all that
    /// shows of its end.
    fn has_dropped(&self, last: &Op) -> bool {
        let before = self.moments.last().map_or(&[][..], |moment| &moment.ops);
        let waits =
            |op: &&Op| op.id != last.id && matches!(op.id.actor, Actor::Execution(_) | Actor::Unknown);
        let waiting = self.gate.waiting();
        let is_gone = |op: &Op| waiting.iter().all(|there| there.id != op.id);
        self.interest.is_durable() && before.iter().filter(waits).any(is_gone)
    }

    /// Performs what is chosen of these; how the run ended, if that is the end of it.
    async fn choose(&mut self, ops: Vec<Op>, choose: &mut dyn Choose) -> Option<End> {
        let Some(chosen) = choose.choose(&ops) else { return Some(End::GivenUp(ops)) };
        let op = ops[chosen].clone();
        if matches!(op.id.actor, Actor::Time(_)) && !self.time_passes(ops.len() == 1).await {
            return Some(self.in_vain(ops, choose).await);
        }
        self.moments.push(Moment { ops, chosen });
        self.go_on(&op).await.err().map(End::Broken)
    }

    /// How the run ended if nothing comes of time, which is the last of these.
    async fn in_vain(&mut self, mut ops: Vec<Op>, choose: &mut dyn Choose) -> End {
        ops.pop();
        if !ops.is_empty() {
            choose.retract();
            return End::GivenUp(ops);
        }
        // What a child waits for is not what the run waits for.
        let waits = self.handle.status() == RunStatus::Waiting && self.timer().await.is_none();
        if waits { End::Settled } else { End::Broken(STUCK.to_owned()) }
    }

    /// What waits at the gate, what may arrive, and, as the last, that time passes.
    async fn ops(&mut self) -> Vec<Op> {
        let mut ops = self.gate.waiting();
        let first = self.sends[..self.in_turn_until].iter().position(Option::is_some);
        for place in first.into_iter().chain(self.in_turn_until..self.sends.len()) {
            if let Some(sent) = &self.sends[place] {
                ops.push(self.sent(Actor::Send(place), sent.event));
            }
        }
        if self.script.has_replies() {
            for request in self.requests().await {
                if let Some(name) = self.script.reply_name(&request) {
                    let seq = request.seq();
                    let words = format!("the reply to {seq} {} arrives", request.event().name());
                    ops.push(self.arrival(Actor::Reply(seq), name, words));
                }
            }
        }
        ops.extend(self.time(&ops).await);
        ops
    }

    fn sent(&self, actor: Actor, event: Option<EventType>) -> Op {
        let Some(name) = event.map(|event| event.name()) else {
            let (words, footprint) = ("the run is cancelled".into(), Footprint::Everything.into());
            return Op { id: OpId::arrival(actor), words, footprint };
        };
        self.arrival(actor, name, format!("{name} arrives"))
    }

    fn arrival(&self, actor: Actor, event: &str, words: String) -> Op {
        // A reply enters the scope of its request, which is not known here; in a branch others may come first.
        let footprint = match actor {
            Actor::Reply(_) if self.interest.has_branches() => Footprint::Everything,
            _ => self.interest.of_events(ScopeId::ROOT, std::iter::once(event)),
        };
        Op { id: OpId::arrival(actor), words: words.into(), footprint: Arc::new(footprint) }
    }

    /// Performs an operation.
    ///
    /// # Errors
    /// What a reply that panics says.
    async fn go_on(&mut self, op: &Op) -> Result<(), String> {
        if self.gate.permit(op.id) {
            return Ok(());
        }
        let act = match op.id.actor {
            Actor::Send(place) => self.sends[place].take().map(|sent| sent.act),
            Actor::Reply(seq) => {
                let request = self.take_request(seq);
                let reply = || request.and_then(|request| self.script.reply_to(&request));
                let replied = catch_unwind(AssertUnwindSafe(reply));
                replied.map_err(|panic| format!("a reply panics: {}", panic_message(panic)))?
            }
            Actor::Execution(_) | Actor::Unknown | Actor::Store | Actor::Time(_) => None,
        };
        let Some(act) = act else { return Ok(()) };
        if self.interest.is_durable() {
            // It returns once the store has confirmed it.
            let run = self.handle.clone();
            let acts = tokio::spawn(async move { act(&run).await });
            self.acts.push((op.id.actor, acts));
        } else if act(&self.handle).await.is_ok() {
            // An error says that the run does not take it.
            self.arrived.push(op.id.actor);
        }
        Ok(())
    }

    /// Notes what the run has taken of what was sent and replied.
    async fn note_arrived(&mut self) {
        for (actor, act) in std::mem::take(&mut self.acts) {
            if act.is_finished() && act.await.is_ok_and(|taken| taken.is_ok()) {
                self.arrived.push(actor);
            }
        }
    }
}

/// What somebody panicked with.
pub(crate) fn panic_message(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => (*panic.downcast_ref::<&str>().unwrap_or(&"without words")).to_owned(),
    }
}

/// The operations of a run in order, a line each; of many the first and the last.
pub(super) fn words(moments: &[Moment]) -> String {
    let line = |(place, moment): (usize, &Moment)| format!("{:>3}. {}\n", place + 1, moment.op().words);
    let lines = |from: usize, until: usize| moments.iter().enumerate().take(until).skip(from).map(line);
    let count = moments.len();
    if count <= 2 * SHOWN {
        return lines(0, count).collect();
    }
    let left_out = format!("     … {} more …\n", count - 2 * SHOWN);
    lines(0, SHOWN).chain([left_out]).chain(lines(count - SHOWN, count)).collect()
}
