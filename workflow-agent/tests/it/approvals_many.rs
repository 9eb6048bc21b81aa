//! A thousand open approvals at a time over a file: decided in random order, before and after a restart, and decided
//! twice. A tenth more expire. `APPROVALS` sets the number of open ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use serde_json::json;
use workflow_agent::entry::Entry;
use workflow_agent::model::{
    Finish, Message, ModelReply, ModelRequest, Part, ScriptedModel, ScriptedReply, ToolUse,
};
use workflow_agent::prelude::*;
use workflow_agent::tool::FnTool;
use workflow_agent::{PendingApproval, Prompt};
use workflow_core::RunOptions;
use workflow_redb::{Durability, RedbStore};

use crate::pairing;
use crate::parts::City;

/// The number without `APPROVALS`.
const APPROVALS: usize = 1_000;
/// The calls of a run, which wait at the same time.
const CALLS: usize = 50;

/// A decision of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decided {
    Approved,
    Edited,
    Rejected,
}

/// The desk of the people: what was decided, and what ran.
#[derive(Debug, Default)]
struct Desk {
    decided: BTreeMap<String, Decided>,
    ran: Vec<String>,
    early: Vec<String>,
}

type Shared = Arc<Mutex<Desk>>;

/// A tool that keeps account of its calls. An edited call has a mark at its end.
fn act(desk: &Shared) -> FnTool {
    let desk = Arc::clone(desk);
    FnTool::new("act", "Acts.", move |city: City, _| {
        let mut desk = desk.lock().unwrap();
        let (name, decided) = match city.city.strip_suffix("!") {
            Some(name) => (name.to_owned(), Decided::Edited),
            None => (city.city.clone(), Decided::Approved),
        };
        if desk.decided.get(&name) != Some(&decided) {
            desk.early.push(city.city.clone());
        }
        desk.ran.push(name);
        async move { Ok::<_, ToolError>(format!("acted in {}", city.city)) }
    })
}

/// Fifty calls, named after the question, and then the answer.
fn model() -> ScriptedModel {
    ScriptedModel::respond(|request: &ModelRequest| {
        pairing::check(request).unwrap();
        if let Some(Message::Results(_)) = request.messages.last() {
            return ScriptedReply::text("done");
        }
        let question = request.messages[0].text().into_owned();
        let call = |n: usize| {
            let city = json!({"city": format!("{question}.{n}")});
            Part::Call(ToolUse::new(format!("c{n}"), "act", city))
        };
        ScriptedReply::reply(ModelReply::new((0..CALLS).map(call).collect(), Finish::ToolUse))
    })
}

fn agent(name: &str, desk: &Shared, expires: Duration) -> Agent {
    let agent = Agent::builder(name).model(model()).tool(act(desk).approval(Approval::Always));
    agent.approval_expires(expires).build().unwrap()
}

struct Office {
    path: std::path::PathBuf,
    /// Its approvals stay open for an hour.
    patient: Agent,
    /// Its approvals expire at once.
    hasty: Agent,
}

impl Office {
    fn engine(&self) -> Engine {
        let durability = Durability::Buffered(Duration::from_millis(50));
        let store = RedbStore::builder().durability(durability).open(&self.path).unwrap();
        let builder = Engine::builder().agent(self.patient.clone()).agent(self.hasty.clone());
        builder.store(store.clone()).contexts(store).build().unwrap()
    }
}

/// Waits until a run has all its approvals open.
async fn open(run: &mut AgentRun, count: usize) -> Vec<PendingApproval> {
    loop {
        let open = run.approvals().await.unwrap();
        if open.len() >= count {
            return open;
        }
        run.next().await.expect("the run has not ended");
    }
}

async fn decide(rng: &mut Rng, desk: &Shared, approval: &PendingApproval) {
    let name = approval.arguments()["city"].as_str().unwrap().to_owned();
    let decided = [Decided::Approved, Decided::Edited, Decided::Rejected][rng.usize(0..3)];
    // Entered before, so that a call that ran before its decision shows.
    assert_eq!(desk.lock().unwrap().decided.insert(name.clone(), decided), None, "{name} was open again");
    match decided {
        Decided::Approved => approval.approve().await.unwrap(),
        Decided::Edited => approval.edit(json!({"city": format!("{name}!")})).await.unwrap(),
        Decided::Rejected => approval.reject(format!("not {name}")).await.unwrap(),
    }
    if rng.u8(0..4) == 0 {
        let again =
            if rng.bool() { approval.approve().await } else { approval.reject("changed my mind").await };
        again.expect_err("a second decision counts");
    }
}

/// The results of a run by the number of the call.
async fn results(run: &AgentRun) -> Vec<(String, bool)> {
    let report = run.handle().report().await.unwrap();
    let entries: Vec<Arc<Entry>> = report.log.iter().filter_map(|logged| logged.value.downcast()).collect();
    let mut found = entries.iter().filter_map(|entry| match &**entry {
        Entry::Results { results } => Some(results),
        _ => None,
    });
    let results = found.next().expect("there are results");
    assert!(found.next().is_none() && results.len() == CALLS);
    for (n, result) in results.iter().enumerate() {
        assert_eq!(&*result.call, format!("c{n}"));
    }
    results.iter().map(|result| (result.text.to_string(), result.is_error)).collect()
}

/// A20, A21, A22, A23, A24, A2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_open_approvals_each_concern_their_own_call_across_a_restart() {
    let count = std::env::var("APPROVALS").ok().and_then(|text| text.parse().ok()).unwrap_or(APPROVALS);
    let runs = usize::div_ceil(count, CALLS).max(2);
    let hasty_runs = runs.div_ceil(10);
    let (folder, desk) = (tempfile::tempdir().unwrap(), Shared::default());
    let office = Office {
        path: folder.path().join("runs.redb"),
        patient: agent("patient", &desk, Duration::from_hours(1)),
        hasty: agent("hasty", &desk, Duration::from_millis(1)),
    };
    let mut rng = Rng::with_seed(17);
    let name = |n: usize| format!("r{n}");
    let hasty_name = |n: usize| format!("h{n}");

    let engine = office.engine();
    let (mut approvals, mut hasty) = (Vec::new(), Vec::new());
    let (mut all, mut expiring): (Vec<AgentRun>, Vec<AgentRun>) = (Vec::new(), Vec::new());
    for n in 0..runs {
        let options = RunOptions::new().id(name(n));
        all.push(office.patient.start_with(&engine, Prompt::new(name(n)), options).await.unwrap());
        if n < hasty_runs {
            let (name, agent) = (hasty_name(n), &office.hasty);
            let options = RunOptions::new().id(name.as_str());
            expiring.push(agent.start_with(&engine, Prompt::new(name), options).await.unwrap());
        }
    }
    for run in &mut expiring {
        // Late answers come to requests that expired.
        while let Some(shown) = run.next().await {
            if let Shown::Approval(approval) = shown {
                hasty.push(approval);
            }
        }
        assert_eq!(run.outcome().await.unwrap().text(), "done");
    }
    for run in &mut all {
        open(run, CALLS).await;
    }
    // All at the same time: none was decided, and none expires within the hour.
    for run in &all {
        approvals.extend(run.approvals().await.unwrap());
    }
    assert!(approvals.len() >= count && approvals.len() == runs * CALLS, "{} are open", approvals.len());
    assert!(desk.lock().unwrap().ran.is_empty(), "a call ran before its approval");
    for approval in &hasty {
        approval.approve().await.expect_err("a decision after the expiry counts");
    }

    // A third is decided before the restart.
    rng.shuffle(&mut approvals);
    for approval in approvals.drain(..approvals.len() / 3) {
        decide(&mut rng, &desk, &approval).await;
    }
    let undecided: BTreeSet<String> =
        approvals.iter().map(|approval| approval.arguments()["city"].as_str().unwrap().to_owned()).collect();
    drop((approvals, hasty, all, expiring));
    engine.shut_down(Duration::from_secs(10)).await;
    drop(engine);

    let engine = office.engine();
    engine.resume_open_runs().await.unwrap();
    let (mut approvals, mut all) = (Vec::new(), Vec::new());
    for n in 0..runs {
        let mut run = AgentRun::attach(&engine, &office.patient, name(n)).await.unwrap();
        let prefix = format!("{}.", name(n));
        let left = undecided.iter().filter(|city| city.starts_with(&prefix)).count();
        if left > 0 {
            approvals.extend(open(&mut run, left).await);
        }
        all.push((n, run));
    }
    let open: BTreeSet<String> =
        approvals.iter().map(|approval| approval.arguments()["city"].as_str().unwrap().to_owned()).collect();
    assert_eq!(open, undecided, "exactly the undecided ones are open after the restart");
    rng.shuffle(&mut approvals);
    for approval in &approvals {
        decide(&mut rng, &desk, approval).await;
    }

    let mut interrupted = 0;
    for (n, run) in &all {
        assert_eq!(run.outcome().await.unwrap().text(), "done");
        for (at, (text, is_error)) in results(run).await.into_iter().enumerate() {
            let city = format!("{}.{at}", name(*n));
            let decided = desk.lock().unwrap().decided[&city];
            let expected = match decided {
                Decided::Approved => (format!("acted in {city}"), false),
                Decided::Edited => (format!("acted in {city}!"), false),
                Decided::Rejected => (format!("action rejected by user: not {city}"), true),
            };
            // The restart may have come between a call and its result.
            let is_cut = decided != Decided::Rejected && text.contains("may have happened");
            interrupted += usize::from(is_cut);
            assert!(is_cut || (text.clone(), is_error) == expected, "{city}: {text}, not {expected:?}");
        }
    }
    assert!(interrupted <= all.len(), "{interrupted} calls were interrupted by one restart");
    for n in 0..hasty_runs {
        let run = AgentRun::attach(&engine, &office.hasty, hasty_name(n)).await.unwrap();
        for (text, is_error) in results(&run).await {
            assert!(is_error && text.contains("rejected") && text.contains("expired"), "{text}");
        }
    }
    let desk = desk.lock().unwrap();
    assert_eq!(desk.early, [""; 0], "calls ran before their decision, or against it");
    let ran: BTreeSet<&String> = desk.ran.iter().collect();
    assert_eq!(ran.len(), desk.ran.len(), "a call ran twice");
    let allowed = desk.decided.values().filter(|decided| **decided != Decided::Rejected).count();
    assert!(ran.len() <= allowed && ran.len() + interrupted >= allowed, "{} of {allowed} ran", ran.len());
}
