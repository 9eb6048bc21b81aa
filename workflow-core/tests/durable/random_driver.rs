//! Random workflows with every kind of step and input, in random engines over one store, under random acts of clients (S23,
//! S38, S39, S57, S61, S62, S67, S69).
//!
//! A ledger that knows nothing of the product has the effects of steps and the acknowledged acts of clients; the journals
//! have the product's view. The first case that fails prints its workflows, acts and ledger, and each one its seed:
//! `DRIVER_SEED=7` plays it again and prints them too, and with `DRIVER_CASES=500` it plays as many from it on. `DRIVER_CASES`
//! alone plays so many from 0 on.
//! Engines of a case claim runs in an order of their ids, which are new each time, so a few cases differ when played again.
//!
//! `plan` draws the workflows, `work` has their steps, `ledger` their effects, `acts` those of clients, `case` plays, and
//! `same` compares reports.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

mod acts;
mod case;
mod ledger;
mod plan;
mod same;
mod work;

/// The cases of a test run that nobody gave a number.
const CASES: u64 = 300;

/// The result of a case, and its violations.
struct Played {
    reached: BTreeMap<&'static str, u32>,
    violations: Vec<String>,
    /// Its workflows, its acts and its ledger, in words.
    told: Vec<String>,
}

/// Plays a case. A panic is a violation.
fn play(seed: u64) -> Played {
    catch_unwind(AssertUnwindSafe(|| case::play(seed))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let violations = vec![format!("a panic: {}", text.unwrap_or_default())];
        Played { reached: BTreeMap::new(), violations, told: Vec::new() }
    })
}

// S23, S38, S39, S57, S61, S62, S67, S69
#[test]
#[expect(clippy::print_stderr, reason = "a test of a size shows what it reached")]
fn random_workflows_keep_what_they_promise_in_random_engines_under_random_acts() {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let (cases, first) = (number("DRIVER_CASES"), number("DRIVER_SEED"));
    let only = first.filter(|_| cases.is_none());
    let (first, cases) = (first.unwrap_or(0), only.map_or(cases.unwrap_or(CASES), |_| 1));
    let (mut reached, mut failed) = (BTreeMap::<&str, u32>::new(), Vec::new());
    for seed in first..first + cases {
        let played = play(seed);
        for (what, times) in played.reached {
            *reached.entry(what).or_default() += times;
        }
        let is_first = failed.is_empty() && !played.violations.is_empty();
        if only.is_some() || is_first {
            eprintln!("{}", played.told.join("\n"));
        }
        if !played.violations.is_empty() {
            failed.push(format!("DRIVER_SEED={seed}: {}", played.violations.join("\n  ")));
        }
    }
    eprintln!("{reached:?}");
    assert!(failed.is_empty(), "{} of {cases} cases:\n{}", failed.len(), failed.join("\n"));
    for what in ["a comparison", "a kill", "a pause", "a redrive", "a run that completed", "a send"] {
        assert!(only.is_some() || cases < CASES || reached.contains_key(what), "{what} in {reached:?}");
    }
}
