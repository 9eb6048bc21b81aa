//! Timers, and requests that expire, as the scheduler sees them (S30, S32, S47).

use workflow_core::report::TimerId;
use workflow_core::scheduler::{Emission, Fact};
use workflow_core::signature::Roles;
use workflow_core::table::{EventDef, InputDef, OutputDef, StepDef};
use workflow_core::{FanOutPolicy, Seq};

use super::stage::{Stage, control, external, step, stop};

fn fire(stage: &mut Stage, timer: u64) {
    stage.tell(Fact::TimerFired { timer: TimerId(timer) });
}

/// `set` sets timers for `Tick`, which `tick` takes.
fn ticking() -> Stage {
    let events = [EventDef::new("Begin", Roles::NONE.start()), control("Tick"), stop("Done")];
    let set = step("set", &["Begin"]).output(OutputDef::timer("Tick"));
    let mut stage = Stage::with(events, [set, step("tick", &["Tick"])]);
    stage.send("Begin");
    stage.said();
    stage
}

fn timer(stage: &Stage, event: &str) -> Emission {
    let Emission::Event(event) = stage.emission(event) else { unreachable!("it is an event") };
    Emission::Timer(event)
}

fn expiring(stage: &Stage, event: &str) -> Emission {
    let Emission::Event(event) = stage.emission(event) else { unreachable!("it is an event") };
    Emission::Expiring(event)
}

#[test]
fn a_run_with_nothing_but_a_timer_waits_for_it() {
    // S30
    let mut stage = ticking();
    let tick = timer(&stage, "Tick");
    stage.commit(1, [tick]);
    assert_eq!(stage.said_in_full(), ["append for x1: t1 for Tick", "wait"]);
    fire(&mut stage, 1);
    assert_eq!(stage.said_in_full(), ["append for t1 of x1: #2 Tick", "start x2 tick(#2) by #2"]);
    stage.finish(2, &[]);
    assert_eq!(stage.said(), ["stalled"]);
}

#[test]
fn a_timer_fires_once() {
    // S33
    let mut stage = ticking();
    let ticks = [timer(&stage, "Tick"), timer(&stage, "Tick")];
    stage.commit(1, ticks);
    stage.said();
    fire(&mut stage, 2);
    assert_eq!(stage.said(), ["start x2 tick(#2) by #2"]);
    fire(&mut stage, 2);
    fire(&mut stage, 3);
    assert_eq!(stage.said(), ["refuse what was sent", "refuse what was sent"]);
    assert_eq!(stage.scheduler.timers().map(|timer| timer.timer).collect::<Vec<_>>(), [TimerId(1)]);
}

#[test]
fn a_timer_is_pending_once_its_batch_is_in_the_log() {
    // S23
    let mut stage = ticking();
    fire(&mut stage, 1);
    assert_eq!(stage.said(), ["refuse what was sent"]);
    let tick = timer(&stage, "Tick");
    stage.commit(1, [tick]);
    fire(&mut stage, 1);
    assert_eq!(stage.scheduler.timers().count(), 0);
}

#[test]
fn a_timer_that_fires_after_the_stop_event_is_refused() {
    // S28, S33
    let mut stage = ticking();
    let emissions = [timer(&stage, "Tick"), timer(&stage, "Tick")];
    stage.commit(1, emissions);
    fire(&mut stage, 1);
    stage.said();
    stage.finish(2, &["Done"]);
    fire(&mut stage, 2);
    assert_eq!(stage.said(), ["completed by #3", "refuse what was sent"]);
}

/// Each item of a fan-out sets a timer and waits for it; `fail` can fail a branch.
fn in_branches() -> Stage {
    let events = [external("Begin"), control("Item"), control("Tick"), control("Part")];
    let steps = [
        step("split", &["Begin"]).output(OutputDef::fan_out("Item")),
        step("set", &["Item"]).output(OutputDef::timer("Tick")),
        step("work", &["Tick"]).output(OutputDef::event("Part")),
        StepDef::new("join").input(InputDef::gather("Part")),
    ];
    let mut stage = Stage::with(events, steps);
    stage.send("Begin");
    stage
}

#[test]
fn a_branch_is_open_while_a_timer_of_its_own_is_pending() {
    // S47: x2 and x3 set the timers of the two branches.
    let mut stage = in_branches();
    let items = stage.fan_out("split", 2);
    stage.commit(1, [items]);
    let tick = timer(&stage, "Tick");
    stage.commit(2, [tick.clone()]);
    stage.commit(3, [tick]);
    stage.said();
    fire(&mut stage, 1);
    assert_eq!(stage.said(), ["start x4 work(#4) by #4 in scope 1"]);
    stage.finish(4, &["Part"]);
    assert_eq!(stage.said(), ["free scope 1"]);
    fire(&mut stage, 2);
    stage.finish(5, &["Part"]);
    let told = stage.said();
    assert_eq!(
        told[1..3],
        ["free scope 2", "gather #8 split.Item.gathered: scope 1 of #2, #5 Part; scope 2 of #3, #7 Part"]
    );
}

#[test]
fn a_timer_is_dropped_with_its_branch() {
    // S49
    let mut stage = in_branches();
    let items = stage.fan_out_with("split", 2, FanOutPolicy::FailAll, None);
    stage.commit(1, [items]);
    let tick = timer(&stage, "Tick");
    stage.commit(2, [tick]);
    assert_eq!(stage.scheduler.timers().count(), 1);
    stage.fail(3);
    assert_eq!(stage.scheduler.timers().count(), 0);
}

/// `ask` makes an expiring request; `answered` and `expired` take the result.
fn asking() -> Stage {
    let events = [
        external("Begin"),
        EventDef::new("Ask", Roles::NONE.request()),
        EventDef::reply_to("Ask.reply", "Ask"),
        EventDef::expiry_of("Ask.expired", "Ask"),
    ];
    let steps = [
        step("ask", &["Begin"]).output(OutputDef::many("Ask")).output(OutputDef::timer("Ask.expired")),
        StepDef::new("answered").input(InputDef::reply("Ask.reply")),
        step("expired", &["Ask.expired"]),
    ];
    let mut stage = Stage::with(events, steps);
    stage.send("Begin");
    let ask = expiring(&stage, "Ask");
    stage.commit(1, [ask]);
    stage.said();
    stage
}

#[test]
fn a_request_whose_time_runs_out_is_closed() {
    // S32
    let mut stage = asking();
    fire(&mut stage, 1);
    assert_eq!(
        stage.said_in_full(),
        ["append for the expiry of #2: #3 Ask.expired", "start x2 expired(#3) by #3"]
    );
    assert_eq!(stage.scheduler.open_requests().count(), 0);
    stage.reply(2);
    assert_eq!(stage.said(), ["refuse what was sent"]);
}

#[test]
fn a_request_that_was_answered_does_not_expire() {
    // S32
    let mut stage = asking();
    stage.reply(2);
    assert_eq!(stage.said(), ["start x2 answered(#3) by #3"]);
    fire(&mut stage, 1);
    assert_eq!(stage.said(), ["refuse what was sent"]);
    assert_eq!(stage.scheduler.timers().count(), 0);
}

#[test]
fn of_a_reply_and_an_expiry_at_the_same_time_the_first_counts() {
    // S32, S38
    let mut stage = asking();
    stage.scheduler.apply(Fact::ReplyReceived { request: Seq(2) });
    fire(&mut stage, 1);
    assert_eq!(stage.said(), ["start x2 answered(#3) by #3", "refuse what was sent"]);
}
