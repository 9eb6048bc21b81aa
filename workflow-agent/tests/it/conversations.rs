//! Random conversations: every request that a model receives is valid for every provider (A6), also in the form that three
//! of them get, and continues the one before (A7). `CONVERSATIONS` sets their number, and `CONVERSATION` the seed of a
//! single one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use workflow_agent::entry::Entry;
use workflow_agent::judge::{Candidate, Judge, Judgement, Verdict};
use workflow_agent::model::{
    Finish, Message, ModelError, ModelLimits, ModelReply, ModelRequest, Part, ScriptedModel, ScriptedReply,
    ToolUse, Usage,
};
use workflow_agent::prelude::*;
use workflow_agent::tool::{FnTool, ToolOutput};
use workflow_agent::{Prompt, SessionError, WhenBusy};
use workflow_core::StepError;

use crate::lives::{Disk, Fails, Lost, Process, life, moment};
use crate::pairing;

/// The number of conversations without `CONVERSATIONS`.
const CONVERSATIONS: u64 = 25;

/// A40, A6, A7, A53, A80
#[test]
fn every_request_of_random_conversations_is_valid_and_continues_the_one_before() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match variable("CONVERSATION") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("CONVERSATIONS").unwrap_or(CONVERSATIONS),
    };
    let mut found = Found::default();
    for seed in seeds.clone() {
        let conversation = std::panic::catch_unwind(|| conversation(seed));
        let one = conversation
            .unwrap_or_else(|_| panic!("conversation {seed} failed: repeat it with CONVERSATION={seed}"));
        found.add(&one);
    }
    // Otherwise the test shows nothing.
    if seeds.end - seeds.start >= CONVERSATIONS {
        // So many of sixty conversations.
        let count = usize::try_from(seeds.end - seeds.start).unwrap();
        let beyond = |found: usize, of_sixty: usize| found * 60 > of_sixty * count;
        assert!(beyond(found.requests, 500) && beyond(found.calls, 300), "{found:?}");
        let kinds = [found.summaries, found.markers, found.steers, found.errors];
        assert!(kinds.into_iter().all(|kind| beyond(kind, 10)), "{found:?}");
        assert!(beyond(found.crashes, 20) && beyond(found.cancelled, 5), "{found:?}");
    }
}

/// The kinds of things that the conversations had.
#[derive(Debug, Default)]
struct Found {
    requests: usize,
    calls: usize,
    summaries: usize,
    markers: usize,
    steers: usize,
    errors: usize,
    crashes: usize,
    cancelled: usize,
}

impl Found {
    fn add(&mut self, one: &Self) {
        self.requests += one.requests;
        self.calls += one.calls;
        self.summaries += one.summaries;
        self.markers += one.markers;
        self.steers += one.steers;
        self.errors += one.errors;
        self.crashes += one.crashes;
        self.cancelled += one.cancelled;
    }

    fn request(&mut self, request: &ModelRequest) {
        self.requests += 1;
        for message in &request.messages {
            let text = message.text();
            self.summaries += usize::from(text.starts_with("[Summary"));
            self.markers += usize::from(text.starts_with("[Phase"));
            self.steers += usize::from(text.starts_with("<data source=\"message of the user"));
            if let Message::Results(results) = message {
                self.calls += results.len();
                self.errors += results.iter().filter(|result| result.is_error).count();
            }
        }
    }
}

/// A judge that wants a third of the answers again.
struct Moody(u64);

impl Judge for Moody {
    fn judge<'a>(&'a self, candidate: &'a Candidate) -> BoxFuture<'a, Result<Judgement, StepError>> {
        let sum = candidate.text.bytes().fold(self.0, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        let verdict =
            if sum.is_multiple_of(3) { Verdict::Retry("Be clearer.".into()) } else { Verdict::Accept };
        async move { Ok(verdict.into()) }.boxed()
    }
}

/// Replies by the content of the request, so that a repeated call after a crash gets the same reply.
fn model(seed: u64, window: u64) -> ScriptedModel {
    let failures: Mutex<HashMap<u64, u32>> = Mutex::default();
    let reply = move |request: &ModelRequest| {
        let text = format!("{}{:?}", request.system, request.messages);
        let hash =
            text.bytes().fold(seed ^ 0x9e37, |sum, byte| sum.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
        let mut rng = Rng::with_seed(hash);
        let failed = {
            let mut failures = failures.lock().unwrap();
            let count = failures.entry(hash).or_default();
            *count += 1;
            *count
        };
        let size = text.len() as u64 / 4;
        if request.system.starts_with("You summarise") {
            return match rng.u8(0..8) {
                0 if failed == 1 => ScriptedReply::text(" "),
                1 => ScriptedReply::fail(ModelError::context_limit("the summary is too long")),
                _ => ScriptedReply::text("a summary").usage(Usage::new(size, 5)),
            };
        }
        let delay = Duration::from_millis(rng.u64(0..20));
        let reply = match rng.u8(0..20) {
            0 if failed == 1 => ScriptedReply::fail(ModelError::transient("busy")),
            1 if failed == 1 => ScriptedReply::broken(["half"], None),
            2 if size > window / 4 => ScriptedReply::fail(ModelError::context_limit("too long")),
            3 => ScriptedReply::text("no").finish(Finish::Refusal),
            4 => ScriptedReply::text("cut o").finish(Finish::Length),
            5 => ScriptedReply::reply(ModelReply::new(calls(&mut rng), Finish::Length)),
            6..=9 => ScriptedReply::text(format!("answer {}", rng.u32(..))),
            10 => ScriptedReply::reply(ModelReply::new(
                vec![
                    Part::Thought { text: "hm".into(), signature: None },
                    Part::Text(format!("so {}", rng.u32(..))),
                ],
                Finish::Stop,
            )),
            _ => ScriptedReply::reply(ModelReply::new(calls(&mut rng), Finish::ToolUse)),
        };
        let reply = if rng.bool() { reply.usage(Usage::new(size * rng.u64(1..4) / 2, 10)) } else { reply };
        reply.after(delay)
    };
    ScriptedModel::respond(reply).limits(ModelLimits::new(window, 200))
}

/// Calls that may be unknown, unfit, or of one id.
fn calls(rng: &mut Rng) -> Vec<Part> {
    let mut parts = Vec::new();
    if rng.bool() {
        parts.push(Part::Thought { text: "I think".into(), signature: None });
    }
    parts.push(Part::Text([" ", "Let me see.", ""][rng.usize(0..3)].to_owned()));
    for _ in 0..rng.usize(1..5) {
        let name = ["look", "act", "ask", "fail", "nothing", "long"][rng.usize(0..6)];
        let id = ["1", "1", "call", "", "not fit!", "x"][rng.usize(0..6)];
        let arguments = match rng.u8(0..8) {
            0 => json!({}),
            1 => json!("no json {"),
            _ => json!({ "at": format!("{}", rng.u32(..)) }),
        };
        parts.push(Part::Call(ToolUse::new(id, name, arguments)));
    }
    parts
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct At {
    at: String,
}

fn agent(rng: &mut Rng, model: ScriptedModel) -> Agent {
    let tool =
        |name: &str| FnTool::new(name, "Does it.", |at: At, _| async move { Ok::<_, ToolError>(at.at) });
    let fail =
        FnTool::new("fail", "Fails.", |at: At, _| async move { Err::<ToolOutput, _>(ToolError::new(at.at)) });
    let long =
        FnTool::new("long", "Is long.", |at: At, _| async move { Ok::<_, ToolError>(at.at.repeat(60)) });
    let mut builder = Agent::builder("a")
        .model(model)
        .identity("You do things.")
        .tool(tool("look").read_only())
        .tool(tool("act"))
        .tool(tool("ask").approval(Approval::Always))
        .tool(fail)
        .tool(long.read_only())
        .max_turns(rng.u32(2..12))
        .approval_expires(Duration::from_mins(1));
    if rng.bool() {
        let phase = Phase::new("second").focus("The second one.").tools(["look", "long"]);
        let phase = if rng.bool() { phase.isolated() } else { phase };
        builder = builder.phase(Phase::new("first").focus("The first one.")).phase(phase);
        if rng.bool() {
            builder = builder.phase(Phase::new("third"));
        }
    }
    if rng.bool() {
        builder = builder.judge(Moody(rng.u64(..)));
    }
    if rng.bool() {
        builder = builder.closing_call();
    }
    builder.build().unwrap()
}

/// One conversation: lives of a process, in each some messages to sessions of a thread.
fn conversation(seed: u64) -> Found {
    let mut rng = Rng::with_seed(seed);
    let window = [600, 1_500, 4_000, 100_000][rng.usize(0..4)];
    let model = model(seed, window);
    let agent = agent(&mut rng, model.clone());
    let (disk, mut found) = (Disk::default(), Found::default());
    let mut sessions: Vec<Arc<str>> = vec!["s".into()];
    for _ in 0..rng.usize(1..5) {
        let lost = if rng.bool() { Lost::Operation } else { Lost::Answer };
        let fails = if rng.u8(0..3) == 0 { Fails::Never } else { Fails::From(rng.u64(5..120), lost) };
        let process = disk.process(fails);
        life(converse(&mut rng, &agent, &process, &mut sessions, &mut found));
        found.crashes += usize::from(process.has_failed());
    }
    // A last life ends everything, and every session answers.
    life(async {
        let engine = disk.healthy().engine(&agent);
        for id in &sessions {
            let session = Session::of(&engine, &agent).thread("t").id(&**id);
            if let Some(run) = session.open_run().await.unwrap() {
                let _ = end(&mut rng, run, &mut found).await;
            }
            let run = session.say(format!("the end of {id}")).await.unwrap();
            let _ = end(&mut rng, run, &mut found).await;
            check_exchanges(&session).await;
        }
    });
    check_requests(seed, &model.requests(), &mut found);
    found
}

async fn converse(
    rng: &mut Rng,
    agent: &Agent,
    process: &Process,
    sessions: &mut Vec<Arc<str>>,
    found: &mut Found,
) {
    let engine = process.engine(agent);
    for n in 0..rng.usize(1..5) {
        let id = Arc::clone(&sessions[rng.usize(0..sessions.len())]);
        let session = Session::of(&engine, agent).thread("t").id(id);
        if rng.u8(0..6) == 0 {
            let fork: Arc<str> = format!("fork{}", sessions.len()).into();
            match session.fork(Arc::clone(&fork)).await {
                Ok(_) => sessions.push(fork),
                Err(_) => return,
            }
        }
        // Runs of an earlier life continue first.
        match session.open_run().await {
            Ok(Some(run)) => {
                let _ = end(rng, run, found).await;
            }
            Ok(None) => {}
            Err(_) => return,
        }
        let session = session.when_busy(if rng.bool() { WhenBusy::Wait } else { WhenBusy::Steer });
        let mut prompt =
            Prompt::new(format!("question {n} {} {}", rng.u32(..), "x".repeat(rng.usize(0..300))));
        if rng.u8(0..5) == 0 {
            prompt = prompt.turns(rng.u32(1..4));
        }
        let said: Result<AgentRun, SessionError> = session.say(prompt).await;
        let Ok(run) = said else { return };
        if end(rng, run, found).await.is_err() && process.has_failed() {
            return;
        }
    }
}

/// Takes part in a run until it ends: approvals, messages, and now and then a cancel.
async fn end(rng: &mut Rng, run: AgentRun, found: &mut Found) -> Result<(), ()> {
    for _ in 0..200 {
        if run.handle().status().is_ended() {
            break;
        }
        moment().await;
        match rng.u8(0..40) {
            0..=2 => drop(run.steer(format!("hint {}", rng.u32(..))).await),
            3 if rng.u8(0..4) == 0 => {
                found.cancelled += usize::from(run.cancel("enough").await.is_ok());
            }
            _ => {}
        }
        for approval in run.approvals().await.unwrap_or_default() {
            // Some are left until they expire.
            match rng.u8(0..6) {
                0 => drop(approval.reject("no").await),
                1 => drop(approval.edit(json!({"at": "edited"})).await),
                2 => drop(approval.approve_all().await),
                3 | 4 => drop(approval.approve().await),
                _ => {}
            }
        }
    }
    run.outcome().await.map(drop).map_err(drop)
}

/// Each run of a session has one exchange at most, and the texts of all are whole.
async fn check_exchanges(session: &Session) {
    let exchanges = session.exchanges(0, 1_000).await.unwrap();
    let mut runs = std::collections::HashSet::new();
    for exchange in exchanges {
        assert!(runs.insert(exchange.run.clone()), "run {} has two exchanges", exchange.run);
        assert!(exchange.entries.iter().any(|entry| matches!(entry, Entry::User { .. })), "{exchange:?}");
    }
}

/// A request of a run continues the one before unless something came between that may change it.
fn check_requests(seed: u64, requests: &[ModelRequest], found: &mut Found) {
    let mut before: Option<&ModelRequest> = None;
    for request in requests {
        pairing::check(request).unwrap_or_else(|why| panic!("conversation {seed}: {why}"));
        #[cfg(feature = "providers")]
        fits_every_provider(request).unwrap_or_else(|why| panic!("conversation {seed}: {why}\n{request:#?}"));
        if request.system.starts_with("You summarise") {
            before = None;
            continue;
        }
        found.request(request);
        if let Some(before) = before.filter(|before| is_of_one_run(before, request)) {
            pairing::continues(before, request).unwrap_or_else(|why| panic!("conversation {seed}: {why}"));
        }
        before = Some(request);
    }
}

/// The bodies that three providers get, by their public schemas.
#[cfg(feature = "providers")]
pub(crate) fn fits_every_provider(request: &ModelRequest) -> Result<(), String> {
    use crate::validate::{anthropic, openai_chat, openai_responses};
    let named =
        |provider: &str, checked: Result<(), String>| checked.map_err(|why| format!("{provider}: {why}"));
    named("chat completions", openai_chat::check(request))?;
    named("responses", openai_responses::check(request))?;
    named("messages", anthropic::check(request))
}

/// Whether nothing that may change the begin came between: another run, a phase, or results that were shortened.
fn is_of_one_run(before: &ModelRequest, request: &ModelRequest) -> bool {
    let questions = |request: &ModelRequest| {
        let own = request.messages.iter().filter(|message| {
            let text = message.text();
            matches!(message, Message::User { .. })
                && (text.starts_with("question") || text.starts_with("the end"))
        });
        own.map(|message| message.text().into_owned()).collect::<Vec<_>>()
    };
    let count = |request: &ModelRequest, what: &str| {
        request.messages.iter().map(|message| message.text().matches(what).count()).sum::<usize>()
    };
    let same = |what: &str| count(before, what) == count(request, what);
    let summary = |request: &ModelRequest| {
        request.messages.first().map(|message| message.text().starts_with("[Summary"))
    };
    questions(before) == questions(request)
        && !questions(request).is_empty()
        && summary(before) == summary(request)
        && same("[Phase: ")
        && same("more bytes, left out here]")
}
