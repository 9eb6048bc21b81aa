//! The model alone, on runs short enough to check by hand.

use std::sync::Arc;

use workflow_core::ExecutionId;
use workflow_core::scheduler::{Emission, End, Fact, FanOutTerms};
use workflow_core::table::DependencyTable;
use workflow_testkit::model::{Model, Plan, PlannedEvent, PlannedInput, PlannedOutput, PlannedStep, Take};

const PLAIN: PlannedEvent = PlannedEvent {
    start: false,
    stop: false,
    external: false,
    failure: false,
    reply: None,
    replies_to: None,
    expired: None,
    expires: None,
};

fn step(take: Take, event: usize, output: PlannedOutput) -> PlannedStep {
    let inputs = vec![PlannedInput { take, events: vec![event], ..PlannedInput::default() }];
    PlannedStep { inputs, outputs: vec![output], ..PlannedStep::default() }
}

/// Orders into lines, lines into labels, labels into a confirmation.
fn shop() -> Plan {
    let start = PlannedEvent { start: true, ..PLAIN };
    let stop = PlannedEvent { stop: true, ..PLAIN };
    Plan {
        events: vec![start, PLAIN, PLAIN, stop],
        steps: vec![
            step(Take::One, 0, PlannedOutput::FanOut(1)),
            step(Take::One, 1, PlannedOutput::Events(2)),
            step(Take::Gather, 2, PlannedOutput::Events(3)),
        ],
        ..Plan::default()
    }
}

fn received(table: &DependencyTable, name: &str) -> Fact {
    Fact::EventReceived { event: table.event_named(name).unwrap() }
}

fn succeeded(execution: u64, emission: Emission) -> Fact {
    Fact::ExecutionSucceeded {
        execution: ExecutionId(execution),
        emissions: [emission].into_iter().collect(),
    }
}

/// The model's lines for these facts.
fn said(model: &mut Model, table: &DependencyTable, facts: impl IntoIterator<Item = Fact>) -> Vec<String> {
    let mut said = Vec::new();
    for fact in facts {
        model.apply(&fact);
        while let Some(line) = model.next_line() {
            said.push(line.text(table));
        }
    }
    said
}

// S44, S46–S48
#[test]
fn branches_are_opened_settled_and_gathered() {
    let plan = Arc::new(shop());
    let table = plan.table();
    let [label, done] = ["E2", "E3"].map(|name| Emission::Event(table.event_named(name).unwrap()));
    let fan_out = table.steps()[0].outputs()[0].fan_out().unwrap();
    let lines = Emission::FanOut { fan_out, items: 2, terms: FanOutTerms::default() };
    let mut model = Model::new(Arc::clone(&plan));
    let facts = [
        received(&table, "E0"),
        succeeded(1, lines),
        succeeded(3, label.clone()),
        succeeded(2, label),
        succeeded(4, done),
    ];
    let expected = [
        "append for the outside: #1 E0",
        "start x1 s0(#1) by #1",
        "append for x1: #2 E1 in scope 1, #3 E1 in scope 2",
        "start x2 s1(#2) by #2 in scope 1",
        "start x3 s1(#3) by #3 in scope 2",
        "append for x3: #4 E2 in scope 2",
        "free scope 2",
        "append for x2: #5 E2 in scope 1",
        "free scope 1",
    ];
    let said = said(&mut model, &table, facts);
    assert_eq!(said[..9], expected);
    assert!(said[9].ends_with("scope 1 of #2, #5 E2, place 1; scope 2 of #3, #4 E2, place 0"), "{}", said[9]);
    assert_eq!(said[10..], ["start x4 s2(#6) by #6", "append for x4: #7 E3", "completed by #7"]);
    assert_eq!(model.executed().map(|call| call.step).collect::<Vec<usize>>(), [0, 1, 1, 2]);
    assert_eq!(model.depth(), 2);
}

// S30
#[test]
fn a_patient_model_waits_where_the_rules_say_that_the_run_is_stalled() {
    let plan = Arc::new(shop());
    let table = plan.table();
    let facts = || {
        [
            received(&table, "E0"),
            Fact::ExecutionSucceeded { execution: ExecutionId(1), emissions: [].into_iter().collect() },
        ]
    };
    let mut model = Model::new(Arc::clone(&plan));
    let stalled = said(&mut model, &table, facts());
    assert_eq!(stalled.last().unwrap(), "stalled");
    assert_eq!(model.end(), Some(&End::Stalled));
    let mut patient = Model::patient(plan);
    let waiting = said(&mut patient, &table, facts());
    assert_eq!(waiting.last().unwrap(), "wait");
    assert_eq!(patient.end(), None);
}

// S33
#[test]
fn arrivals_after_the_end_are_refused() {
    let plan = Arc::new(shop());
    let table = plan.table();
    let mut model = Model::new(plan);
    let facts = [received(&table, "E0"), Fact::CancelRequested, received(&table, "E0")];
    let said = said(&mut model, &table, facts);
    assert_eq!(said[2..], ["cancelled", "refuse what was sent"]);
}

#[test]
fn a_plan_says_what_its_branches_can_hold() {
    assert_eq!(shop().branch_events(), [[1, 2]]);
    assert_eq!(shop().problems(), []);
}

#[test]
#[should_panic(expected = "at most 128 event types, fan-outs and caught steps, not 129")]
fn a_plan_with_too_many_event_types_is_refused() {
    let _ = Model::new(Plan { events: vec![PLAIN; 129], ..Plan::default() });
}
