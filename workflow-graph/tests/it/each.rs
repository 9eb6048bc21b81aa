//! Nodes with `for_each`: the order of their items, failures, attempts, people.

use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};
use workflow_core::report::Quality;
use workflow_graph::{GraphOptions, NodeContext, NodeError, Registry};

use super::playing::{bound, played, start, visits, workflows};

const SHRINK: &str = "
graph: g
limits: {items: 4}
nodes:
  a:
    function: f
    with: {file: \"${ file }\", place: \"${ index }\"}
    for_each: {in: input.files, as: file, failures: continue_others}
    retry: {attempts: 2, first: 1s}
    output: {type: object, required: [bytes]}
    ensure: [a.bytes < 100]
    next: b
    on_failure: c
  b: {value: {items: \"${ a.items }\", failed: \"${ a.failed }\", visits: \"${ nodes.a.visits }\"}}
  c: {value: {message: \"${ error.message }\"}}
";

/// The bytes of a file: its number. A file may be away at the first attempt, or broken, or say nothing.
async fn shrink(input: Value, context: NodeContext) -> Result<Value, NodeError> {
    let file = input["file"].as_str().unwrap();
    assert_eq!(input["place"], json!(context.item()));
    // The first items take the longest.
    tokio::time::sleep(Duration::from_millis(100 - 10 * u64::from(context.item().unwrap()))).await;
    match file {
        "away" if context.attempt() == 1 => Err(NodeError::transient("away")),
        "broken" => Err(NodeError::permanent("broken")),
        "silent" => Ok(json!({})),
        _ => {
            Ok(json!({"bytes": file.parse::<u32>().unwrap_or(7), "key": context.idempotency_key().len() > 3}))
        }
    }
}

async fn shrunk(text: &str, files: Value) -> super::playing::Played {
    let registry = Registry::new().function("f", shrink);
    start(bound(text, registry), json!({ "files": files }), GraphOptions::new()).await
}

// G22
#[tokio::test(start_paused = true)]
async fn items_keep_their_order_and_have_attempts_of_their_own() {
    let played = shrunk(SHRINK, json!(["3", "away", "5"])).await;
    let result = played.result().await;
    let bytes: Vec<_> =
        result.output["items"].as_array().unwrap().iter().map(|item| item["bytes"].clone()).collect();
    assert_eq!(bytes, [3, 7, 5]);
    assert_eq!((&result.output["failed"], &result.output["visits"]), (&json!([]), &json!(1)));
    assert_eq!(
        (visits(&result.trace), result.quality),
        (vec!["a#1 success".into(), "b#1 success".into()], Quality::Clean)
    );
    assert_eq!(played.elapsed(), Duration::from_millis(90 + 1000 + 90));
}

// G18, G22: what the document asks of the data, it asks of each item.
#[tokio::test(start_paused = true)]
async fn items_that_fail_are_listed_and_the_others_go_on() {
    let result = shrunk(SHRINK, json!(["3", "broken", "silent", "200"])).await.result().await;
    assert_eq!(result.output["items"][0]["bytes"], 3);
    assert_eq!(result.output["items"].as_array().unwrap()[1..], [Value::Null, Value::Null, Value::Null]);
    let failed = result.output["failed"].as_array().unwrap();
    let failed: Vec<_> =
        failed.iter().map(|failed| format!("{}: {}", failed["index"], failed["error"])).collect();
    expect![[r#"
        1: "broken"
        2: "the data does not fit `output`: \"bytes\" is a required property"
        3: "a check does not hold: `a.bytes < 100`: it is false, where `a.bytes` is 200""#]]
    .assert_eq(&failed.join("\n"));
    assert_eq!(result.quality, Quality::Degraded);
}

// G19, G22
#[tokio::test(start_paused = true)]
async fn the_first_item_that_fails_fails_the_node_unless_others_continue() {
    for (failures, elapsed) in [("fail_all", 90), ("wait_all", 100)] {
        let text = SHRINK.replace("failures: continue_others", &format!("failures: {failures}"));
        let played = shrunk(&text, json!(["3", "broken"])).await;
        let result = played.result().await;
        assert!(result.output["message"].as_str().unwrap().contains("broken"), "{}", result.output);
        assert_eq!(visits(&result.trace), ["a#1 failed", "c#1 success"]);
        assert_eq!((result.quality, played.elapsed()), (Quality::Degraded, Duration::from_millis(elapsed)));
    }
}

// G22
#[tokio::test(start_paused = true)]
async fn no_items_succeed_and_too_many_fail_before_any_runs() {
    let none = shrunk(SHRINK, json!([])).await.result().await;
    assert_eq!(none.output, json!({"items": [], "failed": [], "visits": 1}));
    for files in [json!(["1", "2", "3", "4", "5"]), json!(3)] {
        let played = shrunk(SHRINK, files.clone()).await;
        let result = played.result().await;
        assert_eq!(played.elapsed(), Duration::ZERO);
        let text = result.output["message"].as_str().unwrap();
        let expected = match files.as_array() {
            Some(_) => "`input.files` has 5 items, and `limits.items` allows 4",
            None => "`for_each` needs a list, and `input.files` is 3",
        };
        assert_eq!(text, expected);
    }
}

const ASK: &str = "
graph: g
nodes:
  a:
    human: {ask: \"May ${ item } come?\", reply: {type: boolean}, expires: 2h}
    for_each: {in: input.guests, failures: continue_others}
    next: b
  b: {value: \"${ a.items }\"}
";

// G22, G27
#[tokio::test(start_paused = true)]
async fn people_are_asked_about_each_item() {
    let played =
        start(workflows(ASK, json!({})), json!({"guests": ["Ada", "Bob", "Cy"]}), GraphOptions::new()).await;
    played.waits().await;
    let gates = played.run.gates().await.unwrap();
    let texts: Vec<_> = gates.iter().map(|gate| &*gate.text).collect();
    assert_eq!(texts, ["May Ada come?", "May Bob come?", "May Cy come?"]);
    assert!(gates.iter().all(|gate| gate.node == "a" && gate.iteration == 1 && gate.deadline.is_some()));
    // An answer that does not fit leaves the question open.
    assert!(played.run.answer(gates[0].id, json!("perhaps")).await.is_err());
    played.run.answer(gates[2].id, json!(true)).await.unwrap();
    played.run.answer(gates[0].id, json!(false)).await.unwrap();
    // Nobody answers the second, whose time is over.
    let result = played.result().await;
    assert_eq!((result.output, result.quality), (json!([false, null, true]), Quality::Degraded));
    assert_eq!(played.elapsed(), Duration::from_hours(2));
    let failed = &result.results["a"].data["failed"];
    assert_eq!(failed, &json!([{"index": 1, "error": "nobody answered `a` within 2h"}]));
}

// G22, G14: the items open branches of their own, and then the node does.
#[tokio::test(start_paused = true)]
async fn a_node_with_items_may_open_branches() {
    let text = "
graph: g
nodes:
  a: {value: \"${ item * 2 }\", for_each: {in: input.list, failures: wait_all}, next: {parallel: [b, c], join: d}}
  b: {value: \"${ sum(a.items) }\", next: d}
  c: {value: \"${ len(a.items) }\", next: d}
  d: {value: [\"${ b }\", \"${ c }\"]}
";
    let result = played(text, json!({"list": [1, 2, 3]}), json!({})).await.result().await;
    assert_eq!((result.output, result.trace.visits.len()), (json!([12, 3]), 4));
}

// G22, G18: answers are checked beside the item that they are about.
#[tokio::test(start_paused = true)]
async fn answers_about_items_are_checked_with_their_items() {
    let text = "
graph: g
nodes:
  a:
    human: {ask: \"How many of ${ item }?\", reply: {type: object, properties: {n: {type: integer}}, required: [n]}}
    for_each: input.items
    ensure: [\"a.n < item\", \"index < 2\"]
";
    let played = start(workflows(text, json!({})), json!({"items": [5, 3]}), GraphOptions::new()).await;
    played.waits().await;
    for gate in played.run.gates().await.unwrap() {
        played.run.answer(gate.id, json!({"n": 2})).await.unwrap();
    }
    let result = played.result().await;
    assert_eq!(result.results["a"].data["items"], json!([{"n": 2}, {"n": 2}]));
}
