//! A transcript contains all observations of a run, in order.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use std::time::Duration;

use expect_test::expect;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use crate::support::{Answer, Fact, Looking, Outline, Question, question};

/// Two steps that display an item twice each, an hour apart or not.
struct Shows {
    hours: [u64; 2],
}

async fn show(display: &Display, number: u32, hours: u64) {
    display.show(Looking(number));
    tokio::time::sleep(Duration::from_hours(hours)).await;
    display.show(Looking(number + 1));
}

#[workflow]
impl Shows {
    #[step]
    async fn first(&self, _: &Question, display: &Display) {
        show(display, 10, self.hours[0]).await;
    }

    #[step]
    async fn second(&self, _: &Question, display: &Display) -> Answer {
        show(display, 20, self.hours[1]).await;
        Answer(String::new())
    }
}

#[tokio::test]
async fn a_transcript_tells_in_which_order_things_were_shown_and_executions_ended() {
    let run = Scenario::new(Shows { hours: [1, 2] }).start(question()).await;
    expect![[r##"
        #1 Question from outside: "why"
        x1 first by #1 starts
           showed Looking: 10
        x2 second by #1 starts
           showed Looking: 20
        x1 showed Looking: 11
        x1 first: succeeded
        x2 showed Looking: 21
        x2 second: succeeded
        #2 Answer of x2: ""
        completed with #2
    "##]]
    .assert_eq(&run.transcript());
    let other = Scenario::new(Shows { hours: [2, 1] }).start(question()).await;
    assert_ne!(run.transcript(), other.transcript());
}

/// Answers with a fact that convinces.
struct Picky {
    convinced_by: usize,
}

#[workflow]
impl Picky {
    #[step]
    async fn facts(&self, _: &Question) -> Vec<Fact> {
        vec![Fact("a".into()), Fact("bb".into())]
    }

    #[step]
    async fn outline(&self, _: &Question) -> Outline {
        Outline { points: self.convinced_by }
    }

    #[step(precondition = convinces)]
    async fn answer(&self, fact: &Fact, outline: &Outline) -> Answer {
        Answer(format!("{} {}", fact.0, outline.points))
    }
}

#[precondition]
fn convinces(fact: &Fact, outline: &Outline) -> Result<bool, StepError> {
    if outline.points > 2 {
        return Err(StepError::tool("nothing convinces"));
    }
    Ok(fact.0.len() == outline.points)
}

#[tokio::test]
async fn a_transcript_tells_what_preconditions_answered() {
    let run = Scenario::new(Picky { convinced_by: 2 }).start(question()).await;
    expect![[r##"
        #1 Question from outside: "why"
        x1 facts by #1 starts
        x2 outline by #1 starts
        x1 facts: succeeded
        #2 Fact of x1: "a"
        #3 Fact of x1: "bb"
        x2 outline: succeeded
        #4 Outline of x2: {"points":2}
        asked `convinces` for answer by #4: yes
        x3 answer by #4 with #3: succeeded
        #5 Answer of x3: "bb 2"
        completed with #5
    "##]]
    .assert_eq(&run.transcript());
    for convinced_by in [1, 3] {
        let run = Scenario::new(Picky { convinced_by }).start(question()).await;
        let answer = if convinced_by == 3 { "failed" } else { "no" };
        let asked = format!("asked `convinces` for answer by #4: {answer}\n");
        assert!(run.transcript().contains(&asked), "{}", run.transcript());
    }
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(String);

/// Waits for notes.
struct Notes;

#[workflow]
impl Notes {
    #[step]
    async fn begin(&self, _: &Question) {}

    #[step]
    async fn answer(&self, notes: &FixedList<Note, 2>) -> Answer {
        Answer(format!("{} notes", notes.len()))
    }
}

fn notes() -> workflow_testkit::ScenarioOf<Notes> {
    Scenario::new(Notes).send(Note("one".into()))
}

#[tokio::test]
async fn a_transcript_tells_when_a_run_waits() {
    let run = notes().send(Note("two".into())).start(question()).await;
    expect![[r##"
        #1 Question from outside: "why"
        x1 begin by #1: succeeded
        waits
        #2 Note from outside: "one"
        waits
        #3 Note from outside: "two"
        x2 answer by #3 with a list of 2: succeeded
        #4 Answer of x2: "2 notes"
        completed with #4
    "##]]
    .assert_eq(&run.transcript());
    let at_once = notes().send_after(Duration::ZERO, Note("two".into())).start(question()).await;
    assert_ne!(run.transcript(), at_once.transcript());
}

#[tokio::test]
async fn a_change_behind_what_is_printed_of_a_value_changes_the_transcript() {
    let long = |end: &str| Note(format!("{}{end}", "x".repeat(300)));
    let transcript = async |end: &str| notes().send(long(end)).start(question()).await.transcript();
    let (one, other) = (transcript("a").await, transcript("b").await);
    assert_ne!(one, other);
    assert!(one.contains("x… and 103 more characters, digest 4c3eb95a"), "{one}");
}

/// Two steps that take an hour each.
struct Slow;

async fn an_hour() {
    tokio::time::sleep(Duration::from_hours(1)).await;
}

#[workflow]
impl Slow {
    #[step]
    async fn one(&self, _: &Question) {
        an_hour().await;
    }

    #[step]
    async fn other(&self, _: &Question) -> Answer {
        an_hour().await;
        Answer(String::new())
    }
}

#[tokio::test]
async fn a_scenario_can_change_its_engine() {
    let scenario = Scenario::new(Slow).engine(|engine| engine.max_concurrent_executions(1));
    let run = scenario.start(question()).await;
    expect![[r##"
        #1 Question from outside: "why"
        x1 one by #1: succeeded
        x2 other by #1: succeeded
        #2 Answer of x2: ""
        completed with #2
    "##]]
    .assert_eq(&run.transcript());
    assert_eq!(run.elapsed(), Duration::from_hours(2));
}
