//! The cost of outside events for a scheduler with many open branches. The tests count allocations, and time nothing.

use workflow_core::signature::Roles;
use workflow_core::table::{EventDef, InputDef, OutputDef, StepDef};

use super::stage::Stage;

/// Branches that each make a request and wait; with the reply each takes a note from outside.
fn stage() -> Stage {
    let events = [
        EventDef::new("Note", Roles::NONE.external()),
        EventDef::new("Open", Roles::NONE.external()),
        EventDef::new("Item", Roles::NONE),
        EventDef::new("Ask", Roles::NONE.request()),
        EventDef::reply_to("Answer", "Ask"),
        EventDef::new("Packed", Roles::NONE),
    ];
    let pack = StepDef::new("pack").input(InputDef::one("Item")).input(InputDef::one("Note"));
    let steps = [
        StepDef::new("open").input(InputDef::one("Open")).output(OutputDef::fan_out("Item")),
        StepDef::new("ask").input(InputDef::one("Item")).output(OutputDef::event("Ask")),
        pack.input(InputDef::reply("Answer")).output(OutputDef::event("Packed")),
        StepDef::new("gather").input(InputDef::gather("Packed")),
    ];
    Stage::with(events, steps)
}

/// An event that opens this many branches, each of which makes a request.
fn open(stage: &mut Stage, items: u32) {
    stage.send_quietly("Open", |stage, step| {
        if step == stage.step("open") {
            vec![stage.fan_out("open", items)]
        } else {
            vec![stage.emission("Ask")]
        }
    });
}

/// The total allocations, and those that remain.
fn allocated(work: impl FnOnce()) -> (u64, u64) {
    let info = allocation_counter::measure(work);
    (info.bytes_total, u64::try_from(info.bytes_current).expect("more is allocated than freed"))
}

// S30, S46
#[test]
fn events_that_each_open_three_waiting_branches_allocate_in_proportion_to_their_number() {
    let of = |events: u32| {
        let mut stage = stage();
        allocated(|| (0..events).for_each(|_| open(&mut stage, 3)))
    };
    let (few, many) = (of(256), of(4_096));
    assert!(many.0 <= 18 * few.0, "{} bytes for 16 times the events of {}", many.0, few.0);
    assert!(many.1 <= 18 * few.1, "{} bytes stay of 16 times the events of {}", many.1, few.1);
}

// S46
#[test]
fn an_event_that_makes_no_step_run_costs_each_branch_below_less_than_four_bytes() {
    const BRANCHES: u32 = 3_000;
    const EVENTS: u32 = 400;
    let mut stage = stage();
    open(&mut stage, BRANCHES);
    let (_, stays) = allocated(|| {
        for _ in 0..EVENTS {
            stage.send_quietly("Note", |_, _| panic!("no step runs"));
        }
    });
    let each = u64::from(BRANCHES) * u64::from(EVENTS);
    assert!(stays < 4 * each, "{stays} bytes stay of {each} evaluations");
}
