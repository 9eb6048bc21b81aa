//! The cost of a turn: an agent beside a loop written by hand over the same model and tools, with the same checks of
//! arguments and the same requests. Models answer at once, so only the overhead remains.
//!
//! ```text
//! cargo bench -p workflow-agent --bench turns                # everything
//! cargo test -p workflow-agent --bench turns                 # small sizes, as a smoke test
//! ```

use std::error::Error;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use serde_json::json;

use workflow_agent::memory::EpisodicMemory;
use workflow_agent::model::{
    Finish, Message, Model, ModelError, ModelEvent, ModelLimits, ModelReply, ModelRequest, ModelStream, Part,
    ToolResult, ToolUse, Usage,
};
use workflow_agent::prelude::*;
use workflow_agent::tool::{FnTool, Tool, ToolSpec};
use workflow_core::RunId;
use workflow_core::store::{
    ContextStore, EngineId, EventStore, Inbox, Position, Record, Retention, RunQuery, StoreFuture, StoredRun,
    Write,
};
use workflow_redb::RedbStore;

type Failure = Box<dyn Error + Send + Sync>;

/// Turns of a run; each but the last has two calls.
const TURNS: usize = 50;

/// A model that makes two calls in each turn, and answers in the last one.
#[derive(Debug, Clone)]
struct Counting {
    turns: usize,
    /// The context window in tokens.
    window: u64,
}

impl Counting {
    fn reply(&self, request: &ModelRequest) -> ModelReply {
        let turn =
            request.messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count();
        if turn + 1 >= self.turns {
            return ModelReply::text("The sum is complete.").usage(Usage::new(1_000, 10));
        }
        let call = |name: &str| {
            let id = format!("{name}-{turn}");
            Part::Call(ToolUse::new(id, name, json!({ "city": "Bern", "days": turn })))
        };
        ModelReply::new(vec![call("weather"), call("traffic")], Finish::ToolUse).usage(Usage::new(1_000, 10))
    }
}

impl Model for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn limits(&self) -> ModelLimits {
        ModelLimits::new(self.window, 8_000)
    }

    fn call(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        let reply = self.reply(&request);
        async move { Ok(stream::iter([Ok(ModelEvent::Finished(reply))]).boxed()) }.boxed()
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    city: String,
    days: u32,
}

fn tools() -> [FnTool; 2] {
    let tool = |name: &'static str| {
        FnTool::new(name, "Tells about a city.", move |place: Place, _| async move {
            Ok::<_, ToolError>(format!(
                "{name} in {} for {} days: nothing unusual is expected.",
                place.city, place.days
            ))
        })
        .read_only()
    };
    [tool("weather"), tool("traffic")]
}

fn agent(turns: usize) -> Result<Agent, Failure> {
    let [weather, traffic] = tools();
    let agent = Agent::builder("bench")
        .model(Counting { turns, window: 1_000_000 })
        .identity("You know cities.")
        .max_turns(10_000);
    Ok(agent.repeats(None).tool(weather).tool(traffic).build()?)
}

/// The loop by hand.
struct ByHand {
    model: Counting,
    tools: Vec<(FnTool, jsonschema::Validator)>,
    specs: Arc<[ToolSpec]>,
}

impl ByHand {
    fn new(turns: usize) -> Result<Self, Failure> {
        let mut checked = Vec::new();
        for tool in tools() {
            let validator = jsonschema::validator_for(tool.spec().schema())?;
            checked.push((tool, validator));
        }
        checked.sort_by(|one, other| one.0.spec().name().cmp(other.0.spec().name()));
        let specs = checked.iter().map(|(tool, _)| tool.spec().clone()).collect();
        Ok(Self { model: Counting { turns, window: 1_000_000 }, tools: checked, specs })
    }

    async fn ask(&self, text: &str) -> Result<String, Failure> {
        let mut messages = vec![Message::user(text)];
        loop {
            let mut request = ModelRequest::new("You know cities.", messages.clone(), 8_000);
            request.tools = Arc::clone(&self.specs);
            let mut stream = self.model.call(request).await?;
            let mut reply = None;
            while let Some(event) = stream.next().await {
                if let ModelEvent::Finished(finished) = event? {
                    reply = Some(finished);
                }
            }
            let reply = reply.ok_or("the stream had no end")?;
            let calls: Vec<ToolUse> = reply.calls().cloned().collect();
            messages.push(Message::Assistant { parts: reply.parts.into() });
            if calls.is_empty() {
                return Ok(messages.last().map(|message| message.text().into_owned()).unwrap_or_default());
            }
            let results = futures::future::join_all(calls.iter().map(|call| self.call(call))).await;
            messages.push(Message::Results(results.into_iter().collect::<Result<_, _>>()?));
        }
    }

    async fn call(&self, call: &ToolUse) -> Result<ToolResult, Failure> {
        let (tool, validator) =
            self.tools.iter().find(|(tool, _)| tool.spec().name() == &*call.name).ok_or("an unknown tool")?;
        validator.validate(&call.arguments).map_err(|error| error.to_string())?;
        let output = tool.call(call.arguments.clone(), ToolContext::detached(Arc::clone(&call.id))).await;
        let (text, is_error) = match output {
            Ok(output) => (output.text, output.is_error),
            Err(error) => (error.to_string(), true),
        };
        let text = format!("<data source=\"tool {}\">\n{text}\n</data>", call.name);
        Ok(ToolResult::new(Arc::clone(&call.id), Arc::clone(&call.name), text, is_error))
    }
}

/// The best of several measurements, each of `work` and of `other` in turns.
async fn best<A, B>(
    rounds: usize,
    mut work: impl AsyncFnMut() -> A,
    mut other: impl AsyncFnMut() -> B,
) -> [Duration; 2] {
    let mut best = [Duration::MAX; 2];
    for _ in 0..rounds {
        let begin = Instant::now();
        black_box(work().await);
        best[0] = best[0].min(begin.elapsed());
        let begin = Instant::now();
        black_box(other().await);
        best[1] = best[1].min(begin.elapsed());
    }
    best
}

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn say(line: &str) {
    println!("{line}");
}

fn micros(time: Duration, parts: usize) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(u32::try_from(parts).unwrap_or(u32::MAX))
}

/// In memory: the overhead per turn beside the loop by hand.
async fn in_memory(rounds: usize) -> Result<(), Failure> {
    let (agent, by_hand) = (agent(TURNS)?, ByHand::new(TURNS)?);
    let engine = Engine::builder().agent(agent.clone()).build()?;
    let [ours, hand] = best(
        rounds,
        async || {
            let run = agent.start(&engine, "How is Bern?").await.expect("it starts");
            run.outcome().await.expect("it ends")
        },
        async || by_hand.ask("How is Bern?").await.expect("it answers"),
    )
    .await;
    say(&format!(
        "in memory, {TURNS} turns with two tools: {:.1} µs a turn, by hand {:.1} µs: {:.2} times (target: at most 4)",
        micros(ours, TURNS),
        micros(hand, TURNS),
        ours.as_secs_f64() / hand.as_secs_f64(),
    ));
    Ok(())
}

/// A store that keeps what is written, so that the same can be written again without an agent.
#[derive(Debug, Clone)]
struct Recording {
    store: RedbStore,
    writes: Arc<Mutex<Vec<(RunId, Position, Write)>>>,
}

impl EventStore for Recording {
    fn append(&self, run: &RunId, at: Position, write: Write) -> StoreFuture<()> {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        writes.push((run.clone(), at, write.clone()));
        self.store.append(run, at, write)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.store.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.store.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.store.remove(run)
    }

    fn retain(&self, retention: &Retention) -> StoreFuture<u64> {
        self.store.retain(retention)
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        self.store.contexts()
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        None
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.store.lease(engine, duration)
    }
}

/// Durable: the turns beside those that the bare store allows with one commit for each write of the journal.
async fn durable(rounds: usize) -> Result<(), Failure> {
    let agent = agent(TURNS)?;
    let (mut ours, mut bare, mut count) = (Duration::MAX, Duration::MAX, 0);
    for round in 0..rounds {
        let folder = tempfile::tempdir()?;
        let writes = Arc::<Mutex<Vec<_>>>::default();
        let store = Recording {
            store: RedbStore::open(folder.path().join("ours.redb"))?,
            writes: Arc::clone(&writes),
        };
        let engine = Engine::builder().agent(agent.clone()).store(store).build()?;
        let begin = Instant::now();
        agent.start(&engine, "How is Bern?").await?.outcome().await?;
        ours = ours.min(begin.elapsed());
        engine.shut_down(Duration::from_secs(5)).await;
        let writes = std::mem::take(&mut *writes.lock().unwrap_or_else(PoisonError::into_inner));
        count = writes.len();
        let store = RedbStore::open(folder.path().join(format!("bare-{round}.redb")))?;
        let begin = Instant::now();
        for (run, at, write) in writes {
            store.append(&run, at, write).await?;
        }
        bare = bare.min(begin.elapsed());
    }
    say(&format!(
        "over redb, {TURNS} turns in {count} writes: {:.0} µs a turn, the bare store {:.0} µs: {:.2} of its rate (target: \
         at least 0.8)",
        micros(ours, TURNS),
        micros(bare, TURNS),
        bare.as_secs_f64() / ours.as_secs_f64(),
    ));
    Ok(())
}

/// A model that never answers.
#[derive(Debug)]
struct Slow;

impl Model for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn limits(&self) -> ModelLimits {
        ModelLimits::new(1_000_000, 8_000)
    }

    fn call(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        async move {
            drop(request);
            futures::future::pending().await
        }
        .boxed()
    }
}

/// Resident memory of this process in bytes.
fn resident() -> Result<usize, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    let kilobytes: usize = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(kilobytes * 1_024)
}

/// Memory of agents that wait for their models, beside their transcripts.
async fn waiting(agents: usize) -> Result<(), Failure> {
    let [weather, traffic] = tools();
    let agent = Agent::builder("slow").model(Slow).tool(weather).tool(traffic).build()?;
    let engine = Engine::builder().agent(agent.clone()).max_concurrent_runs_named("slow", agents).build()?;
    let mut runs = Vec::with_capacity(agents);
    let before = resident()?;
    for _ in 0..agents {
        runs.push(agent.start(&engine, "How is Bern?").await?.handle().clone());
    }
    // Each has called its model once nothing else is to do.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let each = resident()?.saturating_sub(before) / agents;
    say(&format!("{agents} agents wait for their models: {each} bytes each (target: at most 20,000)"));
    engine.cancel_all("the bench is over", Duration::from_secs(5)).await;
    drop(runs);
    Ok(())
}

/// A session with a memory: the cost of a message early and late.
async fn session(exchanges: usize) -> Result<(), Failure> {
    let model = Counting { turns: 1, window: 20_000 };
    let agent = Agent::builder("chatty").model(model).memory(EpisodicMemory::new()).build()?;
    let engine = Engine::builder().agent(agent.clone()).build()?;
    let session = Session::of(&engine, &agent).thread("ada").id("s");
    let part = exchanges / 10;
    let mut times = Vec::new();
    for number in 0..exchanges {
        let begin = Instant::now();
        session.say(format!("Message {number} about the town of {}", number % 97)).await?.outcome().await?;
        times.push(begin.elapsed());
    }
    let median = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times[times.len() / 2]
    };
    // The memory and the window are full from the second tenth on.
    let early = median(&times[part * 2..part * 3]);
    let late = median(&times[exchanges - part..]);
    say(&format!(
        "a session with a memory, {exchanges} exchanges: {:.0} µs a message early, {:.0} µs late: {:.2} times (target: 0.8 \
         to 1.2)",
        micros(early, 1),
        micros(late, 1),
        late.as_secs_f64() / early.as_secs_f64(),
    ));
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` says so; `cargo test` does not.
    let is_quick = !arguments.iter().any(|argument| argument == "--bench");
    let only = arguments.iter().find(|argument| !argument.starts_with("--")).map(String::as_str);
    let wanted = |part: &str| only.is_none_or(|only| only == part);
    if wanted("memory") {
        waiting(if is_quick { 50 } else { 1_000 }).await?;
    }
    if wanted("turns") {
        in_memory(if is_quick { 2 } else { 200 }).await?;
    }
    if wanted("durable") {
        durable(if is_quick { 1 } else { 10 }).await?;
    }
    if wanted("session") {
        session(if is_quick { 50 } else { 10_000 }).await?;
    }
    Ok(())
}
