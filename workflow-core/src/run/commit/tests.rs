use std::task::Waker;

use super::*;
use crate::id::Origin;
use crate::run::bare_run::{BareRun, Begin, Draft, Seen, WRITE};
use crate::run::meter::Meter;
use crate::run::state::PauseStart;
use crate::scheduler::Candidate;
use crate::store::{MemoryStore, RunSummary};
use crate::table::StepIndex;

/// A run of `Letters`, the batches that enter it, and the observations of it.
struct Commits {
    committer: Committer,
    seen: Arc<Seen>,
    step: StepIndex,
    batches: std::vec::IntoIter<Batch>,
}

impl Commits {
    /// A run with an empty log, with or without a journal.
    fn of(journal: Option<Journal>) -> Self {
        let run = BareRun::new();
        let batches = vec![run.received(), run.returned(WRITE, Draft)].into_iter();
        let (step, BareRun { shared, mut state, seen, host }) = (run.step("send"), run);
        state.skip(journal.as_ref().map_or(0, Journal::queued_records));
        let telemetry = Telemetry::new(&shared, Meter::new(&host.table.name));
        let clock = RunClock::start(shared.common.clock.clone());
        let mut committer = Committer::new(shared, StateBox::of(state), telemetry, clock);
        committer.keep_journal(journal);
        Self { committer, seen, step, batches }
    }

    fn in_memory() -> Self {
        Self::of(None)
    }

    fn with_store() -> Self {
        let at = std::time::SystemTime::UNIX_EPOCH;
        let (first, run) = (Record::RunKept { at }, RunSummary::running("Letters", at));
        Self::of(Some(Journal::begin(Arc::new(MemoryStore::default()), first, run)))
    }

    /// Commits the next batch: the start event, then the result of `write`. Returns the direct execution and
    /// the sender's receiver.
    fn commit(&mut self) -> (Option<ExecutionStart>, oneshot::Receiver<Result<(), SendError>>) {
        let (done, hears) = oneshot::channel();
        let next = self.committer.commit(self.batches.next().expect("there are two"), Some(done));
        self.committer.advance(&mut usize::MAX.clone());
        (next, hears)
    }

    /// One write, if anything is queued.
    fn write(&mut self) -> Option<Answer> {
        self.committer.write();
        self.committer.poll_answer(&mut Context::from_waker(Waker::noop()))
    }

    /// The next effect that may begin.
    fn due(&mut self) -> Option<EffectKind> {
        let written = self.committer.journal.as_deref().map(Journal::written);
        self.committer.state.next_effect(written)
    }
}

#[test]
fn without_a_store_a_batch_is_reported_at_once_and_its_only_successor_needs_no_queue() {
    let mut run = Commits::in_memory();
    let (next, mut hears) = run.commit();
    assert_eq!(next.map(|start| start.execution), Some(WRITE));
    assert!(matches!(hears.try_recv(), Ok(Ok(()))));
    assert_eq!(run.seen.take(), ["EventLogged Begin"]);
    let (next, _) = run.commit();
    assert!(next.is_none(), "a precondition is asked before");
    assert_eq!(run.seen.take(), ["ExecutionSucceeded", "EventLogged Draft", "Displayed"]);
    assert!(matches!(run.due(), Some(EffectKind::Precondition(_))));
    assert!(run.committer.is_written_out() && run.committer.pending.is_empty());
}

// S38
#[test]
fn with_a_store_a_batch_is_reported_and_has_effects_once_the_store_has_it() {
    let mut run = Commits::with_store();
    let (next, mut hears) = run.commit();
    assert!(next.is_none() && run.due().is_none() && hears.try_recv().is_err());
    assert!(run.seen.take().is_empty() && !run.committer.is_written_out());
    assert!(matches!(run.write(), Some(Answer::Written)));
    assert!(matches!(hears.try_recv(), Ok(Ok(()))));
    assert_eq!(run.seen.take(), ["RunStarted", "EventLogged Begin"]);
    assert!(matches!(run.due(), Some(EffectKind::Execution(start)) if start.execution == WRITE));
    assert!(run.committer.is_written_out() && run.write().is_none());
}

#[test]
fn a_question_about_the_state_is_answered_once_the_store_has_the_state() {
    let mut run = Commits::with_store();
    let _ = run.commit();
    let again = |done| super::super::Command::Timers { done };
    let (done, mut hears) = oneshot::channel();
    run.committer.answer_when_written(done, Vec::new(), again);
    assert!(hears.try_recv().is_err());
    run.write();
    assert!(hears.try_recv().is_ok());
    let (done, mut hears) = oneshot::channel();
    run.committer.answer_when_written(done, Vec::new(), again);
    assert!(hears.try_recv().is_ok(), "there is nothing to wait for");
}

// S28, S38
#[test]
fn a_batch_that_the_store_did_not_take_is_in_no_log_and_no_observer_saw_it() {
    let mut run = Commits::with_store();
    let _ = run.commit();
    run.write();
    run.seen.take();
    let (_, mut hears) = run.commit();
    let why = StoreError::unavailable(std::fmt::Error);
    run.committer.journal.as_deref_mut().expect("it has one").set_failure(why);
    run.committer.retract();
    assert!(matches!(run.committer.state.end(), Some(End::AppendFailed)));
    assert!(run.committer.state.log.get(Seq(1)).is_some() && run.committer.state.log.get(Seq(2)).is_none());
    assert_eq!(run.seen.take(), ["CommitRefused"]);
    assert!(matches!(hears.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    assert!(matches!(run.committer.journal_error(), Some(RunError::Store { .. })));
    assert!(run.committer.is_written_out(), "nothing more is written");
}

// S40
#[test]
fn a_journal_that_another_process_writes_is_a_conflict() {
    let mut run = Commits::with_store();
    let (expected, found) = (crate::store::Position(0), crate::store::Position(1));
    let why = StoreError::Conflict { expected, found };
    run.committer.journal.as_deref_mut().expect("it has one").set_failure(why);
    assert!(matches!(run.committer.journal_error(), Some(RunError::Conflict { .. })));
}

#[test]
fn late_events_are_refused_and_an_execution_that_returned_nothing_is_dropped_with_the_others() {
    let mut run = Commits::in_memory();
    let _ = run.commit();
    run.seen.take();
    run.committer.record_late_events(WRITE, [AnyEvent::new(Begin)].iter());
    run.committer.record_late_events(WRITE, std::iter::empty());
    assert_eq!(run.seen.take(), ["CommitRefused"]);
}

#[test]
fn a_waiting_run_is_running_once_a_batch_enters() {
    let mut run = Commits::in_memory();
    assert!(!run.committer.note_running(), "it runs");
    run.committer.record_waiting();
    assert_eq!(run.seen.take(), ["RunWaiting"]);
    assert!(run.committer.note_running() && !run.committer.note_running());
}

#[test]
fn the_display_of_an_execution_stays_with_its_batch_until_the_store_has_it() {
    let mut run = Commits::with_store();
    let _ = run.commit();
    let _ = run.commit();
    let display = |run: &Commits| Box::new(run.committer.shared.display_for(0, WRITE, 1));
    run.committer.note_shown(ExecutionId(7), display(&run));
    let shown = |run: &Commits| match run.committer.pending.back().map(|batch| &batch.what) {
        Some(PendingKind::Batch { shown, .. }) => shown.is_some(),
        _ => panic!("it is pending"),
    };
    assert!(!shown(&run), "it is another's");
    run.committer.note_shown(WRITE, display(&run));
    assert!(shown(&run));
    // An answer leaves no event, but has to be applied again too if an earlier batch is refused.
    let asked = |run: &Commits| {
        (0..9)
            .map(crate::scheduler::CandidateId)
            .find_map(|id| run.committer.state.scheduler.asked(id).map(|Candidate { .. }| id))
    };
    let candidate = asked(&run).expect("it is asked");
    let _ = run.committer.commit(Batch::Answered { candidate, step: run.step, answer: Ok(true) }, None);
    assert_eq!(run.committer.pending.len(), 3);
}

// S28, S62
#[test]
fn a_pause_that_the_store_did_not_take_leaves_no_id() {
    for repeated in [false, true] {
        let mut run = Commits::with_store();
        let _ = run.commit();
        let paused = |id: &str| {
            let origin = Some(Arc::new(Origin::new().id(id)));
            Batch::Paused(Box::new(PauseStart { origin, ..PauseStart::default() }))
        };
        let unpaused =
            Batch::Unpaused { by_parent: false, origin: Some(Arc::new(Origin::new().id("unpause"))) };
        let knows = |run: &Commits, id: &str| run.committer.state.knows(&Origin::new().id(id));
        if repeated {
            run.committer.commit(paused("written"), None);
        }
        run.write();
        run.committer.commit(paused("pause"), None);
        run.committer.commit(unpaused, None);
        assert!(knows(&run, "pause") && knows(&run, "unpause"));
        let why = StoreError::unavailable(std::fmt::Error);
        run.committer.journal.as_deref_mut().expect("it has one").set_failure(why);
        run.committer.retract();
        assert!(!knows(&run, "pause") && !knows(&run, "unpause"));
        assert_eq!(knows(&run, "written"), repeated);
    }
}
