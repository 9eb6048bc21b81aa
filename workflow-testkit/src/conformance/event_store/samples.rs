//! Sample records: numbered ones that show their position, and one of every kind and form.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use workflow_core::errors::Excess;
use workflow_core::prelude::*;
use workflow_core::report::{NotRetried, Redriver, TimerId};
use workflow_core::scheduler::Cause;
use workflow_core::signature::Roles;
use workflow_core::store::{EngineId, JOURNAL_FORMAT, ReachedLimit, Record, RecordedEvent, WaitingFor};
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, RecordedTable, StepDef};
use workflow_core::{AnyEvent, ErrorClass, ExecutionId, Origin, RunStatus, ScopeId, Seq, ThreadId};

/// An event that holds any JSON.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Sample(Value);

/// Has no form as JSON.
#[derive(Debug, Deserialize, Event)]
struct Formless;

impl Serialize for Formless {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("this event has no form as JSON, on purpose"))
    }
}

/// A moment that a store must not round.
pub(super) fn moment(number: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000 + number, 123_456_789)
}

/// The record that checks put at this position.
pub(super) fn note(number: u64) -> Record {
    logged(number, AnyEvent::new(Sample(json!(number))))
}

pub(super) fn notes(numbers: Range<u64>) -> Vec<Record> {
    numbers.map(note).collect()
}

/// A record of an event that holds this.
pub(super) fn holding(json: Value) -> Record {
    logged(1, AnyEvent::new(Sample(json)))
}

/// A record without JSON.
pub(super) fn formless() -> Record {
    logged(1, AnyEvent::new(Formless))
}

fn logged(number: u64, event: AnyEvent) -> Record {
    caused(Cause::Outside, number, event)
}

fn caused(cause: Cause, number: u64, event: AnyEvent) -> Record {
    Record::EventLogged {
        seq: Seq(number),
        scope: ScopeId::ROOT,
        cause,
        event: RecordedEvent::new(event),
        origin: None,
        at: moment(number),
    }
}

/// A record as JSON, for comparing records. A record without JSON becomes the reason why.
pub(super) fn text(record: &Record) -> String {
    serde_json::to_string(record).unwrap_or_else(|error| format!("no JSON: {error}"))
}

/// The number of a note; panics if the record is none, or was changed.
pub(super) fn number(record: &Record) -> u64 {
    let Record::EventLogged { seq: Seq(number), .. } = *record else {
        panic!("a record that nobody wrote was read: {}", text(record))
    };
    assert_eq!(text(record), text(&note(number)), "a record is read back as it was written");
    number
}

/// A record of every kind, with every field at its limits.
pub(super) fn every_kind() -> Vec<Record> {
    let at = moment(0);
    let mut records = vec![started(BTreeMap::new()), started(labels())];
    let causes = [
        Cause::Outside,
        Cause::Reply(Seq(u64::MAX)),
        Cause::Expired(Seq(u64::MAX)),
        Cause::Timer { timer: TimerId(u64::MAX), execution: ExecutionId(u64::MAX) },
        Cause::Execution(ExecutionId(u64::MAX)),
        Cause::Failure(ExecutionId(u64::MAX)),
    ];
    records.extend(causes.map(|cause| caused(cause, 2, AnyEvent::new(Sample(Value::Null)))));
    let (seq, scope) = (Seq(u64::MAX), ScopeId(u32::MAX));
    records.push(Record::FanOutGathered {
        seq,
        scope,
        fan_out: "split.Item".into(),
        branches: vec![ScopeId(1), ScopeId(4)],
        at,
    });
    let (execution, trigger) = (ExecutionId(3), Seq(1));
    records.extend([None, Some(seq)].map(|request| Record::TimerSet {
        timer: TimerId(u64::MAX),
        execution,
        scope,
        request,
        due: moment(1),
        event: RecordedEvent::new(AnyEvent::new(Sample(json!("later")))),
        at,
    }));
    let step: Arc<str> = "work".into();
    let fan_outs = json!([{"fan_out": "split.Item", "items": 0, "policy": "wait_all"}]);
    let fan_outs = serde_json::from_value(fan_outs).expect("a fan-out");
    records.push(Record::ExecutionSucceeded {
        execution,
        step: Arc::clone(&step),
        scope,
        trigger,
        fan_outs,
        at,
    });
    records.extend([None, Some("no \"list\"".to_owned())].map(|error| Record::PreconditionAnswered {
        step: Arc::clone(&step),
        scope,
        trigger,
        answer: error.is_none(),
        error,
        at,
    }));
    records.extend(CLASSES.into_iter().zip(NOT_RETRIED.into_iter().cycle()).map(|(class, not_retried)| {
        let (step, error) = ("work".into(), "line 1\nline 2: \"ä\"\0".to_owned());
        Record::ExecutionFailed { execution, step, scope, trigger, class, error, not_retried, at }
    }));
    records.extend([Duration::ZERO, Duration::from_nanos(1), Duration::MAX].map(|retry_in| {
        let (step, class, error) = ("work".into(), ErrorClass::Transient, String::new());
        let (attempt, compacts) = (u32::MAX, retry_in.is_zero());
        Record::RetryScheduled {
            execution,
            step,
            scope,
            trigger,
            attempt,
            class,
            error,
            retry_in,
            compacts,
            at,
        }
    }));
    records.extend(ends_of_children(at));
    records.push(Record::AttemptBegan { execution, step: "work".into(), scope, trigger, at });
    records.extend(
        [vec![], vec![execution, ExecutionId(u64::MAX)]].map(|dropped| Record::RunDetached { dropped, at }),
    );
    records.extend(pauses(at).into_iter().chain([Record::RunKept { at }, Record::DelaysEnded { at }]));
    records.extend(redrives(at));
    records
        .extend([WaitingFor::default(), waits_for(at)].map(|waits_for| Record::RunWaiting { waits_for, at }));
    records.extend(STATUSES.map(|status| Record::RunEnded {
        status,
        error: Some(status.to_string()),
        step: Some("asks".into()),
        deadline: (status == RunStatus::TimedOut).then(|| moment(2)),
        origin: Some(who()),
        at,
    }));
    records.extend(clean_ups(at));
    records.extend([None, Some(table())].map(|table| resumed(table, at)));
    // The beginning of time, and no fraction of a second.
    records.push(Record::RunEnded {
        status: RunStatus::Completed,
        error: None,
        step: None,
        deadline: None,
        origin: None,
        at: SystemTime::UNIX_EPOCH,
    });
    records
}

/// Ends of children, none and several.
fn ends_of_children(at: SystemTime) -> [Record; 2] {
    let children =
        json!([{"run": "a/work-x3.\u{e4}\"1\"", "status": "timed_out"}, {"run": "b", "status": "completed"}]);
    [json!([]), children].map(|children| Record::ChildrenEnded {
        children: serde_json::from_value(children).expect("ended children"),
        at,
    })
}

/// Redrives of each kind.
fn redrives(at: SystemTime) -> [Record; 4] {
    let again = || vec!["pay".into(), "\u{1F600}\"".into()];
    let redriven = |by, again, deadline| Record::RunRedriven { by, again, deadline, at };
    let steps = vec!["unbook".into(), "\"ä\"".into()];
    [
        redriven(Redriver::CommandLine, Vec::new(), None),
        redriven(Redriver::Engine(EngineId::new("ä/\"1\"")), Vec::new(), None),
        Record::CleanUpRedriven { by: Redriver::CommandLine, steps, again: again(), at },
        redriven(Redriver::CommandLine, again(), Some(moment(2))),
    ]
}

/// An origin with both parts.
fn who() -> Origin {
    Origin::new().by("ä\"1\"").id("line 1\nline 2")
}

/// Pauses of each kind, and their ends.
fn pauses(at: SystemTime) -> [Record; 5] {
    let some = || vec![ExecutionId(3), ExecutionId(u64::MAX)];
    let paused = |by_parent: bool, running, dropped| {
        let origin = (!by_parent).then(who);
        Record::RunPaused { by_parent, running, dropped, origin, at }
    };
    [
        paused(false, vec![], vec![]),
        paused(true, some(), vec![]),
        paused(false, vec![], some()),
        Record::RunUnpaused { by_parent: false, origin: Some(who()), at },
        Record::RunUnpaused { by_parent: true, origin: None, at },
    ]
}

/// The begin of clean-up, at each limit and at none.
fn clean_ups(at: SystemTime) -> [Record; 3] {
    [None, Some(ReachedLimit::Events(2)), Some(ReachedLimit::Executions(3))].map(|limit| {
        Record::CleanUpStarted {
            status: if limit.is_some() { RunStatus::Failed } else { RunStatus::Cancelled },
            error: limit.is_none().then(|| "line 1\nline 2".to_owned()),
            step: None,
            excess: limit.is_some_and(|limit| limit == ReachedLimit::Executions(3)).then(|| {
                Box::new(Excess {
                    step: "\"ä\"".into(),
                    execution: ExecutionId(1),
                    amount: u64::MAX,
                    left: 2,
                })
            }),
            limit,
            deadline: limit.is_none().then(|| moment(2)),
            after: Some(Duration::from_secs(9)),
            steps: vec!["unbook".into(), "\"ä\"".into()],
            first: ExecutionId(u64::MAX),
            origin: limit.is_none().then(|| Origin::new().id("1")),
            at,
        }
    })
}

/// A resume without a new table, and one with all that it can have.
fn resumed(table: Option<RecordedTable>, at: SystemTime) -> Record {
    let configs = table.iter().map(|_| ("a::B<c>".to_owned(), json!({"ä": [null, 1.5]}))).collect();
    let stable_keys = table.is_some();
    Record::RunResumed { format: JOURNAL_FORMAT, table, stable_keys, configs, at }
}

fn started(metadata: BTreeMap<String, String>) -> Record {
    Record::RunStarted {
        format: JOURNAL_FORMAT,
        workflow: "Orders".into(),
        table: table(),
        thread: ThreadId::new("user/4 ä"),
        metadata,
        parent: None,
        awaited: false,
        private_thread: true,
        timeout: Some(Duration::from_nanos(1)),
        deadline: Some(moment(2)),
        configs: [("a::B<c>".to_owned(), json!({"ä": [null, 1.5]}))].into(),
        trace_parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().ok(),
        queued: true,
        at: moment(1),
    }
}

/// A table with names that text has to escape.
fn table() -> RecordedTable {
    let table = DependencyTable::builder("Orders")
        .event(EventDef::new("Order", Roles::NONE.start()))
        .event(EventDef::new("\"ä\\b\"", Roles::NONE.stop().display()).version(u32::MAX))
        .step(StepDef::new("ship").input(InputDef::one("Order")).output(OutputDef::event("\"ä\\b\"")));
    RecordedTable::new(&table.build().expect("the table has no problem").shape())
}

pub(super) fn labels() -> BTreeMap<String, String> {
    let labels = [("", ""), ("tenant", "ä"), ("a.b", "line 1\nline 2"), ("\"", "\\")];
    labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

const CLASSES: [ErrorClass; 8] = [
    ErrorClass::Transient,
    ErrorClass::Tool,
    ErrorClass::Model,
    ErrorClass::ContextLimit,
    ErrorClass::Permanent,
    ErrorClass::Rejected,
    ErrorClass::Interrupted,
    ErrorClass::InDoubt,
];

const NOT_RETRIED: [NotRetried; 5] = [
    NotRetried::Class,
    NotRetried::UsedUp { retries: u32::MAX },
    NotRetried::Budget { budget: Duration::MAX },
    NotRetried::RunEnding,
    NotRetried::Clock,
];

/// Every status that a journal can record.
pub(super) const STATUSES: [RunStatus; 8] = [
    RunStatus::Running,
    RunStatus::Paused,
    RunStatus::CleaningUp,
    RunStatus::Completed,
    RunStatus::Failed,
    RunStatus::Stalled,
    RunStatus::Cancelled,
    RunStatus::TimedOut,
];

/// Every form that JSON has, at its limits.
pub(super) fn forms() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(-0.5),
        json!(0.1),
        json!(f64::MAX),
        json!(f64::MIN_POSITIVE),
        json!(1e100),
        // An inexact parser reads them as the number next to it.
        json!(6.934_698_245_112_694e276),
        json!(8.383_658_838_626_809e-78),
        json!(""),
        json!("quotes \" and ' and \\, a\0b, line\r\nline\u{2028}line, ä, 日本, 🦀"),
        json!([]),
        json!([null, [1, [2, [3]]], {}]),
        json!({}),
        json!({"": null, "a.b": {"c": [1.5, "d"]}, "type": "e", "data": {"type": "f"}}),
        (0..64).fold(json!("deep"), |inner, _| json!([inner])),
    ]
}

pub(super) fn waits_for(until: SystemTime) -> WaitingFor {
    let mut waits_for = WaitingFor::default();
    waits_for.requests = vec!["Approve".into(); 2];
    waits_for.open_requests = 2;
    waits_for.events = vec!["Noted".into()];
    waits_for.until = Some(until);
    waits_for
}
