//! Allocations, counted by a program of their own.

use std::io::Write as _;
use std::process::{Command, Stdio};

use workflow_benches::work::Extent;

use crate::row::Row;

/// Tells each row what a workflow allocates per item; rows that no workflow is counted for stay without.
pub(crate) fn count(extent: Extent, rows: &mut [Row]) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_allocations"))
        .args((extent == Extent::Quick).then_some("--quick"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was built with the benches");
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    // Dropped when it is written, so that it sees the end.
    child.stdin.take().expect("it is piped").write_all(names.join("\n").as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "allocations could not be counted");
    let counted = String::from_utf8(output.stdout).expect("it writes numbers");
    for (row, counted) in rows.iter_mut().zip(counted.lines()) {
        row.allocations = counted.parse().ok().filter(|counted: &f64| !counted.is_nan());
    }
}
