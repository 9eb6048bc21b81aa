//! Ctrl-C: it pauses a stored run, and cancels any other.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{GATE, Place, QUICK, Ran, SLOW, STUCK, Started};

fn place() -> Place {
    Place::new(&[("slow.yaml", SLOW), ("quick.yaml", QUICK), ("stuck.yaml", STUCK), ("refund.yaml", GATE)])
}

fn interrupted(started: Started, signal: Signal) -> Ran {
    kill_process(Pid::from_child(&started.child), signal).unwrap();
    started.end().1
}

// G29, G39
#[test]
fn a_stored_run_is_paused_and_resume_continues_it() {
    let place = place();
    let run = ["run", "slow.yaml", "--script", "stuck.yaml", "--store", "runs.redb", "--id", "r-1"];
    let paused = interrupted(place.until(&run, "first → slow"), Signal::INT);
    assert_eq!(paused.code, 3, "{}", paused.err);
    assert!(paused.err.contains("run r-1 is paused"), "{}", paused.err);
    assert_eq!(paused.proposed(), ["resume", "r-1", "--store", "runs.redb", "--script", "stuck.yaml"]);
    let explained = place.run(&["explain", "r-1", "--store", "runs.redb"]);
    assert!(explained.out.contains("paused"), "{}", explained.out);
    let proposed = "continue it with: workflow-graph resume r-1 --store runs.redb --script /";
    assert!(explained.out.contains(proposed), "{}", explained.out);
    // It can be interrupted again.
    let started = Started::until(
        place.command(&["resume", "r-1", "--script", "stuck.yaml", "--store", "runs.redb"]),
        "the run continues",
    );
    assert_eq!(interrupted(started, Signal::TERM).code, 3);
    let resumed = place.run(&["resume", "r-1", "--script", "quick.yaml", "--store", "runs.redb", "--json"]);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    assert_eq!(resumed.json()["output"], json!({"first": 1, "slow": 8}));
}

// G39
#[test]
fn a_run_without_a_store_is_cancelled() {
    let place = place();
    for signal in [Signal::INT, Signal::TERM] {
        let started = place.until(&["run", "slow.yaml", "--script", "stuck.yaml", "--json"], "first → slow");
        let ran = interrupted(started, signal);
        assert_eq!((ran.code, &ran.json()["status"]), (1, &json!("cancelled")), "{}", ran.err);
        assert_eq!(ran.json()["trace"]["visits"][0]["node"], "first");
    }
}

// G39
#[test]
fn a_question_ends_with_a_signal() {
    let place = place();
    let run = ["run", "refund.yaml", "--input", r#"{"cents": 5}"#, "--ask", "always"];
    let mut command = place.command(&run);
    command.stdin(std::process::Stdio::piped());
    let mut started = Started::until(command, "granted (boolean, required)");
    let stdin = started.child.stdin.take();
    let ran = interrupted(started, Signal::INT);
    drop(stdin);
    assert_eq!((ran.code, ran.err.contains("the run was cancelled")), (1, true), "{}", ran.err);
}
