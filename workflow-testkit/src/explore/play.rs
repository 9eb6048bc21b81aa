//! One run in a chosen order.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use workflow_core::{AnyRun, RunStatus, ScopeId, SendError};

use super::footprint::{Footprint, Interest};
use super::gate::{Actor, Gate, Op, OpId};
use super::hooks;
use super::order::{Choose, Order};
use super::outside::Outside;
use super::quiet::{IDLE, Quiet};
use super::report::Caveats;
use crate::script::{Script, Sent, What, mistake, rests};
use crate::start::{Failure, Prepared};
use crate::subject::Tested;
use crate::test_run::Driven;
use crate::{Start, TestRun};

mod ask;
mod time;

use ask::Said;

/// The maximum number of operations of a run.
pub(super) const MOST_OPERATIONS: usize = 4_096;

/// The number of operations that a failure prints, from the beginning and from the end.
const SHOWN: usize = 50;

/// The message for a run that is stuck.
const STUCK: &str =
    "the run does not end: a step, a precondition or the store waits for something that cannot happen here";

/// A point at which an operation was chosen.
#[derive(Debug)]
pub(super) struct Moment {
    /// The possible operations, in order of arrival at the gate.
    pub(super) ops: Vec<Op>,
    /// The index of the chosen operation in `ops`.
    pub(super) chosen: usize,
}

impl Moment {
    pub(super) fn op(&self) -> &Op {
        &self.ops[self.chosen]
    }
}

/// A run that has been driven in some order.
#[derive(Debug)]
pub(super) struct Played<T: Tested> {
    /// Every choice of the run, in order.
    pub(super) moments: Vec<Moment>,
    /// The run, ended or waiting for something outside the script; `None` if it was abandoned. A broken run is shown as
    /// it stands, if possible.
    pub(super) run: Option<TestRun<T>>,
    /// Why the run does not end or cannot continue.
    pub(super) broken: Option<String>,
    /// The operations at the gate when the run was abandoned.
    pub(super) left: Vec<Op>,
    /// The arrivals from outside, in order.
    pub(super) arrived: Vec<Actor>,
    /// Whether a fan-out of the run bounds its open branches, which rules out `Reduction::Races`.
    pub(super) opens_branches_in_turn: bool,
    pub(super) caveats: Caveats,
    /// The runtime of a waiting run.
    _runtime: Runtime,
}

impl<T: Tested> Played<T> {
    /// The choices that led here.
    pub(super) fn order(&self) -> Order {
        let choices = self.moments.iter().filter(|moment| moment.ops.len() > 1);
        Order::new(choices.map(|moment| moment.chosen).collect())
    }
}

/// Runs a scenario in the order that is chosen.
///
/// # Panics
/// Panics if the run cannot be started.
pub(super) fn play<T: Tested>(
    start: Start<T>,
    interest: &Arc<Interest>,
    choose: &mut dyn Choose,
) -> Played<T> {
    let (runtime, quiet) = Quiet::runtime();
    let (gate, outside, run) = (Arc::<Gate>::default(), Outside::default(), start.run_id());
    let hooks = hooks::gated(run, &gate, &outside, interest);
    let Prepared { started, mut script, journal, subject } = start.prepare(hooks);
    let (in_turn, at_any_time) = script.take_sends();
    let (in_turn_until, sends) = (in_turn.len(), in_turn.into_iter().chain(at_any_time).map(Some).collect());
    let begun = runtime.block_on(async { started.await.map(|handle| (handle, Instant::now())) });
    let (handle, since) = begun.unwrap_or_else(|failure| panic!("{failure}"));
    let mut stage = Stage {
        handle: T::any(&handle).clone(),
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
        stage.note_arrived().await.map_or(settled, End::Broken)
    });
    let (mut broken, left) = match settled {
        End::Settled => (None, None),
        End::GivenUp(left) => (None, Some(left)),
        End::Broken(why) => (Some(why), None),
    };
    let mut run = None;
    if left.is_none() {
        let driven = Driven { handle, subject, journal };
        let seen = runtime.block_on(async { seen(driven, since, broken.is_some()).await });
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

/// The run as a value to assert on or show.
async fn seen<T: Tested>(
    driven: Driven<T>,
    since: Instant,
    broken: bool,
) -> Result<Option<TestRun<T>>, Failure> {
    if !broken {
        return TestRun::driven(driven, since.elapsed()).await.map(Some);
    }
    // The task that drives the run may itself be stuck.
    let seen = TestRun::driven_so_far(driven, since.elapsed());
    tokio::time::timeout(IDLE, seen).await.map_or(Ok(None), |seen| seen.map(Some))
}

/// How driving the run ended.
enum End {
    /// It has ended, or waits.
    Settled,
    /// The run was abandoned, with these operations at the gate.
    GivenUp(Vec<Op>),
    /// Describes why the run is stuck or endless.
    Broken(String),
}

struct Stage<'a> {
    handle: AnyRun,
    /// The events to send; `None` once sent.
    sends: Vec<Option<Sent>>,
    /// The number of events, from the first, that keep their order.
    in_turn_until: usize,
    script: Script,
    gate: Arc<Gate>,
    outside: Outside,
    interest: &'a Arc<Interest>,
    quiet: Arc<Quiet>,
    moments: Vec<Moment>,
    arrived: Vec<Actor>,
    /// Sent events and replies, in order, that the run has not confirmed yet.
    acts: Vec<(Actor, JoinHandle<Result<(), SendError>>)>,
    said: Said,
    /// When the run began.
    since: Instant,
    /// How often time has passed.
    times: u64,
    gave_up_on_time: bool,
}

impl Stage<'_> {
    /// Drives the run until it ends, waits, is abandoned or proves broken.
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

    /// Records consequences of the last operation that show only afterwards: it ended the run, or its commit became a
    /// failure.
    fn note_last(&self) {
        let failed = self.outside.take_failed();
        let Some(op) = self.moments.last().map(Moment::op) else { return };
        let failed = matches!(op.id.actor, Actor::Execution(execution) if failed.contains(&execution));
        // A run stalls when nothing is left, independent of the last operation.
        let status = self.handle.status();
        let ends = status.is_ended() && status != RunStatus::Stalled || self.has_dropped(op);
        if ends || failed && op.footprint.is_of_events() {
            self.interest.widen(op.id);
        }
    }

    /// Whether the last operation dropped others: the only sign of its end in a run whose store has not confirmed it.
    fn has_dropped(&self, last: &Op) -> bool {
        let before = self.moments.last().map_or(&[][..], |moment| &moment.ops);
        let waits =
            |op: &&Op| op.id != last.id && matches!(op.id.actor, Actor::Execution(_) | Actor::Unknown);
        let waiting = self.gate.waiting();
        let is_gone = |op: &Op| waiting.iter().all(|there| there.id != op.id);
        self.interest.is_durable() && before.iter().filter(waits).any(is_gone)
    }

    /// Performs the chosen operation; returns how the run ended, if it did.
    async fn choose(&mut self, ops: Vec<Op>, choose: &mut dyn Choose) -> Option<End> {
        let Some(chosen) = choose.choose(&ops) else { return Some(End::GivenUp(ops)) };
        let op = ops[chosen].clone();
        if matches!(op.id.actor, Actor::Time(_)) && !self.time_passes(ops.len() == 1).await {
            return Some(self.after_no_effect(ops, choose).await);
        }
        self.moments.push(Moment { ops, chosen });
        self.perform_operation(&op).await.err().map(End::Broken)
    }

    /// Handles passing time, the last of these operations, that had no effect.
    async fn after_no_effect(&mut self, mut ops: Vec<Op>, choose: &mut dyn Choose) -> End {
        ops.pop();
        if !ops.is_empty() {
            choose.retract();
            return End::GivenUp(ops);
        }
        // The run itself does not wait for what its child waits for.
        let waits = rests(self.handle.status()) && self.timer().await.is_none();
        if waits { End::Settled } else { End::Broken(STUCK.to_owned()) }
    }

    /// The operations at the gate, the possible arrivals and, last, the passing of time.
    async fn ops(&mut self) -> Vec<Op> {
        let mut ops = self.gate.waiting();
        let first = self.sends[..self.in_turn_until].iter().position(Option::is_some);
        for place in first.into_iter().chain(self.in_turn_until..self.sends.len()) {
            if let Some(sent) = &self.sends[place] {
                ops.push(self.sent(Actor::Send(place), &sent.what));
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

    fn sent(&self, actor: Actor, what: &What) -> Op {
        let words = match what {
            What::Event(event) => {
                return self.arrival(actor, event, format!("{event} arrives"));
            }
            What::Cancel => "the run is cancelled",
            What::Pause => "the run is paused",
            What::Unpause => "the run is unpaused",
        };
        Op { id: OpId::arrival(actor), words: words.into(), footprint: Footprint::Everything.into() }
    }

    fn arrival(&self, actor: Actor, event: &str, words: String) -> Op {
        // A reply enters the scope of its request, which is unknown here; in a branch other operations may come first.
        let footprint = match actor {
            Actor::Reply(_) if self.interest.has_branches() => Footprint::Everything,
            _ => self.interest.of_events(ScopeId::ROOT, std::iter::once(event)),
        };
        Op { id: OpId::arrival(actor), words: words.into(), footprint: Arc::new(footprint) }
    }

    /// Performs an operation.
    ///
    /// # Errors
    /// The message of a reply's panic, or of the script's mistake.
    async fn perform_operation(&mut self, op: &Op) -> Result<(), String> {
        if self.gate.permit(op.id) {
            return Ok(());
        }
        let mut is_logged = true;
        let act = match op.id.actor {
            Actor::Send(place) => self.sends[place].take().map(|sent| {
                is_logged = matches!(sent.what, What::Event(_));
                sent.act
            }),
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
            // The send returns once the store has confirmed the event.
            let run = self.handle.clone();
            let acts = tokio::spawn(async move { act(&run).await });
            if is_logged {
                self.acts.push((op.id.actor, acts));
            }
        } else {
            let taken = act(&self.handle).await;
            // A pause is the cause of no event.
            if is_logged {
                self.note_taken(op.id.actor, &taken)?;
            }
        }
        Ok(())
    }

    /// Records which sent events and replies the run has taken. Returns the script's mistake, if it has one.
    async fn note_arrived(&mut self) -> Option<String> {
        let mut mistaken = None;
        for (actor, act) in std::mem::take(&mut self.acts) {
            if act.is_finished()
                && let Ok(taken) = act.await
            {
                mistaken = mistaken.or(self.note_taken(actor, &taken).err());
            }
        }
        mistaken
    }

    /// Records whether the run has taken a sent event or a reply.
    ///
    /// # Errors
    /// The script's mistake.
    fn note_taken(&mut self, actor: Actor, taken: &Result<(), SendError>) -> Result<(), String> {
        match taken {
            Ok(()) => self.arrived.push(actor),
            Err(refused) => mistake(refused).map_or(Ok(()), Err)?,
        }
        Ok(())
    }
}

/// The message of a panic.
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
