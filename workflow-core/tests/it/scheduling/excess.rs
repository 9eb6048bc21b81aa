//! Batches beyond a limit of the run (S76): nothing of them happens, and the error has the numbers.

use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::json;
use workflow_core::errors::Excess;
use workflow_core::prelude::*;
use workflow_core::report::RunReport;
use workflow_core::signature::{Roles, StepCall};
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef, TableBuilder};
use workflow_core::{EngineBuilder, RunOptions, RuntimeWorkflow};

use crate::fixtures::{Begin, Done, Item, Part};

async fn ended<W: Workflow>(
    workflow: W,
    begin: u32,
    limit: impl FnOnce(EngineBuilder) -> EngineBuilder,
) -> (Result<W::Output, RunError>, Arc<RunReport>) {
    let engine = limit(Engine::builder().workflow(workflow)).build().unwrap();
    let run = engine.start::<W>(Begin(begin)).await.unwrap();
    (run.outcome().await, run.report().await.unwrap())
}

/// The excess of a run with this many executions, and its text.
async fn excess_of<W: Workflow>(
    workflow: W,
    begin: u32,
    most: u64,
    text: &Expect,
) -> (Excess, Arc<RunReport>) {
    let (outcome, report) = ended(workflow, begin, |engine| engine.max_executions_per_run(most)).await;
    let Err(error) = outcome else { panic!("it should have had too many items") };
    text.assert_eq(&error.to_string());
    let RunError::TooManyExecutions { excess: Some(excess), limit, .. } = error else { panic!("{error:?}") };
    assert_eq!(limit, most);
    (*excess, report)
}

/// Two executions before its items: `begin` and `split`.
struct Pages;

#[workflow]
impl Pages {
    #[step]
    async fn begin(&self, begin: &Begin) -> Note {
        Note(begin.0)
    }

    #[step]
    async fn split(&self, note: &Note) -> (FanOut<Item>, FanOut<Part>) {
        ((0..note.0).map(Item).collect(), (0..note.0).map(Part).collect())
    }

    #[step]
    async fn read(&self, item: &Item, _begin: &Begin) -> Kept {
        Kept(item.0)
    }

    #[step]
    async fn keep(&self, part: &Part) -> Kept {
        Kept(part.0)
    }

    #[step]
    async fn end(&self, _read: &Gather<Kept, Item>, _kept: &Gather<Kept, Part>) -> Done {
        Done(0)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Kept(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Note(u32);

// S76
#[tokio::test]
async fn items_beyond_the_executions_that_are_left_end_the_run_before_any_runs() {
    let text = expect![
        "`split` fanned out 60 items, each of which needs an execution, and the run may have 48 more of its 50: divide the items among several runs, or raise `max_executions_per_run`"
    ];
    let (excess, report) = excess_of(Pages, 30, 50, &text).await;
    assert_eq!((&*excess.step, excess.execution.0, excess.amount, excess.left), ("split", 2, 60, 48));
    assert_eq!((report.executions("split"), report.executions("read") + report.executions("keep")), (1, 0));
    assert_eq!(report.log.len(), 2, "none of the items is in the log");
}

/// Fans out in each branch of a fan-out.
struct Nested;

#[workflow]
impl Nested {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(1)
    }

    #[step]
    async fn split_again(&self, item: &Item) -> FanOut<Part> {
        (0..10 * item.0).map(Part).collect()
    }

    #[step]
    async fn read(&self, part: &Part) -> Kept {
        Kept(part.0)
    }

    #[step]
    async fn join(&self, kept: &Gather<Kept>) -> Note {
        Note(u32::try_from(kept.len()).unwrap())
    }

    #[step]
    async fn end(&self, notes: &Gather<Note>) -> Done {
        Done(u32::try_from(notes.len()).unwrap())
    }
}

// S76
#[tokio::test]
async fn the_items_of_a_branch_count_against_what_the_run_has_left() {
    let text = expect![
        "`split_again` fanned out 20 items, each of which needs an execution, and the run may have 16 more of its 32: divide the items among several runs, or raise `max_executions_per_run`"
    ];
    // Before it: `split`, two branches with ten items and none, their joins, and the third `split_again`.
    let (excess, report) = excess_of(Nested, 3, 32, &text).await;
    assert_eq!((excess.amount, excess.left), (20, 16));
    assert_eq!(report.executions("read"), 10);
}

/// Enough of many, and what may not run at all.
struct Chooses;

#[workflow]
impl Chooses {
    #[step]
    async fn split(&self, begin: &Begin) -> (FanOut<Item>, FanOut<Part>) {
        let few: FanOut<Item> = (0..begin.0).map(Item).collect();
        (few.until(2).concurrency(1), (0..begin.0).map(Part).collect())
    }

    #[step]
    async fn ask(&self, item: &Item) -> Kept {
        Kept(item.0)
    }

    #[step(precondition = is_first)]
    async fn choose(&self, part: &Part) -> Kept {
        Kept(part.0)
    }

    #[precondition]
    fn is_first(part: &Part) -> bool {
        part.0 == 0
    }

    #[step]
    async fn end(&self, few: &Gather<Kept, Item>, chosen: &Gather<Kept, Part>) -> Done {
        Done(u32::try_from(few.ok().count() + chosen.ok().count()).unwrap())
    }
}

// S50, S76
#[tokio::test]
async fn items_that_need_no_execution_do_not_count() {
    let (outcome, report) = ended(Chooses, 1_000, |engine| engine.max_executions_per_run(10)).await;
    assert_eq!(outcome.unwrap(), Done(3));
    assert_eq!(report.steps.iter().map(|step| step.executions).sum::<u64>(), 5);
}

// S76
#[tokio::test]
async fn a_run_time_workflow_is_held_to_the_same() {
    let split = StepDef::new("split").input(InputDef::one("Begin")).output(OutputDef::fan_out("Item"));
    let read = StepDef::new("read").input(InputDef::one("Item")).output(OutputDef::event("Part"));
    let end = StepDef::new("end").input(InputDef::gather("Part")).output(OutputDef::event("Done"));
    let table = DependencyTable::builder("pages")
        .event(EventDef::new("Begin", Roles::NONE.start()))
        .event(EventDef::new("Item", Roles::NONE))
        .event(EventDef::new("Part", Roles::NONE))
        .event(EventDef::new("Done", Roles::NONE.stop()));
    let table = [split, read, end].into_iter().fold(table, TableBuilder::step);
    let pages = RuntimeWorkflow::new(table.build().unwrap(), |mut call: StepCall| async move {
        let items: FanOut<_> = (0..9).map(|item| json!(item)).collect();
        call.emit("Item", items)?;
        call.commit(())
    });
    let engine = Engine::builder().workflows([pages]).max_executions_per_run(9).build().unwrap();
    let run = engine.start_json("pages", "Begin", json!(1), RunOptions::new()).await.unwrap();
    let error = run.outcome_any().await.unwrap_err();
    let RunError::TooManyExecutions { excess: Some(excess), .. } = &error else { panic!("{error:?}") };
    assert_eq!((&*excess.step, excess.amount, excess.left), ("split", 9, 8));
}

// S23, S76
#[tokio::test]
async fn events_beyond_the_room_of_the_log_end_the_run_with_the_numbers() {
    let (outcome, report) = ended(Pages, 30, |engine| engine.max_events_per_run(50)).await;
    let error = outcome.unwrap_err();
    expect![
        "`split` returned 60 events at once, and the run's log has room for 48 more of its 50: divide them among several runs, or raise `max_events_per_run`"
    ]
    .assert_eq(&error.to_string());
    assert!(matches!(error, RunError::LogFull { limit: 50, excess: Some(_), .. }), "{error:?}");
    assert_eq!(report.log.len(), 2);
}
