//! Measuring contenders side by side: they take turns on the same work in one run, and what is printed is the median of
//! each and the ratio of two. The work of the shapes and those who do it are here as well, so that one program can
//! measure its time and another one count what it allocates.

pub mod counted;
#[cfg(feature = "others")]
pub mod durable;
pub mod figure;
mod hand;
pub mod sample;
pub mod work;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How many turns each contender gets; the median counts.
const TURNS: usize = 15;

/// One way of doing the work; returns a result that all contenders must agree on.
pub struct Contender<'a> {
    name: &'static str,
    work: Box<dyn FnMut() -> u64 + 'a>,
}

impl std::fmt::Debug for Contender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl<'a> Contender<'a> {
    /// Names a way of doing the work.
    pub fn new(name: &'static str, work: impl FnMut() -> u64 + 'a) -> Self {
        Self { name, work: Box::new(work) }
    }
}

/// Measures the contenders, and prints time per unit and the ratio to the first contender; returns the median of each.
///
/// # Panics
/// If the contenders do not agree on the result: they would not have done the same work.
pub fn compare(title: &str, units: u32, mut contenders: Vec<Contender<'_>>) -> Vec<Duration> {
    let results = RefCell::new(BTreeSet::new());
    let timed = contenders.iter_mut().map(|contender| {
        let turn = || {
            let began = Instant::now();
            let result = (contender.work)();
            let took = began.elapsed();
            results.borrow_mut().insert(result);
            took
        };
        Box::new(turn) as Box<dyn FnMut() -> Duration>
    });
    let medians = in_turns(TURNS, timed.collect());
    let results = results.into_inner();
    assert!(results.len() == 1, "{title}: results differ: {results:?}");
    print(title, units, &contenders, &medians);
    medians
}

/// Gives each contender so many turns, and returns the medians of the times that they tell. What a contender prepares
/// does not count. The order is another one in each round, so that nobody always comes after the same other, whose
/// writes a disk may still be busy with.
pub fn in_turns(turns: usize, mut contenders: Vec<Box<dyn FnMut() -> Duration + '_>>) -> Vec<Duration> {
    let mut times = vec![Vec::with_capacity(turns); contenders.len()];
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut drawn = 1_u64;
    for _ in 0..turns.max(1) {
        order.sort_by_cached_key(|_| {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            drawn >> 33
        });
        for contender in &order {
            times[*contender].push(contenders[*contender]());
        }
    }
    times.into_iter().map(median).collect()
}

#[expect(clippy::print_stdout, reason = "figures are what a benchmark is for")]
fn print(title: &str, units: u32, contenders: &[Contender<'_>], medians: &[Duration]) {
    println!("{title}");
    for (contender, time) in contenders.iter().zip(medians) {
        let (per_unit, ratio) = (*time / units, time.as_secs_f64() / medians[0].as_secs_f64());
        println!("  {:<44} {:>10} ns  {ratio:>6.2}x", contender.name, per_unit.as_nanos());
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
