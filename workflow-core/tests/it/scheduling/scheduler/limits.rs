//! Concurrency and size (S13, S21).

use workflow_core::scheduler::SchedulerLimits;
use workflow_core::table::{InputDef, StepDef, StepPolicy};

use super::stage::{Stage, external, step};

#[test]
fn the_surplus_over_a_steps_concurrency_waits_in_order() {
    // S21
    let two = step("two", &["A"]).policy(StepPolicy::DEFAULT.concurrency(2));
    let mut stage = Stage::new(&["Ask", "A"], [step("open", &["Ask"]), two, step("beside", &["A"])]);
    stage.send("Ask");
    stage.said();
    stage.finish(1, &["A", "A", "A", "A"]);
    assert_eq!(
        stage.said(),
        [
            "start x2 two(#2) by #2",
            "start x3 beside(#2) by #2",
            "start x4 two(#3) by #3",
            "start x5 beside(#3) by #3",
            "start x7 beside(#4) by #4",
            "start x9 beside(#5) by #5",
        ],
    );
    stage.finish(4, &[]);
    assert_eq!(stage.said(), ["start x6 two(#4) by #4"]);
    stage.finish(3, &[]);
    assert!(stage.said().is_empty());
    stage.finish(2, &[]);
    assert_eq!(stage.said(), ["start x8 two(#5) by #5"]);
}

#[test]
fn a_failure_makes_room_like_an_end() {
    // S21, S29
    let one = step("one", &["A"]).policy(StepPolicy::DEFAULT.concurrency(1).continue_on_error());
    let mut stage = Stage::new(&["A"], [one]);
    stage.send("A");
    stage.send("A");
    stage.said();
    stage.fail(1);
    assert_eq!(stage.said(), ["start x2 one(#2) by #2"]);
}

#[test]
fn a_bound_execution_that_waits_counts_as_an_execution() {
    // S19, S21
    let policy = StepPolicy::DEFAULT.concurrency(1).max_executions(2);
    let mut stage = Stage::new(&["A"], [step("one", &["A"]).policy(policy)]);
    for _ in 0..4 {
        stage.send("A");
    }
    assert_eq!(stage.said(), ["start x1 one(#1) by #1"]);
    stage.finish(1, &[]);
    stage.finish(2, &[]);
    assert_eq!(stage.said(), ["start x2 one(#2) by #2", "stalled"]);
    assert_eq!(stage.scheduler.executions_of(stage.step("one")), 2);
}

#[test]
fn a_table_may_have_more_rows_than_a_word_has_bits() {
    // S13: steps that join an event with its neighbour, beyond one word and beyond two.
    for size in [65, 130, 300] {
        let names: Vec<String> = (0..=size).map(|event| format!("E{event}")).collect();
        let join = |i: usize| {
            let pair = StepDef::new(format!("join{i}")).input(InputDef::one(names[i].as_str()));
            pair.input(InputDef::one(names[i + 1].as_str()))
        };
        let events: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut stage = Stage::new(&events, (0..size).map(join));
        for event in events.iter().rev().step_by(2) {
            stage.send(event);
        }
        assert!(stage.said().is_empty(), "no two neighbours are there");
        let missing = names[size - 1].as_str();
        stage.send(missing);
        let last = stage.scheduler.last_seq().0;
        let expected = [
            format!("start x1 join{}(#2, #{last}) by #{last}", size - 2),
            format!("start x2 join{}(#{last}, #1) by #{last}", size - 1),
        ];
        assert_eq!(stage.said(), expected);
    }
}

#[test]
fn a_run_ends_when_one_execution_more_than_it_may_have_is_due() {
    let limits = SchedulerLimits { executions: 2, ..SchedulerLimits::default() };
    let steps = [step("left", &["A"]), step("right", &["A"])];
    let mut stage = Stage::limited(limits, [external("A")], steps);
    stage.send("A");
    assert_eq!(stage.said(), ["start x1 left(#1) by #1", "start x2 right(#1) by #1"]);
    stage.finish(1, &["A"]);
    assert_eq!(stage.said(), ["the run had too many executions"]);
    assert_eq!(stage.scheduler.executions_of(stage.step("left")), 1);
    // S28, S33
    stage.finish(2, &["A"]);
    stage.send("A");
    assert_eq!(stage.said(), ["refuse the commit of x2", "refuse what was sent"]);
}

#[test]
fn executions_that_wait_for_their_turn_count_as_well() {
    let limits = SchedulerLimits { executions: 2, ..SchedulerLimits::default() };
    let one = step("one", &["A"]).policy(StepPolicy::DEFAULT.concurrency(1));
    let mut stage = Stage::limited(limits, [external("A")], [one]);
    stage.send("A");
    stage.send("A");
    assert_eq!(stage.said(), ["start x1 one(#1) by #1"]);
    stage.send("A");
    assert_eq!(stage.said(), ["the run had too many executions"]);
}

#[test]
fn a_batch_that_the_log_has_no_room_for_ends_the_run_whole() {
    // S23, S76
    let limits = SchedulerLimits { events: 2, ..SchedulerLimits::default() };
    let mut stage = Stage::limited(limits, [external("A")], [step("again", &["A"])]);
    stage.send("A");
    stage.said();
    stage.finish(1, &["A", "A"]);
    assert_eq!(stage.said(), ["2 events, and room for 1"]);
    assert_eq!(stage.scheduler.last_seq().0, 1);
}

#[test]
fn a_full_log_ends_the_run() {
    let limits = SchedulerLimits { events: 2, ..SchedulerLimits::default() };
    let mut stage = Stage::limited(limits, [external("A")], [step("again", &["A"])]);
    stage.send("A");
    stage.said();
    stage.finish(1, &["A"]);
    stage.said();
    stage.finish(2, &["A"]);
    assert_eq!(stage.said(), ["the log is full"]);
    // S33
    stage.send("A");
    assert_eq!(stage.said(), ["refuse what was sent"]);
}
