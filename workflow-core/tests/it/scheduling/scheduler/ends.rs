//! How a run ends, and its treatment of later facts (S28–S31, S33).

use std::num::NonZeroU32;

use workflow_core::FanOutPolicy;
use workflow_core::scheduler::{Answer, Fact, FanOutTerms};
use workflow_core::signature::Roles;
use workflow_core::table::{EventDef, InputDef, OutputDef, PreconditionDef, StepDef, StepPolicy};

use super::stage::{Stage, control, external, step, stop};

fn two_steps() -> Stage {
    let events = [external("A"), stop("Done"), external("B")];
    Stage::with(events, [step("left", &["A"]), step("right", &["A"]), step("after", &["B"])])
}

#[test]
fn a_stop_event_in_the_middle_of_a_batch_ends_the_run() {
    // S28: nothing of the batch is evaluated.
    let mut stage = two_steps();
    stage.send("A");
    stage.said();
    stage.finish(1, &["B", "Done", "B", "Done"]);
    assert_eq!(stage.said_in_full(), ["append for x1: #2 B, #3 Done, #4 B, #5 Done", "completed by #3"]);
}

#[test]
fn a_commit_after_the_stop_event_is_refused_once() {
    // S28
    let mut stage = two_steps();
    stage.send("A");
    stage.finish(1, &["Done"]);
    stage.said();
    stage.finish(2, &["B"]);
    assert_eq!(stage.said(), ["refuse the commit of x2"]);
    // A commit that was refused or done before is not refused again.
    stage.finish(2, &["B"]);
    stage.finish(1, &["Done"]);
    assert!(stage.said().is_empty());
}

#[test]
fn nothing_comes_between_a_stop_event_and_the_end() {
    // S28: facts after the batch do not change how the run ends.
    let mut stage = two_steps();
    stage.send("A");
    stage.said();
    stage.finish(1, &["Done"]);
    stage.fail(2);
    stage.send("B");
    assert_eq!(stage.said(), ["completed by #2", "refuse what was sent"]);
}

#[test]
fn an_answer_that_comes_after_the_stop_event_starts_nothing() {
    // S18, S28
    let guarded = step("guarded", &["A"]).precondition(PreconditionDef::new("may"));
    for answer in [Answer::Yes, Answer::No, Answer::Failed] {
        let mut stage = Stage::with([external("A"), stop("Done")], [step("left", &["A"]), guarded.clone()]);
        stage.send("A");
        stage.said();
        stage.finish(1, &["Done"]);
        stage.answer(0, answer);
        assert_eq!(stage.said(), ["completed by #2"]);
    }
}

#[test]
fn an_item_that_is_a_stop_event_ends_the_run() {
    // S28, S44: an item is in the log, whether its branch is open or not.
    let split = step("split", &["A"]).output(OutputDef::fan_out("Done"));
    let mut stage = Stage::with([external("A"), stop("Done")], [split]);
    stage.send("A");
    stage.said();
    let items = stage.fan_out_with("split", 2, FanOutPolicy::FailAll, Some(1));
    stage.commit(1, [items]);
    assert_eq!(stage.said(), ["completed by #2"]);
}

#[test]
fn a_stop_event_may_come_from_outside() {
    // S28, S30: as long as it can, the run is not stalled.
    let events = [control("A"), EventDef::new("Abort", Roles::NONE.external().stop())];
    let mut stage = Stage::with(events, [step("take", &["A"])]);
    stage.send("A");
    stage.finish(1, &[]);
    assert_eq!(stage.said_in_full().last().map(String::as_str), Some("wait"));
    stage.send("Abort");
    assert_eq!(stage.said(), ["completed by #2"]);
}

#[test]
fn events_sent_after_the_end_are_refused() {
    // S33
    let mut stage = two_steps();
    stage.send("A");
    stage.finish(1, &["Done"]);
    stage.said();
    stage.send("B");
    stage.reply(1);
    assert_eq!(stage.said(), ["refuse what was sent", "refuse what was sent"]);
    stage.fail(2);
    stage.cancel();
    assert!(stage.said().is_empty());
}

#[test]
fn a_run_with_nothing_left_to_do_is_stalled() {
    // S30
    let events = [EventDef::new("Start", Roles::NONE.start()), control("A"), stop("Done")];
    let mut stage = Stage::with(events, [step("open", &["Start"]), step("join", &["Start", "A"])]);
    stage.send("Start");
    assert_eq!(stage.said(), ["start x1 open(#1) by #1"]);
    stage.finish(1, &[]);
    assert_eq!(stage.said(), ["stalled"]);
}

#[test]
fn a_run_that_something_can_still_reach_waits() {
    // S30: reported once per fact, and not while anything runs or is evaluated.
    let guarded = step("guarded", &["A"]).precondition(PreconditionDef::new("may"));
    let mut stage = Stage::new(&["A"], [step("take", &["A"]), guarded]);
    assert!(stage.said_in_full().is_empty(), "nothing has happened");
    stage.send("A");
    stage.finish(1, &[]);
    assert!(!stage.said_in_full().contains(&"wait".to_owned()), "a question is out");
    stage.answer(0, Answer::No);
    assert_eq!(stage.said_in_full(), ["wait"]);
}

#[test]
fn an_external_event_that_no_step_takes_keeps_no_run_waiting() {
    // S30
    let mut stage = Stage::with([control("A"), external("Ignored")], [step("take", &["A"])]);
    stage.send("A");
    stage.finish(1, &[]);
    assert_eq!(stage.said(), ["start x1 take(#1) by #1", "stalled"]);
}

#[test]
fn an_external_event_that_a_step_cannot_do_with_alone_keeps_no_run_waiting() {
    // S30: no step can emit "B" any more.
    let events = [control("Start"), external("A"), control("B")];
    let mut stage = Stage::with(events, [step("make", &["Start"]), step("join", &["A", "B"])]);
    stage.send("Start");
    stage.finish(1, &[]);
    assert_eq!(stage.said(), ["start x1 make(#1) by #1", "stalled"]);

    let events = [control("Start"), external("A"), control("B")];
    let mut stage = Stage::with(events, [step("make", &["Start"]), step("join", &["A", "B"])]);
    stage.send("Start");
    stage.finish(1, &["B"]);
    assert_eq!(stage.said_in_full().last().map(String::as_str), Some("wait"));
}

#[test]
fn what_comes_after_a_fixed_list_is_full_keeps_a_run_waiting_only_if_it_can_be_asked_again() {
    // S17, S18, S20, S30
    let pair = StepDef::new("pair").input(InputDef::fixed(2, vec!["A".to_owned()]));
    let mut stage = Stage::new(&["A"], [pair.clone()]);
    stage.send("A");
    assert_eq!(stage.said_in_full().last().map(String::as_str), Some("wait"));
    stage.send("A");
    stage.finish(1, &[]);
    assert_eq!(stage.said().last().map(String::as_str), Some("stalled"));

    let mut stage = Stage::new(&["A"], [pair.precondition(PreconditionDef::new("may"))]);
    stage.send("A");
    stage.send("A");
    stage.answer(0, Answer::No);
    assert_eq!(stage.said_in_full().last().map(String::as_str), Some("wait"));
}

#[test]
fn a_branch_that_is_not_open_yet_keeps_a_run_waiting_for_those_that_are() {
    // S30, S50: the reply settles the first branch, and the item of the second makes a step run.
    let events = [
        control("Start"),
        control("Item"),
        EventDef::new("Ask", Roles::NONE.request()),
        EventDef::reply_to("Ask.reply", "Ask"),
        control("Never"),
    ];
    let steps = [
        step("split", &["Start"]).output(OutputDef::fan_out("Item")),
        step("ask", &["Item"]),
        StepDef::new("take").input(InputDef::reply("Ask.reply")).input(InputDef::one("Never")),
        StepDef::new("sum").input(InputDef::gather("Item")).input(InputDef::one("Never")),
    ];
    let mut stage = Stage::with(events, steps);
    stage.send("Start");
    // As in journals of earlier releases: otherwise the second branch opens while the first one waits.
    let terms = FanOutTerms { concurrency: NonZeroU32::new(1), ..FanOutTerms::default() };
    let items = stage.fan_out_by("split", 2, terms);
    stage.commit(1, [items]);
    stage.finish(2, &["Ask"]);
    assert_eq!(stage.said_in_full().last().map(String::as_str), Some("wait"));
    stage.reply(4);
    assert_eq!(stage.said().last().map(String::as_str), Some("start x3 ask(#3) by #3 in scope 2"));
    stage.finish(3, &["Ask"]);
    assert_eq!(stage.said().last().map(String::as_str), Some("stalled"));
}

#[test]
fn an_open_request_keeps_a_run_waiting_until_the_reply() {
    // S5, S30, S33
    let events = [
        control("Start"),
        EventDef::new("Approve", Roles::NONE.request()),
        EventDef::reply_to("Approve.reply", "Approve"),
    ];
    let decide =
        StepDef::new("decide").input(InputDef::reply("Approve.reply")).input(InputDef::one("Approve"));
    let mut stage = Stage::with(events, [step("ask", &["Start"]), decide]);
    stage.send("Start");
    stage.finish(1, &["Approve"]);
    assert_eq!(stage.said_in_full().last().map(String::as_str), Some("wait"));
    assert_eq!(stage.scheduler.open_requests().map(|(seq, _)| seq.0).collect::<Vec<_>>(), [2]);
    stage.reply(1);
    assert_eq!(stage.said(), ["refuse what was sent"], "#1 is no request");
    stage.reply(2);
    assert_eq!(stage.said(), ["start x2 decide(#3, #2) by #3"]);
    stage.reply(2);
    assert_eq!(stage.said(), ["refuse what was sent"], "it was replied to");
    stage.finish(2, &[]);
    assert_eq!(stage.said(), ["stalled"]);
}

#[test]
fn a_failure_ends_the_run_unless_the_step_may_fail() {
    // S29
    let may_fail = step("may_fail", &["A"]).policy(StepPolicy::DEFAULT.continue_on_error());
    let mut stage = Stage::new(&["A"], [may_fail, step("must_not", &["A"]), step("beside", &["A"])]);
    stage.send("A");
    stage.said();
    stage.fail(1);
    assert!(stage.said().is_empty());
    assert!(stage.scheduler.is_degraded());
    stage.fail(2);
    assert_eq!(stage.said(), ["failed by x2"]);
    stage.finish(3, &[]);
    assert_eq!(stage.said(), ["refuse the commit of x3"]);
}

#[test]
fn a_cancelled_run_starts_nothing_any_more() {
    // S31: not even timers that are already due.
    let mut stage = Stage::new(&["A"], [step("take", &["A"])]);
    stage.scheduler.apply(Fact::CancelRequested);
    stage.send("A");
    assert_eq!(stage.said(), ["cancelled", "refuse what was sent"]);

    let mut stage = Stage::new(&["A"], [step("take", &["A"])]);
    let event = stage.scheduler.table().event_named("A").expect("an event of the table");
    stage.scheduler.apply(Fact::EventReceived { event });
    stage.cancel();
    assert_eq!(stage.said(), ["cancelled"], "the event is in the log, and its step is due");
}
