//! What durable runs cost: appending to the store in a file beside redb itself, runs beside a store that commits each
//! batch by itself, going on with a run beside decoding its journal, and the size of a file.
//!
//! `cargo bench -p workflow-benches --bench durable`; with `-- --quick` it does little of everything, only to show that
//! it runs; with `-- append`, `-- runs` or `-- recovery` only that. The files are in a folder of cargo's target folder, which has to be on a disk: in memory nothing costs what
//! it costs.

mod append;
mod recovery;
mod runs;
mod scale;

use scale::Scale;
use workflow_benches::figure::Figure;

/// What measures some of the figures.
type Measure = fn(&Scale) -> Vec<Figure>;

const PARTS: [(&str, Measure); 3] =
    [("append", append::measure), ("runs", runs::measure), ("recovery", recovery::measure)];

#[expect(clippy::print_stdout, reason = "figures are what a benchmark is for")]
fn main() {
    let (options, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let is_quick = options.iter().any(|option| option == "--quick");
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

/// A folder for one file, gone when it is dropped.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made in the target folder")
}

/// A runtime as programs have it.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime starts")
}
