//! Forks, and sessions that must not meet.

use workflow_agent::SessionError;

use super::*;
use crate::lives::{Disk, Fails, Lost, life, moment};

/// A42
#[test]
fn a_fork_has_the_exchanges_and_both_continue_apart() {
    let (model, disk) = (echo(), Disk::default());
    let agent = agent(&model);
    life(async {
        let original = session(&disk.healthy().engine(&agent), &agent);
        for n in 0..20 {
            say(&original, &format!("q{n}")).await;
        }
        let copy = original.fork("copy").await.unwrap();
        assert_eq!(copy.exchanges(0, 100).await.unwrap(), original.exchanges(0, 100).await.unwrap());
        let of_copy = copy.say("left").await.unwrap();
        let of_original = original.say("right").await.unwrap();
        assert_ne!(of_copy.id(), of_original.id());
        of_copy.outcome().await.unwrap();
        of_original.outcome().await.unwrap();
        assert_eq!(questions(&copy).await[20..], ["left"]);
        assert_eq!(questions(&original).await[20..], ["right"]);
        let requests = model.requests();
        assert!(requests[20..].iter().all(|request| request.messages.len() == 41), "both have the history");
    });
}

/// A42
#[test]
fn a_fork_to_a_session_that_exists_is_refused_and_changes_nothing() {
    let agent = agent(&echo());
    life(async {
        let original = session(&Disk::default().healthy().engine(&agent), &agent);
        say(&original, "one").await;
        let other = original.clone().id("other");
        say(&other, "else").await;
        for id in ["other", "s"] {
            let refused = original.fork(id).await.unwrap_err();
            assert!(matches!(refused, SessionError::Exists { .. }), "{refused:?}");
        }
        assert_eq!(questions(&other).await, ["else"]);
        let empty = original.clone().id("none").fork("new").await.unwrap();
        assert!(questions(&empty).await.is_empty());
        say(&empty, "first").await;
        assert_eq!(questions(&empty).await, ["first"]);
    });
}

/// A41
#[test]
fn sessions_of_any_names_do_not_meet() {
    let names =
        ["", ".", "a", "a.b", "a/b", "a%2Eb", "%", "%25", "a.", ".a", "ä", "a b", "0", "1.1", "x/head"];
    let agent = agent(&echo());
    life(async {
        let engine = Disk::default().healthy().engine(&agent);
        let mut runs = std::collections::HashSet::new();
        for thread in names {
            for id in names {
                let session = Session::of(&engine, &agent).thread(thread).id(id);
                let run = session.say(format!("{thread}|{id}")).await.unwrap();
                run.outcome().await.unwrap();
                assert!(runs.insert(run.id().to_string()), "`{thread}` and `{id}`: {}", run.id());
            }
        }
        for thread in names {
            for id in names {
                let session = Session::of(&engine, &agent).thread(thread).id(id);
                assert_eq!(questions(&session).await, [format!("{thread}|{id}")]);
            }
        }
    });
}

/// A41
#[test]
fn sessions_of_two_agents_and_of_two_engines_do_not_meet() {
    let (one, other) = (echo(), echo());
    let one = Agent::builder("a").model(one).tool(look().approval(Approval::Always)).build().unwrap();
    let other = Agent::builder("a.s").model(other).build().unwrap();
    life(async {
        let engine =
            Disk::default().healthy().builder().agent(one.clone()).agent(other.clone()).build().unwrap();
        let busy = session(&engine, &one).say("look").await.unwrap();
        while busy.approvals().await.unwrap().is_empty() {
            moment().await;
        }
        assert_eq!(say(&session(&engine, &other), "hello").await.text(), "re: hello");
        let elsewhere = session(&Disk::default().healthy().engine(&one), &one);
        assert_eq!(say(&elsewhere, "hello").await.text(), "re: hello");
        // A message that waits for the busy session delays only that.
        let waiting = session(&engine, &one);
        let mut waiting = Box::pin(waiting.say("next"));
        assert!(futures::poll!(&mut waiting).is_pending());
        assert_eq!(say(&elsewhere, "again").await.text(), "re: again");
        let refusing = elsewhere.when_busy(workflow_agent::WhenBusy::Refuse);
        assert_eq!(say(&refusing, "and again").await.text(), "re: and again");
    });
}

/// A42
#[test]
fn a_fork_whose_process_ended_can_be_repeated_although_its_session_went_on() {
    for lost in [Lost::Operation, Lost::Answer] {
        for at in 0.. {
            let (disk, agent) = (Disk::default(), agent(&echo()));
            life(async {
                let session = session(&disk.healthy().engine(&agent), &agent);
                for n in 0..7 {
                    say(&session, &format!("q{n}")).await;
                }
            });
            let process = disk.process(Fails::From(at, lost));
            life(async { drop(session(&process.engine(&agent), &agent).fork("copy").await) });
            let has_failed = process.has_failed();
            life(async {
                let original = session(&disk.healthy().engine(&agent), &agent);
                let copy = original.clone().id("copy");
                // A copy that has begun is busy, and one that is complete has exchanges.
                let began = copy.exchanges(0, 9).await.map_or(true, |copied| !copied.is_empty());
                say(&original, "more").await;
                let expected = if began { 7 } else { 8 };
                match original.fork("copy").await {
                    // It had been forked.
                    Ok(_) | Err(SessionError::Exists { .. }) => {}
                    Err(error) => panic!("{lost:?} {at}: {error:?}"),
                }
                assert_eq!(questions(&copy).await, questions(&original).await[..expected], "{lost:?} {at}");
                assert_eq!(say(&copy, "next").await.text(), "re: next");
                assert_eq!(questions(&copy).await.len(), expected + 1);
                assert_eq!(questions(&original).await.len(), 8);
            });
            if !has_failed {
                assert!(at > 8, "{at} operations");
                break;
            }
        }
    }
}

/// A42
#[test]
fn a_session_that_is_being_copied_is_busy_until_the_fork_is_repeated() {
    let (disk, agent) = (Disk::default(), agent(&echo()));
    life(async {
        let session = session(&disk.healthy().engine(&agent), &agent);
        for n in 0..3 {
            say(&session, &format!("q{n}")).await;
        }
    });
    // The head of the copy is there, and an exchange.
    let process = disk.process(Fails::From(4, Lost::Operation));
    life(async { assert!(session(&process.engine(&agent), &agent).fork("copy").await.is_err()) });
    life(async {
        let original = session(&disk.healthy().engine(&agent), &agent);
        let copy = original.clone().id("copy");
        let is_busy = |error: SessionError| assert!(matches!(error, SessionError::Busy { .. }), "{error:?}");
        is_busy(copy.exchanges(0, 9).await.unwrap_err());
        is_busy(copy.fork("copy of the copy").await.unwrap_err());
        is_busy(copy.open_run().await.map(drop).unwrap_err());
        is_busy(copy.say("too early").await.map(drop).unwrap_err());
        original.fork("copy").await.unwrap();
        assert_eq!(questions(&copy).await, ["q0", "q1", "q2"]);
        let again = copy.fork("copy of the copy").await.unwrap();
        assert_eq!(questions(&again).await, ["q0", "q1", "q2"]);
    });
}
