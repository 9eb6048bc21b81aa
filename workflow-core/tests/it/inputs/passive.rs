//! Passive inputs: read when another input triggers the step, and never a reason to run (S58).

use workflow_core::prelude::*;
use workflow_core::signature::Roles;
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OutputDef, StepDef, TableDifference, TableProblem, TableShape,
};
use workflow_testkit::Scenario;

use crate::fixtures::{Alpha, Begin, Beta, Close, Done, Item, Part, Saw, log_of, saw, started};

struct Reader;

#[workflow]
impl Reader {
    #[step]
    async fn read(&self, alpha: &Alpha, beta: Passive<&Beta>, betas: Passive<List<Beta>>) -> Saw {
        let all: Vec<u32> = betas.iter().map(|beta| beta.0).collect();
        Saw(format!("A{} {:?} {all:?}", alpha.0, beta.map(|beta| beta.0)))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S58
#[tokio::test]
async fn a_passive_input_has_the_latest_event_and_never_triggers() {
    let scenario = Scenario::new(Reader).send(Alpha(1)).send(Beta(1)).send(Beta(2)).send(Alpha(2));
    let run = scenario.send(Beta(3)).send(Close).start(Begin(0)).await;
    assert_eq!(saw(&run), ["A1 None []", "A2 Some(2) [1, 2]"]);
}

/// Reads an event of a fan-out's surroundings in its branches, and one of its own.
struct Branching;

#[workflow]
impl Branching {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn weigh(&self, item: &Item, alpha: Passive<&Alpha>, items: Passive<List<Item>>) -> Part {
        Part(item.0 + alpha.map_or(0, |alpha| alpha.0) + 100 * u32::try_from(items.len()).unwrap())
    }

    // Runs in the root alone: what it reads in a branch does not make that branch evaluate it.
    #[step]
    async fn sum(&self, beta: &Beta, item: Passive<&Item>) -> Saw {
        Saw(format!("B{} {:?}", beta.0, item.map(|item| item.0)))
    }

    #[step]
    async fn end(&self, parts: Gather<Part>, _close: &Close) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S45, S46, S58
#[tokio::test]
async fn a_branch_reads_its_own_events_and_those_around_it() {
    let run = Scenario::new(Branching).send(Beta(1)).send(Close).start(Begin(2)).await;
    assert_eq!(run.outcome().unwrap(), &Done(203));
    assert_eq!(saw(&run), ["B1 None"]);
}

struct Keyed;

#[workflow]
impl Keyed {
    #[step]
    async fn with(&self, alpha: &Alpha, beta: Passive<&Beta>, info: &RunInfo) -> Saw {
        Saw(format!("{} {}", alpha.0 + beta.map_or(0, |beta| beta.0), info.idempotency_key()))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S20, S58
#[tokio::test]
async fn a_passive_input_is_no_part_of_the_idempotency_key() {
    let options = workflow_core::RunOptions::new().id("r");
    let scenario = Scenario::new(Keyed).options(options).send(Beta(5)).send(Alpha(1)).send(Close);
    assert_eq!(saw(&scenario.start(Begin(0)).await), ["6 r/0/with/3"]);
}

/// Counts with its own output, which it reads.
struct Counter;

#[workflow]
impl Counter {
    #[step]
    async fn count(&self, alpha: &Alpha, last: Passive<&Part>) -> Part {
        Part(alpha.0 + last.map_or(0, |last| last.0))
    }

    #[step]
    async fn end(&self, _close: &Close, part: &Part, _begin: &Begin) -> Done {
        Done(part.0)
    }
}

// S9, S58
#[tokio::test]
async fn a_step_may_emit_what_it_reads() {
    let scenario = Scenario::new(Counter).send(Alpha(1)).send(Alpha(2)).send(Close);
    let run = scenario.start(Begin(0)).await;
    assert_eq!(log_of(run.report()).iter().filter(|event| **event == "Part").count(), 2);
    assert_eq!(run.outcome().unwrap(), &Done(3));
}

struct Asking;

#[precondition]
#[expect(clippy::needless_pass_by_value, reason = "a precondition takes its inputs as a step does")]
fn is_open(alpha: &Alpha, beta: Passive<&Beta>) -> bool {
    beta.is_some_and(|beta| beta.0 == alpha.0)
}

#[workflow]
impl Asking {
    #[step(precondition = is_open)]
    async fn go(&self, alpha: &Alpha, _beta: Passive<&Beta>) -> Saw {
        Saw(alpha.0.to_string())
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S18, S58
#[tokio::test]
async fn a_precondition_reads_passive_inputs_of_its_step() {
    let scenario = Scenario::new(Asking).send(Alpha(1)).send(Beta(1)).send(Alpha(1)).send(Alpha(2));
    assert_eq!(saw(&scenario.send(Close).start(Begin(0)).await), ["1"]);
}

// S58
#[tokio::test]
async fn an_explanation_names_what_a_step_reads_and_no_reader_is_waited_for() {
    let run = started(Reader, 0).await;
    run.settled().await;
    run.send(Beta(1)).await.unwrap();
    let explanation = run.explain().await.unwrap();
    let step = explanation.steps.iter().find(|step| &*step.step == "read").unwrap();
    assert_eq!((step.reads.len(), &*step.reads[0]), (1, "Beta"));
    assert_eq!(step.missing[0].input.events, ["Alpha".into()]);
    assert!(explanation.unconsumed.iter().all(|event| &*event.last.event != "Beta"));
    assert!(explanation.to_string().contains("it reads `Beta` without being triggered"), "{explanation}");
    let graph = Reader::graph().to_mermaid();
    assert!(graph.contains(r#"n_outside -.->|"reads Beta"| n_s0"#), "{graph}");
    assert!(graph.contains(r#"n_outside -.->|"reads [Beta]"| n_s0"#), "{graph}");
}

struct OnlyRead;

#[workflow]
impl OnlyRead {
    #[step]
    async fn take(&self, _alpha: &Item, _beta: Passive<&Beta>) -> Done {
        Done(0)
    }

    #[step]
    async fn make(&self, begin: &Begin) -> Option<Item> {
        (begin.0 > 0).then_some(Item(begin.0))
    }
}

// S30, S58
#[tokio::test]
async fn a_run_does_not_wait_for_an_event_that_is_only_read() {
    let run = started(OnlyRead, 0).await;
    assert!(matches!(run.outcome().await, Err(RunError::Stalled { .. })));
}

fn desk(read: InputDef) -> Result<DependencyTable, TableProblem> {
    let table = DependencyTable::builder("desk")
        .event(EventDef::new("Order", Roles::NONE.start()))
        .event(EventDef::new("Price", Roles::NONE.external()))
        .event(EventDef::new("Receipt", Roles::NONE.stop()))
        .event(EventDef::failure("StepFailed"))
        .step(
            StepDef::new("sell")
                .input(InputDef::one("Order"))
                .input(read)
                .output(OutputDef::event("Receipt")),
        );
    table.build().map_err(|error| error.problems[0].clone())
}

// S41, S58
#[test]
fn passive_inputs_come_and_go_in_a_table() {
    let shape = |input: InputDef| desk(input).unwrap().shape();
    let (latest, list) =
        (shape(InputDef::one("Price").passive()), shape(InputDef::list(["Price"]).passive()));
    let taken = shape(InputDef::one("Price"));
    let compatible = |was: &TableShape, is: &TableShape| {
        was.differences(is).iter().map(TableDifference::is_compatible).collect::<Vec<_>>()
    };
    assert_eq!(compatible(&latest, &list), [true]);
    assert_eq!(
        compatible(&taken, &latest),
        [false, true, false],
        "one is gone, another one is read, and keys change"
    );
    assert_eq!(compatible(&latest, &taken), [true, false]);
    let said = latest.differences(&list)[0].to_string();
    assert_eq!(said, "step `sell` takes a passive list of `Price` now, and took a passive `Price`");
    // The shape can be read back, and the plain one has no word of it.
    let json = serde_json::to_string(&latest).unwrap();
    assert!(json.contains(r#""passive":true"#));
    assert_eq!(serde_json::from_str::<TableShape>(&json).unwrap(), latest);
    assert_eq!(DependencyTable::from_shape(&latest).unwrap().shape(), latest);
    assert!(!serde_json::to_string(&taken).unwrap().contains("passive"));
}

// S58
#[test]
fn other_inputs_cannot_be_passive() {
    for read in [InputDef::fixed(2, ["Price"]).passive(), InputDef::one("StepFailed").passive()] {
        let problem = desk(read).unwrap_err();
        assert!(matches!(&problem, TableProblem::UnfitPassive { step, .. } if step == "sell"), "{problem}");
    }
}
