//! When steps run, and with which events (S5, S11–S17).

use workflow_core::table::{InputDef, StepDef};

use super::stage::{Stage, step};

#[test]
fn three_list_events_logged_together_are_seen_as_they_came() {
    // S12, S16
    let collect = StepDef::new("collect").input(InputDef::list(["Hit"]));
    let mut stage = Stage::new(&["Ask", "Hit"], [step("search", &["Ask"]), collect]);
    stage.send("Ask");
    stage.said();
    stage.finish(1, &["Hit", "Hit", "Hit"]);
    assert_eq!(
        stage.said(),
        ["start x2 collect(#2) by #2", "start x3 collect(#2 #3) by #3", "start x4 collect(#2 #3 #4) by #4"],
    );
}

#[test]
fn a_join_takes_the_latest_of_each() {
    // S14, S15
    let mut stage = Stage::new(&["A", "B"], [step("join", &["A", "B"])]);
    for event in ["A", "B", "A", "B"] {
        stage.send(event);
    }
    assert_eq!(
        stage.said(),
        ["start x1 join(#1, #2) by #2", "start x2 join(#3, #2) by #3", "start x3 join(#3, #4) by #4"],
    );
}

#[test]
fn each_of_two_events_logged_together_triggers_with_itself() {
    // S12, S15: the second is in the log already when the first is evaluated.
    let mut stage = Stage::new(&["Ask", "A"], [step("open", &["Ask"]), step("take", &["A"])]);
    stage.send("Ask");
    stage.said();
    stage.finish(1, &["A", "A"]);
    assert_eq!(stage.said(), ["start x2 take(#2) by #2", "start x3 take(#3) by #3"]);
}

#[test]
fn what_was_logged_later_in_the_batch_does_not_make_a_step_ready_earlier() {
    // S12: at A there is no B yet, though the log has one.
    let mut stage = Stage::new(&["Ask", "A", "B"], [step("open", &["Ask"]), step("join", &["A", "B"])]);
    stage.send("Ask");
    stage.said();
    stage.finish(1, &["A", "B"]);
    assert_eq!(stage.said(), ["start x2 join(#2, #3) by #3"]);
}

#[test]
fn steps_are_evaluated_in_declaration_order_and_once_per_event() {
    // S11: `twice` takes the type with two parameters, and is evaluated once all the same.
    let mut stage =
        Stage::new(&["A"], [step("twice", &["A", "A"]), step("first", &["A"]), step("last", &["A"])]);
    stage.send("A");
    assert_eq!(
        stage.said(),
        ["start x1 twice(#1, #1) by #1", "start x2 first(#1) by #1", "start x3 last(#1) by #1"],
    );
}

#[test]
fn an_event_that_no_step_takes_triggers_nothing() {
    // S3, S11
    let mut stage = Stage::new(&["A", "B"], [step("take", &["B"])]);
    stage.send("A");
    stage.finish(7, &["A"]);
    assert!(stage.said().is_empty());
}

#[test]
fn an_end_of_an_execution_triggers_nothing_by_itself() {
    // S11, S24
    let mut stage = Stage::new(&["A", "B"], [step("take", &["A"]), step("join", &["A", "B"])]);
    stage.send("A");
    stage.said();
    stage.finish(1, &[]);
    assert!(stage.said().is_empty());
}

#[test]
fn a_fixed_list_fires_once_with_the_first_events() {
    // S17
    let pair = StepDef::new("pair").input(InputDef::fixed(2, ["A"]));
    let mut stage = Stage::new(&["A"], [pair]);
    for _ in 0..4 {
        stage.send("A");
    }
    assert_eq!(stage.said(), ["start x1 pair(#1 #2) by #2"]);
    assert_eq!(stage.scheduler.surplus_of(stage.step("pair")), 2);
}

#[test]
fn other_inputs_fire_again_with_the_same_fixed_list() {
    // S14, S17
    let pair = StepDef::new("pair").input(InputDef::fixed(2, ["A"])).input(InputDef::one("B"));
    let mut stage = Stage::new(&["A", "B"], [pair]);
    for event in ["A", "A", "A", "B", "A", "B"] {
        stage.send(event);
    }
    assert_eq!(stage.said(), ["start x1 pair(#1 #2, #4) by #4", "start x2 pair(#1 #2, #6) by #6"]);
    assert_eq!(stage.scheduler.surplus_of(stage.step("pair")), 2);
}

#[test]
fn an_optional_list_is_nothing_until_there_is_something() {
    // S5, S13
    let note = StepDef::new("note").input(InputDef::one("A")).input(InputDef::list(["B"]).optional());
    let mut stage = Stage::new(&["A", "B"], [note]);
    for event in ["B", "A", "B"] {
        stage.send(event);
    }
    assert_eq!(stage.said(), ["start x1 note(#2, #1) by #2", "start x2 note(#2, #1 #3) by #3"]);

    let note = StepDef::new("note").input(InputDef::one("A")).input(InputDef::list(["B"]).optional());
    let mut stage = Stage::new(&["A", "B"], [note]);
    stage.send("A");
    assert_eq!(stage.said(), ["start x1 note(#1, -) by #1"]);
}

#[test]
fn an_optional_fixed_list_is_nothing_until_it_is_full() {
    // S5, S13, S17: an arrival that changes nothing does not run the step again (S20).
    let note = StepDef::new("note").input(InputDef::one("A")).input(InputDef::fixed(2, ["B"]).optional());
    let mut stage = Stage::new(&["A", "B"], [note]);
    for event in ["A", "B", "B", "B"] {
        stage.send(event);
    }
    assert_eq!(stage.said(), ["start x1 note(#1, -) by #1", "start x2 note(#1, #2 #3) by #3"]);
}

#[test]
fn a_step_with_only_optional_inputs_runs_for_any_of_them() {
    // S9, S14
    let either =
        StepDef::new("either").input(InputDef::one("A").optional()).input(InputDef::one("B").optional());
    let mut stage = Stage::new(&["A", "B"], [either]);
    stage.send("B");
    stage.send("A");
    assert_eq!(stage.said(), ["start x1 either(-, #1) by #1", "start x2 either(#2, #1) by #2"]);
}

#[test]
fn an_optional_input_triggers_only_a_step_that_is_ready() {
    // S8, S13
    let late = StepDef::new("late").input(InputDef::one("A")).input(InputDef::one("B").optional());
    let mut stage = Stage::new(&["A", "B"], [late]);
    stage.send("B");
    assert!(stage.said().is_empty());
    stage.send("A");
    assert_eq!(stage.said(), ["start x1 late(#2, #1) by #2"]);
}

#[test]
fn either_of_two_types_triggers_a_union() {
    // S3, S15
    let take = StepDef::new("take").input(InputDef::one_of(["A", "B"]));
    let mut stage = Stage::new(&["A", "B"], [take]);
    stage.send("B");
    stage.send("A");
    assert_eq!(stage.said(), ["start x1 take(#1) by #1", "start x2 take(#2) by #2"]);
}

#[test]
fn a_union_beside_the_trigger_is_the_latest_of_any_member() {
    // S3, S15
    let join = StepDef::new("join").input(InputDef::one("C")).input(InputDef::one_of(["A", "B"]));
    let mut stage = Stage::new(&["A", "B", "C"], [join]);
    for event in ["B", "A", "C", "B"] {
        stage.send(event);
    }
    assert_eq!(stage.said(), ["start x1 join(#3, #2) by #3", "start x2 join(#3, #4) by #4"]);
}

#[test]
fn a_list_of_a_union_holds_every_member_in_order() {
    // S3, S16
    let collect = StepDef::new("collect").input(InputDef::list(["A", "B"]));
    let mut stage = Stage::new(&["A", "B", "C"], [collect]);
    for event in ["B", "C", "A", "B"] {
        stage.send(event);
    }
    assert_eq!(
        stage.said(),
        ["start x1 collect(#1) by #1", "start x2 collect(#1 #3) by #3", "start x3 collect(#1 #3 #4) by #4"],
    );
}

#[test]
fn a_fixed_list_of_a_union_counts_every_member() {
    // S3, S17
    let pair = StepDef::new("pair").input(InputDef::fixed(2, ["A", "B"]));
    let mut stage = Stage::new(&["A", "B"], [pair]);
    for event in ["B", "A", "B"] {
        stage.send(event);
    }
    assert_eq!(stage.said(), ["start x1 pair(#1 #2) by #2"]);
}

#[test]
fn a_type_named_twice_in_a_union_counts_once() {
    // S16, S17
    let pair = StepDef::new("pair").input(InputDef::fixed(2, ["A", "A"]));
    let mut stage = Stage::new(&["A"], [pair, StepDef::new("all").input(InputDef::list(["A", "A"]))]);
    stage.send("A");
    stage.send("A");
    assert_eq!(
        stage.said(),
        ["start x1 all(#1) by #1", "start x2 pair(#1 #2) by #2", "start x3 all(#1 #2) by #2"],
    );
}
