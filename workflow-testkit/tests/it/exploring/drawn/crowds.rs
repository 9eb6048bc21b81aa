//! Shapes with dependent executions: limited concurrency, or failing first calls.

use workflow_core::StepError;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use super::shapes::Go;
use super::{compare_all, maybe, roll, sums};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Page(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Line(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Read(u64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u64);

/// A random number of uses of one of two keys; the values found decide the number of events.
async fn work(seed: u64, page: u64, context: &RunContext) -> Result<Vec<Read>, StepError> {
    let mut found = 0;
    for turn in 0..roll(seed, "turns", page, 3) {
        let key = ["x", "y"][usize::try_from(roll(seed, "key", page * 3 + turn, 2))?];
        found = context.update(key, |there: Option<u64>| there.unwrap_or(0) * 3 + page + 1).await?;
    }
    Ok((0..found % 2).map(Read).collect())
}

/// Several concurrent executions with a limit.
struct Crowd(u64);

#[workflow]
impl Crowd {
    #[step]
    async fn all(&self, _: &Go) -> Vec<Page> {
        (0..3).map(Page).collect()
    }

    #[step(concurrency = 2)]
    async fn read(&self, page: &Page, context: RunContext) -> Result<Vec<Read>, StepError> {
        work(self.0, page.0, &context).await
    }

    #[step]
    async fn count(&self, read: &Read) -> Option<Done> {
        (roll(self.0, "count", read.0, 6) == 0).then_some(Done(read.0))
    }
}

#[test]
fn crowds_are_explored_as_by_trying_everything() {
    compare_all(12, |seed| Scenario::new(Crowd(seed)));
}

/// The same across branches, where each takes a way of its own.
struct CrowdInBranches(u64);

#[workflow]
impl CrowdInBranches {
    #[step]
    async fn split(&self, _: &Go) -> FanOut<Page> {
        (0..2 + roll(self.0, "pages", 0, 2)).map(Page).collect()
    }

    #[step]
    async fn turn(&self, page: &Page) -> Option<Line> {
        maybe(self.0, "turn", page.0, Line(page.0))
    }

    #[step(concurrency = 1)]
    async fn read(&self, line: &Line, context: RunContext) -> Result<Vec<Read>, StepError> {
        work(self.0, line.0, &context).await
    }

    #[step]
    async fn sum(&self, read: &Gather<Read>) -> Done {
        Done(read.ok().map(|read| read.0 + 1).sum())
    }
}

#[test]
fn crowds_in_branches_are_explored_as_by_trying_everything() {
    compare_all(12, |seed| Scenario::new(CrowdInBranches(seed)));
}

/// The first calls of a step fail, in any branch.
struct Failing(u64);

#[workflow]
impl Failing {
    #[step]
    async fn split(&self, _: &Go) -> FanOut<Page> {
        (0..2 + roll(self.0, "pages", 0, 2)).map(Page).collect()
    }

    #[step]
    async fn turn(&self, page: &Page) -> Vec<Line> {
        (0..=roll(self.0, "lines", page.0, 2)).map(|line| Line(page.0 * 10 + line)).collect()
    }

    #[step(on_error = "continue")]
    async fn read(&self, line: &Line) -> Read {
        Read(line.0)
    }

    #[step]
    async fn sum(&self, read: &Gather<Read>) -> Done {
        Done(read.ok().map(|read| read.0 + 1).sum())
    }
}

#[test]
fn first_calls_that_fail_are_explored_as_by_trying_everything() {
    let [reduced, every] = sums(8, |seed| {
        let calls = 1 + u32::from(seed.is_multiple_of(2));
        Scenario::new(Failing(seed)).fail_first("read", calls, || StepError::permanent("torn"))
    });
    assert!(reduced <= every);
}
