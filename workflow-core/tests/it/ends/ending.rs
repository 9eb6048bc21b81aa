//! How runs end, and what is refused afterwards (S28, S30, S31, S33).

use std::time::Duration;

use workflow_core::explain::Explanation;
use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, Quality, RequestId, Violation};
use workflow_core::{RunStatus, SendError, Seq};
use workflow_testkit::{Scenario, explore};

use crate::fixtures::{
    Alive, Alpha, Begin, Beta, Close, Done, Gate, Item, Part, Seen, everyone_else, log_of, outcomes_of,
    started, until,
};

struct Race;

#[workflow]
impl Race {
    #[step]
    async fn first(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[step]
    async fn second(&self, begin: &Begin) -> (Item, Done) {
        (Item(0), Done(begin.0 + 100))
    }
}

// S28
#[test]
fn of_two_stops_the_first_in_the_log_wins() {
    let explored = explore(|| Scenario::new(Race).start(Begin(1))).assert(|run| {
        let stops = run.emitted::<Done>();
        assert_eq!(stops.iter().map(|stop| &**stop).collect::<Vec<_>>(), [run.outcome().unwrap()]);
        assert_eq!(log_of(run.report()).last(), Some(&"Done"));
    });
    let won: Vec<_> = explored.outcomes().map(|outcome| outcome.output().unwrap()).collect();
    assert_eq!(won, ["Done 1", "Done 101"]);
}

// S28
#[tokio::test]
async fn the_commit_of_a_sibling_after_the_stop_is_refused_and_reported() {
    let run = Scenario::new(Race).start(Begin(1)).await;
    let expected = "\
#1 Begin from outside: 1
x1 first by #1 starts
x2 second by #1 starts
x1 first: succeeded
#2 Done of x1: 1
x2 second: refused with Item, Done
completed with #2
";
    assert_eq!(run.transcript(), expected);
    let [Violation::CommitAfterEnd { step, events, .. }] = &run.report().violations[..] else {
        panic!("{:?}", run.report().violations)
    };
    assert_eq!((&**step, &events[..]), ("second", &["Item".to_owned(), "Done".to_owned()][..]));
    assert!(run.report().to_string().contains("refused after the end"));
}

struct StopsTwice;

#[workflow]
impl StopsTwice {
    #[step]
    async fn stop(&self, begin: &Begin) -> (Item, Vec<Done>) {
        (Item(0), vec![Done(begin.0), Done(begin.0 + 1)])
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }
}

// S28
#[tokio::test]
async fn the_first_stop_of_a_batch_ends_the_run_before_the_batch_is_evaluated() {
    let run = Scenario::new(StopsTwice).start(Begin(1)).await;
    run.assert_output(&Done(1));
    run.assert_executions("work", 0);
}

struct StopsEarly(Alive);

#[workflow]
impl StopsEarly {
    #[step]
    async fn sleep(&self, begin: &Begin) -> Item {
        let _guard = self.0.guard();
        std::future::pending::<()>().await;
        Item(begin.0)
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(u32::try_from(self.0.count()).unwrap())
    }
}

// S28
#[tokio::test]
async fn a_stop_drops_what_still_runs() {
    let alive = Alive::default();
    let scenario = Scenario::new(StopsEarly(alive.clone())).send_after(Duration::ZERO, Close);
    let run = scenario.start(Begin(1)).await;
    run.assert_output(&Done(1));
    assert_eq!(alive.count(), 0);
    assert_eq!(outcomes_of(run.report(), "sleep"), [&ExecutionOutcome::Dropped]);
    assert!(run.report().violations.is_empty());
}

struct Stuck;

#[workflow]
impl Stuck {
    #[step]
    async fn begin(&self, begin: &Begin) -> Option<Item> {
        (begin.0 > 0).then_some(Item(begin.0))
    }

    #[step]
    async fn middle(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step(precondition = never)]
    async fn refused(&self, begin: &Begin) -> Part {
        Part(begin.0)
    }

    #[precondition]
    fn never(_begin: &Begin) -> bool {
        false
    }

    #[step]
    async fn end(&self, part: &Part, _item: &Item) -> Done {
        Done(part.0)
    }
}

// S30
#[tokio::test]
async fn a_run_in_which_nothing_can_happen_ends_stalled_and_says_what_is_missing() {
    let run = Scenario::new(Stuck).start(Begin(0)).await;
    assert_eq!(run.status(), RunStatus::Stalled);
    run.assert_quality(Quality::Failed);
    let report = run.stall().unwrap();
    let idle: Vec<&str> = report.idle.iter().map(|idle| &*idle.step).collect();
    assert_eq!(idle, ["end", "middle", "refused"]);
    assert_eq!((report.idle[0].missing.len(), report.idle[1].missing.len()), (2, 1));
    let refused = report.idle[2].refused.as_ref().unwrap();
    assert_eq!((&*refused.precondition, refused.times), ("never", 1));
}

// S30
#[tokio::test]
async fn a_stall_report_reads_like_a_sentence_per_step() {
    let run = Scenario::new(Stuck).start(Begin(0)).await;
    for says in ["`middle` did not run", "`Item`", "precondition `never` said no"] {
        run.assert_stalled(says);
    }
}

struct Waiting;

#[workflow]
impl Waiting {
    #[step]
    async fn end(&self, _begin: &Begin, alpha: &Alpha) -> Done {
        Done(alpha.0)
    }
}

// S30
#[tokio::test]
async fn a_run_that_can_still_be_sent_something_waits() {
    let mut run = Scenario::new(Waiting).start(Begin(0)).await;
    run.assert_waiting();
    assert_eq!(run.handle().status(), RunStatus::Waiting);
    run.handle().send(Alpha(4)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Completed);
    run.assert_output(&Done(4));
}

// S31
#[tokio::test]
async fn a_cancelled_run_ends_with_the_reason_and_drops_what_runs() {
    let alive = Alive::default();
    let run = started(StopsEarly(alive.clone()), 1).await;
    until(|| alive.count() == 1).await;
    run.cancel("the customer left").await.unwrap();
    assert_eq!(alive.count(), 0);
    assert_eq!(run.status(), RunStatus::Cancelled);
    let error = run.outcome().await.unwrap_err();
    assert_eq!(error.to_string(), "the run was cancelled: the customer left");
    let report = run.report().await.unwrap();
    assert_eq!(outcomes_of(&report, "sleep"), [&ExecutionOutcome::Dropped]);
    assert_eq!(report.quality, Quality::Failed);
}

struct Gated {
    gate: Gate,
    seen: Seen,
}

#[workflow]
impl Gated {
    #[step]
    async fn here(&self, begin: &Begin) -> Item {
        self.seen.note("begun");
        self.gate.pass().await;
        self.seen.note("ended");
        Item(begin.0)
    }

    #[step(spawn)]
    async fn elsewhere(&self, begin: &Begin) -> Part {
        self.seen.note("begun");
        self.gate.pass().await;
        self.seen.note("ended");
        Part(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

// S31
#[tokio::test]
async fn nothing_enters_the_log_after_a_cancel() {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let run = started(Gated { gate: gate.clone(), seen: seen.clone() }, 1).await;
    until(|| seen.lines().len() == 2).await;
    run.cancel("enough").await.unwrap();
    gate.let_pass(2);
    everyone_else().await;
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin"]);
    assert_eq!(seen.lines(), ["begun", "begun"]);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Question;

struct Asking;

#[workflow]
impl Asking {
    #[step]
    async fn ask(&self, begin: &Begin) -> Vec<Question> {
        (0..begin.0).map(|_| Question).collect()
    }

    #[step]
    async fn end(&self, close: &Close) -> Result<Done, StepError> {
        let Close = close;
        Err(StepError::rejected("closed"))
    }

    #[step]
    async fn take(&self, answer: Reply<Question>) -> Done {
        Done(*answer)
    }
}

fn ended(error: &SendError, status: RunStatus) {
    assert!(matches!(error, SendError::Ended { status: how, .. } if *how == status), "{error}");
}

// S33
#[tokio::test]
async fn everything_sent_to_a_run_that_has_ended_is_refused_with_how_it_ended() {
    let run = started(Asking, 1).await;
    run.settled().await;
    run.send(Close).await.unwrap();
    run.outcome().await.unwrap_err();
    ended(&run.send(Close).await.unwrap_err(), RunStatus::Failed);
    ended(&run.requests().await.unwrap_err(), RunStatus::Failed);
    ended(&run.cancel("again").await.unwrap_err(), RunStatus::Failed);
    let request = RequestId::<Question>::new(Seq(2));
    ended(&run.reply(request, 1).await.unwrap_err(), RunStatus::Failed);
    assert_eq!(
        run.send(Close).await.unwrap_err().to_string(),
        format!("run `{}` has ended: failed", run.id())
    );
}

// S33
#[tokio::test]
async fn a_completed_a_stalled_and_a_cancelled_run_say_so_when_they_refuse() {
    let completed = started(Waiting, 0).await;
    completed.send(Alpha(1)).await.unwrap();
    completed.outcome().await.unwrap();
    ended(&completed.send(Alpha(2)).await.unwrap_err(), RunStatus::Completed);
    let stalled = started(Stuck, 0).await;
    stalled.outcome().await.unwrap_err();
    ended(&stalled.cancel("too late").await.unwrap_err(), RunStatus::Stalled);
    let cancelled = started(Waiting, 0).await;
    cancelled.cancel("enough").await.unwrap();
    ended(&cancelled.send(Alpha(1)).await.unwrap_err(), RunStatus::Cancelled);
}

struct Chatty;

#[workflow]
impl Chatty {
    #[step]
    async fn end(&self, _begin: &Begin, alpha: &Alpha) -> Option<Done> {
        (alpha.0 == 0).then_some(Done(0))
    }
}

// S33
#[tokio::test]
async fn each_of_many_senders_learns_whether_its_event_was_taken() {
    let run = started(Chatty, 0).await;
    let sends = (0..200).rev().map(|number| {
        let run = run.clone();
        tokio::spawn(async move { (number, run.send(Alpha(number % 100)).await) })
    });
    let sends: Vec<_> = sends.collect();
    let mut taken = 0;
    for send in sends {
        let (_, sent) = send.await.unwrap();
        taken += usize::from(sent.is_ok());
        if let Err(error) = sent {
            ended(&error, RunStatus::Completed);
        }
    }
    let report = run.report().await.unwrap();
    assert_eq!(report.log.iter().filter(|logged| &*logged.event == "Alpha").count(), taken);
}

// S31
#[tokio::test]
async fn a_handle_that_is_dropped_leaves_its_run_alone() {
    let seen = Seen::default();
    let run = started(Noting(seen.clone()), 1).await;
    drop(run);
    until(|| seen.lines().len() == 2).await;
    assert_eq!(seen.lines(), ["one", "two"]);
}

struct Noting(Seen);

#[workflow]
impl Noting {
    #[step]
    async fn one(&self, begin: &Begin) -> Item {
        tokio::task::yield_now().await;
        self.0.note("one");
        Item(begin.0)
    }

    #[step]
    async fn two(&self, item: &Item) -> Done {
        self.0.note("two");
        Done(item.0)
    }
}

// S30
#[tokio::test]
async fn a_run_can_be_explained_while_it_waits_and_after_it_has_ended() {
    let run = started(Explained, 0).await;
    run.settled().await;
    let ran =
        |explanation: &Explanation| explanation.steps.iter().map(|step| step.ran.len()).collect::<Vec<_>>();
    let waiting = run.explain().await.unwrap();
    assert_eq!((waiting.status, ran(&waiting)), (RunStatus::Waiting, vec![1, 0, 0]));
    run.send(Alpha(1)).await.unwrap();
    run.outcome().await.unwrap();
    let ended = run.explain().await.unwrap();
    assert_eq!((ended.status, ran(&ended)), (RunStatus::Completed, vec![1, 1, 0]));
}

struct Explained;

#[workflow]
impl Explained {
    #[step]
    async fn opened(&self, _begin: &Begin) {}

    #[step]
    async fn alphas(&self, alpha: &Alpha) -> Done {
        Done(alpha.0)
    }

    #[step]
    async fn both(&self, alpha: &Alpha, beta: &Beta) -> Done {
        Done(alpha.0 + beta.0)
    }
}

struct Endless;

#[workflow]
impl Endless {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(loops)]
    async fn again(&self, item: &Item) -> (Item, Option<Done>) {
        (Item(item.0.wrapping_add(1)), None)
    }
}

// S31
#[tokio::test]
async fn a_run_that_never_waits_can_be_cancelled() {
    let engine = Engine::builder().workflow(Endless).max_executions_per_run(u64::MAX).build().unwrap();
    let run = engine.start::<Endless>(Begin(0)).await.unwrap();
    everyone_else().await;
    assert_eq!(run.status(), RunStatus::Running);
    run.cancel("it loops").await.unwrap();
    assert_eq!(run.status(), RunStatus::Cancelled);
}

// S31
#[tokio::test]
async fn of_two_cancels_the_first_gives_the_reason() {
    let run = started(Waiting, 0).await;
    let (first, second) = tokio::join!(run.cancel("first"), run.cancel("second"));
    first.unwrap();
    ended(&second.unwrap_err(), RunStatus::Cancelled);
    assert!(matches!(run.outcome().await, Err(RunError::Cancelled { reason }) if &*reason == "first"));
}
