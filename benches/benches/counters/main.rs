//! What does not wobble: how much the workflows of some shapes allocate, and how many instructions they take, per item.
//!
//! `cargo bench --profile release --bench counters` prints them beside `benches/baseline.json`; with `-- --check` it
//! fails if one of them is worse by more than its tolerance, and with `-- --accept` it writes them there. Each is the
//! difference between work with 20,000 items and with 10,000, so that what is done once does not count.
//!
//! Instructions are counted by `valgrind --tool=callgrind` on this program itself, which then does some work once.
//! gungraun, which stands between such programs and callgrind, was looked at: what it compares and limits are whole
//! goes, not differences, and to build its runner takes longer than everything else that is done here.

mod baseline;
mod compare;
mod goes;

use std::process::ExitCode;
use std::thread;

use baseline::{Baseline, Counter};
use workflow_benches::work::{COUNTED, sized};

/// Between these two sizes is what counts. In both, a go does the work once.
const SIZES: [u64; 2] = [10_000, 20_000];

/// Whose instructions differ from one time to the next: runs that have not ended are dropped in the order of a hash table.
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

/// Counts what an item of each shape takes.
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
