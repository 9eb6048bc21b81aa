//! Compatibility of a journal with the present table of its workflow (S39, S41). A changed table is refused
//! only if the journal has a fact that contradicts the change; replay finds the remaining contradictions.
//!
//! ```text
//! change of the table            refused if the journal has
//! step removed, input changed    an execution of the step, or an answer of its precondition
//! step removed                   an open execution of the step that may have begun
//! step removed, input changed    an open clean-up in which the step is to run
//! output removed                 such an event by the step
//! precondition added             an execution of the step
//! precondition removed           an answer of it
//! catch added                    a failure of the step, uncaught, that the run survived
//! version lowered                an event of a later version
//! idempotency keys changed       an open execution of the step that may have begun
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::earlier_tables::EarlierTables;
use crate::id::{ExecutionId, ScopeId};
use crate::outcome::Incompatibility;
use crate::scheduler::Cause;
use crate::store::{Position, Record, RecordedEvent};
use crate::table::{DependencyTable, KeyHistory, TableDifference};

/// Compares the table of the last process with the present one. If it is the same, costs one comparison of
/// fingerprints.
///
/// # Errors
/// The changes that the journal contradicts, or an unreadable table in the journal.
pub(super) fn check(
    table: &DependencyTable,
    records: &[Record],
    earlier: &EarlierTables,
) -> Result<(), Incompatibility> {
    let tables = records.iter().enumerate().rev();
    let mut tables = tables.filter_map(|(place, record)| Some((place, record.table()?)));
    let Some((place, written)) = tables.next() else { return Ok(()) };
    if written.fingerprint() == table.recorded().fingerprint() {
        return Ok(());
    }
    let shape = written.shape().map_err(|error| Incompatibility::Journal {
        position: Position::default().after(place),
        what: format!("the table that it was written by cannot be read: {error}"),
    })?;
    let mut differences = shape.differences(&table.shape());
    // A compatible change fits every journal.
    differences.retain(|difference| !difference.is_compatible());
    if differences.is_empty() {
        return Ok(());
    }
    let mut facts = JournalFacts::by(records);
    facts.begun = earlier.begun_steps().map(Arc::clone).collect();
    if !facts.begun.is_empty() {
        facts.rekeyed = rekeyed(table, records);
    }
    differences.retain(|difference| facts.contradict(difference));
    if differences.is_empty() { Ok(()) } else { Err(Incompatibility::Table(differences)) }
}

/// The facts of a journal that may contradict a change.
#[derive(Default)]
struct JournalFacts<'a> {
    /// Steps with an execution, of any outcome.
    ran: HashSet<&'a str>,
    succeeded: HashSet<&'a str>,
    /// Steps whose failure is an event in the log.
    caught: HashSet<&'a str>,
    /// Steps whose failure the run survived without an event for it.
    survived: HashSet<&'a str>,
    /// Steps whose preconditions answered.
    asked: HashSet<&'a str>,
    /// Pairs of a step and the name of an event that it emitted.
    emitted: HashSet<(&'a str, &'a str)>,
    /// Names of events in the log and in timers, with the latest version of each.
    events: HashMap<&'a str, u32>,
    /// The most executions of each step in one scope.
    most: HashMap<&'a str, usize>,
    /// Steps of which the last clean-up is not complete.
    cleans_up: HashSet<&'a str>,
    /// Steps with an open execution that may have begun: a service may know its key.
    begun: HashSet<Arc<str>>,
    /// Steps whose executions have other idempotency keys by the present table. Set if one may have begun.
    rekeyed: HashSet<Arc<str>>,
}

impl<'a> JournalFacts<'a> {
    /// Collects the facts of a journal. O(records).
    fn by(records: &'a [Record]) -> Self {
        let mut facts = Self::default();
        let mut steps: HashMap<ExecutionId, &'a str> = HashMap::new();
        let mut executions: HashMap<(&'a str, ScopeId), HashSet<ExecutionId>> = HashMap::new();
        for record in records {
            match record {
                Record::CleanUpStarted { steps, .. } => {
                    facts.cleans_up = steps.iter().map(|step| &**step).collect();
                }
                Record::CleanUpRedriven { steps, .. } => {
                    facts.cleans_up.extend(steps.iter().map(|step| &**step));
                }
                Record::RunRedriven { .. } => facts.cleans_up.clear(),
                Record::ExecutionSucceeded { execution, step, scope, fan_outs, .. } => {
                    facts.cleans_up.remove(&**step);
                    executions.entry((step, *scope)).or_default().insert(*execution);
                    steps.insert(*execution, step);
                    facts.succeeded.insert(step);
                    let items = fan_outs.iter().filter_map(|opened| item_of(&opened.fan_out, step));
                    facts.emitted.extend(items.map(|item| (&**step, item)));
                }
                Record::ExecutionFailed { execution, step, scope, .. }
                | Record::RetryScheduled { execution, step, scope, .. } => {
                    steps.insert(*execution, step);
                    executions.entry((step, *scope)).or_default().insert(*execution);
                }
                Record::ChildStarted { child, scope, .. } => {
                    executions.entry((&child.step, *scope)).or_default().insert(child.execution);
                }
                Record::PreconditionAnswered { step, .. } => drop(facts.asked.insert(step)),
                Record::EventLogged { cause, event, .. } => {
                    facts.note(event);
                    match cause {
                        Cause::Execution(execution) => {
                            facts.emitted.extend(steps.get(execution).map(|step| (*step, event.name())));
                        }
                        Cause::Failure(execution) => facts.caught.extend(steps.get(execution).copied()),
                        _ => {}
                    }
                }
                Record::TimerSet { execution, event, .. } => {
                    facts.note(event);
                    facts.emitted.extend(steps.get(execution).map(|step| (*step, event.name())));
                }
                _ => {}
            }
        }
        for ((step, _), executions) in executions {
            facts.ran.insert(step);
            let most = facts.most.entry(step).or_default();
            *most = executions.len().max(*most);
        }
        facts.survived = survived(records);
        facts
    }

    fn note(&mut self, event: &'a RecordedEvent) {
        let latest = self.events.entry(event.name()).or_default();
        *latest = event.version().max(*latest);
    }

    /// Whether the journal has a fact that contradicts this change.
    fn contradict(&self, difference: &TableDifference) -> bool {
        let is_touched = |step: &str| {
            self.ran.contains(step) || self.asked.contains(step) || self.cleans_up.contains(step)
        };
        let has_emitted = |step: &str, event: &str| self.emitted.contains(&(step, event));
        match difference {
            TableDifference::StepRemoved { step } | TableDifference::OnEndChanged { step, .. } => {
                is_touched(step) || self.begun.contains(step)
            }
            TableDifference::InputAdded { step, .. }
            | TableDifference::InputRemoved { step, .. }
            | TableDifference::InputChanged { step, .. } => is_touched(step),
            TableDifference::OutputAdded { step, .. } => self.succeeded.contains(&**step),
            TableDifference::OutputRemoved { step, output } => has_emitted(step, &output.event),
            TableDifference::OutputChanged { step, was, is } => {
                has_emitted(step, &was.event) || (is.least > was.least && self.succeeded.contains(&**step))
            }
            TableDifference::PreconditionAdded { step, .. } => self.ran.contains(&**step),
            TableDifference::PreconditionRemoved { step, .. } => self.asked.contains(&**step),
            TableDifference::CatchAdded { caught, .. } => self.survived.contains(&**caught),
            TableDifference::CatchRemoved { caught, .. } => self.caught.contains(&**caught),
            TableDifference::MaxExecutionsChanged { step, is: Some(is), .. } => {
                self.most.get(&**step).is_some_and(|most| *most > *is as usize)
            }
            TableDifference::OnErrorChanged { step, .. } => self.survived.contains(&**step),
            TableDifference::KeysChanged { step } => self.rekeyed.contains(step) && self.begun.contains(step),
            TableDifference::EventRemoved { event } | TableDifference::RolesChanged { event, .. } => {
                self.events.contains_key(&**event)
            }
            TableDifference::VersionChanged { event, is, .. } => {
                self.events.get(&**event).is_some_and(|written| written > is)
            }
            // A lower concurrency may contradict the order in which executions ended. Replay finds that.
            TableDifference::ConcurrencyChanged { .. }
            | TableDifference::LimitChanged { .. }
            | TableDifference::MaxExecutionsChanged { .. }
            | TableDifference::StepAdded { .. }
            | TableDifference::AtMostOnceChanged { .. }
            | TableDifference::EventAdded { .. } => false,
        }
    }
}

/// The steps whose keys change with this table.
fn rekeyed(table: &DependencyTable, records: &[Record]) -> HashSet<Arc<str>> {
    let tables: Vec<_> = records.iter().filter_map(Record::table_with_keys).collect();
    KeyHistory::of(&tables).continue_with(&table.shape(), true).into_iter().collect()
}

/// The item type of a fan-out, from the name of its gather event.
fn item_of<'a>(fan_out: &'a str, step: &str) -> Option<&'a str> {
    fan_out.strip_prefix(step)?.strip_prefix('.')?.strip_suffix(".gathered")
}

/// The steps whose failures were recorded, before something else and without an event of the failure.
fn survived(records: &[Record]) -> HashSet<&str> {
    let caught = records.iter().filter_map(|record| match record {
        Record::EventLogged { cause: Cause::Failure(execution), .. } => Some(*execution),
        _ => None,
    });
    let caught: HashSet<ExecutionId> = caught.collect();
    // S31: what failed in a clean-up changed nothing, and what failed right before it was not survived.
    let mut cleans_up = false;
    let outside = records.iter().filter(|record| {
        match record {
            Record::CleanUpStarted { .. } | Record::CleanUpRedriven { .. } => cleans_up = true,
            Record::RunEnded { .. } => cleans_up = false,
            _ => {}
        }
        !cleans_up
    });
    let records: Vec<&Record> = outside.collect();
    // A run that ended with the failure and is redriven has not survived it: a changed table may catch it.
    let is_more = |record: &Record| {
        !matches!(record, Record::RunResumed { .. } | Record::RunEnded { .. } | Record::RunRedriven { .. })
    };
    let end = records.iter().rposition(|record| is_more(record)).unwrap_or_default();
    let failed = records[..end].iter().filter_map(|record| match record {
        Record::ExecutionFailed { execution, step, .. } if !caught.contains(execution) => Some(&**step),
        _ => None,
    });
    failed.collect()
}
