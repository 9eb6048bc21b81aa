//! The workers' load: a workflow with everything that must survive, and its expected results for a number, computed
//! without an engine.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Retries, RetryPolicy};

use crate::ledger::Ledger;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Begin {
    pub(crate) number: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Left(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Rang(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Part(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Worked(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Sum(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
pub(crate) struct Ask(pub(crate) u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Doubled(u32);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Done(pub(crate) u32);

/// Joins, a timer, branches with some initial failures, a request, a child run, and contexts of runs and threads.
pub(crate) struct Load(pub(crate) Ledger);

fn once_more() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(1, Duration::from_millis(2)))
}

#[workflow]
impl Load {
    #[step]
    async fn split(
        &self,
        begin: &Begin,
        run: RunContext,
        thread: ThreadContext,
        info: &RunInfo,
    ) -> Result<(Left, Timer<Rang>), StepError> {
        self.0.did(begin.number, info);
        run.set("number", begin.number).await?;
        thread.set("number", begin.number).await?;
        let later = Duration::from_millis(u64::from(begin.number % 13));
        Ok((Left(begin.number % 7), Timer::after(later, Rang(begin.number % 5))))
    }

    #[step]
    async fn open(&self, begin: &Begin, info: &RunInfo) -> FanOut<Part> {
        self.0.did(begin.number, info);
        parts(begin.number).map(Part).collect::<FanOut<_>>().concurrency(3)
    }

    #[step(retry = once_more())]
    async fn work(&self, part: &Part, info: &RunInfo) -> Result<Worked, StepError> {
        self.0.did(part.0, info);
        tokio::time::sleep(Duration::from_millis(u64::from(part.0 % 4))).await;
        if fails_first(part.0) && info.attempt() == 1 {
            return Err(StepError::transient("busy"));
        }
        Ok(Worked(3 * part.0))
    }

    #[step]
    async fn gather(&self, worked: &Gather<Worked>, info: &RunInfo) -> Sum {
        let sum = worked.ok().map(|worked| worked.0).sum();
        self.0.did(sum, info);
        Sum(sum)
    }

    #[step]
    async fn join(&self, left: &Left, rang: &Rang, sum: &Sum, info: &RunInfo) -> Ask {
        let asked = left.0 + rang.0 + sum.0;
        self.0.did(asked, info);
        Ask(asked)
    }

    #[step]
    async fn delegate(
        &self,
        reply: &Reply<Ask>,
        children: &Children,
        info: &RunInfo,
    ) -> Result<Doubled, StepError> {
        self.0.did(**reply, info);
        let Done(doubled) = children.run::<Double>(Begin { number: **reply }).await?;
        Ok(Doubled(doubled))
    }

    #[step]
    async fn end(
        &self,
        doubled: &Doubled,
        run: RunContext,
        thread: ThreadContext,
        info: &RunInfo,
    ) -> Result<Done, StepError> {
        self.0.did(doubled.0, info);
        let numbers: [Option<u32>; 2] = [run.get("number").await?, thread.get("number").await?];
        match numbers {
            [Some(number), Some(same)] if number == same => Ok(Done(doubled.0 + number)),
            _ => Err(StepError::permanent("a context is lost")),
        }
    }
}

/// The child.
pub(crate) struct Double(pub(crate) Ledger);

#[workflow]
impl Double {
    #[step]
    async fn wait(&self, begin: &Begin, run: RunContext, info: &RunInfo) -> Result<Timer<Rang>, StepError> {
        self.0.did(begin.number, info);
        run.set("number", begin.number).await?;
        Ok(Timer::after(Duration::from_millis(3), Rang(begin.number)))
    }

    #[step]
    async fn double(&self, rang: &Rang, info: &RunInfo) -> Done {
        self.0.did(rang.0, info);
        Done(2 * rang.0)
    }
}

fn parts(number: u32) -> impl Iterator<Item = u32> {
    (0..number % 5).map(move |part| number % 100 + part)
}

fn fails_first(part: u32) -> bool {
    part % 3 == 1
}

/// The reply to a request.
pub(crate) fn answer(ask: &Ask) -> u32 {
    ask.0 + 1
}

/// The expected result of a run.
pub(crate) struct Expected {
    pub(crate) workflow: &'static str,
    pub(crate) output: u32,
    /// Each event of the log with its data, unordered, with repetitions. Replies are by their requests.
    pub(crate) events: Vec<(&'static str, Value)>,
    /// The number of attempts of each execution, by step and subject.
    pub(crate) executions: BTreeMap<(&'static str, u32), u32>,
    pub(crate) gathers: usize,
    pub(crate) timers: usize,
    pub(crate) children: usize,
}

impl Expected {
    /// The expected result of a run of [`Load`].
    pub(crate) fn of(number: u32) -> Self {
        let parts: Vec<u32> = parts(number).collect();
        let sum: u32 = parts.iter().map(|part| 3 * part).sum();
        let asked = number % 7 + number % 5 + sum;
        let doubled = 2 * answer(&Ask(asked));
        let output = doubled + number;
        let mut events = vec![
            ("Begin", json!({ "number": number })),
            ("Left", json!(number % 7)),
            ("Rang", json!(number % 5)),
            ("Sum", json!(sum)),
            ("Ask", json!(asked)),
            ("Ask.reply", json!(answer(&Ask(asked)))),
            ("Doubled", json!(doubled)),
            ("Done", json!(output)),
        ];
        events.extend(parts.iter().map(|part| ("Part", json!(part))));
        events.extend(parts.iter().map(|part| ("Worked", json!(3 * part))));
        let mut executions = BTreeMap::from([
            (("split", number), 1),
            (("open", number), 1),
            (("gather", sum), 1),
            (("join", asked), 1),
            (("delegate", answer(&Ask(asked))), 1),
            (("end", doubled), 1),
        ]);
        executions.extend(parts.iter().map(|part| (("work", *part), 1 + u32::from(fails_first(*part)))));
        Self { workflow: "Load", output, events, executions, gathers: 1, timers: 1, children: 1 }
    }

    /// The expected result of the child of this run.
    pub(crate) fn of_child(number: u32) -> Self {
        let given = Self::of(number).given_to_child();
        let events =
            vec![("Begin", json!({ "number": given })), ("Rang", json!(given)), ("Done", json!(2 * given))];
        let executions = BTreeMap::from([(("wait", given), 1), (("double", given), 1)]);
        let workflow = "Double";
        Self { workflow, output: 2 * given, events, executions, gathers: 0, timers: 1, children: 0 }
    }

    fn given_to_child(&self) -> u32 {
        self.executions.keys().find_map(|(step, what)| (*step == "delegate").then_some(*what)).unwrap()
    }
}
