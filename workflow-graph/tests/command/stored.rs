//! Runs in a store: they wait, and later commands answer, resume, trace, explain and draw them.

use serde_json::json;

use crate::support::{GATE, Place, QUICK, SLOW};

const STORE: [&str; 2] = ["--store", "runs.redb"];
const RUN: [&str; 8] =
    ["run", "refund.yaml", "--input", r#"{"cents": 500}"#, "--store", "runs.redb", "--id", "r-1"];

fn waiting() -> Place {
    let place = Place::new(&[("refund.yaml", GATE)]);
    let ran = place.run(&RUN);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    place
}

// G38, G39
#[test]
fn a_run_waits_and_the_printed_command_answers_it() {
    let place = Place::new(&[("refund.yaml", GATE)]);
    let waits = place.run(&RUN);
    assert_eq!(waits.code, 3, "{}", waits.err);
    let proposed = waits.proposed();
    assert_eq!(proposed, ["answer", "r-1", "approve", r#"{"granted":true}"#, "--store", "runs.redb"]);
    let proposed: Vec<&str> = proposed.iter().map(String::as_str).collect();
    let answered = place.run(&[&proposed[..], &["--json"]].concat());
    assert_eq!(answered.code, 0, "{}", answered.err);
    assert_eq!(answered.json()["output"], json!({"refunded": 500}));
    let late = place.run(&proposed);
    assert_eq!((late.code, late.err.contains("the run has completed")), (2, true), "{}", late.err);
}

// G27, G38
#[test]
fn an_answer_that_does_not_fit_is_refused_with_its_path_and_the_question_stays() {
    let place = waiting();
    let unfit = place.run(&[&["answer", "r-1", "approve", r#"{"granted": "yes"}"#], &STORE[..]].concat());
    assert_eq!((unfit.code, unfit.err.contains("granted")), (2, true), "{}", unfit.err);
    let unknown = place.run(&[&["answer", "r-1", "aprove", "yes"], &STORE[..]].concat());
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("open are `approve`"), "{}", unknown.err);
    let answered = place.run(&[&["answer", "r-1", "approve", "no"], &STORE[..]].concat());
    assert_eq!((answered.code, answered.out.contains("\"refunded\": 0")), (0, true), "{}", answered.err);
}

// G33, G34, G38
#[test]
fn trace_explain_and_draw_show_a_run_and_do_not_change_it() {
    let place = waiting();
    let before = std::fs::read(place.0.path().join("runs.redb")).unwrap();
    let waits = place.run(&[&["trace", "r-1", "--json"], &STORE[..]].concat());
    assert_eq!((waits.code, waits.json()), (0, json!({"visits": [], "routes": []})));
    let explained = place.run(&[&["explain", "r-1"], &STORE[..]].concat());
    assert_eq!((explained.code, explained.out.contains("approve")), (0, true), "{}", explained.err);
    let proposed = "answer with: workflow-graph answer r-1 approve ";
    assert!(
        explained.out.contains(proposed) && explained.out.ends_with(" --store runs.redb\n"),
        "{}",
        explained.out
    );
    assert!(before == std::fs::read(place.0.path().join("runs.redb")).unwrap());
    place.run(&[&["answer", "r-1", "approve", "yes"], &STORE[..]].concat());
    let trace = place.run(&[&["trace", "r-1"], &STORE[..]].concat());
    assert!(trace.out.contains("→ pay (approve.granted)"), "{}", trace.out);
    let drawn = place.run(&[&["draw", "refund.yaml", "--id", "r-1"], &STORE[..]].concat());
    assert!(drawn.out.contains("taken ×1"), "{}", drawn.out);
    let completed = place.run(&[&["explain", "r-1"], &STORE[..]].concat());
    assert!(!completed.out.contains(" with: "), "{}", completed.out);
    let json = place.run(&[&["explain", "r-1", "--json"], &STORE[..]].concat());
    assert_eq!(json.json()["status"], "completed");
}

// G38
#[test]
fn the_document_of_a_run_is_known_and_can_be_named() {
    let place = waiting();
    std::fs::rename(place.0.path().join("refund.yaml"), place.0.path().join("moved.yaml")).unwrap();
    let lost = place.run(&[&["trace", "r-1"], &STORE[..]].concat());
    assert_eq!((lost.code, lost.err.contains("error[file-not-found]")), (2, true), "{}", lost.err);
    let named = place.run(&[&["trace", "r-1", "--document", "moved.yaml"], &STORE[..]].concat());
    assert_eq!(named.code, 0, "{}", named.err);
    place.write("other.yaml", "graph: other\nnodes: {a: {value: 1}}\n");
    let other = place.run(&[&["trace", "r-1", "--document", "other.yaml"], &STORE[..]].concat());
    assert_eq!(
        (other.code, other.err.contains("the document has no such graph")),
        (2, true),
        "{}",
        other.err
    );
}

// G38
#[test]
fn a_failed_run_continues_with_the_mended_document() {
    let text = |divisor: &str| {
        format!(
            "graph: halves\nnodes:\n  begin: {{value: 6, next: divide}}\n  divide: {{value: '${{ begin / {divisor} }}'}}\n"
        )
    };
    let place = Place::new(&[("halves.yaml", &text("input.none"))]);
    let run = ["run", "halves.yaml", "--input", r#"{"none": 0}"#, "--store", "runs.redb", "--id", "r-1"];
    let failed = place.run(&run);
    assert_eq!((failed.code, failed.out.as_str()), (1, ""), "{}", failed.err);
    assert_eq!(failed.proposed(), ["resume", "r-1", "--store", "runs.redb"]);
    let again = place.run(&["resume", "r-1", "--store", "runs.redb"]);
    assert_eq!(again.code, 1, "{}", again.err);
    place.write("halves.yaml", &text("2"));
    let mended = place.run(&["resume", "r-1", "--store", "runs.redb", "--json"]);
    assert_eq!(mended.code, 0, "{}", mended.err);
    assert_eq!((&mended.json()["output"], &mended.json()["document_changed"]), (&json!(3.0), &json!(true)));
    let visits = mended.json()["trace"]["visits"].as_array().unwrap().len();
    assert_eq!(visits, 2, "nothing ran twice");
    // A run that has ended prints its result again.
    let ended = place.run(&["resume", "r-1", "--store", "runs.redb"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "3.0\n"), "{}", ended.err);
}

// G39
#[test]
fn unknown_runs_and_ids_that_are_taken_exit_with_2() {
    let place = waiting();
    let taken = place.run(&RUN);
    assert_eq!((taken.code, taken.err.contains("r-1")), (2, true), "{}", taken.err);
    for arguments in
        [&["resume", "r-2"][..], &["answer", "r-2", "a", "1"], &["trace", "r-2"], &["explain", "r-2"]]
    {
        let ran = place.run(&[arguments, &STORE[..]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (2, "error: there is no run `r-2`\n"), "{arguments:?}");
    }
    let absent = place.run(&["resume", "r-1", "--store", "absent.redb"]);
    assert_eq!((absent.code, absent.err.contains("there is no file")), (2, true), "{}", absent.err);
    assert!(!place.0.path().join("absent.redb").exists());
}

// G29, G38
#[test]
fn a_run_continues_after_its_process_was_killed() {
    let place =
        Place::new(&[("slow.yaml", SLOW), ("quick.yaml", QUICK), ("stuck.yaml", crate::support::STUCK)]);
    let run = ["run", "slow.yaml", "--script", "stuck.yaml", "--store", "runs.redb", "--id", "r-1"];
    let mut started = place.until(&run, "first → slow");
    let in_use = place.run(&["resume", "r-1", "--script", "quick.yaml", "--store", "runs.redb"]);
    assert_eq!((in_use.code, in_use.err.contains("is in use")), (1, true), "{}", in_use.err);
    started.child.kill().unwrap();
    let (code, _) = started.end();
    assert_ne!(code, Some(0));
    let resumed = place.run(&["resume", "r-1", "--script", "quick.yaml", "--store", "runs.redb", "--json"]);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    assert_eq!(resumed.json()["output"], json!({"first": 1, "slow": 8}), "the first node is not run again");
}

// G38
#[test]
fn the_commands_of_the_guide_do_what_it_says() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(root.join("../docs/guide/graphs.md")).unwrap();
    let section = guide.split("\n## ").find(|section| section.starts_with("The command\n")).unwrap();
    let lines: Vec<&str> =
        section.lines().filter_map(|line| line.strip_prefix("$ workflow-graph ")).collect();
    let place = Place::new(&[]);
    std::fs::create_dir(place.0.path().join("scripts")).unwrap();
    for file in ["refund.yaml", "scripts/refund.yaml"] {
        std::fs::copy(root.join("examples").join(file), place.0.path().join(file)).unwrap();
    }
    let ran: Vec<_> = lines.iter().map(|line| place.run(&words(line))).collect();
    let codes: Vec<i32> = ran.iter().map(|ran| ran.code).collect();
    let told: Vec<&str> = ran.iter().map(|ran| ran.err.as_str()).collect();
    assert_eq!(codes, [0, 3, 0, 0], "{lines:?}: {told:?}");
    assert!(ran[1].err.contains("approve"), "{}", ran[1].err);
    assert!(ran[2].out.contains("20000"), "{}", ran[2].out);
    assert!(ran[3].out.contains("The run completed at `pay`."), "{}", ran[3].out);
}

/// The words of a line, of which single quotes hold some together.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(place, part)| match place % 2 {
        1 => vec![part],
        _ => part.split_whitespace().collect(),
    });
    words.collect()
}
