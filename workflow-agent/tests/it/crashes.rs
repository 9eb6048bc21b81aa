//! Ends of a process at every write, for agents of ten kinds: the same answer, each entry once, acts at most once, and
//! each committed reply paid once. Runs that are redriven keep the same promises.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use workflow_agent::entry::Entry;
use workflow_agent::judge::{Candidate, Judge, Judgement, Verdict};
use workflow_agent::model::{Message, ModelLimits, ModelRequest, ScriptedModel, ScriptedReply, Usage};
use workflow_agent::prelude::*;
use workflow_agent::tool::FnTool;
use workflow_agent::{AgentBuilder, ApproveTool, AskUser, Decision, Prompt};
use workflow_core::store::MemoryStore;
use workflow_core::{Redrive, RedriveError, RunError, RunOptions, StepError};
use workflow_testkit::{Confirms, CrashStore, Scenario, Start, TestRun, VirtualClock, crash_everywhere};

use crate::lives::life;
use crate::pairing;
use crate::parts::{City, call};

/// What happened outside of the run, over all processes of one crash test.
#[derive(Debug, Default)]
struct Called {
    /// The number of processes.
    lives: usize,
    /// How often each request came to the model.
    model: BTreeMap<String, usize>,
    /// How often each tool was called, by tool and idempotency key.
    tools: BTreeMap<(String, String), usize>,
}

impl Called {
    fn calls(&self, tool: &str) -> Vec<usize> {
        let of_tool = self.tools.iter().filter(|((name, _), _)| name == tool);
        of_tool.map(|(_, calls)| *calls).collect()
    }

    fn crashes(&self) -> usize {
        self.lives.saturating_sub(1)
    }
}

/// The last of them is the test that runs.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Vec<Called>>>);

impl Ledger {
    /// Each crash test begins with a new store, and so with a new page.
    fn store(&self) -> impl Fn() -> MemoryStore + Send + 'static + use<> {
        let ledger = self.clone();
        move || {
            ledger.0.lock().unwrap().push(Called::default());
            MemoryStore::default()
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut Called) -> T) -> T {
        look(self.0.lock().unwrap().last_mut().expect("a test has begun"))
    }

    /// A model whose requests are checked and counted.
    fn model(&self, reply: impl Fn(&ModelRequest) -> ScriptedReply + Send + Sync + 'static) -> ScriptedModel {
        let ledger = self.clone();
        ScriptedModel::respond(move |request| {
            pairing::check(request).unwrap();
            let key = format!("{}\n{:?}", request.system, request.messages);
            ledger.with(|called| *called.model.entry(key).or_default() += 1);
            reply(request).usage(Usage::new(10, 1))
        })
    }

    fn tool(&self, name: &'static str) -> FnTool {
        let ledger = self.clone();
        FnTool::new(name, "Does it.", move |city: City, context: ToolContext| {
            let key = (name.to_owned(), context.idempotency_key().to_owned());
            ledger.with(|called| *called.tools.entry(key).or_default() += 1);
            async move { Ok::<_, ToolError>(format!("{name} in {}", city.city)) }
        })
    }
}

/// The replies in requests.
fn rounds(request: &ModelRequest) -> usize {
    request.messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count()
}

fn host(store: CrashStore, agent: AgentBuilder) -> workflow_testkit::ScenarioOf<Agent> {
    Scenario::new(agent.build().unwrap()).engine(|engine| engine.store(store))
}

fn entries(run: &TestRun<Agent>) -> Vec<Arc<Entry>> {
    run.report().log.iter().filter_map(|logged| logged.value.downcast()).collect()
}

/// Checks a run against the ledger: its entries are there once, each reply was asked for with one request, and a request
/// came again only for a crash. `others` are the replies of child runs.
fn is_paid_once(run: &TestRun<Agent>, ledger: &Ledger, others: usize) {
    let entries = entries(run);
    let mut texts = BTreeSet::new();
    for entry in &entries {
        assert!(texts.insert(serde_json::to_string(entry).unwrap()), "twice in the log: {entry:?}");
    }
    let replies = entries.iter().filter(|entry| matches!(***entry, Entry::Assistant(_)));
    // A long conversation is summarised part by part: the parts before the last one are in no entry.
    let parts = run.report().log.iter().filter(|logged| &*logged.event == "agent.shorten").count();
    let replies = replies.count() + parts + others;
    ledger.with(|called| {
        let calls: usize = called.model.values().sum();
        // A repeated request has the same bytes as the first one.
        assert_eq!(called.model.len(), replies, "{called:#?}");
        assert!(calls <= replies + called.crashes(), "{calls} calls for {replies} replies: {called:#?}");
    });
}

/// The data of an answer, or else its text.
fn said(run: &TestRun<Agent>) -> String {
    match run.outcome().unwrap() {
        Outcome::Answered(answer) => {
            answer.data.as_ref().map_or_else(|| answer.text.clone(), ToString::to_string)
        }
        other => panic!("no answer: {other:?}"),
    }
}

/// Whether an interrupted call changes the log, because its result tells of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Log {
    Same,
    TellsOfInterruptions,
}

/// Ends processes everywhere. `holds` sees each run, and the ledger with its page.
async fn survives(
    log: Log,
    (others, expected): (usize, &'static str),
    start: impl Fn(&Ledger, CrashStore) -> Start<Agent> + Send + 'static,
    holds: impl Fn(&Called) + Send + 'static,
) {
    let ledger = Ledger::default();
    let (starts, checks) = (ledger.clone(), ledger.clone());
    let crashes = crash_everywhere(move |store| {
        starts.with(|called| called.lives += 1);
        start(&starts, store)
    });
    let crashes = crashes.on(ledger.store()).confirming([Confirms::AtOnce, Confirms::Late]).pairs(5);
    let crashes = if log == Log::Same { crashes } else { crashes.comparing_outcomes() };
    let crashes = crashes.assert(move |run| {
        assert_eq!(said(run), expected);
        is_paid_once(run, &checks, others);
        checks.with(|called| holds(called));
    });
    let survived = crashes.await;
    assert!(survived.once() > 8 && survived.twice() > 2, "{survived}");
    // The ledger saw processes that ended.
    assert!(ledger.0.lock().unwrap().iter().any(|called| called.crashes() == 2));
}

/// Calls a tool once, and answers.
fn one_call(request: &ModelRequest) -> ScriptedReply {
    match rounds(request) {
        0 => call("1", "work", "Bern"),
        _ => ScriptedReply::text("done"),
    }
}

/// A1, A14, A15
#[tokio::test]
async fn a_read_only_tool_survives() {
    let start = |ledger: &Ledger, store| {
        let agent =
            Agent::builder("Agent").model(ledger.model(one_call)).tool(ledger.tool("work").read_only());
        host(store, agent).start(Prompt::new("go"))
    };
    survives(Log::Same, (0, "done"), start, |called| {
        let calls = called.calls("work");
        assert!(calls.len() == 1 && calls[0] <= 1 + called.crashes(), "{called:#?}");
    })
    .await;
}

/// A1, A15
#[tokio::test]
async fn an_acting_tool_survives_and_runs_once_at_most() {
    let start = |ledger: &Ledger, store| {
        let agent = Agent::builder("Agent").model(ledger.model(one_call)).tool(ledger.tool("work"));
        host(store, agent).start(Prompt::new("go"))
    };
    survives(Log::TellsOfInterruptions, (0, "done"), start, |called| {
        let calls = called.calls("work");
        assert!(calls.iter().sum::<usize>() <= 1, "{called:#?}");
        assert!(called.crashes() > 0 || calls == [1], "{called:#?}");
    })
    .await;
}

/// A14, A15
#[tokio::test]
async fn an_idempotent_tool_survives_and_is_repeated_with_its_key() {
    let start = |ledger: &Ledger, store| {
        let agent =
            Agent::builder("Agent").model(ledger.model(one_call)).tool(ledger.tool("work").idempotent());
        host(store, agent).start(Prompt::new("go"))
    };
    survives(Log::Same, (0, "done"), start, |called| {
        let calls = called.calls("work");
        assert!(calls.len() == 1 && calls[0] <= 1 + called.crashes(), "{called:#?}");
    })
    .await;
}

/// A20, A21, A24, A15
#[tokio::test]
async fn tools_with_approval_survive_and_nothing_runs_that_was_rejected() {
    let start = |ledger: &Ledger, store| {
        let model = ledger.model(|request| match rounds(request) {
            0 => call("1", "work", "Bern").and_call("2", "other", json!({"city": "Biel"})).and_call(
                "3",
                "work",
                json!({"city": "Basel"}),
            ),
            _ => ScriptedReply::text("done"),
        });
        let agent = Agent::builder("Agent").model(model).tool(ledger.tool("work").approval(Approval::Always));
        let agent = agent.tool(ledger.tool("other").approval(Approval::Acts));
        let decide = |asked: &ApproveTool| match &*asked.tool {
            "other" => Decision::Reject { reason: Some("no".into()) },
            _ => Decision::Approve,
        };
        host(store, agent).reply(decide).start(Prompt::new("go"))
    };
    survives(Log::TellsOfInterruptions, (0, "done"), start, |called| {
        let calls = called.calls("work");
        assert!(calls.len() <= 2 && calls.iter().all(|calls| *calls == 1), "{called:#?}");
        assert_eq!(called.calls("other"), [0; 0], "{called:#?}");
    })
    .await;
}

/// A25, A24
#[tokio::test]
async fn a_question_to_the_user_survives() {
    let start = |ledger: &Ledger, store| {
        let model = ledger.model(|request| match request.messages.last() {
            Some(Message::Results(results)) if results[0].text.contains("Bern") => {
                ScriptedReply::text("done")
            }
            Some(Message::Results(_)) => ScriptedReply::text("nobody answered"),
            _ => ScriptedReply::call("1", "ask_user", json!({"question": "Which city?"})),
        });
        let agent = Agent::builder("Agent").model(model).ask_user();
        host(store, agent).reply(|_: &AskUser| "Bern".to_owned()).start(Prompt::new("go"))
    };
    survives(Log::Same, (0, "done"), start, |_| ()).await;
}

/// Reads pages one after the other, each of which is long.
fn pages(request: &ModelRequest) -> ScriptedReply {
    if request.system.starts_with("You summarise") {
        return ScriptedReply::text("a summary");
    }
    let page = match request.messages.last() {
        Some(Message::Results(results)) => results[0]
            .text
            .split("page ")
            .nth(1)
            .and_then(|text| text.split('.').next())
            .unwrap()
            .parse()
            .unwrap(),
        _ => 0,
    };
    match page {
        9 => ScriptedReply::text("done"),
        page => ScriptedReply::call(&format!("p{page}"), "read", json!({"city": format!("{}", page + 1)})),
    }
}

/// A53, A6
#[tokio::test]
async fn an_agent_that_shortens_its_conversation_survives() {
    let start = |ledger: &Ledger, store| {
        let read = FnTool::new("read", "Reads a page.", |city: City, _| async move {
            Ok::<_, ToolError>(format!("page {}. {}", city.city, "word ".repeat(120)))
        });
        let model = ledger.model(pages).limits(ModelLimits::new(400, 50));
        host(store, Agent::builder("Agent").model(model).tool(read.read_only())).start(Prompt::new("go"))
    };
    survives(Log::Same, (0, "done"), start, |called| {
        let summaries = called.model.keys().filter(|request| request.starts_with("You summarise"));
        assert!(summaries.count() > 0, "no summary: {called:#?}");
    })
    .await;
}

/// Wants two other answers first.
struct Strict;

impl Judge for Strict {
    fn judge<'a>(&'a self, candidate: &'a Candidate) -> BoxFuture<'a, Result<Judgement, StepError>> {
        let verdict = match &*candidate.text {
            "answer 2" => Verdict::Accept,
            text => Verdict::Retry(format!("better than {text}")),
        };
        async move { Ok(verdict.into()) }.boxed()
    }
}

/// A54, A1
#[tokio::test]
async fn a_judge_that_wants_better_answers_survives() {
    let start = |ledger: &Ledger, store| {
        let model = ledger.model(|request| ScriptedReply::text(format!("answer {}", rounds(request))));
        host(store, Agent::builder("Agent").model(model).judge(Strict)).start(Prompt::new("go"))
    };
    survives(Log::Same, (0, "answer 2"), start, |called| assert_eq!(called.model.len(), 3, "{called:#?}"))
        .await;
}

/// A51, A1
#[tokio::test]
async fn phases_survive_one_of_them_isolated() {
    let start = |ledger: &Ledger, store| {
        let model = ledger.model(|request| {
            let phase = ["first", "second", "third"].into_iter().find(|name| request.system.contains(name));
            match (phase, request.messages.last()) {
                (Some(phase), Some(Message::Results(_))) => {
                    ScriptedReply::text(format!("the {phase} is done"))
                }
                (Some(phase), _) => call(phase, "work", phase),
                (None, _) => ScriptedReply::text("no phase"),
            }
        });
        let phase = |name: &str| Phase::new(name).focus(format!("Do the {name}."));
        let agent = Agent::builder("Agent").model(model).tool(ledger.tool("work").read_only());
        let agent = agent.phase(phase("first")).phase(phase("second").isolated()).phase(phase("third"));
        host(store, agent).start(Prompt::new("go"))
    };
    survives(Log::Same, (0, "the third is done"), start, |called| {
        let calls = called.calls("work");
        assert!(calls.len() == 3 && calls.iter().sum::<usize>() <= 3 + called.crashes(), "{called:#?}");
    })
    .await;
}

/// A24, A30, A15
#[tokio::test]
async fn a_sub_agent_that_acts_survives_and_acts_once_at_most() {
    let start = |ledger: &Ledger, store| {
        let helper = Agent::builder("helper")
            .identity("You help.")
            .model(ledger.model(one_call))
            .tool(ledger.tool("work"));
        let helper = helper.build().unwrap();
        let model = ledger.model(|request| match rounds(request) {
            0 => {
                let tasks = json!({"tasks": [{"agent": "helper", "task": "help"}]});
                ScriptedReply::call("1", "spawn_sub_agent", tasks)
            }
            _ => ScriptedReply::text("answered"),
        });
        let top = Agent::builder("Agent").model(model).sub_agent(helper.clone());
        host(store, top).host_named("Agent.helper", helper).start(Prompt::new("go"))
    };
    survives(Log::TellsOfInterruptions, (2, "answered"), start, |called| {
        assert!(called.calls("work").iter().sum::<usize>() <= 1, "{called:#?}");
    })
    .await;
}

/// A55, A1
#[tokio::test]
async fn a_typed_answer_survives() {
    let start = |ledger: &Ledger, store| {
        let model = ledger.model(|request| match rounds(request) {
            0 => call("1", "work", "Bern"),
            1 => ScriptedReply::call("2", "final_answer", json!({"degrees": "warm"})),
            _ => ScriptedReply::call("3", "final_answer", json!({"degrees": 21})),
        });
        let agent = Agent::builder("Agent").model(model).tool(ledger.tool("work").read_only());
        let schema = json!({
            "type": "object", "properties": {"degrees": {"type": "integer"}}, "required": ["degrees"]
        });
        host(store, agent).start(Prompt::new("go").output(schema))
    };
    survives(Log::Same, (0, "{\"degrees\":21}"), start, |_| ()).await;
}

/// An agent whose calls take time: a reply after a second, and tools for a second.
fn slow(ledger: &Ledger) -> Agent {
    let model = ledger.model(|request| {
        let reply = match rounds(request) {
            0 => call("1", "look", "Bern").and_call("2", "act", json!({"city": "Biel"})),
            1 => call("3", "act", "Basel"),
            2 => call("4", "look", "Chur"),
            _ => ScriptedReply::text("done"),
        };
        reply.after(Duration::from_secs(1))
    });
    let tool = |name: &'static str| {
        let ledger = ledger.clone();
        FnTool::new(name, "Does it.", move |city: City, context: ToolContext| {
            let key = (format!("{name} {}", city.city), context.idempotency_key().to_owned());
            ledger.with(|called| *called.tools.entry(key).or_default() += 1);
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok::<_, ToolError>(format!("{name} in {}", city.city))
            }
        })
    };
    let agent = Agent::builder("a").model(model).tool(tool("look").read_only()).tool(tool("act"));
    agent.build().unwrap()
}

/// The results that a run has logged, by call.
async fn results(run: &AgentRun) -> BTreeMap<String, String> {
    let report = run.handle().report_so_far().await.unwrap();
    let entries: Vec<Arc<Entry>> = report.log.iter().filter_map(|logged| logged.value.downcast()).collect();
    let mut results = BTreeMap::new();
    for entry in &entries {
        if let Entry::Results { results: done } = &**entry {
            for done in done {
                assert_eq!(
                    results.insert(done.call.to_string(), done.text.to_string()),
                    None,
                    "{entries:#?}"
                );
            }
        }
    }
    results
}

/// How a run ends before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Cancelled,
    TimedOut,
}

/// Ends a run after a time, redrives it until it answers, and checks that nothing was lost or made twice.
fn is_redriven(end: End, tenths: u64) {
    let ledger = Ledger::default();
    let store = Arc::new(ledger.store()());
    let agent = slow(&ledger);
    let engine = || {
        let builder = Engine::builder().agent(agent.clone()).clock(VirtualClock::new());
        builder.store(Arc::clone(&store)).build().unwrap()
    };
    let after = Duration::from_millis(100 * tenths);
    let before = life(async {
        let engine = engine();
        let options = RunOptions::new().id("r");
        let options = if end == End::TimedOut { options.timeout(after) } else { options };
        let run = agent.start_with(&engine, "go", options).await.unwrap();
        if end == End::Cancelled {
            tokio::time::sleep(after).await;
            run.cancel("not now").await.unwrap();
        }
        let error = run.outcome().await.unwrap_err();
        assert!(matches!(error, RunError::Cancelled { .. } | RunError::TimedOut { .. }), "{error:?}");
        results(&run).await
    });
    let committed = ledger.with(|called| called.model.len());
    // Another process continues it.
    life(async {
        let engine = engine();
        let mut redrives = 0;
        let (run, outcome) = loop {
            engine.redrive_with::<Agent>("r", Redrive::new()).await.unwrap();
            redrives += 1;
            let run = AgentRun::attach(&engine, &agent, "r").await.unwrap();
            match run.outcome().await {
                Ok(outcome) => break (run, outcome),
                Err(RunError::TimedOut { .. }) if redrives < 20 => {}
                Err(error) => panic!("{end:?} {tenths}: {error:?}"),
            }
        };
        assert_eq!(outcome.text(), "done", "{end:?} {tenths}");
        let after = results(&run).await;
        assert_eq!(after.keys().collect::<Vec<_>>(), ["1", "2", "3", "4"]);
        for (call, text) in &before {
            assert_eq!(after.get(call), Some(text), "{end:?} {tenths}: the result of {call} changed");
        }
        ledger.with(|called| {
            assert!(called.model.len() == 4 && committed <= 4, "{called:#?}");
            let repeated: usize = called.model.values().map(|calls| calls - 1).sum();
            assert!(repeated <= redrives, "{end:?} {tenths}: {called:#?}");
            for ((tool, _), calls) in &called.tools {
                let most = if tool.starts_with("act") { 1 } else { 1 + redrives };
                assert!(*calls <= most, "{end:?} {tenths}: {called:#?}");
            }
            assert_eq!(called.tools.len(), 4, "each call has one key: {called:#?}");
        });
    });
}

/// A6, A14, A15
#[test]
fn a_run_that_was_cancelled_at_any_time_and_redriven_answers_the_same_and_acts_once_at_most() {
    for tenths in (1..69).step_by(3) {
        is_redriven(End::Cancelled, tenths);
    }
}

/// A6, A14, A15
#[test]
fn a_run_that_failed_for_its_time_and_was_redriven_answers_the_same_and_acts_once_at_most() {
    for tenths in (15..69).step_by(6) {
        is_redriven(End::TimedOut, tenths);
    }
}

/// A run with an outcome has ended, and begins no second time.
///
/// A9
#[test]
fn a_run_whose_failure_is_its_outcome_is_not_redriven() {
    let ledger = Ledger::default();
    let store = Arc::new(ledger.store()());
    let fails = |_: &ModelRequest| {
        ScriptedReply::fail(workflow_agent::model::ModelError::permanent("the key is wrong"))
    };
    let agent = Agent::builder("a").model(ledger.model(fails)).build().unwrap();
    life(async {
        let builder = Engine::builder().agent(agent.clone()).clock(VirtualClock::new());
        let engine = builder.store(store).build().unwrap();
        let run = agent.start_with(&engine, "go", RunOptions::new().id("r")).await.unwrap();
        assert!(matches!(run.outcome().await.unwrap(), Outcome::Stopped(_)));
        let refused = engine.redrive_with::<Agent>("r", Redrive::new()).await.unwrap_err();
        assert!(matches!(refused, RedriveError::Completed { .. }), "{refused:?}");
    });
    assert_eq!(ledger.with(|called| called.model.values().sum::<usize>()), 1);
}
