//! Each test plants one fault between a run and its journal. The replay check must find it, and must name the
//! record and the values on both sides.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::*;
use crate::clock::EngineClock;
use crate::event::{AnyEvent, Gathered};
use crate::id::ExecutionId;
use crate::prelude::*;
use crate::run::clock::RunClock;
use crate::run::host::UnhostedWorkflow;
use crate::run::records::{BatchFacts, Records, logged};
use crate::run::state::{Applied, Batch, DueEvent, EffectKind, Returned, ReturnedBatch};
use crate::scheduler::{Emission, FanOutTerms};
use crate::table::{EventIndex, StepIndex};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start, crate = crate)]
struct Begin;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(crate = crate)]
struct Page(u8);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(crate = crate)]
struct Read(u8);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external, crate = crate)]
struct Note(u8);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(crate = crate)]
struct Rang;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop, crate = crate)]
struct Done;

/// Each page is read, and annotated with each note that comes before its branch is settled.
struct Pages;

#[workflow(crate = crate)]
impl Pages {
    #[step]
    async fn split(&self, _begin: &Begin) -> FanOut<Page> {
        FanOut::new(vec![])
    }

    #[step]
    async fn read(&self, page: &Page) -> Read {
        Read(page.0)
    }

    #[step]
    async fn annotate(&self, _page: &Page, _note: &Note) {}

    #[step]
    async fn bind(&self, _pages: &Gather<Read>) -> Done {
        Done
    }
}

/// Has a precondition for a note.
struct Asks;

#[workflow(crate = crate)]
impl Asks {
    #[precondition]
    fn wants(_note: &Note) -> bool {
        true
    }

    #[step(precondition = wants)]
    async fn take(&self, _begin: &Begin, _note: &Note) -> Done {
        Done
    }
}

/// Sets a timer.
struct Rings;

#[workflow(crate = crate)]
impl Rings {
    #[step]
    async fn set(&self, _begin: &Begin) -> Timer<Rang> {
        Timer::after(Duration::from_mins(1), Rang)
    }

    #[step]
    async fn ring(&self, _rang: &Rang) -> Done {
        Done
    }
}

/// Takes two notes; more are surplus.
struct Pairs;

#[workflow(crate = crate)]
impl Pairs {
    #[step]
    async fn pair(&self, _begin: &Begin, _notes: &FixedList<Note, 2>) -> Done {
        Done
    }
}

/// A run that a test drives batch by batch, and its replay check.
struct Driven {
    state: RunState,
    clock: RunClock,
    check: Box<ReplayCheck>,
    failures: Arc<ReplayFailures>,
}

impl Driven {
    /// A run that has its start event.
    fn begin<W: Workflow>(workflow: W) -> Self {
        let (host, error) = Host::new(UnhostedWorkflow::new(workflow));
        assert!(error.is_none(), "{error:?}");
        let (host, limits) = (Arc::new(host), SchedulerLimits::default());
        let clock = RunClock::start(EngineClock::default());
        let failures = Arc::default();
        let state = RunState::new(&host.table, limits);
        let check = ReplayCheck::new(&host, clock.began_at, &failures);
        let mut run = Self { state, clock, check, failures };
        run.enter(run.received(Begin));
        run
    }

    fn event<E: Event>(&self) -> EventIndex {
        self.state.table().event_named(E::NAME).unwrap()
    }

    fn step(&self, name: &str) -> StepIndex {
        self.state.table().step_named(name).unwrap()
    }

    fn received<E: Event>(&self, event: E) -> Batch {
        Batch::Received { event: AnyEvent::new(event), index: self.event::<E>(), origin: None }
    }

    fn succeeded<E: Event>(&self, execution: u64, event: E) -> Batch {
        let returned = Returned::Event(self.event::<E>(), AnyEvent::new(event));
        Batch::Succeeded { execution: ExecutionId(execution), returned }
    }

    /// An execution opens a branch for each of this many pages.
    fn split(&self, execution: u64, items: u8) -> Batch {
        let gathers = (0..self.state.table().events().len()).map(EventIndex::at);
        let fan_out = gathers.into_iter().find_map(|event| self.state.table().event(event).gathers).unwrap();
        let (items, events) = (u32::from(items), (0..items).map(|page| AnyEvent::new(Page(page))).collect());
        let emission = Emission::FanOut { fan_out, items, terms: FanOutTerms::default() };
        returned(execution, vec![emission], events, vec![])
    }

    /// Completes the consequences of the batches, and journals the entries that followed by themselves.
    fn advance(&mut self) {
        self.state.advance(&mut usize::MAX.clone());
        let _ = self.state.take_dropped();
        while let Some(seq) = self.state.take_derived() {
            let record = self.logged(seq);
            self.check.take(&[record]);
        }
    }

    fn logged(&self, seq: Seq) -> Record {
        logged(seq, &self.state, self.clock.stamp()).unwrap()
    }

    /// Applies a batch, and returns its records without journaling them.
    fn apply(&mut self, batch: Batch) -> Records {
        self.advance();
        self.check.compare(&self.state);
        let noted = BatchFacts::of(&batch, &self.state, &self.clock);
        let applied = self.state.apply(batch, self.clock.now);
        assert!(!matches!(applied, Applied::Refused), "the run takes it");
        noted.records(&applied, Vec::new(), &self.state)
    }

    /// Applies a batch and journals its records.
    fn enter(&mut self, batch: Batch) {
        let records = self.apply(batch);
        self.check.take(&records);
    }

    /// Lets a note in while a branch of the batch before is still to be settled. This plants the fault of a
    /// run that gives its scheduler a fact too early.
    fn enter_early(&mut self, note: Note) -> Record {
        let applied = self.state.receive_early(AnyEvent::new(note), self.event::<Note>());
        let Applied::Logged(entered) = applied else { panic!("the run takes it") };
        self.logged(entered.events()[0].seq)
    }

    /// The finding of a comparison with the run as it is now.
    fn compared(mut self) -> Option<String> {
        self.advance();
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.check.compare(&self.state);
            self.check.finish();
        }));
        self.failures.first()
    }

    /// The finding when the journal gets these records.
    fn taken(mut self, records: &[Record]) -> Option<String> {
        let _ = catch_unwind(AssertUnwindSafe(|| self.check.take(records)));
        self.failures.first()
    }

    /// The running executions of this step.
    fn running(&self, step: &str) -> Vec<u64> {
        let of = self.step(step);
        let executions = (1..=20).map(ExecutionId).filter(|id| self.state.scheduler.is_running(*id));
        executions.filter(|id| self.state.step_of(*id) == Some(of)).map(|id| id.0).collect()
    }
}

/// Asserts that the check has found something and that its text has all these parts.
#[track_caller]
fn assert_found(found: Option<String>, says: &[&str]) {
    let found = found.expect("the check finds the mistake");
    for part in says {
        assert!(found.contains(part), "`{part}` is missing in:\n{found}");
    }
}

/// A run with two pages to read.
fn two_pages() -> Driven {
    let mut run = Driven::begin(Pages);
    run.advance();
    run.enter(run.split(1, 2));
    run.advance();
    assert_eq!(run.running("read"), [2, 3]);
    run
}

// S38, S39
#[test]
fn a_run_and_its_journal_are_the_same_where_nothing_is_wrong() {
    let mut run = two_pages();
    run.enter(run.succeeded(2, Read(0)));
    run.enter(run.received(Note(1)));
    run.advance();
    assert_eq!(run.running("annotate").len(), 1, "the other branch is settled");
    run.enter(run.succeeded(3, Read(1)));
    let annotation = run.running("annotate")[0];
    run.enter(returned(annotation, vec![], vec![], vec![]));
    run.advance();
    let (_, last) = run.state.log.records().last().unwrap();
    assert!(last.event.payload_ref::<Gathered>().is_some());
    assert_eq!(run.compared(), None);
}

// S46, S47
#[test]
fn a_branch_that_is_settled_too_late_for_an_event_of_the_root_is_found() {
    let mut run = two_pages();
    run.enter(run.succeeded(2, Read(0)));
    let note = run.enter_early(Note(1));
    run.check.take(&[note]);
    run.advance();
    assert_eq!(run.running("annotate").len(), 2, "the branch that was to be settled took the note as well");
    assert_found(
        run.compared(),
        &[
            "a run of `Pages` and its journal differ at 7",
            "the run has:     trace x5 ",
            "the journal has: scope ",
            r#"the last record: {"event_logged":{"seq":5,"#,
            r#""Note""#,
        ],
    );
}

// S39, S48
#[test]
fn an_event_that_enters_between_a_batch_and_the_gather_that_follows_from_it_is_found() {
    let mut run = two_pages();
    run.enter(run.succeeded(2, Read(0)));
    run.advance();
    run.enter(run.succeeded(3, Read(1)));
    let note = run.enter_early(Note(1));
    assert_found(
        run.taken(&[note]),
        &[
            "the journal of a run of `Pages` cannot be replayed at 8: `",
            "` would be logged before it now",
            r#"{"event_logged":{"seq":6,"#,
            r#""Note""#,
        ],
    );
}

/// The batch of an execution with these emissions.
fn returned(execution: u64, emissions: Vec<Emission>, events: Vec<AnyEvent>, timers: Vec<DueEvent>) -> Batch {
    let returned = Returned::Many(Box::new(ReturnedBatch { emissions, events, timers }));
    Batch::Succeeded { execution: ExecutionId(execution), returned }
}

/// A run whose precondition has answered yes, and the record of that answer, which its journal lacks.
fn answered() -> (Driven, Records) {
    let mut run = Driven::begin(Asks);
    run.enter(run.received(Note(1)));
    run.advance();
    let asked = std::iter::from_fn(|| run.state.next_effect(None)).find_map(|begins| match begins {
        EffectKind::Precondition(candidate) => Some(candidate),
        _ => None,
    });
    let candidate = asked.unwrap();
    let step = run.state.scheduler.asked(candidate).unwrap().step;
    let records = run.apply(Batch::Answered { candidate, step, answer: Ok(true) });
    run.advance();
    assert_eq!(run.running("take"), [1]);
    (run, records)
}

// S18, S39
#[test]
fn the_answer_of_a_precondition_that_is_in_no_record_is_found_at_once() {
    let (mut journaled, records) = answered();
    journaled.check.take(&records);
    assert_eq!(journaled.compared(), None);
    let (skipped, _) = answered();
    assert_found(
        skipped.compared(),
        &[
            "a run of `Asks` and its journal differ at 2",
            "the run has:     trace x1 ",
            "the journal has: scope ",
            r#"the last record: {"event_logged":{"seq":2,"#,
        ],
    );
}

// S18, S39
#[test]
fn the_answer_of_a_precondition_that_is_in_no_record_is_found_by_what_follows_from_it() {
    let (mut skipped, _) = answered();
    skipped.advance();
    let batch = skipped.succeeded(1, Done);
    let noted = BatchFacts::of(&batch, &skipped.state, &skipped.clock);
    let applied = skipped.state.apply(batch, skipped.clock.now);
    let records = noted.records(&applied, Vec::new(), &skipped.state);
    assert_found(
        skipped.taken(&records),
        &[
            "the journal of a run of `Asks` cannot be replayed at 2: step `take` ran for #2 as x1, and would not run",
            r#"{"execution_succeeded":{"execution":1,"step":"take","#,
        ],
    );
}

/// The batch that sets a timer, due this much later than by the run's own reckoning.
fn set_timer(run: &Driven, later: Duration) -> Batch {
    let due = run.clock.began_at + Duration::from_mins(1) + later;
    let timers = vec![DueEvent { due, event: AnyEvent::new(Rang) }];
    returned(1, vec![Emission::Timer(run.event::<Rang>())], vec![], timers)
}

/// The finding if the state has its timer this much later than the journal.
fn with_timer(later: Duration) -> Option<String> {
    let mut run = Driven::begin(Rings);
    run.advance();
    run.check.compare(&run.state);
    // The record has the one due time, and the state the other.
    let noted = BatchFacts::of(&set_timer(&run, Duration::ZERO), &run.state, &run.clock);
    let batch = set_timer(&run, later);
    let applied = run.state.apply(batch, run.clock.now);
    let records = noted.records(&applied, Vec::new(), &run.state);
    run.check.take(&records);
    run.compared()
}

// S32, S39
#[test]
fn a_timer_that_is_due_by_another_reading_of_the_clock_than_its_record_is_found() {
    assert_eq!(with_timer(Duration::ZERO), None);
    assert_found(
        with_timer(Duration::from_nanos(1)),
        &[
            "a run of `Rings` and its journal differ at 3",
            "the run has:     timer TimerEntry",
            "the journal has: timer TimerEntry",
            r#"the last record: {"timer_set":{"#,
        ],
    );
}

/// A run that has a pair of notes and a surplus one.
fn three_notes() -> Driven {
    let mut run = Driven::begin(Pairs);
    for note in 1..=3 {
        run.enter(run.received(Note(note)));
    }
    run.advance();
    let pair = run.step("pair");
    assert_eq!((run.running("pair"), run.state.scheduler.surplus_of(pair)), (vec![1], 1));
    run
}

// S17, S39
#[test]
fn a_surplus_that_the_run_did_not_count_is_found() {
    assert_eq!(three_notes().compared(), None);
    let mut run = three_notes();
    let pair = run.step("pair");
    run.state.scheduler.forget_surplus(pair);
    assert_found(
        run.compared(),
        &[
            "a run of `Pairs` and its journal differ at 4",
            "the run has:     totals: [(1, 1, 0, [])]",
            "the journal has: totals: [(1, 1, 1, [])]",
            r#"the last record: {"event_logged":{"seq":4,"#,
        ],
    );
}

// S17, S39
#[test]
fn a_surplus_event_that_the_run_dropped_is_found() {
    let mut run = three_notes();
    let entered = run.logged(Seq(4));
    let Record::EventLogged { scope, cause, event, at, .. } = entered else { panic!("it is an event") };
    let dropped = Record::EventLogged { seq: Seq(5), scope, cause, event, origin: None, at };
    run.check.take(&[dropped]);
    assert_found(
        run.compared(),
        &[
            "a run of `Pairs` and its journal differ at 5",
            "the run has:     trace x1 ",
            "the journal has: log #5 Note in ",
            r#"the last record: {"event_logged":{"seq":5,"#,
        ],
    );
}
