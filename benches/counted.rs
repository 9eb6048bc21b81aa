//! Allocations, counted by a separate program, so that no timed or instruction-counted program contains the counter.

use std::fmt;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::str::FromStr;

/// The allocations of one execution of some work, per item.
#[derive(Debug, Clone, Copy)]
pub struct Allocated {
    /// The number of allocations.
    pub allocations: f64,
    /// The allocated bytes in total.
    pub bytes: f64,
    /// The bytes live at the peak.
    pub held: f64,
}

impl fmt::Display for Allocated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allocations, bytes, held } = self;
        write!(f, "{allocations} {bytes} {held}")
    }
}

/// A line that the program did not write.
#[derive(Debug)]
pub struct NoCounts;

impl FromStr for Allocated {
    type Err = NoCounts;

    fn from_str(line: &str) -> Result<Self, NoCounts> {
        let numbers: Result<Vec<f64>, _> = line.split(' ').map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[allocations, bytes, held]) => Ok(Self { allocations, bytes, held }),
            _ => Err(NoCounts),
        }
    }
}

/// Asks the program `allocations.rs` for the allocations of each named work: `None` for unknown work, or work without a
/// workflow.
///
/// # Panics
/// If the program fails.
pub fn allocated(program: &mut Command, names: &[&str]) -> Vec<Option<Allocated>> {
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was built with the benches");
    // Dropped after writing, so that the program sees the end.
    child.stdin.take().expect("it is piped").write_all(names.join("\n").as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "allocations could not be counted");
    let counted = String::from_utf8(output.stdout).expect("it writes numbers");
    counted.lines().map(|line| line.parse().ok()).collect()
}
