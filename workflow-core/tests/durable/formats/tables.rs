//! The table in a journal, and its use without the program that wrote it (S41).

use std::sync::Arc;

use workflow_core::Workflow;
use workflow_core::signature::Roles;
use workflow_core::store::{EventStore, JOURNAL_FORMAT, MemoryStore, Position, Record};
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OutputDef, RecordedTable, StepDef, StepPolicy, TableDifference,
    TableShape,
};
use workflow_testkit::Scenario;

use crate::fixtures::Begin;
use crate::shapes::{
    Asks, Branches, Catches, Fails, FailsAll, Joins, Lists, Loops, Pairs, Parents, Retries, Stalls, Waits,
};

fn table_of<W: Workflow>() -> DependencyTable {
    DependencyTable::from_spec(W::TABLE).unwrap()
}

/// Every workflow of the crash tests.
fn tables() -> Vec<DependencyTable> {
    vec![
        table_of::<Joins>(),
        table_of::<Lists>(),
        table_of::<Pairs>(),
        table_of::<Loops>(),
        table_of::<Retries>(),
        table_of::<Catches>(),
        table_of::<Fails>(),
        table_of::<Stalls>(),
        table_of::<Branches>(),
        table_of::<FailsAll>(),
        table_of::<Asks>(),
        table_of::<Waits>(),
        table_of::<Parents>(),
    ]
}

fn read_back(shape: &TableShape) -> TableShape {
    serde_json::from_slice(&serde_json::to_vec(shape).unwrap()).unwrap()
}

#[test]
fn a_table_can_be_made_again_of_its_shape_as_json_has_it() {
    for table in tables() {
        let shape = read_back(&table.shape());
        let again = DependencyTable::from_shape(&shape).unwrap();
        assert_eq!((shape.clone(), again.shape()), (table.shape(), shape), "{}", table.name());
        let names = |table: &DependencyTable| -> Vec<String> {
            table.events().iter().map(|event| format!("{} ({})", event.name(), event.roles())).collect()
        };
        assert_eq!(names(&again), names(&table));
        // Both tables give the same drawings and forecasts.
        let graph = |table: &DependencyTable| {
            let mut graph = table.graph();
            graph.nodes.iter_mut().for_each(|node| node.description = "".into());
            graph.to_dot()
        };
        assert_eq!(graph(&again), graph(&table), "{}", table.name());
    }
}

#[test]
fn a_shape_says_everything_that_a_builder_can() {
    let policy = StepPolicy::DEFAULT.max_executions(3).concurrency(2).continue_on_error();
    let table = DependencyTable::builder("all")
        .event(EventDef::new("Go", Roles::NONE.start().external()).version(4))
        .event(EventDef::new("Ask", Roles::NONE.request().display()))
        .event(EventDef::reply_to("Said", "Ask"))
        .event(EventDef::expiry_of("Late", "Ask"))
        .event(EventDef::failure("Broken"))
        .event(EventDef::new("End", Roles::NONE.stop()))
        .step(
            StepDef::new("ask")
                .input(InputDef::one("Go"))
                .output(OutputDef::event("Ask"))
                .output(OutputDef::timer("Late"))
                .policy(policy),
        )
        .step(
            StepDef::new("end")
                .input(InputDef::reply("Said"))
                .input(InputDef::one_of(["Late", "Broken"]).optional())
                .input(InputDef::list(["Go"]).optional())
                .catches(["ask"])
                .output(OutputDef::optional("End")),
        )
        .build_unchecked()
        .unwrap();
    let shape = read_back(&table.shape());
    assert_eq!(DependencyTable::from_shape(&shape).unwrap().shape(), table.shape());
    let ask = shape.step("ask").unwrap();
    let limits = (ask.max_executions, ask.concurrency, ask.continue_on_error);
    assert_eq!(limits, (Some(3), Some(2), true));
    assert_eq!(shape.step("end").unwrap().catches, ["ask".into()]);
    assert_eq!(shape.event("Go").unwrap().version, 4);
}

// S29, S41
#[test]
fn a_step_that_is_added_is_compatible_though_another_takes_its_failures() {
    let table = |steps: &[&'static str]| {
        let table = DependencyTable::builder("w")
            .event(EventDef::new("Go", Roles::NONE.start()))
            .event(EventDef::new("End", Roles::NONE.stop()))
            .event(EventDef::failure("Failed"))
            .step(StepDef::new("mend").input(InputDef::one("Failed")).output(OutputDef::event("End")));
        let step = |name: &&'static str| {
            StepDef::new(*name).input(InputDef::one("Go")).output(OutputDef::event("End"))
        };
        steps.iter().map(step).fold(table, workflow_core::table::TableBuilder::step).build().unwrap().shape()
    };
    let differences = table(&["a"]).differences(&table(&["a", "b"]));
    assert_eq!(differences, [TableDifference::StepAdded { step: "b".into() }]);
    let differences = table(&["a", "b"]).differences(&table(&["a"]));
    assert_eq!(differences, [TableDifference::StepRemoved { step: "b".into() }]);
}

#[test]
fn a_shape_that_is_of_no_table_makes_none() {
    let mut shape = table_of::<Joins>().shape();
    shape.events.retain(|event| &*event.name != "Part");
    let error = DependencyTable::from_shape(&shape).unwrap_err().to_string();
    assert!(error.contains("`Part`"), "{error}");
    let unknown = r#"{"workflow":"w","events":[{"name":"E","roles":["judge"]}],"steps":[]}"#;
    let error = serde_json::from_str::<TableShape>(unknown).unwrap_err().to_string();
    assert!(error.starts_with("there is no role `judge`"), "{error}");
}

#[test]
fn fingerprints_tell_tables_apart_and_are_the_same_for_the_same_table() {
    let mut seen: Vec<String> = tables().iter().map(|table| table.shape().fingerprint()).collect();
    let again: Vec<String> = tables().iter().map(|table| table.shape().fingerprint()).collect();
    assert_eq!(seen, again);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), again.len());
}

// S41
#[tokio::test]
async fn a_journal_begins_with_its_format_and_the_table_of_its_workflow() {
    let store = Arc::new(MemoryStore::default());
    let kept = Arc::clone(&store);
    Scenario::new(Joins).engine(|engine| engine.store(kept)).start(Begin(2)).await;
    let records = store.read(&"scenario".into(), Position(0), 1).await.unwrap();
    let [Record::RunStarted { format, table, .. }] = &records[..] else { panic!("{records:?}") };
    assert_eq!(*format, JOURNAL_FORMAT);
    let shape = table_of::<Joins>().shape();
    assert_eq!((table.fingerprint(), table.shape().unwrap()), (&*shape.fingerprint(), shape));
    // As bytes have it.
    let bytes = serde_json::to_vec(table).unwrap();
    let read: RecordedTable = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(read.shape().unwrap(), table.shape().unwrap());
    assert_eq!(serde_json::to_vec(&read).unwrap(), bytes);
}
