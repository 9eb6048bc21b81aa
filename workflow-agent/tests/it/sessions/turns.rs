//! One run of a session at a time: numbers, the order of messages, and messages that steer.

use std::time::Duration;

use futures::future::join_all;
use workflow_agent::{Prompt, SessionError, WhenBusy};

use super::*;
use crate::lives::{Disk, life, moment};
use crate::pairing;

/// A run that waits for an approval.
async fn busy(session: &Session) -> AgentRun {
    let run = session.say("look").await.unwrap();
    while run.approvals().await.unwrap().is_empty() {
        moment().await;
    }
    run
}

async fn approve(run: &AgentRun) {
    run.approvals().await.unwrap()[0].approve().await.unwrap();
}

/// A41
#[test]
fn run_ids_end_with_the_number_of_the_session() {
    let agent = agent(&echo());
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        for number in 1..4 {
            let run = session.say("go").await.unwrap();
            assert_eq!(run.id().to_string(), format!("ada.a.s.{number}"));
            run.outcome().await.unwrap();
        }
    });
}

/// A41
#[test]
fn messages_of_a_process_wait_and_are_answered_in_order() {
    let (model, agent) = {
        let model = echo();
        (model.clone(), asking(&model))
    };
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        let first = busy(&session).await;
        let says = (0..20).map(|n| {
            let session = session.clone();
            async move { say(&session, &format!("q{n}")).await.text().to_owned() }
        });
        let (answers, ()) = tokio::join!(join_all(says), approve(&first));
        let expected: Vec<String> = (0..20).map(|n| format!("q{n}")).collect();
        assert_eq!(answers, expected.iter().map(|asked| format!("re: {asked}")).collect::<Vec<_>>());
        assert_eq!(questions(&session).await[1..], expected[..]);
        let lengths: Vec<usize> =
            model.requests()[2..].iter().map(|request| request.messages.len()).collect();
        assert_eq!(lengths, (0..20).map(|n| 5 + 2 * n).collect::<Vec<_>>());
    });
}

/// A41
#[test]
fn the_sixty_fifth_waiting_message_is_refused() {
    let agent = asking(&echo());
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        let run = busy(&session).await;
        let mut waiting: Vec<_> = (0..64).map(|_| Box::pin(session.say("wait"))).collect();
        for message in &mut waiting {
            assert!(futures::poll!(message).is_pending());
        }
        let refused = session.say("one more").await.unwrap_err();
        assert!(matches!(refused, SessionError::Busy { .. }), "{refused:?}");
        // A message that steers does not wait, and one that gave up leaves its place.
        session.clone().when_busy(WhenBusy::Steer).say("hurry").await.unwrap();
        drop(waiting.pop());
        let mut late = Box::pin(session.say("late"));
        assert!(futures::poll!(&mut late).is_pending());
        waiting.push(late);
        approve(&run).await;
        let runs = join_all(waiting).await;
        for run in runs {
            run.unwrap().outcome().await.unwrap();
        }
        assert_eq!(questions(&session).await.len(), 65);
    });
}

/// A41
#[test]
fn a_session_that_refuses_is_busy_until_its_run_has_ended() {
    let agent = asking(&echo());
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent).when_busy(WhenBusy::Refuse);
        let run = busy(&session).await;
        assert!(matches!(session.say("no").await, Err(SessionError::Busy { .. })));
        approve(&run).await;
        run.outcome().await.unwrap();
        assert_eq!(say(&session, "yes").await.text(), "re: yes");
    });
}

/// A41, A19
#[test]
fn a_message_that_steers_is_seen_by_the_next_model_call() {
    let model = echo();
    let agent = asking(&model);
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent).when_busy(WhenBusy::Steer);
        let run = busy(&session).await;
        // A message that waits does not hold up one that steers.
        let waits = session.clone().when_busy(WhenBusy::Wait);
        let mut waits = Box::pin(waits.say("later"));
        assert!(futures::poll!(&mut waits).is_pending());
        let steered = session.say("in blue </data>").await.unwrap();
        assert_eq!(steered.id(), run.id());
        approve(&run).await;
        run.outcome().await.unwrap();
        let request = model.requests().remove(1);
        pairing::check(&request).unwrap();
        let last = request.messages.last().unwrap().text().into_owned();
        assert_eq!(last, "<data source=\"message of the user\">\nin blue &lt;/data>\n</data>");
        assert!(run.unheard().await.unwrap().is_empty());
        waits.await.unwrap().outcome().await.unwrap();
        // Nothing runs now, so the message starts a run.
        assert_ne!(session.say("and now").await.unwrap().id(), run.id());
    });
}

/// A41
#[test]
fn a_message_with_images_waits_instead_of_losing_them() {
    let model = echo();
    let agent = asking(&model);
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent).when_busy(WhenBusy::Steer);
        let run = busy(&session).await;
        let image = workflow_agent::model::Image::Url("https://example.com/a.png".into());
        let mut seen = Box::pin(session.say(Prompt::new("see").image(image)));
        assert!(futures::poll!(&mut seen).is_pending());
        approve(&run).await;
        seen.await.unwrap().outcome().await.unwrap();
        let request = model.requests().pop().unwrap();
        assert!(matches!(request.messages.last(), Some(Message::User { images, .. }) if images.len() == 1));
    });
}

/// A41
#[test]
fn a_message_that_no_call_saw_is_unheard() {
    let slow = Duration::from_secs(10);
    let model = ScriptedModel::respond(move |request| match request.messages.len() {
        1 => ScriptedReply::call("c", "look", json!({"at": "sea"})).after(slow),
        _ => ScriptedReply::text("done").after(slow),
    });
    let agent = agent(&model);
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        let run = session.say("go").await.unwrap();
        for n in 0..2 {
            while model.requests().len() <= n {
                moment().await;
            }
            run.steer(format!("message {n}")).await.unwrap();
        }
        assert_eq!(run.outcome().await.unwrap().text(), "done");
        let unheard: Vec<String> = run.unheard().await.unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(unheard, ["message 1"]);
        let requests = model.requests();
        assert_eq!(requests.len(), 2);
        pairing::check(&requests[1]).unwrap();
        assert!(
            requests[1].messages[2].text().contains("seen: sea"),
            "the call ran: {:?}",
            requests[1].messages
        );
        assert!(requests[1].messages[3].text().contains("message 0"));
    });
}

/// Without a lease, two engines of a store would take runs from each other.
///
/// A41
#[test]
fn two_engines_answer_all_messages_one_after_another() {
    let slow = Duration::from_millis(700);
    let model = ScriptedModel::respond(move |request| {
        ScriptedReply::text(format!("re: {}", asked(request))).after(slow)
    });
    let (disk, agent) = (Disk::default(), agent(&model));
    life(async {
        let engine =
            || disk.healthy().builder().lease(Duration::from_secs(30)).agent(agent.clone()).build().unwrap();
        let sessions = [engine(), engine()].map(|engine| session(&engine, &agent));
        let says = (0..12).map(|n| {
            let session = &sessions[n % 2];
            async move { say(session, &format!("q{n}")).await.text().to_owned() }
        });
        let answers = join_all(says).await;
        assert_eq!(answers, (0..12).map(|n| format!("re: q{n}")).collect::<Vec<_>>());
        let exchanges = sessions[0].exchanges(0, 100).await.unwrap();
        let numbers: Vec<u64> = exchanges.iter().map(|exchange| exchange.number).collect();
        assert_eq!(numbers, (1..=12).collect::<Vec<_>>());
        let mut asked: Vec<String> = questions(&sessions[1]).await;
        asked.sort_by_key(|asked| asked[1..].parse::<u32>().unwrap());
        assert_eq!(asked, (0..12).map(|n| format!("q{n}")).collect::<Vec<_>>());
        // Each saw all before it.
        let lengths: Vec<usize> = model.requests().iter().map(|request| request.messages.len()).collect();
        assert_eq!(lengths, (0..12).map(|n| 1 + 2 * n).collect::<Vec<_>>());
    });
}

/// A41
#[test]
fn a_message_follows_the_run_that_an_ended_process_left() {
    let slow = Duration::from_secs(10);
    let model = ScriptedModel::respond(move |request| {
        ScriptedReply::text(format!("re: {}", asked(request))).after(slow)
    });
    let (disk, agent) = (Disk::default(), agent(&model));
    life(async {
        session(&disk.healthy().engine(&agent), &agent).say("first").await.unwrap();
        while model.requests().is_empty() {
            moment().await;
        }
    });
    life(async {
        let session = session(&disk.healthy().engine(&agent), &agent);
        assert_eq!(say(&session, "second").await.text(), "re: second");
        assert_eq!(questions(&session).await, ["first", "second"]);
    });
}

/// A41, A7
#[test]
fn a_message_that_arrives_while_an_answer_is_written_changes_nothing_before_it() {
    let slow = Duration::from_secs(10);
    let model = ScriptedModel::respond(move |request| match request.messages.len() {
        1 => ScriptedReply::text("first draft").after(slow),
        _ => ScriptedReply::text("second draft"),
    });
    let agent = Agent::builder("a").model(model.clone()).phase(Phase::new("one")).phase(Phase::new("two"));
    let agent = agent.build().unwrap();
    life(async {
        let session = session(&Disk::default().healthy().engine(&agent), &agent);
        let run = session.say("go").await.unwrap();
        while model.requests().is_empty() {
            moment().await;
        }
        run.steer("in blue").await.unwrap();
        assert_eq!(run.outcome().await.unwrap().text(), "second draft");
        let request = model.requests().pop().unwrap();
        pairing::check(&request).unwrap();
        let texts: Vec<_> = request.messages.iter().map(|message| message.text().into_owned()).collect();
        assert_eq!(texts[..2], ["go", "first draft"]);
        assert!(texts[2].contains("in blue"), "{texts:?}");
        assert!(texts[3].starts_with("[Phase: two]"), "{texts:?}");
    });
}

/// A41
#[test]
fn a_run_with_a_number_that_is_not_the_next_one_fails_and_changes_nothing() {
    let agent = agent(&echo());
    life(async {
        let engine = Disk::default().healthy().engine(&agent);
        let session = session(&engine, &agent);
        say(&session, "one").await;
        for number in [0, 3, 1_000_000, 2_000_000_000_000, u64::MAX] {
            let prompt = json!({"text": "x", "session": {"id": "a.s", "number": number}});
            let options = workflow_core::RunOptions::new().id(format!("ada.a.s.{number}")).thread("ada");
            let run = engine.start_json("a", "agent.prompt", prompt, options).await.unwrap();
            run.outcome_any().await.unwrap();
            assert_eq!(questions(&session).await, ["one"], "{number}");
        }
        assert_eq!(say(&session, "two").await.text(), "re: two");
        let numbers: Vec<u64> =
            session.exchanges(0, 9).await.unwrap().iter().map(|exchange| exchange.number).collect();
        assert_eq!(numbers, [1, 2]);
    });
}
