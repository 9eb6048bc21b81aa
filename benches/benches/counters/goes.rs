//! One execution of some work in separate processes: one counts allocations, the other instructions.

use std::process::{Command, Stdio};

use tokio::runtime::Builder;
use workflow_benches::counted::allocated;
use workflow_benches::work::sized;

/// The argument that makes this program do only some work, this many times: `--only chain/10000 1`.
pub(crate) const ONLY: &str = "--only";

/// Settings of glibc's allocator with which each allocation takes the same instructions: the allocator keeps freed memory in its
/// lists, joins nothing, and gives nothing back. Without them two counts of one program differ by three in a hundred, because
/// they depend on addresses.
const STEADY_ALLOCATOR: &str = "glibc.malloc.tcache_count=65535:glibc.malloc.mxfast=0:glibc.malloc.top_pad=1000000000:\
    glibc.malloc.trim_threshold=1000000000:glibc.malloc.mmap_threshold=1000000000";

/// The total counts of one execution.
#[derive(Debug)]
pub(crate) struct Go {
    pub(crate) items: u64,
    /// In the order of [`KINDS`](crate::baseline::KINDS).
    pub(crate) counts: [Option<f64>; 4],
}

/// Counts one execution of the work, and its instructions if they are steady.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(crate) fn count(name: &str, is_steady: bool) -> Go {
    let items = sized(name).expect("it is counted").items;
    let mut program = Command::new(env!("CARGO_BIN_EXE_allocations"));
    let allocated = allocated(program.arg("--quick"), &[name]).remove(0).expect("it is counted");
    let total = |each: f64| Some(each * items as f64);
    let instructions = is_steady.then(|| instructions(name));
    let counts = [total(allocated.allocations), total(allocated.bytes), total(allocated.held), instructions];
    Go { items, counts }
}

/// Does the work on one thread.
pub(crate) fn only(name: &str, times: u64) {
    let work = sized(name).expect("it is counted");
    let way = work.ours().expect("a workflow does it");
    let runtime = Builder::new_current_thread().build().expect("a runtime starts");
    for _ in 0..times {
        assert_ne!(runtime.block_on(way()), 0, "{name} failed");
    }
}

/// The instructions of this program for one execution of the work.
fn instructions(name: &str) -> f64 {
    let program = std::env::current_exe().expect("it runs");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([ONLY, name, "1"])
        .env("GLIBC_TUNABLES", STEADY_ALLOCATOR)
        .stdin(Stdio::null())
        .output()
        .expect("`valgrind` is installed");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "valgrind failed on {name}: {told}");
    let collected = told.lines().find_map(|line| line.split_once("Collected : "));
    collected.and_then(|(_, count)| count.trim().parse().ok()).expect("callgrind says what it collected")
}
