//! The result of a run, in a form that compares an uninterrupted run with a resumed one, and their difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;
use workflow_core::store::Record;
use workflow_core::{AnyEvent, RunId, RunStatus};

use super::store::CrashStore;
use crate::TestRun;
use crate::subject::Tested;

/// The maximum number of reported differences.
const SHOWN: usize = 20;

/// The scope of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Everything.
    Everything,
    /// How the run ended.
    Outcome,
}

/// The result of a run.
#[derive(Debug, PartialEq)]
pub(super) struct Sum {
    status: RunStatus,
    /// The output as JSON, or the error.
    outcome: String,
    /// The number of each logged event, by name and JSON.
    log: Counted,
    /// How often each step was executed.
    executions: Counted,
    /// The number of equal child runs, by workflow, end and log.
    children: Counted,
}

type Counted = BTreeMap<String, u64>;

impl Sum {
    pub(super) fn of<T: Tested>(run: &TestRun<T>, store: &CrashStore) -> Self {
        let report = run.report();
        let log = report.log.iter().map(|logged| said(&logged.event, &json(&logged.value)));
        let steps = report.steps.iter().map(|row| (row.step.to_string(), row.executions));
        Self {
            status: run.status(),
            outcome: outcome(run),
            log: counted(log),
            executions: steps.collect(),
            children: counted(children(&report.run, store)),
        }
    }

    /// The differences of the resumed run; `None` if there are none.
    pub(super) fn difference(&self, resumed: &Self, scope: Scope) -> Option<String> {
        let mut text = String::new();
        if self.status != resumed.status || self.outcome != resumed.outcome {
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                text,
                "  it is {} with {}\n  instead of {} with {}",
                resumed.status, resumed.outcome, self.status, self.outcome
            );
        }
        if scope == Scope::Everything {
            differ(&mut text, "in the log", &self.log, &resumed.log);
            differ(&mut text, "executions of", &self.executions, &resumed.executions);
            differ(&mut text, "child run", &self.children, &resumed.children);
        }
        (!text.is_empty()).then_some(text)
    }
}

fn differ(text: &mut String, what: &str, whole: &Counted, resumed: &Counted) {
    let names: BTreeSet<_> = whole.keys().chain(resumed.keys()).collect();
    let count = |of: &Counted, name: &String| of.get(name).copied().unwrap_or(0);
    let counts = names.into_iter().map(|name| (name, count(whole, name), count(resumed, name)));
    for (name, whole, resumed) in counts.filter(|(_, whole, resumed)| whole != resumed).take(SHOWN) {
        let _ = writeln!(text, "  {what} {name}: {resumed} instead of {whole}");
    }
}

/// The first record at the crash that was changed afterwards.
pub(super) fn rewritten(before: &CrashStore, after: &CrashStore) -> Option<String> {
    before.kept_runs().iter().find_map(|(run, _)| {
        let (was, is) = (before.journal(run), after.journal(run));
        let other = (0..was.len()).find(|place| is.get(*place) != Some(&was[*place]))?;
        let is = is.get(other).map_or_else(|| "nothing".to_owned(), ToString::to_string);
        Some(format!("  record {other} of `{run}` was {}\n  and is {is}\n", was[other]))
    })
}

fn counted(all: impl Iterator<Item = String>) -> Counted {
    let mut counted = Counted::new();
    for one in all {
        *counted.entry(one).or_default() += 1;
    }
    counted
}

fn json(event: &AnyEvent) -> Value {
    event.to_json().unwrap_or_else(|error| Value::String(error.to_string()))
}

fn said(name: &str, value: &Value) -> String {
    format!("{name} {value}")
}

/// The output is the event that stopped the run.
fn outcome<T: Tested>(run: &TestRun<T>) -> String {
    if !run.status().is_ended() {
        return "no outcome yet".to_owned();
    }
    if let Err(error) = run.outcome() {
        return format!("\"{error}\"");
    }
    let mut stops = run.report().log.iter().filter(|logged| logged.value.roles().is_stop());
    stops.next().map_or_else(String::new, |stop| said(&stop.event, &json(&stop.value)))
}

/// The result of each run below this one. Their ids are not compared: they contain the starting execution's number,
/// which depends on the order in which executions begin.
fn children(run: &RunId, store: &CrashStore) -> impl Iterator<Item = String> {
    let others = store.kept_runs().into_iter().filter(move |(id, _)| id != run);
    others.map(|(id, summary)| {
        let records = store.records(&id);
        let logged = records.iter().filter_map(|record| match record {
            Record::EventLogged { event, .. } => {
                Some(said(event.name(), &event.to_json().unwrap_or_default()))
            }
            _ => None,
        });
        let mut logged: Vec<String> = logged.collect();
        logged.sort();
        // Nothing depends on the record that a run waits, so a store that confirms late may lack it.
        let status = if summary.status.is_ended() { summary.status.to_string() } else { "open".into() };
        format!("of {}, {status} with {}", summary.workflow, logged.join(", "))
    })
}
