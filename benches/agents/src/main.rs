//! A turn of this project's agent beside a turn of rig's and of pydantic-ai's. Models answer at once, so only the overhead
//! remains: the same replies, with two calls in each turn but the last, and the same two tools.
//!
//! ```text
//! cargo run --release --locked --manifest-path benches/agents/Cargo.toml               # rig
//! cargo run --release --locked --manifest-path benches/agents/Cargo.toml -- --python   # pydantic-ai too, from PyPI
//! ```
//!
//! With `--python` the program makes a virtual environment in cargo's target folder, by `python3` or by the command in
//! `PYTHON`, and installs `requirements.txt` there.

mod ours;
mod python;
mod rig;

use std::time::{Duration, Instant};

/// Turns of a run; each but the last has two calls.
const TURNS: usize = 50;
/// Runs of each agent in Rust; the fastest counts.
const ROUNDS: usize = 400;

const IDENTITY: &str = "You know cities.";
const MESSAGE: &str = "How is Bern?";
const ANSWER: &str = "The sum is complete.";

/// The arguments of both tools.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    city: String,
    days: u32,
}

/// The result of both tools.
fn about(name: &str, place: &Place) -> String {
    format!("{name} in {} for {} days: nothing unusual is expected.", place.city, place.days)
}

async fn timed(run: impl Future<Output = String>) -> Duration {
    let begin = Instant::now();
    let answer = run.await;
    let took = begin.elapsed();
    assert_eq!(answer, ANSWER);
    took
}

fn micros_of_turn(run: Duration) -> f64 {
    run.as_secs_f64() * 1e6 / TURNS as f64
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (agent, other) = (ours::agent(), rig::agent());
    let (mut ours, mut rig) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        ours = ours.min(timed(ours::run(&agent)).await);
        rig = rig.min(timed(rig::run(&other)).await);
    }
    let (ours, rig) = (micros_of_turn(ours), micros_of_turn(rig));
    println!("{TURNS} turns with two tools, in memory: ours {ours:.1} µs a turn");
    println!("rig 0.44: {rig:.1} µs a turn; ours takes {:.2} of its time (target: at most 1)", ours / rig);
    if std::env::args().any(|argument| argument == "--python") {
        let python = python::micros_of_turn();
        println!(
            "pydantic-ai: {python:.0} µs a turn; ours is {:.0} times as fast (target: at least 50)",
            python / ours
        );
    }
}
