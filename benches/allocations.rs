//! Counts what the workflow of a shape allocates, on one thread: benches start it, so that what counts allocations is not
//! in the program whose time or instructions are counted.
//!
//! Reads names of work, a line each, and answers with a line of what each item of it allocates, which is empty if nobody
//! does the work; with `--quick`, of the work that is little. Some work may be of any size.

use std::io::BufRead as _;

use tokio::runtime::Builder;
use workflow_benches::counted::Allocated;
use workflow_benches::work::{Extent, SHAPES, Work, sized};

#[expect(clippy::print_stdout, reason = "it is asked for them")]
fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let extent = if is_quick { Extent::Quick } else { Extent::Full };
    let works: Vec<Work> = SHAPES.iter().flat_map(|(_, works)| works(extent)).collect();
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
    // What is made once does not count. The runs that wait are gone with their runtime.
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
