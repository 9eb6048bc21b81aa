//! Preconditions, the limit on executions, and combinations that were executed before (S18–S20).

use workflow_core::scheduler::Answer;
use workflow_core::table::{InputDef, PreconditionDef, StepDef, StepPolicy};

use super::stage::{Stage, step};

fn guarded(name: &str, events: &[&str]) -> StepDef {
    step(name, events).precondition(PreconditionDef::new("may"))
}

#[test]
fn a_precondition_is_asked_when_the_step_is_ready_and_before_it_runs() {
    // S13, S18
    let mut stage = Stage::new(&["A", "B"], [guarded("join", &["A", "B"])]);
    stage.send("A");
    assert!(stage.said().is_empty());
    stage.send("B");
    assert_eq!(stage.said(), ["ask q0 join(#1, #2) by #2"]);
    stage.answer(0, Answer::Yes);
    assert_eq!(stage.said(), ["start x1 join(#1, #2) by #2"]);
}

#[test]
fn a_refusing_precondition_is_asked_again_at_the_next_trigger() {
    // S18
    let mut stage = Stage::new(&["A", "B"], [guarded("join", &["A", "B"]), step("other", &["A"])]);
    stage.send("A");
    stage.send("B");
    stage.answer(0, Answer::No);
    assert_eq!(stage.said(), ["start x1 other(#1) by #1", "ask q0 join(#1, #2) by #2"]);
    // The end of another step is no trigger (S11).
    stage.finish(1, &[]);
    assert!(stage.said().is_empty());
    stage.send("B");
    assert_eq!(stage.said(), ["ask q1 join(#1, #3) by #3"]);
}

#[test]
fn a_late_answer_is_about_the_events_it_was_asked_about() {
    // S12, S18
    let mut stage = Stage::new(&["A"], [guarded("take", &["A"])]);
    stage.send("A");
    stage.send("A");
    stage.said();
    stage.answer(1, Answer::Yes);
    stage.answer(0, Answer::Yes);
    assert_eq!(stage.said(), ["start x1 take(#2) by #2", "start x2 take(#1) by #1"]);
}

#[test]
fn a_failing_precondition_ends_the_run_after_the_other_steps_of_its_trigger() {
    // S18
    let mut stage =
        Stage::new(&["Ask", "A"], [step("open", &["Ask"]), guarded("take", &["A"]), step("beside", &["A"])]);
    stage.send("Ask");
    stage.finish(1, &["A", "A"]);
    assert_eq!(
        stage.said(),
        [
            "start x1 open(#1) by #1",
            "ask q0 take(#2) by #2",
            "start x2 beside(#2) by #2",
            "ask q1 take(#3) by #3",
            "start x3 beside(#3) by #3",
        ],
    );
    stage.answer(0, Answer::Failed);
    assert_eq!(stage.said(), ["failed by the precondition of q0"]);
}

#[test]
fn a_precondition_that_fails_late_ends_the_run_at_once() {
    // S18
    let mut stage = Stage::new(&["A"], [guarded("take", &["A"]), step("beside", &["A"])]);
    stage.send("A");
    assert_eq!(stage.said(), ["ask q0 take(#1) by #1", "start x1 beside(#1) by #1"]);
    stage.answer(0, Answer::Failed);
    assert_eq!(stage.said(), ["failed by the precondition of q0"]);
}

#[test]
fn an_answer_counts_once() {
    // S18
    let mut stage = Stage::new(&["A"], [guarded("take", &["A"])]);
    stage.send("A");
    stage.answer(0, Answer::Yes);
    stage.answer(0, Answer::Yes);
    stage.answer(9, Answer::Yes);
    assert_eq!(stage.said(), ["ask q0 take(#1) by #1", "start x1 take(#1) by #1"]);
}

#[test]
fn coinciding_triggers_do_not_exceed_the_limit_on_executions() {
    // S19: both evaluations are open when the first answer comes.
    let once = guarded("once", &["A"]).policy(StepPolicy::DEFAULT.max_executions(1));
    let mut stage = Stage::new(&["Ask", "A"], [step("open", &["Ask"]), once]);
    stage.send("Ask");
    stage.said();
    stage.finish(1, &["A", "A", "A"]);
    assert_eq!(stage.said(), ["ask q0 once(#2) by #2", "ask q1 once(#3) by #3", "ask q2 once(#4) by #4"]);
    stage.answer(1, Answer::Yes);
    stage.answer(0, Answer::Yes);
    stage.answer(2, Answer::Yes);
    assert_eq!(stage.said(), ["start x2 once(#3) by #3"]);
    // The precondition is not evaluated again either.
    stage.send("A");
    assert!(stage.said().is_empty());
}

#[test]
fn a_refusal_does_not_use_up_the_limit_on_executions() {
    // S18, S19
    let once = guarded("once", &["A"]).policy(StepPolicy::DEFAULT.max_executions(1));
    let mut stage = Stage::new(&["A"], [once]);
    stage.send("A");
    stage.answer(0, Answer::No);
    stage.send("A");
    stage.said();
    stage.answer(1, Answer::Yes);
    assert_eq!(stage.said(), ["start x1 once(#2) by #2"]);
}

#[test]
fn a_duplicate_does_not_use_up_the_limit_on_executions() {
    // S19, S20: the surplus A changes nothing, so it is not the second execution.
    let twice = StepDef::new("twice")
        .input(InputDef::fixed(1, ["A"]))
        .input(InputDef::one("B").optional())
        .policy(StepPolicy::DEFAULT.max_executions(2));
    let mut stage = Stage::new(&["A", "B"], [twice]);
    for event in ["A", "A", "A", "B", "B"] {
        stage.send(event);
    }
    assert_eq!(stage.said(), ["start x1 twice(#1, -) by #1", "start x2 twice(#1, #4) by #4"]);
    assert_eq!(stage.scheduler.executions_of(stage.step("twice")), 2);
}

#[test]
fn one_combination_asked_about_twice_runs_once() {
    // S18, S20: the surplus A triggers while the first evaluation is open.
    let pair =
        StepDef::new("pair").input(InputDef::fixed(1, ["A"])).precondition(PreconditionDef::new("may"));
    let mut stage = Stage::new(&["A"], [pair]);
    stage.send("A");
    stage.send("A");
    assert_eq!(stage.said(), ["ask q0 pair(#1) by #1", "ask q1 pair(#1) by #2"]);
    stage.answer(1, Answer::Yes);
    stage.answer(0, Answer::Yes);
    assert_eq!(stage.said(), ["start x1 pair(#1) by #2"]);
    stage.send("A");
    assert!(stage.said().is_empty());
}

#[test]
fn a_refused_fixed_list_is_asked_about_at_a_surplus_event() {
    // S17, S18: the step has not fired yet, and a surplus event triggers it like any other.
    let pair =
        StepDef::new("pair").input(InputDef::fixed(1, ["A"])).precondition(PreconditionDef::new("may"));
    let mut stage = Stage::new(&["A"], [pair]);
    stage.send("A");
    stage.answer(0, Answer::No);
    stage.send("A");
    assert_eq!(stage.said(), ["ask q0 pair(#1) by #1", "ask q1 pair(#1) by #2"]);
}

#[test]
fn an_execution_runs_once_for_any_number_of_repeated_results() {
    // S20, S23
    let mut stage = Stage::new(&["A", "B"], [step("take", &["A"])]);
    stage.send("A");
    stage.finish(1, &["B"]);
    stage.said_in_full();
    stage.finish(1, &["B"]);
    stage.fail(1);
    assert_eq!(stage.said_in_full(), ["wait", "wait"]);
}
