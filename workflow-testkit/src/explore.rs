//! Running a scenario in every order that makes a difference. This file owns what a test says; what an order is and
//! which ones there are is in the files below.

use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use workflow_core::Workflow;

use crate::transcript::shortened;
use crate::{Start, TestRun};

mod durable;
mod footprint;
mod gate;
mod hooks;
mod order;
mod outcome;
mod outside;
mod play;
mod quiet;
mod races;
mod report;
mod search;
mod shrink;
mod walk;

use footprint::Interest;
use order::{Order, Replay};
use play::{Played, play, words};
use report::{NotAgain, Refuted};
use search::{Reduction, Search};
use shrink::{Failing, shrink};
use walk::Walk;

pub use outcome::Outcome;
pub(crate) use play::panic_message;
pub use report::Explored;

/// Runs a scenario in many orders: every one that makes a difference, while they are few.
///
/// The closure makes the scenario anew for each run. [`Explore`] says what is tried and how; an exploration begins
/// with [`Explore::assert`] or [`Explore::survey`].
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_testkit::{Scenario, explore};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Question { text: String }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Page { text: String }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Picture { caption: String }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Answer { text: String }
///
/// struct Research;
///
/// #[workflow]
/// impl Research {
///     #[step]
///     async fn read(&self, question: &Question) -> Page { Page { text: question.text.clone() } }
///
///     #[step]
///     async fn look(&self, question: &Question) -> Picture { Picture { caption: question.text.clone() } }
///
///     #[step]
///     async fn respond(&self, page: &Page, picture: &Picture) -> Answer {
///         Answer { text: format!("{}, {}", page.text, picture.caption) }
///     }
/// }
///
/// let question = || Question { text: "why?".into() };
/// let explored = explore(|| Scenario::new(Research).start(question())).assert(|run| run.executions("respond") == 1);
/// assert_eq!(explored.to_string(), "tried 2 of 2 orders that can be told apart");
/// ```
pub fn explore<W: Workflow, F: Fn() -> Start<W>>(scenario: F) -> Explore<F> {
    Explore { scenario, orders: 1_000, seed: 0, replay: None, reduction: Reduction::Races, durable: false }
}

/// An exploration that is about to begin.
///
/// # What an order is made of
/// Each of these is one operation: that an execution completes, that a step or a precondition reads, writes or updates
/// a key of a context, that something arrives from outside, and that time passes. What
/// [`send`](crate::ScenarioOf::send) sends may arrive at any time, not only when the run waits, but in the order in which
/// it is sent, as from one client; what [`send_after`](crate::ScenarioOf::send_after) sends may arrive at any time and in
/// any order, as may the [end](crate::ScenarioOf::cancel_after) of the run and, where there is a
/// [store](Self::durable), what it confirms; so may a reply, with
/// [`reply_after`](crate::ScenarioOf::reply_after) too, once its request is open.
/// A run goes on until nothing in it can go on but through such an operation, and then one of them is chosen.
///
/// Time means order here, and not how long something takes. It may pass whenever the run has a
/// [timer](workflow_core::Timer) or a request that expires, whenever a step or a precondition waits for anything else than
/// its turn or an execution for its next attempt, and whenever a child run goes on: what is due first comes first, until something comes of it, before or after all else that could go next. So a step
/// that sleeps for an hour may complete before one that does not sleep, and before what is sent after a minute; but never
/// before a step that began to sleep at the same time and for less. While something else could go next and the run has no
/// timer, at most 1,000 sleeps in a row end in vain; an exploration for which that was not enough is not
/// [exhaustive](Explored::is_exhaustive), and says so. A sleep beside an operation that the same step waits for is over
/// only when there is nothing else to choose, and so is the [time that a run may
/// take](workflow_core::RunOptions::timeout) where nothing else lets time pass.
///
/// Child runs go on in one order each: only what they do to the context of a thread that they share with the run is an
/// operation. What is [printed](Explored) of an exploration says so where child runs were started.
///
/// # Which orders are left out
/// Two operations commute if it makes no difference to the run which goes first, and of orders that differ only in such
/// pairs one is tried. Operations on different keys commute, and so do reads. Completions and arrivals commute if no
/// step can tell the order of their events: none takes or gathers events of both, or it takes one event at a time and
/// has neither precondition nor limit. So do those in different branches of a fan-out, unless branches open in branches
/// or a failure waits for all of them. None do in a workflow with a step that takes a
/// [`StepFailed`](workflow_core::StepFailed), which holds the number of an execution; nor where a step takes a
/// [`Gather`](workflow_core::Gather), which holds the numbers of branches, and several fan-outs may open. A step that
/// takes a [`RunInfo`](workflow_core::RunInfo) sees the number of its own execution and the positions of the events
/// that it is bound to, and with [`Children`](workflow_core::Children) that number: events that such a step takes
/// commute with no other events, and where several fan-outs may open none do. All else that a `RunInfo` holds is the same
/// in every order. What ends the
/// run, be it because a precondition fails or the run comes to a limit, or fails, commutes with nothing, nor does the passing of time, nor anything beside an injectable of your own; in doubt
/// operations do not.
///
/// What counts is what the run's own steps can tell. An assertion on the log itself, as on the order of
/// [`emitted`](TestRun::emitted) or [`displayed`](TestRun::displayed) values, of
/// [executions](TestRun::assert_order) or in the [transcript](TestRun::transcript), can tell more:
/// [`every_order`](Self::every_order) tries all for it.
///
/// A workflow, a stand-in or a reply that shares state in any other way, as in a `Mutex` among its fields, has
/// differences that cannot be seen here: [`every_order`](Self::every_order) tries all. What a step does between two
/// operations is never interleaved.
///
/// # What it needs
/// Steps that do the same each time: what depends on a clock, on chance or on other threads is
/// [replaced](crate::ScenarioOf::replace). That goes for [`blocking`](workflow_core::blocking()) and tokio's
/// `spawn_blocking` too: a run that waits for another thread looks as if nothing in it could go on. A [`Mock`](crate::Mock) is refused, since one test cannot answer in every
/// order. Each run has a tokio runtime of its own with a single thread and virtual time, so that an exploration takes
/// place in a plain `#[test]`. A step that computes for ever is not noticed, nor is a precondition, or a task that a step
/// has spawned, that does nothing but yield: the exploration hangs.
///
/// # Cost
/// A run per order, and some that are given up when they prove equivalent to others, or when nothing comes of time: 20
/// runs per order at most. Finding
/// which operations can change places is cubic in the operations of a run, which are 4,096 at most.
#[must_use = "an exploration begins with `assert` or `survey`"]
pub struct Explore<F> {
    scenario: F,
    orders: u64,
    seed: u64,
    replay: Option<Order>,
    reduction: Reduction,
    durable: bool,
}

/// What an assertion may return: `bool`, or nothing if it panics where it does not hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether an assertion holds",
    note = "return `bool`, or nothing and panic if it does not hold"
)]
pub trait Verdict {
    /// Whether it holds.
    fn holds(self) -> bool;
}

impl Verdict for bool {
    fn holds(self) -> bool {
        self
    }
}

impl Verdict for () {
    fn holds(self) -> bool {
        true
    }
}

impl<W: Workflow, F: Fn() -> Start<W>> Explore<F> {
    /// At most so many orders are tried one after the other; if there are more, as many again are tried at random. 0 is
    /// taken as 1. Default: 1,000.
    pub fn orders(self, most: u64) -> Self {
        Self { orders: most.max(1), ..self }
    }

    /// The seed of what is tried at random: the same one, the same orders. Default: 0.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Tries this order only: what a failure said to replay with.
    ///
    /// # Panics
    /// If it is no order: numbers with dots between them.
    pub fn replay(self, order: &str) -> Self {
        let replay = order.parse();
        let replay =
            replay.unwrap_or_else(|error| panic!("`{order}` is not an order such as `0.2.1`: {error}"));
        Self { replay: Some(replay), ..self }
    }

    /// Tries orders too that cannot be told apart as far as is known: for a workflow that shares state in other ways
    /// than by events and contexts. There are as many as the factorial of what is concurrent.
    pub fn every_order(self) -> Self {
        Self { reduction: Reduction::Off, ..self }
    }

    /// Gives the run a store of journals whose confirmations may come at any time: each is an operation, beside
    /// completions, arrivals and the passing of time.
    ///
    /// What follows from an event begins once the store has confirmed it, and the batches that come while a write is
    /// under way share the next one. So with a store there are orders that there are not without: a run may end before
    /// a step begins whose event is in its log. The store keeps journals in memory and takes the place of the engine's.
    /// It confirms the run's beginning, and what child runs write, at once. A timer or a reply comes while a write
    /// waits to be confirmed if the run has said before what it waits for, and then only.
    ///
    /// Confirmations commute with what steps do to contexts, and with nothing else; nor do completions and arrivals
    /// commute with each other then, since what shares a write depends on their order. There are about as many orders
    /// as without reduction, several times over: for small scenarios.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::{Scenario, explore};
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Ordered;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Charged;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # struct Packed;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Sent;
    ///
    /// struct Orders;
    ///
    /// #[workflow]
    /// impl Orders {
    ///     #[step]
    ///     async fn charge(&self, _: &Ordered) -> Charged { Charged }
    ///
    ///     #[step]
    ///     async fn note(&self, _: &Charged) {}
    ///
    ///     #[step]
    ///     async fn pack(&self, _: &Ordered, _: &Charged) -> Sent { Sent }
    /// }
    ///
    /// let orders = || Scenario::new(Orders).start(Ordered);
    /// let explored = explore(orders).durable().assert(|run| run.executions("pack") == 1);
    /// assert!(explored.is_exhaustive() && explored.tried() > explore(orders).survey().tried());
    /// ```
    pub fn durable(self) -> Self {
        Self { durable: true, ..self }
    }

    /// Tries orders until the assertion does not hold for one. The run has ended, or waits for something that is not in
    /// the scenario.
    ///
    /// # Panics
    /// If the assertion is `false` or panics: with its message, the smallest order found for which it does, in words
    /// and in the form that [`replay`](Self::replay) takes, what the run did, and the seed. An order is small if it
    /// departs for a short time only, and little, from each operation going next that was ready first; at most 500 runs
    /// are spent on making it smaller, and fewer on a run of many operations. An assertion that panics is heard once for
    /// each of them.
    ///
    /// In the same way for a run that does not come to an end, whatever the assertion: if it has more than 4,096
    /// operations, if nothing can go on and nothing comes of a year of virtual time, if one call of a step is polled
    /// 100,000 times, or if a reply panics. Also as [`survey`](Self::survey) does.
    pub fn assert<V: Verdict>(self, holds: impl Fn(&TestRun<W>) -> V) -> Explored {
        let mut found = None;
        let explored = self.walk(|played| match failure(played, &holds) {
            Some(failing) => {
                found = Some(failing);
                ControlFlow::Break(())
            }
            None => ControlFlow::Continue(()),
        });
        if let Some(found) = found {
            self.refute(found, &explored, &holds);
        }
        explored
    }

    /// Tries orders and tells what came of them.
    ///
    /// # Panics
    /// If a run does not come to an end, as [`assert`](Self::assert) does then. If a run cannot be started. If a run that
    /// goes the same way as one before does not do the same. If an order to
    /// replay does not fit. If a step is mocked. If it is called where a runtime is, as in a `#[tokio::test]`.
    pub fn survey(self) -> Explored {
        self.assert(|_| ())
    }

    /// What the steps take an interest in, in a scenario that is not run.
    fn interest(&self) -> Arc<Interest> {
        let start = (self.scenario)();
        if let Some(step) = start.cast().mocked() {
            panic!("`{step}` is mocked: a test cannot answer by hand in every order; use `replace`");
        }
        Arc::new(Interest::of::<W>(self.durable, |step| start.cast().fails_first(step)))
    }

    fn walk(&self, mut visit: impl FnMut(&Played<W>) -> ControlFlow<()>) -> Explored {
        assert!(
            tokio::runtime::Handle::try_current().is_err(),
            "an exploration has runtimes of its own: call it in a plain `#[test]`"
        );
        let interest = self.interest();
        let mut walk = Walk::new(&self.scenario, &interest, self.reduction != Reduction::Off, &mut visit);
        // A break has been noted by whoever broke.
        let _ = match &self.replay {
            Some(order) => walk.replay(order),
            None => match walk.systematically(Search::new(&interest, self.reduction), self.orders) {
                ControlFlow::Continue(false) => walk.at_random(self.seed, self.orders),
                _ => ControlFlow::Continue(()),
            },
        };
        walk.explored
    }

    fn refute<V: Verdict>(
        &self,
        found: Failing,
        explored: &Explored,
        holds: &impl Fn(&TestRun<W>) -> V,
    ) -> ! {
        let interest = self.interest();
        let again = |choices: &[usize]| play((self.scenario)(), &interest, &mut Replay::loose(choices));
        let smallest = match self.replay {
            Some(_) => found,
            None => shrink(found, |choices| failure(&again(choices), holds)),
        };
        let played = again(smallest.order.choices());
        let (words, order) = (words(&played.moments), &smallest.order);
        let again = failure(&played, holds).is_some_and(|again| again.order == *order);
        assert!(again, "{}", NotAgain { message: &smallest.message, words: &words, order });
        // The testkit's own assertions have said it already.
        let transcript = played.run.as_ref().map(|run| shortened(&run.transcript()));
        let transcript = transcript.filter(|transcript| !smallest.message.contains(transcript));
        let refuted = Refuted {
            message: &smallest.message,
            words: &words,
            transcript: transcript.as_deref(),
            explored,
            seed: self.seed,
            order,
        };
        panic!("{refuted}")
    }
}

/// What the assertion says of a run, if it does not hold for it.
fn failure<W: Workflow, V: Verdict>(
    played: &Played<W>,
    holds: &impl Fn(&TestRun<W>) -> V,
) -> Option<Failing> {
    let failing =
        |message| Some(Failing { order: played.order(), operations: played.moments.len(), message });
    if let Some(broken) = &played.broken {
        return failing(broken.clone());
    }
    let run = played.run.as_ref()?;
    match catch_unwind(AssertUnwindSafe(|| holds(run).holds())) {
        Ok(true) => None,
        Ok(false) => failing("the assertion is false".to_owned()),
        Err(panic) => failing(panic_message(panic)),
    }
}

impl<F> fmt::Debug for Explore<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { orders, seed, replay, durable, .. } = self;
        f.debug_struct("Explore")
            .field("orders", orders)
            .field("seed", seed)
            .field("replay", replay)
            .field("durable", durable)
            .finish_non_exhaustive()
    }
}
