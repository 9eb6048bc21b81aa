//! Ends of a process at every append and every operation on contexts: the exchange is in its session exactly once.

use workflow_agent::model::{Finish, ModelReply, Part, Usage};

use super::*;
use crate::lives::{Disk, Fails, Lost, life};
use crate::pairing;

const LOST: [Lost; 2] = [Lost::Operation, Lost::Answer];

/// Continues as a client does that does not know how far its message came, and says it again if it is nowhere.
async fn recover(session: &Session, question: &str) {
    if let Some(run) = session.open_run().await.unwrap() {
        run.outcome().await.unwrap();
    }
    if !questions(session).await.iter().any(|asked| asked == question) {
        say(session, question).await;
    }
}

/// Ends a process at each of its operations, and checks the session that the next one finds.
fn is_added_once(make: impl Fn(ScriptedModel) -> Agent, model: impl Fn() -> ScriptedModel) {
    for lost in LOST {
        for at in 0.. {
            let (disk, model) = (Disk::default(), model());
            let agent = make(model.clone());
            life(async { say(&session(&disk_engine(&disk, &agent), &agent), "before").await });
            let before = model.requests().len();
            let process = disk.process(Fails::From(at, lost));
            life(async {
                if let Ok(run) = session(&process.engine(&agent), &agent).say("look 2").await {
                    drop(run.outcome().await);
                }
            });
            life(async {
                let session = session(&disk_engine(&disk, &agent), &agent);
                recover(&session, "look 2").await;
                assert_eq!(questions(&session).await, ["before", "look 2"], "{lost:?} {at}");
                let requests = model.requests();
                for pair in requests[before..].windows(2) {
                    pairing::check(&pair[1]).unwrap();
                    pairing::continues(&pair[0], &pair[1])
                        .unwrap_or_else(|why| panic!("{lost:?} {at}: {why}"));
                }
                say(&session, "after").await;
                assert_eq!(questions(&session).await, ["before", "look 2", "after"], "{lost:?} {at}");
                let last = model.requests().pop().unwrap();
                pairing::check(&last).unwrap();
                let own = last.messages.iter().filter(|message| matches!(message, Message::User { .. }));
                let texts: Vec<_> = own.map(|message| message.text().into_owned()).collect();
                assert_eq!(texts.iter().filter(|text| text.contains("look 2")).count(), 1, "{texts:?}");
            });
            if !process.has_failed() {
                assert!(at > 12, "{at} operations");
                break;
            }
        }
    }
}

fn disk_engine(disk: &Disk, agent: &Agent) -> Engine {
    disk.healthy().engine(agent)
}

/// A40, A7
#[test]
fn the_exchange_of_an_answered_run_is_added_once_wherever_its_process_ends() {
    is_added_once(|model| agent(&model), echo);
}

/// A40, A3
#[test]
fn the_exchange_of_a_run_that_reached_its_turns_is_added_once_wherever_its_process_ends() {
    let make = |model| Agent::builder("a").model(model).tool(look()).max_turns(1).build().unwrap();
    is_added_once(make, echo);
}

/// A40, A60
#[test]
fn the_exchange_of_a_run_that_used_its_budget_is_added_once_wherever_its_process_ends() {
    let make = |model| {
        let budget = workflow_agent::Budget::unlimited().tool_calls(0);
        Agent::builder("a").model(model).tool(look()).budget(budget).build().unwrap()
    };
    is_added_once(make, echo);
}

/// A40, A4
#[test]
fn the_exchange_of_a_run_that_reached_its_output_limit_is_added_once_wherever_its_process_ends() {
    let cut = || {
        ScriptedModel::respond(|request| {
            let asked = asked(request);
            if asked.contains("look") {
                ScriptedReply::text(format!("re: {asked}")).finish(Finish::Length).usage(Usage::new(9, 9))
            } else {
                ScriptedReply::text("yes")
            }
        })
    };
    for lost in LOST {
        // Fewer operations than with a call in between.
        for at in 0..12 {
            let (disk, agent) = (Disk::default(), agent(&cut()));
            let process = disk.process(Fails::From(at, lost));
            life(async {
                if let Ok(run) = session(&process.engine(&agent), &agent).say("look").await {
                    drop(run.outcome().await);
                }
            });
            life(async {
                let session = session(&disk_engine(&disk, &agent), &agent);
                recover(&session, "look").await;
                assert_eq!(questions(&session).await, ["look"], "{lost:?} {at}");
            });
        }
    }
}

/// A40
#[test]
fn the_exchange_is_added_once_when_a_single_operation_on_contexts_fails() {
    for lost in LOST {
        for at in 0.. {
            let (disk, model) = (Disk::default(), echo());
            let agent = agent(&model);
            let process = disk.process(Fails::Context(at, lost));
            life(async {
                let session = session(&process.engine(&agent), &agent);
                let said =
                    async { session.say("look").await?.outcome().await.map_err(|error| panic!("{error}")) };
                let said: Result<Outcome, workflow_agent::SessionError> = said.await;
                if !process.has_failed() {
                    return;
                }
                match said {
                    Ok(outcome) => assert_eq!(outcome.text(), "re: look", "{lost:?} {at}"),
                    Err(_) => recover(&session, "look").await,
                }
                assert_eq!(questions(&session).await, ["look"], "{lost:?} {at}");
            });
            if !process.has_failed() {
                assert!(at > 6, "{at} operations");
                break;
            }
        }
    }
}

/// A40
#[test]
fn a_fork_whose_process_ended_can_be_repeated() {
    for lost in LOST {
        for at in 0.. {
            let (disk, agent) = (Disk::default(), agent(&echo()));
            life(async {
                let session = session(&disk_engine(&disk, &agent), &agent);
                for n in 0..7 {
                    say(&session, &format!("q{n}")).await;
                }
            });
            let process = disk.process(Fails::From(at, lost));
            let forked = life(async { session(&process.engine(&agent), &agent).fork("copy").await.is_ok() });
            life(async {
                let original = session(&disk_engine(&disk, &agent), &agent);
                let copy = match (forked, original.fork("copy").await) {
                    (false, Ok(copy)) => copy,
                    // The answer was lost, or it had been forked.
                    (_, Err(workflow_agent::SessionError::Exists { .. })) => original.clone().id("copy"),
                    other => panic!("{lost:?} {at}: {other:?}"),
                };
                assert_eq!(questions(&copy).await, questions(&original).await);
                assert_eq!(say(&copy, "next").await.text(), "re: next");
                assert_eq!(questions(&copy).await.len(), 8);
                assert_eq!(questions(&original).await.len(), 7);
            });
            if !process.has_failed() {
                assert!(at > 8, "{at} operations");
                break;
            }
        }
    }
}

/// A40
#[test]
fn a_run_whose_exchange_is_gone_fails_and_names_it() {
    let (disk, model) = (Disk::default(), echo());
    let agent = asking(&model);
    life(async {
        let session = session(&disk_engine(&disk, &agent), &agent);
        say(&session, "one").await;
        say(&session, "two").await;
        let mut run = session.say("look").await.unwrap();
        while let Some(shown) = run.next().await {
            if matches!(shown, Shown::Approval(_)) {
                break;
            }
        }
    });
    life(async {
        let engine = disk_engine(&disk, &agent);
        let context = engine.thread_context("ada");
        context.remove("agent/session/a.s/x/000000000002").await.unwrap();
        // As in a process that has not read the history yet.
        let head = "agent/session/a.s/head";
        let mut value: serde_json::Value = context.get(head).await.unwrap().unwrap();
        value["nonce"] = json!("another");
        context.set(head, value).await.unwrap();
        let run = session(&engine, &agent).open_run().await.unwrap().unwrap();
        let approval = run.approvals().await.unwrap().pop().unwrap();
        approval.approve().await.unwrap();
        let Outcome::Stopped(stopped) = run.outcome().await.unwrap() else { panic!("it answered") };
        let StopReason::Failed { error, .. } = &stopped.reason else { panic!("{stopped:?}") };
        assert!(error.contains("lacks exchange 2 of session `a.s`"), "{error}");
        assert_eq!(questions(&session(&engine, &agent)).await, ["one"]);
    });
}

/// A reply of nothing but a thought does not become an empty message of later runs.
///
/// A6
#[test]
fn a_reply_without_text_leaves_no_empty_message() {
    let thought = ModelReply::new(vec![Part::Thought { text: "hm".into(), signature: None }], Finish::Length);
    let model = ScriptedModel::new([ScriptedReply::reply(thought), ScriptedReply::text("yes")]);
    let agent = agent(&model);
    life(async {
        let session = session(&disk_engine(&Disk::default(), &agent), &agent);
        assert!(matches!(say(&session, "one").await, Outcome::Stopped(_)));
        say(&session, "two").await;
        let request = model.requests().pop().unwrap();
        pairing::check(&request).unwrap();
        assert_eq!(request.messages.len(), 2);
    });
}

/// A call that a person has to approve survives restarts with its run.
///
/// A41, A24
#[test]
fn a_waiting_run_of_a_session_is_found_after_a_restart() {
    let (disk, model) = (Disk::default(), echo());
    let agent = asking(&model);
    let id = life(async {
        let session = session(&disk_engine(&disk, &agent), &agent);
        let mut run = session.say("look").await.unwrap();
        while let Some(shown) = run.next().await {
            if matches!(shown, Shown::Approval(_)) {
                break;
            }
        }
        run.id().clone()
    });
    life(async {
        let session = session(&disk_engine(&disk, &agent), &agent);
        let mut run = session.open_run().await.unwrap().expect("it waits");
        assert_eq!(*run.id(), id);
        let mut approvals = 0;
        while let Some(shown) = run.next().await {
            if let Shown::Approval(approval) = shown {
                approvals += 1;
                approval.approve().await.unwrap();
            }
        }
        assert_eq!(approvals, 1);
        assert_eq!(run.outcome().await.unwrap().text(), "re: look");
        assert!(session.open_run().await.unwrap().is_none());
    });
}

/// Nothing is done behind the entry of the exchange, so a process that ends there has begun the extraction.
///
/// A40, A44
#[test]
fn the_extraction_of_an_exchange_has_begun_when_that_is_in_its_session() {
    use workflow_core::store::RunQuery;
    for at in 0.. {
        let (disk, agent) = (Disk::default(), echo());
        let agent = Agent::builder("a").model(agent).memory(workflow_agent::memory::EpisodicMemory::new());
        let agent = agent.entities().build().unwrap();
        let process = disk.process(Fails::From(at, Lost::Operation));
        life(async {
            if let Ok(run) = session(&process.engine(&agent), &agent).say("go").await {
                drop(run.outcome().await);
            }
        });
        life(async {
            let engine = disk_engine(&disk, &agent);
            let runs = engine.runs(&RunQuery::new().workflow("a.entities")).await.unwrap();
            let entered = questions(&session(&engine, &agent)).await.len();
            assert!(runs.len() >= entered, "{at}: {entered} exchanges, {} extractions", runs.len());
        });
        if !process.has_failed() {
            assert!(at > 12, "{at} operations");
            break;
        }
    }
}
