//! Clean-up: the steps that run between the end of a run and its `Finish` (S31).
//!
//! ```text
//!  finish ─▶ planned ── CleanUpStarted ──▶ one step after the other ──▶ over ─▶ Finish
//!               │                               │  ▲                     │
//!               └── no clean-up step is ready   │  └── a redrive of some steps
//!                                               └── CleanUpStopped: the journal failed, or has the end of the run
//! ```
//!
//! The plan is made when the run ends, from what the root has then. Nothing enters the log afterwards, so the plan
//! needs no further look at it. The run drops its executions and waits for its children before it applies
//! `CleanUpStarted`; from then on clean-up executions are started and asked like others, but one at a time.
//!
//! Example: a run has booked a flight at 2 and a hotel at 3, and its payment fails. `unbook_hotel` requires 3 and
//! `unbook_flight` requires 2, so the hotel comes first.
//!
//! Invariants: at most one step of the plan is open, the one at `next`. A clean-up execution belongs to the root, and
//! its trigger is the last event that it requires. No other execution of the step exists.

use super::actions::QueuedAction;
use super::board::Board;
use super::candidates::{Candidate, VerdictSlot};
use super::{Action, Answer, Binding, Bound, CandidateId, End, Entry, Inputs, Scheduler};
use crate::id::{ExecutionId, RunStatus, ScopeId, Seq};
use crate::spec::InputKind;
use crate::table::{EventIndex, InputRow, StepIndex};

/// The clean-up of one end.
#[derive(Debug)]
pub(crate) struct CleanUp {
    /// The steps, in the order in which they run.
    steps: Vec<CleanUpStep>,
    phase: Phase,
    /// The number of its first execution, once it has begun. A run may end without, if its journal is older than its
    /// clean-up steps.
    first: Option<ExecutionId>,
    /// The place of the step that is open or comes next.
    next: usize,
}

/// How far a clean-up has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The run ends, and its executions are not dropped yet.
    Planned,
    /// The steps run.
    Began,
    /// Every step has ended, or the clean-up was stopped.
    Over,
}

/// One step of a clean-up.
#[derive(Debug)]
pub(crate) struct CleanUpStep {
    pub(crate) step: StepIndex,
    /// The last event that the step requires. It orders the steps and identifies the execution.
    trigger: Seq,
    binding: Binding,
    pub(crate) state: CleanUpState,
    /// The execution of the step that begins anew when the turn of the step comes, after a redrive (S86).
    again: Option<ExecutionId>,
}

/// The step of a clean-up that is open or comes next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenStep {
    /// Its place among the steps.
    pub(crate) place: usize,
    pub(crate) step: StepIndex,
    pub(crate) state: CleanUpState,
}

/// How far a step of a clean-up has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CleanUpState {
    /// Earlier steps run, or the clean-up was stopped before.
    Planned,
    /// The precondition of the step is asked.
    Asking(CandidateId),
    /// The precondition said no.
    Refused,
    /// The precondition failed.
    PreconditionFailed(CandidateId),
    /// The step was executed.
    Executed(ExecutionId),
}

impl CleanUp {
    const EMPTY: Self = Self { steps: Vec::new(), phase: Phase::Planned, first: None, next: 0 };

    /// The clean-up of this end; `None` if no step is to run. Sees the events that the board has counted.
    fn plan(board: &Board, end: &End) -> Option<Box<Self>> {
        let status = match end {
            End::Completed(_) | End::AppendFailed => return None,
            end => RunStatus::from(end),
        };
        let table = &board.table;
        let runs = |step: &StepIndex| table.step(*step).on_end.is_some_and(|ends| ends.includes(status));
        let steps = table.clean_up.iter().copied().filter(runs);
        let mut steps: Vec<(Seq, CleanUpStep)> = steps.filter_map(|step| planned(board, step)).collect();
        // The latest first; of those that are equally late, the last declared.
        steps.sort_by_key(|(last, planned)| (*last, planned.step));
        let steps: Vec<_> = steps.into_iter().rev().map(|(_, planned)| planned).collect();
        (!steps.is_empty()).then(|| Box::new(Self { steps, phase: Phase::Planned, first: None, next: 0 }))
    }

    /// The steps, in the order in which they run.
    pub(crate) fn steps(&self) -> &[CleanUpStep] {
        &self.steps
    }

    /// Whether the clean-up has begun; it may be over.
    pub(crate) fn has_begun(&self) -> bool {
        self.first.is_some()
    }

    /// The number of the first clean-up execution, once the clean-up has begun. All others are lower.
    pub(crate) fn first(&self) -> Option<ExecutionId> {
        self.first
    }

    /// Whether the clean-up was stopped before all its steps had ended.
    pub(crate) fn was_stopped(&self) -> bool {
        self.phase == Phase::Over && self.next < self.steps.len()
    }

    /// Whether the steps run.
    fn is_running(&self) -> bool {
        self.phase == Phase::Began
    }

    /// Whether nothing happens before a fact arrives.
    fn is_settled(&self) -> bool {
        let waits = |step: &CleanUpStep| step.state != CleanUpState::Planned;
        self.phase != Phase::Began || self.steps.get(self.next).is_some_and(waits)
    }

    /// Sets the state of the open step, and turns to the next one if the step has ended.
    fn conclude(&mut self, state: CleanUpState, has_ended: bool) {
        if let Some(open) = self.steps.get_mut(self.next) {
            open.state = state;
        }
        if has_ended {
            self.turn_to(self.next + 1);
        }
    }

    /// Turns to the first step from this place on that has not ended: after a redrive, others have.
    fn turn_to(&mut self, place: usize) {
        let rest = self.steps.iter().skip(place);
        self.next = place + rest.take_while(|step| step.state != CleanUpState::Planned).count();
    }

    /// The step that is open or comes next; `None` if none is left, or the steps do not run.
    pub(crate) fn open_step(&self) -> Option<OpenStep> {
        let open = self.steps.get(self.next).filter(|_| self.is_running())?;
        Some(OpenStep { place: self.next, step: open.step, state: open.state })
    }

    /// The state of the open step.
    fn open(&self) -> Option<CleanUpState> {
        self.open_step().map(|open| open.state)
    }
}

/// The step bound to what the root has, with the last event that it requires; `None` if it is not ready.
fn planned(board: &Board, step: StepIndex) -> Option<(Seq, CleanUpStep)> {
    // No parameter takes this type, so each is bound to the latest (S15).
    let nothing = Entry { seq: Seq(u64::MAX), scope: ScopeId::ROOT, event: EventIndex(u32::MAX) };
    let binder = board.binder(nothing, ScopeId::ROOT);
    if !binder.is_ready(step) {
        return None;
    }
    let (binding, row) = (binder.bind(step), board.table.step(step));
    let required = row.inputs.iter().zip(&binding).filter(|(input, _)| !input.optional);
    let last = required.filter_map(|(input, bound)| last_of(board, input, bound)).max();
    // A step that requires nothing runs last. Its execution needs a trigger all the same: the first event.
    let trigger = last.unwrap_or(Seq(1));
    let state = CleanUpState::Planned;
    Some((last.unwrap_or(Seq(0)), CleanUpStep { step, trigger, binding, state, again: None }))
}

/// The last event that the parameter is bound to.
fn last_of(board: &Board, input: &InputRow, bound: &Bound) -> Option<Seq> {
    let (root, topic) = (board.scopes.get(ScopeId::ROOT)?, input.topic?);
    match (bound, input.kind) {
        (Bound::Nothing, _) => None,
        (Bound::One(seq), _) => Some(*seq),
        (Bound::List(_), InputKind::Fixed(count)) => root.first(topic).get(count as usize - 1).copied(),
        (Bound::List(_), _) => root.latest(topic),
    }
}

impl Board {
    /// Plans the clean-up of this end. Events that are in the log and were not evaluated count too.
    pub(super) fn plan_clean_up(&mut self, end: &End) {
        if self.table.clean_up.is_empty() {
            return;
        }
        while let Some(entry) = self.next_event() {
            // Nothing is surplus of an event that was never evaluated.
            if entry.scope == ScopeId::ROOT
                && let Some(root) = self.scopes.get_mut(ScopeId::ROOT)
            {
                root.count(&self.table, entry.event, entry.seq);
            }
        }
        self.clean_up = CleanUp::plan(self, end);
    }

    /// The report of the end: that clean-up is to begin, or that the run is over.
    pub(super) fn ending(&self, end: End) -> Action {
        match self.clean_up.as_deref().filter(|clean_up| clean_up.phase != Phase::Over) {
            Some(clean_up) => {
                Action::CleanUp { end, steps: clean_up.steps.iter().map(|planned| planned.step).collect() }
            }
            None => Action::Finish { end },
        }
    }

    /// Ends the clean-up, and reports the end of the run.
    fn finish_clean_up(&mut self) {
        if let Some(clean_up) = &mut self.clean_up {
            clean_up.phase = Phase::Over;
        }
        if let Some(end) = self.progress.end().cloned() {
            self.actions.say(Action::Finish { end });
        }
    }

    /// Starts the execution of the open step.
    fn execute_clean_up(&mut self) {
        let Some(clean_up) = &mut self.clean_up else { return };
        let Some(CleanUpStep { step, trigger, binding, again, .. }) = clean_up.steps.get(clean_up.next)
        else {
            return;
        };
        let known = again.and_then(|again| Some(self.executions.get(again)?.start(again)));
        let start = known.unwrap_or_else(|| {
            let inputs = Inputs::of(binding.clone(), self.table.step(*step), *trigger);
            self.executions.create((*step, ScopeId::ROOT, *trigger), inputs)
        });
        self.executions.run(&start);
        clean_up.conclude(CleanUpState::Executed(start.execution), false);
        self.actions.push(QueuedAction::Start(start));
    }
}

impl Scheduler {
    /// The clean-up of the run's end, if steps run at it.
    pub(crate) fn clean_up(&self) -> Option<&CleanUp> {
        self.board.clean_up.as_deref()
    }

    /// Whether the run has ended and its clean-up has not begun.
    pub(crate) fn is_to_clean_up(&self) -> bool {
        self.clean_up().is_some_and(|clean_up| clean_up.phase == Phase::Planned)
    }

    /// Whether clean-up steps run.
    #[inline]
    pub(crate) fn cleans_up(&self) -> bool {
        self.clean_up().is_some_and(CleanUp::is_running)
    }

    /// Whether the run has ended, and with it its clean-up.
    pub(crate) fn is_over(&self) -> bool {
        self.end().is_some() && self.clean_up().is_none_or(|clean_up| clean_up.phase == Phase::Over)
    }

    /// Whether the root has what the clean-up step requires.
    pub(crate) fn is_ready_at_end(&self, step: StepIndex) -> bool {
        planned(&self.board, step).is_some()
    }

    /// The number of the next execution.
    pub(crate) fn next_execution(&self) -> ExecutionId {
        self.board.executions.next()
    }

    /// Begins the clean-up. Drops all running executions and open questions; the caller has dropped its futures.
    ///
    /// A replay gives the steps of the journal and the number of the first clean-up execution: the table may have
    /// further clean-up steps by now, and without the limit of the live run the replay may have created more
    /// executions.
    pub(crate) fn begin_clean_up(&mut self, recorded: Option<(&[StepIndex], ExecutionId)>) -> bool {
        let Self { board, evaluation, groups } = self;
        if recorded.is_some() && board.progress.has_ended() {
            // The table may have lost its clean-up steps since.
            board.clean_up.get_or_insert_with(|| Box::new(CleanUp::EMPTY));
        }
        if !board.clean_up.as_deref().is_some_and(|clean_up| clean_up.phase == Phase::Planned) {
            return false;
        }
        // Numbers of the journal that no execution has taken stay free, so that clean-up has the last ones.
        let first = recorded.map_or(board.executions.next(), |(_, first)| first);
        board.executions.renumber_from(first);
        evaluation.retract_executions(first);
        if let Some((steps, _)) = recorded {
            // The table may have them run at other ends by now.
            let steps = steps.iter().filter(|step| board.table.step(**step).cleans_up());
            let steps = steps.filter_map(|step| Some(planned(board, *step)?.1)).collect();
            if let Some(clean_up) = &mut board.clean_up {
                clean_up.steps = steps;
            }
        }
        let dropped = (board.executions.drop_all(), evaluation.drop_questions());
        if board.progress.redrivable {
            groups.keep(dropped.0, dropped.1);
        }
        if let Some(clean_up) = &mut board.clean_up {
            (clean_up.phase, clean_up.first) = (Phase::Began, Some(first));
        }
        true
    }

    /// Lets these steps of a clean-up that is over run again, in their order (S86). Their executions begin anew. Returns
    /// `false`, with nothing changed, if no clean-up is over.
    pub(crate) fn redrive_clean_up(&mut self, steps: &[StepIndex]) -> bool {
        let Some(clean_up) = self.board.clean_up.as_deref_mut() else { return false };
        if clean_up.phase != Phase::Over || clean_up.first.is_none() {
            return false;
        }
        for planned in clean_up.steps.iter_mut().filter(|planned| steps.contains(&planned.step)) {
            if let CleanUpState::Executed(execution) = planned.state {
                planned.again = Some(execution);
            }
            planned.state = CleanUpState::Planned;
        }
        clean_up.phase = Phase::Began;
        clean_up.turn_to(0);
        // Actions that were not taken report the end before.
        self.board.actions.close();
        true
    }

    /// Ends a clean-up that has not ended: what is open is dropped, and the rest does not run.
    pub(crate) fn stop_clean_up(&mut self) -> bool {
        if self.is_over() || self.end().is_none() {
            return false;
        }
        let is_to_begin = self.is_to_clean_up() && self.is_redrivable();
        let dropped = (self.board.executions.drop_all(), self.evaluation.drop_questions());
        // A clean-up that has begun drops only its own work.
        if is_to_begin {
            self.groups.keep(dropped.0, dropped.1);
        }
        self.board.actions.close();
        self.board.finish_clean_up();
        true
    }

    /// Does one unit of clean-up. Returns `false` if there is none.
    pub(super) fn advance_clean_up(&mut self) -> bool {
        let Self { board, evaluation, .. } = self;
        let Some(clean_up) = board.clean_up.as_deref().filter(|clean_up| !clean_up.is_settled()) else {
            return false;
        };
        match clean_up.steps.get(clean_up.next) {
            None => board.finish_clean_up(),
            Some(planned) if board.table.step(planned.step).precondition.is_some() => {
                let CleanUpStep { step, trigger, ref binding, .. } = *planned;
                let (scope, place) = (ScopeId::ROOT, VerdictSlot::CleanUp);
                let candidate =
                    Candidate { step, scope, trigger, binding: binding.clone(), place, deferred: false };
                let asked = evaluation.candidates.add(candidate);
                if let Some(clean_up) = &mut board.clean_up {
                    clean_up.conclude(CleanUpState::Asking(asked), false);
                }
                board.actions.push(QueuedAction::Ask(asked));
            }
            Some(_) => board.execute_clean_up(),
        }
        true
    }

    /// Whether nothing of the clean-up is left to decide before a fact arrives.
    pub(super) fn clean_up_is_settled(&self) -> bool {
        self.clean_up().is_none_or(CleanUp::is_settled)
    }

    /// Takes the answer of a clean-up step's precondition. A failure of it changes no outcome.
    pub(super) fn answer_clean_up(&mut self, candidate: CandidateId, answer: Answer) {
        let Self { board, evaluation, .. } = self;
        let open = board.clean_up.as_deref().and_then(CleanUp::open);
        if open != Some(CleanUpState::Asking(candidate)) || evaluation.candidates.remove(candidate).is_none()
        {
            return;
        }
        let Some(clean_up) = &mut board.clean_up else { return };
        match answer {
            Answer::Yes => board.execute_clean_up(),
            Answer::No => clean_up.conclude(CleanUpState::Refused, true),
            Answer::Failed => clean_up.conclude(CleanUpState::PreconditionFailed(candidate), true),
        }
    }

    /// Notes that an execution has ended. Returns whether it is the open one of the clean-up.
    pub(super) fn end_clean_up_of(&mut self, execution: ExecutionId) -> bool {
        let Some(clean_up) = &mut self.board.clean_up else { return false };
        let state = CleanUpState::Executed(execution);
        let is_open = clean_up.open() == Some(state);
        if is_open {
            clean_up.conclude(state, true);
        }
        is_open
    }
}
