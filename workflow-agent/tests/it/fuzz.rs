//! Input of every kind at the open sides of the crate: arguments of tools, stored sessions, chats of clients, and texts for
//! terminals. A plain run tries a few hundred inputs of each; `BOLERO_RANDOM_ITERATIONS` and `BOLERO_RANDOM_TEST_TIME_MS`
//! set more.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use workflow_agent::model::{Finish, ModelReply, Part, ScriptedModel, ScriptedReply, ToolUse};
use workflow_agent::prelude::*;
use workflow_agent::terminal_safe;
use workflow_agent::tool::FnTool;
use workflow_chat::ChatTurn;

use crate::lives::{Disk, life};
use crate::pairing;
use crate::parts::{City, agent, result, scripted};

/// Tries inputs of a type.
macro_rules! for_each {
    ($iterations:expr, $of:ty, $try:expr) => {
        bolero::check!()
            .with_iterations($iterations)
            .with_test_time(Duration::from_mins(1))
            .with_type::<$of>()
            .for_each($try)
    };
}

/// Choices out of bytes; zeros once these are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[usize::from(self.byte()) % all.len()]
    }

    fn number(&mut self) -> u64 {
        let near = u64::from(self.byte());
        match self.byte() % 6 {
            0 => u64::MAX - near,
            1 => near << 32,
            2 => i64::MAX.unsigned_abs() + near,
            3 => 1_000_000_000_000 - 1 + near,
            _ => near,
        }
    }

    fn text(&mut self, words: &[&str]) -> String {
        match self.byte() % 4 {
            0 => {
                let bytes: Vec<u8> = (0..self.byte() % 16).map(|_| self.byte()).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            }
            _ => (*self.of(words)).to_owned(),
        }
    }

    fn json(&mut self, words: &[&str], depth: u8) -> Value {
        match self.byte() % if depth == 0 { 7 } else { 11 } {
            0 => Value::Null,
            1 => json!(self.byte().is_multiple_of(2)),
            2 => json!(self.number()),
            3 => json!(-i64::from(self.byte())),
            4 => json!(f64::from(self.byte()) / 7.0),
            5 | 6 => json!(self.text(words)),
            7 | 8 => (0..self.byte() % 4).map(|_| self.json(words, depth - 1)).collect(),
            _ => {
                let fields = 0..self.byte() % 5;
                let fields = fields.map(|_| (self.text(words), self.json(words, depth - 1)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// Replaces, removes or adds something somewhere.
    fn change(&mut self, value: &mut Value, words: &[&str]) {
        let goes_on = !self.byte().is_multiple_of(8);
        match value {
            Value::String(text) if goes_on => *text = self.text(words),
            Value::Array(items) if goes_on && !items.is_empty() => {
                let at = usize::from(self.byte()) % items.len();
                self.change(&mut items[at], words);
            }
            Value::Object(fields) if goes_on && !fields.is_empty() => {
                let at = usize::from(self.byte()) % fields.len();
                let key = fields.keys().nth(at).expect("it is one of them").clone();
                match self.byte() % 8 {
                    0 => drop(fields.remove(&key)),
                    1 => drop(fields.insert(self.text(words), self.json(words, 2))),
                    _ => self.change(&mut fields[&key], words),
                }
            }
            value => *value = self.json(words, 3),
        }
    }
}

/// No part of an error tells of a panic.
fn assert_clear(error: &dyn Error) {
    let mut text = error.to_string();
    assert!(!text.is_empty());
    let mut source = error.source();
    while let Some(next) = source {
        text.push_str(&next.to_string());
        source = next.source();
    }
    assert!(!text.contains("panic"), "{text}");
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Trip {
    city: String,
    days: Option<u8>,
    #[serde(default)]
    stops: Vec<Stop>,
    kind: Kind,
    notes: BTreeMap<String, i32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Stop {
    name: String,
    nights: u16,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
enum Kind {
    Train,
    Plane { airline: String },
}

/// A10, A6
#[test]
fn any_arguments_run_the_tool_or_are_an_error_result() {
    let words =
        ["city", "days", "stops", "name", "nights", "kind", "by", "train", "plane", "airline", "notes"];
    let (ran, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for_each!(300, Vec<u8>, |bytes| {
        let mut choices = Choices(bytes);
        let mut arguments = json!({
            "city": "Bern", "days": 3, "kind": {"by": "plane", "airline": "x"}, "notes": {"a": 1},
            "stops": [{"name": "Biel", "nights": 2}]
        });
        match choices.byte() % 4 {
            0 => arguments = choices.json(&words, 4),
            1 => arguments = json!(String::from_utf8_lossy(bytes)),
            _ => (0..=choices.byte() % 3).for_each(|_| choices.change(&mut arguments, &words)),
        }
        let got: Arc<Mutex<Vec<Trip>>> = Arc::default();
        let seen = Arc::clone(&got);
        let book = FnTool::new("book", "Books a trip.", move |trip: Trip, _| {
            seen.lock().unwrap().push(trip);
            async { Ok::<_, ToolError>("booked") }
        });
        let call = Part::Call(ToolUse::new("1", "book", arguments.clone()));
        let replies =
            [ScriptedReply::reply(ModelReply::new(vec![call], Finish::ToolUse)), ScriptedReply::text("done")];
        let model = scripted(replies);
        let agent = agent(&model).tool(book).build().unwrap();
        assert_eq!(life(agent.ask("go")).unwrap().text, "done");
        let request = &model.requests()[1];
        pairing::check(request).unwrap();
        let (result, got) = (result(request), got.lock().unwrap().clone());
        // A text may be the JSON of an object.
        let object = match &arguments {
            Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            other => other.clone(),
        };
        match &got[..] {
            [trip] => {
                ran.fetch_add(1, SeqCst);
                assert!(!result.is_error && result.text.contains("booked"), "{}", result.text);
                assert_eq!(serde_json::from_value::<Trip>(object).ok().as_ref(), Some(trip), "{arguments}");
            }
            [] => {
                refused.fetch_add(1, SeqCst);
                let says = ["the arguments do not fit", "the arguments cannot be read"];
                let is_clear = says.iter().any(|says| result.text.contains(says));
                assert!(result.is_error && is_clear, "{arguments}: {}", result.text);
                assert!(!result.text.contains("panic"), "{}", result.text);
            }
            more => panic!("{arguments} ran {} times", more.len()),
        }
    });
    let (ran, refused) = (ran.into_inner(), refused.into_inner());
    assert!(ran > 10 && refused > 50, "{ran} ran and {refused} were refused");
}

/// An agent that answers with the last question.
fn echo() -> ScriptedModel {
    ScriptedModel::respond(|request| {
        pairing::check(request).unwrap();
        match request.messages.len() % 3 {
            0 => ScriptedReply::call("c", "look", json!({"city": "A"})),
            _ => ScriptedReply::text("answer"),
        }
    })
}

fn looking(model: &ScriptedModel) -> Agent {
    let look = FnTool::new("look", "Looks.", |_: City, _| async { Ok::<_, ToolError>("seen") });
    Agent::builder("a").model(model.clone()).tool(look.read_only()).build().unwrap()
}

/// A40, A41, A42
#[test]
fn garbage_among_the_stored_values_of_a_session_is_a_clear_error_or_left_out() {
    let words = [
        "kind",
        "user",
        "assistant",
        "said",
        "results",
        "summary",
        "marker",
        "history",
        "given",
        "note",
        "steer",
        "text",
        "parts",
        "call",
        "keep",
        "seen",
        "run",
        "entries",
        "nonce",
        "started",
        "last",
        "count",
        "s",
        "t.a.s.1",
    ];
    let refused = AtomicUsize::new(0);
    for_each!(200, Vec<u8>, |bytes| {
        let mut choices = Choices(bytes);
        let (disk, model) = (Disk::default(), echo());
        let agent = looking(&model);
        let key = life(async {
            let engine = disk.healthy().engine(&agent);
            let session = Session::of(&engine, &agent).thread("t").id("s");
            for n in 0..3 {
                session.say(format!("question {n}")).await.unwrap().outcome().await.unwrap();
            }
            let context = engine.thread_context("t");
            let keys = context.list(Some("agent/session/"), 50).await.unwrap();
            let keys: Vec<_> =
                keys.into_iter().filter(|(key, _)| key.starts_with("agent/session/")).collect();
            assert!(keys.len() >= 4, "{keys:?}");
            let (key, value) = choices.of(&keys);
            let mut value = value.to_json().unwrap();
            match choices.byte() % 4 {
                0 => value = choices.json(&words, 4),
                _ => (0..=choices.byte() % 3).for_each(|_| choices.change(&mut value, &words)),
            }
            // Keys of exchanges that never were, too.
            let key = match choices.byte() % 6 {
                0 => format!("agent/session/a.s/x/{:012}", choices.number()),
                1 => format!("agent/session/a.s/x/{}", choices.text(&words)),
                _ => key.clone(),
            };
            context.set(&key, value).await.unwrap();
            key
        });
        // A process that remembers nothing of the session.
        life(async {
            let engine = disk.healthy().engine(&agent);
            let session = Session::of(&engine, &agent).thread("t").id("s");
            let mut errors = 0;
            let mut note = |error: &dyn Error| {
                assert_clear(error);
                errors += 1;
            };
            if let Err(error) = session.exchanges(0, 1_000).await {
                note(&error);
            }
            if let Err(error) = session.open_run().await {
                note(&error);
            }
            if let Err(error) = session.fork("copy").await {
                note(&error);
            }
            match session.say("another question").await {
                Err(error) => note(&error),
                Ok(run) => match run.outcome().await {
                    Err(error) => note(&error),
                    Ok(Outcome::Stopped(stopped)) => {
                        assert!(!stopped.reason.to_string().contains("panic"), "{key}: {}", stopped.reason);
                    }
                    Ok(_) => {}
                },
            }
            if let Err(error) = session.exchanges(0, 1_000).await {
                note(&error);
            }
            refused.fetch_add(usize::from(errors > 0), SeqCst);
        });
    });
    assert!(refused.into_inner() > 20, "too few were refused");
}

/// A91, A6
#[test]
fn any_chat_of_a_client_is_answered_or_has_an_outcome_that_tells_why_not() {
    let words = [
        "messages",
        "role",
        "content",
        "user",
        "assistant",
        "system",
        "developer",
        "tool",
        "tool_calls",
        "tool_call_id",
        "id",
        "function",
        "name",
        "arguments",
        "type",
        "text",
        "image_url",
        "url",
        "same",
        "look",
        "{\"city\": 1}",
        "</data>",
        " ",
        "data:image/png;base64,AAAA",
        "data:;base64,",
        "parameters",
    ];
    let (read, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for_each!(1_000, Vec<u8>, |bytes| {
        let mut choices = Choices(bytes);
        let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{\"city\": \"A\"}"}});
        let mut chat = json!({"messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Warm?"}, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},
            {"role": "assistant", "content": null, "tool_calls": [call("1"), call("2")]},
            {"role": "tool", "tool_call_id": "2", "content": "two"},
            {"role": "tool", "tool_call_id": "1", "content": "one"},
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "And now?"},
        ]});
        match choices.byte() % 8 {
            0 => chat = json!({"messages": choices.json(&words, 4)}),
            _ => (0..=choices.byte() % 4).for_each(|_| choices.change(&mut chat, &words)),
        }
        let Ok(turn) = serde_json::from_value::<ChatTurn>(chat.clone()) else { return };
        read.fetch_add(1, SeqCst);
        let model = echo();
        let agent = looking(&model);
        life(async {
            let engine = Disk::default().healthy().engine(&agent);
            let run = engine.start::<Agent>(turn).await.unwrap();
            match run.outcome().await.unwrap() {
                Outcome::Stopped(stopped) => {
                    assert!(!stopped.reason.to_string().contains("panic"), "{chat}: {}", stopped.reason);
                }
                _ => drop(answered.fetch_add(1, SeqCst)),
            }
        });
        for request in model.requests() {
            pairing::check(&request).unwrap_or_else(|why| panic!("{chat}: {why}"));
            #[cfg(feature = "providers")]
            crate::conversations::fits_every_provider(&request).unwrap_or_else(|why| panic!("{chat}: {why}"));
        }
    });
    let (read, answered) = (read.into_inner(), answered.into_inner());
    assert!(read > 50 && answered > 20, "{answered} of {read}");
}

/// A19
#[test]
fn a_text_that_is_safe_for_terminals_has_no_control_characters_and_stays_as_it_is() {
    let pieces = [
        "\u{1b}[", "\u{1b}]", "\u{1b}P", "\u{1b}", "\u{9b}", "\u{9d}", "\u{90}", "\u{9c}", "\u{7}",
        "\u{202e}", "\u{2066}", "\u{61c}", "\n", "\t", "\r", "\0", "\u{7f}", "31;1m", "K", ";", "0", " ",
        "text", "é", "🦀", "\\",
    ];
    for_each!(3_000, (Vec<u8>, String), |(bytes, text)| {
        let mut all: String = bytes.iter().map(|byte| pieces[usize::from(*byte) % pieces.len()]).collect();
        all.insert_str(0, text);
        let safe = terminal_safe(&all);
        let is_control = |c: char| {
            (c.is_control() && c != '\n' && c != '\t')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
        };
        assert!(!safe.contains(is_control), "{all:?} became {safe:?}");
        assert_eq!(terminal_safe(&safe), safe, "{all:?}");
        assert!(safe.len() <= all.len());
        if !all.contains(is_control) {
            assert_eq!(safe, all);
        }
    });
}
