//! A server over TCP: one JSON object per line. It starts runs, sends to them, replies, and shows them to viewers that
//! may go and come back (S56, S63, S64).
//!
//! ```text
//! {"do":"start","workflow":"Trip","event":"Book","data":{…},"run":"t-1"}   ─▶ {"run":"t-1"}
//! {"do":"send","run":"t-1","event":"Paid","data":{…}}                        ─▶ {"ok":true}
//! {"do":"reply","run":"t-1","request":2,"data":true}                         ─▶ {"ok":true}
//! {"do":"watch","run":"t-1","after":{"epoch":0,"index":3}}                   ─▶ {"ok":true} {"at":{…},"item":{…}} … ended
//! ```

use std::sync::Arc;

use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
use workflow_core::{AnyRun, DisplayItem, DisplayPosition, RunOptions, Seq};

/// The longest line that the server reads.
const LONGEST: usize = 1 << 20;

/// A request of a client.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Ask {
    Start { workflow: String, event: String, data: Value, run: String },
    Send { run: String, event: String, data: Value },
    Reply { run: String, request: Seq, data: Value },
    Watch { run: String, after: Option<DisplayPosition> },
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Serves every connection in a task of its own.
async fn serve(engine: Engine, listener: TcpListener) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(converse(engine.clone(), client));
    }
}

async fn converse(engine: Engine, client: TcpStream) {
    let (lines, mut to) = client.into_split();
    let mut lines = BufReader::new(lines).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let answered = if line.len() > LONGEST {
            Err("the line is too long".into())
        } else {
            answer(&engine, &line, &mut to).await
        };
        let answer = match answered {
            Ok(Some(answer)) => answer,
            // The viewer has seen the end, or has gone.
            Ok(None) => continue,
            Err(error) => json!({ "error": error.to_string() }),
        };
        if write(&mut to, &answer).await.is_err() {
            return;
        }
    }
}

async fn write(to: &mut OwnedWriteHalf, line: &Value) -> std::io::Result<()> {
    to.write_all(format!("{line}\n").as_bytes()).await
}

async fn answer(engine: &Engine, line: &str, to: &mut OwnedWriteHalf) -> Result<Option<Value>, Failed> {
    match serde_json::from_str(line)? {
        Ask::Start { workflow, event, data, run } => {
            let run = engine.start_json(&workflow, &event, data, RunOptions::new().id(run)).await?;
            Ok(Some(json!({ "run": run.id() })))
        }
        Ask::Send { run, event, data } => {
            engine.attach_any(run).await?.send_json(&event, data).await?;
            Ok(Some(json!({ "ok": true })))
        }
        Ask::Reply { run, request, data } => {
            engine.attach_any(run).await?.reply_json(request, data).await?;
            Ok(Some(json!({ "ok": true })))
        }
        Ask::Watch { run, after } => {
            show(&engine.attach_any(run).await?, after, to).await?;
            Ok(None)
        }
    }
}

/// Shows a run until it ends, or until the viewer goes.
async fn show(run: &AnyRun, after: Option<DisplayPosition>, to: &mut OwnedWriteHalf) -> Result<(), Failed> {
    let mut shown = match after {
        Some(position) => run.display_after(position),
        None => run.display(),
    };
    write(to, &json!({ "ok": true })).await?;
    while let Some(item) = shown.next().await {
        write(to, &json!({ "at": shown.position(), "item": item_json(&item)? })).await?;
    }
    Ok(())
}

fn item_json(item: &DisplayItem) -> Result<Value, Failed> {
    Ok(match item {
        DisplayItem::Shown { step, event, .. } => json!({ "shown": event.to_json()?, "by": step }),
        DisplayItem::Received { event } => json!({ "received": event.name(), "data": event.to_json()? }),
        DisplayItem::Asked { request } => {
            json!({ "asked": request.seq(), "what": request.name(), "data": request.data()? })
        }
        DisplayItem::Closed { seq, how } => json!({ "closed": seq, "how": how }),
        DisplayItem::Retracted { step, .. } => json!({ "retracted": step }),
        DisplayItem::Missed { count } => json!({ "missed": count }),
        DisplayItem::Ended { status } => json!({ "ended": status.to_string() }),
        DisplayItem::Child { item, .. } => json!({ "child": item_json(item)? }),
        _ => json!(null),
    })
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Book {
    to: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Progress {
    text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Approve {
    price: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Paid {
    amount: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Booked {
    to: String,
    paid: u32,
}

struct Trip;

#[workflow]
impl Trip {
    #[step]
    async fn offer(&self, book: &Book, display: &Display) -> Approve {
        for text in ["flights", "hotels"] {
            display.show(Progress { text: format!("{text} to {}", book.to) });
        }
        Approve { price: 700 }
    }

    #[step]
    async fn close(&self, book: &Book, _approved: &Reply<Approve>, paid: &Paid, display: &Display) -> Booked {
        display.show(Progress { text: "tickets".to_owned() });
        Booked { to: book.to.clone(), paid: paid.amount }
    }
}

/// A connection of a client.
struct Connection {
    lines: Lines<BufReader<OwnedReadHalf>>,
    to: OwnedWriteHalf,
}

impl Connection {
    async fn to(port: u16) -> Self {
        let (lines, to) = TcpStream::connect(("127.0.0.1", port)).await.unwrap().into_split();
        Self { lines: BufReader::new(lines).lines(), to }
    }

    async fn put(&mut self, line: Value) {
        write(&mut self.to, &line).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn ask(&mut self, line: Value) -> Value {
        self.put(line).await;
        self.next().await
    }

    /// Reads until an item has this key.
    async fn until(&mut self, key: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        while seen.last().is_none_or(|last: &Value| last["item"].get(key).is_none()) {
            seen.push(self.next().await);
        }
        seen
    }
}

// S56, S63, S64
#[tokio::test]
async fn a_viewer_that_comes_back_sees_what_one_that_stayed_saw() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let engine = Engine::builder().workflow(Trip).store(Arc::new(MemoryStore::default())).build().unwrap();
    let server = tokio::spawn(serve(engine, listener));
    let mut client = Connection::to(port).await;
    let start =
        json!({ "do": "start", "workflow": "Trip", "event": "Book", "data": { "to": "Oslo" }, "run": "t-1" });
    assert_eq!(client.ask(start).await, json!({ "run": "t-1" }));

    let watch = json!({ "do": "watch", "run": "t-1" });
    let (mut stays, mut goes) = (Connection::to(port).await, Connection::to(port).await);
    for viewer in [&mut stays, &mut goes] {
        assert_eq!(viewer.ask(watch.clone()).await, json!({ "ok": true }));
    }
    let mut before = goes.until("asked").await;
    let asked = before.last().unwrap().clone();
    assert_eq!(asked["item"]["data"], json!({ "price": 700 }));
    drop(goes);

    let wrong = json!({ "do": "send", "run": "t-1", "event": "Paid", "data": { "amount": "much" } });
    assert!(client.ask(wrong).await["error"].as_str().unwrap().contains("`amount`"));
    let paid = json!({ "do": "send", "run": "t-1", "event": "Paid", "data": { "amount": 700 } });
    assert_eq!(client.ask(paid).await, json!({ "ok": true }));
    let mut back = Connection::to(port).await;
    let watch = json!({ "do": "watch", "run": "t-1", "after": asked["at"] });
    assert_eq!(back.ask(watch).await, json!({ "ok": true }));
    let reply = json!({ "do": "reply", "run": "t-1", "request": asked["item"]["asked"], "data": true });
    assert_eq!(client.ask(reply.clone()).await, json!({ "ok": true }));
    assert!(client.ask(reply).await["error"].is_string(), "it is closed");
    assert!(client.ask(json!({ "do": "dance" })).await["error"].is_string());

    before.extend(back.until("ended").await);
    let all = stays.until("ended").await;
    assert_eq!(before, all);
    let closed = all.iter().filter(|line| line["item"].get("closed").is_some()).count();
    assert_eq!((closed, &all.last().unwrap()["item"]["ended"]), (1, &json!("completed")));
    server.abort();
}
