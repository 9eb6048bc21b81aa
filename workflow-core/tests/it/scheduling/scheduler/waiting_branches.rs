//! Branches that only wait, and the bound of their fan-out (S50).

use std::num::NonZeroU32;

use workflow_core::FanOutPolicy;
use workflow_core::report::TimerId;
use workflow_core::scheduler::{Answer, Emission, Fact, FanOutTerms};
use workflow_core::signature::Roles;
use workflow_core::table::{EventDef, InputDef, OutputDef, PreconditionDef, StepDef, StepPolicy};

use super::stage::{Stage, control, external, step};

/// Order → a branch per line → each asks, and packs with the reply.
fn shop(lines: u32, terms: FanOutTerms) -> Stage {
    let mut stage = unopened();
    stage.commit(1, [stage.fan_out_by("split", lines, terms)]);
    stage
}

fn unopened() -> Stage {
    let events = [
        external("Order"),
        control("Line"),
        EventDef::new("Ask", Roles::NONE.request()),
        EventDef::reply_to("Ask.reply", "Ask"),
        EventDef::expiry_of("Ask.expired", "Ask"),
        control("Due"),
        control("Packed"),
        control("Part"),
    ];
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("ask", &["Line"])
            .output(OutputDef::many("Ask"))
            .output(OutputDef::timer("Ask.expired"))
            .output(OutputDef::timer("Due"))
            .output(OutputDef::fan_out("Part")),
        StepDef::new("pack").input(InputDef::reply("Ask.reply")).output(OutputDef::many("Packed")),
        step("hurry", &["Due"]).output(OutputDef::many("Packed")),
        step("give_up", &["Ask.expired"]).output(OutputDef::many("Packed")),
        step("cut", &["Part"]).output(OutputDef::many("Ask")),
        step("parts", &["Line"]).input(InputDef::gather_of("Part", ["Part"])),
        StepDef::new("confirm").input(InputDef::gather_of("Line", ["Packed"])),
    ];
    let mut stage = Stage::with(events, steps);
    stage.send("Order");
    stage.said();
    stage
}

fn bound(most: u32) -> FanOutTerms {
    FanOutTerms { concurrency: NonZeroU32::new(most), only_busy: true, ..FanOutTerms::default() }
}

#[test]
fn a_branch_opens_in_the_place_of_one_that_only_waits() {
    // S50
    let mut stage = shop(4, bound(1));
    assert_eq!(stage.said(), ["start x2 ask(#2) by #2 in scope 1"]);
    stage.finish(2, &["Ask"]);
    assert_eq!(stage.said(), ["start x3 ask(#3) by #3 in scope 2"]);
    // A branch that settles makes room as before.
    stage.finish(3, &[]);
    assert_eq!(stage.said(), ["free scope 2", "start x4 ask(#4) by #4 in scope 3"]);
    stage.finish(4, &["Ask"]);
    assert_eq!(stage.said(), ["start x5 ask(#5) by #5 in scope 4"]);
}

#[test]
fn a_branch_that_continues_counts_again_even_beyond_the_bound() {
    // S50
    let mut stage = shop(5, bound(2));
    stage.finish(2, &["Ask"]);
    stage.finish(3, &["Ask"]);
    stage.said();
    // Two wait, two work, and both replies come: four branches are busy.
    stage.reply(7);
    stage.reply(8);
    assert_eq!(stage.said(), ["start x6 pack(#9) by #9 in scope 1", "start x7 pack(#10) by #10 in scope 2"]);
    // Three are still busy, and then two.
    stage.finish(6, &[]);
    stage.finish(7, &[]);
    assert_eq!(stage.said(), ["free scope 1", "free scope 2"]);
    stage.finish(4, &[]);
    assert_eq!(stage.said(), ["free scope 3", "start x8 ask(#6) by #6 in scope 5"]);
}

#[test]
fn a_timer_and_a_request_that_expires_are_waits_too() {
    // S32, S50
    let mut stage = shop(4, bound(1));
    stage.commit(2, [Emission::Timer(event_of(&stage, "Due"))]);
    assert_eq!(stage.said().last().map(String::as_str), Some("start x3 ask(#3) by #3 in scope 2"));
    stage.commit(3, [Emission::Expiring(event_of(&stage, "Ask"))]);
    assert_eq!(stage.said(), ["start x4 ask(#4) by #4 in scope 3"]);
    stage.tell(Fact::TimerFired { timer: TimerId(2) });
    stage.tell(Fact::TimerFired { timer: TimerId(1) });
    assert_eq!(
        stage.said(),
        ["start x5 give_up(#7) by #7 in scope 2", "start x6 hurry(#8) by #8 in scope 1"]
    );
    // Both branches work beside the third one, so the last one opens once all three are settled.
    stage.finish(5, &[]);
    stage.finish(4, &[]);
    assert_eq!(stage.said(), ["free scope 2", "free scope 3"]);
    stage.finish(6, &[]);
    assert_eq!(stage.said(), ["free scope 1", "start x7 ask(#5) by #5 in scope 4"]);
}

fn event_of(stage: &Stage, name: &str) -> workflow_core::table::EventIndex {
    let Emission::Event(event) = stage.emission(name) else { unreachable!("it is an event") };
    event
}

#[test]
fn a_branch_that_waits_and_works_counts() {
    // S50: it has two requests, and one of them is answered.
    let mut stage = shop(2, bound(1));
    stage.commit(2, [stage.emission("Ask"), stage.emission("Ask")]);
    assert_eq!(stage.said().last().map(String::as_str), Some("start x3 ask(#3) by #3 in scope 2"));

    let mut stage = shop(3, bound(1));
    stage.commit(2, [stage.emission("Ask"), stage.emission("Ask")]);
    stage.said();
    stage.reply(5);
    assert_eq!(stage.said(), ["start x4 pack(#7) by #7 in scope 1"]);
    stage.finish(3, &["Ask"]);
    assert!(stage.said().is_empty(), "the first branch works");
    stage.finish(4, &[]);
    assert_eq!(stage.said(), ["start x5 ask(#4) by #4 in scope 3"]);
}

#[test]
fn a_branch_whose_precondition_is_asked_or_whose_execution_waits_for_its_turn_counts() {
    // S18, S21, S50
    let events = [
        external("Order"),
        control("Line"),
        EventDef::new("Ask", Roles::NONE.request()),
        EventDef::reply_to("Ask.reply", "Ask"),
    ];
    let steps = [
        step("split", &["Order"]).output(OutputDef::fan_out("Line")),
        step("ask", &["Line"]).output(OutputDef::event("Ask")),
        step("check", &["Line"])
            .precondition(PreconditionDef::new("may"))
            .policy(StepPolicy::DEFAULT.concurrency(1)),
        step("other", &["Order"]).policy(StepPolicy::DEFAULT.max_executions(1)),
        StepDef::new("confirm").input(InputDef::gather("Line")),
    ];
    let mut stage = Stage::with(events, steps);
    stage.send("Order");
    stage.commit(1, [stage.fan_out_by("split", 3, bound(1))]);
    stage.finish(3, &["Ask"]);
    let said = stage.said();
    assert_eq!(said.last().map(String::as_str), Some("ask q0 check(#2) by #2 in scope 1"));
    stage.answer(0, Answer::Yes);
    assert_eq!(stage.said(), ["start x4 check(#2) by #2 in scope 1"]);
    stage.fail(4);
    assert_eq!(stage.said().last().map(String::as_str), Some("failed by x4"));
}

#[test]
fn an_inner_fan_out_whose_branches_only_wait_is_a_wait_of_the_outer_branch() {
    // S50
    let mut stage = unopened();
    stage.commit(1, [stage.fan_out_by("split", 3, bound(1))]);
    stage.commit(2, [stage.fan_out("ask", 2)]);
    stage.said();
    stage.finish(3, &["Ask"]);
    assert!(stage.said().is_empty(), "its sibling works");
    stage.finish(4, &["Ask"]);
    assert_eq!(stage.said(), ["start x5 ask(#3) by #3 in scope 2"]);
    stage.finish(5, &["Ask"]);
    assert_eq!(stage.said(), ["start x6 ask(#4) by #4 in scope 3"]);
    // The inner branch continues, and so the outer one counts beyond the bound.
    stage.reply(7);
    assert_eq!(stage.said(), ["start x7 pack(#10) by #10 in scope 4"]);
}

#[test]
fn inner_branches_open_before_the_next_outer_one() {
    // S50: the outer branch does not only wait while an inner one can open.
    let mut stage = unopened();
    stage.commit(1, [stage.fan_out_by("split", 2, bound(1))]);
    stage.commit(2, [stage.fan_out_by("ask", 2, bound(1))]);
    stage.said();
    stage.finish(3, &["Ask"]);
    assert_eq!(stage.said(), ["start x4 cut(#5) by #5 in scope 4"]);
    stage.finish(4, &["Ask"]);
    assert_eq!(stage.said(), ["start x5 ask(#3) by #3 in scope 2"]);
}

#[test]
fn enough_settled_branches_drop_those_that_wait_and_those_that_never_opened() {
    // S50
    let mut stage = shop(5, FanOutTerms { until: NonZeroU32::new(1), ..bound(2) });
    stage.finish(2, &["Ask"]);
    stage.finish(3, &["Ask"]);
    stage.said();
    stage.reply(8);
    stage.finish(6, &["Packed"]);
    assert_eq!(
        stage.said(),
        [
            "start x6 pack(#9) by #9 in scope 2",
            "free scope 2",
            "free scope 1",
            "free scope 3",
            "free scope 4",
            "drop x4",
            "drop x5",
            "gather #11 split.Line.gathered: scope 1 of #2, dropped, place 1; scope 2 of #3, #10 Packed, place 0; scope 3 of #4, \
             dropped; scope 4 of #5, dropped; scope 5 of #6, dropped",
            "start x7 confirm(#11) by #11",
        ],
    );
    assert_eq!(stage.scheduler.open_requests().count(), 0);
}

#[test]
fn every_open_branch_counts_in_a_fan_out_of_an_earlier_release() {
    // S39, S50: its journal has no other bound.
    let mut stage = shop(2, FanOutTerms { only_busy: false, ..bound(1) });
    stage.finish(2, &["Ask"]);
    assert_eq!(stage.said(), ["start x2 ask(#2) by #2 in scope 1"]);
    stage.reply(4);
    stage.finish(3, &[]);
    assert_eq!(
        stage.said(),
        ["start x3 pack(#5) by #5 in scope 1", "free scope 1", "start x4 ask(#3) by #3 in scope 2"]
    );
}

#[test]
fn a_failed_branch_that_waits_leaves_its_place_too() {
    // S49, S50
    let terms = FanOutTerms { policy: FanOutPolicy::ContinueOthers, ..bound(1) };
    let mut stage = shop(2, terms);
    stage.commit(2, [stage.emission("Ask"), stage.emission("Ask")]);
    stage.said();
    stage.reply(4);
    stage.fail(4);
    stage.finish(3, &["Ask"]);
    assert_eq!(stage.said(), ["start x4 pack(#6) by #6 in scope 1"]);
    stage.reply(5);
    assert_eq!(stage.said(), ["start x5 pack(#8) by #8 in scope 1"]);
}
