//! Transcripts are the same each time and contain everything visible of a run.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use std::collections::HashMap;
use std::time::Duration;

use expect_test::expect;
use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_testkit::Scenario;

use crate::support::{Answer, Fact, Looking, Question, Research, question};

#[tokio::test]
async fn a_transcript_holds_events_executions_and_what_was_shown() {
    let run = Scenario::new(Research).start(question()).await;
    expect![[r##"
        #1 Question from outside: "why"
        x1 look_up by #1 starts
           showed Looking: 1
        x2 outline by #1 starts
        x1 showed Looking: 2
        x1 look_up: succeeded
        #2 Fact of x1: "why"
        x2 outline: succeeded
        #3 Outline of x2: {"points":3}
        x3 answer by #3 with #2: succeeded
        #4 Answer of x3: "why, 3 points"
        completed with #4
    "##]]
    .assert_eq(&run.transcript());
}

/// Fails a look-up and displays this, and then answers or not.
struct Failing {
    answers: bool,
}

#[workflow]
impl Failing {
    #[step(on_error = "continue")]
    async fn look_up(&self, _question: &Question, display: &Display) -> Result<Fact, StepError> {
        display.show(Looking(1));
        Err(StepError::rejected("nothing found"))
    }

    #[step(reruns)]
    async fn answer(&self, question: &Question, fact: Option<&Fact>) -> Option<Answer> {
        let text = fact.map_or(&question.0, |fact| &fact.0);
        self.answers.then(|| Answer(text.clone()))
    }
}

#[tokio::test]
async fn a_transcript_says_what_was_taken_back_and_that_a_run_was_degraded() {
    let run = Scenario::new(Failing { answers: true }).start(question()).await;
    expect![[r##"
        #1 Question from outside: "why"
        x1 look_up by #1 starts
           showed Looking: 1
           took back what it showed
        x2 answer by #1 starts
        x1 look_up: failed (rejected): nothing found
        x2 answer: succeeded
        #2 Answer of x2: "why"
        completed with #2, degraded
    "##]]
    .assert_eq(&run.transcript());
}

#[tokio::test]
async fn a_transcript_of_a_stalled_run_holds_its_stall_report() {
    let run = Scenario::new(Failing { answers: false }).start(question()).await;
    expect![[r##"
        #1 Question from outside: "why"
        x1 look_up by #1 starts
           showed Looking: 1
           took back what it showed
        x2 answer by #1 starts
        x1 look_up: failed (rejected): nothing found
        x2 answer: succeeded
        stalled
        the run of `Failing` stalled: nothing runs and nothing can arrive
        - no `Answer` ended the run
            `answer` ran once and emitted nothing
        - `look_up` failed: nothing found
    "##]]
    .assert_eq(&run.transcript());
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(start, display)]
struct Opened {
    claims: u32,
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(String);

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Claim(u32);

#[derive(Debug, Serialize, Deserialize, Event)]
struct Granted(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Closed {
    notes: usize,
    by: HashMap<String, u32>,
}

/// Takes notes and claims, and closes when it has two notes and a claim.
struct Desk;

#[workflow]
impl Desk {
    #[step]
    async fn ask(&self, opened: &Opened) -> Vec<Claim> {
        (1..=opened.claims).map(Claim).collect()
    }

    #[step]
    async fn settle(&self, verdict: &Reply<Claim>) -> Granted {
        Granted(verdict.request().0)
    }

    #[step]
    async fn close(&self, granted: &Granted, notes: &FixedList<Note, 2>) -> Closed {
        let by = notes.iter().map(|note| (note.0.clone(), granted.0)).collect();
        Closed { notes: notes.len(), by }
    }
}

#[tokio::test]
async fn a_transcript_of_a_run_that_waits_says_what_for() {
    let mut run = Scenario::new(Desk).send(Note("late".into())).start(Opened { claims: 2 }).await;
    expect![[r##"
        #1 Opened from outside, shown: {"claims":2}
        x1 ask by #1: succeeded
        #2 Claim of x1: 1
        #3 Claim of x1: 2
        waits
        #4 Note from outside: "late"
        waiting
           for the reply to #2 Claim
           for the reply to #3 Claim
           for Note from outside
    "##]]
    .assert_eq(&run.transcript());
    run.assert_quality(Quality::Clean);
    let claim = run.requests()[1].id::<Claim>().unwrap();
    run.send(Note("early".into())).await.unwrap();
    run.send(Note("x".repeat(300))).await.unwrap();
    run.reply(claim, true).await.unwrap();
    run.settled().await;
    expect![[r##"
        #1 Opened from outside, shown: {"claims":2}
        x1 ask by #1: succeeded
        #2 Claim of x1: 1
        #3 Claim of x1: 2
        waits
        #4 Note from outside: "late"
        waits
        #5 Note from outside: "early"
        waits
        #6 Note from outside: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… and 102 more characters, digest ab0e8ad5
        waits
        #7 Claim.reply to #3 from outside: true
        x2 settle by #7: succeeded
        #8 Granted of x2: 2
        x3 close by #8 with a list of 2: succeeded
        #9 Closed of x3: {"by":{"early":2,"late":2},"notes":2}
        events that came when a fixed list of close was full: 1
        completed with #9
        without a reply: #2 Claim
    "##]].assert_eq(&run.transcript());
}

#[derive(Debug, Serialize, Deserialize, Event)]
struct Chapter(u32);

#[derive(Debug, Serialize, Deserialize, Event)]
struct Page(u32);

#[derive(Debug, Serialize, Deserialize, Event)]
struct Read(u32);

#[derive(Debug, Serialize, Deserialize, Event)]
struct Summed(u32);

/// Nested branches, one of which fails.
struct Reading;

#[workflow]
impl Reading {
    #[step]
    async fn open(&self, _question: &Question) -> FanOut<Chapter> {
        (1..=2).map(Chapter).collect()
    }

    #[step]
    async fn leaf(&self, chapter: &Chapter) -> FanOut<Page> {
        let pages = (1..=chapter.0).map(|page| Page(10 * chapter.0 + page));
        pages.collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn read(&self, page: &Page) -> Result<Read, StepError> {
        if page.0 == 22 { Err(StepError::permanent("torn,\nand wet")) } else { Ok(Read(page.0)) }
    }

    #[step]
    async fn sum(&self, read: &Gather<Read>) -> Summed {
        Summed(read.ok().map(|read| read.0).sum())
    }

    #[step]
    async fn answer(&self, summed: &Gather<Summed>) -> Answer {
        Answer(summed.ok().map(|summed| summed.0.to_string()).collect::<Vec<_>>().join(" "))
    }
}

#[tokio::test]
async fn a_transcript_says_what_lies_in_which_branch() {
    let run = Scenario::new(Reading).start(question()).await;
    expect![[r##"
        #1 Question from outside: "why"
        x1 open by #1: succeeded
        #2 Chapter of x1 opens scope 1: 1
        #3 Chapter of x1 opens scope 2: 2
        x2 leaf by #2 in scope 1 starts
        x3 leaf by #3 in scope 2 starts
        x2 leaf in scope 1: succeeded
        #4 Page of x2 opens scope 3 in scope 1: 11
        x4 read by #4 in scope 3 starts
        x3 leaf in scope 2: succeeded
        #5 Page of x3 opens scope 4 in scope 2: 21
        #6 Page of x3 opens scope 5 in scope 2: 22
        x5 read by #5 in scope 4 starts
        x6 read by #6 in scope 5 starts
        x4 read in scope 3: succeeded
        #7 Read of x4 in scope 3: 11
        #8 leaf.Page.gathered in scope 1: [11]
        x7 sum by #8 in scope 1 starts
        x5 read in scope 4: succeeded
        #9 Read of x5 in scope 4: 21
        x6 read in scope 5: failed (permanent): torn,
           and wet
        #10 leaf.Page.gathered in scope 2: [21,22]
        x8 sum by #10 in scope 2 starts
        x7 sum in scope 1: succeeded
        #11 Summed of x7 in scope 1: 11
        x8 sum in scope 2: succeeded
        #12 Summed of x8 in scope 2: 21
        #13 open.Chapter.gathered: [1,2]
        x9 answer by #13: succeeded
        #14 Answer of x9: "11 21"
        completed with #14, degraded
    "##]]
    .assert_eq(&run.transcript());
}

/// One answer is first, one too late, and one missing.
struct Racing;

#[workflow]
impl Racing {
    #[step]
    async fn first(&self, question: &Question) -> Answer {
        Answer(question.0.clone())
    }

    #[step]
    async fn second(&self, question: &Question) -> Answer {
        Answer(question.0.clone())
    }

    #[step]
    async fn slow(&self, question: &Question) -> Answer {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Answer(question.0.clone())
    }
}

#[tokio::test]
async fn a_transcript_says_what_was_refused_and_what_was_dropped() {
    let run = Scenario::new(Racing).start(question()).await;
    expect![[r##"
        #1 Question from outside: "why"
        x1 first by #1 starts
        x2 second by #1 starts
        x3 slow by #1 starts
        x1 first: succeeded
        #2 Answer of x1: "why"
        x2 second: refused with Answer
        x3 slow: dropped
        completed with #2
    "##]]
    .assert_eq(&run.transcript());
}

#[tokio::test]
async fn a_transcript_says_which_execution_failed_a_run() {
    let torn = |_: &Question| Err::<Fact, _>(StepError::rejected("torn"));
    let run = Scenario::new(Research).replace("look_up", torn).start(question()).await;
    expect![[r##"
        #1 Question from outside: "why"
        x1 look_up by #1 starts
        x2 outline by #1 starts
        x1 look_up: failed (rejected): torn
        x2 outline: dropped
        failed by x1
    "##]]
    .assert_eq(&run.transcript());
}

#[tokio::test]
async fn a_transcript_of_a_cancelled_run_says_what_was_never_replied_to() {
    let mut run = Scenario::new(Desk).start(Opened { claims: 1 }).await;
    run.cancel("enough").await.unwrap();
    run.settled().await;
    expect![[r##"
        #1 Opened from outside, shown: {"claims":1}
        x1 ask by #1: succeeded
        #2 Claim of x1: 1
        waits
        cancelled: enough
        without a reply: #2 Claim
    "##]]
    .assert_eq(&run.transcript());
}
