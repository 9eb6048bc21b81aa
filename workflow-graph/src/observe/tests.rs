//! Events of runs by hand.

use std::sync::mpsc;

use expect_test::expect;
use serde_json::{Value, json};
use workflow_core::{AnyEvent, DisplayItem, ExecutionId, StepError};

use super::*;
use crate::fixtures::{CHECKS, DESK, Script, at_desk, at_gate, caught, document, in_branches, report, start};
use crate::retried::Again;
use crate::seen::{Activity, NodeActivity};

struct Lines(mpsc::Sender<String>);

impl GraphObserver for Lines {
    fn observe(&self, run: &RunId, event: &GraphEvent) {
        assert_eq!(run.as_str(), "run-1");
        let _ = self.0.send(serde_json::to_string(event).unwrap());
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

/// Every event of a run, one a line.
async fn seen(name: &str, input: Value, script: Script) -> Vec<String> {
    let document = document(if name == "desk" { DESK } else { CHECKS });
    let (sender, lines) = mpsc::channel();
    let observer = Box::new(GraphEvents::of(&document, Lines(sender)));
    let run = start(name, input, script, Some(observer)).await;
    report(&run).await;
    lines.try_iter().collect()
}

/// G32
#[tokio::test]
async fn every_visit_is_entered_retried_left_and_routed() {
    let seen = seen("desk", json!({"cents": 5}), at_desk).await;
    expect![[r#"
        {"type":"started","graph":"desk"}
        {"type":"node_entered","node":"look_up","iteration":1}
        {"type":"node_retried","node":"look_up","iteration":1,"attempt":2,"error":{"class":"transient","message":"busy"},"delay_ms":0}
        {"type":"node_exited","node":"look_up","iteration":1,"status":"success","result":{"status":"success","data":{"paid":5},"iteration":1}}
        {"type":"routed","from":"look_up","to":"look_up","reason":"vars.tries < 2"}
        {"type":"node_entered","node":"look_up","iteration":2}
        {"type":"node_exited","node":"look_up","iteration":2,"status":"success","result":{"status":"success","data":{"paid":6},"iteration":2}}
        {"type":"routed","from":"look_up","to":"pay","reason":"default"}
        {"type":"node_entered","node":"pay","iteration":1}
        {"type":"node_exited","node":"pay","iteration":1,"status":"success","result":{"status":"success","data":{},"iteration":1}}
        {"type":"ended","status":"completed","end":"completed","results":{"look_up":{"status":"success","data":{"paid":6},"iteration":2},"pay":{"status":"success","data":{},"iteration":1}}}"#]].assert_eq(&seen.join("\n"));
}

/// G32
#[tokio::test]
async fn a_run_that_asks_waits() {
    let seen = seen("desk", json!({"cents": 5000}), at_gate).await;
    expect![[r#"
        {"type":"started","graph":"desk"}
        {"type":"node_entered","node":"look_up","iteration":1}
        {"type":"node_exited","node":"look_up","iteration":1,"status":"success","result":{"status":"success","data":{"paid":5},"iteration":1}}
        {"type":"routed","from":"look_up","to":"approve","reason":"input.cents > input.limit"}
        {"type":"node_entered","node":"approve","iteration":1}
        {"type":"waiting"}"#]]
    .assert_eq(&seen.join("\n"));
}

/// G19, G32
#[tokio::test]
async fn a_caught_failure_leaves_its_node_once() {
    let seen = seen("desk", json!({"cents": 5}), caught).await;
    expect![[r#"
        {"type":"started","graph":"desk"}
        {"type":"node_entered","node":"look_up","iteration":1}
        {"type":"node_exited","node":"look_up","iteration":1,"status":"failed","error":{"class":"permanent","message":"no such order"},"result":{"status":"failed","data":null,"error":"no such order","iteration":1}}
        {"type":"routed","from":"look_up","to":"refuse","reason":"on failure"}
        {"type":"node_entered","node":"refuse","iteration":1}
        {"type":"node_exited","node":"refuse","iteration":1,"status":"success","result":{"status":"success","data":"no","iteration":1}}
        {"type":"ended","status":"completed","end":"completed","results":{"look_up":{"status":"failed","data":null,"error":"no such order","iteration":1},"refuse":{"status":"success","data":"no","iteration":1}}}"#]].assert_eq(&seen.join("\n"));
}

/// G19, G25, G32
#[tokio::test]
async fn a_failure_leaves_its_node_and_ends_the_run() {
    let seen = seen("desk", json!({"cents": 5}), |step, call| match step {
        "pay" => Err(StepError::rejected("closed")),
        _ => at_desk(step, call),
    });
    let seen = seen.await;
    expect![[r#"
        {"type":"node_entered","node":"pay","iteration":1}
        {"type":"node_exited","node":"pay","iteration":1,"status":"failed","error":{"class":"rejected","message":"closed"},"result":{"status":"failed","data":null,"error":"closed","iteration":1}}
        {"type":"ended","status":"failed","results":{"look_up":{"status":"success","data":{"paid":6},"iteration":2}}}"#]].assert_eq(&seen[seen.len() - 3..].join("\n"));
}

/// G14, G32
#[tokio::test]
async fn visits_in_branches_name_their_branch() {
    let mut seen = seen("checks", json!({}), in_branches).await;
    // Branches run at the same time.
    seen.sort();
    expect![[r#"
        {"type":"ended","status":"completed","end":"completed","results":{"collect":{"status":"success","data":{"auth":false},"iteration":1},"decide":{"status":"success","data":1,"iteration":1},"test":{"status":"success","data":{},"iteration":1}}}
        {"type":"node_entered","node":"collect","iteration":1}
        {"type":"node_entered","node":"decide","iteration":1}
        {"type":"node_entered","node":"scan","iteration":1,"branch":"collect/1"}
        {"type":"node_entered","node":"test","iteration":1,"branch":"collect/2"}
        {"type":"node_exited","node":"collect","iteration":1,"status":"success","result":{"status":"success","data":{"auth":false},"iteration":1}}
        {"type":"node_exited","node":"decide","iteration":1,"status":"success","result":{"status":"success","data":1,"iteration":1}}
        {"type":"node_exited","node":"scan","iteration":1,"branch":"collect/1","status":"failed","error":{"class":"permanent","message":"red"},"result":{"status":"failed","data":null,"error":"red","iteration":1}}
        {"type":"node_exited","node":"test","iteration":1,"branch":"collect/2","status":"success","result":{"status":"success","data":{},"iteration":1}}
        {"type":"routed","from":"collect","to":"decide","reason":"joined"}
        {"type":"routed","from":"collect","to":"scan","reason":"parallel","branch":"collect/1"}
        {"type":"routed","from":"collect","to":"test","reason":"parallel","branch":"collect/2"}
        {"type":"routed","from":"test","to":"decide","reason":"only path","branch":"collect/2"}
        {"type":"started","graph":"checks"}"#]].assert_eq(&seen.join("\n"));
}

/// G32
#[tokio::test]
async fn runs_of_other_workflows_are_not_reported() {
    let other = Document::parse("graph: other\nnodes: {a: {value: 1}}\n", "g.yaml").unwrap();
    let (sender, lines) = mpsc::channel();
    let observer = Box::new(GraphEvents::of(&other, Lines(sender)));
    let run = start("desk", json!({"cents": 5}), at_desk, Some(observer)).await;
    report(&run).await;
    assert_eq!(lines.try_iter().count(), 0);
}

/// The events that an observer makes of observations of one run of the desk.
fn followed(observed: impl IntoIterator<Item = Observed>) -> Vec<String> {
    followed_in(DESK, observed)
}

fn followed_in(text: &str, observed: impl IntoIterator<Item = Observed>) -> Vec<String> {
    let (sender, lines) = mpsc::channel();
    let events = GraphEvents::of(&document(text), Lines(sender));
    for what in observed {
        let at = std::time::SystemTime::UNIX_EPOCH;
        events.observe(&Observation { run: "run-1".into(), workflow: "desk".into(), at, what });
    }
    lines.try_iter().collect()
}

fn shown(activity: Activity) -> Observed {
    let activity = NodeActivity { node: "pay".into(), iteration: 1, attempt: 2, item: None, activity };
    let (step, execution) = ("pay".into(), ExecutionId(3));
    Observed::Displayed(DisplayItem::Shown { step, execution, attempt: 2, event: AnyEvent::new(activity) })
}

/// G32
#[test]
fn signs_of_work_are_events() {
    let seen = followed([
        shown(Activity::ToolCalled { tool: "bank".into(), input: json!({"cents": 5}).into() }),
        shown(Activity::ToolReturned {
            tool: "bank".into(),
            ok: true,
            output: json!("paid").into(),
            error: None,
        }),
        shown(Activity::Again(Again::agent("too short"))),
        shown(Activity::Progress { text: "half".into() }),
    ]);
    expect![[r#"
        {"type":"tool_called","node":"pay","iteration":1,"attempt":2,"tool":"bank","input":{"cents":5}}
        {"type":"tool_returned","node":"pay","iteration":1,"attempt":2,"tool":"bank","ok":true,"output":"paid"}
        {"type":"work_repeated","node":"pay","iteration":1,"attempt":2,"of":"agent","failure":"too short"}
        {"type":"progress","node":"pay","iteration":1,"attempt":2,"text":"half"}"#]]
    .assert_eq(&seen.join("\n"));
}

/// G32
#[test]
fn a_run_that_was_not_followed_from_its_start_has_no_iterations_that_are_guesses() {
    let entered = |execution| Observed::ExecutionStarted {
        execution: ExecutionId(execution),
        step: "look_up".into(),
        scope: workflow_core::ScopeId::ROOT,
        trigger: workflow_core::Seq(1),
    };
    let seen = followed([
        Observed::RunResumed,
        entered(7),
        Observed::RunUnloaded,
        Observed::Missed { count: 3 },
        Observed::RunPaused,
        Observed::RunUnpaused,
        entered(9),
    ]);
    expect![[r#"
        {"type":"resumed"}
        {"type":"node_entered","node":"look_up"}
        {"type":"missed","count":3}
        {"type":"paused"}
        {"type":"unpaused"}
        {"type":"node_entered","node":"look_up"}"#]]
    .assert_eq(&seen.join("\n"));
}

/// G22, G32
#[test]
fn a_failed_item_leaves_its_node_only_where_it_fails_all() {
    let begun = |execution, step: &str, scope| Observed::ExecutionStarted {
        execution: ExecutionId(execution),
        step: step.into(),
        scope: workflow_core::ScopeId(scope),
        trigger: workflow_core::Seq(1),
    };
    let failed = |execution, step: &str| Observed::ExecutionFailed {
        execution: ExecutionId(execution),
        step: step.into(),
        class: workflow_core::ErrorClass::Tool,
        error: "broken".into(),
        not_retried: workflow_core::report::NotRetried::Class,
        took: Duration::ZERO,
    };
    let text = |failures: &str| {
        format!(
            "graph: desk\nnodes:\n  load: {{function: load, for_each: {{in: '[1, 2]', failures: {failures}}}}}\n"
        )
    };
    let seen = |failures: &str| {
        let observed = [
            Observed::RunStarted,
            begun(1, "load", 0),
            Observed::ExecutionSucceeded {
                execution: ExecutionId(1),
                step: "load".into(),
                took: Duration::ZERO,
            },
            begun(2, "load:each", 1),
            failed(2, "load:each"),
        ];
        followed_in(&text(failures), observed).split_off(2)
    };
    assert!(seen("continue_others").is_empty());
    expect![[r#"{"type":"node_exited","node":"load","iteration":1,"status":"failed","error":{"class":"tool","message":"broken"},"result":{"status":"failed","data":null,"error":"broken","iteration":1}}"#]].assert_eq(&seen("fail_all").join("\n"));
}
