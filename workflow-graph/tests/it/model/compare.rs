//! Random documents on the real engine, compared with the model. `DOCUMENTS` sets how many there are, and `SEED` the first.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use workflow_core::report::RunReport;
use workflow_core::{Engine, RunError, RuntimeWorkflow, ScopeId};
use workflow_graph::{Document, GraphError, GraphRun, Registry, ScriptedExecutor, VisitStatus};
use workflow_testkit::{Scenario, explore};

use super::super::support::number;
use super::document::Doc;
use super::random;
use super::walk::{Expected, Seen, Status, expected};

/// Of so many documents, one is run in every order.
const EXPLORED: u64 = 5;
const ORDERS: u64 = 40;

/// The end of a real run, as far as it is known.
#[derive(Debug)]
struct Real {
    status: String,
    /// Absent where the failing node is not known.
    at: Option<String>,
    output: Option<Value>,
    quality: Option<String>,
    visits: Visits,
    results: BTreeMap<String, (Status, Value)>,
    vars: BTreeMap<String, i64>,
    steps: Option<u64>,
}

#[derive(Debug)]
enum Visits {
    /// All, each once, in the order of their ends, and those outside of branches.
    Traced(Vec<Seen>, Vec<String>),
    /// Those that left a result.
    Logged(Vec<Seen>),
}

fn word(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

fn status(of: VisitStatus) -> Status {
    match of {
        VisitStatus::Success => Status::Success,
        VisitStatus::Failed => Status::Failed,
        VisitStatus::Skipped => Status::Skipped,
        other => panic!("{other:?}"),
    }
}

impl Real {
    /// The words of the log alone.
    fn logged(doc: &Doc, output: Result<&Value, &RunError>, report: &RunReport) -> Self {
        let (mut visits, mut results, mut vars) = (Vec::new(), BTreeMap::new(), doc.vars.clone());
        for logged in &report.log {
            let Some(value) = logged.value.as_json() else { continue };
            let is_root = logged.scope == ScopeId::ROOT;
            if let Some(name) = logged.event.strip_prefix("vars.").filter(|_| is_root) {
                vars.insert(name.to_owned(), value.as_i64().unwrap());
            }
            if !doc.nodes.contains_key(&*logged.event) {
                continue;
            }
            let (id, left) =
                (logged.event.to_string(), value.get("status").cloned().unwrap_or(json!("success")));
            let left = status(serde_json::from_value(left).unwrap());
            if is_root {
                results.insert(id.clone(), (left, value["data"].clone()));
            }
            let seen = if value["kept"] == json!(true) { Status::Skipped } else { left };
            visits.push((id, seen, u32::try_from(value["visit"].as_u64().unwrap()).unwrap()));
        }
        visits.sort();
        visits.dedup();
        let mut real = Self {
            status: "failed".to_owned(),
            at: None,
            output: None,
            quality: None,
            visits: Visits::Logged(visits),
            results,
            vars,
            steps: None,
        };
        match output {
            Ok(output) => {
                output["status"].as_str().unwrap().clone_into(&mut real.status);
                real.at = output["at"].as_str().map(str::to_owned);
                real.output = Some(output["output"].clone());
                real.steps = Some(output["walk"].as_u64().or(output["walk"]["steps"].as_u64()).unwrap());
            }
            Err(RunError::StepFailed { step, .. }) => real.at = step.split(':').next().map(str::to_owned),
            Err(RunError::BranchesFailed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        real
    }

    /// The words of the handle, too.
    async fn run(doc: &Doc, workflows: Vec<RuntimeWorkflow>) -> Self {
        let engine = Engine::builder().workflows(workflows).build().unwrap();
        let run = GraphRun::start(&engine, "g", doc.begin()).await.unwrap();
        let result = run.outcome().await;
        let (any, report) = (run.run().outcome_any().await, run.run().report().await.unwrap());
        let output = any.as_ref().map(|output| output.as_json().unwrap());
        let real = Self::logged(doc, output, &report);
        let (trace, at, results, quality) = match result {
            Ok(result) => {
                assert_eq!(real.status, word(result.status));
                assert_eq!(real.output, Some(result.output));
                (result.trace, Some(result.at), result.results, word(result.quality))
            }
            Err(GraphError::Failed(failure)) => {
                let failure = *failure;
                (failure.trace, failure.node, failure.results, "failed".to_owned())
            }
            Err(error) => panic!("{error}"),
        };
        let results: BTreeMap<_, _> =
            results.into_iter().map(|(id, result)| (id, (status(result.status), result.data))).collect();
        let seen = |visit: &workflow_graph::Visit| {
            let left = if visit.kept { Status::Skipped } else { status(visit.status) };
            (visit.node.to_string(), left, visit.iteration)
        };
        let path = trace.visits.iter().filter(|visit| visit.branch.is_none());
        let path = path.map(|visit| visit.node.to_string()).collect();
        let mut visits: Vec<Seen> = trace.visits.iter().map(seen).collect();
        visits.sort();
        Self { at, quality: Some(quality), results, visits: Visits::Traced(visits, path), ..real }
    }

    /// Where it differs from the expected end, if it does.
    fn difference(&self, end: &Expected) -> Option<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, real: String, expected: String| {
            if real != expected {
                found.push(format!("{what}: {real}, and the model has {expected}"));
            }
        };
        compare("status", self.status.clone(), end.status.to_owned());
        if let Some(at) = &self.at {
            compare("at", at.clone(), end.at.clone());
        }
        if let Some(quality) = &self.quality {
            compare("quality", quality.clone(), end.quality.to_owned());
        }
        if let Some(output) = &end.output {
            compare("output", format!("{:?}", self.output), format!("{:?}", Some(output)));
            compare("vars", format!("{:?}", self.vars), format!("{:?}", end.vars));
        }
        if let Some(steps) = self.steps {
            compare("steps", steps.to_string(), end.steps.to_string());
        }
        if let Some(results) = &end.results {
            compare("results", format!("{:?}", self.results), format!("{results:?}"));
        }
        match &self.visits {
            Visits::Traced(visits, path) => {
                if let Some((missing, more)) = apart(visits, end, end.status != "failed") {
                    compare("visits", format!("{more:?} more, {missing:?} missing"), String::new());
                }
                if end.status != "failed" {
                    compare("path", path.join(" "), end.path.join(" "));
                }
            }
            // A failure that nothing catches leaves no result, and a number may stand twice.
            Visits::Logged(visits) => {
                let is_known = |seen: &&Seen| end.visits.contains(*seen) || end.optional.contains(*seen);
                let more: Vec<&Seen> = visits.iter().filter(|seen| !is_known(seen)).collect();
                let is_left = |seen: &&Seen| seen.1 == Status::Failed || visits.contains(*seen);
                let missing: Vec<&Seen> = end.visits.iter().filter(|seen| !is_left(seen)).collect();
                if end.status != "failed" && !(more.is_empty() && missing.is_empty()) {
                    compare("visits", format!("{more:?} more, {missing:?} missing"), String::new());
                }
            }
        }
        (!found.is_empty()).then(|| found.join("; "))
    }
}

/// Visits that are missing, and those that are there besides.
fn apart(visits: &[Seen], end: &Expected, is_whole: bool) -> Option<(Vec<Seen>, Vec<Seen>)> {
    let (mut missing, mut more) = (end.visits.clone(), Vec::new());
    let mut optional = end.optional.clone();
    for seen in visits {
        if let Some(place) = missing.iter().position(|known| known == seen) {
            missing.remove(place);
        } else if let Some(place) = optional.iter().position(|known| known == seen) {
            optional.remove(place);
        } else {
            more.push(seen.clone());
        }
    }
    (is_whole && !(missing.is_empty() && more.is_empty())).then_some((missing, more))
}

/// Nothing if the real end is one of the expected ones.
fn refuted(real: &Real, ends: &[Expected]) -> Option<String> {
    let differences: Option<Vec<String>> = ends.iter().map(|end| real.difference(end)).collect();
    differences.map(|differences| differences.join("\n  or "))
}

fn told(seed: u64, doc: &Doc, why: &str) -> String {
    format!("seed {seed}: {why}\n{}\nscript {}\ninput {}", doc.text(), doc.script(), doc.begin())
}

/// G10–G26
#[test]
fn random_documents_walk_as_the_model_says() {
    let (first, count) = (number("SEED", 0) as u64, number("DOCUMENTS", 300) as u64);
    let mut differences = Vec::new();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    for seed in first..first + count {
        let doc = random::document(seed);
        let Ok(document) = Document::parse(&doc.text(), "g.json") else { continue };
        let Some(ends) = expected(&doc) else { continue };
        let registry = Registry::new().script(ScriptedExecutor::from_json(&doc.script()).unwrap());
        let workflows = document
            .bind(&registry)
            .unwrap_or_else(|error| panic!("{}", told(seed, &doc, &error.to_string())));
        let root = workflows[0].clone();
        let real = runtime.block_on(Real::run(&doc, workflows));
        if let Some(why) = refuted(&real, &ends) {
            differences.push(told(seed, &doc, &why));
        } else if seed % EXPLORED == 0 {
            let begun =
                || Scenario::runtime(root.clone()).start_json("graph.input", json!({"input": doc.begin()}));
            explore(begun).orders(ORDERS).assert(|run| {
                let why = refuted(&Real::logged(&doc, run.outcome(), run.report()), &ends);
                assert!(why.is_none(), "{}", told(seed, &doc, &why.unwrap_or_default()));
            });
        }
    }
    let shown = differences.iter().take(number("SHOWN", 3)).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(differences.is_empty(), "{} of {count} documents differ:\n{shown}", differences.len());
}
