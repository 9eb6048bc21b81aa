//! What is allocated, counted by a program of its own, so that what counts it is in no program that is timed or whose
//! instructions are counted.

use std::fmt;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::str::FromStr;

/// What one go of some work allocates, by its items.
#[derive(Debug, Clone, Copy)]
pub struct Allocated {
    /// How often something is allocated.
    pub allocations: f64,
    /// How many bytes are allocated in all.
    pub bytes: f64,
    /// How many bytes there are at the same time, at the most.
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

/// Asks the program, which `allocations.rs` is, what the workflow of each named work allocates: nothing where there is
/// no such work, or no workflow that does it.
///
/// # Panics
/// If the program fails.
pub fn allocated(program: &mut Command, names: &[&str]) -> Vec<Option<Allocated>> {
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was built with the benches");
    // Dropped when it is written, so that it sees the end.
    child.stdin.take().expect("it is piped").write_all(names.join("\n").as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "allocations could not be counted");
    let counted = String::from_utf8(output.stdout).expect("it writes numbers");
    counted.lines().map(|line| line.parse().ok()).collect()
}
