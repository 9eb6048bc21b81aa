//! Does the work of a shape with another library: reads lines of a shape and a peer, does the work once, and answers
//! each with the nanoseconds, or with `absent` if the library does not support the shape.
//!
//! `echo chain/1000 cano | cargo run --release --manifest-path benches/peers/Cargo.toml`

mod cano_flow;
mod graph;
mod ractors;

use std::io::{BufRead as _, Write as _};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

/// How many steps the chain has.
const STEPS: u64 = 1_000;

/// How many branches the fan-out has.
const BRANCHES: u64 = 1_000;

/// The number of concurrent runs of three steps.
const RUNS: u64 = 10_000;

/// The results of the chain, the squares of the fan-out and the runs: equal for all contenders.
const COUNTED: u64 = STEPS;
const SQUARES: u64 = (BRANCHES - 1) * BRANCHES * (2 * BRANCHES - 1) / 6;
const SUMS: u64 = RUNS * (RUNS - 1) / 2 + 3 * RUNS;

fn main() {
    let runtime = Runtime::new().expect("a runtime starts");
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("lines are text");
        let took = line.split_once(' ').and_then(|(shape, peer)| measure(&runtime, shape, peer));
        let answer = took.map_or_else(|| "absent".to_owned(), |took| took.as_nanos().to_string());
        writeln!(answers, "{answer}").expect("the reader is there");
        answers.flush().expect("the reader is there");
    }
}

/// The time of one execution, in a task of the runtime, as for the workflow.
fn measure(runtime: &Runtime, shape: &str, peer: &str) -> Option<Duration> {
    let time = async |work: std::pin::Pin<Box<dyn Future<Output = u64> + Send>>, expected: u64| {
        let began = Instant::now();
        let result = tokio::spawn(work).await.expect("it does not panic");
        let took = began.elapsed();
        assert_eq!(result, expected, "{shape} of {peer}");
        took
    };
    runtime.block_on(async {
        Some(match (shape, peer) {
            ("chain/1000", "cano") => time(Box::pin(cano_flow::chain(STEPS)), COUNTED).await,
            ("chain/1000", "graph-flow") => {
                let graph = graph::chain_graph(STEPS);
                time(Box::pin(graph::chain(graph)), COUNTED).await
            }
            ("chain/1000", "ractor") => time(Box::pin(ractors::chain(STEPS)), COUNTED).await,
            ("fan/1000", "cano") => time(Box::pin(cano_flow::fan(BRANCHES)), SQUARES).await,
            ("fan/1000", "graph-flow") => {
                let graph = graph::fan_graph(BRANCHES);
                time(Box::pin(graph::fan(graph)), SQUARES).await
            }
            ("fan/1000", "ractor") => time(Box::pin(ractors::fan(BRANCHES)), SQUARES).await,
            ("runs/10000", "cano") => time(Box::pin(cano_flow::runs(RUNS)), SUMS).await,
            ("runs/10000", "graph-flow") => {
                let graph = graph::three_graph();
                time(Box::pin(graph::runs(graph, RUNS)), SUMS).await
            }
            ("runs/10000", "ractor") => time(Box::pin(ractors::runs(RUNS)), SUMS).await,
            _ => return None,
        })
    })
}
