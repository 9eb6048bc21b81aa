//! Small workflows with random behaviour from a seed: compares the exploration's findings with those of all orders.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use workflow_core::Workflow;
use workflow_testkit::{Explored, Outcome, ScenarioOf, Start, explore};

mod branches;
mod crowds;
mod hidden;
mod numbers;
mod shapes;

/// A number below `sides`, the same for the same arguments.
fn roll(seed: u64, what: &str, input: u64, sides: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, what, input).hash(&mut hasher);
    hasher.finish() % sides
}

/// The value, half of the time.
fn maybe<T>(seed: u64, what: &str, input: u64, value: T) -> Option<T> {
    (roll(seed, what, input, 4) > 0).then_some(value)
}

fn outcomes(explored: &Explored) -> HashSet<Outcome> {
    assert!(explored.is_exhaustive(), "{explored}");
    explored.outcomes().cloned().collect()
}

/// The numbers of orders with and without reduction.
fn compare<W: Workflow>(seed: u64, scenario: impl Fn() -> Start<W>) -> [u64; 2] {
    let reduced = explore(&scenario).orders(50_000).survey();
    let every = explore(&scenario).every_order().orders(50_000).survey();
    let (found, expected) = (outcomes(&reduced), outcomes(&every));
    let missed: Vec<&Outcome> = expected.difference(&found).collect();
    let ways: Vec<_> = missed.iter().map(|missed| (every.order_of(missed), missed.to_string())).collect();
    assert!(missed.is_empty(), "seed {seed}: {reduced}; missed {ways:#?}");
    assert_eq!(found, expected, "seed {seed}");
    assert!(reduced.tried() <= every.tried(), "seed {seed}: {reduced}, and {every}");
    [reduced.tried(), every.tried()]
}

/// The same for many seeds, some of which have redundant orders. `DRAWN` asks for so many times as many.
fn compare_all<W: Workflow>(seeds: u64, scenario: impl Fn(u64) -> ScenarioOf<W>) {
    let [reduced, every] = sums(seeds, scenario);
    assert!(reduced < every, "nothing was left out of {every}");
}

fn sums<W: Workflow>(seeds: u64, scenario: impl Fn(u64) -> ScenarioOf<W>) -> [u64; 2] {
    let times = std::env::var("DRAWN").map_or(1, |times| times.parse().expect("`DRAWN` is a number"));
    let mut sums = [0, 0];
    for seed in 0..seeds * times {
        let tried = compare(seed, || scenario(seed).start(shapes::Go));
        sums = [sums[0] + tried[0], sums[1] + tried[1]];
    }
    sums
}
