//! A visit of this project's graphs beside those of graph-flow and of LangGraph: a chain of the same nodes, each of which
//! adds one to the number of the node before it.
//!
//! ```text
//! cargo run --release --locked --manifest-path benches/graphs/Cargo.toml               # graph-flow
//! cargo run --release --locked --manifest-path benches/graphs/Cargo.toml -- --python   # LangGraph too, from PyPI
//! ```
//!
//! With `--python` the program makes a virtual environment in cargo's target folder, by `python3` or by the command in
//! `PYTHON`, and installs `requirements.txt` there. The program fails if a target is missed.

mod flow;
mod ours;
mod python;

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Nodes of the chain.
const NODES: u64 = 1_000;
/// Runs of each graph in Rust; the fastest counts.
const ROUNDS: usize = 100;

async fn timed(run: impl Future<Output = u64>) -> Duration {
    let begin = Instant::now();
    let number = run.await;
    let took = begin.elapsed();
    assert_eq!(number, NODES);
    took
}

fn micros_of_visit(run: Duration) -> f64 {
    run.as_secs_f64() * 1e6 / NODES as f64
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let (engine, at_once) = (ours::engine(), flow::at_once());
    let (saved, json) = (flow::Saved::in_memory(), flow::Saved::as_json());
    let [mut ours, mut bare, mut flow, mut flow_saved, mut flow_json] = [Duration::MAX; 5];
    for round in 0..ROUNDS {
        ours = ours.min(timed(ours::run(&engine)).await);
        bare = bare.min(timed(ours::walk(&engine)).await);
        flow = flow.min(timed(flow::run(&at_once)).await);
        flow_saved = flow_saved.min(timed(saved.run()).await);
        // It is slow: each task reads and writes all results.
        if round % 10 == 0 {
            flow_json = flow_json.min(timed(json.run()).await);
        }
    }
    let [ours, bare, flow, flow_saved, flow_json] =
        [ours, bare, flow, flow_saved, flow_json].map(micros_of_visit);
    println!(
        "a chain of {NODES} nodes, in memory: ours {bare:.2} µs a visit, {ours:.2} µs with results and trace"
    );
    let kinds = [
        ("in one call, which keeps nothing", flow),
        ("saved behind each task, in its memory of sessions", flow_saved),
        ("saved behind each task, as JSON", flow_json),
    ];
    for (kind, time) in kinds {
        println!(
            "graph-flow 0.8.1, {kind}: {time:.2} µs a visit; ours takes {:.2} of its time (target: at most 1)",
            bare / time
        );
    }
    let mut are_met = kinds.iter().all(|(_, time)| bare <= *time);
    if std::env::args().any(|argument| argument == "--python") {
        let python = python::micros_of_visit();
        println!(
            "LangGraph: {python:.0} µs a visit; ours is {:.0} times as fast, {:.0} times with results and trace (target: \
             at least 50)",
            python / bare,
            python / ours
        );
        are_met &= python / bare >= 50.0;
    }
    if are_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
