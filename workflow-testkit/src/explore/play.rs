//! One run in a chosen order.

use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio::time::Instant;
use workflow_core::{EventType, RunHandle, RunStatus, ScopeId, TimerId, Workflow};

use super::footprint::{Footprint, Interest};
use super::gate::{Actor, Gate, Op, OpId};
use super::hooks;
use super::order::{Choose, Order};
use super::quiet::Quiet;
use crate::script::{Script, Sent};
use crate::start::Prepared;
use crate::{Start, TestRun};

/// How many operations a run may have.
pub(super) const MOST_OPERATIONS: usize = 4_096;

/// How often virtual time may advance in a run.
const MOST_ADVANCES: u32 = 100_000;

/// A point at which an operation was chosen.
#[derive(Debug)]
pub(super) struct Moment {
    /// What could go next, in the order in which it came to the gate.
    pub(super) ops: Vec<Op>,
    pub(super) chosen: usize,
    /// Whether virtual time has advanced since the moment before.
    pub(super) after_time: bool,
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
    /// The run, when it has ended or waits for what is not in the script; none if it was given up.
    pub(super) run: Option<TestRun<W>>,
    /// What was at the gate when it was given up.
    pub(super) left: Vec<Op>,
    /// What came from outside, in order.
    pub(super) arrived: Vec<Actor>,
    pub(super) opens_branches_in_turn: bool,
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
/// If it cannot be started, or does not come to an end within the bounds.
pub(super) fn play<W: Workflow>(
    start: Start<W>,
    interest: &Arc<Interest>,
    choose: &mut dyn Choose,
) -> Played<W> {
    let (runtime, quiet) = Quiet::runtime();
    let (gate, run) = (Arc::<Gate>::default(), start.run_id());
    let Prepared { started, mut script, journal } = start.prepare(hooks::gated(run, &gate, interest));
    let sends = script.take_sends().into_iter().map(Some).collect();
    let begun = runtime.block_on(async { started.await.map(|handle| (handle, Instant::now())) });
    let (handle, since) = begun.unwrap_or_else(|failure| panic!("{failure}"));
    let (moments, arrived) = (Vec::new(), Vec::new());
    let mut stage = Stage { handle, sends, script, gate, interest, quiet, moments, arrived };
    let left = runtime.block_on(stage.perform(choose));
    let run = left.is_none().then(|| {
        let driven =
            runtime.block_on(async { TestRun::driven(stage.handle.clone(), journal, since.elapsed()).await });
        driven.unwrap_or_else(|failure| panic!("{failure}"))
    });
    Played {
        run,
        left: left.unwrap_or_default(),
        opens_branches_in_turn: stage.gate.opens_branches_in_turn(),
        moments: stage.moments,
        arrived: stage.arrived,
        _runtime: runtime,
    }
}

struct Stage<'a, W: Workflow> {
    handle: RunHandle<W>,
    /// None for what has been sent.
    sends: Vec<Option<Sent<W>>>,
    script: Script<W>,
    gate: Arc<Gate>,
    interest: &'a Arc<Interest>,
    quiet: Arc<Quiet>,
    moments: Vec<Moment>,
    arrived: Vec<Actor>,
}

impl<W: Workflow> Stage<'_, W> {
    /// Until the run ends or waits; what is at the gate if it is given up.
    async fn perform(&mut self, choose: &mut dyn Choose) -> Option<Vec<Op>> {
        let (mut after_time, mut advances) = (false, 0);
        loop {
            self.quiet.reached().await;
            if self.handle.status().is_ended() {
                return None;
            }
            let ops = self.ops().await;
            if ops.is_empty() {
                if self.handle.status() == RunStatus::Waiting {
                    return None;
                }
                advances += 1;
                self.pass_time(advances).await;
                after_time = true;
                continue;
            }
            let Some(chosen) = choose.choose(&ops) else { return Some(ops) };
            let op = ops[chosen].clone();
            self.moments.push(Moment { ops, chosen, after_time: std::mem::take(&mut after_time) });
            self.go_on(&op).await;
        }
    }

    /// What waits at the gate, and what may arrive.
    async fn ops(&mut self) -> Vec<Op> {
        let mut ops = self.gate.waiting();
        for (place, sent) in self.sends.iter().enumerate() {
            if let Some(sent) = sent {
                ops.push(self.sent(Actor::Send(place), sent.event));
            }
        }
        ops.extend(self.timer().await);
        if !self.script.has_replies() {
            return ops;
        }
        // An error says that the run has ended.
        for request in self.handle.requests().await.unwrap_or_default() {
            if let Some(name) = self.script.reply_name(&request) {
                let seq = request.seq();
                let words = format!("the reply to {seq} {} arrives", request.event().name());
                ops.push(self.arrival(Actor::Reply(seq), name, words));
            }
        }
        ops
    }

    /// The timer that fires next: it may do so before whatever else can happen, but not before others.
    async fn timer(&self) -> Option<Op> {
        if !self.interest.has_timers() {
            return None;
        }
        // An error says that the run has ended.
        let timer = self.handle.timers().await.unwrap_or_default().into_iter().next()?;
        let words = match timer.request {
            Some(request) => format!("{request} expires"),
            None => format!("the timer {} for {} fires", timer.timer, timer.event),
        };
        // Time passes meanwhile, for all that sleeps.
        let footprint = Arc::new(Footprint::Everything);
        Some(Op { id: OpId::arrival(Actor::Timer(timer.timer)), words: words.into(), footprint })
    }

    /// Lets time pass until the timer is not pending any more.
    async fn fire(&self, timer: TimerId) {
        let is_pending = async || {
            let timers = self.handle.timers().await.unwrap_or_default();
            timers.iter().any(|pending| pending.timer == timer)
        };
        let mut advances = 0;
        while is_pending().await {
            advances += 1;
            self.pass_time(advances).await;
        }
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

    async fn go_on(&mut self, op: &Op) {
        let count = self.moments.len();
        assert!(
            count <= MOST_OPERATIONS,
            "a run has more than {MOST_OPERATIONS} operations:\n{}",
            self.last()
        );
        if self.gate.permit(op.id) {
            return;
        }
        let act = match op.id.actor {
            Actor::Send(place) => self.sends[place].take().map(|sent| sent.act),
            Actor::Reply(seq) => {
                let open = self.handle.requests().await.unwrap_or_default();
                let request = open.into_iter().find(|request| request.seq() == seq);
                request.and_then(|request| self.script.reply_to(&request))
            }
            Actor::Timer(timer) => {
                self.fire(timer).await;
                None
            }
            Actor::Execution(_) | Actor::Unknown => None,
        };
        // An error says that the run does not take it.
        if let Some(act) = act
            && act(&self.handle).await.is_ok()
        {
            self.arrived.push(op.id.actor);
        }
    }

    async fn pass_time(&self, advances: u32) {
        let passed = self.quiet.after_time().await.is_ok() && advances <= MOST_ADVANCES;
        assert!(
            passed,
            "the run does not end: a step or a precondition waits for something that cannot happen here:\n{}",
            self.last()
        );
    }

    /// The last operations, in words.
    fn last(&self) -> String {
        words(&self.moments[self.moments.len().saturating_sub(20)..])
    }
}

/// The operations of a run in order, a line each.
pub(super) fn words(moments: &[Moment]) -> String {
    let line = |(place, moment): (usize, &Moment)| format!("{:>3}. {}\n", place + 1, moment.op().words);
    moments.iter().enumerate().map(line).collect()
}
