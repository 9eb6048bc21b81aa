//! Changes of records in a store that does not keep them exactly.

use std::time::{Duration, SystemTime};

use workflow_core::AnyEvent;
use workflow_core::store::{Record, RecordedEvent};

use super::Fault::{self, *};

/// The part of a batch that a store with this fault keeps.
pub(super) fn alter(fault: Fault, mut records: Vec<Record>) -> Vec<Record> {
    match fault {
        LosesTheLastOfABatch if records.len() > 1 => drop(records.pop()),
        ReversesBatches => records.reverse(),
        CutsBatches => records.truncate(500),
        RoundsTimes => records.iter_mut().for_each(round),
        TakesNullForNothing => records.retain(|record| json_length(record) != Some(4)),
        CutsEvents => {
            for record in &mut records {
                if json_length(record).is_some_and(|length| length > 1 << 16) {
                    cut(record);
                }
            }
        }
        WritesBeforeItSerialises => {
            records = records.into_iter().map_while(|record| json_length(&record).map(|_| record)).collect();
        }
        HidesWhatIsUnserialisable => records.retain(|record| json_length(record).is_some()),
        _ => {}
    }
    records
}

/// The length of its event's JSON, if it has one.
fn json_length(record: &Record) -> Option<usize> {
    match record {
        Record::EventLogged { event, .. } => event.to_json().ok().map(|json| json.to_string().len()),
        _ => Some(0),
    }
}

fn cut(record: &mut Record) {
    #[derive(Debug, serde::Serialize, serde::Deserialize, workflow_core::Event)]
    struct Cut(String);

    if let Record::EventLogged { event, .. } = record {
        let text = event.to_json().unwrap().as_str().unwrap()[..1 << 16].to_owned();
        *event = RecordedEvent::new(AnyEvent::new(Cut(text)));
    }
}

fn round(record: &mut Record) {
    let (Record::EventLogged { at, .. } | Record::RunEnded { at, .. } | Record::ExecutionFailed { at, .. }) =
        record
    else {
        return;
    };
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    *at = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(since.as_millis()).unwrap());
}
