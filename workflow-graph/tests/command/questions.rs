//! Questions to people: asked here, answered by a script, or left for `answer`.

use serde_json::json;

use crate::support::{GATE, Place};

const RUN: [&str; 4] = ["run", "refund.yaml", "--input", r#"{"cents": 500}"#];

fn place() -> Place {
    Place::new(&[("refund.yaml", GATE)])
}

// G38
#[test]
fn lines_answer_questions_and_refused_ones_are_asked_again() {
    let ran =
        place().run_with(&[&RUN[..], &["--ask", "always"]].concat(), "perhaps\n\n{\"granted\": 1}\nyes\n");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains("approve asks: Refund 500 cents?\n  granted (boolean, required)\n"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("refused: answer with yes or no"), "{}", ran.err);
    assert!(ran.err.contains("refused: the answer is empty"), "{}", ran.err);
    assert!(ran.err.contains("at `granted`") || ran.err.contains("granted"), "{}", ran.err);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&ran.out).unwrap(), json!({"refunded": 500}));
}

// G39
#[test]
fn a_question_that_nobody_answers_exits_with_3() {
    let place = place();
    for ran in [place.run(&RUN), place.run_with(&[&RUN[..], &["--ask", "always"]].concat(), "")] {
        assert_eq!((ran.code, ran.out.as_str()), (3, ""));
        assert!(ran.err.contains("approve: Refund 500 cents?"), "{}", ran.err);
        assert!(ran.err.contains("give --store and --id"), "{}", ran.err);
    }
    let json = place.run(&[&RUN[..], &["--json"]].concat()).json();
    assert_eq!((&json["status"], &json["gates"][0]["name"]), (&json!("waiting"), &json!("approve")));
    assert_eq!(json["gates"][0]["schema"]["required"], json!(["granted"]));
}

// G38
#[test]
fn a_script_answers_and_a_reply_that_does_not_fit_is_refused() {
    let place = place();
    place.write("yes.yaml", "replies: {approve: [{granted: true}]}");
    let ran = place.run(&[&RUN[..], &["--script", "yes.yaml"]].concat());
    assert_eq!((ran.code, ran.out.contains("500")), (0, true), "{}", ran.err);
    place.write("odd.yaml", "replies: {approve: [{granted: 7}]}");
    let odd = place.run(&[&RUN[..], &["--script", "odd.yaml"]].concat());
    assert_eq!(odd.code, 2);
    assert!(odd.err.contains("the script's reply to `approve` does not fit"), "{}", odd.err);
}

// G19, G27
#[test]
fn a_question_ends_with_its_time() {
    let text = "
graph: g
nodes:
  ask:
    human: {ask: Well?, reply: {type: boolean}, expires: 50ms}
    on_failure: late
  late: {value: nobody came}
";
    let place = Place::new(&[("g.yaml", text)]);
    let mut command = place.command(&["run", "g.yaml", "--ask", "always"]);
    // The standard input stays open, and no line comes.
    let child = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = child.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let ran = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "nobody came\n");
}

const NESTED: &str = "
graph: contract
nodes:
  parts: {graph: part, with: {name: first}, next: done}
  done: {value: \"${ parts }\"}
---
graph: part
nodes:
  sign: {human: {ask: 'Sign ${ input.name }?', reply: {type: string}}}
";

// G29, G38
#[test]
fn questions_of_children_are_asked_and_answered() {
    let place = Place::new(&[("contract.yaml", NESTED)]);
    let asked = place.run_with(&["run", "contract.yaml", "--ask", "always"], "Ada\n");
    assert_eq!((asked.code, asked.out.as_str()), (0, "Ada\n"), "{}", asked.err);
    let waits = place.run(&["run", "contract.yaml", "--store", "runs.redb", "--id", "r-1"]);
    assert_eq!(waits.code, 3, "{}", waits.err);
    let answered = place.run(&["answer", "r-1", "sign", "Bob", "--store", "runs.redb"]);
    assert_eq!((answered.code, answered.out.as_str()), (0, "Bob\n"), "{}", answered.err);
}
