//! The shapes that need a process or a disk of their own: runs that wait, and runs in files.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tokio::runtime::Runtime;
use workflow_benches::durable::chain::{Chain, Commits};
use workflow_benches::durable::runs::{RUNS, Runs};
use workflow_benches::figure::{Figure, Target};
use workflow_benches::in_turns;
use workflow_benches::work::Extent;

use crate::row::Row;
use crate::side_by_side::{grow, per_item};

/// How many steps the durable chain has.
const STEPS: u64 = 20;

/// A folder for one file, gone when it is dropped.
fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made in the target folder")
}

/// The bytes of each of this many waiting runs, and the nanoseconds of a reply.
fn wait(runs: u64, folder: Option<&Path>) -> (f64, f64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_waiting"));
    let output = child.arg(runs.to_string()).args(folder).output().expect("it was built with the benches");
    assert!(
        output.status.success(),
        "{runs} runs could not wait: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let told = String::from_utf8(output.stdout).expect("it writes numbers");
    let told: Vec<f64> = told.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    (told[0], told[1])
}

/// Runs that wait in memory, and in a file.
pub(crate) fn waiting(extent: Extent) -> Vec<Row> {
    let sizes: &[u64] = if extent == Extent::Full { &[1_000, 100_000] } else { &[100] };
    let mut groups: [Vec<Row>; 4] = Default::default();
    for &size in sizes {
        let folder = folder();
        let (bytes, reply) = wait(size, None);
        let (released_bytes, released_reply) = wait(size, Some(folder.path()));
        let named = |shape: &str, unit, value| Row::new(format!("{shape}/{size}"), unit, value);
        groups[0].push(named("waiting", "bytes/run", bytes));
        groups[1].push(named("waiting-reply", "ns/reply", reply));
        groups[2].push(named("released", "bytes/run", released_bytes));
        groups[3].push(named("released-reply", "ns/reply", released_reply));
    }
    for rows in &mut groups {
        grow(rows);
    }
    groups.into_iter().flatten().collect()
}

/// One run that commits every step, compared with the same commits of redb itself.
pub(crate) fn durable_chain(runtime: &Runtime, turns: usize) -> Vec<Row> {
    let (chain, mut commits) = (Chain::new(folder()), Commits::new(folder()));
    let times =
        in_turns(turns, vec![Box::new(|| chain.turn(runtime, STEPS)), Box::new(|| commits.turn(STEPS))]);
    let mut row = Row::new("durable-chain", "ns/step", per_item(times[0], STEPS));
    row.floor = Some(per_item(times[1], STEPS));
    vec![row]
}

/// Concurrent runs, compared with a store that commits each batch separately.
pub(crate) fn durable_runs(runtime: &Runtime, turns: usize) -> (Vec<Row>, Figure) {
    let (shared, alone) = (Runs::shared(folder()), Runs::one_by_one(folder()));
    let times =
        in_turns(turns, vec![Box::new(|| shared.turn(runtime, 1)), Box::new(|| alone.turn(runtime, 1))]);
    let name = format!("durable-runs/{RUNS}");
    let [shared, alone] = [times[0], times[1]].map(|time| per_item(time, RUNS));
    let figure = Figure::new(&name, "runs/s", 1e9 / shared, 1e9 / alone).beside("a commit per batch");
    (vec![Row::new(name, "ns/run", shared)], figure.target(Target::AtLeast(20.0)))
}
