//! Counts what the workflow of a shape allocates, on one thread: the bench of the shapes starts it, so that what counts
//! allocations is not in the program whose time is measured.
//!
//! Reads names of work, a line each, and answers with the allocations per item of each; with `--quick` of the work that
//! is little.

use std::io::BufRead as _;

use tokio::runtime::Builder;
use workflow_benches::work::{By, Extent, SHAPES, Work};

#[expect(clippy::print_stdout, reason = "it is asked for them")]
fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let extent = if is_quick { Extent::Quick } else { Extent::Full };
    let works: Vec<Work> = SHAPES.iter().flat_map(|(_, works)| works(extent)).collect();
    for name in std::io::stdin().lock().lines() {
        let name = name.expect("lines are text");
        let counted = works.iter().find(|work| work.name == name).and_then(count);
        println!("{}", counted.unwrap_or(f64::NAN));
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn count(work: &Work) -> Option<f64> {
    let (_, way) = work.ways.iter().find(|(by, _)| *by == By::Ours)?;
    let runtime = Builder::new_current_thread().build().expect("a runtime starts");
    // What is made once does not count.
    runtime.block_on(way());
    let counted = allocation_counter::measure(|| {
        runtime.block_on(way());
    });
    Some(counted.count_total as f64 / work.items as f64)
}
