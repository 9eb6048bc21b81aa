//! A second, naive implementation of the scheduling rules S11–S21, S28–S31, S33 and S44–S50, written from
//! the rules. It keeps everything that ever happened and finds every answer by looking through all of it; it
//! is right by being obvious, and shares no code with the scheduler.
//!
//! The rules leave some orders open. There the model does what the scheduler does, so that transcripts can
//! be compared: evaluation goes on when everything was handed out; what an execution commits comes before
//! what its end makes room for; branches that are settled at the same time settle in order, once every event
//! is evaluated; and what is dropped is named scopes first.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use workflow_core::scheduler::{Answer, CandidateId, Cause, Emission, End, Fact};
use workflow_core::{ExecutionId, Seq};

use crate::transcript::{Line, Placed};

mod arrivals;
mod branches;
mod events;
mod gathers;
mod plan;
mod reading;
mod work;

pub(crate) use gathers::own_events;
pub(crate) use plan::{Plan, PlannedEvent, PlannedInput, PlannedOutput, PlannedStep, Take};

use branches::{Group, Opening, Scope};
use events::Events;
use work::{Execution, Question, WorkState};

/// Everything that happened in one run.
#[derive(Debug)]
pub(crate) struct Model {
    plan: Rc<Plan>,
    /// Per step and parameter the event types it takes.
    taken: Vec<Vec<Events>>,
    /// Per fan-out its item.
    items: Vec<usize>,
    /// Per fan-out the event types its gathers collect.
    collected: Vec<Events>,
    /// What was handed out to be appended; the position is the index plus 1.
    log: Vec<Logged>,
    /// The batches that were handed out and are not confirmed, oldest first.
    unconfirmed: VecDeque<Batch>,
    /// The events in the log that were not evaluated yet, in the order in which they will be.
    unread: VecDeque<u64>,
    /// The events that were evaluated, in the order in which they were. The last is the newest that any
    /// step sees (S12).
    read: Vec<u64>,
    /// The event being evaluated.
    trigger: Option<u64>,
    /// In which scopes which steps are still to be evaluated at the trigger.
    todo: VecDeque<(u32, usize)>,
    scopes: Vec<Scope>,
    groups: Vec<Group>,
    questions: Vec<Question>,
    executions: Vec<Execution>,
    /// The requests that were replied to.
    replied: BTreeSet<u64>,
    surplus: Vec<u64>,
    /// What is to be handed out.
    out: VecDeque<Line>,
    failing: Option<u64>,
    is_stopping: bool,
    waits: bool,
    patience: Patience,
    is_degraded: bool,
    end: Option<End>,
}

/// How long a run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    AsTheRulesSay,
    /// Even if nothing that can arrive makes a difference.
    Endless,
}

/// One event of the log.
#[derive(Debug, Clone, Copy)]
struct Logged {
    scope: u32,
    event: usize,
    /// Whether its batch is confirmed and its branch, if it is an item, was opened.
    has_arrived: bool,
}

/// What was handed out to be appended as one.
#[derive(Debug)]
struct Batch {
    scope: u32,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Event(u64),
    FanOut(Opening),
}

impl Model {
    pub(crate) fn new(plan: Rc<Plan>) -> Self {
        let own = gathers::own_events(&plan);
        let taken_by =
            |step: &PlannedStep| step.inputs.iter().map(|input| gathers::taken(&plan, &own, input)).collect();
        Self {
            taken: plan.steps.iter().map(taken_by).collect(),
            items: plan.fan_outs().iter().map(|place| place.item).collect(),
            collected: (0..own.len()).map(|fan_out| gathers::collected(&plan, &own, fan_out)).collect(),
            log: Vec::new(),
            unconfirmed: VecDeque::new(),
            unread: VecDeque::new(),
            read: Vec::new(),
            trigger: None,
            todo: VecDeque::new(),
            scopes: vec![Scope::root()],
            groups: Vec::new(),
            questions: Vec::new(),
            executions: Vec::new(),
            replied: BTreeSet::new(),
            surplus: vec![0; plan.steps.len()],
            out: VecDeque::new(),
            failing: None,
            is_stopping: false,
            waits: false,
            patience: Patience::AsTheRulesSay,
            is_degraded: false,
            end: None,
            plan,
        }
    }

    /// One that never stalls, to see what would have become of a run that did.
    pub(crate) fn patient(plan: Rc<Plan>) -> Self {
        Self { patience: Patience::Endless, ..Self::new(plan) }
    }

    /// Takes the same facts as the scheduler.
    pub(crate) fn apply(&mut self, fact: &Fact) {
        self.waits = false;
        match fact {
            Fact::EventReceived { event } => self.receive(event.get()),
            Fact::ReplyReceived { request } => self.receive_reply(request.0),
            Fact::Appended => self.confirm(),
            Fact::PreconditionAnswered { candidate, answer } => self.answer(candidate.0, *answer),
            Fact::ExecutionSucceeded { execution, emissions } => self.succeed(execution.0, emissions),
            Fact::ExecutionFailed { execution } => self.fail(execution.0),
            Fact::CancelRequested => self.finish(End::Cancelled),
            unknown => panic!("a fact that the model does not know: {unknown:?}"),
        }
    }

    /// The next line of the transcript. Evaluation is lazy: it goes on when everything was handed out.
    pub(crate) fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.out.pop_front() {
                return Some(line);
            }
            let goes_on = !self.is_closed() && (self.evaluate_next() || self.settle_next() || self.rest());
            if !goes_on {
                return None;
            }
        }
    }

    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    pub(crate) fn is_degraded(&self) -> bool {
        self.is_degraded
    }

    pub(crate) fn executions_of(&self, step: usize) -> u64 {
        self.executions.iter().filter(|execution| execution.call.step == step).count() as u64
    }

    /// Number, step, scope and trigger of every execution.
    pub(crate) fn executed(&self) -> Vec<(u64, usize, u32, u64)> {
        let calls = self.executions.iter().map(|execution| &execution.call);
        calls.zip(1..).map(|(call, id)| (id, call.step, call.scope, call.trigger)).collect()
    }

    /// How deep the tree of scopes is; a run without branches has a depth of 1.
    pub(crate) fn depth(&self) -> usize {
        self.scopes.iter().zip(0..).map(|(_, scope)| self.depth_of(scope)).max().unwrap_or(0)
    }

    pub(crate) fn depth_of(&self, scope: u32) -> usize {
        self.chain(scope).len()
    }

    pub(crate) fn surplus_of(&self, step: usize) -> u64 {
        self.surplus[step]
    }

    /// The requests in the log without a reply, whose scope is still open.
    pub(crate) fn open_requests(&self) -> Vec<u64> {
        let requests = self.log.iter().zip(1..).filter(|(logged, seq)| {
            logged.has_arrived
                && self.plan.events.get(logged.event).is_some_and(|event| event.reply.is_some())
                && self.is_open(logged.scope)
                && !self.replied.contains(seq)
        });
        requests.map(|(_, seq)| seq).collect()
    }

    /// Whether nothing is accepted any more: the run has ended, or is about to, because an event that ends
    /// it was handed out to be appended (S28, S33).
    fn is_closed(&self) -> bool {
        self.end.is_some() || self.is_stopping
    }

    fn logged(&self, seq: u64) -> Logged {
        self.log[usize::try_from(seq).expect("a position fits the memory") - 1]
    }

    fn is_stop(&self, seq: u64) -> bool {
        self.plan.events.get(self.logged(seq).event).is_some_and(|event| event.stop)
    }

    fn receive(&mut self, event: usize) {
        if self.is_closed() {
            self.out.push_back(Line::RefusesReceived);
        } else {
            self.append_one(Cause::Outside, 0, event);
        }
    }

    fn receive_reply(&mut self, request: u64) {
        if self.is_closed() || !self.open_requests().contains(&request) {
            self.out.push_back(Line::RefusesReceived);
            return;
        }
        self.replied.insert(request);
        let Logged { scope, event, .. } = self.logged(request);
        let reply = self.plan.events[event].reply.expect("only requests are open");
        // A reply belongs to the branch that asked (S47).
        self.append_one(Cause::Reply(Seq(request)), scope, reply);
    }

    fn append_one(&mut self, cause: Cause, scope: u32, event: usize) {
        let entry = self.number(scope, event);
        self.unconfirmed.push_back(Batch { scope, parts: vec![Part::Event(entry.seq)] });
        self.out.push_back(Line::Appends { cause, entries: vec![entry] });
    }

    /// Gives an event the next position of the log (S4).
    fn number(&mut self, scope: u32, event: usize) -> Placed {
        self.log.push(Logged { scope, event, has_arrived: false });
        let seq = self.log.len() as u64;
        self.is_stopping |= self.is_stop(seq);
        Placed { seq, scope, event }
    }

    /// What an execution emits belongs to the scope it was evaluated in (S44), and enters the log as one.
    fn commit(&mut self, execution: u64, scope: u32, emissions: &[Emission]) {
        let (mut entries, mut parts) = (Vec::new(), Vec::new());
        for emission in emissions {
            match emission {
                Emission::Event(event) => {
                    let entry = self.number(scope, event.get());
                    entries.push(entry);
                    parts.push(Part::Event(entry.seq));
                }
                Emission::FanOut { fan_out, items, concurrency, policy } => {
                    let concurrency = concurrency.map(|most| most.get() as usize);
                    let opening = self.opening(fan_out.get(), scope, *items, concurrency, *policy);
                    entries.extend(opening.branches.iter().map(|(_, item)| *item));
                    parts.push(Part::FanOut(opening));
                }
            }
        }
        self.unconfirmed.push_back(Batch { scope, parts });
        self.out.push_back(Line::Appends { cause: Cause::Execution(ExecutionId(execution)), entries });
    }

    /// The oldest batch is in the log.
    fn confirm(&mut self) {
        let Some(batch) = self.unconfirmed.pop_front() else { return };
        if self.end.is_some() {
            return;
        }
        // S28: the first stop event ends the run, wherever in the batch it stands.
        if let Some(stop) = batch.seqs().into_iter().find(|seq| self.is_stop(*seq)) {
            self.finish(End::Completed(Seq(stop)));
            return;
        }
        for part in batch.parts {
            match part {
                Part::Event(seq) => self.arrive(seq),
                Part::FanOut(opening) => self.open_group(opening),
            }
        }
    }

    /// An event is in the log, to be evaluated after those before it. What belongs to a branch that was
    /// dropped in the meantime is of no interest to anyone.
    fn arrive(&mut self, seq: u64) {
        if self.is_open(self.logged(seq).scope) {
            self.log[usize::try_from(seq).expect("a position fits the memory") - 1].has_arrived = true;
            self.unread.push_back(seq);
        }
    }

    /// S30: nothing is left to do. Told once, until something happens.
    fn rest(&mut self) -> bool {
        let is_busy = self.questions.iter().any(|question| question.state == WorkState::Running)
            || self.executions.iter().any(|execution| execution.state != WorkState::Over)
            || !self.unconfirmed.is_empty();
        if is_busy || self.waits || self.log.is_empty() {
            return false;
        }
        if self.patience == Patience::Endless || self.can_go_on() {
            self.waits = true;
            self.out.push_back(Line::Waits);
        } else {
            self.finish(End::Stalled);
        }
        true
    }

    /// Ends the run. What was not handed out yet is not wanted any more, but for refusals.
    fn finish(&mut self, end: End) {
        if self.end.is_some() {
            return;
        }
        self.todo.clear();
        self.trigger = None;
        self.unread.clear();
        self.out.retain(|line| matches!(line, Line::RefusesCommit { .. } | Line::RefusesReceived));
        self.out.push_back(Line::Ends(end.clone()));
        self.end = Some(end);
    }

    /// S18. An answer after the end, or while the run is stopping, comes too late.
    fn answer(&mut self, question: u64, answer: Answer) {
        if self.is_closed() {
            return;
        }
        let Some(call) = self.take_question(question) else { return };
        match answer {
            // Between the question and its answer another trigger may have used the combination up.
            Answer::Yes if !self.is_used_up(&call) => self.execute(call),
            Answer::Yes | Answer::No => {}
            // The other steps of a trigger that is being evaluated come first.
            Answer::Failed if self.trigger.is_some() => self.failing = self.failing.or(Some(question)),
            Answer::Failed => self.finish(End::PreconditionFailed(CandidateId(question))),
        }
    }
}

impl Batch {
    fn seqs(&self) -> Vec<u64> {
        let seqs = self.parts.iter().flat_map(|part| match part {
            Part::Event(seq) => vec![*seq],
            Part::FanOut(opening) => opening.branches.iter().map(|(_, item)| item.seq).collect(),
        });
        seqs.collect()
    }
}
