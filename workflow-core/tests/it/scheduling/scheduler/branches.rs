//! Branches: what they see and run, and when they settle (S44–S47).

use workflow_core::FanOutPolicy;
use workflow_core::signature::Roles;
use workflow_core::table::{EventDef, InputDef, OutputDef, StepDef, StepPolicy};

use super::stage::{Stage, control, external, step};

/// An order is split into a branch per line; `Gather<Line>` closes it.
fn order_with(steps: impl IntoIterator<Item = StepDef>) -> Stage {
    let split = step("split", &["Order"]).output(OutputDef::fan_out("Line"));
    let close = StepDef::new("close").input(InputDef::gather("Line"));
    let steps = [split].into_iter().chain(steps).chain([close]);
    let mut stage = Stage::new(&["Order", "Line", "Quote", "Rate", "Label"], steps);
    stage.send("Order");
    stage.said();
    stage
}

/// The same, with this many branches open.
fn branches_with(items: u32, steps: impl IntoIterator<Item = StepDef>) -> Stage {
    let mut stage = order_with(steps);
    let lines = stage.fan_out_with("split", items, FanOutPolicy::ContinueOthers, None);
    stage.commit(1, [lines]);
    stage
}

#[test]
fn a_branch_opens_per_item_and_its_events_stay_in_it() {
    // S44
    let price = step("price", &["Line"]).output(OutputDef::event("Quote"));
    let mut stage = branches_with(2, [price]);
    assert_eq!(
        stage.said_in_full(),
        [
            "append for x1: #2 Line in scope 1, #3 Line in scope 2",
            "start x2 price(#2) by #2 in scope 1",
            "start x3 price(#3) by #3 in scope 2",
        ],
    );
    stage.finish(3, &["Quote"]);
    assert_eq!(stage.said_in_full()[0], "append for x3: #4 Quote in scope 2");
}

#[test]
fn a_pair_is_never_made_of_two_branches() {
    // S45
    let price = step("price", &["Line"]).output(OutputDef::event("Quote"));
    let ship = step("ship", &["Order", "Line", "Quote"]);
    let mut stage = branches_with(2, [price, ship]);
    stage.said();
    stage.finish(3, &["Quote"]);
    assert_eq!(stage.said(), ["start x4 ship(#1, #3, #4) by #4 in scope 2"]);
    stage.finish(2, &["Quote"]);
    assert_eq!(stage.said(), ["start x5 ship(#1, #2, #5) by #5 in scope 1"]);
}

#[test]
fn the_latest_is_that_of_the_innermost_scope_that_has_one() {
    // S45: the newer rate of the run does not displace the one of the branch.
    let price = step("price", &["Line"]).output(OutputDef::event("Rate")).output(OutputDef::event("Quote"));
    let ship = step("ship", &["Quote", "Rate"]);
    let mut stage = branches_with(2, [price, ship]);
    stage.finish(2, &["Rate"]);
    stage.send("Rate");
    stage.said();
    // Scope 1 is settled by then; the price of scope 2 has no rate of its own.
    stage.finish(3, &["Quote"]);
    assert_eq!(stage.said(), ["start x4 ship(#6, #5) by #6 in scope 2"]);

    let slow = step("slow", &["Line"]);
    let price = step("price", &["Line"]).output(OutputDef::event("Rate")).output(OutputDef::event("Quote"));
    let rate = step("rate", &["Rate"]).output(OutputDef::event("Quote"));
    let mut stage = branches_with(1, [slow, price, rate, step("ship", &["Quote", "Rate"])]);
    stage.finish(3, &["Rate"]);
    stage.send("Rate");
    stage.said();
    stage.finish(4, &["Quote"]);
    assert_eq!(stage.said()[0], "start x6 ship(#5, #3) by #5 in scope 1");
}

#[test]
fn a_list_holds_what_the_scopes_above_hold_too_in_order() {
    // S45
    let price = step("price", &["Line"]).output(OutputDef::many("Quote"));
    let collect = StepDef::new("collect").input(InputDef::list(["Quote"]));
    let mut stage = order_with([price, collect]);
    stage.send("Quote");
    let lines = stage.fan_out("split", 2);
    stage.commit(1, [lines]);
    stage.said();
    stage.finish(3, &["Quote"]);
    assert_eq!(stage.said(), ["start x5 collect(#2 #5) by #5 in scope 1"]);
    stage.send("Quote");
    assert_eq!(
        stage.said(),
        ["start x6 collect(#2 #6) by #6", "start x7 collect(#2 #5 #6) by #6 in scope 1"],
    );
}

#[test]
fn a_fixed_list_in_a_branch_is_the_first_of_all_it_sees() {
    // S17, S45, S46: the branch needs the event of the run to fill its list, and fires by itself.
    let price = step("price", &["Line"]).output(OutputDef::many("Quote"));
    let pair = StepDef::new("pair").input(InputDef::fixed(2, ["Quote"]));
    let mut stage = order_with([price, pair]);
    stage.send("Quote");
    let lines = stage.fan_out("split", 2);
    stage.commit(1, [lines]);
    stage.said();
    stage.finish(2, &["Quote", "Quote"]);
    assert_eq!(stage.said()[0], "start x4 pair(#2 #5) by #5 in scope 1");
    stage.send("Quote");
    // The second of the run comes after the branch's: the branch keeps its list.
    assert_eq!(stage.said(), ["start x5 pair(#2 #7) by #7"]);
}

#[test]
fn an_outer_event_is_evaluated_in_its_scope_and_then_in_each_open_branch() {
    // S46, S11: scope by scope, in each the steps in declaration order.
    let rate = step("rate", &["Line", "Rate"]);
    let note = StepDef::new("note").input(InputDef::one("Rate")).input(InputDef::one("Line").optional());
    let mut stage = branches_with(2, [step("hold", &["Line"]), rate, note]);
    stage.said();
    stage.send("Rate");
    assert_eq!(
        stage.said(),
        [
            "start x4 note(#4, -) by #4",
            "start x5 rate(#2, #4) by #4 in scope 1",
            "start x6 note(#4, #2) by #4 in scope 1",
            "start x7 rate(#3, #4) by #4 in scope 2",
            "start x8 note(#4, #3) by #4 in scope 2",
        ],
    );
}

#[test]
fn a_trigger_from_outside_the_branch_is_taken_before_the_branchs_own() {
    // S15, S46
    let price = step("price", &["Line"]).output(OutputDef::event("Rate"));
    let ship = step("ship", &["Line", "Rate"]);
    let mut stage = branches_with(1, [step("hold", &["Line"]), price, ship]);
    stage.finish(3, &["Rate"]);
    assert_eq!(stage.said().last().unwrap(), "start x4 ship(#2, #3) by #3 in scope 1");
    stage.send("Rate");
    assert_eq!(stage.said(), ["start x5 ship(#2, #4) by #4 in scope 1"]);
}

#[test]
fn a_binding_without_events_of_the_branch_is_evaluated_above() {
    // S46
    let mut stage = branches_with(
        2,
        [step("hold", &["Line"]), step("take", &["Rate"]), step("join", &["Order", "Rate"])],
    );
    stage.said();
    stage.send("Rate");
    assert_eq!(stage.said(), ["start x4 take(#4) by #4", "start x5 join(#1, #4) by #4"]);
}

#[test]
fn an_event_of_a_branch_is_evaluated_in_the_branches_below_it_only() {
    // S46
    let cut = step("cut", &["Line"]).output(OutputDef::fan_out("Part")).output(OutputDef::event("Rate"));
    let split = step("split", &["Order"]).output(OutputDef::fan_out("Line"));
    let steps = [
        split,
        cut,
        step("hold", &["Part"]),
        step("weigh", &["Part", "Rate"]),
        StepDef::new("parts").input(InputDef::gather("Part")),
        StepDef::new("lines").input(InputDef::gather("Line")),
    ];
    let mut stage = Stage::new(&["Order", "Line", "Part", "Rate"], steps);
    stage.send("Order");
    let lines = stage.fan_out("split", 2);
    stage.commit(1, [lines]);
    let (parts, rate) = (stage.fan_out("cut", 2), stage.emission("Rate"));
    stage.commit(2, [parts]);
    stage.said();
    stage.commit(3, [stage.fan_out("cut", 1), rate]);
    // #6 and #8: the item of scope 5 and the rate of scope 2.
    assert_eq!(
        stage.said(),
        ["start x6 hold(#6) by #6 in scope 5", "start x7 weigh(#6, #7) by #7 in scope 5"],
    );
}

#[test]
fn limits_and_fixed_lists_count_per_scope() {
    // S46
    let once = step("once", &["Rate", "Line"]).policy(StepPolicy::DEFAULT.max_executions(1));
    let first = StepDef::new("first").input(InputDef::fixed(1, ["Line"]));
    let mut stage = branches_with(2, [once, first]);
    assert_eq!(stage.said(), ["start x2 first(#2) by #2 in scope 1", "start x3 first(#3) by #3 in scope 2"]);
    stage.send("Rate");
    assert_eq!(
        stage.said(),
        ["start x4 once(#4, #2) by #4 in scope 1", "start x5 once(#4, #3) by #4 in scope 2"],
    );
    stage.send("Rate");
    assert!(stage.said().is_empty());
    assert_eq!(stage.scheduler.executions_of(stage.step("once")), 2, "the report adds them up");
}

#[test]
fn a_branch_is_settled_when_nothing_in_it_is_left_to_do() {
    // S47
    let price = step("price", &["Line"]).output(OutputDef::event("Quote"));
    let mut stage = branches_with(2, [price, step("ship", &["Quote"])]);
    stage.said();
    stage.finish(2, &["Quote"]);
    assert_eq!(stage.said(), ["start x4 ship(#4) by #4 in scope 1"]);
    stage.finish(4, &[]);
    assert_eq!(stage.said(), ["free scope 1"]);
    // A later arrival does not reopen it, though its line and the new quote would fit.
    stage.send("Quote");
    assert_eq!(stage.said(), ["start x5 ship(#5) by #5"]);
}

#[test]
fn a_branch_with_nothing_to_do_is_settled_at_once() {
    // S47
    let mut stage = branches_with(2, []);
    assert_eq!(
        stage.said(),
        [
            "free scope 1",
            "free scope 2",
            "gather #4 split.Line.gathered: scope 1 of #2, #2 Line; scope 2 of #3, #3 Line",
            "start x2 close(#4) by #4",
        ],
    );
}

#[test]
fn a_branch_in_which_a_commit_leads_on_is_not_settled() {
    // S47
    let price = step("price", &["Line"]).output(OutputDef::event("Quote"));
    let mut stage = branches_with(1, [price, step("ship", &["Quote"])]);
    stage.said();
    stage.finish(2, &["Quote"]);
    assert_eq!(stage.said(), ["start x3 ship(#3) by #3 in scope 1"]);
}

#[test]
fn a_reply_belongs_to_the_branch_that_asked_and_keeps_it_open() {
    // S47
    let split = step("split", &["Order"]).output(OutputDef::fan_out("Line"));
    let ask = step("ask", &["Line"]).output(OutputDef::event("Approve"));
    let decide = StepDef::new("decide").input(InputDef::reply("Approve.reply")).input(InputDef::one("Line"));
    let close = StepDef::new("close").input(InputDef::gather("Approve.reply"));
    let events = [
        control("Order"),
        control("Line"),
        EventDef::new("Approve", Roles::NONE.request()),
        EventDef::reply_to("Approve.reply", "Approve"),
        external("Late"),
    ];
    let mut stage = Stage::with(events, [split, ask, decide, close]);
    stage.send("Order");
    let lines = stage.fan_out("split", 2);
    stage.commit(1, [lines]);
    stage.said();
    stage.finish(2, &["Approve"]);
    stage.finish(3, &["Approve"]);
    assert!(stage.said().is_empty(), "both wait for a reply");
    stage.reply(5);
    assert_eq!(stage.said_in_full()[0], "append for the reply to #5: #6 Approve.reply in scope 2");
    stage.finish(4, &[]);
    assert_eq!(stage.said(), ["free scope 2"]);
    stage.reply(4);
    assert_eq!(stage.said(), ["start x5 decide(#7, #2) by #7 in scope 1"]);
    stage.finish(5, &[]);
    assert_eq!(
        stage.said(),
        [
            "free scope 1",
            "gather #8 split.Line.gathered: scope 1 of #2, #7 Approve.reply, place 1; scope 2 of #3, #6 \
             Approve.reply, place 0",
            "start x6 close(#8) by #8",
        ],
    );
}
