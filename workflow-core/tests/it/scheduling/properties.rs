//! Random workflows with random runs: the scheduler always does what the model does.

use std::cell::RefCell;

use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

mod difference;
mod forecasts;
mod moves;
mod play;
mod reached;
mod stalls;
mod tape;

use play::play;
use reached::Reached;
use tape::{Shape, tapes};

#[test]
fn a_plain_run_goes_as_the_rules_say() {
    // S11–S20, S28, S30, S39
    let reached = check(Shape::Plain);
    reached.assert_of_10_000(100, &["a question", "waiting", "completed", "failed", "a failed precondition"]);
    reached.assert_of_10_000(100, &["stalled", "cancelled", "a refused commit", "a refused arrival"]);
    reached
        .assert_of_10_000(100, &["a stall whatever can arrive", "too many executions", "a caught failure"]);
    reached.assert_of_10_000(100, &["a fired timer", "an expired request", "timed out"]);
    // S58
    reached.assert_of_10_000(1_000, &["a passive read"]);
    // S61
    reached.assert_of_10_000(100, &["a pause", "a deferred question", "a deferred execution"]);
    reached.assert_of_10_000(100, &["a result in a pause", "a repeated pause", "an unpause without a pause"]);
    reached.assert_of_10_000(20, &["redriven after an end in a pause", "a cancel in a pause"]);
    // S39
    reached.assert_of_10_000(100, &["redriven after a failure", "redriven after a failed precondition"]);
    reached.assert_of_10_000(100, &["redriven after a stall", "redriven after a cancel", "not redriven"]);
}

#[test]
fn a_run_with_fan_outs_goes_as_the_rules_say() {
    // S39, S44–S50
    let reached = check(Shape::FanOuts);
    reached
        .assert_of_10_000(100, &["a gather", "an empty gather", "a taken gather", "a gather with a failure"]);
    reached.assert_of_10_000(100, &["a caught failure in a branch", "a branch beside one that waits"]);
    reached.assert_of_10_000(100, &["a gather with a dropped branch"]);
    reached.assert_of_10_000(100, &["a dropped execution", "branches below branches", "a checked forecast"]);
    reached.assert_of_10_000(100, &["too many executions", "a fired timer", "an expired request"]);
    // S74
    reached.assert_of_10_000(20, &["a gather with a tolerated failure"]);
    // S76
    reached.assert_of_10_000(100, &["too many items"]);
    // S58
    reached.assert_of_10_000(1_000, &["a passive read"]);
    // S59
    reached.assert_of_10_000(100, &["branches settled in another order", "a gather of several types"]);
    reached.assert_of_10_000(20, &["a gather of no type"]);
    // S60
    reached.assert_of_10_000(20, &["a caught fan-out", "a tolerated fan-out"]);
    // S61
    reached.assert_of_10_000(100, &["a pause", "a deferred question", "a deferred execution"]);
    reached.assert_of_10_000(100, &["a result in a pause"]);
    // S39
    reached.assert_of_10_000(100, &["redriven after a failure", "a branch that opens again"]);
    reached.assert_of_10_000(20, &["branches that open again"]);
}

fn check(shape: Shape) -> Reached {
    // `PROPTEST_CASES` asks for another number.
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { 3_000 };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let reached = RefCell::new(Reached::default());
    let result = TestRunner::new(config).run(&tapes(), |tape| {
        let of_run = play(&tape, shape).map_err(TestCaseError::fail)?;
        reached.borrow_mut().add(&of_run);
        Ok(())
    });
    match result {
        Ok(()) => reached.into_inner(),
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        Err(TestError::Abort(reason)) => panic!("the runs were given up: {reason}"),
    }
}
