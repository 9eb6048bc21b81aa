//! The cost of a visit: a chain of nodes beside the same chain as a table of the core and as typed steps, the time to load
//! and bind large documents, and the growth of a long cycle. The function of the nodes adds one, so only the overhead
//! remains.
//!
//! ```text
//! cargo bench -p workflow-graph --bench walk                # everything; fails if a target is missed
//! cargo test -p workflow-graph --bench walk                 # small sizes and no targets, as a smoke test
//! cargo bench -p workflow-graph --bench walk -- chain       # only this part: chain, load or cycle
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::signature::{Roles, StepCall};
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
use workflow_core::{RunOptions, RuntimeWorkflow};
use workflow_graph::{Document, GraphResult, GraphRun, NodeError, Registry};

type Failure = Box<dyn Error + Send + Sync>;

/// The value that a node passes on.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Number {
    number: u64,
}

impl Number {
    fn next(self) -> Self {
        Self { number: self.number + 1 }
    }
}

fn registry() -> Registry {
    Registry::new().function("add", async |input: Number, _| Ok::<_, NodeError>(input.next()))
}

/// The moments at which a long cycle reached its first and last visits, in nanoseconds: the bounds of two stretches.
#[derive(Debug, Default)]
struct Moments {
    bounds: [u64; 4],
    reached: [AtomicU64; 4],
}

impl Moments {
    /// Of a cycle of so many visits: a tenth of them at its begin, after a tenth that warms up, and the last tenth.
    fn of(visits: u64) -> Arc<Self> {
        let tenth = visits / 10;
        Arc::new(Self { bounds: [tenth, 2 * tenth, 9 * tenth, visits], reached: Default::default() })
    }

    /// The function of the nodes, which notes the moments.
    fn registry(self: &Arc<Self>) -> Registry {
        let (moments, begin) = (Arc::clone(self), Instant::now());
        Registry::new().function("add", move |input: Number, _| {
            let number = input.next();
            if let Some(place) = moments.bounds.iter().position(|bound| *bound == number.number) {
                let now = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
                moments.reached[place].store(now, Ordering::Relaxed);
            }
            std::future::ready(Ok::<_, NodeError>(number))
        })
    }

    /// The time of both stretches in the last run.
    fn stretches(&self) -> [Duration; 2] {
        let [begin, early, late, end] =
            [0, 1, 2, 3].map(|place| Duration::from_nanos(self.reached[place].load(Ordering::Relaxed)));
        [early.saturating_sub(begin), end.saturating_sub(late)]
    }
}

/// A chain of nodes, each of which calls a function with the result of the one before it.
fn chain(nodes: u64) -> String {
    let mut text = String::from("graph: chain\nlimits: {steps: 100000}\nnodes:\n");
    for node in 0..nodes {
        let read = if node == 0 { "input".to_owned() } else { format!("n{}", node - 1) };
        let next = if node + 1 == nodes { "end".to_owned() } else { format!("n{}", node + 1) };
        let _ = writeln!(
            text,
            "  n{node}: {{function: add, with: {{number: '${{ {read}.number }}'}}, next: {next}}}"
        );
    }
    text
}

/// Blocks of seven nodes: a choice of two ways, a loop, and a fan-out of two branches.
fn mixture(nodes: u64) -> String {
    let mut text = String::from("graph: mixture\nlimits: {steps: 100000}\nnodes:\n");
    let blocks = nodes / 7;
    for block in 0..blocks {
        let read = if block == 0 { "input".to_owned() } else { format!("meet{}", block - 1) };
        let next = if block + 1 == blocks { "end".to_owned() } else { format!("draft{}", block + 1) };
        let _ = write!(
            text,
            "  draft{block}:
    function: add
    with: {{number: '${{ {read}.number }}'}}
    next: [{{to: short{block}, when: draft{block}.number < 10}}, {{to: long{block}}}]
  short{block}: {{value: {{number: '${{ draft{block}.number }}'}}, next: review{block}}}
  long{block}: {{value: {{number: '${{ draft{block}.number - 1 }}'}}, next: review{block}}}
  review{block}:
    value: {{fine: '${{ draft{block}.number > 3 }}'}}
    next:
    - {{to: draft{block}, when: not review{block}.fine, max: 3}}
    - {{to: split{block}}}
  split{block}: {{value: null, next: {{parallel: [left{block}, meet{block}], join: meet{block}}}}}
  left{block}: {{value: {{number: '${{ draft{block}.number }}'}}, next: meet{block}}}
  meet{block}: {{value: {{number: '${{ draft{block}.number }}'}}, next: {next}}}
",
        );
    }
    text
}

/// Two nodes that take turns, and count in a variable.
fn cycle() -> &'static str {
    "
graph: cycle
limits: {steps: 100000}
vars: {number: 0}
output: {number: '${ vars.number }'}
nodes:
  tick:
    function: add
    with: {number: '${ vars.number }'}
    set: {number: '${ tick.number }'}
    next: [{to: tock, when: tick.number < input.visits, max: 50000}, {to: end}]
  tock:
    function: add
    with: {number: '${ vars.number }'}
    set: {number: '${ tock.number }'}
    next: [{to: tick, when: tock.number < input.visits, max: 50000}, {to: end}]
"
}

/// The same chain as a table of the core: the same names, an event for each step, the same function over JSON.
fn table(steps: u64) -> Result<RuntimeWorkflow, Failure> {
    let name = |step: u64| if step == steps { "done".to_owned() } else { format!("n{step}") };
    let mut table = DependencyTable::builder("table").event(EventDef::new("n0", Roles::NONE.start()));
    for step in 1..=steps {
        let roles = if step == steps { Roles::NONE.stop() } else { Roles::NONE };
        table = table.event(EventDef::new(name(step), roles));
    }
    let mut next = HashMap::new();
    for step in 0..steps {
        let def = StepDef::new(format!("s{step}")).input(InputDef::one(name(step)));
        table = table.step(def.output(OutputDef::event(name(step + 1))));
        next.insert(format!("s{step}"), name(step + 1));
    }
    let next = Arc::new(next);
    Ok(RuntimeWorkflow::new(table.build()?, move |mut call: StepCall| {
        let next = next.clone();
        async move {
            let input = call.input(0).json().unwrap_or(&Value::Null);
            let number = Number::deserialize(input).map_err(StepError::permanent)?;
            let output = serde_json::to_value(number.next()).map_err(StepError::permanent)?;
            let name = next.get(call.step()).ok_or_else(|| StepError::permanent("no such step"))?;
            call.emit(name, output)?;
            call.commit(())
        }
    }))
}

/// The value that a typed step passes on, the number at which it ends included.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin {
    until: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tick {
    number: u64,
    until: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tock {
    number: u64,
    until: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done {
    number: u64,
}

/// Typed steps that take turns: no table is shorter, and none is in the caches more.
struct Typed;

#[derive(Debug, EventSet)]
enum TickOr {
    Tick(Tick),
    Done(Done),
}

#[workflow]
impl Typed {
    #[step]
    async fn begin(&self, begin: &Begin) -> Tick {
        Tick { number: 1, until: begin.until }
    }

    #[step]
    async fn tick(&self, tick: &Tick) -> Tock {
        Tock { number: tick.number + 1, until: tick.until }
    }

    #[step]
    async fn tock(&self, tock: &Tock) -> TickOr {
        let number = tock.number + 1;
        if number + 1 >= tock.until {
            return TickOr::Done(Done { number: number + 1 });
        }
        TickOr::Tick(Tick { number, until: tock.until })
    }
}

/// The figures and whether all of them meet their targets.
struct Figures {
    is_quick: bool,
    are_met: bool,
}

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn say(line: &str) {
    println!("{line}");
}

impl Figures {
    /// A figure that should be at most `target`.
    fn at_most(&mut self, what: &str, figure: f64, target: f64) {
        let is_met = figure <= target;
        let verdict = match (self.is_quick, is_met) {
            (true, _) => "not compared",
            (false, true) => "met",
            (false, false) => "MISSED",
        };
        self.are_met &= is_met || self.is_quick;
        say(&format!("{what}: {figure:.2} (target: at most {target}; {verdict})"));
    }
}

fn micros(time: Duration, parts: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
    let parts = parts as f64;
    time.as_secs_f64() * 1e6 / parts
}

async fn timed<T>(
    least: &mut Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let begin = Instant::now();
    let done = black_box(work.await?);
    *least = (*least).min(begin.elapsed());
    Ok(done)
}

async fn walked(engine: &Engine, graph: &str, input: Value) -> Result<GraphResult, Failure> {
    Ok(GraphRun::start(engine, graph, input).await?.outcome().await?)
}

/// A chain of nodes beside the same chain as a table, and beside typed steps.
async fn chains(figures: &mut Figures, nodes: u64, rounds: usize) -> Result<(), Failure> {
    let document = Document::parse(&chain(nodes), "chain.yaml")?;
    let workflows = document.bind(&registry())?;
    let engine = Engine::builder().workflows(workflows).workflows([table(nodes)?]).workflow(Typed).build()?;
    let [mut ours, mut bare, mut table, mut typed] = [Duration::MAX; 4];
    for _ in 0..rounds {
        let result = timed(&mut ours, walked(&engine, "chain", json!({ "number": 0 }))).await?;
        assert_eq!(result.output, json!({ "number": nodes }));
        let ended = timed(&mut bare, async {
            let run = GraphRun::start(&engine, "chain", json!({ "number": 0 })).await?;
            Ok(run.run().outcome_any().await?)
        });
        assert_eq!(ended.await?.as_json().map(|end| &end["output"]), Some(&json!({ "number": nodes })));
        let ended = timed(&mut table, async {
            let run = engine.start_json("table", "n0", json!({ "number": 0 }), RunOptions::new()).await?;
            Ok(run.outcome_any().await?)
        });
        assert_eq!(ended.await?.as_json(), Some(&json!({ "number": nodes })));
        let ended = timed(&mut typed, async {
            Ok(engine.start::<Typed>(Begin { until: nodes }).await?.outcome().await?)
        });
        assert_eq!(ended.await?.number, nodes);
    }
    let [ours, bare, table, typed] = [ours, bare, table, typed].map(|time| micros(time, nodes));
    say(&format!(
        "a chain of {nodes} function nodes: {bare:.2} µs a visit, {ours:.2} µs with results and trace; a table of the \
         same chain {table:.2} µs a step; typed steps {typed:.2} µs"
    ));
    figures.at_most("a visit, beside a step of the same table", bare / table, 4.0);
    figures.at_most("a visit, beside a typed step", bare / typed, 4.0);
    figures.at_most("a visit with results and trace, beside a step of the same table", ours / table, 4.0);
    Ok(())
}

/// The least time to read, check and bind a document.
fn loaded(text: &str, rounds: usize) -> Result<[Duration; 2], Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("graph.yaml");
    std::fs::write(&path, text)?;
    let registry = registry();
    let mut least = [Duration::MAX; 2];
    for _ in 0..rounds {
        let begin = Instant::now();
        let document = Document::load(&path)?;
        let read = begin.elapsed();
        let bound = black_box(document.bind(&registry)?);
        least = [least[0].min(read), least[1].min(begin.elapsed())];
        drop(bound);
    }
    Ok(least)
}

/// The text of a document with this many nodes.
type Shape = fn(u64) -> String;

/// Large documents: the time, and its growth.
fn loads(figures: &mut Figures, nodes: u64, rounds: usize) -> Result<(), Failure> {
    let shapes: [(&str, Shape); 2] = [("a chain", chain), ("a mixture", mixture)];
    for (name, shape) in shapes {
        let small = loaded(&shape(nodes / 10), rounds * 5)?;
        let large = loaded(&shape(nodes), rounds)?;
        let milliseconds = |times: [Duration; 2]| times.map(|time| time.as_secs_f64() * 1e3);
        let ([small_read, small_ms], [large_read, large_ms]) = (milliseconds(small), milliseconds(large));
        say(&format!(
            "{name} of {nodes} nodes: read and checked in {large_read:.0} ms, bound after {large_ms:.0} ms; of {} nodes: \
             {small_read:.1} and {small_ms:.1} ms",
            nodes / 10
        ));
        figures.at_most(&format!("{name}, seconds"), large_ms / 1e3, 1.0);
        figures.at_most(&format!("{name}, growth by ten times the nodes"), large_ms / small_ms, 15.0);
    }
    Ok(())
}

/// A long cycle: the time per visit late and early, beside the same growth of a cycle of the core.
async fn cycles(figures: &mut Figures, visits: u64, rounds: usize) -> Result<(), Failure> {
    let document = Document::parse(cycle(), "cycle.yaml")?;
    let moments = Moments::of(visits);
    let workflows = document.bind(&moments.registry())?;
    let engine = Engine::builder().workflows(workflows).workflows([turns()?]).build()?;
    let few = visits / 10;
    let [mut short, mut long] = [[Duration::MAX; 3]; 2];
    let mut stretches = [Duration::MAX; 2];
    for _ in 0..rounds {
        for _ in 0..5 {
            cycled(&engine, few, &mut short).await?;
        }
        cycled(&engine, visits, &mut long).await?;
        let [early, late] = moments.stretches();
        stretches = [stretches[0].min(early), stretches[1].min(late)];
    }
    let [early, late] = stretches.map(|time| micros(time, few));
    say(&format!("a cycle of {visits}: {early:.2} µs a visit in its second tenth, {late:.2} µs in its last"));
    figures.at_most("a late visit of a run beside an early one", late / early, 1.2);
    let (short, long) = (short.map(|time| micros(time, few)), long.map(|time| micros(time, visits)));
    for (at, what) in
        ["a visit", "a visit with results and trace", "a step of the core"].into_iter().enumerate()
    {
        say(&format!("a cycle, {what}: {:.2} µs of {visits}, {:.2} µs of {few}", long[at], short[at]));
        figures.at_most(&format!("{what}, in a long cycle beside a short one"), long[at] / short[at], 1.2);
    }
    Ok(())
}

/// The times of the same cycle without its results, with them, and as a table of the core.
async fn cycled(engine: &Engine, visits: u64, least: &mut [Duration; 3]) -> Result<(), Failure> {
    let input = json!({ "visits": visits });
    let [bare, ours, table] = least;
    timed(bare, async {
        Ok(GraphRun::start(engine, "cycle", input.clone()).await?.run().outcome_any().await?)
    })
    .await?;
    let result = timed(ours, walked(engine, "cycle", input)).await?;
    assert_eq!(result.output, json!({ "number": visits }));
    let start = json!({ "number": 0, "until": visits });
    timed(table, async {
        Ok(engine.start_json("turns", "tock", start, RunOptions::new()).await?.outcome_any().await?)
    })
    .await?;
    Ok(())
}

/// Two steps of the core that take turns until the number is reached.
fn turns() -> Result<RuntimeWorkflow, Failure> {
    let mut table = DependencyTable::builder("turns").event(EventDef::new("tock", Roles::NONE.start()));
    table = table.event(EventDef::new("tick", Roles::NONE)).event(EventDef::new("done", Roles::NONE.stop()));
    for (from, to) in [("tick", "tock"), ("tock", "tick")] {
        let def = StepDef::new(format!("after_{from}")).input(InputDef::one(from));
        table = table.step(def.output(OutputDef::optional(to)).output(OutputDef::optional("done")));
    }
    Ok(RuntimeWorkflow::new(table.build()?, async |mut call: StepCall| {
        let input = call.input(0).json().unwrap_or(&Value::Null);
        let number = Number::deserialize(input).map_err(StepError::permanent)?.next();
        let until = input["until"].clone();
        let is_last = until == number.number;
        let to = match call.step() {
            _ if is_last => "done",
            "after_tick" => "tock",
            _ => "tick",
        };
        call.emit(to, json!({ "number": number.number, "until": until }))?;
        call.commit(())
    }))
}

async fn measure(figures: &mut Figures, only: Option<&str>) -> Result<(), Failure> {
    let is_quick = figures.is_quick;
    let wanted = |part: &str| only.is_none_or(|only| only == part);
    if wanted("chain") {
        chains(figures, if is_quick { 50 } else { 1_000 }, if is_quick { 2 } else { 100 }).await?;
    }
    if wanted("load") {
        loads(figures, if is_quick { 700 } else { 10_000 }, if is_quick { 1 } else { 7 })?;
    }
    if wanted("cycle") {
        cycles(figures, if is_quick { 100 } else { 10_000 }, if is_quick { 1 } else { 20 }).await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` says so; `cargo test` does not.
    let is_quick = !arguments.iter().any(|argument| argument == "--bench");
    let only = arguments.iter().find(|argument| !argument.starts_with("--")).map(String::as_str);
    let mut figures = Figures { is_quick, are_met: true };
    measure(&mut figures, only).await?;
    Ok(if figures.are_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
