//! Events that steps return and emit (S7, S24).

use std::fmt;
use std::sync::{Arc, Mutex};

use workflow_core::ErrorClass;
use workflow_core::errors::EmitError;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Close, Done, Item, Part, Saw, log_of, saw};

struct NothingMuch;

#[workflow]
impl NothingMuch {
    #[step]
    async fn unit(&self, _begin: &Begin) {}

    #[step]
    async fn none(&self, _begin: &Begin) -> Option<Item> {
        None
    }

    #[step]
    async fn empty(&self, _begin: &Begin) -> Vec<Item> {
        Vec::new()
    }

    #[step]
    async fn nested(&self, _begin: &Begin) -> Result<Option<Vec<Item>>, StepError> {
        Ok(Some(Vec::new()))
    }

    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

// S24
#[tokio::test]
async fn unit_none_and_an_empty_vec_leave_nothing_and_are_no_error() {
    let run = Scenario::new(NothingMuch).start(Begin(1)).await;
    assert_eq!(log_of(run.report()), ["Begin", "Done"]);
    assert!(run.report().trace.iter().take(4).all(|trace| trace.emitted.is_empty()));
}

struct Twins;

#[workflow]
impl Twins {
    #[step]
    async fn items(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn parts(&self, begin: &Begin) -> Vec<Part> {
        (0..begin.0).map(Part).collect()
    }

    #[step]
    async fn note_item(&self, item: &Item) -> Saw {
        Saw(item.0.to_string())
    }

    #[step]
    async fn end(&self, _items: &FixedList<Item, 3>, _parts: &FixedList<Part, 3>) -> Done {
        Done(0)
    }
}

// S24
#[tokio::test]
async fn the_events_of_a_vec_are_adjacent_and_in_order() {
    let run = Scenario::new(Twins).start(Begin(3)).await;
    let made = ["Begin", "Item", "Item", "Item", "Part", "Part", "Part", "Saw", "Saw", "Saw", "Done"];
    assert_eq!(log_of(run.report()), made);
    assert_eq!(saw(&run), ["0", "1", "2"]);
}

struct Shapes;

#[workflow]
impl Shapes {
    #[step]
    async fn tuple(&self, begin: &Begin) -> (Item, Option<Part>, Vec<Item>) {
        (Item(begin.0), Some(Part(begin.0)), vec![Item(1), Item(2)])
    }

    #[step]
    async fn pairs(&self, _part: &Part) -> Vec<(Close, Marked)> {
        vec![(Close, Marked(1)), (Close, Marked(2))]
    }

    #[step]
    async fn end(&self, marked: FixedList<Marked, 2>) -> Result<Done, StepError> {
        Ok(Done(marked.iter().map(|marked| marked.0).sum()))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Marked(u32);

// S7
#[tokio::test]
async fn tuples_and_vecs_of_tuples_enter_the_log_from_left_to_right() {
    let run = Scenario::new(Shapes).start(Begin(1)).await;
    let expected = ["Begin", "Item", "Part", "Item", "Item", "Close", "Marked", "Close", "Marked", "Done"];
    assert_eq!(log_of(run.report()), expected);
}

#[derive(Debug)]
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken on purpose")
    }
}

impl std::error::Error for Broken {}

struct Fallible;

#[workflow]
impl Fallible {
    #[step]
    async fn end(&self, begin: &Begin) -> Result<Done, Broken> {
        if begin.0 == 0 { Err(Broken) } else { Ok(Done(begin.0)) }
    }
}

// S7
#[tokio::test]
async fn the_ok_of_a_result_is_emitted() {
    assert_eq!(Fallible.run(Begin(4)).await.unwrap(), Done(4));
}

// S7, S35
#[tokio::test]
async fn the_err_of_a_result_fails_the_run_and_is_kept_as_it_was() {
    let error = Fallible.run(Begin(0)).await.unwrap_err();
    let RunError::StepFailed { step, class, source, .. } = &error else { panic!("{error}") };
    assert_eq!((&**step, *class), ("end", ErrorClass::Permanent));
    assert!(source.downcast_ref::<Broken>().is_some());
    assert_eq!(error.cause().unwrap().to_string(), "broken on purpose");
}

struct Classified;

#[workflow]
impl Classified {
    #[step]
    async fn end(&self, begin: &Begin) -> Result<Done, StepError> {
        match begin.0 {
            0 => Err(StepError::rejected("not JSON")),
            1 => Err(Broken.into()),
            number => Ok(Done(number)),
        }
    }
}

// S35
#[tokio::test]
async fn a_step_may_say_what_class_its_failure_is_of() {
    let error = Classified.run(Begin(0)).await.unwrap_err();
    assert!(matches!(error, RunError::StepFailed { class: ErrorClass::Rejected, .. }));
    let error = Classified.run(Begin(1)).await.unwrap_err();
    assert!(matches!(error, RunError::StepFailed { class: ErrorClass::Permanent, .. }));
}

struct Emitting;

#[workflow]
impl Emitting {
    #[step]
    async fn emit(
        &self,
        begin: &Begin,
        items: &Emitter<Item>,
        parts: Emitter<Part>,
    ) -> Result<Marked, StepError> {
        items.emit(Item(begin.0))?;
        parts.emit(Part(begin.0))?;
        tokio::task::yield_now().await;
        items.clone().emit(Item(begin.0 + 1))?;
        Ok(Marked(0))
    }

    #[step]
    async fn end(&self, _marked: &Marked, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

// S7, S23
#[tokio::test]
async fn emitted_events_enter_the_log_in_their_order_before_what_is_returned_and_at_once() {
    let run = Scenario::new(Emitting).start(Begin(1)).await;
    assert_eq!(log_of(run.report()), ["Begin", "Item", "Part", "Item", "Marked", "Done"]);
    let seqs: Vec<u64> = run.report().trace[0].emitted.iter().map(|seq| seq.0).collect();
    assert_eq!(seqs, [2, 3, 4, 5]);
}

struct EmittingInVain;

#[workflow]
impl EmittingInVain {
    #[step(on_error = "continue")]
    async fn emit(&self, begin: &Begin, items: &Emitter<Item>) -> Result<(), StepError> {
        items.emit(Item(begin.0))?;
        Err(StepError::permanent("too late"))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

// S23
#[tokio::test]
async fn a_failed_step_leaves_nothing_of_what_it_emitted() {
    let run = Scenario::new(EmittingInVain).start(Begin(1)).await;
    assert_eq!(log_of(run.report()), ["Begin"]);
    run.assert_executions("end", 0);
}

struct EmittingTooMuch;

#[workflow]
impl EmittingTooMuch {
    #[step]
    async fn emit(&self, _begin: &Begin, items: &Emitter<Item>) -> Done {
        let mut emitted = 0;
        while let Ok(()) = items.emit(Item(emitted)) {
            emitted += 1;
        }
        assert_eq!(items.emit(Item(0)), Err(EmitError::Full { limit: 65_536 }));
        Done(emitted)
    }
}

// S7
#[tokio::test]
async fn an_execution_emits_65_536_events_and_gets_an_error_for_more() {
    assert_eq!(EmittingTooMuch.run(Begin(0)).await.unwrap(), Done(65_536));
}

#[derive(Default)]
struct EmittingLate(Arc<Mutex<Option<Emitter<Item>>>>);

#[workflow]
impl EmittingLate {
    #[step]
    async fn keep(&self, begin: &Begin, items: Emitter<Item>) -> Part {
        *self.0.lock().unwrap() = Some(items);
        Part(begin.0)
    }

    #[step]
    async fn end(&self, part: &Part) -> Done {
        Done(part.0)
    }
}

// S23
#[tokio::test]
async fn an_emitter_that_outlives_its_execution_is_refused() {
    let kept = Arc::default();
    EmittingLate(Arc::clone(&kept)).run(Begin(0)).await.unwrap();
    let emitter = kept.lock().unwrap().take().unwrap();
    assert_eq!(emitter.emit(Item(1)), Err(EmitError::Ended));
}
