//! A run's summary as the file has it: its times are numbers, as every release has written and read them. The core's own
//! form has them as text for people, and reads both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use serde_json::Error;
use workflow_core::report::ParentRun;
use workflow_core::report::Quality;
use workflow_core::store::{EngineId, Position, RunSummary, WaitingFor};
use workflow_core::{RunStatus, ThreadId};

/// The bytes of a summary.
pub(crate) fn to_bytes(run: &RunSummary) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    Summary::serialize(run, &mut serde_json::Serializer::new(&mut bytes))?;
    Ok(bytes)
}

/// The fields of a [`RunSummary`], in their order.
#[derive(Serialize)]
#[serde(remote = "RunSummary")]
struct Summary {
    workflow: Arc<str>,
    status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "waits_for")]
    waits_for: Option<WaitingFor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<Arc<str>>,
    started: SystemTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<EngineId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<ThreadId>,
    #[serde(skip_serializing_if = "has_none")]
    metadata: Arc<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<ParentRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<SystemTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<SystemTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<Quality>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<Position>,
    #[serde(skip_serializing_if = "are_none")]
    incomplete_clean_up: Arc<Vec<Arc<str>>>,
}

/// The fields of a [`WaitingFor`], in their order.
#[derive(Serialize)]
#[serde(remote = "WaitingFor")]
struct Waits {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "is_zero")]
    open_requests: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<SystemTime>,
}

#[expect(clippy::ref_option, reason = "serde asks so")]
fn waits_for<S: Serializer>(waits: &Option<WaitingFor>, to: S) -> Result<S::Ok, S::Error> {
    match waits {
        Some(waits) => Waits::serialize(waits, to),
        None => to.serialize_none(),
    }
}

fn has_none(labels: &Arc<BTreeMap<String, String>>) -> bool {
    labels.is_empty()
}

fn are_none(steps: &Arc<Vec<Arc<str>>>) -> bool {
    steps.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// A summary with every field.
    fn full() -> RunSummary {
        let json = r#"{"workflow":"Orders","status":"completed","waits_for":{"requests":["Approve"],"open_requests":1,"events":["Paid"],"until":{"secs_since_epoch":1700000009,"nanos_since_epoch":8}},"table":"3573902dba8966da","started":{"secs_since_epoch":1700000000,"nanos_since_epoch":0},"owner":"e-1","thread":"user-4","metadata":{"tenant":"acme"},"parent":{"run":"r","step":"ask","execution":1,"attempt":1},"deadline":{"secs_since_epoch":1700000002,"nanos_since_epoch":0},"ended":{"secs_since_epoch":1700000001,"nanos_since_epoch":7},"quality":"clean","stop":4,"incomplete_clean_up":["refund","release"]}"#;
        let run = serde_json::from_str(json).unwrap();
        assert_eq!(String::from_utf8(to_bytes(&run).unwrap()).unwrap(), json);
        run
    }

    /// The same JSON without its times.
    fn without_times(mut json: Value) -> Value {
        json["started"] = Value::Null;
        json["ended"] = Value::Null;
        json["deadline"] = Value::Null;
        json["waits_for"]["until"] = Value::Null;
        json
    }

    #[test]
    fn the_file_has_the_fields_of_a_summary_and_times_as_numbers() {
        let run = full();
        let (file, people) =
            (serde_json::from_slice(&to_bytes(&run).unwrap()), serde_json::to_value(&run).unwrap());
        assert_eq!(people["ended"], "2023-11-14T22:13:21.000000007Z");
        assert_eq!(people["waits_for"]["until"], "2023-11-14T22:13:29.000000008Z");
        assert_eq!(without_times(file.unwrap()), without_times(people));
    }

    #[test]
    fn both_forms_are_read() {
        let run = full();
        let people = serde_json::to_vec(&run).unwrap();
        assert_eq!(serde_json::from_slice::<RunSummary>(&people).unwrap(), run);
        assert_eq!(serde_json::from_slice::<RunSummary>(&to_bytes(&run).unwrap()).unwrap(), run);
    }
}
