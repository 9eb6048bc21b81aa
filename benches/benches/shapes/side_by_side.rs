//! Work that several do, in turns.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use workflow_benches::in_turns;
use workflow_benches::work::{By, Way, Work};

use crate::row::Row;

/// How long one go of the work takes, in a task of the runtime; and its result.
fn go(runtime: &Runtime, way: &Way) -> (Duration, u64) {
    let work = way();
    let began = Instant::now();
    let result = runtime.block_on(runtime.spawn(work)).expect("it does not panic");
    (began.elapsed(), result)
}

/// Does all of the work in turns, all ways of all sizes in one round, and compares the results.
pub(crate) fn measure(runtime: &Runtime, turns: usize, works: &[Work]) -> Vec<Row> {
    let results = RefCell::new(vec![BTreeSet::new(); works.len()]);
    let ways =
        || works.iter().enumerate().flat_map(|(number, work)| work.ways.iter().map(move |way| (number, way)));
    // What is made once does not count.
    for (_, (_, way)) in ways() {
        go(runtime, way);
    }
    let contenders = ways().map(|(number, (_, way))| {
        let results = &results;
        let turn = move || {
            let (took, result) = go(runtime, way);
            results.borrow_mut()[number].insert(result);
            took
        };
        Box::new(turn) as Box<dyn FnMut() -> Duration + '_>
    });
    let medians = in_turns(turns, contenders.collect());
    let mut rows: Vec<Row> =
        works.iter().map(|work| Row::new(&work.name, format!("ns/{}", work.item), f64::NAN)).collect();
    for ((number, (by, _)), took) in ways().zip(medians) {
        let row = &mut rows[number];
        let time = per_item(took, works[number].items);
        match by {
            By::Ours => row.ours = time,
            By::Spawn => row.spawn = Some(time),
            By::Floor => row.floor = Some(time),
            By::Stages => row.stages = Some(time),
        }
    }
    for (work, results) in works.iter().zip(results.into_inner()) {
        assert!(results.len() == 1 && !results.contains(&0), "{work:?}: results differ: {results:?}");
    }
    rows
}

/// Nanoseconds for each.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(crate) fn per_item(took: Duration, items: u64) -> f64 {
    took.as_secs_f64() * 1e9 / items as f64
}

/// Says of each row how its shape grows: time per item at its largest size over that at 1,000.
pub(crate) fn grow(rows: &mut [Row]) {
    let at = |size| rows.iter().find(|row| row.size() == Some(size)).map(|row| row.ours);
    let largest = rows.iter().filter_map(Row::size).max().filter(|size| *size > 1_000);
    if let (Some(least), Some(most)) = (at(1_000), largest.and_then(at)) {
        rows.iter_mut().for_each(|row| row.growth = Some(most / least));
    }
}
