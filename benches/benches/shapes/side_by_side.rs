//! Work of several contenders, in turns.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use workflow_benches::in_turns;
use workflow_benches::work::{By, Way, Work};

use crate::peers::{NAMES, Peers};
use crate::row::Row;

/// The time of one execution of the work, in a task of the runtime, and its result.
pub(crate) fn go(runtime: &Runtime, way: &Way) -> (Duration, u64) {
    let work = way();
    let began = Instant::now();
    let result = runtime.block_on(runtime.spawn(work)).expect("it does not panic");
    (began.elapsed(), result)
}

/// One execution of the work, in any place.
pub(crate) type Go<'a> = &'a dyn Fn(&Way) -> (Duration, u64);

/// Executes all of the work in turns, all ways of all sizes in one round, and compares the results.
///
/// # Panics
/// Panics if the results differ: it would not be the same work.
pub(crate) fn measure(turns: usize, works: &[Work], go: Go<'_>, peers: Option<&RefCell<Peers>>) -> Vec<Row> {
    let results = RefCell::new(vec![BTreeSet::new(); works.len()]);
    let mut rows: Vec<Row> =
        works.iter().map(|work| Row::new(&work.name, format!("ns/{}", work.item), f64::NAN)).collect();
    let (mut who, mut contenders) = (Vec::new(), Vec::new());
    for (number, work) in works.iter().enumerate() {
        for (by, way) in &work.ways {
            // One-time work does not count.
            go(way);
            let results = &results;
            let turn = move || {
                let (took, result) = go(way);
                results.borrow_mut()[number].insert(result);
                took
            };
            who.push((number, Who::By(*by)));
            contenders.push(Box::new(turn) as Box<dyn FnMut() -> Duration + '_>);
        }
        for (name, turn) in peers.into_iter().flat_map(|peers| of_peers(work, peers)) {
            who.push((number, Who::Peer(name)));
            contenders.push(turn);
        }
    }
    for ((number, who), took) in who.into_iter().zip(in_turns(turns, contenders)) {
        rows[number].set(who, took, &works[number]);
    }
    for (work, results) in works.iter().zip(results.into_inner()) {
        assert!(results.len() == 1 && !results.contains(&0), "{work:?}: results differ: {results:?}");
    }
    rows
}

/// One execution of each peer that supports the work.
fn of_peers<'a>(
    work: &'a Work,
    peers: &'a RefCell<Peers>,
) -> impl Iterator<Item = (&'static str, Box<dyn FnMut() -> Duration + 'a>)> {
    NAMES.into_iter().filter_map(move |name| {
        peers.borrow_mut().go(&work.name, name)?;
        let turn = move || peers.borrow_mut().go(&work.name, name).unwrap_or_default();
        Some((name, Box::new(turn) as Box<dyn FnMut() -> Duration + 'a>))
    })
}

/// A contender.
#[derive(Clone, Copy)]
enum Who {
    By(By),
    Peer(&'static str),
}

impl Row {
    fn set(&mut self, who: Who, took: Duration, work: &Work) {
        let time = per_item(took, work.items);
        match who {
            Who::By(By::Ours) => self.ours = time,
            Who::By(By::Spawn) => self.spawn = Some(time),
            Who::By(By::Floor) => self.floor = Some(time),
            Who::By(By::Stages) => self.stages = Some(time),
            Who::Peer(name) => {
                // Peers do the work once.
                let items = self.size().unwrap_or(work.items);
                self.peers.insert(name.to_owned(), per_item(took, items));
            }
        }
    }
}

/// Nanoseconds per item.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(crate) fn per_item(took: Duration, items: u64) -> f64 {
    took.as_secs_f64() * 1e9 / items as f64
}

/// Adds to each row the growth of its shape: time per item at its largest size over that at 1,000.
pub(crate) fn grow(rows: &mut [Row]) {
    // A row without a size counts as 1,000.
    let at = |size| rows.iter().find(|row| row.size().unwrap_or(1_000) == size).map(|row| row.ours);
    let largest = rows.iter().filter_map(Row::size).max().filter(|size| *size > 1_000);
    if let (Some(least), Some(most)) = (at(1_000), largest.and_then(at)) {
        for row in rows {
            row.growth = Some(most / least);
        }
    }
}
