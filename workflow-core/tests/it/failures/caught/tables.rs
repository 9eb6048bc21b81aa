//! Tables built at run time: the same rules and messages, and graphs that compile although they look wrong.

use expect_test::{Expect, expect};
use workflow_core::signature::Roles;
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OutputDef, StepDef, TableBuilder, TableProblem,
};

fn table() -> TableBuilder {
    DependencyTable::builder("research")
        .event(EventDef::new("Question", Roles::NONE.start()))
        .event(EventDef::new("Facts", Roles::NONE))
        .event(EventDef::new("Answer", Roles::NONE.stop()))
        .event(EventDef::failure("StepFailed"))
        .step(StepDef::new("retrieve").input(InputDef::one("Question")).output(OutputDef::event("Facts")))
        .step(StepDef::new("answer").input(InputDef::one("Facts")).output(OutputDef::event("Answer")))
}

fn fallback(input: InputDef) -> StepDef {
    StepDef::new("fallback").input(input).output(OutputDef::event("Facts"))
}

#[track_caller]
fn refuses(table: TableBuilder, expected: &Expect) {
    let problems = table.build().unwrap_err().problems;
    expected.assert_eq(&problems.iter().map(TableProblem::to_string).collect::<Vec<_>>().join("\n"));
}

/// The same, and the compiler reports it too.
#[track_caller]
fn refuses_like_the_compiler(table: TableBuilder, said: &str) {
    for problem in table.build().unwrap_err().problems {
        assert!(
            said.contains(&problem.to_string()),
            "{problem}\nbut the compiler says something else:\n{said}"
        );
    }
}

#[test]
fn a_handler_takes_the_failures_of_every_step_that_takes_none() {
    let table = table()
        .step(fallback(InputDef::one("StepFailed")))
        .step(StepDef::new("note").input(InputDef::list(["StepFailed"])))
        .build()
        .unwrap();
    let failure = |step: &str| {
        let row = &table.steps()[table.step_named(step).unwrap().get()];
        row.failure().map(|event| table.events()[event.get()].name())
    };
    assert_eq!(failure("retrieve"), Some("retrieve.failed"));
    assert_eq!(failure("answer"), Some("answer.failed"));
    assert_eq!((failure("fallback"), failure("note")), (None, None));
    let taken = table.steps()[2].inputs()[0].events();
    let names: Vec<&str> = taken.iter().map(|event| table.events()[event.get()].name()).collect();
    assert_eq!(names, ["retrieve.failed", "answer.failed"]);
}

#[test]
fn a_handler_takes_the_failures_of_the_steps_that_it_names() {
    let note = StepDef::new("note").input(InputDef::one("StepFailed")).catches(["fallback", "answer"]);
    let fallback = fallback(InputDef::one_of(["StepFailed"])).catches(["retrieve", "retrieve"]);
    let table = table().step(fallback).step(note).build().unwrap();
    let caught = |step: usize| {
        let events = table.steps()[step].inputs()[0].events().iter();
        events.map(|event| table.events()[event.get()].name()).collect::<Vec<_>>()
    };
    assert_eq!(caught(2), ["retrieve.failed"]);
    assert_eq!(caught(3), ["fallback.failed", "answer.failed"]);
}

// S9
#[test]
fn a_fallback_that_emits_what_the_failed_step_takes_or_emits_is_no_loop() {
    let again = StepDef::new("again").input(InputDef::one("StepFailed")).output(OutputDef::event("Question"));
    assert!(table().step(fallback(InputDef::one("StepFailed"))).build().is_ok());
    assert!(table().step(again).build().is_ok());
}

// S9
#[test]
fn a_loop_that_a_failure_can_end_is_not_without_end() {
    let looping = || {
        DependencyTable::builder("agent")
            .event(EventDef::new("Question", Roles::NONE.start()))
            .event(EventDef::new("Call", Roles::NONE))
            .event(EventDef::new("Called", Roles::NONE))
            .event(EventDef::new("Answer", Roles::NONE.stop()))
            .event(EventDef::failure("StepFailed"))
            .step(StepDef::new("ask").input(InputDef::one("Question")).output(OutputDef::event("Call")))
            .step(StepDef::new("call").input(InputDef::one("Call")).output(OutputDef::event("Called")))
            .step(StepDef::new("think").input(InputDef::one("Called")).output(OutputDef::event("Call")))
    };
    let end = |event| StepDef::new("end").input(InputDef::one(event)).output(OutputDef::event("Answer"));
    assert!(looping().step(end("StepFailed")).build().is_ok());
    let refused = looping().step(end("Question").input(InputDef::one("Called"))).build();
    assert!(refused.is_ok(), "{refused:?}");
}

#[test]
fn names_to_catch_are_looked_up() {
    let of = |names: &[&str]| fallback(InputDef::one("StepFailed")).catches(names.iter().copied());
    refuses(
        table().step(of(&["retreive"])),
        &expect![
            "step `fallback` catches step `retreive`, which the table does not have; did you mean `retrieve`? Otherwise, add it with `TableBuilder::step`"
        ],
    );
    refuses(
        table().step(of(&["fallback"])),
        &expect!["step `fallback` cannot catch its own failure: leave it out of `catches`"],
    );
    refuses(
        table().step(of(&[])),
        &expect![
            "`catches` of step `fallback` names no step: name those whose failures the step takes, or leave `catches` out to take those of all"
        ],
    );
}

#[test]
fn what_cannot_be_caught_is_refused_like_the_compiler_does() {
    let said = include_str!("../../../ui/step_catches_without_input.stderr");
    refuses_like_the_compiler(table().step(fallback(InputDef::one("Question")).catches(["retrieve"])), said);

    let said = include_str!("../../../ui/step_returns_failure.stderr");
    refuses_like_the_compiler(
        table().step(fallback(InputDef::one("Question")).output(OutputDef::event("StepFailed"))),
        said,
    );

    let said = include_str!("../../../ui/gather_of_failures.stderr");
    let opens = StepDef::new("open").input(InputDef::one("Question")).output(OutputDef::fan_out("Page"));
    let gathers =
        StepDef::new("fallback").input(InputDef::gather("StepFailed")).input(InputDef::gather("Page"));
    refuses_like_the_compiler(
        table().event(EventDef::new("Page", Roles::NONE)).step(opens).step(gathers),
        said,
    );

    let said = include_str!("../../../ui/step_catches_nothing.stderr");
    let only = DependencyTable::builder("research")
        .event(EventDef::new("Question", Roles::NONE.start()))
        .event(EventDef::new("Answer", Roles::NONE.stop()))
        .event(EventDef::failure("StepFailed"));
    let both = StepDef::new("answer").input(InputDef::one("Question")).output(OutputDef::event("Answer"));
    refuses_like_the_compiler(only.step(both.input(InputDef::one("StepFailed"))), said);
}

#[test]
fn more_failures_than_a_run_can_have_are_not_waited_for() {
    let input = InputDef::fixed(3, ["StepFailed"]);
    refuses(
        table().step(fallback(input).catches(["retrieve"])),
        &expect![
            "step `fallback` waits for 3 of `StepFailed`, of which a run has at most 1: wait for fewer, take a `List`, or emit more"
        ],
    );
    assert!(
        table()
            .step(fallback(InputDef::fixed(2, ["StepFailed"])).catches(["retrieve", "answer"]))
            .build()
            .is_ok()
    );
}

#[test]
fn steps_that_wait_for_each_others_failures_can_never_run() {
    let table = table()
        .event(EventDef::new("Note", Roles::NONE))
        .step(StepDef::new("one").input(InputDef::one("Note")))
        .step(
            StepDef::new("other")
                .input(InputDef::one("StepFailed"))
                .output(OutputDef::event("Note"))
                .catches(["one"]),
        );
    refuses(
        table,
        &expect![
            "step `one` can never run: it waits for `Note`, which step `other` emits, and that waits in turn for step `one`: let one of them take an event that is there before, or an `Option` of this one"
        ],
    );
}
