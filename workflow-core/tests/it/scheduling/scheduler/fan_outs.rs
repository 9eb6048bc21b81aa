//! A fan-out as a whole: gathering it, its failures, and its bound (S48–S50).

use workflow_core::scheduler::{Answer, Fact};
use workflow_core::signature::Roles;
use workflow_core::table::{EventDef, InputDef, OutputDef, PreconditionDef, StepDef, StepPolicy};
use workflow_core::{ExecutionId, FanOutPolicy};

use super::stage::{Stage, control, external, step};

/// Order → a branch per line → a label per line → confirmed once.
fn shop() -> Stage {
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("label", &["Line"]).output(OutputDef::many("Label")),
        step("confirm", &["Order"]).input(InputDef::gather("Label")),
    ];
    let mut stage = Stage::new(&["Order", "Line", "Label"], steps);
    stage.send("Order");
    stage.said();
    stage
}

fn shop_with(items: u32, policy: FanOutPolicy, concurrency: Option<u32>) -> Stage {
    let mut stage = shop();
    let lines = stage.fan_out_with("split", items, policy, concurrency);
    stage.commit(1, [lines]);
    stage
}

/// Order → a branch per line → in it a branch per part.
fn nested() -> Stage {
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("cut", &["Line"]).output(OutputDef::fan_out("Part")),
        step("weigh", &["Part"]).output(OutputDef::event("Weight")),
        step("add", &["Line"]).input(InputDef::gather("Weight")).output(OutputDef::event("Total")),
        StepDef::new("confirm").input(InputDef::gather("Total")),
    ];
    let mut stage = Stage::new(&["Order", "Line", "Part", "Weight", "Total"], steps);
    stage.send("Order");
    stage.said();
    stage
}

#[test]
fn a_fan_out_is_gathered_once_in_its_own_order() {
    // S48: the branches settle the other way round.
    let mut stage = shop_with(2, FanOutPolicy::FailAll, None);
    stage.said();
    stage.finish(3, &["Label", "Label"]);
    assert_eq!(stage.said(), ["free scope 2"]);
    stage.finish(2, &["Label"]);
    assert_eq!(
        stage.said(),
        [
            "free scope 1",
            "gather #7 split.Line.gathered: scope 1 of #2, #6 Label, place 1; scope 2 of #3, #4 Label, #5 Label, \
             place 0",
            "start x4 confirm(#1, #7) by #7",
        ],
    );
}

#[test]
fn a_gather_is_taken_once_and_the_next_one_joins_the_latest_of_the_other_input() {
    // S48: the gather waits for no other input here, and another order does not bind it again.
    let mut stage = shop_with(0, FanOutPolicy::FailAll, None);
    stage.said();
    stage.send("Order");
    assert_eq!(stage.said(), ["start x3 split(#3) by #3"]);
    stage.send("Order");
    assert_eq!(stage.said(), ["start x4 split(#4) by #4"]);
    stage.commit(3, [stage.fan_out("split", 0)]);
    assert_eq!(stage.said(), ["gather #5 split.Line.gathered: ", "start x5 confirm(#4, #5) by #5"]);
}

#[test]
fn an_empty_fan_out_is_gathered_too() {
    // S44, S48
    let mut stage = shop_with(0, FanOutPolicy::FailAll, None);
    assert_eq!(stage.said(), ["gather #2 split.Line.gathered: ", "start x2 confirm(#1, #2) by #2"]);
}

#[test]
fn two_fan_outs_of_one_step_are_gathered_apart() {
    // S48
    let mut stage = shop();
    stage.send("Order");
    stage.said();
    stage.commit(1, [stage.fan_out("split", 1)]);
    stage.commit(2, [stage.fan_out("split", 1)]);
    stage.said();
    stage.finish(4, &[]);
    assert_eq!(stage.said()[1], "gather #5 split.Line.gathered: scope 2 of #4");
    stage.finish(3, &[]);
    assert_eq!(stage.said()[1], "gather #6 split.Line.gathered: scope 1 of #3");
}

#[test]
fn a_gather_holds_what_the_branches_own_scope_has_and_nothing_from_below() {
    // S48: the weights are one scope further in, so the outer gather takes only the totals.
    let mut stage = nested();
    stage.commit(1, [stage.fan_out("split", 1)]);
    stage.commit(2, [stage.fan_out("cut", 2)]);
    stage.said();
    stage.finish(3, &["Weight"]);
    stage.finish(4, &["Weight"]);
    assert_eq!(
        stage.said(),
        [
            "free scope 2",
            "free scope 3",
            "gather #7 cut.Part.gathered in scope 1: scope 2 of #3, #5 Weight; scope 3 of #4, #6 Weight",
            "start x5 add(#2, #7) by #7 in scope 1",
        ],
    );
    stage.finish(5, &["Total"]);
    assert_eq!(
        stage.said(),
        [
            "free scope 1",
            "gather #9 split.Line.gathered: scope 1 of #2, #8 Total",
            "start x6 confirm(#9) by #9",
        ],
    );
}

#[test]
fn a_loop_in_a_branch_hands_on_every_round() {
    // S44, S48
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("again", &["Line"]).output(OutputDef::optional("Line")).policy(StepPolicy::DEFAULT.loops()),
        StepDef::new("confirm").input(InputDef::gather("Line")),
    ];
    let mut stage = Stage::new(&["Order", "Line"], steps);
    stage.send("Order");
    stage.commit(1, [stage.fan_out("split", 1)]);
    stage.said();
    stage.finish(2, &["Line"]);
    stage.finish(3, &["Line"]);
    assert_eq!(stage.said(), ["start x3 again(#3) by #3 in scope 1", "start x4 again(#4) by #4 in scope 1"]);
    stage.finish(4, &[]);
    assert_eq!(stage.said()[1], "gather #5 split.Line.gathered: scope 1 of #2, #2 Line, #3 Line, #4 Line");
}

#[test]
fn the_first_failure_ends_a_fan_out_that_fails_as_one() {
    // S49: at the root that is the end of the run, and the others are dropped all the same.
    let mut stage = shop_with(2, FanOutPolicy::FailAll, None);
    stage.said();
    stage.fail(3);
    assert_eq!(stage.said(), ["drop x2", "failed by x3"]);
}

#[test]
fn a_fan_out_in_a_branch_fails_into_that_branch() {
    // S49: the inner branches are dropped; the outer one follows the outer policy.
    let mut stage = nested();
    stage.commit(1, [stage.fan_out_with("split", 2, FanOutPolicy::ContinueOthers, None)]);
    stage.commit(2, [stage.fan_out("cut", 3)]);
    stage.said();
    stage.fail(5);
    assert_eq!(
        stage.said(),
        ["free scope 3", "free scope 4", "free scope 5", "drop x4", "drop x6", "free scope 1"],
    );
    assert!(stage.scheduler.is_degraded());
    // Results of dropped executions have no effect.
    stage.finish(4, &["Weight"]);
    stage.fail(6);
    assert!(stage.said().is_empty());
    stage.finish(3, &[]);
    assert_eq!(
        stage.said(),
        [
            "free scope 2",
            "gather #7 split.Line.gathered: scope 1 of #2, failed x5; scope 2 of #3",
            "start x7 confirm(#7) by #7",
        ],
    );
}

#[test]
fn a_batch_settles_its_branch_before_anything_else_comes() {
    // S47: the result of a batch does not depend on when actions are requested.
    let mut stage = nested();
    stage.commit(1, [stage.fan_out_with("split", 1, FanOutPolicy::ContinueOthers, None)]);
    stage.commit(2, [stage.fan_out("cut", 2)]);
    stage.said();
    let emissions = [stage.emission("Weight")].into_iter().collect();
    stage.scheduler.apply(Fact::ExecutionSucceeded { execution: ExecutionId(3), emissions });
    stage.fail(4);
    assert_eq!(
        stage.said(),
        [
            "free scope 2",
            "free scope 3",
            "free scope 1",
            "gather #6 split.Line.gathered: scope 1 of #2, failed x4",
            "start x5 confirm(#6) by #6",
        ],
    );
}

#[test]
fn a_question_from_a_dropped_branch_needs_no_answer() {
    // S18, S49
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("cut", &["Line"]).output(OutputDef::fan_out("Part")),
        step("weigh", &["Part"]),
        step("check", &["Part"]).precondition(PreconditionDef::new("may")),
        StepDef::new("parts").input(InputDef::gather("Part")),
        StepDef::new("lines").input(InputDef::gather("Line")),
    ];
    let mut stage = Stage::new(&["Order", "Line", "Part"], steps);
    stage.send("Order");
    stage.commit(1, [stage.fan_out_with("split", 1, FanOutPolicy::ContinueOthers, None)]);
    stage.commit(2, [stage.fan_out("cut", 1)]);
    stage.said();
    stage.fail(3);
    assert_eq!(stage.said()[0], "free scope 2");
    stage.answer(0, Answer::Failed);
    assert!(stage.said().is_empty());
}

#[test]
fn a_request_from_a_dropped_branch_takes_no_reply() {
    // S33, S49
    let events = [
        external("Order"),
        control("Line"),
        control("Part"),
        EventDef::new("Approve", Roles::NONE.request()),
        EventDef::reply_to("Approve.reply", "Approve"),
    ];
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("cut", &["Line"]).output(OutputDef::fan_out("Part")),
        step("weigh", &["Part"]).output(OutputDef::event("Approve")),
        StepDef::new("parts").input(InputDef::gather("Part")),
        StepDef::new("lines").input(InputDef::gather("Line")),
    ];
    let mut stage = Stage::with(events, steps);
    stage.send("Order");
    stage.commit(1, [stage.fan_out_with("split", 1, FanOutPolicy::ContinueOthers, None)]);
    stage.commit(2, [stage.fan_out("cut", 2)]);
    stage.finish(3, &["Approve"]);
    assert_eq!(stage.scheduler.open_requests().count(), 1);
    stage.fail(4);
    assert_eq!(stage.scheduler.open_requests().count(), 0);
    stage.said();
    stage.reply(5);
    assert_eq!(stage.said(), ["refuse what was sent"]);
}

#[test]
fn what_waits_in_a_dropped_branch_never_starts() {
    // S21, S49: other executions use the capacity that the failure frees.
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("cut", &["Line"]).output(OutputDef::fan_out("Part")),
        step("weigh", &["Part"]).policy(StepPolicy::DEFAULT.concurrency(1)),
        StepDef::new("parts").input(InputDef::gather("Part")),
        StepDef::new("lines").input(InputDef::gather("Line")),
    ];
    let mut stage = Stage::new(&["Order", "Line", "Part"], steps);
    stage.send("Order");
    stage.commit(1, [stage.fan_out_with("split", 2, FanOutPolicy::ContinueOthers, None)]);
    stage.commit(2, [stage.fan_out("cut", 2)]);
    stage.commit(3, [stage.fan_out("cut", 1)]);
    stage.said();
    stage.fail(4);
    assert_eq!(
        stage.said(),
        ["free scope 3", "free scope 4", "start x6 weigh(#6) by #6 in scope 5", "free scope 1",],
    );
}

#[test]
fn failures_are_in_the_gather_of_a_fan_out_that_continues() {
    // S49
    let mut stage = shop_with(3, FanOutPolicy::ContinueOthers, None);
    stage.said();
    stage.fail(3);
    stage.finish(2, &["Label"]);
    assert!(stage.scheduler.is_degraded());
    stage.finish(4, &["Label"]);
    assert_eq!(
        stage.said(),
        [
            "free scope 2",
            "free scope 1",
            "free scope 3",
            "gather #7 split.Line.gathered: scope 1 of #2, #5 Label, place 1; scope 2 of #3, failed x3, place 0; \
             scope 3 of #4, #6 Label",
            "start x5 confirm(#1, #7) by #7",
        ],
    );
}

#[test]
fn a_fan_out_that_waits_for_all_fails_with_every_failure() {
    // S49
    let mut stage = shop_with(3, FanOutPolicy::WaitAll, None);
    stage.said();
    stage.fail(4);
    stage.finish(3, &["Label"]);
    // S39: a redrive opens the failed branch again, so it is not freed.
    assert_eq!(stage.said(), ["free scope 2"]);
    stage.fail(2);
    assert_eq!(stage.said(), ["failed by x2 x4"]);
    assert!(!stage.scheduler.is_degraded());

    let mut stage = shop_with(1, FanOutPolicy::WaitAll, None);
    stage.said();
    stage.finish(2, &["Label"]);
    assert_eq!(stage.said()[1], "gather #4 split.Line.gathered: scope 1 of #2, #3 Label");
}

#[test]
fn a_step_that_may_fail_does_not_fail_its_branch() {
    // S29, S49
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("label", &["Line"]).policy(StepPolicy::DEFAULT.continue_on_error()),
        StepDef::new("confirm").input(InputDef::gather("Line")),
    ];
    let mut stage = Stage::new(&["Order", "Line"], steps);
    stage.send("Order");
    stage.commit(1, [stage.fan_out("split", 1)]);
    stage.said();
    stage.fail(2);
    assert_eq!(stage.said()[1], "gather #3 split.Line.gathered: scope 1 of #2, #2 Line");
    assert!(stage.scheduler.is_degraded());
}

#[test]
fn at_most_the_given_number_of_branches_is_open_and_the_rest_follow_in_order() {
    // S50: every item is in the log from the start.
    let mut stage = shop_with(4, FanOutPolicy::FailAll, Some(2));
    assert_eq!(
        stage.said_in_full(),
        [
            "append for x1: #2 Line in scope 1, #3 Line in scope 2, #4 Line in scope 3, #5 Line in scope 4",
            "start x2 label(#2) by #2 in scope 1",
            "start x3 label(#3) by #3 in scope 2",
        ],
    );
    stage.finish(3, &[]);
    assert_eq!(stage.said(), ["free scope 2", "start x4 label(#4) by #4 in scope 3"]);
    stage.finish(4, &[]);
    assert_eq!(stage.said(), ["free scope 3", "start x5 label(#5) by #5 in scope 4"]);
    stage.finish(2, &[]);
    stage.finish(5, &[]);
    assert_eq!(
        stage.said(),
        [
            "free scope 1",
            "free scope 4",
            "gather #6 split.Line.gathered: scope 1 of #2, place 2; scope 2 of #3, place 0; scope 3 of #4, \
             place 1; scope 4 of #5",
            "start x6 confirm(#1, #6) by #6",
        ],
    );
}

#[test]
fn a_branch_that_opens_late_sees_what_the_scopes_above_hold_by_then() {
    // S12, S50: its item is older than the order it is paired with.
    let steps = [
        step("split", &["Order"])
            .output(OutputDef::fan_out("Line"))
            .policy(StepPolicy::DEFAULT.max_executions(1)),
        step("label", &["Line", "Order"]),
        StepDef::new("confirm").input(InputDef::gather("Line")),
    ];
    let mut stage = Stage::new(&["Order", "Line"], steps);
    stage.send("Order");
    stage.commit(1, [stage.fan_out_with("split", 2, FanOutPolicy::FailAll, Some(1))]);
    assert_eq!(stage.said()[1], "start x2 label(#2, #1) by #2 in scope 1");
    stage.send("Order");
    // The branch that is not open yet does not evaluate it.
    assert_eq!(stage.said(), ["start x3 label(#2, #4) by #4 in scope 1"]);
    stage.finish(2, &[]);
    stage.finish(3, &[]);
    assert_eq!(stage.said(), ["free scope 1", "start x4 label(#3, #4) by #3 in scope 2"]);
}

#[test]
fn branches_that_are_not_open_yet_are_dropped_with_the_others() {
    // S49, S50
    let mut stage = nested();
    stage.commit(1, [stage.fan_out_with("split", 1, FanOutPolicy::ContinueOthers, None)]);
    stage.commit(2, [stage.fan_out_with("cut", 3, FanOutPolicy::FailAll, Some(1))]);
    stage.said();
    stage.fail(3);
    assert_eq!(
        stage.said(),
        [
            "free scope 2",
            "free scope 1",
            "gather #6 split.Line.gathered: scope 1 of #2, failed x3",
            "start x4 confirm(#6) by #6",
        ],
    );
}

#[test]
fn a_failure_comes_out_of_branches_that_nest_deeper_than_calls() {
    // S49
    const DEEPEST: u64 = 5_000;
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("cut", &["Line"]).output(OutputDef::fan_out("Line")),
        step("confirm", &["Order"]).input(InputDef::gather("Line")),
    ];
    let mut stage = Stage::new(&["Order", "Line"], steps);
    stage.send("Order");
    for depth in 1..DEEPEST {
        stage.said();
        let opens = if depth == 1 { "split" } else { "cut" };
        stage.commit(depth, [stage.fan_out_with(opens, 1, FanOutPolicy::FailAll, None)]);
    }
    assert_eq!(
        stage.said(),
        [format!("start x{DEEPEST} cut(#{DEEPEST}) by #{DEEPEST} in scope {}", DEEPEST - 1)]
    );
    stage.fail(DEEPEST);
    assert_eq!(stage.said().last().map(String::as_str), Some("failed by x5000"));
}
