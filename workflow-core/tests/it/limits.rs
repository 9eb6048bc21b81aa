//! `max_executions` (S19).

use workflow_core::prelude::*;

use crate::fixtures::{
    Alpha, Begin, Beta, Close, Done, Gate, Item, Seen, everyone_else, report_of, report_when_settled, started,
};

struct AtMostTwo(Seen);

#[workflow]
impl AtMostTwo {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(max_executions = 2)]
    async fn work(&self, item: &Item) {
        tokio::task::yield_now().await;
        self.0.note(item.0.to_string());
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S19
#[tokio::test]
async fn triggers_that_coincide_do_not_exceed_the_limit() {
    let seen = Seen::default();
    let run = started(AtMostTwo(seen.clone()), 5).await;
    let report = report_when_settled(&run).await;
    assert_eq!(report.executions("work"), 2);
    assert_eq!(seen.lines(), ["1", "2"]);
}

struct Paired(Seen);

#[workflow]
impl Paired {
    #[step(max_executions = 2)]
    async fn pair(&self, alphas: &FixedList<Alpha, 2>, beta: &Beta) {
        self.0.note(format!("{} {}", alphas.len(), beta.0));
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S19, S20
#[tokio::test]
async fn a_duplicate_does_not_use_the_limit_up() {
    let seen = Seen::default();
    let run = started(Paired(seen.clone()), 0).await;
    run.send(Beta(1)).await.unwrap();
    for number in 1..=6 {
        run.send(Alpha(number)).await.unwrap();
    }
    run.send(Beta(2)).await.unwrap();
    run.send(Beta(3)).await.unwrap();
    let report = report_when_settled(&run).await;
    assert_eq!(seen.lines(), ["2 1", "2 2"]);
    assert_eq!(report.executions("pair"), 2);
}

struct Refused(Seen);

#[workflow]
impl Refused {
    #[step(max_executions = 1, precondition = even)]
    async fn work(&self, alpha: &Alpha) {
        self.0.note(alpha.0.to_string());
    }

    #[precondition]
    fn even(alpha: &Alpha) -> bool {
        alpha.0.is_multiple_of(2)
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S18, S19
#[tokio::test]
async fn a_precondition_that_says_no_does_not_use_the_limit_up() {
    let seen = Seen::default();
    let run = started(Refused(seen.clone()), 0).await;
    for number in [1, 3, 4, 6] {
        run.send(Alpha(number)).await.unwrap();
    }
    report_when_settled(&run).await;
    assert_eq!(seen.lines(), ["4"]);
}

struct AskedTogether {
    gate: Gate,
    seen: Seen,
}

#[workflow]
impl AskedTogether {
    #[step(max_executions = 1, precondition = allowed)]
    async fn work(&self, alpha: &Alpha) {
        self.seen.note(alpha.0.to_string());
    }

    #[precondition]
    async fn allowed(&self, alpha: &Alpha) -> bool {
        self.seen.note(format!("asked {}", alpha.0));
        self.gate.pass().await;
        true
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S18, S19
#[tokio::test]
async fn preconditions_that_are_asked_at_the_same_time_do_not_exceed_the_limit() {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let run = started(AskedTogether { gate: gate.clone(), seen: seen.clone() }, 0).await;
    for number in 1..=3 {
        run.send(Alpha(number)).await.unwrap();
    }
    everyone_else().await;
    gate.let_pass(3);
    let report = report_when_settled(&run).await;
    assert_eq!(report.executions("work"), 1);
    assert_eq!(seen.lines(), ["asked 1", "asked 2", "asked 3", "1"]);
}

struct Once;

#[workflow]
impl Once {
    #[step(max_executions = 1)]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

// S19
#[tokio::test]
async fn the_limit_counts_per_run() {
    let engine = Engine::builder().workflow(Once).build().unwrap();
    for number in 1..=3 {
        let run = engine.start::<Once>(Begin(number)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(number));
    }
}

struct FailsOnce;

#[workflow]
impl FailsOnce {
    #[step(max_executions = 1, on_error = "continue")]
    async fn fragile(&self, item: &Item) -> Result<Done, StepError> {
        if item.0 == 1 { Err(StepError::permanent("no")) } else { Ok(Done(item.0)) }
    }

    #[step]
    async fn make(&self, _begin: &Begin) -> (Item, Item) {
        (Item(1), Item(2))
    }
}

// S19
#[tokio::test]
async fn a_failed_execution_counts() {
    let report = report_of(FailsOnce, 0).await;
    assert_eq!(report.executions("fragile"), 1);
    assert_eq!(report.status, workflow_core::RunStatus::Stalled);
}
