//! A second attempt sees the same inputs as the first, regardless of later arrivals (S20, S37).

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_testkit::{Scenario, TestRun, explore};

use crate::fixtures::{Alpha, Begin, Beta, Close, Done, Item, Part, Saw, saw};

const SOON: Duration = Duration::from_secs(5);

/// The inputs of each execution's first attempt. That attempt fails, and the second must see the same.
#[derive(Default)]
struct Firsts(Mutex<BTreeMap<u64, String>>);

impl Firsts {
    fn seen(&self, info: &RunInfo, seen: String) -> Result<Saw, StepError> {
        let mut firsts = self.0.lock().unwrap();
        if info.attempt() == 1 {
            firsts.insert(info.execution().0, seen);
            return Err(StepError::transient("busy"));
        }
        assert_eq!(firsts[&info.execution().0], seen, "what attempt {} sees", info.attempt());
        Ok(Saw(seen))
    }
}

fn sorted<W: Workflow>(run: &TestRun<W>) -> Vec<String> {
    let mut saw = saw(run);
    saw.sort_unstable();
    saw
}

/// Takes inputs that later arrivals would change.
#[derive(Default)]
struct Watches(Firsts);

#[workflow]
impl Watches {
    #[step(reruns)]
    async fn one(&self, _: &Close, alpha: Option<&Alpha>, info: &RunInfo) -> Result<Saw, StepError> {
        self.0.seen(info, format!("one {:?}", alpha.map(|alpha| alpha.0)))
    }

    #[step(reruns)]
    async fn all(&self, _: &Close, alphas: &List<Alpha>, info: &RunInfo) -> Result<Saw, StepError> {
        self.0.seen(info, format!("all {:?}", alphas.iter().map(|alpha| alpha.0).collect::<Vec<_>>()))
    }

    #[step]
    async fn two(&self, _: &Close, alphas: &FixedList<Alpha, 2>, info: &RunInfo) -> Result<Saw, StepError> {
        self.0.seen(info, format!("two {:?}", alphas.iter().map(|alpha| alpha.0).collect::<Vec<_>>()))
    }

    #[step]
    async fn end(&self, begin: &Begin, _: &Beta) -> Done {
        Done(begin.0)
    }
}

fn watches() -> workflow_testkit::Start<Watches> {
    let seconds = Duration::from_secs;
    let scenario = Scenario::new(Watches::default()).send(Close).send_after(seconds(1), Alpha(1));
    let scenario = scenario.send_after(seconds(2), Alpha(2)).send_after(seconds(3), Alpha(3));
    scenario.send_after(seconds(60), Beta(0)).start(Begin(7))
}

// S20, S37
#[tokio::test]
async fn a_second_attempt_has_the_same_optional_event_list_and_fixed_list() {
    let run = watches().await;
    run.assert_output(&Done(7));
    let expected = ["all [1, 2, 3]", "all [1, 2]", "all [1]", "one None", "one Some(1)", "one Some(2)"];
    assert_eq!(sorted(&run), [&expected[..], &["one Some(3)", "two [1, 2]"]].concat());
}

// S20, S37
#[test]
fn in_every_order_of_arrivals_a_second_attempt_sees_what_the_first_one_did() {
    explore(watches).orders(100).assert(|run| run.assert_output(&Done(7)));
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Question(u32);

/// Makes two requests.
#[derive(Default)]
struct Asks(Firsts);

#[workflow]
impl Asks {
    #[step]
    async fn ask(&self, _: &Begin) -> Vec<Question> {
        vec![Question(1), Question(2)]
    }

    #[step]
    async fn take(&self, answer: &Reply<Question>, info: &RunInfo) -> Result<Saw, StepError> {
        self.0.seen(info, format!("{} to {}", answer.value(), answer.request().0))
    }

    #[step]
    async fn end(&self, _: &FixedList<Saw, 2>) -> Done {
        Done(2)
    }
}

// S20, S37
#[test]
fn a_second_attempt_has_the_same_reply_though_another_has_come() {
    let asks = || Scenario::new(Asks::default()).reply(|question: &Question| 10 * question.0).start(Begin(0));
    explore(asks).assert(|run| {
        run.assert_output(&Done(2));
        assert_eq!(sorted(run), ["10 to 1", "20 to 2"]);
    });
}

/// Fans out for each event from outside.
#[derive(Default)]
struct Groups(Firsts);

#[workflow]
impl Groups {
    #[step]
    async fn open(&self, alpha: &Alpha) -> FanOut<Item> {
        (0..alpha.0).map(|number| Item(10 * alpha.0 + number)).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn join(&self, _: &Begin, parts: &Gather<Part>, info: &RunInfo) -> Result<Saw, StepError> {
        self.0.seen(info, format!("{:?}", parts.ok().map(|part| part.0).collect::<Vec<_>>()))
    }

    #[step]
    async fn end(&self, _: &FixedList<Saw, 2>) -> Done {
        Done(2)
    }
}

// S20, S37, S48
#[test]
fn a_second_attempt_has_the_same_branches_though_others_are_gathered() {
    let groups =
        || Scenario::new(Groups::default()).send(Alpha(1)).send_after(SOON, Alpha(2)).start(Begin(0));
    explore(groups).orders(100).assert(|run| {
        run.assert_output(&Done(2));
        assert_eq!(sorted(run), ["[10]", "[20, 21]"]);
    });
}
