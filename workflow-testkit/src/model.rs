//! A second, naive implementation of the scheduling rules, to read and to compare with.
//!
//! The model keeps everything that ever happened and searches all of it for every answer. It is meant to be obviously
//! right, and shares no code with the [scheduler](workflow_core::scheduler). A [`Plan`] describes a workflow; a model
//! and a table are both made from a plan. The cost grows at least with the square of the log, so the model suits runs
//! of tens of events, not of thousands.
//!
//! | file in `model/` | subject |
//! |---|---|
//! | `reading` | what a scope sees, when a step is ready, what it is bound to |
//! | `work` | preconditions, duplicates, limits (also the run's most executions), what a failure means |
//! | `failures` | which steps take whose failures |
//! | `log` | sequence numbers, batches, the stop event, refusals |
//! | `ends`, `arrivals` | waiting and stalling: whether anything that can come makes a step run |
//! | `clean_up` | clean-up steps between the end and its report |
//! | `timers` | timers, and requests that expire |
//! | `branches` | branches: opening, settling, gathering, failing, and how many may |
//! | `gathers` | which fan-outs a gather takes |
//! | `redrive` | what begins anew in a run that continues after its end |
//! | `pause` | what is deferred while the run is paused |
//!
//! # How to use it
//! To understand a rule, begin with [`Model::next_line`] in the source. To test a scheduler, or a front end that makes
//! its own tables, give both sides the same [facts](workflow_core::scheduler::Fact), ask both for the same number of
//! actions, and compare each: a [`Reader`] turns an action into a [`Line`], and the model returns lines directly. A
//! front end's table must list event types and steps in the order of the corresponding plan. The scheduler's own
//! property tests do this with random plans and facts.
//!
//! ```
//! use std::sync::Arc;
//!
//! use workflow_core::scheduler::{Fact, Scheduler};
//! use workflow_testkit::model::{Model, Plan, PlannedEvent, PlannedInput, PlannedOutput, PlannedStep};
//! use workflow_testkit::model::{Reader, Take};
//!
//! let plan = Plan {
//!     events: vec![
//!         PlannedEvent { start: true, ..PlannedEvent::default() },
//!         PlannedEvent { stop: true, ..PlannedEvent::default() },
//!     ],
//!     steps: vec![PlannedStep {
//!         inputs: vec![PlannedInput { events: vec![0], ..PlannedInput::default() }],
//!         outputs: vec![PlannedOutput::Events(1)],
//!         ..PlannedStep::default()
//!     }],
//!     ..Plan::default()
//! };
//! let table = Arc::new(plan.table());
//! let event = table.event_named("E0").expect("the first event of the plan");
//!
//! let mut scheduler = Scheduler::new(Arc::clone(&table));
//! let mut reader = Reader::new(Arc::clone(&table));
//! let mut model = Model::new(plan);
//! let mut said = Vec::new();
//! let fact = Fact::EventReceived { event };
//! model.apply(&fact);
//! scheduler.apply(fact);
//! while let Some(line) = model.next_line() {
//!     let action = scheduler.next_action().expect("the scheduler says as much as the model");
//!     assert_eq!(reader.read(&action), line);
//!     said.push(line.text(&table));
//! }
//! assert_eq!(said, ["append for the outside: #1 E0", "start x1 s0(#1) by #1"]);
//! ```
//!
//! # Numbers
//! Everything is a plain number, so that a transcript can be followed with a pencil: event types, steps and fan-outs by
//! their index in the plan from 0; sequence numbers of events from 1, written `#1`; executions from 1, written `x1`;
//! precondition evaluations from 0, written `q0`; scopes in the order of their numbering, with the root as 0.
//!
//! # What the rules leave open
//! In these cases the model does what the scheduler does, so that the two can be compared. A fact takes effect once
//! everything that follows from the earlier facts is complete. The commit of an execution comes before the starts that
//! its end allows. Branches that settle at the same time settle in order, after every event is evaluated. Drops name
//! scopes first.
//!
//! The most events that a log may hold is not modelled.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use workflow_core::scheduler::{End, Fact, Verdict};

mod arrivals;
mod branches;
mod clean_up;
mod ends;
mod events;
mod failures;
mod gathers;
mod line;
mod log;
mod pause;
mod plan;
mod reader;
mod reading;
mod redrive;
mod table;
mod text;
mod timers;
mod work;

pub use line::{BranchLine, Call, Evaluation, Line, Placed, TimerLine};
pub use plan::{FanOutPlace, Plan, PlannedEvent, PlannedInput, PlannedOutput, PlannedStep, Take};
pub use reader::Reader;

use branches::{Group, Scope};
use clean_up::CleanUp;
use events::Events;
use timers::Timer;
use work::{Execution, Question};

/// One run according to the rules, with everything that happened in it.
///
/// Pass facts to [`apply`](Self::apply), then take every [`next_line`](Self::next_line). The [module](self) has an
/// example.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the run of its own")]
pub struct Model {
    plan: Arc<Plan>,
    /// Per step and parameter the event types it takes.
    taken: Vec<Vec<Events>>,
    /// Per step the event type of its failure, if a step catches it.
    failed: Vec<Option<usize>>,
    /// Per fan-out its item.
    items: Vec<usize>,
    /// Per fan-out the event types its gathers collect.
    collected: Vec<Events>,
    /// The sequence number is the index plus 1.
    log: Vec<Logged>,
    /// The events in the log that are not evaluated yet, in order.
    unread: VecDeque<u64>,
    /// The evaluated events, in order. The last is the newest that any step sees (S12).
    read: Vec<u64>,
    /// The event being evaluated.
    trigger: Option<u64>,
    /// The scopes and steps still to evaluate for the trigger.
    todo: VecDeque<(u32, usize)>,
    /// Every evaluation so far.
    evaluations: Vec<Evaluation>,
    scopes: Vec<Scope>,
    /// How many times a branch settled.
    settlements: u32,
    groups: Vec<Group>,
    questions: Vec<Question>,
    executions: Vec<Execution>,
    /// The requests that were replied to, or have expired.
    closed: BTreeSet<u64>,
    /// Every timer that a line has set; the number is the index plus 1.
    timers: Vec<Timer>,
    surplus: Vec<u64>,
    /// The lines to return.
    out: VecDeque<Line>,
    waits: bool,
    /// Whether nothing begins (S61).
    paused: bool,
    patience: Patience,
    is_degraded: bool,
    /// Whether a branch opened in the place of one that only waits (S50).
    opened_beside_waiting: bool,
    /// How many fan-outs failed and had no effect, since their openers' failures are tolerated.
    tolerated_fan_outs: usize,
    /// How many fan-outs were gathered with failures that they tolerate (S74).
    gathered_with_tolerated: usize,
    end: Option<End>,
    clean_up: Option<CleanUp>,
}

/// Whether the run stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    AsTheRulesSay,
    /// Waits even if no arrival makes a difference.
    Endless,
}

/// One event of the log.
#[derive(Debug, Clone, Copy)]
struct Logged {
    scope: u32,
    event: usize,
    /// For the item of a branch, whether the branch was opened.
    has_arrived: bool,
}

impl Model {
    /// A run of this workflow in which nothing has happened.
    ///
    /// # Panics
    /// If the plan has more than 128 event types, fan-outs and steps whose failures are caught together, or numbers that lead nowhere.
    pub fn new(plan: impl Into<Arc<Plan>>) -> Self {
        let plan = plan.into();
        let own = gathers::own_events(&plan);
        let taken_by = |(number, step): (usize, &PlannedStep)| {
            step.inputs.iter().map(|input| gathers::taken(&plan, &own, number, input)).collect()
        };
        Self {
            taken: plan.steps.iter().enumerate().map(taken_by).collect(),
            failed: (0..plan.steps.len()).map(|step| plan.failed(step)).collect(),
            items: plan.fan_outs().iter().map(|place| place.item).collect(),
            collected: (0..own.len()).map(|fan_out| gathers::collected(&plan, &own, fan_out)).collect(),
            log: Vec::new(),
            unread: VecDeque::new(),
            read: Vec::new(),
            trigger: None,
            todo: VecDeque::new(),
            evaluations: Vec::new(),
            scopes: vec![Scope::root()],
            settlements: 0,
            groups: Vec::new(),
            questions: Vec::new(),
            executions: Vec::new(),
            closed: BTreeSet::new(),
            timers: Vec::new(),
            surplus: vec![0; plan.steps.len()],
            out: VecDeque::new(),
            waits: false,
            paused: false,
            patience: Patience::AsTheRulesSay,
            is_degraded: false,
            opened_beside_waiting: false,
            tolerated_fan_outs: 0,
            gathered_with_tolerated: 0,
            end: None,
            clean_up: None,
            plan,
        }
    }

    /// A model that waits where the rules stall, to see how the run would continue.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn patient(plan: impl Into<Arc<Plan>>) -> Self {
        Self { patience: Patience::Endless, ..Self::new(plan) }
    }

    /// Applies a fact, as a scheduler does.
    ///
    /// A fact about something unknown, or one that comes too late, changes nothing or is refused.
    ///
    /// # Panics
    /// Panics on an unknown kind of fact, or an unknown event type.
    pub fn apply(&mut self, fact: &Fact) {
        while self.advance() {}
        // A run that has not ended ignores what concerns its clean-up, and one that is not paused ignores an unpause.
        self.waits &= matches!(fact, Fact::CleanUpStarted | Fact::CleanUpStopped | Fact::Unpaused);
        match fact {
            Fact::EventReceived { event } => self.receive(event.get()),
            Fact::ReplyReceived { request } => self.receive_reply(request.0),
            Fact::TimerFired { timer } => self.fire(timer.0),
            Fact::PreconditionAnswered { candidate, answer } => self.answer(candidate.0, *answer),
            Fact::ExecutionSucceeded { execution, emissions } => self.succeed(execution.0, emissions),
            Fact::ExecutionFailed { execution } => self.fail(execution.0),
            Fact::AppendFailed => self.finish(End::AppendFailed),
            Fact::CancelRequested => self.finish(End::Cancelled),
            Fact::TimeRanOut => self.finish(End::TimedOut),
            Fact::CleanUpStarted => self.start_clean_up(),
            Fact::CleanUpStopped => self.stop_clean_up(),
            Fact::Redriven => self.redrive(),
            Fact::Paused => self.pause(),
            Fact::Unpaused => self.unpause(),
            unknown => panic!("a fact that the model does not know: {unknown:?}"),
        }
    }

    /// The next line; `None` until another fact is applied.
    ///
    /// Evaluation continues after all lines were returned, or with another fact.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.out.pop_front() {
                return Some(line);
            }
            if !self.advance() {
                return None;
            }
        }
    }

    /// Performs one consequence of the facts so far; returns `false` if there is none.
    fn advance(&mut self) -> bool {
        if self.is_closed() {
            return self.clean_up_next();
        }
        self.evaluate_next() || self.settle_next() || self.rest()
    }

    /// The end of the run, if it has ended. Clean-up steps may run all the same.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Whether a failure was handled on the way.
    pub fn is_degraded(&self) -> bool {
        self.is_degraded
    }

    /// Whether a bounded fan-out opened a branch in the place of one that only waits for replies or timers.
    pub fn opened_beside_waiting(&self) -> bool {
        self.opened_beside_waiting
    }

    /// How many fan-outs failed without an effect on the run, since the failures of their openers are tolerated.
    pub fn tolerated_fan_outs(&self) -> usize {
        self.tolerated_fan_outs
    }

    /// How many fan-outs were gathered with as many failures as they tolerate, or fewer, although their policy is not to
    /// continue.
    pub fn gathered_with_tolerated(&self) -> usize {
        self.gathered_with_tolerated
    }

    /// All executions in order: the first is `x1`.
    pub fn executed(&self) -> impl Iterator<Item = &Call> {
        self.executions.iter().map(|execution| &execution.call)
    }

    /// Every evaluation of a step in a scope, in order.
    pub fn evaluations(&self) -> &[Evaluation] {
        &self.evaluations
    }

    fn evaluated(&mut self, call: (usize, u32, u64), verdict: Verdict) {
        let (step, scope, trigger) = call;
        self.evaluations.push(Evaluation { step, scope, trigger, verdict });
    }

    /// The depth of the tree of scopes; 1 for a run without branches.
    pub fn depth(&self) -> usize {
        self.scopes.iter().zip(0..).map(|(_, scope)| self.depth_of(scope)).max().unwrap_or(0)
    }

    /// The number of scopes from this one to the root, both included.
    ///
    /// # Panics
    /// If there is no such scope.
    pub fn depth_of(&self, scope: u32) -> usize {
        self.chain(scope).len()
    }

    /// The number of events after a fixed list of the step was full.
    ///
    /// # Panics
    /// If the plan has no such step.
    pub fn surplus_of(&self, step: usize) -> u64 {
        self.surplus[step]
    }

    /// The sequence numbers of open requests: without reply or expiry, and in an open scope.
    pub fn open_requests(&self) -> Vec<u64> {
        let requests = self.log.iter().zip(1..).filter(|(logged, seq)| {
            logged.has_arrived
                && self.plan.events.get(logged.event).is_some_and(|event| event.reply.is_some())
                && self.is_open(logged.scope)
                && !self.closed.contains(seq)
        });
        requests.map(|(_, seq)| seq).collect()
    }

    /// Whether the run has ended and accepts nothing more (S28, S33).
    fn is_closed(&self) -> bool {
        self.end.is_some()
    }

    fn logged(&self, seq: u64) -> Logged {
        self.log[usize::try_from(seq).expect("a position fits the memory") - 1]
    }

    fn is_stop(&self, seq: u64) -> bool {
        self.plan.events.get(self.logged(seq).event).is_some_and(|event| event.stop)
    }
}
