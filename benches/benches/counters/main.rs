//! Reproducible counts: allocations and instructions per item of some workflows.
//!
//! `cargo bench --profile release --package workflow-benches --no-default-features --bench counters` prints them next to
//! `benches/baseline.json`. With `-- --check` the program fails if one is worse by more than its tolerance, and with
//! `-- --accept` it writes the baseline. Each count is the difference between work with 20,000 items and with 10,000, so
//! one-time costs do not count.
//!
//! `valgrind --tool=callgrind` counts the instructions of this program itself, which then does some work once.
//! gungraun, a layer over callgrind, does not fit: it compares and limits whole executions, not differences, and
//! building its runner takes longer than everything else here.

mod baseline;
mod compare;
mod goes;

use std::process::ExitCode;
use std::thread;

use baseline::{Baseline, Counter};
use workflow_benches::work::{COUNTED, sized};

/// The counted difference is between these two sizes. In both, the work is done once.
const SIZES: [u64; 2] = [10_000, 20_000];

/// Work whose instructions vary: open runs are dropped in the order of a hash table.
const UNSTEADY: &[&str] = &["waiting"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [only, name, times] = arguments.as_slice()
        && only == goes::ONLY
    {
        goes::only(name, times.parse().expect("a number of times"));
        return ExitCode::SUCCESS;
    }
    let asked = |wanted| arguments.iter().any(|argument| argument == wanted);
    let counted = count();
    if asked("--accept") {
        counted.write();
    }
    let is_good = compare::tell(&Baseline::read(), &counted);
    if is_good || !asked("--check") { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Counts one item of each shape.
fn count() -> Baseline {
    let counters = COUNTED.iter().map(|(shape, _)| ((*shape).to_owned(), counter(shape))).collect();
    Baseline { built: baseline::built(), counters }
}

fn counter(shape: &str) -> Counter {
    let [less, more] = SIZES.map(|size| format!("{shape}/{size}"));
    let count = |name| goes::count(name, !UNSTEADY.contains(&shape));
    let (of_less, of_more) = thread::scope(|scope| {
        let of_less = scope.spawn(|| count(&less));
        let of_more = count(&more);
        (of_less.join().expect("it does not panic"), of_more)
    });
    Counter::between(sized(&less).expect("it is counted").item, &of_less, &of_more)
}
