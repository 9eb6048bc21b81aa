//! One random run: scheduler and model get the same facts and the same number of requests for actions, and every action
//! must be the same.

use std::sync::Arc;

use workflow_core::ExecutionId;
use workflow_core::scheduler::{Cause, End, Fact, Scheduler, SchedulerLimits, Verdict};
use workflow_core::table::DependencyTable;
use workflow_testkit::model::{Call, Evaluation, Line, Model, Plan, PlannedInput, Reader, Take};

use super::moves::answered;
use super::reached::Reached;
use super::tape::{Shape, Tape};

/// Long runs stop here; the model is naive, and its cost grows with the log.
const MOST_EVENTS: usize = 80;

/// So do runs with many actions.
const MOST_MOMENTS: usize = 320;

/// Both sides, and the facts and actions so far.
pub(super) struct Play<'a> {
    tape: &'a Tape,
    pub(super) plan: Arc<Plan>,
    pub(super) table: Arc<DependencyTable>,
    pub(super) scheduler: Scheduler,
    pub(super) model: Model,
    pub(super) reader: Reader,
    pub(super) history: Vec<Moment>,
    pub(super) open_questions: Vec<u64>,
    pub(super) running: Vec<Running>,
    /// The number of executions that may still return the moment they start.
    inline: u32,
    /// The ends after which the run was redriven.
    redriven: Vec<&'static str>,
    /// The situations of its pauses.
    paused: Vec<&'static str>,
    /// Whether the run has ended while it was paused.
    pub(super) ended_in_pause: bool,
}

/// A started execution that has not returned.
#[derive(Clone, Copy)]
pub(super) struct Running {
    pub(super) execution: u64,
    pub(super) step: usize,
    pub(super) scope: u32,
}

pub(super) enum Moment {
    Told(Fact),
    Said(Line),
    /// The run was stalled before the next fact.
    Stalled,
    /// Both sides had no action; the request makes them evaluate.
    Quiet,
}

/// Plays a random run, and returns the situations it reached.
pub(crate) fn play(tape: &Tape, shape: Shape) -> Result<Reached, String> {
    let plan = Arc::new(tape.plan(shape));
    let table = Arc::new(plan.table());
    let limits = SchedulerLimits { executions: plan.executions as u64, ..SchedulerLimits::default() };
    let mut run = Play {
        tape,
        scheduler: Scheduler::with_limits(Arc::clone(&table), limits),
        model: Model::new(Arc::clone(&plan)),
        reader: Reader::new(Arc::clone(&table)),
        plan,
        table,
        history: Vec::new(),
        open_questions: Vec::new(),
        running: Vec::new(),
        inline: 8,
        redriven: Vec::new(),
        paused: Vec::new(),
        ended_in_pause: false,
    };
    run.play()?;
    let mut reached = Reached::of(run.lines(), run.model.depth());
    let is_taken = |evaluation: &Evaluation| matches!(evaluation.verdict, Verdict::GatherTaken(_));
    for end in run.redriven.iter().chain(&run.paused) {
        reached.note(end, true);
    }
    reached.note("a taken gather", run.model.evaluations().iter().any(is_taken));
    reached.note("a branch beside one that waits", run.model.opened_beside_waiting());
    let reads_passively = |call: &Call| {
        let mut inputs = run.plan.steps[call.step].inputs.iter().zip(&call.binding);
        inputs.any(|(input, seqs)| input.passive && !seqs.is_empty())
    };
    reached.note("a passive read", run.model.executed().any(reads_passively));
    let is_another = |line: &Line| match line {
        Line::Gathers { branches, .. } => !branches.is_sorted_by_key(|branch| branch.settled),
        _ => false,
    };
    reached.note("branches settled in another order", run.lines().any(is_another));
    let takes = |several: bool| {
        let inputs = |call: &Call| run.plan.steps[call.step].inputs.iter();
        let is_such = |input: &PlannedInput| {
            input.take == Take::Gather && input.events.len() != 1 && several != input.events.is_empty()
        };
        run.model.executed().any(|call| inputs(call).any(is_such))
    };
    reached.note("a gather of several types", takes(true));
    reached.note("a gather of no type", takes(false));
    // An execution that succeeded and fails has opened a fan-out that did.
    let succeeded = |execution: ExecutionId| {
        let is_its = |cause: Cause| cause == Cause::Execution(execution);
        run.lines().any(|line| matches!(line, Line::Appends { cause, .. } if is_its(*cause)))
    };
    let is_of_fan_out = |line: &Line| match line {
        Line::Appends { cause: Cause::Failure(execution), .. } => succeeded(*execution),
        _ => false,
    };
    reached.note("a caught fan-out", run.lines().any(is_of_fan_out));
    reached.note("a tolerated fan-out", run.model.tolerated_fan_outs() > 0);
    reached.note("a gather with a tolerated failure", run.model.gathered_with_tolerated() > 0);
    reached.note("a checked forecast", run.was_sent_what_can_be_sent());
    reached.note("a stall whatever can arrive", run.is_stalled() && !run.can_arrive(&run.model).is_empty());
    Ok(reached)
}

/// The situation in which a run is redriven.
fn redriven_after(end: &End) -> &'static str {
    match end {
        End::Failed(_) => "redriven after a failure",
        End::PreconditionFailed(_) => "redriven after a failed precondition",
        End::Stalled => "redriven after a stall",
        End::Cancelled | End::TimedOut => "redriven after a cancel",
        _ => "not redriven",
    }
}

impl Play<'_> {
    fn play(&mut self) -> Result<(), String> {
        self.tell(self.received(0));
        self.drain(usize::MAX)?;
        let mut after_end = 0;
        for [kind, a, b, c] in &self.tape.moves {
            let is_over = !self.model.is_to_clean_up() && !self.model.cleans_up();
            after_end = if self.model.end().is_some() && is_over { after_end + 1 } else { 0 };
            let is_long = self.reader.log().len() > MOST_EVENTS || self.history.len() > MOST_MOMENTS;
            if is_long || after_end > 3 {
                break;
            }
            let fact = self.fact(*kind, *a, u16::from_le_bytes([*b, *c]));
            let is_redrive = matches!(fact, Fact::Redriven);
            self.tell(fact);
            // Occasionally the next fact arrives before every action was requested. A redrive is complete before the
            // run continues.
            self.drain(if c % 8 == 7 && !is_redrive { usize::from(c / 8 % 4) } else { usize::MAX })?;
        }
        self.drain(usize::MAX)?;
        self.compare_totals()?;
        self.check_stall()?;
        self.check_rules()?;
        self.check_forecasts()
    }

    fn tell(&mut self, fact: Fact) {
        match &fact {
            Fact::PreconditionAnswered { candidate, .. } => {
                self.open_questions.retain(|question| *question != candidate.0);
            }
            Fact::ExecutionSucceeded { execution, .. } | Fact::ExecutionFailed { execution } => {
                self.running.retain(|running| running.execution != execution.0);
            }
            _ => {}
        }
        let (had_ended, was_paused) = (self.model.end().is_some(), self.model.is_paused());
        if matches!(fact, Fact::Redriven) {
            self.redriven.extend(self.model.end().map(redriven_after));
            let again = self.model.branches_that_open_again();
            self.redriven.extend((again > 0).then_some("a branch that opens again"));
            self.redriven.extend((again > 1).then_some("branches that open again"));
        }
        self.note_pause(&fact);
        self.model.apply(&fact);
        // Both begin everything anew, and say so.
        if matches!(fact, Fact::Redriven) && self.model.end().is_none() {
            self.running.clear();
            self.open_questions.clear();
        }
        self.ended_in_pause |= was_paused && self.model.end().is_some();
        // Consequences of earlier facts come first; there may be none.
        if !had_ended && self.is_stalled() {
            self.history.push(Moment::Stalled);
        }
        self.history.push(Moment::Told(fact.clone()));
        self.scheduler.apply(fact);
    }

    /// Notes what the fact does to a pause.
    fn note_pause(&mut self, fact: &Fact) {
        let (questions, executions) = self.model.deferred();
        match fact {
            Fact::Paused if self.model.is_paused() => self.paused.push("a repeated pause"),
            Fact::Paused if self.model.end().is_none() => self.paused.push("a pause"),
            Fact::Unpaused if self.model.is_paused() => {
                self.paused.extend((questions > 0).then_some("a deferred question"));
                self.paused.extend((executions > 0).then_some("a deferred execution"));
            }
            Fact::Unpaused if self.model.end().is_none() => self.paused.push("an unpause without a pause"),
            Fact::ExecutionSucceeded { .. } | Fact::ExecutionFailed { .. } if self.model.is_paused() => {
                self.paused.push("a result in a pause");
            }
            Fact::CancelRequested if self.model.is_paused() => self.paused.push("a cancel in a pause"),
            Fact::Redriven if self.ended_in_pause => self.paused.push("redriven after an end in a pause"),
            _ => {}
        }
    }

    /// Asks both sides for at most this many actions.
    fn drain(&mut self, most: usize) -> Result<(), String> {
        for _ in 0..most {
            let said = self.scheduler.next_action().map(|action| self.reader.read(&action));
            let expected = self.model.next_line();
            if said != expected {
                return Err(self.difference(said, expected));
            }
            let Some(line) = said else {
                self.history.push(Moment::Quiet);
                self.compare_evaluations()?;
                break;
            };
            self.history.push(Moment::Said(line.clone()));
            self.react(&line);
        }
        Ok(())
    }

    /// The immediate reactions of the run; later moves do the rest.
    fn react(&mut self, line: &Line) {
        let Tape { manner, answers, .. } = self.tape;
        match line {
            Line::Asks { question, .. } => {
                self.open_questions.push(*question);
                if manner & 1 != 0 {
                    let at = usize::try_from(*question).unwrap_or(0) % answers.len();
                    self.tell(answered(*question, answers[at]));
                }
            }
            Line::Starts { execution, call } => {
                let running = Running { execution: *execution, step: call.step, scope: call.scope };
                self.running.push(running);
                if manner & 4 != 0 && self.inline > 0 {
                    self.inline -= 1;
                    self.tell(self.succeeded(running, u16::from(*manner) * 7));
                }
            }
            Line::CleansUp { .. } if manner & 8 != 0 => self.tell(Fact::CleanUpStarted),
            Line::Drops { execution } => self.running.retain(|running| running.execution != *execution),
            _ => {}
        }
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.history.iter().filter_map(|moment| match moment {
            Moment::Said(line) => Some(line),
            Moment::Told(_) | Moment::Stalled | Moment::Quiet => None,
        })
    }
}
