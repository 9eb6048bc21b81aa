//! Measures durable runs: appends to the file store compared with redb itself, runs with a store that commits each
//! batch separately, resuming a run with decoding its journal, queries of a large file with those of a small one, and the
//! size of a file.
//!
//! `cargo bench -p workflow-benches --bench durable`. `cargo test` runs a small part of everything, as a smoke test;
//! with `-- append`, `-- runs`, `-- recovery` or `-- queries` only that part. The files are in cargo's target folder, which
//! must be on a disk: costs in memory differ.

mod append;
mod queries;
mod recovery;
mod runs;
mod scale;

use scale::Scale;
use workflow_benches::figure::Figure;

/// Measures some of the figures.
type Measure = fn(&Scale) -> Vec<Figure>;

const PARTS: [(&str, Measure); 4] = [
    ("append", append::measure),
    ("runs", runs::measure),
    ("recovery", recovery::measure),
    ("queries", queries::measure),
];

#[expect(clippy::print_stdout, reason = "figures are what a benchmark is for")]
fn main() {
    let (options, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    // `cargo bench` says so; `cargo test` does not.
    let is_quick = !options.iter().any(|option| option == "--bench");
    let scale = if is_quick { Scale::QUICK } else { Scale::FULL };
    println!("files are in {}", env!("CARGO_TARGET_TMPDIR"));
    println!("{}", Figure::HEADER);
    for (name, measure) in PARTS {
        let wanted = names.is_empty() || names.iter().any(|asked| asked == name);
        for figure in if wanted { measure(&scale) } else { Vec::new() } {
            println!("{figure}");
        }
    }
}

/// A folder for one file, deleted on drop.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made in the target folder")
}

/// A multi-threaded runtime, as in most programs.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime starts")
}
