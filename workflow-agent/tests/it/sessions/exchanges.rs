//! Which runs add their exchange, and what an exchange has.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use workflow_agent::judge::{Candidate, Judge, Judgement, Verdict};
use workflow_agent::memory::{Episode, Memory, Question, Recalled};
use workflow_agent::model::{Finish, ModelError};
use workflow_agent::{Budget, Prompt};
use workflow_core::errors::ContextError;
use workflow_core::{StepError, ThreadContext};

use super::*;
use crate::lives::{Disk, life, moment};

/// A40
#[test]
fn answers_and_limits_add_an_exchange_and_other_ends_add_none() {
    struct Escalates;
    impl Judge for Escalates {
        fn judge<'a>(&'a self, _: &'a Candidate) -> BoxFuture<'a, Result<Judgement, StepError>> {
            async { Ok(Verdict::Escalate("a person must look".into()).into()) }.boxed()
        }
    }
    let call = || ScriptedReply::call("1", "look", json!({"at": "sea"}));
    let model = |reply: ScriptedReply| ScriptedModel::new([reply]);
    let builder = |reply| Agent::builder("a").model(model(reply)).tool(look());
    let permanent = ScriptedReply::fail(ModelError::permanent("no such key"));
    let cases = [
        ("answered", builder(ScriptedReply::text("yes")).build(), true),
        ("turns", builder(call()).max_turns(1).build(), true),
        ("output", builder(ScriptedReply::text("ye").finish(Finish::Length)).build(), true),
        ("budget", builder(call()).budget(Budget::unlimited().tool_calls(0)).build(), true),
        ("refused", builder(ScriptedReply::text("no").finish(Finish::Refusal)).build(), false),
        ("failed", builder(permanent).build(), false),
        ("escalated", builder(ScriptedReply::text("yes")).judge(Escalates).build(), false),
    ];
    for (end, agent, adds) in cases {
        let agent = agent.unwrap();
        life(async {
            let session = session(&Disk::default().healthy().engine(&agent), &agent);
            say(&session, "go").await;
            assert_eq!(questions(&session).await.len(), usize::from(adds), "{end}");
        });
    }
}

/// A40
#[test]
fn a_cancelled_run_leaves_nothing_and_one_that_is_redriven_at_once_adds_its_exchange() {
    for later in [false, true] {
        let (disk, agent) = (Disk::default(), remembering(&echo()));
        life(async {
            let engine = disk.healthy().engine(&agent);
            let session = session(&engine, &agent);
            let run = session.say("look").await.unwrap();
            while run.approvals().await.unwrap().is_empty() {
                moment().await;
            }
            run.cancel("not now").await.unwrap();
            assert!(run.outcome().await.is_err());
            assert!(questions(&session).await.is_empty());
            if later {
                say(&session, "later").await;
            }
            let redriven = engine.redrive::<Agent>(run.id().clone()).await.unwrap();
            let run = workflow_agent::AgentRun::attach(&engine, &agent, redriven.id().clone()).await.unwrap();
            let approval = loop {
                match run.approvals().await.unwrap().pop() {
                    Some(approval) => break approval,
                    None => moment().await,
                }
            };
            approval.approve().await.unwrap();
            assert_eq!(run.outcome().await.unwrap().text(), "re: look");
            let expected: &[&str] = if later { &["later"] } else { &["look"] };
            let prefix = "agent/memory/episode/";
            let remembered = engine.thread_context("ada").list(Some(prefix), 100).await.unwrap();
            let episodes = remembered.iter().filter(|(key, _)| key.starts_with(prefix)).count();
            assert_eq!(episodes, 1, "memory knows as many as the session knows");
            assert_eq!(questions(&session).await, expected);
            say(&session, "last").await;
            let seen = questions(&session).await;
            assert_eq!(seen, [expected, &["last"]].concat());
        });
    }
}

/// The memory is written first, because nothing may fail once the session has changed.
///
/// A40
#[test]
fn a_run_whose_memory_fails_adds_no_exchange() {
    struct Broken;
    impl Memory for Broken {
        fn recall<'a>(
            &'a self,
            _: &'a Question,
            _: &'a ThreadContext,
        ) -> BoxFuture<'a, Result<Vec<Recalled>, ContextError>> {
            async { Ok(Vec::new()) }.boxed()
        }

        fn remember<'a>(
            &'a self,
            _: &'a Episode,
            _: &'a ThreadContext,
        ) -> BoxFuture<'a, Result<(), ContextError>> {
            async { panic!("the disk is full") }.boxed()
        }
    }
    let agent = Agent::builder("a").model(echo()).memory(Broken).build().unwrap();
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        let Outcome::Stopped(stopped) = say(&session, "go").await else { panic!("it answered") };
        assert!(stopped.reason.to_string().contains("the disk is full"), "{}", stopped.reason);
        assert!(questions(&session).await.is_empty());
    });
}

/// A40
#[test]
fn exchanges_never_change_and_name_their_runs() {
    let agent = agent(&echo());
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        let run = session.say("look").await.unwrap();
        run.outcome().await.unwrap();
        let first = session.exchanges(0, 1).await.unwrap().remove(0);
        assert_eq!(
            (first.number, &first.run, &*first.question(), &*first.answer()),
            (1, run.id(), "look", "re: look")
        );
        for n in 0..3 {
            say(&session, &format!("q{n}")).await;
        }
        assert_eq!(session.exchanges(0, 1).await.unwrap(), [first]);
        let pages: Vec<u64> =
            session.exchanges(2, 10).await.unwrap().iter().map(|exchange| exchange.number).collect();
        assert_eq!(pages, [3, 4]);
        assert_eq!(session.exchanges(0, 2).await.unwrap().len(), 2);
    });
}

/// A40
#[test]
fn runs_log_the_range_of_their_history_and_no_copies() {
    let (disk, agent) = (Disk::default(), agent(&echo()));
    life(async {
        let engine = disk.healthy().engine(&agent);
        let session = session(&engine, &agent);
        let marks: Vec<String> = (0..20).map(|n| format!("unusual-{n}")).collect();
        for mark in &marks {
            say(&session, mark).await;
        }
        let run = session.say("last").await.unwrap();
        run.outcome().await.unwrap();
        let journal = serde_json::to_string(&engine.history(run.id()).await.unwrap()).unwrap();
        assert!(!marks.iter().any(|mark| journal.contains(&**mark)), "{journal}");
        assert!(journal.contains(r#"\"from\":1,"#) || journal.contains(r#""from":1,"#), "{journal}");
    });
}

/// A40, A55
#[test]
fn the_answer_of_an_exchange_is_the_data_where_there_is_no_text() {
    let replies =
        [ScriptedReply::text("Bern."), ScriptedReply::call("1", "final_answer", json!({"celsius": 21}))];
    let agent = Agent::builder("a").model(ScriptedModel::new(replies)).build().unwrap();
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        say(&session, "the capital?").await;
        let prompt = Prompt::new("warm?").output(json!({"type": "object"}));
        session.say(prompt).await.unwrap().outcome().await.unwrap();
        assert_eq!(session.exchanges(1, 1).await.unwrap()[0].answer(), r#"{"celsius":21}"#);
    });
}

/// A40, A51
#[test]
fn the_message_belongs_to_the_exchange_also_where_a_phase_did_not_see_it() {
    let agent =
        Agent::builder("a").model(echo()).phase(Phase::new("one")).phase(Phase::new("two").isolated());
    let agent = agent.build().unwrap();
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        say(&session, "go").await;
        assert_eq!(questions(&session).await, ["go"]);
    });
}

/// A18, A40
#[test]
fn secrets_are_in_no_exchange_and_in_no_message_that_steers() {
    let model = ScriptedModel::respond(|request| match request.messages.len() {
        1 => ScriptedReply::call("1", "look", json!({"at": "hunter2hunter2"})),
        _ => ScriptedReply::text("It is hunter2hunter2."),
    });
    let secret = workflow_agent::Secret::new("door", "hunter2hunter2");
    let agent = Agent::builder("a")
        .model(model)
        .tool(look().approval(Approval::Always))
        .secret(secret)
        .build()
        .unwrap();
    let disk = Disk::default();
    life(async {
        let engine = disk.healthy().engine(&agent);
        let session = session(&engine, &agent);
        let run = session.say("the code is hunter2hunter2").await.unwrap();
        while run.approvals().await.unwrap().is_empty() {
            moment().await;
        }
        run.steer("hunter2hunter2 again").await.unwrap();
        run.approvals().await.unwrap()[0].approve().await.unwrap();
        run.outcome().await.unwrap();
        let journal = serde_json::to_string(&engine.history(run.id()).await.unwrap()).unwrap();
        let exchanges =
            serde_json::to_string(&session.exchanges(0, 9).await.unwrap()[0].entries.to_vec()).unwrap();
        for text in [journal, exchanges] {
            assert!(text.contains("[secret door]") && !text.contains("hunter2"), "{text}");
        }
    });
}

/// A60
#[test]
fn a_session_refuses_a_limit_of_cost_without_a_price() {
    let agent = Agent::builder("a").model(echo().limits(window(1_000))).build().unwrap();
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        let prompt = Prompt::new("go").budget(Budget::unlimited().cost(1.0));
        let refused = session.say(prompt).await.unwrap_err();
        assert!(matches!(refused, workflow_agent::SessionError::Prompt(_)), "{refused:?}");
    });
}

/// A40
#[test]
fn a_run_whose_outcome_is_larger_than_events_may_be_adds_no_exchange() {
    let agent = agent(&echo());
    life(async {
        let engine = Disk::default().healthy().builder().max_event_bytes(4_000).agent(agent.clone());
        let session = session(&engine.build().unwrap(), &agent);
        let mut answered = Vec::new();
        let mut failed = 0;
        for n in 0..8 {
            let text = format!("q{n} {}", "z".repeat(300));
            let run = session.say(Prompt::new(&*text).return_conversation()).await.unwrap();
            match run.outcome().await.unwrap() {
                Outcome::Answered(_) => answered.push(text),
                Outcome::Stopped(stopped) => {
                    assert!(stopped.reason.to_string().contains("max_event_bytes"), "{}", stopped.reason);
                    failed += 1;
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(questions(&session).await, answered);
        }
        assert!(failed > 0 && answered.len() > 1, "{failed} failed, {} answered", answered.len());
        // Without the conversation, the session goes on.
        assert_eq!(say(&session, "last").await.text(), "re: last");
        assert_eq!(questions(&session).await.len(), answered.len() + 1);
    });
}
