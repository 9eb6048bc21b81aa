//! What a branch's failure means: `fail_all`, `continue_others` and `wait_all`, each with failures first,
//! in the middle, last and everywhere (S49).

use std::sync::Arc;

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, ExecutionOutcome, FanOutPolicy, Quality, RunReport, RunStatus};

use super::{Gates, Random};
use crate::fixtures::{
    Alive, Begin, Done, Item, Part, Seen, everyone_else, log_of, outcomes_of, report_of, started,
};

const ITEMS: u32 = 5;

/// Which of the items fail.
const CASES: [&[u32]; 4] = [&[0], &[2], &[4], &[0, 1, 2, 3, 4]];

#[derive(Clone)]
struct Fragile {
    policy: FanOutPolicy,
    fail: &'static [u32],
    gates: Gates,
    alive: Alive,
    seen: Seen,
}

impl Fragile {
    fn new(policy: FanOutPolicy, fail: &'static [u32], gates: Gates) -> Self {
        Self { policy, fail, gates, alive: Alive::default(), seen: Seen::default() }
    }
}

#[workflow]
impl Fragile {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items: FanOut<Item> = (0..begin.0).map(Item).collect();
        match self.policy {
            FanOutPolicy::ContinueOthers => items.continue_others(),
            FanOutPolicy::WaitAll => items.wait_all(),
            _ => items.fail_all(),
        }
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        let _alive = self.alive.guard();
        self.gates.pass(item.0).await;
        if self.fail.contains(&item.0) {
            return Err(StepError::tool(format!("item {} is broken", item.0)));
        }
        Ok(Part(item.0))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        for branch in parts.branches() {
            let item = branch.item::<Item>().unwrap().0;
            let parts: Vec<u32> = branch.events().map(|part| part.0).collect();
            let failure = branch.failure().map(|failure| format!(" {} {}", failure.step(), failure.error()));
            self.seen.note(format!("{item} {parts:?}{}", failure.unwrap_or_default()));
        }
        Done(u32::try_from(parts.ok().count()).unwrap())
    }
}

/// Lets the branches end one after the other, in this order.
async fn run_in_order(workflow: &Fragile, order: &[usize]) -> (Result<Done, RunError>, Arc<RunReport>) {
    let run = started(workflow.clone(), ITEMS).await;
    for place in order {
        workflow.gates.open(*place);
        everyone_else().await;
    }
    (run.outcome().await, run.report().await.unwrap())
}

/// Orders in which five branches can end: forwards, backwards, and at random.
fn orders() -> Vec<Vec<usize>> {
    let mut random = Random::seeded(7);
    let mut orders = vec![(0..5).collect(), (0..5).rev().collect()];
    orders.extend((0..6).map(|_| random.order_of(5)));
    orders
}

fn place_in(order: &[usize], item: u32) -> usize {
    order.iter().position(|place| *place == item as usize).unwrap()
}

// S49
#[tokio::test]
async fn fail_all_drops_the_other_branches_and_fails_the_run_with_the_first_failure() {
    for (fail, order) in CASES.iter().flat_map(|fail| orders().into_iter().map(move |order| (fail, order))) {
        let workflow = Fragile::new(FanOutPolicy::FailAll, fail, Gates::closed(5));
        let (outcome, report) = run_in_order(&workflow, &order).await;
        let first = *fail.iter().min_by_key(|item| place_in(&order, **item)).unwrap();
        let Err(RunError::StepFailed { step, class, source, .. }) = outcome else { panic!("{outcome:?}") };
        assert_eq!((&*step, class), ("work", ErrorClass::Tool));
        assert_eq!(source.to_string(), format!("item {first} is broken"));
        assert_eq!(workflow.alive.count(), 0);
        for (outcome, item) in outcomes_of(&report, "work").into_iter().zip(0..) {
            match outcome {
                ExecutionOutcome::Failed { .. } => assert_eq!(item, first, "{fail:?} {order:?}"),
                ExecutionOutcome::Succeeded => assert!(place_in(&order, item) < place_in(&order, first)),
                outcome => {
                    assert_eq!(outcome, &ExecutionOutcome::Dropped);
                    assert!(place_in(&order, item) > place_in(&order, first));
                }
            }
        }
        assert_eq!((report.status, report.quality), (RunStatus::Failed, Quality::Failed));
        assert_eq!(report.executions("end"), 0);
    }
}

// S49
#[tokio::test]
async fn what_returns_at_the_same_moment_as_the_failure_is_dropped_with_its_branch() {
    let report = report_of(Fragile::new(FanOutPolicy::FailAll, &[1, 3], Gates::open_all(5)), ITEMS).await;
    let outcomes = outcomes_of(&report, "work");
    assert_eq!(outcomes[0], &ExecutionOutcome::Succeeded);
    assert!(matches!(outcomes[1], ExecutionOutcome::Failed { .. }));
    assert_eq!(outcomes[2..], [&ExecutionOutcome::Dropped; 3]);
    assert!(report.violations.is_empty());
}

// S49
#[tokio::test]
async fn continue_others_hands_each_failure_to_the_gather_and_degrades_the_run() {
    for (fail, order) in CASES.iter().flat_map(|fail| orders().into_iter().map(move |order| (fail, order))) {
        let workflow = Fragile::new(FanOutPolicy::ContinueOthers, fail, Gates::closed(5));
        let (outcome, report) = run_in_order(&workflow, &order).await;
        assert_eq!(outcome.unwrap().0 as usize, 5 - fail.len());
        assert_eq!((report.status, report.quality), (RunStatus::Completed, Quality::Degraded));
        let expected = (0..ITEMS).map(|item| {
            if fail.contains(&item) {
                format!("{item} [] work item {item} is broken")
            } else {
                format!("{item} [{item}]")
            }
        });
        assert_eq!(workflow.seen.lines(), expected.collect::<Vec<_>>(), "{fail:?} {order:?}");
    }
}

// S49
#[tokio::test]
async fn wait_all_runs_every_branch_to_its_end_and_then_fails_with_every_error() {
    for (fail, order) in CASES.iter().flat_map(|fail| orders().into_iter().map(move |order| (fail, order))) {
        let workflow = Fragile::new(FanOutPolicy::WaitAll, fail, Gates::closed(5));
        let (outcome, report) = run_in_order(&workflow, &order).await;
        let errors: Vec<String> = match outcome.unwrap_err() {
            RunError::StepFailed { source, .. } => vec![source.to_string()],
            RunError::BranchesFailed { failures } => {
                assert!(failures.iter().all(|failure| failure.step() == "work"));
                failures.iter().map(|failure| failure.error().to_string()).collect()
            }
            error => panic!("{error}"),
        };
        let expected: Vec<String> = fail.iter().map(|item| format!("item {item} is broken")).collect();
        assert_eq!(errors, expected, "{order:?}");
        let dropped = outcomes_of(&report, "work").contains(&&ExecutionOutcome::Dropped);
        assert!(!dropped, "{fail:?} {order:?}");
        assert_eq!(report.executions("end"), 0);
        assert_eq!(log_of(&report).iter().filter(|event| **event == "Part").count(), 5 - fail.len());
    }
}

// S49
#[tokio::test]
async fn the_error_of_wait_all_prints_every_failure() {
    let workflow = Fragile::new(FanOutPolicy::WaitAll, &[1, 3], Gates::open_all(5));
    let error = workflow.run(Begin(ITEMS)).await.unwrap_err().to_string();
    assert!(error.contains("item 1 is broken") && error.contains("item 3 is broken"), "{error}");
}

// S49
#[tokio::test]
async fn a_fan_out_without_failures_is_gathered_whatever_its_policy() {
    for policy in [FanOutPolicy::FailAll, FanOutPolicy::ContinueOthers, FanOutPolicy::WaitAll] {
        let report = report_of(Fragile::new(policy, &[], Gates::open_all(5)), ITEMS).await;
        assert_eq!((report.status, report.quality), (RunStatus::Completed, Quality::Clean));
        assert_eq!(report.executions("end"), 1);
    }
}

struct Panicking;

#[workflow]
impl Panicking {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        assert_ne!(item.0, 1, "one is too many");
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        let failure = parts.branch_of(&Item(1)).unwrap().failure().unwrap();
        assert!(failure.to_string().contains("one is too many"), "{failure}");
        Done(u32::try_from(parts.failed().count()).unwrap())
    }
}

// S27, S49
#[tokio::test]
async fn a_panic_in_a_branch_is_a_failure_of_that_branch() {
    assert_eq!(Panicking.run(Begin(3)).await.unwrap(), Done(1));
}

struct Tolerant;

#[workflow]
impl Tolerant {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(on_error = "continue")]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 == 1 { Err(StepError::permanent("no")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        assert_eq!(parts.failed().count(), 0);
        Done(u32::try_from(parts.ok().count()).unwrap())
    }
}

// S29, S49
#[tokio::test]
async fn a_step_that_goes_on_after_errors_does_not_fail_its_branch() {
    let report = report_of(Tolerant, 3).await;
    assert_eq!((report.status, report.quality), (RunStatus::Completed, Quality::Degraded));
    assert_eq!(report.executions("end"), 1);
}

/// A branch in which one step fails and another goes on.
struct TwoSteps(Gates);

#[workflow]
impl TwoSteps {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn fails(&self, item: &Item) -> Result<(), StepError> {
        Err(StepError::permanent(format!("no {}", item.0)))
    }

    #[step]
    async fn goes_on(&self, item: &Item) -> Part {
        self.0.pass(item.0).await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        // What a failed branch made is there, but not among what went well.
        assert!(parts.branches().all(|branch| branch.event().is_some() && branch.failure().is_some()));
        assert_eq!((parts.ok().count(), parts.failed().count()), (0, 2));
        Done(0)
    }
}

// S47, S49
#[tokio::test]
async fn a_failed_branch_settles_when_its_other_steps_have_ended() {
    let gates = Gates::closed(2);
    let run = started(TwoSteps(gates.clone()), 2).await;
    everyone_else().await;
    assert!(!run.status().is_ended());
    gates.open(0);
    gates.open(1);
    assert_eq!(run.outcome().await.unwrap(), Done(0));
    assert_eq!(run.report().await.unwrap().executions("end"), 1);
}
