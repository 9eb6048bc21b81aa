//! A fan-out that fails is a failure of the execution that opened it (S60).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use workflow_core::errors::Incompatibility;
use workflow_core::store::{MemoryStore, Position, Record};
use workflow_core::{FanOutPolicy, ResumeError, RunOptions};

use super::*;

/// Fans out to items of which the odd ones fail.
struct Splitting {
    policy: FanOutPolicy,
}

fn split(begin: &Begin, policy: FanOutPolicy) -> FanOut<Item> {
    let items: FanOut<Item> = (0..begin.0).map(Item).collect();
    if policy == FanOutPolicy::WaitAll { items.wait_all() } else { items.fail_all() }
}

fn read(item: &Item) -> Result<Part, StepError> {
    if item.0 % 2 == 1 { Err(StepError::tool(format!("{} is odd", item.0))) } else { Ok(Part(item.0)) }
}

#[workflow]
impl Splitting {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        split(begin, self.policy)
    }

    #[step]
    async fn read(&self, item: &Item) -> Result<Part, StepError> {
        read(item)
    }

    #[step(catches = [split])]
    async fn give_up(&self, failed: &StepFailed) -> Saw {
        let mut said = Vec::new();
        for failed in &failed.branches {
            said.push(format!(
                "{} {} {}: {}, {}",
                failed.branch, failed.step, failed.class, failed.error, failed.attempts
            ));
        }
        assert_eq!(
            failed.error.to_string(),
            failed
                .branches
                .iter()
                .map(|failed| format!("step `{}` failed: {}", failed.step, failed.error))
                .collect::<Vec<_>>()
                .join("; ")
        );
        Saw(format!("{} {} {}: {}", failed.step, failed.execution, failed.class, said.join("; ")))
    }

    #[step]
    async fn end(&self, _parts: &Gather<Part>) -> Done {
        Done(1)
    }

    #[step]
    async fn saw(&self, saw: &Saw) -> Done {
        assert!(!saw.0.is_empty());
        Done(2)
    }
}

// S60
#[tokio::test]
async fn a_step_catches_a_failed_fan_out_with_every_error_and_its_branch() {
    let run = Scenario::new(Splitting { policy: FanOutPolicy::WaitAll }).start(Begin(5)).await;
    assert_eq!(run.outcome().unwrap(), &Done(2));
    assert_eq!(
        saw(&run),
        ["split x1 tool: 1 read tool: 1 is odd, 3; 3 read tool: 3 is odd, 3"],
        "{}",
        run.transcript()
    );
    run.assert_quality(Quality::Degraded);
    let caught = run.report().log.iter().find(|logged| &*logged.event == "split.failed").unwrap();
    assert_eq!(caught.scope, ScopeId::ROOT);
    let split = run.report().trace.iter().find(|trace| &*trace.step == "split").unwrap();
    assert_eq!((split.failure, split.caught_by.len()), (Some(caught.seq), 1));

    // The explanation names the opener beside the steps in the branches.
    let explained = run.explanation().unwrap();
    let failed = explained.failed.iter().map(|failed| (&*failed.step, failed.failures));
    assert_eq!(failed.collect::<Vec<_>>(), [("split", 1), ("read", 2)]);

    let run = Scenario::new(Splitting { policy: FanOutPolicy::FailAll }).start(Begin(5)).await;
    assert_eq!(run.outcome().unwrap(), &Done(2));
    assert_eq!(saw(&run), ["split x1 tool: 1 read tool: 1 is odd, 3"]);
}

// S60
#[test]
fn in_every_order_a_failed_fan_out_is_caught_once() {
    for policy in [FanOutPolicy::FailAll, FanOutPolicy::WaitAll] {
        let explored = explore(|| Scenario::new(Splitting { policy }).start(Begin(4))).orders(300);
        explored.assert(|run| run.executions("give_up") == 1 && run.outcome().unwrap() == &Done(2));
    }
}

/// The run continues without the fan-out.
struct Tolerant;

#[workflow]
impl Tolerant {
    #[step(on_error = "continue")]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        split(begin, FanOutPolicy::FailAll)
    }

    #[step]
    async fn read(&self, item: &Item) -> Result<Part, StepError> {
        read(item)
    }

    #[step]
    async fn end(&self, _parts: &Gather<Part>) -> Done {
        Done(1)
    }

    #[step]
    async fn other(&self, _begin: &Begin, alpha: &Alpha) -> Done {
        Done(alpha.0)
    }
}

// S29, S60
#[tokio::test]
async fn a_run_that_tolerates_failures_of_the_opener_continues_after_its_fan_out_failed() {
    let run = Scenario::new(Tolerant).send(Alpha(7)).start(Begin(4)).await;
    assert_eq!(run.outcome().unwrap(), &Done(7));
    run.assert_quality(Quality::Degraded);
}

/// The step that catches the fan-out fails the first time.
struct Careless {
    fails: AtomicBool,
}

#[workflow]
impl Careless {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        split(begin, FanOutPolicy::WaitAll)
    }

    #[step]
    async fn read(&self, item: &Item) -> Result<Part, StepError> {
        read(item)
    }

    #[step(catches = [split])]
    async fn give_up(&self, failed: &StepFailed) -> Result<Done, StepError> {
        if self.fails.swap(false, Ordering::Relaxed) {
            return Err(StepError::permanent("the form is missing"));
        }
        assert_eq!(&*failed.error, "step `read` failed: 1 is odd");
        Ok(Done(failed.attempts))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.len().try_into().unwrap())
    }
}

// S39, S60
#[tokio::test]
async fn a_redrive_begins_the_catching_step_anew_and_leaves_its_fan_out_failed() {
    let careless = Careless { fails: AtomicBool::new(true) };
    let engine = Engine::builder().workflow(careless).store(Arc::<MemoryStore>::default()).build().unwrap();
    let run = engine.start_with::<Careless>(Begin(3), RunOptions::new().id("r")).await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::StepFailed { step, .. }) if &*step == "give_up"));
    let run = engine.redrive::<Careless>("r").await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    let report = run.report().await.unwrap();
    assert_eq!(["split", "read", "give_up"].map(|step| report.executions(step)), [1, 3, 1]);
}

mod uncaught {
    use super::*;

    /// The failure of the inner fan-out fails its branch.
    pub(super) struct Old;

    #[workflow(name = "Orders")]
    impl Old {
        #[step]
        async fn open(&self, begin: &Begin) -> FanOut<Part> {
            (0..begin.0).map(Part).collect::<FanOut<_>>().continue_others()
        }

        #[step]
        async fn split(&self, part: &Part) -> FanOut<Item> {
            [Item(part.0 + 1)].into_iter().collect()
        }

        #[step]
        async fn read(&self, item: &Item) -> Result<(), StepError> {
            Err(StepError::permanent(format!("{} is damaged", item.0)))
        }

        #[step]
        async fn inner(&self, _items: &Gather<Item>) {}

        #[step]
        async fn outer(&self, _parts: &Gather<Part>) {}

        #[step]
        async fn end(&self, begin: &Begin, alpha: &Alpha) -> Done {
            Done(begin.0 + alpha.0)
        }
    }

    /// A step catches it.
    pub(super) struct New;

    #[workflow(name = "Orders")]
    impl New {
        #[step]
        async fn open(&self, begin: &Begin) -> FanOut<Part> {
            (0..begin.0).map(Part).collect::<FanOut<_>>().continue_others()
        }

        #[step]
        async fn split(&self, part: &Part) -> FanOut<Item> {
            [Item(part.0 + 1)].into_iter().collect()
        }

        #[step]
        async fn read(&self, item: &Item) -> Result<(), StepError> {
            Err(StepError::permanent(format!("{} is damaged", item.0)))
        }

        #[step(catches = [split])]
        async fn give_up(&self, _failed: &StepFailed) {}

        #[step]
        async fn inner(&self, _items: &Gather<Item>) {}

        #[step]
        async fn outer(&self, _parts: &Gather<Part>) {}

        #[step]
        async fn end(&self, begin: &Begin, alpha: &Alpha) -> Done {
            Done(begin.0 + alpha.0)
        }
    }
}

// S41, S60: so are journals from before the rule, in which a fan-out failed past a step that would catch it.
#[tokio::test]
async fn a_journal_in_which_nothing_caught_the_fan_out_is_refused_with_the_position() {
    use uncaught::{New, Old};
    let store = Arc::<MemoryStore>::default();
    let engine = Engine::builder().workflow(Old).store(Arc::clone(&store)).build().unwrap();
    let run = engine.start_with::<Old>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let records = engine.history(run.id()).await.unwrap();
    engine.shut_down(std::time::Duration::ZERO).await;

    let engine = Engine::builder().workflow(New).store(store).build().unwrap();
    let refused = engine.attach::<New>("r").await.unwrap_err();
    let ResumeError::Incompatible { difference: Incompatibility::Journal { position, what }, .. } = refused
    else {
        panic!("{refused}");
    };
    let gathered = records.iter().position(|record| matches!(record, Record::FanOutGathered { .. })).unwrap();
    assert_eq!(position, Position(gathered as u64), "{what}");
}

/// Cleans up if it fails. The fan-out is caught once the step that catches it does not fail.
struct Tidy {
    gives_up: bool,
}

#[workflow]
impl Tidy {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        split(begin, FanOutPolicy::WaitAll)
    }

    #[step]
    async fn read(&self, item: &Item) -> Result<Part, StepError> {
        read(item)
    }

    #[step(catches = [split])]
    async fn mend(&self, failed: &StepFailed) -> Result<Done, StepError> {
        if self.gives_up { Err(StepError::permanent(failed.error.to_string())) } else { Ok(Done(2)) }
    }

    #[step]
    async fn end(&self, _parts: &Gather<Part>) -> Done {
        Done(1)
    }

    #[step(on_end)]
    async fn tidy(&self, begin: &Begin) {
        assert_eq!(begin.0, 4);
    }
}

// S60, S31
#[test]
fn clean_up_follows_a_failed_fan_out_only_if_no_step_mends_it() {
    let mended = explore(|| Scenario::new(Tidy { gives_up: false }).start(Begin(4))).orders(100);
    mended.assert(|run| run.outcome().unwrap() == &Done(2) && run.executions("tidy") == 0);
    let failed = explore(|| Scenario::new(Tidy { gives_up: true }).start(Begin(4))).orders(100);
    failed.assert(|run| run.status() == RunStatus::Failed && run.executions("tidy") == 1);
}
