//! Documents side by side with what the rules say of them: route, memory, status and quality.

use serde_json::{Value, json};
use workflow_graph::{BranchFailures, HiveOptions};

use super::support::{Ran, agent, edge, edge_if, edge_on, function, graph, hive, hive_with, play, with};

/// Status and quality, memory, and routes by name.
fn came_to(ran: &Ran, end: [&str; 2], memory: &Value, routes: &[&str]) {
    assert_eq!(ran.end(), (json!(end[0]), json!(end[1])));
    assert_eq!(ran.memory(), memory);
    assert_eq!(ran.routes(), routes);
}

#[tokio::test(start_paused = true)]
async fn a_draft_is_reviewed_until_it_is_good() {
    let nodes = [
        with(agent("draft"), json!({"output_keys": ["text"]})),
        with(agent("review"), json!({"output_keys": ["score"]})),
        function("publish", &["url"]),
    ];
    let edges = [
        edge("draft", "review"),
        edge_if("review", "publish", "score >= 0.8"),
        edge_on("review", "draft", "always"),
    ];
    let document = hive(&with(graph(&nodes, &edges), json!({"terminal_nodes": ["publish"]})));
    let script = json!({"nodes": {
        "draft": [{"data": {"text": "a"}}, {"data": {"text": "b"}}],
        "review": [{"data": {"score": 0.4}}, {"data": {"score": 0.9}}],
        "publish": [{"data": {"url": "u"}}],
    }});
    let ran = play(&document, json!({"topic": "wire"}), script).await;
    assert_eq!(ran.path(), ["draft", "review", "draft", "review", "publish"]);
    let memory = json!({"topic": "wire", "text": "b", "score": 0.9, "url": "u"});
    let routes = [
        "draft->review: only path",
        "draft->review: only path",
        "review->draft: always",
        "review->publish: score >= 0.8",
    ];
    came_to(&ran, ["completed", "clean"], &memory, &routes);
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_never_ends_ends_at_the_limit() {
    let document = with(graph(&[function("tick", &[])], &[edge("tick", "tick")]), json!({"max_steps": 4}));
    let ran = play(&hive(&document), json!({}), json!({})).await;
    assert_eq!(ran.path(), ["tick"; 4]);
    assert_eq!(ran.end(), (json!("step_limit"), json!("failed")));
}

#[tokio::test(start_paused = true)]
async fn a_model_chooses_and_a_log_is_written_beside_it() {
    let nodes = [
        agent("triage"),
        agent("mend"),
        agent("close"),
        function("record", &["at"]),
        function("report", &[]),
    ];
    let edges = [
        edge_on("triage", "mend", "llm_decide"),
        edge_on("triage", "close", "llm_decide"),
        edge("triage", "record"),
        edge("mend", "report"),
        edge("close", "report"),
        edge("record", "report"),
    ];
    let document = hive(&with(graph(&nodes, &edges), json!({"terminal_nodes": ["report"]})));
    let script = json!({"nodes": {"record": [{"data": {"at": 7}}], "mend": [{"data": {"mended": true}}]}, "decide": {"triage": ["mend"]}});
    let ran = play(&document, json!({}), script).await;
    assert_eq!(ran.visited(), ["mend", "record", "report", "triage"]);
    let routes = ["mend->report: only path", "record->report: only path", "triage->report: joined"];
    assert!(routes.iter().all(|route| ran.routes().iter().any(|taken| taken == route)), "{:?}", ran.routes());
    assert_eq!(
        (ran.end(), ran.memory()),
        ((json!("completed"), json!("clean")), &json!({"at": 7, "mended": true}))
    );
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_mended_and_tried_again() {
    let nodes = [function("load", &["rows"]), function("mend", &["source"]), function("count", &["sum"])];
    let edges = [
        edge("load", "count"),
        with(edge_on("load", "mend", "on_failure"), json!({"input_mapping": {"broken": "source"}})),
        edge("mend", "load"),
    ];
    let document = hive(&with(graph(&nodes, &edges), json!({"terminal_nodes": ["count"]})));
    let script = json!({"nodes": {
        "load": [{"fail": "no such file"}, {"data": {"rows": [1, 2]}}], "mend": [{"data": {"source": "b"}}], "count": [{"data": {"sum": 3}}],
    }});
    let ran = play(&document, json!({"source": "a"}), script).await;
    assert_eq!(ran.path(), ["load", "mend", "load", "count"]);
    let memory = json!({"source": "b", "broken": "a", "rows": [1, 2], "sum": 3});
    let routes = ["load->count: only path", "load->mend: on failure", "mend->load: only path"];
    came_to(&ran, ["completed", "degraded"], &memory, &routes);
}

#[tokio::test(start_paused = true)]
async fn people_confirm_twice() {
    let nodes = [function("offer", &["price"]), function("order", &["number"]), function("drop", &[])];
    let edges = [
        edge_if("offer", "order", "confirmed"),
        edge_if("offer", "offer", "price > 10"),
        edge_on("offer", "drop", "always"),
    ];
    let document =
        with(graph(&nodes, &edges), json!({"pause_nodes": ["offer"], "terminal_nodes": ["order", "drop"]}));
    let script = json!({
        "nodes": {"offer": [{"data": {"price": 20}}, {"data": {"price": 9}}], "order": [{"data": {"number": 1}}]},
        "replies": {"offer": [{"confirmed": false}, {"confirmed": true}]},
    });
    let ran = play(&hive(&document), json!({}), script).await;
    assert_eq!(ran.path(), ["offer", "offer", "order"]);
    let memory = json!({"price": 9, "confirmed": true, "number": 1});
    came_to(&ran, ["completed", "clean"], &memory, &["offer->offer: price > 10", "offer->order: confirmed"]);
}

#[tokio::test(start_paused = true)]
async fn reviewers_work_side_by_side_and_one_is_away() {
    let nodes = ["send", "style", "facts", "law", "collect"].map(|id| function(id, &[]));
    let edges = [
        with(edge("send", "style"), json!({"input_mapping": {"style_text": "text"}})),
        edge("send", "facts"),
        with(edge_if("send", "law", "text.contains('contract')"), json!({"priority": 1})),
        edge("style", "collect"),
        edge("facts", "collect"),
        edge("law", "collect"),
    ];
    let document = hive_with(&graph(&nodes, &edges), HiveOptions::new().failures(BranchFailures::WaitAll));
    let script = json!({"nodes": {"style": [{"data": {"style": "ok"}}], "facts": [{"fail": "away"}], "law": [{"data": {"law": "ok"}}]}});
    let ran = play(&document, json!({"text": "a contract"}), script).await;
    assert_eq!(ran.visited(), ["collect", "facts", "law", "send", "style"]);
    assert_eq!(ran.end(), (json!("completed"), json!("degraded")));
    assert_eq!(
        *ran.memory(),
        json!({"text": "a contract", "style_text": "a contract", "style": "ok", "law": "ok"})
    );
}

#[tokio::test(start_paused = true)]
async fn feedback_is_forgotten_between_rounds() {
    let nodes = [
        with(function("write", &["text"]), json!({"input_keys": ["feedback"]})),
        with(
            function("check", &["feedback"]),
            json!({"nullable_output_keys": ["feedback"], "max_node_visits": 2}),
        ),
        function("send", &[]),
    ];
    let edges =
        [edge("write", "check"), edge_if("check", "write", "feedback"), edge_on("check", "send", "always")];
    let script = json!({"nodes": {
        "write": [{"data": {"text": "a"}}, {"data": {"text": "b"}}], "check": [{"data": {"feedback": "shorter"}}, {"data": {}}],
    }});
    let ran = play(&hive(&graph(&nodes, &edges)), json!({}), script).await;
    assert_eq!(ran.path(), ["write", "check", "write", "check", "send"]);
    let routes = [
        "check->send: always",
        "check->write: feedback",
        "write->check: only path",
        "write->check: only path",
    ];
    came_to(&ran, ["completed", "clean"], &json!({"text": "b", "feedback": null}), &routes);
}

#[tokio::test(start_paused = true)]
async fn a_cleaner_runs_after_success_and_failure() {
    let nodes = [function("work", &["done"]), function("clean", &["cleaned"])];
    let document = hive(&graph(&nodes, &[edge_on("work", "clean", "always")]));
    let clean = json!([{"data": {"cleaned": true}}]);
    let ran =
        play(&document, json!({}), json!({"nodes": {"work": [{"data": {"done": 1}}], "clean": clean}})).await;
    came_to(&ran, ["completed", "clean"], &json!({"done": 1, "cleaned": true}), &["work->clean: only path"]);
    let ran = play(&document, json!({}), json!({"nodes": {"work": [{"data": {}}], "clean": clean}})).await;
    came_to(&ran, ["completed", "degraded"], &json!({"cleaned": true}), &["work->clean: on failure"]);
}

#[tokio::test(start_paused = true)]
async fn a_loop_around_branches_runs_them_again() {
    let nodes = [
        function("plan", &[]),
        function("left", &["l"]),
        function("right", &["r"]),
        function("judge", &["again"]),
    ];
    let edges = [
        edge("plan", "left"),
        edge("plan", "right"),
        edge("left", "judge"),
        edge("right", "judge"),
        edge_if("judge", "plan", "again"),
    ];
    let document = hive(&with(graph(&nodes, &edges), json!({"max_steps": 20})));
    let script = json!({"nodes": {
        "left": [{"data": {"l": 1}}, {"data": {"l": 2}}], "right": [{"data": {"r": 1}}], "judge": [{"data": {"again": true}}, {"data": {"again": false}}],
    }});
    let ran = play(&document, json!({}), script).await;
    assert_eq!(ran.visited(), ["judge", "judge", "left", "left", "plan", "plan", "right", "right"]);
    assert_eq!(ran.end(), (json!("no_match"), json!("clean")));
    assert_eq!(*ran.memory(), json!({"l": 2, "r": 1, "again": false}));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_skips_its_work_writes_nothing() {
    let nodes = [agent("look"), function("tell", &[])];
    let document = hive(&graph(
        &nodes,
        &[edge_if("look", "tell", "'found' in memory"), edge_on("look", "tell", "always")],
    ));
    let ran = play(
        &document,
        json!({}),
        json!({"nodes": {"look": [{"skip": "nothing to do"}], "tell": [{"data": {"told": true}}]}}),
    )
    .await;
    assert_eq!(ran.path(), ["look", "tell"]);
    came_to(&ran, ["completed", "clean"], &json!({"told": true}), &["look->tell: always"]);
}
