//! Calls an observer the way an engine does: from one thread, which has no runtime.

use std::iter::once;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use workflow_core::observe::{Observation, Observer};

use crate::conformance::stage::{PATIENCE, panic_text, runtime};

/// Passes all observations to an observer and drops it.
pub(super) fn play<O: Observer>(open: impl FnOnce() -> O, told: Vec<Observation>) {
    play_within(PATIENCE, open, told);
}

/// The same with this time limit per call.
pub(super) fn play_within<O: Observer>(patience: Duration, open: impl FnOnce() -> O, told: Vec<Observation>) {
    let runtime = runtime();
    let entered = runtime.enter();
    let observer = open();
    drop(entered);
    let calls: Vec<String> =
        told.iter().map(|told| format!("`observe` of {:?} of run {}", told.what, told.run)).collect();
    let returns = tell(observer, told);
    for call in calls.into_iter().chain(once("dropping the observer".to_owned())) {
        expect_return(patience, &returns, &call);
    }
    runtime.shutdown_background();
}

/// The result of each call, and then of the drop.
fn tell<O: Observer>(observer: O, told: Vec<Observation>) -> Receiver<Result<(), String>> {
    let (sender, returns) = channel();
    let thread = std::thread::Builder::new().name("workflow-observer".into());
    let telling = thread.spawn(move || {
        for observation in &told {
            // The send fails only if the test is over.
            let _ = sender.send(caught(|| observer.observe(observation)));
        }
        let _ = sender.send(caught(|| drop(observer)));
    });
    telling.unwrap_or_else(|error| panic!("a suite needs a thread: {error}"));
    returns
}

fn expect_return(patience: Duration, returns: &Receiver<Result<(), String>>, call: &str) {
    let returned = returns.recv_timeout(patience).unwrap_or_else(|_| {
        panic!("an observer may block, but not for ever: {call} did not return within {patience:?}")
    });
    returned.unwrap_or_else(|panic| {
        let demand = "an observer does not panic, or it loses what it is told";
        let from = "it is called from a thread of its own, without a runtime";
        panic!("{demand}, but {call} did: {panic}\n({from})")
    });
}

fn caught(call: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panic_text(&*panic).to_owned())
}
