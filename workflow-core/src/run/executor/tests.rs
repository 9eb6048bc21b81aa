use std::time::SystemTime;

use futures::future::{pending, ready};
use tokio::sync::oneshot;

use super::*;

fn poll(executor: &mut Executor) -> Option<Completion> {
    executor.poll(&mut Context::from_waker(std::task::Waker::noop()))
}

/// The completions of repeated polls, until there are none.
fn all(executor: &mut Executor) -> Vec<Completion> {
    std::iter::from_fn(|| poll(executor)).collect()
}

/// The step of every precondition here.
fn step() -> StepIndex {
    StepIndex::at(3)
}

// S18
#[test]
fn an_answer_arrives_once_its_precondition_has_it_and_belongs_to_the_step_that_was_asked() {
    let mut executor = Executor::default();
    assert!(executor.is_empty() && poll(&mut executor).is_none());
    let (answer, answered) = oneshot::channel();
    executor.ask(CandidateId(1), step(), Box::pin(async move { Ok(answered.await.unwrap()) }));
    executor.ask(CandidateId(2), step(), Box::pin(pending()));
    assert!(poll(&mut executor).is_none() && !executor.is_empty());
    answer.send(true).unwrap();
    let [Completion::Precondition(CandidateId(1), Ok(true))] = all(&mut executor)[..] else {
        panic!("no answer")
    };
    assert_eq!(executor.answered(CandidateId(1)), Some(step()));
    assert_eq!(executor.answered(CandidateId(1)), None);
    assert!(!executor.is_empty(), "the other is still asked");
}

// S18, S27
#[test]
fn a_precondition_that_panics_answers_with_an_error() {
    let mut executor = Executor::default();
    executor.ask(CandidateId(1), step(), Box::pin(async { panic!("never ask") }));
    let [Completion::Precondition(CandidateId(1), Err(error))] = &all(&mut executor)[..] else {
        panic!("no answer")
    };
    assert!(error.to_string().contains("never ask"), "{error}");
}

#[test]
fn unwanted_preconditions_are_dropped_and_the_others_are_not() {
    let mut executor = Executor::default();
    for candidate in 1..=3 {
        executor.ask(CandidateId(candidate), step(), Box::pin(pending()));
    }
    executor.drop_questions(|candidate| candidate == CandidateId(2));
    assert!(executor.is_dropping());
    let arrived = all(&mut executor);
    assert!(matches!(arrived[..], [Completion::Dropped { .. }, Completion::Dropped { .. }]), "{arrived:?}");
    executor.is_gone(false);
    assert!(executor.is_dropping(), "the other is still there");
    executor.is_gone(false);
    assert!(!executor.is_dropping());
    let steps = [1, 2, 3].map(|candidate| executor.answered(CandidateId(candidate)));
    assert_eq!(steps, [None, Some(step()), None]);
}

#[test]
fn a_wait_that_is_dropped_arrives_as_dropped_and_one_that_has_ended_is_not_waited_for() {
    let mut executor = Executor::default();
    let dropped = executor.wait(Due::Timeout, Box::pin(pending()));
    let ended = executor.wait(Due::Timer(SystemTime::UNIX_EPOCH), Box::pin(ready(())));
    let [Completion::Due(Due::Timer(at))] = all(&mut executor)[..] else { panic!("it has not ended") };
    assert_eq!(at, SystemTime::UNIX_EPOCH);
    executor.drop_wait(Some(ended));
    executor.drop_wait(None);
    assert!(!executor.is_dropping());
    executor.drop_wait(Some(dropped));
    assert!(executor.is_dropping() && !executor.is_empty());
    assert!(matches!(all(&mut executor)[..], [Completion::Dropped { .. }]));
    executor.is_gone(false);
    assert!(executor.is_empty());
}

// S36
#[test]
fn an_execution_that_waits_for_its_next_attempt_counts_until_it_is_due_or_dropped() {
    let mut executor = Executor::default();
    executor.wait_for_retry(ExecutionId(1), Box::pin(ready(())));
    executor.wait_for_retry(ExecutionId(2), Box::pin(pending()));
    assert_eq!(executor.executing(), 2);
    let [Completion::Due(Due::Retry(ExecutionId(1)))] = all(&mut executor)[..] else { panic!("it is due") };
    executor.forget(ExecutionId(1));
    assert!(!executor.drop_execution(ExecutionId(1)), "it is in flight no more");
    assert!(executor.drop_execution(ExecutionId(2)));
    assert!(!executor.drop_execution(ExecutionId(2)));
    assert_eq!(executor.executing(), 0);
    assert!(matches!(all(&mut executor)[..], [Completion::Dropped { .. }]));
    executor.is_gone(false);
    assert!(executor.is_empty());
}

#[test]
fn completions_have_their_turns_in_order_and_one_that_is_put_back_comes_first() {
    let mut executor = Executor::default();
    for execution in 1..=3 {
        executor.returned(ExecutionId(execution), Err(StepError::permanent("enough")));
    }
    assert!(executor.has_completed() && !executor.is_empty());
    let first = executor.next_completed().unwrap();
    executor.put_back(first);
    // Memory is freed only once nothing waits.
    executor.shrink();
    let turns = std::iter::from_fn(|| executor.next_completed()).map(|completion| match completion {
        Completion::Execution(execution, Err(_)) => execution.0,
        other => panic!("{other:?}"),
    });
    assert_eq!(turns.collect::<Vec<_>>(), [1, 2, 3]);
    assert!(executor.is_empty());
}

#[test]
fn clearing_drops_the_futures_that_are_in_flight() {
    let (alive, mut dropped) = oneshot::channel::<()>();
    let mut executor = Executor::default();
    executor.ask(
        CandidateId(1),
        step(),
        Box::pin(async move {
            pending::<()>().await;
            drop(alive);
            Ok(true)
        }),
    );
    assert!(poll(&mut executor).is_none());
    assert!(matches!(dropped.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
    executor.clear(false);
    assert!(matches!(dropped.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
}

// S61
#[test]
fn an_unpause_waits_for_what_its_pause_dropped_and_for_nothing_else() {
    let mut executor = Executor::default();
    executor.ask(CandidateId(1), step(), Box::pin(pending()));
    executor.drop_questions(|_| false);
    assert!(executor.is_dropping() && !executor.is_dropping_for_pause());
    executor.ask(CandidateId(2), step(), Box::pin(pending()));
    executor.wait_for_retry(ExecutionId(1), Box::pin(pending()));
    executor.begin_again(&[ExecutionId(1)]);
    executor.drop_questions(|_| false);
    assert!(executor.is_dropping_for_pause() && executor.drop_execution(ExecutionId(1)));
    for completion in all(&mut executor) {
        let Completion::Dropped { begins_again } = completion else { panic!("{completion:?}") };
        assert!(executor.is_dropping_for_pause() || !begins_again);
        executor.is_gone(begins_again);
    }
    assert!(!executor.is_dropping() && !executor.is_dropping_for_pause());
}

// S38
#[test]
fn after_a_rewind_nothing_begins_before_dropped_futures_are_gone() {
    let mut executor = Executor::default();
    executor.wait_for_dropped();
    assert!(!executor.waits_for_dropped(), "nothing was dropped");
    executor.ask(CandidateId(1), step(), Box::pin(pending()));
    executor.drop_questions(|_| false);
    assert!(!executor.waits_for_dropped(), "that was dropped later");
    executor.wait_for_dropped();
    assert!(executor.waits_for_dropped());
    assert!(matches!(all(&mut executor)[..], [Completion::Dropped { .. }]));
    executor.is_gone(false);
    assert!(!executor.waits_for_dropped());
}
