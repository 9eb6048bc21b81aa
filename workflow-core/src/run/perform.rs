//! Performing the scheduler's actions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use smallvec::{SmallVec, smallvec};

use super::drive::{Asked, Run};
use super::in_flight::{Arrived, Attempt, Begun, Dropped, Guarded, InFlight, StepResult, panicked};
use super::journal::Entering;
use super::log::BranchRecord;
use super::spans::Ended;
use super::timeout::Timeout;
use crate::error::{Internal, StepError};
use crate::event::AnyEvent;
use crate::failure::StepFailed;
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::input::{BranchFailure, CallContext, Gathered, GatheredBranch, SlotValue, SlotValues, StepCall};
use crate::observe::Observed;
use crate::output::{Emitted, SetTimer};
use crate::scheduler::{
    Action, Answer, Binding, BranchSummary, CandidateId, Cause, Emission, Entry, Evaluated, Fact,
    GroupSummary, Inputs, Start, TimerEntry, Wanted,
};
use crate::table::{OutputRow, StepIndex};
use crate::workflow::Check;

impl Run {
    pub(super) fn perform(&mut self, action: Action, cx: &mut Context<'_>) {
        match action {
            Action::AskPrecondition { candidate, step, scope, trigger, binding } => {
                self.ask(candidate, step, scope, trigger, &binding);
            }
            Action::StartExecution { execution, step, scope, trigger, binding } => {
                let inputs = Inputs::of(binding, self.host.table.step(step), trigger);
                self.start_on(Start { execution, step, scope, trigger, inputs }, &mut 0, cx);
            }
            Action::Append { cause, entries, timers } => self.append(cause, entries, timers),
            Action::AppendGathered { entry, group } => self.append_gathered(entry, &group),
            Action::DropExecution { execution } => self.drop_execution(execution),
            Action::FreeScope { scope } => self.free(scope),
            Action::RefuseCommit { execution } => self.refuse_commit(execution),
            Action::RefuseReceived => self.refuse_received(),
            Action::Wait => self.wait(),
            // The loop sees that the scheduler has ended.
            Action::Finish { .. } => {}
        }
    }

    fn call(&self, execution: ExecutionId, step: StepIndex, scope: ScopeId, attempt: u32) -> CallContext {
        CallContext { run: Arc::clone(&self.shared), step: step.get(), execution, attempt, scope }
    }

    /// Begins the first attempt of an execution, or another (S37): what it returned, if it did so at once.
    pub(super) fn start(&mut self, start: Start, cx: &mut Context<'_>) -> Option<StepResult> {
        let Start { execution, step, scope, trigger, .. } = start;
        let row = self.host.table.step(step);
        let slots = self.log.slots_of(row, &start);
        // One that a journal tells of was traced when it was read.
        let is_new = !self.trace.has_begun(execution);
        let attempt = if is_new { 1 } else { self.trace.attempt(execution) };
        let span = self.spans.begin(&row.name, execution, attempt, scope);
        let forced = row.policy.spawn;
        let timeout = row.policy.timeout.map(|after| Timeout::new(after, &self.shared.common.clock));
        if attempt == 1 {
            self.shared.tell(|| Observed::ExecutionStarted {
                execution,
                step: Arc::clone(&row.name),
                scope,
                trigger,
            });
        }
        let mut compacts = false;
        if is_new {
            self.trace.start(start, self.clock.now);
        } else {
            self.shared.tell(|| Observed::AttemptStarted { execution, step: Arc::clone(&row.name), attempt });
            self.trace.attempted_again(execution);
            compacts = self.trace.attempts(execution).last().is_some_and(|failed| failed.compacts);
        }
        let call = StepCall::new(slots, self.call(execution, step, scope, attempt));
        let attempt = Attempt { timeout, compacts };
        let begun = Begun::new(&self.host, step.get(), call, span, attempt);
        self.launch(execution, step, begun, forced, cx)
    }

    /// Polls the execution at once; what is pending stays in this task, and what is heavy moves to another.
    fn launch(
        &mut self,
        execution: ExecutionId,
        step: StepIndex,
        mut begun: Begun,
        forced: bool,
        cx: &mut Context<'_>,
    ) -> Option<StepResult> {
        if forced || self.host.weight(step.get()).is_heavy() && self.has_threads() {
            begun = match begun.weighed(&self.host, step.get()).spawn() {
                Ok(task) => {
                    let dropped = self.droppable(execution);
                    self.in_flight.push(InFlight::Spawned(execution, task, dropped));
                    return None;
                }
                Err(begun) => begun,
            };
        }
        let polled = begun.poll(cx);
        self.host.weight(step.get()).note(self.clock.tick());
        match polled {
            Poll::Ready(result) => Some(result),
            Poll::Pending => {
                let dropped = self.droppable(execution);
                let future = begun.weighed(&self.host, step.get());
                self.in_flight.push(InFlight::Execution(execution, future, dropped));
                None
            }
        }
    }

    /// What an execution returned waits for its turn.
    pub(super) fn returned(&mut self, execution: ExecutionId, result: StepResult) {
        self.arrived.push_back(Arrived::Execution(execution, result));
    }

    pub(super) fn droppable(&mut self, execution: ExecutionId) -> Arc<Dropped> {
        Arc::clone(self.droppable.entry(execution).or_default())
    }

    pub(super) fn drop_execution(&mut self, execution: ExecutionId) {
        if let Some(dropped) = self.droppable.remove(&execution) {
            self.dropping += usize::from(dropped.tell());
            self.shared.cancellations.tell(execution);
        }
        self.held.retain(|held| held.start().is_none_or(|start| start.execution != execution));
        if let Some(step) = self.trace.dropped(execution, self.clock.now) {
            self.note_end(execution, step, Ended::Dropped);
            let step = Arc::clone(&self.host.table.step(step).name);
            self.shared.tell(|| Observed::ExecutionDropped { execution, step });
        }
    }

    /// A scope is settled or dropped: its lists go, and nobody waits for its preconditions any more.
    pub(super) fn free(&mut self, scope: ScopeId) {
        self.log.free(scope);
        self.held.retain(
            |held| !matches!(held, Wanted::Act(Action::AskPrecondition { scope: of, .. }) if *of == scope),
        );
        if self.asked.is_empty() {
            return;
        }
        let all = (scope, CandidateId(0))..=(scope, CandidateId(u64::MAX));
        while let Some((asking, _)) = self.asked.range(all.clone()).next() {
            let asking = *asking;
            if let Some(Asked { dropped, .. }) = self.asked.remove(&asking) {
                self.dropping += usize::from(dropped.tell());
            }
        }
    }

    /// A precondition gets the step's slots in the order of its own parameters (S18).
    fn ask(
        &mut self,
        candidate: CandidateId,
        step: StepIndex,
        scope: ScopeId,
        trigger: Seq,
        binding: &Binding,
    ) {
        let row = self.host.table.step(step);
        let wanted = row.precondition.iter().flat_map(|precondition| &precondition.slots);
        let mut slots = SlotValues::new();
        for slot in wanted {
            slots.push(slot.map_or(SlotValue::Empty, |slot| self.log.slot_of(row, binding, slot)));
        }
        let call = StepCall::new(slots, self.call(ExecutionId(0), step, scope, 1));
        let asked = catch_unwind(AssertUnwindSafe(|| self.host.check(step.get(), call)));
        match asked.unwrap_or_else(|panic| Check::Answered(Err(panicked(panic)))) {
            Check::Answered(answer) => self.answer(candidate, (step, scope, trigger), answer),
            Check::Pending(check) => {
                let dropped = Arc::<Dropped>::default();
                let asked = Asked { step, trigger, dropped: Arc::clone(&dropped) };
                self.asked.insert((scope, candidate), asked);
                self.in_flight.push(InFlight::Check(candidate, Guarded::new(check), dropped));
            }
        }
    }

    pub(super) fn answered(&mut self, candidate: CandidateId, answer: Result<bool, StepError>) {
        // Without a scope the candidate was dropped, and nobody wants to know any more.
        let Some(scope) = self.scheduler.scope_of(candidate) else { return };
        let Some(Asked { step, trigger, .. }) = self.asked.remove(&(scope, candidate)) else { return };
        self.answer(candidate, (step, scope, trigger), answer);
    }

    fn answer(
        &mut self,
        candidate: CandidateId,
        (step, scope, trigger): Evaluated,
        answer: Result<bool, StepError>,
    ) {
        let row = self.host.table.step(step);
        if let Some(precondition) = &row.precondition {
            self.shared.tell(|| Observed::PreconditionAnswered {
                step: Arc::clone(&row.name),
                precondition: Arc::clone(&precondition.name),
                trigger,
                answer: answer.as_ref().ok().copied(),
            });
        }
        if let Ok(answer) = answer {
            self.record_answer(step, scope, trigger, answer);
        }
        let answer = match answer {
            Ok(true) => Answer::Yes,
            Ok(false) => Answer::No,
            Err(error) => {
                self.precondition_failures.insert(candidate, (step, error));
                Answer::Failed
            }
        };
        self.scheduler.apply(Fact::PreconditionAnswered { candidate, answer });
    }

    /// One batch enters the log (S23).
    fn append(&mut self, cause: Cause, entries: SmallVec<[Entry; 1]>, timers: Vec<TimerEntry>) {
        let mut fan_outs = Vec::new();
        let (events, timers, done) = match cause {
            Cause::Execution(id) => {
                fan_outs = self.opened(id);
                let (events, set) = self.committed(id);
                (events, self.settings(timers, set), None)
            }
            Cause::Failure(id) => (self.failed_event(id).into_iter().collect(), Vec::new(), None),
            _ => {
                let received = self.receiving.pop_front();
                let received =
                    received.map(|received| (smallvec![received.event], Vec::new(), received.done));
                received.unwrap_or_default()
            }
        };
        debug_assert_eq!(events.len(), entries.len(), "a batch is appended as it was committed");
        self.enter(Entering { cause, entries, events, timers, fan_outs, done });
    }

    /// The batch is in the log: whoever depends on it can go on (S38).
    pub(super) fn entered(&mut self, batch: Entering) {
        let Entering { cause, entries, events, timers, done, .. } = batch;
        if let Cause::Execution(id) = cause {
            self.note_success(id);
            self.trace.emitted(id, &entries);
            self.note_branches(id, &entries);
        }
        if let (Cause::Failure(id), Some(entry)) = (cause, entries.first()) {
            self.trace.caught(id, entry.seq);
        }
        for (entry, event) in entries.into_iter().zip(events) {
            self.append_event(entry, event, cause);
        }
        if let Some(done) = done {
            let _ = done.send(Ok(()));
        }
        self.scheduler.apply(Fact::Appended);
        self.set_timers(timers);
    }

    /// An entry outside of its execution's scope is the item of a branch.
    pub(super) fn note_branches(&mut self, opener: ExecutionId, entries: &[Entry]) {
        let Some(parent) = self.trace.scope_of(opener) else { return };
        for Entry { seq, scope, .. } in entries.iter().filter(|entry| entry.scope != parent) {
            self.log.branch(BranchRecord { scope: *scope, parent, item: *seq, opener });
        }
    }

    fn committed(&mut self, id: ExecutionId) -> (SmallVec<[AnyEvent; 1]>, Vec<SetTimer>) {
        let committing = self.committing.take_if(|(committing, _)| *committing == id);
        committing.map(|(_, emitted)| emitted.into_parts()).unwrap_or_default()
    }

    /// The failure of an execution, which a step catches, as an event (S29).
    pub(super) fn failed_event(&mut self, execution: ExecutionId) -> Option<AnyEvent> {
        let (step, error) = (self.trace.step_of(execution)?, self.failures.remove(&execution)?);
        let step = Arc::clone(&self.host.table.step(step).name);
        let attempts = self.trace.attempts_made(execution);
        Some(AnyEvent::new(StepFailed::new(step, execution, attempts, &error)))
    }

    pub(super) fn append_event(&mut self, entry: Entry, event: AnyEvent, cause: Cause) {
        let Entry { seq, scope, .. } = entry;
        self.shared.tell(|| Observed::EventLogged { seq, scope, event: event.clone(), cause });
        if event.known_type().roles.is_display() {
            self.display(cause, event.clone());
        }
        self.meter.logged();
        self.log.append(&self.host.table, entry, event, cause, self.clock.now);
    }

    /// An event that is both control and display is shown when it enters the log (S2).
    fn display(&self, cause: Cause, event: AnyEvent) {
        let (Cause::Execution(execution) | Cause::Timer { execution, .. }) = cause else {
            return self.shared.display().receive(event);
        };
        if let Some(step) = self.trace.step_of(execution) {
            let attempt = self.trace.attempt(execution);
            self.shared.display_for(step.get(), execution, attempt).show_logged(event);
        }
    }

    /// What a fan-out left behind, as the event that says so.
    pub(super) fn gathered(&mut self, group: &GroupSummary) -> AnyEvent {
        let mut branches = Vec::with_capacity(group.branches.len());
        branches.extend(group.branches.iter().filter_map(|branch| self.gathered_branch(branch)));
        AnyEvent::from_erased(Arc::new(Gathered { branches }))
    }

    fn append_gathered(&mut self, entry: Entry, group: &GroupSummary) {
        let event = self.gathered(group);
        self.enter(Entering {
            cause: Cause::Outside,
            entries: smallvec![entry],
            events: smallvec![event],
            timers: Vec::new(),
            fan_outs: Vec::new(),
            done: None,
        });
    }

    fn gathered_branch(&mut self, branch: &BranchSummary) -> Option<GatheredBranch> {
        let failure = branch.failures.first().and_then(|execution| self.branch_failure(*execution));
        for execution in &branch.failures {
            self.failures.remove(execution);
        }
        let event = |seq: Seq| self.log.get(seq).map(|record| record.event.clone());
        let events = branch.events.iter().filter_map(|(_, seq)| event(*seq)).collect();
        let failure = failure.map(Box::new);
        Some(GatheredBranch { scope: branch.scope, item: event(branch.item)?, events, failure })
    }

    pub(super) fn branch_failure(&self, execution: ExecutionId) -> Option<BranchFailure> {
        let step = self.trace.step_of(execution)?;
        let error = self.failures.get(&execution)?.clone();
        Some(BranchFailure { step: Arc::clone(&self.host.table.step(step).name), error })
    }

    /// S28. A step that returned nothing had nothing to be refused.
    pub(super) fn refuse_commit(&mut self, execution: ExecutionId) {
        let Some((_, emitted)) = self.committing.take() else { return };
        let (mut events, timers) = emitted.into_parts();
        events.extend(timers.into_iter().map(|timer| timer.event));
        if events.is_empty() {
            self.note_success(execution);
        } else {
            self.note_refused(execution, &events);
        }
    }

    pub(super) fn note_refused(&mut self, execution: ExecutionId, events: &[AnyEvent]) {
        let events: Vec<&'static str> = events.iter().map(AnyEvent::name).collect();
        if let Some(step) = self.trace.refused(execution, self.clock.now, &events) {
            self.note_end(execution, step, Ended::Refused);
            let step = Arc::clone(&self.host.table.step(step).name);
            self.shared.tell(|| Observed::CommitRefused { execution, step, events });
        }
    }

    /// What the batch is, in the scheduler's terms.
    pub(super) fn emissions(
        &self,
        step: StepIndex,
        emitted: &Emitted,
    ) -> Result<SmallVec<[Emission; 1]>, Internal> {
        let table = &self.host.table;
        let outputs = &table.step(step).outputs;
        let mut emissions = SmallVec::with_capacity(emitted.items().len());
        for item in emitted.items() {
            let event = item.event_type();
            let declares = |row: &&OutputRow| table.event(row.event).type_id == Some(event.type_id);
            let emission = outputs.iter().filter(declares).find_map(|row| item.emission(row));
            // A request can expire only where that is declared too.
            let emission = emission.filter(|emission| match emission {
                Emission::Expiring(request) => table.event(*request).expired.is_some(),
                _ => true,
            });
            emissions.push(emission.ok_or(Internal::UndeclaredOutput { event: event.name })?);
        }
        Ok(emissions)
    }
}
