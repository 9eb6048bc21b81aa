//! Fan-outs that are settled before all of their branches are (S50).

use std::num::NonZeroU32;

use workflow_core::FanOutPolicy;
use workflow_core::scheduler::FanOutTerms;
use workflow_core::signature::Roles;
use workflow_core::table::{EventDef, InputDef, OutputDef, StepDef, StepPolicy};

use super::stage::{Stage, control, external, step};

fn until(enough: u32, policy: FanOutPolicy) -> FanOutTerms {
    FanOutTerms { until: NonZeroU32::new(enough), policy, ..FanOutTerms::default() }
}

/// Order → a branch per model → an answer per model → confirmed once.
fn race(models: u32, terms: FanOutTerms) -> Stage {
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Model")),
        step("ask", &["Model"]).output(OutputDef::many("Answer")),
        StepDef::new("confirm").input(InputDef::gather("Answer")),
    ];
    let mut stage = Stage::new(&["Order", "Model", "Answer"], steps);
    stage.send("Order");
    stage.said();
    let models = stage.fan_out_by("split", models, terms);
    stage.commit(1, [models]);
    stage.said();
    stage
}

#[test]
fn enough_branches_settle_the_fan_out_and_the_others_are_dropped() {
    // S50
    let mut stage = race(4, until(2, FanOutPolicy::FailAll));
    stage.finish(4, &["Answer"]);
    assert_eq!(stage.said(), ["free scope 3"]);
    stage.finish(2, &["Answer"]);
    assert_eq!(
        stage.said(),
        [
            "free scope 1",
            "free scope 2",
            "free scope 4",
            "drop x3",
            "drop x5",
            "gather #8 split.Model.gathered: scope 1 of #2, #7 Answer, place 1; scope 2 of #3, dropped, place \
             2; scope 3 of #4, #6 Answer, place 0; scope 4 of #5, dropped",
            "start x6 confirm(#8) by #8",
        ],
    );
    assert!(!stage.scheduler.is_degraded(), "nothing failed");
    // Results of dropped executions have no effect.
    stage.finish(3, &["Answer"]);
    stage.fail(5);
    assert!(stage.said().is_empty());
}

#[test]
fn a_branch_that_fails_early_does_not_end_the_race() {
    // S34, S50: the failure is in the gather, whatever the policy.
    for policy in [FanOutPolicy::FailAll, FanOutPolicy::ContinueOthers, FanOutPolicy::WaitAll] {
        let mut stage = race(3, until(1, policy));
        stage.fail(3);
        // S39: the run may yet fail with it, and a redrive would open the branch again.
        let is_kept = policy != FanOutPolicy::ContinueOthers;
        assert_eq!(stage.said().len(), usize::from(!is_kept), "{policy:?}");
        assert!(stage.scheduler.is_degraded());
        stage.finish(4, &["Answer"]);
        let said = stage.said();
        let gather = "gather #6 split.Model.gathered: scope 1 of #2, dropped, place 2; scope 2 of #3, failed x3, \
                      place 0; scope 3 of #4, #5 Answer, place 1";
        assert!(said.iter().any(|line| line == gather), "{policy:?}: {said:?}");
        assert_eq!(said.iter().filter(|line| *line == "free scope 2").count(), usize::from(is_kept));
    }
}

#[test]
fn once_too_few_branches_are_left_the_policy_decides_over_all_failures() {
    // S49, S50
    let mut stage = race(3, until(2, FanOutPolicy::FailAll));
    stage.fail(4);
    assert!(stage.said().is_empty());
    stage.fail(2);
    assert_eq!(stage.said(), ["drop x3", "failed by x2 x4"]);

    let mut stage = race(3, until(2, FanOutPolicy::ContinueOthers));
    stage.fail(4);
    stage.fail(2);
    assert_eq!(stage.said(), ["free scope 3", "free scope 1"]);
    stage.finish(3, &["Answer"]);
    let gather = "gather #6 split.Model.gathered: scope 1 of #2, failed x2, place 1; scope 2 of #3, #5 Answer, \
                  place 2; scope 3 of #4, failed x4, place 0";
    assert_eq!(stage.said()[1], gather);

    let mut stage = race(3, until(2, FanOutPolicy::WaitAll));
    stage.fail(4);
    stage.fail(2);
    assert!(stage.said().is_empty());
    stage.finish(3, &["Answer"]);
    assert_eq!(stage.said(), ["failed by x2 x4"]);
}

#[test]
fn with_fewer_items_than_are_wanted_the_policy_decides_from_the_start() {
    // S49, S50
    let mut stage = race(2, until(3, FanOutPolicy::FailAll));
    stage.fail(3);
    assert_eq!(stage.said(), ["drop x2", "failed by x3"]);

    let mut stage = race(2, until(3, FanOutPolicy::FailAll));
    stage.finish(2, &["Answer"]);
    stage.finish(3, &["Answer"]);
    assert_eq!(
        stage.said()[2],
        "gather #6 split.Model.gathered: scope 1 of #2, #4 Answer; scope 2 of #3, #5 Answer"
    );

    let mut stage = race(0, until(1, FanOutPolicy::FailAll));
    assert!(stage.said().is_empty(), "it was gathered with its batch");
    stage.finish(2, &[]);
    assert!(stage.said().is_empty());
}

#[test]
fn branches_that_are_not_open_yet_are_listed_as_dropped() {
    // S50: the bound lets two run, and the first of them is enough.
    let terms = FanOutTerms { concurrency: NonZeroU32::new(2), ..until(1, FanOutPolicy::FailAll) };
    let mut stage = race(4, terms);
    stage.finish(3, &["Answer"]);
    assert_eq!(
        stage.said(),
        [
            "free scope 2",
            "free scope 1",
            "drop x2",
            "gather #7 split.Model.gathered: scope 1 of #2, dropped, place 1; scope 2 of #3, #6 Answer, place 0; scope 3 of #4, \
             dropped; scope 4 of #5, dropped",
            "start x4 confirm(#7) by #7",
        ],
    );
}

#[test]
fn a_branch_that_had_failed_when_it_was_dropped_keeps_its_failure_and_its_events() {
    // S50: two steps run in each branch, and one of them fails while the other one runs.
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Model")),
        step("ask", &["Model"]).output(OutputDef::many("Answer")),
        step("check", &["Model"]).output(OutputDef::many("Answer")),
        step("wait", &["Model"]),
        StepDef::new("confirm").input(InputDef::gather("Answer")),
    ];
    let mut stage = Stage::new(&["Order", "Model", "Answer"], steps);
    stage.send("Order");
    stage.commit(1, [stage.fan_out_by("split", 2, until(1, FanOutPolicy::FailAll))]);
    stage.said();
    stage.finish(2, &["Answer"]);
    stage.fail(3);
    assert!(stage.said().is_empty(), "the third execution of the branch still runs");
    for execution in 5..=7 {
        stage.finish(execution, &[]);
    }
    let gather = "gather #5 split.Model.gathered: scope 1 of #2, #4 Answer, failed x3, dropped, place 1; scope 2 of #3, place 0";
    assert_eq!(stage.said()[..4], ["free scope 2", "free scope 1", "drop x4", gather]);
}

#[test]
fn several_failures_of_one_branch_count_as_one() {
    // S50
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Model")),
        step("ask", &["Model"]),
        step("check", &["Model"]),
        StepDef::new("confirm").input(InputDef::gather("Model")),
    ];
    let mut stage = Stage::new(&["Order", "Model"], steps);
    stage.send("Order");
    stage.commit(1, [stage.fan_out_by("split", 2, until(1, FanOutPolicy::FailAll))]);
    stage.said();
    stage.fail(2);
    stage.fail(3);
    assert!(stage.said().is_empty());
    stage.fail(5);
    assert_eq!(stage.said(), ["drop x4", "failed by x2 x3 x5"]);
}

#[test]
fn a_failure_that_a_step_catches_or_that_is_let_pass_is_no_failure_of_the_branch() {
    // S29, S50
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Model")),
        step("ask", &["Model"]).policy(StepPolicy::DEFAULT.continue_on_error()),
        step("check", &["Model"]),
        step("mend", &["Failed"]).catches(["check"]),
        StepDef::new("confirm").input(InputDef::gather("Model")),
    ];
    let events = [external("Order"), control("Model"), EventDef::failure("Failed")];
    let mut stage = Stage::with(events, steps);
    stage.send("Order");
    stage.commit(1, [stage.fan_out_by("split", 2, until(1, FanOutPolicy::FailAll))]);
    stage.said();
    stage.fail(2);
    stage.fail(3);
    assert_eq!(stage.said(), ["start x6 mend(#4) by #4 in scope 1"]);
    stage.finish(6, &[]);
    assert_eq!(stage.said()[..2], ["free scope 1", "free scope 2"]);
}

/// Order → a branch per line → in it a race of models.
fn nested() -> Stage {
    let events = [
        external("Order"),
        control("Line"),
        control("Model"),
        control("Answer"),
        control("Priced"),
        EventDef::new("Approve", Roles::NONE.request()),
        EventDef::reply_to("Approve.reply", "Approve"),
    ];
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("race", &["Line"]).output(OutputDef::fan_out("Model")),
        step("ask", &["Model"]).output(OutputDef::event("Answer")).output(OutputDef::event("Approve")),
        StepDef::new("price").input(InputDef::gather("Answer")).output(OutputDef::event("Priced")),
        StepDef::new("confirm").input(InputDef::gather("Priced")),
    ];
    let mut stage = Stage::with(events, steps);
    stage.send("Order");
    stage.said();
    stage
}

#[test]
fn what_is_below_a_dropped_branch_is_dropped_with_it() {
    // S33, S50: the second line has models of its own, and one of them has an open request.
    let mut stage = nested();
    stage.commit(1, [stage.fan_out_by("split", 2, until(1, FanOutPolicy::FailAll))]);
    stage.commit(2, [stage.fan_out_by("race", 1, until(1, FanOutPolicy::FailAll))]);
    stage.commit(3, [stage.fan_out("race", 2)]);
    stage.said();
    stage.finish(5, &["Approve"]);
    assert_eq!(stage.scheduler.open_requests().count(), 1);
    stage.finish(4, &["Answer"]);
    assert_eq!(
        stage.said(),
        [
            "free scope 3",
            "gather #9 race.Model.gathered in scope 1: scope 3 of #4, #8 Answer",
            "start x7 price(#9) by #9 in scope 1",
        ],
    );
    stage.finish(7, &["Priced"]);
    assert_eq!(
        stage.said(),
        [
            "free scope 1",
            "free scope 2",
            "free scope 4",
            "free scope 5",
            "drop x6",
            "gather #11 split.Line.gathered: scope 1 of #2, #10 Priced; scope 2 of #3, dropped",
            "start x8 confirm(#11) by #11",
        ],
    );
    assert_eq!(stage.scheduler.open_requests().count(), 0);
    stage.reply(7);
    assert_eq!(stage.said(), ["refuse what was sent"]);
}

#[test]
fn a_race_that_fails_in_a_branch_is_a_failure_of_that_branch() {
    // S49, S50: the outer fan-out bears it.
    let mut stage = nested();
    stage.commit(1, [stage.fan_out_by("split", 2, until(1, FanOutPolicy::FailAll))]);
    stage.commit(2, [stage.fan_out_by("race", 2, until(1, FanOutPolicy::FailAll))]);
    stage.said();
    stage.fail(4);
    stage.fail(5);
    assert!(stage.said().is_empty());
    stage.finish(3, &[]);
    let gather = "gather #6 split.Line.gathered: scope 1 of #2, failed x4, failed x5; scope 2 of #3";
    let said = stage.said();
    assert!(said.iter().any(|line| line == gather), "{said:?}");
    for scope in 1..=4 {
        assert_eq!(said.iter().filter(|line| **line == format!("free scope {scope}")).count(), 1, "{said:?}");
    }
}

#[test]
fn what_waits_for_its_turn_begins_where_dropped_executions_leave_room() {
    // S21, S50
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("cut", &["Line"]).output(OutputDef::fan_out("Part")),
        step("weigh", &["Part"]).policy(StepPolicy::DEFAULT.concurrency(2)),
        StepDef::new("parts").input(InputDef::gather("Part")),
        StepDef::new("lines").input(InputDef::gather("Line")),
    ];
    let mut stage = Stage::new(&["Order", "Line", "Part"], steps);
    stage.send("Order");
    stage.commit(1, [stage.fan_out("split", 2)]);
    stage.commit(2, [stage.fan_out_by("cut", 3, until(1, FanOutPolicy::FailAll))]);
    stage.commit(3, [stage.fan_out("cut", 2)]);
    stage.said();
    // The two that run and the one that waits are of the first line, and the others wait behind it.
    stage.finish(4, &[]);
    assert_eq!(
        stage.said(),
        [
            "start x6 weigh(#6) by #6 in scope 5",
            "free scope 3",
            "free scope 4",
            "free scope 5",
            "drop x5",
            "drop x6",
            "gather #9 cut.Part.gathered in scope 1: scope 3 of #4, #4 Part; scope 4 of #5, #5 Part, dropped; scope 5 \
             of #6, #6 Part, dropped",
            "start x7 weigh(#7) by #7 in scope 6",
            "start x8 weigh(#8) by #8 in scope 7",
            "start x9 parts(#9) by #9 in scope 1",
        ],
    );
}
