//! Graphs as large as documents may be.

use std::fmt::Write;

use serde_json::json;
use workflow_core::prelude::*;
use workflow_graph::GraphRun;

use super::playing::workflows;

// Nodes in branches nine deep, and a chain behind them.
#[tokio::test(start_paused = true)]
async fn a_graph_of_ten_thousand_nodes_is_bound_and_runs() {
    let mut text = "graph: g\nlimits: {steps: 20000}\nnodes:\n".to_owned();
    let mut count = 0;
    for part in 0..150 {
        for depth in 0..8 {
            writeln!(text, "  p{part}_{depth}: {{value: 1, next: {{parallel: [p{part}_{}, x{part}_{depth}], join: j{part}_{depth}}}}}", depth + 1).unwrap();
            writeln!(text, "  x{part}_{depth}: {{value: 1, next: j{part}_{depth}}}").unwrap();
            let next = if depth == 0 { format!("p{}_0", part + 1) } else { format!("j{part}_{}", depth - 1) };
            writeln!(text, "  j{part}_{depth}: {{value: 1, next: {next}}}").unwrap();
            count += 3;
        }
        writeln!(text, "  p{part}_8: {{value: 1, next: j{part}_7}}").unwrap();
        count += 1;
    }
    writeln!(text, "  p150_0: {{value: 1, next: c{}}}", count + 1).unwrap();
    for node in count + 2..10_000 {
        writeln!(text, "  c{}: {{value: 1, next: c{node}}}", node - 1).unwrap();
    }
    writeln!(text, "  c9999: {{value: done}}").unwrap();
    let engine = Engine::builder().workflows(workflows(&text, json!({}))).build().unwrap();
    let run = GraphRun::start(&engine, "g", json!({})).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().output, "done");
}
