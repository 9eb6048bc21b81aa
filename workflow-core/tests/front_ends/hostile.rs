//! JSON from strangers: start events, sent events, replies, queued runs and inbox messages (S56, S65, S67). Whatever
//! comes, the answer is a typed error or a run, and an error leaves nothing behind.
//!
//! `HOSTILE_CASES=100000 cargo test -p workflow-core-tests --test front_ends hostile` sets the number of cases.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use fastrand::Rng;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::store::{
    EventStore, Inbox as _, MemoryInbox, MemoryStore, Position, RecordedEvent, RunMessage, RunQuery, Write,
};
use workflow_core::table::RecordedTable;
use workflow_core::{AnyRun, RunError, RunId, RunOptions, RunStatus, SendError, Seq, StartError};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(start)]
struct Form {
    name: String,
    lines: Vec<Line>,
    note: Option<Box<Line>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    price: f64,
    count: u8,
    tags: BTreeMap<String, Option<i64>>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Extra(Line);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Line)]
struct Which;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Taken(usize);

/// Takes a form at once.
struct Desk;

#[workflow]
impl Desk {
    #[step]
    async fn take(&self, form: &Form) -> Taken {
        Taken(form.lines.len())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Open;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Shut;

/// Asks, takes what is sent, and shuts with the first reply that fits.
struct Window;

#[workflow]
impl Window {
    #[step]
    async fn open(&self, _open: &Open) -> Which {
        Which
    }

    #[step]
    async fn note(&self, _extra: &Extra) {}

    #[step]
    async fn shut(&self, _which: &Reply<Which>) -> Shut {
        Shut
    }
}

/// Text that is put into JSON.
const PIECES: [&str; 16] = [
    "null",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"",
    "{",
    "]",
    ",\"count\":3",
    "\\u0000",
    "\\ud800",
    "é",
    ":",
    "true",
    "256",
    "\"name\":",
    " ",
];

/// A text of JSON, mostly near to a form or a part of one.
fn text(rng: &mut Rng) -> String {
    const FORM: &str =
        r#"{"name":"ada","lines":[{"price":1.5,"count":2,"tags":{"a":1,"b":null}}],"note":null}"#;
    const LINE: &str = r#"{"price":2.0,"count":255,"tags":{}}"#;
    let mut text = match rng.u8(..8) {
        0..3 => FORM.to_owned(),
        3..6 => LINE.to_owned(),
        6 => {
            let depth = rng.usize(..400);
            format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
        }
        _ => value(rng, 0).to_string(),
    };
    for _ in 0..rng.usize(..4) {
        let ends = text.char_indices().map(|(at, _)| at).collect::<Vec<_>>();
        let at = ends[rng.usize(..ends.len())];
        let piece = PIECES[rng.usize(..PIECES.len())];
        if rng.bool() {
            text.insert_str(at, piece);
        } else {
            let end = ends.iter().copied().find(|end| *end > at + rng.usize(..6)).unwrap_or(text.len());
            text.replace_range(at..end, piece);
        }
        if text.is_empty() {
            text.push('0');
        }
    }
    text
}

/// Any value, not deep.
fn value(rng: &mut Rng, depth: u8) -> Value {
    match rng.u8(..if depth > 4 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(..)),
        3 => json!(f64::from_bits(rng.u64(..))),
        4 => json!((0..rng.usize(..9)).map(|_| rng.char(..)).collect::<String>()),
        5 => (0..rng.usize(..4)).map(|_| value(rng, depth + 1)).collect(),
        _ => (0..rng.usize(..4)).map(|_| (rng.alphabetic().to_string(), value(rng, depth + 1))).collect(),
    }
}

struct World {
    store: Arc<MemoryStore>,
    inbox: Arc<MemoryInbox>,
    engine: Engine,
    table: RecordedTable,
    rng: Rng,
}

impl World {
    fn new(seed: u64) -> Self {
        let (store, inbox) = (Arc::<MemoryStore>::default(), Arc::<MemoryInbox>::default());
        let builder = Engine::builder().workflow(Desk).workflow(Window).store(Arc::clone(&store));
        let engine = builder.inbox(Arc::clone(&inbox)).build().unwrap();
        let table = engine.hosted().into_iter().find(|hosted| &*hosted.name == "Desk").unwrap().table;
        Self { store, inbox, engine, table, rng: Rng::with_seed(seed) }
    }

    async fn stored(&self) -> usize {
        self.store.runs(&RunQuery::new()).await.unwrap().len()
    }

    async fn length(&self, run: &RunId) -> usize {
        self.store.read(run, Position(0), usize::MAX).await.unwrap().len()
    }

    /// Some JSON, with its text. Other text is not JSON, which is the reader's concern and not the engine's.
    fn json(&mut self) -> (Value, Box<RawValue>) {
        loop {
            let text = text(&mut self.rng);
            if let (Ok(value), Ok(raw)) = (serde_json::from_str(&text), RawValue::from_string(text)) {
                return (value, raw);
            }
        }
    }

    async fn start(&mut self) {
        let (data, _) = self.json();
        let event = ["Form", "Open", "Taken", "", "form"][self.rng.usize(..5)];
        let before = self.stored().await;
        match self.engine.start_json("Desk", event, data, RunOptions::new()).await {
            Ok(run) => drop(run.outcome_any().await.unwrap()),
            Err(error) => {
                assert!(
                    matches!(error, StartError::Unfit { .. } | StartError::UnknownEvent { .. }),
                    "{error:?}"
                );
                assert_eq!(self.stored().await, before);
            }
        }
    }

    async fn queue(&mut self) {
        // Text that `serde_json` takes as raw and not as a value is among it: it is nested deeply.
        let text = text(&mut self.rng);
        let Ok(raw) = RawValue::from_string(text) else { return };
        let version = self.rng.u32(..3);
        let write = Write::queued(
            &self.table,
            RecordedEvent::from_json("Form", version, raw),
            &RunOptions::new(),
            SystemTime::now(),
        );
        match write {
            Err(error) => assert!(matches!(error, StartError::Unfit { .. }), "{error:?}"),
            Ok(write) => {
                let run = RunId::generate();
                self.store.append(&run, Position(0), write).await.unwrap();
                let permit = self.engine.permit("Desk").await.unwrap();
                match self.engine.attach_with(run, permit).await.unwrap().outcome_any().await {
                    Ok(_) | Err(RunError::Past { status: RunStatus::Failed, .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
        }
    }

    async fn send(&mut self, run: &AnyRun) {
        let (data, _) = self.json();
        let before = self.length(run.id()).await;
        match run.send_json(["Extra", "Which", "Form"][self.rng.usize(..3)], data).await {
            Ok(()) | Err(SendError::Ended { .. }) => {}
            Err(error) => {
                assert!(
                    matches!(error, SendError::Unfit { .. } | SendError::UnknownEvent { .. }),
                    "{error:?}"
                );
                assert_eq!(self.length(run.id()).await, before);
            }
        }
    }

    async fn reply(&mut self, run: &AnyRun) {
        let (data, _) = self.json();
        let open = run.requests().await.ok().and_then(|open| Some(open.first()?.seq()));
        let request = open.filter(|_| self.rng.u8(..8) > 0).unwrap_or(Seq(self.rng.u64(..)));
        match run.reply_json(request, data).await {
            Ok(()) => {}
            Err(error) => assert!(
                matches!(
                    error,
                    SendError::UnfitReply { .. } | SendError::NotOpen { .. } | SendError::Ended { .. }
                ),
                "{error:?}"
            ),
        }
    }

    async fn message(&mut self, run: &AnyRun, id: u64) {
        let (data, _) = self.json();
        let message = match self.rng.u8(..3) {
            0 => RunMessage::Send { event: "Extra".into(), data },
            1 => RunMessage::Reply { request: Seq(self.rng.u64(..9)), data },
            _ => RunMessage::Send { event: data.to_string().into(), data },
        };
        self.inbox.put(run.id().clone(), id.to_string(), message).unwrap();
        if self.engine.notify_inbox(run.id()) {
            while !self.inbox.pending(run.id(), 1).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        }
    }
}

// S56, S65, S67
#[tokio::test]
async fn json_from_strangers_is_refused_with_typed_errors_and_leaves_nothing() {
    let cases = std::env::var("HOSTILE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_500);
    let mut case = 0;
    while case < cases {
        let mut world = World::new(case);
        let mut window: Option<AnyRun> = None;
        for _ in 0..250 {
            case += 1;
            let run = match &window {
                Some(run) if !run.status().is_ended() => run.clone(),
                _ => world.engine.start_json("Window", "Open", (), RunOptions::new()).await.unwrap(),
            };
            window = Some(run.clone());
            run.settled().await;
            match world.rng.u8(..5) {
                0 => world.start().await,
                1 => world.queue().await,
                2 => world.send(&run).await,
                3 => world.reply(&run).await,
                _ => world.message(&run, case).await,
            }
        }
        if let Some(run) = window {
            let _ = run.cancel("over").await;
        }
        let left = world.engine.running();
        assert!(left.is_empty(), "{left:?}");
        assert!(world.store.runs(&RunQuery::new().open()).await.unwrap().is_empty());
    }
}
