//! Events of an older shape, of a newer one, and of unknown types (S43).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use workflow_core::errors::Incompatibility;
use workflow_core::prelude::*;
use workflow_core::store::{
    EngineId, EventStore, JOURNAL_FORMAT, MemoryStore, Position, Record, Retention, RunQuery, RunSummary,
    StoreError, StoreFuture, StoredRun, Write,
};
use workflow_core::{ResumeError, RunId, RunOptions, RunStatus};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Note};

/// Events as they were.
mod old {
    use super::*;

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    pub(super) struct Line(pub(super) String);

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(request, reply = u32)]
    pub(super) struct HowMany(pub(super) String);

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    pub(super) struct Rang(pub(super) u32);

    pub(super) struct Shop;

    #[workflow]
    impl Shop {
        #[step]
        async fn begin(&self, _begin: &Begin) -> (Line, Timer<Rang>, HowMany) {
            let timer = Timer::after(Duration::from_mins(1), Rang(5));
            (Line("pens".into()), timer, HowMany("pens".into()))
        }

        #[step]
        async fn end(&self, _line: &Line, count: &Reply<HowMany>, rang: &Rang, note: &Note) -> Done {
            Done(**count + rang.0 + note.0)
        }
    }
}

/// The present events, with `upgrade` for older ones.
macro_rules! later {
    ($name:ident, $($upgrade:tt)*) => {
        mod $name {
            use super::*;

            #[derive(Debug, Clone, Serialize, Deserialize, Event)]
            #[event($($upgrade)*)]
            pub(super) struct Line {
                pub(super) words: Vec<String>,
            }

            #[derive(Debug, Clone, Serialize, Deserialize, Event)]
            #[event(request, reply = u32, version = 2, upgrade = named)]
            pub(super) struct HowMany {
                pub(super) name: String,
            }

            #[derive(Debug, Clone, Serialize, Deserialize, Event)]
            #[event(version = 3, upgrade = super::rung)]
            pub(super) struct Rang {
                pub(super) times: u32,
            }

            fn named(version: u32, data: Value) -> Result<Value, std::fmt::Error> {
                if version == 1 { Ok(super::object("name", data)) } else { Err(std::fmt::Error) }
            }

            pub(super) struct Shop;

            #[workflow]
            impl Shop {
                #[step]
                async fn begin(&self, _begin: &Begin) -> (Line, Timer<Rang>, HowMany) {
                    let timer = Timer::after(Duration::from_mins(1), Rang { times: 1 });
                    (Line { words: vec!["ink".into()] }, timer, HowMany { name: "ink".into() })
                }

                #[step]
                async fn end(&self, line: &Line, count: &Reply<HowMany>, rang: &Rang, note: &Note) -> Done {
                    assert_eq!(line.words, [count.request().name.as_str()]);
                    Done(**count + rang.times + note.0)
                }
            }
        }
    };
}

/// The value as the only field of an object.
fn object(name: &str, value: Value) -> Value {
    Value::Object([(name.to_owned(), value)].into_iter().collect())
}

fn rung(version: u32, data: Value) -> Result<Value, String> {
    if version == 1 { Ok(object("times", data)) } else { Err(format!("nobody knows version {version}")) }
}

fn words(version: u32, data: Value) -> Result<Value, String> {
    assert_eq!(version, 1, "what has this version is not upgraded");
    if data.is_string() { Ok(object("words", Value::Array(vec![data]))) } else { Err("no text".to_owned()) }
}

fn refuses(version: u32, _data: Value) -> Result<Value, String> {
    Err(format!("lines of version {version} were a mistake"))
}

fn panics(version: u32, data: Value) -> Result<Value, String> {
    assert!(data.is_number(), "version {version} has a number");
    if version == 1 { Ok(data) } else { Err("no number".to_owned()) }
}

later!(upgrading, version = 2, upgrade = super::words);
later!(not_upgrading, version = 2);
later!(refusing, version = 2, upgrade = super::refuses);
later!(panicking, version = 2, upgrade = super::panics);
later!(unfit, version = 2, upgrade = super::rung);

fn engine<W: Workflow>(workflow: W, store: &Arc<MemoryStore>, clock: &VirtualClock) -> Engine {
    let engine = Engine::builder().workflow(workflow).store(Arc::clone(store));
    engine.clock(clock.clone()).build().unwrap()
}

/// A waiting run, with its bytes changed by a function.
async fn left<W: Workflow>(workflow: W, alter: fn(String) -> String) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::default());
    let clock = VirtualClock::new();
    let engine = engine(workflow, &store, &clock);
    let run = engine.start_with::<W>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    run.settled().await;
    let records = store.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
    let text = alter(serde_json::to_string(&records).unwrap());
    let kept = Arc::new(MemoryStore::default());
    let records: Vec<Record> = serde_json::from_str(&text).unwrap();
    let run = RunSummary::running(W::TABLE.name(), std::time::UNIX_EPOCH);
    kept.append(&"r".into(), Position(0), Write { records, run }).await.unwrap();
    kept
}

fn as_it_is(text: String) -> String {
    text
}

/// The reason why the workflow cannot resume the run.
async fn refused<W: Workflow>(workflow: W, store: &Arc<MemoryStore>) -> String {
    let attached = engine(workflow, store, &VirtualClock::new()).attach::<W>("r").await;
    let Err(ResumeError::Incompatible { difference, .. }) = attached else { panic!("the run continues") };
    difference.to_string()
}

// S43
#[tokio::test(start_paused = true)]
async fn events_in_a_log_in_timers_and_of_requests_are_upgraded() {
    let store = left(old::Shop, as_it_is).await;
    let clock = VirtualClock::new();
    let engine = engine(upgrading::Shop, &store, &clock);
    let run = engine.attach::<upgrading::Shop>("r").await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let request = run.requests().await.unwrap()[0].id::<upgrading::HowMany>().unwrap();
    run.reply(request, 100).await.unwrap();
    run.send(Note(20)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    assert_eq!(run.outcome().await.unwrap(), Done(125));
    // Old records stay unchanged, and new records have the new version.
    let written = serde_json::to_string(&engine.history(run.id()).await.unwrap()).unwrap();
    assert!(written.contains(r#"{"type":"Line","data":"pens"}"#), "{written}");
    assert!(written.contains(r#"{"type":"Rang","version":3,"data":{"times":5}}"#), "{written}");
    // It can be read back in this form too.
    let bytes: Vec<Record> = serde_json::from_str(&written).unwrap();
    assert_eq!(serde_json::to_string(&bytes).unwrap(), written);
}

// S43
#[tokio::test(start_paused = true)]
async fn an_older_version_that_cannot_be_upgraded_is_refused_with_the_reason() {
    let store = left(old::Shop, as_it_is).await;
    let cannot =
        "at record 2 of its journal, event `Line` was logged, which cannot be read as what it is now: ";
    let told = [
        (
            refused(not_upgrading::Shop, &store).await,
            "it has version 1, and the type reads version 2 alone: upgrade it with `#[event(version = 2, upgrade = …)]`",
        ),
        (
            refused(refusing::Shop, &store).await,
            "its upgrade from version 1 to version 2 failed: lines of version 1 were a mistake",
        ),
        (
            refused(panicking::Shop, &store).await,
            "its upgrade from version 1 to version 2 failed: it panicked",
        ),
        (refused(unfit::Shop, &store).await, "missing field `words` at line 1 column 16"),
    ];
    for (told, reason) in told {
        assert_eq!(told, format!("{cannot}{reason}"));
    }
}

// S41, S43
#[tokio::test(start_paused = true)]
async fn a_later_version_than_the_workflow_knows_is_refused() {
    let store = left(upgrading::Shop, as_it_is).await;
    let attached = engine(old::Shop, &store, &VirtualClock::new()).attach::<old::Shop>("r").await;
    let Err(ResumeError::Incompatible { difference: Incompatibility::Table(differences), .. }) = attached
    else {
        panic!("the run continues")
    };
    let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
    let expected = [
        "event `Line` has version 1 now, and had 2",
        "event `Rang` has version 1 now, and had 3",
        "event `HowMany` has version 1 now, and had 2",
    ];
    assert_eq!(told, expected);
    // Independent of the table.
    let store =
        left(old::Shop, |text| text.replace(r#""type":"Line","#, r#""type":"Line","version":7,"#)).await;
    let told = refused(old::Shop, &store).await;
    let reason = "it has version 7, and the type has version 1: a later program has written it";
    assert!(told.ends_with(reason), "{told}");
}

// S43
#[tokio::test(start_paused = true)]
async fn an_unknown_name_is_reported_and_kept_as_it_was_written() {
    let raw = r#"{"type":"Ghost","data":{"b":1.50,  "a":[100000000000000000000]}}"#;
    let store = left(old::Shop, |text| {
        text.replace(
            r#"{"type":"Line","data":"pens"}"#,
            r#"{"type":"Ghost","data":{"b":1.50,  "a":[100000000000000000000]}}"#,
        )
    })
    .await;
    let told = refused(old::Shop, &store).await;
    assert!(told.contains("event `Ghost` was logged, which the workflow does not know any more"), "{told}");
    let engine = engine(old::Shop, &store, &VirtualClock::new());
    let history = engine.history(&"r".into()).await.unwrap();
    let ghost = history.iter().find_map(|record| match record {
        Record::EventLogged { event, .. } if event.name() == "Ghost" => Some(event),
        _ => None,
    });
    let ghost = ghost.unwrap();
    assert!(ghost.value().is_none(), "nobody can have read it");
    assert_eq!(serde_json::to_string(ghost).unwrap(), raw);
}

/// The journal of a run without a writer, as lines.
#[derive(Debug)]
struct Lines(Vec<String>);

impl EventStore for Lines {
    fn append(&self, _run: &RunId, _expected: Position, _batch: Write) -> StoreFuture<()> {
        StoreFuture::ready(Err(StoreError::unavailable(std::fmt::Error)))
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        let lines = self.0.iter().enumerate().skip(usize::try_from(from.0).unwrap()).take(at_most);
        let record = |(place, line): (usize, &String)| {
            let position = Position::default().after(place);
            serde_json::from_str(line).map_err(|error| StoreError::corrupt(run, position, error))
        };
        StoreFuture::ready(lines.map(record).collect())
    }

    fn runs(&self, _query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        StoreFuture::ready(Ok(Vec::new()))
    }

    fn remove(&self, _run: &RunId) -> StoreFuture<bool> {
        StoreFuture::ready(Ok(false))
    }

    fn retain(&self, _kept: &Retention) -> StoreFuture<u64> {
        StoreFuture::ready(Ok(0))
    }

    fn lease(&self, engine: &EngineId, _duration: Duration) -> StoreFuture<Vec<EngineId>> {
        StoreFuture::ready(Ok(vec![engine.clone()]))
    }
}

/// The error of reading a journal with these lines.
async fn unread(lines: Vec<String>) -> StoreError {
    let engine = Engine::builder().workflow(old::Shop).store(Lines(lines)).build().unwrap();
    let Err(ResumeError::Store(error)) = engine.attach::<old::Shop>("r").await else { panic!("it was read") };
    let history = engine.history(&"r".into()).await.unwrap_err();
    assert_eq!(history.to_string(), error.to_string());
    error
}

#[tokio::test(start_paused = true)]
async fn a_journal_of_a_later_format_is_refused_as_such() {
    let store = left(old::Shop, as_it_is).await;
    let records = store.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
    let lines: Vec<String> = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    let later = |line: &String| line.replacen(r#""format":1"#, r#""format":2"#, 1);

    let mut begun_later = lines.clone();
    begun_later[0] = later(&begun_later[0]);
    let error = unread(begun_later.clone()).await;
    let StoreError::NewerFormat { position, format, known, .. } = error else { panic!("{error}") };
    assert_eq!((position, format, known), (Position(0), 2, JOURNAL_FORMAT));
    // Also with records that this version does not know.
    begun_later.push(r#"{"run_slept":{"for":"ever"}}"#.to_owned());
    let error = unread(begun_later).await;
    assert!(matches!(error, StoreError::NewerFormat { position: Position(0), .. }), "{error}");

    // A later program resumed a run of an earlier one.
    let mut resumed_later = lines.clone();
    let resumed = r#"{"run_resumed":{"format":2,"at":{"secs_since_epoch":946684900,"nanos_since_epoch":0}}}"#;
    resumed_later.extend([resumed.to_owned(), r#"{"run_slept":{"for":"ever"}}"#.to_owned()]);
    let error = unread(resumed_later).await;
    assert_eq!(
        error.to_string(),
        format!(
            "the journal of run `r` has format 2 from record {} on, and this program reads formats up to 1: continue it \
             with the program that wrote it, or a later one",
            lines.len()
        )
    );

    // A merely broken journal is reported as such.
    let mut broken = lines;
    broken.push(r#"{"run_slept":{"for":"ever"}}"#.to_owned());
    assert!(matches!(unread(broken).await, StoreError::Corrupt { .. }));
}
