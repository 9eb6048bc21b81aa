//! The examples of every format under crashes, in every order of arrivals, and over a store on disk.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::{RunStatus, RuntimeWorkflow};
use workflow_graph::{Document, Format, GraphRun, Registry, ScriptedExecutor};
use workflow_redb::RedbStore;
use workflow_testkit::{CrashStore, Runtime, Scenario, Start, VirtualClock, crash_everywhere, explore};

use super::expected::{complete, hive_options};
use super::support::{EXAMPLES, IMPORTED, examples, number};

/// A case of an example that is no refusal.
#[derive(Clone)]
struct Case {
    name: String,
    document: Document,
    input: Value,
    script: Value,
    expect: Value,
}

fn cases(example: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(examples().join("expected.yaml")).unwrap();
    let all: BTreeMap<String, Value> = serde_saphyr::from_str(&text).unwrap();
    let cases = all[example].as_array().unwrap().iter().enumerate();
    let cases = cases.filter(|(_, case)| case["expect"].get("refused").is_none());
    let case = |(place, case): (usize, &Value)| {
        let mut case = case.clone();
        complete(&mut case);
        Case {
            name: format!("{example} #{place}"),
            document: document(example, &case),
            input: case.get("input").cloned().unwrap_or(json!({})),
            script: case.get("script").cloned().unwrap_or(json!({})),
            expect: case["expect"].clone(),
        }
    };
    cases.map(case).collect()
}

fn document(example: &str, case: &Value) -> Document {
    let path = examples().join(example);
    if example.starts_with("hive") {
        Document::load_as(path, Format::Hive(hive_options(case))).unwrap()
    } else {
        Document::load(path).unwrap()
    }
}

/// The cases of all eight documents.
fn every_case() -> impl Iterator<Item = Case> {
    EXAMPLES.into_iter().chain(IMPORTED).flat_map(cases)
}

impl Case {
    fn workflows(&self) -> Vec<RuntimeWorkflow> {
        let script = ScriptedExecutor::from_json(&self.script).unwrap();
        self.document.bind(&Registry::new().script(script)).unwrap()
    }

    fn waits(&self) -> bool {
        self.expect["status"] == "waiting"
    }

    /// A scenario of the case; people of the script answer at once.
    fn scenario(&self, workflows: &[RuntimeWorkflow], store: Option<CrashStore>) -> Start<Runtime> {
        let (root, children) = workflows.split_first().unwrap();
        let mut scenario = Scenario::runtime(root.clone());
        for child in children {
            scenario = scenario.host_runtime(child.clone());
        }
        if let Some(store) = store {
            scenario = scenario.engine(|engine| engine.store(store));
        }
        let replies = self.script["replies"].as_object().cloned().unwrap_or_default();
        for (node, list) in replies {
            // Each visit asks once, and the last reply repeats.
            let list = list.as_array().cloned().unwrap_or_default();
            scenario = scenario.reply_json(&format!("{node}:ask"), move |asked| {
                let visit = usize::try_from(asked["iteration"].as_u64().unwrap()).unwrap();
                list[(visit - 1).min(list.len() - 1)].clone()
            });
        }
        if self.waits() {
            scenario = scenario.until_it_waits();
        }
        scenario.start_json("graph.input", json!({ "input": self.input }))
    }

    /// The keys of the memory that two branches write, so that the order in which they settle decides.
    fn races(&self) -> &'static [&'static str] {
        if self.name.starts_with("hive-survey") { &["offers"] } else { &[] }
    }

    /// Whether an outcome is the expected one.
    fn is_met(&self, outcome: Result<&Value, &RunError>) -> bool {
        self.is_met_but_for(&[], outcome)
    }

    /// The same without a look at these keys of the output.
    fn is_met_but_for(&self, keys: &[&str], outcome: Result<&Value, &RunError>) -> bool {
        let fields =
            ["output", "memory"].iter().filter_map(|key| self.expect.get(key)?.as_object()).flatten();
        let mut fields = fields.filter(|(field, _)| !keys.contains(&field.as_str()));
        self.has_status(outcome)
            && match outcome {
                Ok(output) => fields.all(|(field, value)| output["output"][field] == *value),
                Err(error) => {
                    let names = |text: &str| error.to_string().contains(text);
                    self.expect["error"].as_str().is_none_or(names)
                }
            }
    }

    fn has_status(&self, outcome: Result<&Value, &RunError>) -> bool {
        match outcome {
            Ok(output) => output["status"] == self.expect["status"],
            Err(RunError::StepFailed { step, .. }) => {
                let failed = self.expect["failed"].as_str();
                self.expect["status"] == "failed" && failed.is_none_or(|node| **step == *node)
            }
            Err(_) => false,
        }
    }
}

// G30
#[test]
fn every_crash_of_every_example_is_survived() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for case in every_case().filter(|case| !case.waits()) {
        let (started, judged) = (case.clone(), case.clone());
        let workflows = case.workflows();
        let crashes = crash_everywhere(move |store| started.scenario(&workflows, Some(store)));
        let pairs = u64::try_from(number("PAIRS", 6)).unwrap();
        let crashes = crashes.pairs(pairs).assert(move |run| judged.is_met(run.outcome()));
        let survived = runtime.block_on(crashes.into_future());
        assert!(survived.once() > 4, "{}: {survived}", case.name);
    }
}

// G30: over the files that users have.
#[test]
fn crashes_are_survived_on_disk() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The first case of each document, and of one the case with people in a branch.
    let firsts = every_case().filter(|case| case.name.ends_with("#0"));
    for case in firsts.chain(cases("release-checks.yaml").into_iter().skip(1).take(1)) {
        let folder = tempfile::tempdir().unwrap();
        let (started, judged, path) = (case.clone(), case.clone(), folder.path().to_owned());
        let workflows = case.workflows();
        let count = std::sync::atomic::AtomicU64::new(0);
        let open = move || {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            RedbStore::open(path.join(format!("{number}.redb"))).unwrap()
        };
        let crashes = crash_everywhere(move |store| started.scenario(&workflows, Some(store))).on(open);
        let crashes = crashes.pairs(2).confirming([workflow_testkit::Confirms::AtOnce]);
        let survived =
            runtime.block_on(crashes.assert(move |run| judged.is_met(run.outcome())).into_future());
        assert!(survived.once() > 4, "{}: {survived}", case.name);
    }
}

// G14, G16, G30. The time of an answer may be over before it comes, in some order, so the cases of that document with
// answers have another end.
#[test]
fn no_order_of_arrivals_changes_an_example() {
    let expires = |case: &Case| case.name.starts_with("refund") && case.script.get("replies").is_some();
    for case in every_case().filter(|case| !case.waits() && !expires(case)) {
        let workflows = case.workflows();
        let orders = u64::try_from(number("ORDERS", 30)).unwrap();
        let explored = explore(|| case.scenario(&workflows, None)).orders(orders);
        explored.assert(|run| {
            let outcome = run.outcome();
            let holds = case.is_met_but_for(case.races(), outcome);
            assert!(holds, "{}: {outcome:?}", case.name);
        });
    }
}

// G29, G30: a run of each example waits, or has ended, and another process takes it up from its file.
#[tokio::test(start_paused = true)]
async fn another_process_resumes_an_example_from_disk() {
    for case in every_case() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.redb");
        let people = ScriptedExecutor::from_json(&case.script).unwrap();
        let id = {
            let engine = Engine::builder().workflows(case.workflows()).clock(VirtualClock::new());
            let engine = engine.store(RedbStore::open(&path).unwrap()).build().unwrap();
            let run = GraphRun::start(&engine, case.document.name(), case.input.clone()).await.unwrap();
            run.settled().await;
            engine.shut_down(Duration::from_secs(5)).await;
            run.id().clone()
        };
        let engine = Engine::builder().workflows(case.workflows()).clock(VirtualClock::new());
        let engine = engine.store(RedbStore::open(&path).unwrap()).build().unwrap();
        let run = GraphRun::attach(&engine, id).await.unwrap();
        let status = run.play(&people).await.unwrap();
        if case.waits() {
            assert_eq!(status, RunStatus::Waiting, "{}", case.name);
        } else {
            let outcome = run.outcome().await;
            let word = outcome.as_ref().map_or(json!("failed"), |result| json!(result.status));
            assert_eq!(word, case.expect["status"], "{}", case.name);
        }
    }
}
