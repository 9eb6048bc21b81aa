//! Tests of how the cost of outer events grows with the number of open branches. The tests count evaluations
//! and bytes, and measure no time.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use smallvec::smallvec;

use super::sweep::{Change, Sweep};
use super::{Decision, Emission, Fact, FanOutTerms, QueuedAction, Scheduler, SchedulerLimits};
use crate::event::Roles;
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::spec::StepPolicy;
use crate::table::TableBuilder;
use crate::table::{DependencyTable, EventDef, EventIndex, FanOutIndex, InputDef, OutputDef, StepDef};

/// A run with branches that each ask and wait for the reply.
struct Waiting {
    table: Arc<DependencyTable>,
    scheduler: Scheduler,
    /// The terms of the next fan-outs.
    terms: FanOutTerms,
    /// The units of work so far.
    work: usize,
}

/// A run in which `Open` opens branches that ask and wait. With the reply, a branch packs its item with these
/// inputs too.
fn waiting(with: &[InputDef]) -> Waiting {
    let external = |name| EventDef::new(name, Roles::NONE.external());
    let events = [
        EventDef::new("Begin", Roles::NONE.start()),
        external("Note"),
        external("Open"),
        external("End"),
        EventDef::new("Item", Roles::NONE),
        EventDef::new("Ask", Roles::NONE.request()),
        EventDef::reply_to("Answer", "Ask"),
        EventDef::new("Packed", Roles::NONE),
    ];
    let pack = StepDef::new("pack").input(InputDef::one("Item")).input(InputDef::reply("Answer"));
    let once = StepPolicy::DEFAULT.max_executions(1);
    let steps = [
        StepDef::new("open").input(InputDef::one("Open")).output(OutputDef::fan_out("Item")),
        StepDef::new("ask").input(InputDef::one("Item")).output(OutputDef::event("Ask")),
        with.iter().cloned().fold(pack, StepDef::input).output(OutputDef::event("Packed")),
        StepDef::new("gather").input(InputDef::gather("Packed")),
        StepDef::new("limited").input(InputDef::one("Note")).input(InputDef::one("Item")).policy(once),
    ];
    let steps = if with.is_empty() { &steps[..4] } else { &steps[..] };
    let builder = events.into_iter().fold(DependencyTable::builder("waiting"), TableBuilder::event);
    let builder = steps.iter().cloned().fold(builder, TableBuilder::step);
    let table = Arc::new(builder.build_unchecked().expect("the table is sound"));
    let limits = SchedulerLimits { executions: 1_000_000, ..SchedulerLimits::default() };
    let scheduler = Scheduler::with_limits(Arc::clone(&table), limits);
    let mut waiting = Waiting { table, scheduler, terms: FanOutTerms::default(), work: 0 };
    waiting.send("Begin");
    waiting
}

impl Waiting {
    fn event(&self, name: &str) -> EventIndex {
        self.table.event_named(name).expect("the table has the event")
    }

    fn send(&mut self, name: &str) {
        self.open(name, 0);
    }

    /// Sends an event, for which `open` opens `items` branches.
    fn open(&mut self, name: &str, items: u32) {
        self.tell(Fact::EventReceived { event: self.event(name) }, items);
    }

    fn tell(&mut self, fact: Fact, items: u32) {
        self.scheduler.apply(fact);
        loop {
            let mut left = usize::MAX;
            let queued = self.scheduler.next_within(&mut left);
            self.work += usize::MAX - left;
            let execution = match queued {
                Some(QueuedAction::Start(start)) => (start.execution, start.step),
                Some(_) => continue,
                None => return,
            };
            self.finish(execution, items);
        }
    }

    fn finish(&mut self, (execution, step): (ExecutionId, crate::table::StepIndex), items: u32) {
        let (fan_out, terms) = (FanOutIndex::at(0), self.terms);
        let emissions = match self.table.step(step).name() {
            "open" => smallvec![Emission::FanOut { fan_out, items, terms }],
            "ask" => smallvec![Emission::Event(self.event("Ask"))],
            "pack" => smallvec![Emission::Event(self.event("Packed"))],
            _ => smallvec![],
        };
        self.scheduler.apply(Fact::ExecutionSucceeded { execution, emissions });
    }

    /// The bytes stored for the evaluations so far.
    fn stored(&self) -> usize {
        let below = self.scheduler.evaluation.sweeps.history().map_or(0, |history| {
            size_of::<Change>() * history.changes.len() + size_of::<Sweep>() * history.sweeps.len()
        });
        size_of::<Decision>() * self.scheduler.evaluation.decisions.len() + below
    }
}

/// The work and the bytes for `events` events that open three waiting branches each.
fn opened(events: usize, with: &[InputDef]) -> (usize, usize) {
    let mut waiting = waiting(with);
    (0..events).for_each(|_| waiting.open("Open", 3));
    assert_eq!(waiting.scheduler.open_requests().len(), 3 * events);
    (waiting.work, waiting.stored())
}

fn assert_in_proportion(with: &[InputDef]) {
    let ((few_work, few_stored), (many_work, many_stored)) = (opened(100, with), opened(1_000, with));
    assert!(many_work <= 11 * few_work, "work of few events {few_work}, of ten times as many {many_work}");
    assert!(many_stored <= 11 * few_stored, "bytes of few {few_stored}, of many {many_stored}");
}

// S46
#[test]
fn events_that_open_waiting_branches_cost_work_and_memory_in_proportion_to_their_number() {
    assert_in_proportion(&[]);
}

/// The work for a fan-out of `items` items that all wait beside a bound of 8, and then for the replies.
fn bounded(items: u32) -> (usize, usize) {
    let mut waiting = waiting(&[]);
    let terms = FanOutTerms { concurrency: NonZeroU32::new(8), only_busy: true, ..waiting.terms };
    waiting.terms = terms;
    waiting.open("Open", items);
    let requests: Vec<Seq> = waiting.scheduler.open_requests().map(|(seq, _)| seq).collect();
    assert_eq!(requests.len(), items as usize);
    let opened = waiting.work;
    for request in requests {
        waiting.tell(Fact::ReplyReceived { request }, 0);
    }
    assert_eq!(waiting.scheduler.open_requests().len(), 0);
    (opened, waiting.work - opened)
}

// S50
#[test]
fn branches_that_open_beside_waiting_ones_and_continue_cost_work_in_proportion_to_their_number() {
    let ((opened_few, replied_few), (opened_many, replied_many)) = (bounded(300), bounded(3_000));
    assert!(opened_many <= 11 * opened_few, "few {opened_few}, ten times as many {opened_many}");
    assert!(replied_many <= 11 * replied_few, "few {replied_few}, ten times as many {replied_many}");
}

// S46
#[test]
fn events_for_waiting_branches_that_are_not_ready_cost_in_proportion_too() {
    assert_in_proportion(&[InputDef::one("Open")]);
    assert_in_proportion(&[InputDef::one("Open").optional(), InputDef::one("End")]);
}

// S46
#[test]
fn an_outer_event_without_effect_stores_almost_nothing_per_branch() {
    const BRANCHES: u32 = 3_000;
    const EVENTS: usize = 400;
    let mut waiting = waiting(&[InputDef::one("Note")]);
    waiting.open("Open", BRANCHES);
    // Once it makes a step run in each branch, and never again.
    waiting.send("Note");
    let before = waiting.stored();
    (0..EVENTS).for_each(|_| waiting.send("Note"));
    let stored = waiting.stored() - before;
    assert!(stored < BRANCHES as usize * EVENTS, "{stored} bytes");

    // The scheduler derives the verdicts that it does not store.
    let last = waiting.scheduler.last_seq();
    let decisions =
        waiting.scheduler.decisions().filter(|it| it.trigger == last && it.scope != ScopeId::ROOT);
    let mut counts = BTreeMap::new();
    for decision in decisions {
        let step = waiting.table.step(decision.step).name();
        *counts.entry((step, format!("{:?}", decision.verdict))).or_insert(0) += 1;
    }
    let counts: Vec<_> = counts.into_iter().collect();
    let expected =
        [(("limited", "LimitReached".to_owned()), BRANCHES), (("pack", "NotReady".to_owned()), BRANCHES)];
    assert_eq!(counts, expected);
    assert_eq!(last, Seq(2 + 2 * u64::from(BRANCHES) + 1 + EVENTS as u64));
}

/// Two branches that were swept, one of which has its reply, and all decisions.
fn swept() -> (Waiting, Vec<Decision>) {
    let mut waiting = waiting(&[InputDef::one("Note")]);
    waiting.open("Open", 2);
    waiting.send("Note");
    waiting.tell(Fact::ReplyReceived { request: Seq(5) }, 0);
    waiting.send("Note");
    let decisions: Vec<Decision> = waiting.scheduler.decisions().collect();
    let recorded = waiting.scheduler.evaluation.decisions.len();
    assert!(decisions.len() > recorded, "some are derived");
    (waiting, decisions)
}

// S33
#[test]
fn a_retracted_event_takes_its_evaluations_below_with_it() {
    let (all, decisions) = swept();
    for from in (1..=all.scheduler.last_seq().0).map(Seq) {
        let (mut waiting, _) = swept();
        waiting.scheduler.retract(from);
        let left = decisions.iter().filter(|it| it.trigger < from).copied();
        assert!(waiting.scheduler.decisions().eq(left), "from {from}");
    }
}

// S46
#[test]
fn evaluations_in_closed_branches_are_derived_as_before() {
    let (mut waiting, before) = swept();
    waiting.tell(Fact::ReplyReceived { request: Seq(6) }, 0);
    assert_eq!(waiting.scheduler.open_requests().len(), 0);
    let all: Vec<Decision> = waiting.scheduler.decisions().collect();
    assert_eq!(all[..before.len()], before);
}
