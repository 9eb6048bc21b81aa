//! Allocations, counted by a separate program.

use std::process::Command;

use workflow_benches::counted::allocated;
use workflow_benches::work::Extent;

use crate::row::Row;

/// Adds the allocations per item to each row; rows without a counted workflow get none.
pub(crate) fn count(extent: Extent, rows: &mut [Row]) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_allocations"));
    program.args((extent == Extent::Quick).then_some("--quick"));
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let counted = allocated(&mut program, &names);
    for (row, counted) in rows.iter_mut().zip(counted) {
        row.allocations = counted.map(|counted| counted.allocations);
    }
}
