//! Clean-up steps in tables: mistakes, shapes, differences, forecasts and drawings (S9, S31, S41).

use workflow_core::RunStatus;
use workflow_core::signature::Roles;
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OnEnd, OutputDef, StepDef, TableBuilder, TableDifference,
    TableProblem,
};

/// Books and pays a trip.
fn trip() -> TableBuilder {
    DependencyTable::builder("trip")
        .event(EventDef::new("Trip", Roles::NONE.start()))
        .event(EventDef::new("Booked", Roles::NONE))
        .event(EventDef::new("Paid", Roles::NONE.stop()))
        .event(EventDef::failure("StepFailed"))
        .step(StepDef::new("book").input(InputDef::one("Trip")).output(OutputDef::event("Booked")))
        .step(StepDef::new("pay").input(InputDef::one("Booked")).output(OutputDef::event("Paid")))
}

fn unbook() -> StepDef {
    StepDef::new("unbook").input(InputDef::one("Booked")).on_end(OnEnd::ANY)
}

fn problems(step: StepDef) -> Vec<TableProblem> {
    trip().step(step).build().unwrap_err().problems
}

// S9 S31
#[test]
fn a_clean_up_step_emits_and_catches_nothing() {
    let (step, event) = ("unbook".to_owned(), "Paid".to_owned());
    assert_eq!(
        problems(unbook().output(OutputDef::event("Paid"))),
        [TableProblem::CleanUpEmits { step: step.clone(), event }]
    );
    for catching in [
        unbook().input(InputDef::one("StepFailed").optional()),
        unbook().input(InputDef::one("StepFailed")).catches(["pay"]),
        unbook().catches(["pay"]),
    ] {
        assert_eq!(problems(catching), [TableProblem::CleanUpCatches { step: step.clone() }]);
    }
}

// S9 S31
#[test]
fn a_clean_up_step_is_not_caught() {
    let tell = || StepDef::new("tell").input(InputDef::one("StepFailed"));
    let named = trip().step(unbook()).step(tell().catches(["unbook"])).build().unwrap_err().problems;
    let (step, caught) = ("tell".to_owned(), "unbook".to_owned());
    assert_eq!(named, [TableProblem::CatchesCleanUp { step, caught }]);
    // A step that names none takes the failures of all others.
    let table = trip().step(unbook()).step(tell()).build().unwrap();
    assert!(table.steps()[1].failure().is_some() && table.steps()[2].failure().is_none());
}

// S9 S31
#[test]
fn a_clean_up_step_requires_what_the_run_itself_can_have() {
    let (step, events) = ("unbook".to_owned(), vec!["Room".to_owned()]);
    let missing = trip().event(EventDef::new("Room", Roles::NONE));
    let room = || StepDef::new("unbook").input(InputDef::one("Room")).on_end(OnEnd::FAILED);
    let found = missing.step(room()).build().unwrap_err().problems;
    assert!(matches!(&found[..], [TableProblem::NothingProduces { .. }]), "{found:?}");
    let branches = trip()
        .event(EventDef::new("Leg", Roles::NONE))
        .event(EventDef::new("Room", Roles::NONE))
        .step(StepDef::new("split").input(InputDef::one("Booked")).output(OutputDef::fan_out("Leg")))
        .step(StepDef::new("rent").input(InputDef::one("Leg")).output(OutputDef::event("Room")))
        .step(StepDef::new("join").input(InputDef::gather("Room")));
    let gathered = StepDef::new("close").input(InputDef::gather("Room")).on_end(OnEnd::ANY);
    let found = branches.step(gathered).step(room()).build().unwrap_err().problems;
    assert_eq!(found, [TableProblem::CleanUpInBranch { step, events }]);
}

// S31: only a gather by a step that runs before the end ends branches, and only such a step begins a run.
#[test]
fn clean_up_makes_no_workflow_complete() {
    let table = DependencyTable::builder("trip")
        .event(EventDef::new("Trip", Roles::NONE.start()))
        .event(EventDef::new("Leg", Roles::NONE))
        .event(EventDef::new("Paid", Roles::NONE.stop()))
        .step(StepDef::new("split").input(InputDef::one("Trip")).output(OutputDef::fan_out("Leg")))
        .step(StepDef::new("pay").input(InputDef::one("Trip")).output(OutputDef::event("Paid")))
        .step(StepDef::new("undo").input(InputDef::gather("Leg")).on_end(OnEnd::ANY));
    let found = table.build().unwrap_err().problems;
    assert!(matches!(&found[..], [TableProblem::FanOutNeverEnds { .. }]), "{found:?}");
}

// S31 S41
#[test]
fn shapes_have_the_ends_of_clean_up_and_adding_a_step_is_compatible() {
    let (was, is) = (trip().build().unwrap().shape(), trip().step(unbook()).build().unwrap().shape());
    assert_ne!(was.fingerprint(), is.fingerprint());
    assert!(DependencyTable::from_shape(&is).unwrap().steps()[2].on_end() == Some(OnEnd::ANY));
    let added = was.differences(&is);
    assert!(matches!(&added[..], [TableDifference::StepAdded { .. }]) && added[0].is_compatible());

    let failed = trip().step(unbook().on_end(OnEnd::FAILED)).build().unwrap().shape();
    let changed = is.differences(&failed);
    assert!(changed[0].is_compatible());
    assert_eq!(
        changed[0].to_string(),
        "step `unbook` cleans up at failed now, and did at any end but completed"
    );
    let plain = StepDef::new("unbook").input(InputDef::one("Booked"));
    let plain = trip().step(plain).build().unwrap().shape();
    assert!(!is.differences(&plain)[0].is_compatible() && !plain.differences(&is)[0].is_compatible());
}

// S31
#[test]
fn forecasts_and_drawings_tell_clean_up_apart() {
    let table = trip().step(unbook().on_end(OnEnd::FAILED.and(OnEnd::CANCELLED))).build().unwrap();
    let step = table.step_named("unbook").unwrap();
    assert_eq!(table.forecast(step).to_string(), "0-1");
    assert_eq!(table.forecast(table.step_named("pay").unwrap()).to_string(), "1");
    let graph = table.graph();
    let mermaid = graph.to_mermaid();
    assert!(mermaid.contains("n_s2[[\"unbook<br/>clean-up#58; failed or cancelled\"]]"), "{mermaid}");
    assert!(
        mermaid.contains("n_s0 -.->|\"Booked\"| n_s2") && mermaid.contains("n_s0 -->|\"Booked\"| n_s1"),
        "{mermaid}"
    );
    let dot = graph.to_dot();
    assert!(dot.contains("peripheries=2") && dot.contains("style=dashed"), "{dot}");
    let unbook = &table.graph().nodes.into_iter().find(|node| &*node.name == "unbook").unwrap();
    assert!(unbook.on_end.unwrap().includes(RunStatus::Failed));
    // An event that only clean-up takes is taken.
    assert!(!mermaid.contains("unread"), "{mermaid}");
}
