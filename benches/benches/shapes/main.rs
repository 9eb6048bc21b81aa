//! Measures shapes of workflows and the same work by hand, in turns, in one process.
//!
//! `cargo bench -p workflow-benches --bench shapes`. `cargo test` runs a small part of everything, as a smoke test; with `-- chain fan` only these shapes; with `-- --peers` it first builds the program of `benches/peers`, which
//! then takes turns too. It prints its measurements and targets, and writes `report.json` and `growth.svg` to `bench`
//! in cargo's target folder. `docs/performance.md` describes the method and the columns.

mod beside;
mod counted;
mod lasting;
mod latency;
mod peers;
mod plot;
mod row;
mod side_by_side;
mod targets;

use std::cell::RefCell;
use std::path::PathBuf;

use peers::Peers;
use row::{Report, Row};
use tokio::runtime::Runtime;
use workflow_benches::figure::Figure;
use workflow_benches::work::{Extent, SHAPES, Work, works};

/// The command line.
struct Asked {
    extent: Extent,
    shapes: Vec<String>,
    /// Whether to build the peers.
    peers: bool,
}

impl Asked {
    fn of(arguments: impl Iterator<Item = String>) -> Self {
        let (options, shapes): (Vec<String>, Vec<String>) =
            arguments.partition(|argument| argument.starts_with("--"));
        let has = |wanted| options.iter().any(|option| option == wanted);
        // `cargo bench` says so; `cargo test` does not.
        let extent = if has("--bench") { Extent::Full } else { Extent::Quick };
        Self { extent, shapes, peers: has("--peers") }
    }

    fn wants(&self, shape: &str) -> bool {
        self.shapes.is_empty() || self.shapes.iter().any(|asked| asked == shape)
    }

    /// How many turns each contender gets.
    fn turns(&self) -> usize {
        if self.extent == Extent::Full { 25 } else { 1 }
    }
}

/// The measurements so far.
struct Measured {
    asked: Asked,
    runtime: Runtime,
    peers: Option<RefCell<Peers>>,
    rows: Vec<Row>,
    figures: Vec<Figure>,
}

impl Measured {
    /// The shapes that only differ in their work.
    fn in_turns(&mut self) {
        let asked = SHAPES.iter().filter(|(shape, _)| self.asked.wants(shape)).collect::<Vec<_>>();
        for shape in asked {
            let works = works(shape, self.asked.extent);
            let mut rows = self.side_by_side(shape.0, &works);
            side_by_side::grow(&mut rows);
            counted::count(self.asked.extent, &mut rows);
            self.take(rows);
        }
    }

    fn side_by_side(&mut self, shape: &str, works: &[Work]) -> Vec<Row> {
        let turns = self.asked.turns();
        if shape == "observers" {
            return beside::observed(turns, works);
        }
        if shape == "fan-work" {
            self.figures.extend(works.iter().filter_map(|work| beside::speed_up(turns, work)));
        }
        side_by_side::measure(turns, works, &|way| side_by_side::go(&self.runtime, way), self.peers.as_ref())
    }

    /// The shapes that need a process, a thread or a disk.
    fn lasting(&mut self) {
        let turns = self.asked.turns();
        if self.asked.wants("latency") {
            let (rows, figure) = latency::measure();
            self.take(rows);
            self.figures.push(figure);
        }
        if self.asked.wants("waiting") {
            self.take(lasting::waiting(self.asked.extent));
        }
        if self.asked.wants("durable-chain") {
            self.take(lasting::durable_chain(&self.runtime, turns));
        }
        if self.asked.wants("durable-runs") {
            let (rows, figure) = lasting::durable_runs(&self.runtime, turns);
            self.take(rows);
            self.figures.push(figure);
        }
    }

    #[expect(clippy::print_stdout, reason = "figures are what a benchmark is for")]
    fn take(&mut self, rows: Vec<Row>) {
        for row in &rows {
            println!("{row}");
        }
        self.rows.extend(rows);
    }

    /// Prints the targets, and writes the files.
    #[expect(clippy::print_stdout, reason = "figures are what a benchmark is for")]
    fn tell(&self) {
        println!("\n{}", Figure::HEADER);
        for figure in targets::figures(&self.rows).iter().chain(&self.figures) {
            println!("{figure}");
        }
        let folder = folder();
        let report = serde_json::to_vec_pretty(&Report { shapes: &self.rows }).expect("it is JSON");
        std::fs::write(folder.join("report.json"), report).expect("the target folder can be written");
        plot::draw(&folder.join("growth.svg"), &self.rows).expect("the target folder can be written");
        println!("\n`report.json` and `growth.svg` are in {}", folder.display());
    }
}

#[expect(clippy::print_stdout, reason = "figures are what a benchmark is for")]
fn main() {
    let asked = Asked::of(std::env::args().skip(1));
    let runtime = Runtime::new().expect("a runtime starts");
    let peers = if asked.extent == Extent::Full { Peers::start(asked.peers) } else { None };
    let peers = peers.map(RefCell::new);
    let mut measured = Measured { asked, runtime, peers, rows: Vec::new(), figures: Vec::new() };
    println!("{}", Row::HEADER);
    measured.in_turns();
    measured.lasting();
    measured.tell();
}

/// Where the results are: in `bench` in cargo's target folder.
fn folder() -> PathBuf {
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let folder = scratch.parent().expect("it lies in the target folder").join("bench");
    std::fs::create_dir_all(&folder).expect("a folder can be made in the target folder");
    folder
}
