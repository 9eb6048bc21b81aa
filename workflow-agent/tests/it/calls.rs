//! The order in which the calls of a reply run: acts one after the other, reads together, both behind approvals and over
//! crashes.

use std::sync::{Arc, Mutex};

use serde_json::json;
use workflow_agent::entry::Entry;
use workflow_agent::model::{Message, ModelRequest, ScriptedModel, ScriptedReply, Usage};
use workflow_agent::prelude::*;
use workflow_agent::tool::{FnTool, IntoTool as _, Tool as _};
use workflow_agent::{AgentBuilder, ApproveTool, Decision, OnRejection, PendingApproval};
use workflow_core::store::MemoryStore;
use workflow_testkit::{Scenario, TestRun, crash_everywhere, explore};

use crate::lives::{Disk, life, moment};
use crate::parts::{Calls, City, agent, answered, assert_paired, call, results, scripted, visit, weather};

/// A tool that acts, and whose results say in which place its call ran.
fn counting(ran: &Calls) -> FnTool {
    let ran = ran.clone();
    FnTool::new("act", "Acts.", move |city: City, _| {
        ran.add(&city.city);
        let place = ran.len();
        async move { Ok::<_, ToolError>(format!("{} was {place}", city.city)) }
    })
}

/// Calls of `act` for these cities, and then an answer.
fn acts(cities: &'static [&'static str]) -> ScriptedModel {
    ScriptedModel::respond(move |request: &ModelRequest| {
        assert_paired(request);
        if let Some(Message::Results(_)) = request.messages.last() {
            return ScriptedReply::text("done").usage(Usage::new(10, 1));
        }
        let mut cities = cities.iter();
        let first = cities.next().unwrap();
        let reply = call(first, "act", first);
        let reply = cities.fold(reply, |reply, city| reply.and_call(city, "act", json!({ "city": city })));
        reply.usage(Usage::new(10, 1))
    })
}

/// The texts of the results of a run, in their order.
fn texts(run: &TestRun<Agent>) -> Vec<String> {
    let entries = run.report().log.iter().filter_map(|logged| logged.value.downcast::<Entry>());
    let results = entries.filter_map(|entry| match &*entry {
        Entry::Results { results } => Some(results.clone()),
        _ => None,
    });
    results.flatten().map(|done| done.text.to_string()).collect()
}

fn needs_a_person(arguments: &serde_json::Value) -> bool {
    arguments["city"] == "B"
}

/// A2, A12
#[test]
fn acts_of_a_reply_run_in_its_order_in_every_order_of_completions() {
    let explored = explore(|| {
        let agent = agent(&acts(&["A", "B", "C", "D"])).tool(counting(&Calls::default()));
        Scenario::new(agent.build().unwrap()).start(Prompt::new("go"))
    });
    let expected = ["A was 1", "B was 2", "C was 3", "D was 4"];
    explored.orders(300).assert(move |run| answered(run) == "done" && texts(run) == expected);
}

/// A2, A12, A20
#[test]
fn three_acts_with_an_approval_in_the_middle_run_in_the_order_of_the_reply_in_every_order() {
    let explored = explore(|| {
        let act = counting(&Calls::default()).approval(Approval::when(needs_a_person));
        let agent = agent(&acts(&["A", "B", "C"])).tool(act).build().unwrap();
        Scenario::new(agent).reply(|_: &ApproveTool| Decision::Approve).start(Prompt::new("go"))
    });
    let expected = ["A was 1", "B was 2", "C was 3"];
    let expired = |texts: &[String]| {
        texts[0] == "A was 1" && texts[1].contains("nobody approved it in time") && texts[2] == "C was 2"
    };
    let explored = explored.orders(500).assert(move |run| {
        let texts = texts(run);
        answered(run) == "done" && (texts == expected || expired(&texts))
    });
    assert!(explored.tried() > 3, "{explored}");
}

/// A2, A12, A15, A24
#[tokio::test]
async fn three_acts_with_an_approval_in_the_middle_keep_their_order_over_crashes_everywhere() {
    let tests: Arc<Mutex<Vec<Calls>>> = Arc::default();
    let (stores, starts) = (Arc::clone(&tests), Arc::clone(&tests));
    let crashes = crash_everywhere(move |store| {
        let ran = starts.lock().unwrap().last().cloned().unwrap_or_default();
        let act = counting(&ran).approval(Approval::when(needs_a_person));
        let agent = agent(&acts(&["A", "B", "C"])).tool(act).build().unwrap();
        let scenario = Scenario::new(agent).engine(|engine| engine.store(store));
        scenario.reply(|_: &ApproveTool| Decision::Approve).start(Prompt::new("go"))
    });
    let crashes = crashes.on(move || {
        stores.lock().unwrap().push(Calls::default());
        MemoryStore::default()
    });
    let survived = crashes.pairs(20).comparing_outcomes().assert(|run| answered(run) == "done").await;
    assert!(survived.once() > 15 && survived.twice() > 10, "{survived}");
    for ran in tests.lock().unwrap().iter() {
        let ran = ran.all();
        // A call that may have begun is not made again, so one may be missing, and none is there twice.
        assert!(ran.windows(2).all(|two| two[0] < two[1]), "{ran:?}");
    }
}

/// A run in an engine over a disk, and what its tools did.
struct Desk {
    disk: Disk,
    agent: Agent,
    ran: Calls,
}

impl Desk {
    fn new(make: impl FnOnce(&Calls) -> AgentBuilder) -> Self {
        let ran = Calls::default();
        Self { disk: Disk::default(), agent: make(&ran).build().unwrap(), ran }
    }

    async fn start(&self) -> AgentRun {
        self.agent.start(&self.disk.healthy().engine(&self.agent), "go").await.unwrap()
    }
}

/// Waits until so many approvals are open.
async fn open(run: &AgentRun, count: usize) -> Vec<PendingApproval> {
    loop {
        let open = run.approvals().await.unwrap();
        if open.len() == count {
            return open;
        }
        moment().await;
    }
}

/// A20, A24
#[test]
fn a_person_sees_all_approvals_of_a_reply_at_once_and_early_answers_count_when_their_turn_comes() {
    let desk = Desk::new(|ran| agent(&acts(&["A", "B", "C"])).tool(counting(ran).approval(Approval::Always)));
    let id = life(async {
        let run = desk.start().await;
        let approvals = open(&run, 3).await;
        let asked: Vec<_> = approvals.iter().map(PendingApproval::call).collect();
        assert_eq!(asked, ["A", "B", "C"]);
        approvals[2].edit(json!({"city": "C edited"})).await.unwrap();
        approvals[1].approve().await.unwrap();
        open(&run, 1).await;
        assert_eq!(desk.ran.len(), 0, "a later act waits for the person");
        run.id().clone()
    });
    life(async {
        let run = AgentRun::attach(&desk.disk.healthy().engine(&desk.agent), &desk.agent, id).await.unwrap();
        open(&run, 1).await[0].approve().await.unwrap();
        assert_eq!(run.outcome().await.unwrap().text(), "done");
        assert_eq!(desk.ran.all(), ["A", "B", "C edited"]);
    });
}

/// A12
#[test]
fn a_read_behind_an_act_waits_for_it_and_one_before_it_does_not() {
    let model = scripted([
        call("1", "weather", "A").and_call("2", "visit", json!({"city": "B"})).and_call(
            "3",
            "look",
            json!({"city": "C"}),
        ),
        ScriptedReply::text("done"),
    ]);
    let desk = Desk::new(|ran| {
        let look = ran.clone();
        let look = FnTool::new("look", "Looks.", move |_: City, _| {
            look.add("look");
            async { Ok::<_, ToolError>("seen") }
        });
        agent(&model).tool(weather()).tool(visit(ran).approval(Approval::Always)).tool(look.read_only())
    });
    life(async {
        let mut run = desk.start().await;
        loop {
            match run.next().await.unwrap() {
                Shown::ToolResult(done) => break assert_eq!(&*done.call, "1"),
                Shown::Done(outcome) => panic!("{outcome:?}"),
                _ => {}
            }
        }
        open(&run, 1).await[0].approve().await.unwrap();
        run.outcome().await.unwrap();
        assert_eq!(desk.ran.all(), ["B", "look"]);
    });
    let called: Vec<_> = results(&model.requests()[1]).iter().map(|result| result.call.to_string()).collect();
    assert_eq!(called, ["1", "2", "3"]);
}

/// A12, A20
#[test]
fn a_call_of_an_independent_tool_neither_waits_nor_is_waited_for() {
    #[tool(independent)]
    /// Notes something.
    async fn note(text: String, context: &ToolContext) -> String {
        let _ = context;
        text
    }
    assert!(note.into_tool().spec().is_independent());
    let model = scripted([
        call("1", "visit", "A").and_call("2", "note", json!({"text": "n"})).and_call(
            "3",
            "visit",
            json!({"city": "B"}),
        ),
        ScriptedReply::text("done"),
    ]);
    let desk = Desk::new(|ran| agent(&model).tool(note).tool(visit(ran).approval(Approval::Always)));
    life(async {
        let mut run = desk.start().await;
        loop {
            match run.next().await.unwrap() {
                Shown::ToolResult(done) => break assert_eq!(&*done.call, "2"),
                Shown::Done(outcome) => panic!("{outcome:?}"),
                _ => {}
            }
        }
        for approval in open(&run, 2).await {
            approval.approve().await.unwrap();
        }
        run.outcome().await.unwrap();
        assert_eq!(desk.ran.all(), ["A", "B"]);
    });
}

/// A12, A21
#[test]
fn no_later_act_begins_once_a_rejection_ends_the_run() {
    let desk = Desk::new(|ran| {
        let act = counting(ran).approval(Approval::when(needs_a_person));
        agent(&acts(&["A", "B", "C"])).tool(act).on_rejection(OnRejection::Stop)
    });
    life(async {
        let run = desk.start().await;
        open(&run, 1).await[0].reject("no").await.unwrap();
        let outcome = run.outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
        assert_eq!(desk.ran.all(), ["A"]);
    });
}
