//! Counts the allocations of a shape's workflow, on one thread. Benches start this program, so that no timed or
//! instruction-counted program contains the counter.
//!
//! Reads names of work, one per line. Answers each with a line of allocations per item, which is empty for unknown
//! work. `--quick` selects the small work. Some work may have any size.

use std::io::BufRead as _;

use tokio::runtime::Builder;
use workflow_benches::counted::Allocated;
use workflow_benches::work::{Extent, SHAPES, Work, sized, works};

#[expect(clippy::print_stdout, reason = "it is asked for them")]
fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let extent = if is_quick { Extent::Quick } else { Extent::Full };
    let works: Vec<Work> = SHAPES.iter().flat_map(|shape| works(shape, extent)).collect();
    for name in std::io::stdin().lock().lines() {
        let name = name.expect("lines are text");
        let counted = match works.iter().find(|work| work.name == name) {
            Some(work) => count(work),
            None => sized(&name).as_ref().and_then(count),
        };
        println!("{}", counted.map_or_else(String::new, |counted| counted.to_string()));
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn count(work: &Work) -> Option<Allocated> {
    let way = work.ours()?;
    let runtime = || Builder::new_current_thread().build().expect("a runtime starts");
    // One-time allocations do not count. Waiting runs are dropped with their runtime.
    runtime().block_on(way());
    let runtime = runtime();
    let counted = allocation_counter::measure(|| {
        runtime.block_on(way());
    });
    let per_item = |count| count as f64 / work.items as f64;
    Some(Allocated {
        allocations: per_item(counted.count_total),
        bytes: per_item(counted.bytes_total),
        held: per_item(counted.bytes_max),
    })
}
