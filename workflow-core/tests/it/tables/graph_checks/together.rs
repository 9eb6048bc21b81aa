//! No rule hides another: mistakes of several rules in one table.

use expect_test::expect;
use workflow_core::signature::Roles;
use workflow_core::table::{DependencyTable, EventDef, OutputDef};

use super::{CONTROL, answers, emits, one, refuses_like_the_compiler, step, table};

#[test]
fn a_missing_start_is_reported_beside_a_stop_event_that_is_taken() {
    // S9
    let alarmed = DependencyTable::builder("research")
        .event(EventDef::new("Alarm", Roles::NONE.external()))
        .event(EventDef::new("Answer", Roles::NONE.stop()));
    refuses_like_the_compiler(
        alarmed.step(answers(&[one("Alarm")])).step(step("close", &[one("Answer")], &[])),
        include_str!("../../../ui/workflow_without_start_beside_stop_taken.stderr"),
        &expect![[r#"
            workflow `research` has 2 mistakes:
              - `Answer` ends the run, so no step can take it: let step `close` take an event that comes before it
              - no step takes a start event, so no run can begin: write `#[event(start)]` on the event that opens a run, and take it in a step"#]],
    );
}

#[test]
fn a_missing_stop_is_reported_beside_a_step_that_triggers_itself() {
    // S9
    refuses_like_the_compiler(
        table(&[("Draft", CONTROL)]).step(step("draft", &[one("Question")], &[emits("Draft")])).step(step(
            "improve",
            &[one("Draft")],
            &[emits("Draft")],
        )),
        include_str!("../../../ui/workflow_without_stop_beside_own_output.stderr"),
        &expect![[r#"
            workflow `research` has 2 mistakes:
              - step `improve` takes `Draft` and emits it, so it triggers itself: write `#[step(loops)]` if that is meant, or emit another event
              - no step emits a stop event, so no run can complete: write `#[event(stop)]` on the event that ends the run, and return it from a step"#]],
    );
}

#[test]
fn a_loop_without_a_way_out_is_reported_beside_steps_that_wait_for_each_other() {
    // S9
    refuses_like_the_compiler(
        table(&[("Ping", CONTROL), ("Pong", CONTROL), ("Left", CONTROL), ("Right", CONTROL)])
            .step(step("begin", &[one("Question")], &[emits("Ping")]))
            .step(step("ping", &[one("Ping")], &[emits("Pong")]))
            .step(step("pong", &[one("Pong")], &[emits("Ping")]))
            .step(step("left", &[one("Right")], &[emits("Left")]))
            .step(step("right", &[one("Left")], &[emits("Right"), OutputDef::optional("Answer")])),
        include_str!("../../../ui/workflow_island_beside_endless_loop.stderr"),
        &expect![[r#"
            workflow `research` has 2 mistakes:
              - steps `ping` and `pong` trigger each other for ever: each always emits what the next one takes, and nothing that follows ends the run; return `Option<…>` from one, or an `EventSet` enum with a way out, or give it a precondition or `max_executions`; if another step is to end the run, write `#[step(loops)]`
              - step `left` can never run: it waits for `Right`, which step `right` emits, and that waits in turn for step `left`: let one of them take an event that is there before, or an `Option` of this one"#]],
    );
}

#[test]
fn a_loop_is_not_reported_whose_way_out_may_be_mistyped() {
    // S9
    refuses_like_the_compiler(
        table(&[("Ping", CONTROL), ("Pong", CONTROL), ("Pang", CONTROL)])
            .step(step("begin", &[one("Question")], &[emits("Ping")]))
            .step(step("ping", &[one("Ping")], &[emits("Pong")]))
            .step(step("pong", &[one("Pong")], &[emits("Ping")]))
            .step(answers(&[one("Pang")])),
        include_str!("../../../ui/workflow_loop_beside_mistyped_way_out.stderr"),
        &expect![[r#"
            workflow `research` has 1 mistake:
              - nothing produces `Pang`, which step `answer` requires; did you mean `Ping` or `Pong`? Otherwise, return it from a step, or write `#[event(external)]` on it if it is sent in from outside, or `#[event(start)]` if it opens a run"#]],
    );
}
