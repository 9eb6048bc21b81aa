//! Measures a restart over a file with many waiting runs, each part in a process of its own.
//!
//! `WAITING=100000 cargo run --release -p workflow-benches --bin restart` fills a file with this many runs, of which one
//! in ten has a timer of a day, and then resumes all of them twice, each time in a fresh process. It prints seconds,
//! seconds of processor time, the most memory and the size of the file, and the same for each run. With `LEASED=1` the
//! engines take leases, so that each run is written to.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::runtime::Runtime;
use workflow_benches::work::waiting::{Approve, Refunds, id, start};
use workflow_core::prelude::*;
use workflow_core::report::OpenRequest;
use workflow_core::{RunOptions, RunStatus};
use workflow_redb::{Durability, RedbStore};

/// How many runs are started together.
const AT_ONCE: u64 = 1_024;

/// One run in so many has a timer.
const TIMED: u64 = 10;

/// The cache of the file.
const CACHE: usize = 64 << 20;

/// The number of timed replies after the restart; the median counts.
const REPLIES: u64 = 101;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Remind;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Reminded;

/// Waits for a timer of a day.
struct Reminders;

#[workflow]
impl Reminders {
    #[step]
    async fn wait(&self, _remind: &Remind) -> Timer<Reminded> {
        Timer::after(Duration::from_hours(24), Reminded)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => all(),
        ["fill", file, runs] => fill(Path::new(file), runs.parse().expect("how many runs")),
        ["resume", file] => resume(Path::new(file)),
        _ => panic!("no argument, `fill FILE RUNS` or `resume FILE`"),
    }
}

/// Fills a file and resumes its runs, each in a process of its own.
fn all() {
    let runs = std::env::var("WAITING").unwrap_or_else(|_| "100000".to_owned());
    let program = std::env::current_exe().expect("the program has a path");
    let beside = program.parent().expect("it is in a folder");
    let folder = tempfile::tempdir_in(beside).expect("a folder can be made beside the program");
    let file: PathBuf = folder.path().join("runs.redb");
    for arguments in [&["fill"][..], &["resume"], &["resume"]] {
        let mut command = Command::new(&program);
        command.arg(arguments[0]).arg(&file);
        if arguments[0] == "fill" {
            command.arg(&runs);
        }
        assert!(command.status().expect("it starts").success(), "{arguments:?}");
    }
}

fn open(file: &Path, durability: Durability) -> RedbStore {
    let builder = RedbStore::builder().cache_bytes(CACHE).durability(durability);
    builder.open(file).expect("the file opens")
}

fn engine(store: &RedbStore) -> Engine {
    let mut builder = Engine::builder().workflow(Refunds).workflow(Reminders).store(store.clone());
    if std::env::var_os("LEASED").is_some() {
        builder = builder.lease(Duration::from_secs(30));
    }
    builder.build().expect("it is sound")
}

#[expect(clippy::print_stdout, reason = "figures are what the program is for")]
fn fill(file: &Path, runs: u64) {
    let runtime = Runtime::new().expect("a runtime starts");
    let began = Instant::now();
    let store = open(file, Durability::Buffered(Duration::from_secs(1)));
    runtime.block_on(async {
        let engine = engine(&store);
        let timed = runs / TIMED;
        for first in (0..timed).step_by(usize::try_from(AT_ONCE).expect("few")) {
            start_timed(&engine, first..(first + AT_ONCE).min(timed)).await;
        }
        for first in (timed..runs).step_by(usize::try_from(AT_ONCE).expect("few")) {
            drop(start(&engine, first..(first + AT_ONCE).min(runs)).await);
        }
        engine.shut_down(Duration::from_mins(5)).await;
        while store.compact().await.expect("it can be compacted") {}
    });
    println!("filled with {runs} waiting runs in {:.1} s", began.elapsed().as_secs_f64());
}

async fn start_timed(engine: &Engine, numbers: Range<u64>) {
    let started = numbers.map(async |number| {
        let options = RunOptions::new().id(format!("reminder-{number}"));
        let run = engine.start_with::<Reminders>(Remind, options).await.expect("it starts");
        assert_eq!(run.settled().await, RunStatus::Waiting);
    });
    join_all(started).await;
}

#[expect(clippy::print_stdout, reason = "figures are what the program is for")]
fn resume(file: &Path) {
    let runtime = Runtime::new().expect("a runtime starts");
    let store = open(file, Durability::Sync);
    let size = bytes_of(file);
    let (opened, before) = (status("VmHWM"), Costs::now());
    let (runs, answered) = runtime.block_on(async {
        let engine = engine(&store);
        let began = Instant::now();
        let resumed = engine.resume_open_runs().await.expect("the runs are listed");
        assert!(resumed.refused.is_empty() && resumed.error.is_none(), "{:?}", resumed.refused.first());
        let answered = began.elapsed();
        let costs = Costs::now().since(&before);
        let runs = resumed.runs.len() as u64;
        drop(resumed);
        report("resumed", runs, answered, &costs, size, bytes_of(file));
        engine.shut_down(Duration::from_mins(5)).await;
        (runs, answered)
    });
    drop(store);
    let costs = Costs::now().since(&before);
    report("  and everything written", runs, answered, &costs, size, bytes_of(file));
    println!("  at the opening of the file {opened} KiB");
    replies(file, &runtime, runs);
}

/// The time from a reply to the end of its run, with the loading of the run.
#[expect(clippy::print_stdout, reason = "figures are what the program is for")]
fn replies(file: &Path, runtime: &Runtime, runs: u64) {
    let store = open(file, Durability::Sync);
    let mut times = runtime.block_on(async {
        let engine = engine(&store);
        engine.resume_open_runs().await.expect("the runs are listed");
        let mut times = Vec::new();
        // The last ones, so that a second restart has the others.
        for number in (runs - runs.min(REPLIES)..runs).rev() {
            let began = Instant::now();
            let Ok(run) = engine.attach::<Refunds>(id(number)).await else { continue };
            let requests = run.requests().await.expect("it waits");
            let Some(request) = requests.iter().find_map(OpenRequest::id::<Approve>) else { continue };
            run.reply(request, true).await.expect("it is taken");
            run.outcome().await.expect("it completes");
            times.push(began.elapsed());
        }
        times
    });
    times.sort_unstable();
    if let Some(median) = times.get(times.len() / 2) {
        println!("  attach, reply and end: {:.2} ms", median.as_secs_f64() * 1e3);
    }
}

#[expect(clippy::print_stdout, reason = "figures are what the program is for")]
fn report(what: &str, runs: u64, took: Duration, costs: &Costs, before: u64, after: u64) {
    let each = |total: f64| total / as_float(runs.max(1));
    println!(
        "{what}: {runs} runs, {:.2} s, processor {:.2} s, {} context switches, peak {} MB, file {} -> {} MB; \
         each {:.1} µs, processor {:.1} µs, file +{:.0} bytes",
        took.as_secs_f64(),
        costs.processor,
        costs.switches,
        status("VmHWM") / 1_000,
        before / 1_000_000,
        after / 1_000_000,
        each(took.as_secs_f64() * 1e6),
        each(costs.processor * 1e6),
        each(as_float(after.saturating_sub(before))),
    );
}

#[expect(clippy::cast_precision_loss, reason = "figures are rounded anyway")]
fn as_float(number: u64) -> f64 {
    number as f64
}

fn bytes_of(file: &Path) -> u64 {
    std::fs::metadata(file).expect("the file is there").len()
}

/// The resources of the process so far.
struct Costs {
    /// Seconds of processor time.
    processor: f64,
    switches: u64,
}

impl Costs {
    /// 0 where the system does not report them.
    fn now() -> Self {
        /// Ticks of `/proc` in a second, on all usual systems.
        const TICKS: f64 = 100.0;
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks: u64 =
            fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let switches = tasks.map(|task| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
            lines.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum::<u64>()
        });
        Self { processor: as_float(ticks) / TICKS, switches: switches.sum() }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            processor: self.processor - before.processor,
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

/// A field of the process's status in KiB; 0 where the system does not report it.
fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or_default()
}
