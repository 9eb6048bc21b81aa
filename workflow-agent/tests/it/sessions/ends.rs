//! Runs that end without an answer after something that acts: what happened stays in the session.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use workflow_agent::entry::{Entry, NoteKind};
use workflow_agent::judge::{Candidate, Judge, Judgement, Verdict};
use workflow_agent::model::{Finish, ModelError};
use workflow_agent::{AgentBuilder, Prompt, SessionExchange};
use workflow_core::{Redrive, RedriveError, StepError};

use super::*;
use crate::lives::{Disk, Fails, Lost, life, moment};
use crate::parts::{Calls, City, assert_paired};

/// A tool that acts.
fn pay(paid: &Calls) -> FnTool {
    let paid = paid.clone();
    FnTool::new("pay", "Pays.", move |city: City, _| {
        paid.add(&city.city);
        async move { Ok::<_, ToolError>(format!("paid {}", city.city)) }
    })
}

/// Escalates each answer.
struct Escalates;

impl Judge for Escalates {
    fn judge<'a>(&'a self, candidate: &'a Candidate) -> BoxFuture<'a, Result<Judgement, StepError>> {
        let verdict = match &*candidate.text {
            "give up" => Verdict::Escalate("a person must look".into()),
            _ => Verdict::Accept,
        };
        async move { Ok(verdict.into()) }.boxed()
    }
}

/// Pays for a question with `pay`, and replies to the result with what the function makes. Other questions it echoes.
fn paying(then: impl Fn(&ModelRequest) -> ScriptedReply + Send + Sync + 'static) -> ScriptedModel {
    ScriptedModel::respond(move |request| {
        assert_paired(request);
        let asked = asked(request);
        match request.messages.last() {
            Some(Message::Results(_)) => then(request),
            _ if asked.starts_with("You made the same") => then(request),
            _ if asked.contains("pay") => ScriptedReply::call("1", "pay", json!({"city": asked})),
            _ => ScriptedReply::text(format!("re: {asked}")),
        }
    })
}

/// The notes on ends in an exchange.
fn ends(exchange: &SessionExchange) -> Vec<String> {
    let notes = exchange.entries.iter().filter_map(|entry| match entry {
        Entry::Note(note) if note.about == NoteKind::Ended => Some(note.text.to_string()),
        _ => None,
    });
    notes.collect()
}

/// Everything that a request tells the model.
fn told(request: &ModelRequest) -> String {
    request.messages.iter().map(|message| message.text().into_owned() + "\n").collect()
}

fn builder(model: &ScriptedModel, paid: &Calls) -> AgentBuilder {
    Agent::builder("a").model(model.clone()).tool(pay(paid)).tool(look())
}

/// A4, A5, A13, A40, A54, A55
#[test]
fn a_run_that_acted_leaves_its_calls_and_how_it_ended_however_it_stopped() {
    type Make = fn(AgentBuilder) -> AgentBuilder;
    type Then = fn() -> ScriptedReply;
    let again: Then = || ScriptedReply::call("x", "pay", json!({"city": "again"}));
    let cases: [(&str, Then, Make); 6] = [
        ("no such key", || ScriptedReply::fail(ModelError::permanent("no such key")), |agent| agent),
        ("a person must look", || ScriptedReply::text("give up"), |agent| agent.judge(Escalates)),
        ("refused", || ScriptedReply::text("no").finish(Finish::Refusal), |agent| agent),
        ("in 3 turns running", again, |agent| agent.repeats(Some(3))),
        ("does not fit its schema", || ScriptedReply::text("give up"), |agent| agent),
        ("is empty", || ScriptedReply::text(""), |agent| agent),
    ];
    for (end, then, make) in cases {
        let (model, paid) = (paying(move |_| then()), Calls::default());
        let agent = make(builder(&model, &paid)).build().unwrap();
        life(async {
            let session = session(&Disk::default().healthy().engine(&agent), &agent);
            let prompt = Prompt::new("pay rent");
            let schema = json!({"type": "object", "required": ["sum"]});
            let prompt = if end.contains("schema") { prompt.output(schema) } else { prompt };
            let outcome = session.say(prompt).await.unwrap().outcome().await.unwrap();
            assert!(matches!(outcome, Outcome::Stopped(_)), "{end}: {outcome:?}");
            assert!(paid.len() >= 1, "{end}");
            let exchanges = session.exchanges(0, 10).await.unwrap();
            let [left] = &exchanges[..] else { panic!("{end}: {exchanges:?}") };
            let [note] = &ends(left)[..] else { panic!("{end}: {left:?}") };
            assert!(note.contains(end), "{end}: {note}");
            say(&session, "next").await;
            let told = told(&model.requests().pop().unwrap());
            assert!(told.contains("paid pay rent") && told.contains(end), "{end}: {told}");
        });
    }
}

/// A9, A40
#[test]
fn a_run_in_which_nothing_acted_leaves_nothing() {
    let model = ScriptedModel::respond(|request| match request.messages.last() {
        Some(Message::Results(_)) => ScriptedReply::fail(ModelError::permanent("no such key")),
        _ => ScriptedReply::call("1", "look", json!({"at": "sea"})),
    });
    let agent = builder(&model, &Calls::default()).build().unwrap();
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        say(&session, "look").await;
        assert!(questions(&session).await.is_empty());
    });
}

/// Two calls, of which the second waits for a person.
fn two_payments(request: &ModelRequest) -> ScriptedReply {
    let asked = asked(request);
    match request.messages.last() {
        Some(Message::Results(_)) => ScriptedReply::text("done"),
        _ if asked.contains("pay") => ScriptedReply::call("1", "pay", json!({"city": "rent"})).and_call(
            "2",
            "pay",
            json!({"city": "power"}),
        ),
        _ => ScriptedReply::text(format!("re: {asked}")),
    }
}

/// An agent whose second payment waits for a person.
fn careful(model: &ScriptedModel, paid: &Calls) -> Agent {
    let power = Approval::when(|arguments| arguments["city"] == "power");
    Agent::builder("a").model(model.clone()).tool(pay(paid).approval(power)).build().unwrap()
}

/// Says something, and waits until its first call is made and its second one waits.
async fn pays_and_waits(session: &Session, paid: &Calls) -> AgentRun {
    let run = session.say("pay").await.unwrap();
    while paid.len() == 0 || run.approvals().await.unwrap().is_empty() {
        moment().await;
    }
    for _ in 0..20 {
        moment().await;
    }
    run
}

/// A6, A40
#[test]
fn a_run_that_paid_and_was_cancelled_leaves_what_it_did_with_and_without_a_store() {
    for has_store in [false, true] {
        let (model, paid) = (ScriptedModel::respond(two_payments), Calls::default());
        let agent = careful(&model, &paid);
        life(async {
            let engine = if has_store {
                Disk::default().healthy().engine(&agent)
            } else {
                Engine::builder().agent(agent.clone()).build().unwrap()
            };
            let session = session(&engine, &agent);
            let run = pays_and_waits(&session, &paid).await;
            run.cancel("too dear").await.unwrap();
            assert!(run.outcome().await.is_err());
            drop(run);
            let exchanges = session.exchanges(0, 10).await.unwrap();
            let [left] = &exchanges[..] else { panic!("{exchanges:?}") };
            assert!(ends(left)[0].contains("too dear"), "{left:?}");
            say(&session, "next").await;
            let request = model.requests().pop().unwrap();
            assert_paired(&request);
            let told = told(&request);
            assert!(told.contains("paid rent") && told.contains("this call was not run"), "{told}");
            assert_eq!(questions(&session).await, ["pay", "next"]);
            let copy = session.fork("copy").await.unwrap();
            assert_eq!(questions(&copy).await, ["pay", "next"]);
            assert_eq!(paid.all(), ["rent"]);
        });
    }
}

/// A15, A40
#[test]
fn a_call_that_was_under_way_when_its_run_was_cancelled_may_have_happened() {
    let model = paying(|_| ScriptedReply::text("done"));
    let hangs = FnTool::new("pay", "Pays.", |_: City, _| std::future::pending::<Result<String, ToolError>>());
    let agent = Agent::builder("a").model(model.clone()).tool(hangs).build().unwrap();
    life(async {
        let engine = Engine::builder().agent(agent.clone()).build().unwrap();
        let session = session(&engine, &agent);
        let mut run = session.say("pay").await.unwrap();
        while !matches!(run.next().await, Some(Shown::ToolUse(_))) {}
        for _ in 0..20 {
            moment().await;
        }
        run.cancel("not now").await.unwrap();
        assert!(run.outcome().await.is_err());
        say(&session, "next").await;
        let told = told(&model.requests().pop().unwrap());
        assert!(told.contains("may have happened") && told.contains("not now"), "{told}");
    });
}

/// A40
#[test]
fn a_run_that_timed_out_leaves_what_it_did() {
    let (model, paid) =
        (paying(|_| ScriptedReply::text("late").after(Duration::from_secs(40))), Calls::default());
    let agent = builder(&model, &paid).build().unwrap();
    life(async {
        let engine = Disk::default().healthy().builder().agent(agent.clone());
        let engine = engine.run_timeout(Duration::from_secs(30));
        let session = session(&engine.build().unwrap(), &agent);
        assert!(session.say("pay").await.unwrap().outcome().await.is_err());
        let exchanges = session.exchanges(0, 10).await.unwrap();
        assert!(exchanges.len() == 1 && ends(&exchanges[0])[0].contains("30s"), "{exchanges:?}");
    });
}

/// A40
#[test]
fn a_cancelled_run_that_is_redriven_replaces_what_it_left() {
    let (model, paid) = (ScriptedModel::respond(two_payments), Calls::default());
    let agent = careful(&model, &paid);
    life(async {
        let engine = Disk::default().healthy().engine(&agent);
        let session = session(&engine, &agent);
        let run = pays_and_waits(&session, &paid).await;
        run.cancel("too dear").await.unwrap();
        assert!(run.outcome().await.is_err());
        let id = run.id().clone();
        let refused = engine.redrive::<Agent>(id.clone()).await.unwrap_err();
        assert!(matches!(refused, RedriveError::CleanedUp { .. }), "{refused}");
        let again = Redrive::new().despite_clean_up();
        engine.redrive_with::<Agent>(id.clone(), again).await.unwrap();
        let run = AgentRun::attach(&engine, &agent, id).await.unwrap();
        let approval = loop {
            match run.approvals().await.unwrap().pop() {
                Some(approval) => break approval,
                None => moment().await,
            }
        };
        approval.approve().await.unwrap();
        assert_eq!(run.outcome().await.unwrap().text(), "done");
        let exchanges = session.exchanges(0, 10).await.unwrap();
        assert!(exchanges.len() == 1 && ends(&exchanges[0]).is_empty(), "{exchanges:?}");
        assert_eq!(paid.all(), ["rent", "power"]);
    });
}

/// A40, A42
#[test]
fn a_session_over_five_runs_of_which_two_fail_knows_what_each_did() {
    let model = paying(|request| match &*asked(request) {
        "pay two" | "pay four" => ScriptedReply::fail(ModelError::permanent("no such key")),
        asked => ScriptedReply::text(format!("paid for {asked}")),
    });
    let paid = Calls::default();
    let agent = builder(&model, &paid).build().unwrap();
    let messages = ["pay one", "pay two", "three", "pay four", "pay five"];
    let disk = Disk::default();
    for message in messages {
        // Each in a process of its own.
        life(async { say(&session(&disk.healthy().engine(&agent), &agent), message).await });
    }
    life(async {
        let session = session(&disk.healthy().engine(&agent), &agent);
        assert_eq!(questions(&session).await, messages);
        let exchanges = session.exchanges(0, 10).await.unwrap();
        let ended: Vec<_> = exchanges.iter().map(|exchange| ends(exchange).len()).collect();
        assert_eq!(ended, [0, 1, 0, 1, 0]);
        say(&session, "what was paid?").await;
        let told = told(&model.requests().pop().unwrap());
        for paid in ["pay one", "pay two", "pay four", "pay five"] {
            assert_eq!(told.matches(&format!("paid {paid}\n")).count(), 1, "{paid}: {told}");
        }
        assert_eq!(paid.all(), ["pay one", "pay two", "pay four", "pay five"]);
    });
}

/// A40
#[test]
fn what_a_failed_run_did_is_left_once_wherever_its_process_ends() {
    for lost in [Lost::Operation, Lost::Answer] {
        for at in 0.. {
            let model = paying(|_| ScriptedReply::fail(ModelError::permanent("no such key")));
            let (disk, paid) = (Disk::default(), Calls::default());
            let agent = builder(&model, &paid).build().unwrap();
            let process = disk.process(Fails::From(at, lost));
            life(async {
                if let Ok(run) = session(&process.engine(&agent), &agent).say("pay").await {
                    drop(run.outcome().await);
                }
            });
            life(async {
                let session = session(&disk.healthy().engine(&agent), &agent);
                if let Some(run) = session.open_run().await.unwrap() {
                    run.outcome().await.unwrap();
                }
                // A call that may have begun counts as well.
                let mut expected = questions(&session).await;
                assert!(expected == ["pay"] || expected.is_empty() && paid.len() == 0, "{lost:?} {at}");
                say(&session, "next").await;
                expected.push("next".to_owned());
                assert_eq!(questions(&session).await, expected, "{lost:?} {at}");
            });
            if !process.has_failed() {
                assert!(at > 12, "{at} operations");
                break;
            }
        }
    }
}

/// A40
#[test]
fn what_a_cancelled_run_did_is_left_once_wherever_its_process_ends() {
    for lost in [Lost::Operation, Lost::Answer] {
        for at in 0.. {
            let (model, paid) = (ScriptedModel::respond(two_payments), Calls::default());
            let (disk, agent) = (Disk::default(), careful(&model, &paid));
            life(async {
                let run = pays_and_waits(&session(&disk.healthy().engine(&agent), &agent), &paid).await;
                drop(run);
            });
            let process = disk.process(Fails::From(at, lost));
            life(async {
                let session = session(&process.engine(&agent), &agent);
                if let Ok(Some(run)) = session.open_run().await {
                    drop(run.cancel("too dear").await);
                    drop(run.outcome().await);
                }
            });
            life(async {
                let session = session(&disk.healthy().engine(&agent), &agent);
                if let Some(run) = session.open_run().await.unwrap() {
                    drop(run.cancel("too dear").await);
                    drop(run.outcome().await);
                }
                assert_eq!(questions(&session).await, ["pay"], "{lost:?} {at}");
                say(&session, "next").await;
                assert_eq!(questions(&session).await, ["pay", "next"], "{lost:?} {at}");
            });
            if !process.has_failed() {
                assert!(at > 4, "{at} operations");
                break;
            }
        }
    }
}
