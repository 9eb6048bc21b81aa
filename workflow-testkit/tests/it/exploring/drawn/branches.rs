//! Shapes with branches.

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

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Summed(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Aside(u64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done(u64);

struct Fanning(u64);

#[workflow]
impl Fanning {
    #[step]
    async fn split(&self, _: &Go) -> FanOut<Page> {
        let pages: FanOut<Page> = (0..=roll(self.0, "pages", 0, 3)).map(Page).collect();
        let pages = match roll(self.0, "policy", 0, 3) {
            0 => pages.fail_all(),
            1 => pages.continue_others(),
            _ => pages.wait_all(),
        };
        let pages = pages.tolerate(u32::try_from(roll(self.0, "tolerated", 0, 3)).unwrap());
        if roll(self.0, "turn", 0, 2) == 0 { pages.concurrency(1 + (self.0 % 2) as u32) } else { pages }
    }

    #[step]
    async fn other(&self, _: &Go) -> Option<Aside> {
        (roll(self.0, "other", 0, 3) == 0).then_some(Aside(1))
    }

    #[step]
    async fn read(&self, page: &Page) -> Result<Option<Read>, StepError> {
        if roll(self.0, "fails", page.0, 5) == 0 {
            return Err(StepError::permanent("it fails"));
        }
        Ok(maybe(self.0, "read", page.0, Read(page.0)))
    }

    #[step]
    async fn mark(&self, _page: &Page, _: &Aside) {}

    #[step]
    async fn sum(&self, read: &Gather<Read>) -> Option<Done> {
        let sum = read.ok().map(|read| read.0 + 1).sum();
        maybe(self.0, "sum", sum, Done(sum))
    }
}

/// Branches with several events, whose order the gathering step can see; failures that wait for all.
struct Folding(u64);

#[workflow]
impl Folding {
    #[step]
    async fn split(&self, _: &Go) -> FanOut<Page> {
        let pages: FanOut<Page> = (0..=roll(self.0, "pages", 0, 2)).map(Page).collect();
        if roll(self.0, "policy", 0, 2) == 0 { pages.wait_all() } else { pages }
    }

    #[step]
    async fn odd(&self, page: &Page) -> Result<Read, StepError> {
        if roll(self.0, "fails", page.0, 4) == 0 {
            return Err(StepError::permanent("it fails"));
        }
        Ok(Read(2 * page.0 + 1))
    }

    #[step]
    async fn even(&self, page: &Page, context: RunContext) -> Result<Read, StepError> {
        if roll(self.0, "counts", page.0, 2) == 0 {
            context.increment("read", 1).await?;
        }
        Ok(Read(2 * page.0 + 2))
    }

    #[step]
    async fn late(&self, _: &Go, context: RunContext) -> Result<Option<Aside>, StepError> {
        let counts = roll(self.0, "late", 0, 2) == 0;
        Ok(if counts { Some(Aside(context.increment("late", 1).await?.unsigned_abs())) } else { None })
    }

    #[step]
    async fn fold(&self, read: &Gather<Read>) -> Done {
        Done(read.ok().fold(0, |folded, read| folded * 10 + read.0))
    }
}

#[test]
fn the_order_of_what_a_branch_holds_is_explored_as_by_trying_everything() {
    compare_all(12, |seed| Scenario::new(Folding(seed)));
}

#[test]
fn branches_are_explored_as_by_trying_everything() {
    // Errors with branches that open in turn are rare.
    compare_all(24, |seed| Scenario::new(Fanning(seed)));
}

struct Nesting(u64);

#[workflow]
impl Nesting {
    #[step]
    async fn split(&self, _: &Go) -> FanOut<Page> {
        (0..2).map(Page).collect()
    }

    #[step]
    async fn lines(&self, page: &Page) -> FanOut<Line> {
        let lines = roll(self.0, "lines", page.0, 3);
        (0..lines).map(|line| Line(page.0 * 10 + line)).collect::<FanOut<_>>().continue_others()
    }

    #[step(spawn)]
    async fn read(&self, line: &Line, read: &Emitter<Read>) -> Result<(), StepError> {
        for copy in 0..roll(self.0, "read", line.0, 3) {
            read.emit(Read(line.0 * 10 + copy))?;
        }
        Ok(())
    }

    #[step]
    async fn sum(&self, page: &Page, read: &Gather<Read>) -> Option<Summed> {
        maybe(self.0, "sum", page.0, Summed(read.ok().map(|read| read.0 + 1).sum()))
    }

    #[step]
    async fn finish(&self, sums: &Gather<Summed>) -> Done {
        Done(sums.ok().map(|sum| sum.0).sum())
    }
}

#[test]
fn branches_in_branches_are_explored_as_by_trying_everything() {
    let [reduced, every] = sums(12, |seed| Scenario::new(Nesting(seed)));
    assert!(reduced <= every);
}

/// Two concurrent fan-outs, and a step that takes both gathers.
struct Parting(u64);

#[workflow]
impl Parting {
    #[step]
    async fn pages(&self, _: &Go) -> FanOut<Page> {
        (0..roll(self.0, "pages", 0, 3)).map(Page).collect()
    }

    #[step]
    async fn lines(&self, _: &Go) -> FanOut<Line> {
        (0..roll(self.0, "lines", 0, 3)).map(Line).collect()
    }

    #[step]
    async fn read(&self, page: &Page, context: ThreadContext) -> Result<Read, StepError> {
        let seen: i64 = if self.0.is_multiple_of(2) { context.increment("seen", 1).await? } else { 0 };
        Ok(Read(page.0 * 10 + seen.unsigned_abs()))
    }

    #[step]
    async fn weigh(&self, line: &Line) -> Option<Summed> {
        maybe(self.0, "weigh", line.0, Summed(line.0))
    }

    #[step]
    async fn finish(&self, read: &Gather<Read>, summed: &Gather<Summed>) -> Done {
        let read = read.ok().fold(0, |sum, read| sum * 100 + read.0);
        Done(read * 100 + summed.ok().map(|summed| summed.0).sum::<u64>())
    }
}

#[test]
fn two_fan_outs_are_explored_as_by_trying_everything() {
    compare_all(10, |seed| Scenario::new(Parting(seed)));
}

struct Ordered;

#[workflow]
impl Ordered {
    #[step]
    async fn split(&self, _: &Go) -> FanOut<Page> {
        FanOut::from_iter([Page(0)])
    }

    #[step]
    async fn odd(&self, _page: &Page) -> Read {
        Read(1)
    }

    #[step]
    async fn even(&self, _page: &Page) -> Read {
        Read(2)
    }

    #[step]
    async fn fold(&self, read: &Gather<Read>) -> Done {
        Done(read.ok().fold(0, |folded, read| folded * 10 + read.0))
    }
}

#[test]
fn a_gathering_step_sees_the_order_in_which_a_branch_emitted() {
    let explored = workflow_testkit::explore(|| Scenario::new(Ordered).start(Go)).survey();
    assert_eq!(explored.outcomes().len(), 2, "{explored}");
}
