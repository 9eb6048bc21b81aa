//! What workflows cost: shapes of them beside the same work by hand, in turns, in one run.
//!
//! `cargo bench -p workflow-benches --bench shapes`; with `-- --quick` it does a little of everything, only to show that
//! it runs; with `-- chain fan` only these. It prints a table, and writes `report.json` and `growth.svg` to
//! `bench` in cargo's target folder. `docs/performance.md` says how it measures and what the columns mean.

mod counted;
mod row;
mod side_by_side;

use std::path::PathBuf;

use row::{Report, Row};
use tokio::runtime::Runtime;
use workflow_benches::work::{Extent, SHAPES};

/// What was asked for on the command line.
struct Asked {
    extent: Extent,
    shapes: Vec<String>,
}

impl Asked {
    fn of(arguments: impl Iterator<Item = String>) -> Self {
        let (options, shapes): (Vec<String>, Vec<String>) =
            arguments.partition(|argument| argument.starts_with("--"));
        let is_quick = options.iter().any(|option| option == "--quick");
        Self { extent: if is_quick { Extent::Quick } else { Extent::Full }, shapes }
    }

    fn wants(&self, shape: &str) -> bool {
        self.shapes.is_empty() || self.shapes.iter().any(|asked| asked == shape)
    }

    /// How many turns each contender gets.
    fn turns(&self) -> usize {
        if self.extent == Extent::Full { 25 } else { 1 }
    }
}

#[expect(clippy::print_stdout, reason = "figures are what a benchmark is for")]
fn main() {
    let asked = Asked::of(std::env::args().skip(1));
    let runtime = Runtime::new().expect("a runtime starts");
    println!("{}", Row::HEADER);
    let mut all = Vec::new();
    let mut take = |rows: Vec<Row>| {
        rows.iter().for_each(|row| println!("{row}"));
        all.extend(rows);
    };
    for (_, works) in SHAPES.iter().filter(|(shape, _)| asked.wants(shape)) {
        let mut rows = side_by_side::measure(&runtime, asked.turns(), &works(asked.extent));
        side_by_side::grow(&mut rows);
        counted::count(&mut rows);
        take(rows);
    }
    let folder = folder();
    let report = serde_json::to_vec_pretty(&Report { shapes: &all }).expect("it is JSON");
    std::fs::write(folder.join("report.json"), report).expect("the target folder can be written");
    println!("written: {}", folder.join("report.json").display());
}

/// Where the results are: in `bench` in cargo's target folder.
fn folder() -> PathBuf {
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let folder = scratch.parent().expect("it lies in the target folder").join("bench");
    std::fs::create_dir_all(&folder).expect("a folder can be made in the target folder");
    folder
}
