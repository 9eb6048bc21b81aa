//! Reports and explanations of a run are the same from the engine that drives it, after a reload, and from its records.

use serde_json::{Value, json};
use workflow_core::explain::Explanation;
use workflow_core::report::RunReport;
use workflow_core::store::Record;
use workflow_core::{AnyRun, RecordedRun, RunId, RunStatus};

use super::acts::has_stopped_here;
use crate::formats::recorded::{told, values, without_start_times, without_times};
use crate::world::World;

/// What a report and an explanation say, without the times that a journal has not.
fn shown(report: &RunReport, explanation: &Explanation) -> Value {
    let text = without_times(&explanation.to_string()).replace("ended after the run had", "dropped");
    let (report, log) = (told(report), values(report));
    json!({
        "report": without_what_was_refused(without_reports_of_children(without_start_times(report))),
        "values": log,
        "explanation": without_what_was_refused(told(explanation)),
        "text": text.lines().collect::<Vec<_>>(),
    })
}

/// Leaves out the reports of children: the journal of a parent has how they ended, and no more of them.
fn without_reports_of_children(mut report: Value) -> Value {
    let children = report.get_mut("children").and_then(Value::as_array_mut);
    for child in children.into_iter().flatten().filter_map(Value::as_object_mut) {
        child.remove("report");
    }
    report
}

/// Leaves out what executions returned after the end: only the process in which they did knows that (S34).
fn without_what_was_refused(mut shown: Value) -> Value {
    match &mut shown {
        Value::Object(fields) => {
            fields.remove("violations");
            if let Some(outcome) = fields.get_mut("outcome").filter(|outcome| *outcome == "refused") {
                *outcome = "dropped".into();
            }
            for value in fields.values_mut() {
                *value = without_what_was_refused(value.take());
            }
        }
        Value::Array(items) => {
            for value in items {
                *value = without_what_was_refused(value.take());
            }
        }
        _ => {}
    }
    shown
}

/// Compares what a handle says with what the records say.
pub(super) async fn compare(world: &World, run: &AnyRun, which: &str) {
    if has_stopped_here(run) {
        return;
    }
    let (Ok(report), Ok(explanation)) = (run.report_so_far().await, run.explain().await) else { return };
    let journal = world.journal(run.id());
    let Some(recorded) = read(world, run.id(), &journal) else { return };
    // What goes on is in no journal yet, and limits of the engine are in none.
    if matches!(report.status, RunStatus::Running | RunStatus::CleaningUp) {
        return;
    }
    let is_of_another_life = recorded.report().redrives.len() != report.redrives.len();
    if is_of_another_life || recorded.status() != report.status {
        return;
    }
    world.reach("a comparison");
    let (live, recorded) = (shown(&report, &explanation), shown(recorded.report(), &recorded.explain()));
    if live != recorded {
        let differences = differences("", &live, &recorded);
        world.violate(format!("{}: {which} differs from its records: {differences:#?}", run.id()));
    }
}

/// Compares what the handle of a run that has ended says with the run's summary in lists.
pub(super) async fn compare_summary(world: &World, run: &AnyRun) {
    let (Ok(report), false) = (run.report_so_far().await, has_stopped_here(run)) else { return };
    let stored = world.all().into_iter().find(|stored| stored.id == *run.id());
    let Some(stored) = stored.filter(|stored| stored.run.status.is_ended()) else { return };
    let redriven = |record: &&Record| matches!(record, Record::RunRedriven { .. });
    if world.journal(run.id()).iter().filter(redriven).count() != report.redrives.len() {
        return;
    }
    let (listed, live) = ((stored.run.status, stored.run.quality), (report.status, Some(report.quality)));
    if listed != live {
        world.violate(format!("{}: lists say {listed:?}, and the run of a handle {live:?}", run.id()));
    }
}

/// The run by its records, which can be read, and are the same at a second reading.
pub(super) fn read(world: &World, run: &RunId, journal: &[Record]) -> Option<RecordedRun> {
    match RecordedRun::of(run, journal) {
        Ok(recorded) => Some(recorded),
        Err(error) => {
            world.violate(format!("{run}: its journal cannot be read: {error}"));
            None
        }
    }
}

/// The places at which two values differ.
fn differences(place: &str, one: &Value, other: &Value) -> Vec<String> {
    match (one, other) {
        (Value::Object(fields), Value::Object(others)) => {
            let names = fields.keys().chain(others.keys().filter(|name| !fields.contains_key(*name)));
            names
                .flat_map(|name| {
                    let of = |fields: &serde_json::Map<_, _>| fields.get(name).cloned().unwrap_or_default();
                    differences(&format!("{place}/{name}"), &of(fields), &of(others))
                })
                .collect()
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let pairs = items.iter().zip(others).enumerate();
            pairs.flat_map(|(at, (one, other))| differences(&format!("{place}/{at}"), one, other)).collect()
        }
        _ if one == other => Vec::new(),
        _ => vec![format!("{place}: {one} instead of {other}")],
    }
}
