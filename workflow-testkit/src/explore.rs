//! Runs a scenario in every order that makes a difference. This file owns the API; the submodules own orders and the
//! search for them.
//!
//! ```text
//! walk ─ one run after the other ─▶ play ─ drives one run, choice by choice
//!  ▲                                 │  hooks bring completions, context calls and confirmations to the gate
//!  │                                 │  quiet tells that nothing else can happen
//!  │                                 ▼
//! search ◀─ moments: the waiters ── gate ─▶ one operation continues
//!  │  footprint: which operations commute; races: which reversals make a difference
//!  └─▶ the next order
//! ```

use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::subject::Tested;
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

/// Runs a scenario in every order that makes a difference, up to a limit.
///
/// The closure makes a new scenario for each run. [`Explore`] documents what is tried. [`Explore::assert`] or
/// [`Explore::survey`] starts the exploration.
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
pub fn explore<T: Tested, F: Fn() -> Start<T>>(scenario: F) -> Explore<F> {
    Explore { scenario, orders: 1_000, seed: 0, replay: None, reduction: Reduction::Races, durable: false }
}

/// An exploration that has not started yet.
///
/// # What an order is made of
/// These are operations: an execution completes; a step or a precondition reads, writes or updates a key of a context;
/// an event or reply arrives from outside; time passes. A run continues until it needs such an operation, and then the
/// exploration chooses one.
///
/// Arrivals may come at any time, not only when the run waits. Events of [`send`](crate::ScenarioOf::send) keep their
/// order, like those of one client. Events of [`send_after`](crate::ScenarioOf::send_after) come in any order, as do
/// the [cancel](crate::ScenarioOf::cancel_after), [pauses](crate::ScenarioOf::pause_after) and, with a
/// [store](Self::durable), its confirmations. A reply, also
/// one of [`reply_after`](crate::ScenarioOf::reply_after), comes at any time after its request.
///
/// Here time means order, not duration. Time may pass whenever the run has a [timer](workflow_core::Timer) or an
/// expiring request, a step or a precondition waits for anything except its turn, an execution waits for its next
/// attempt, or a child run is active. The earliest timers fire first, until one of them has an effect, before or after
/// any other possible operation. So a step that sleeps for an hour may complete before one that does not sleep, and
/// before an event that is sent after a minute. But it never completes before a step that began to sleep at the same
/// time and for less.
///
/// While other operations are possible and the run has no timer, at most 1,000 sleeps in a row pass without an effect.
/// If that limit was reached, the exploration is not [exhaustive](Explored::is_exhaustive), and says so. If a step
/// waits for a sleep and an operation together, the sleep ends only when nothing else can be chosen. The same holds for
/// the run's [timeout](workflow_core::RunOptions::timeout) where nothing else lets time pass.
///
/// Each child run has one order. Only its operations on the context of a thread that it shares with the run are
/// explored. The [printed](Explored) result says if child runs were started.
///
/// # Which orders are left out
/// Two operations commute if swapping them makes no difference to the run. Of orders that differ only in such pairs,
/// one is tried.
///
/// - Operations on different keys commute, and so do reads.
/// - Completions and arrivals commute if no step can tell the order of their events. That is so if no step takes or
///   gathers events of both, or if a step takes one event at a time and has neither precondition nor limit.
/// - Completions and arrivals in different branches of a fan-out commute, unless branches open in branches or a failure
///   waits for all branches.
/// - Completions and arrivals never commute in a workflow with a step that takes a
///   [`StepFailed`](workflow_core::StepFailed), which contains the number of an execution, nor with a
///   [`Gather`](workflow_core::Gather), which contains the numbers of branches, if several fan-outs may open.
/// - A step with a [`RunInfo`](workflow_core::RunInfo) sees the number of its own execution and the sequence numbers
///   of its events; with [`Children`](workflow_core::Children) it sees that number. Events for such a step commute with no
///   other events, and where several fan-outs may open, none do. The rest of a `RunInfo` is the same in every order.
/// - A step of a run-time workflow counts as one with a `RunInfo` once its call was asked for
///   [`info`](workflow_core::signature::StepCall::info), `execution`, `scope` or `children`, and as one with an injectable
///   parameter of yours once its call was asked for the `engine`. What a precondition sees besides its inputs is unknown.
/// - Nothing commutes with an operation that ends the run or fails, also through a failing precondition or a limit, nor
///   with the passing of time, nor beside your own injectable parameters. In doubt, operations do not commute.
///
/// The reduction considers only differences that the run's own steps can see. An assertion on the log itself may see
/// more, such as the order of [`emitted`](TestRun::emitted) or [`displayed`](TestRun::displayed) values, of
/// [executions](TestRun::assert_order) or in the [transcript](TestRun::transcript). Use
/// [`every_order`](Self::every_order) for it.
///
/// The exploration cannot see state that a workflow, a stand-in or a reply shares in other ways, such as a `Mutex` in a
/// field. [`every_order`](Self::every_order) tries all orders for it. Code of a step between two operations is never
/// interleaved.
///
/// # What it needs
/// Steps must do the same each time: [replace](crate::ScenarioOf::replace) those that depend on a clock, on chance or
/// on other threads. That includes [`blocking`](workflow_core::blocking()) and tokio's `spawn_blocking`, because a run
/// that waits for another thread looks idle. A [`Mock`](crate::Mock) is refused, because one test cannot answer in
/// every order. Each run has its own single-threaded tokio runtime with virtual time, so an exploration runs in a plain
/// `#[test]`. A step that computes endlessly, or a precondition or spawned task that only yields, hangs the
/// exploration.
///
/// # Cost
/// One run per order, plus runs that are abandoned because they prove equivalent to others or because passing time has
/// no effect: at most 20 runs per order. The search for operations that commute is cubic in the operations of a run,
/// of which there are at most 4,096.
///
/// # Example
/// A survey lists the outcomes. Each outcome has an order, which `replay` runs alone:
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_testkit::{Scenario, explore};
/// # #[derive(Debug, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Wanted;
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Bought(u64);
/// /// Two stops: the first one in the log ends the run.
/// struct Race;
///
/// #[workflow]
/// impl Race {
///     #[step]
///     async fn acme(&self, _: &Wanted) -> Bought { Bought(74) }
///
///     #[step]
///     async fn brook(&self, _: &Wanted) -> Bought { Bought(69) }
/// }
///
/// let race = || Scenario::new(Race).start(Wanted);
/// let explored = explore(race).survey();
/// assert_eq!(explored.outcomes().len(), 2);
/// let cheap = explored.outcomes().find(|outcome| outcome.output() == Some("Bought 69")).unwrap();
/// let order = explored.order_of(cheap).unwrap();
/// explore(race).replay(&order).assert(|run| run.outcome().unwrap() == &Bought(69));
///
/// // With fewer orders than there are, others are drawn at random; the result estimates how many there are.
/// let some = explore(race).orders(1).seed(7).survey();
/// assert!(!some.is_exhaustive() && some.estimated_orders().is_some());
///
/// // Without reduction, orders are tried that no step can tell apart.
/// assert!(explore(race).every_order().survey().tried() >= explored.tried());
/// ```
#[must_use = "an exploration begins with `assert` or `survey`"]
pub struct Explore<F> {
    scenario: F,
    orders: u64,
    seed: u64,
    replay: Option<Order>,
    reduction: Reduction,
    durable: bool,
}

/// The return type of an assertion: `bool`, or nothing if the assertion panics on failure.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether an assertion holds",
    note = "return `bool`, or nothing and panic if it does not hold"
)]
pub trait Verdict {
    /// Returns whether the assertion holds.
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

impl<T: Tested, F: Fn() -> Start<T>> Explore<F> {
    /// Limits the number of orders tried systematically. Default: 1,000; 0 counts as 1.
    ///
    /// If there are more orders, the same number is tried at random.
    pub fn orders(self, most: u64) -> Self {
        Self { orders: most.max(1), ..self }
    }

    /// Sets the seed of random orders: the same seed gives the same orders. Default: 0.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Tries only this order, which a failure printed.
    ///
    /// # Panics
    /// Panics if the text is no order: numbers with dots between them.
    pub fn replay(self, order: &str) -> Self {
        let replay = order.parse();
        let replay =
            replay.unwrap_or_else(|error| panic!("`{order}` is not an order such as `0.2.1`: {error}"));
        Self { replay: Some(replay), ..self }
    }

    /// Tries all orders, including those that appear equivalent.
    ///
    /// For a workflow that shares state other than through events and contexts. The number of orders grows with the
    /// factorial of the concurrent operations.
    pub fn every_order(self) -> Self {
        Self { reduction: Reduction::Off, ..self }
    }

    /// Gives the run a store whose confirmations are operations too.
    ///
    /// Each confirmation may come at any time, beside completions, arrivals and the passing of time.
    ///
    /// Work that follows from an event begins once the store has confirmed it, and batches that arrive during a write
    /// share the next one. So there are orders that a run without a store does not have: a run may end before a step
    /// begins whose event is in its log. The store keeps journals in memory and replaces the engine's. It confirms the
    /// run's beginning, and writes of child runs, at once. While a write waits for confirmation, a timer or a reply
    /// comes only if the run has reported before what it waits for.
    ///
    /// Confirmations commute only with operations on contexts. Completions and arrivals do not commute with each other
    /// then, because their order decides which of them share a write. There are several times as many orders as without
    /// reduction: use it for small scenarios.
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

    /// Tries orders until the assertion fails for one.
    ///
    /// In each order, the run has ended, or waits for something outside the script.
    ///
    /// # Panics
    /// Panics if the assertion returns `false` or panics. The message contains the assertion's message, the smallest
    /// failing order found, in words and in the form for [`replay`](Self::replay), what the run did, and the seed. An
    /// order is small if it departs little, and for a short time, from taking operations as they become ready. The
    /// search for a smaller order takes at most 500 runs, and fewer for a run of many operations. A panicking assertion
    /// panics in each of them.
    ///
    /// It panics in the same way if a run does not end, whatever the assertion: if it has more than 4,096 operations,
    /// if it is stuck and a year of virtual time has no effect, if one call of a step is polled 100,000 times, or if a
    /// reply panics. It also panics where [`survey`](Self::survey) does.
    pub fn assert<V: Verdict>(self, holds: impl Fn(&TestRun<T>) -> V) -> Explored {
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

    /// Tries orders and returns their outcomes.
    ///
    /// # Panics
    /// Panics if a run does not end, as [`assert`](Self::assert) does; if a run cannot be started; if a run differs
    /// from an earlier one with the same choices; if an order to replay does not fit; if a step is mocked; or if called
    /// inside a runtime, such as in a `#[tokio::test]`.
    pub fn survey(self) -> Explored {
        self.assert(|_| ())
    }

    /// The interests of the steps, for a scenario that is not run.
    fn interest(&self) -> Arc<Interest> {
        let start = (self.scenario)();
        if let Some(step) = start.cast().mocked() {
            panic!("`{step}` is mocked: a test cannot answer by hand in every order; use `replace`");
        }
        Arc::new(Interest::of(start.subject(), self.durable, |step| start.cast().fails_first(step)))
    }

    fn walk(&self, mut visit: impl FnMut(&Played<T>) -> ControlFlow<()>) -> Explored {
        assert!(
            tokio::runtime::Handle::try_current().is_err(),
            "an exploration has runtimes of its own: call it in a plain `#[test]`"
        );
        let interest = self.interest();
        let mut walk = Walk::new(&self.scenario, &interest, self.reduction != Reduction::Off, &mut visit);
        // The visitor that stopped the search has recorded why.
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
        holds: &impl Fn(&TestRun<T>) -> V,
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
        // The testkit's own assertions already contain it.
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

/// The assertion's message about a run, if it fails.
fn failure<T: Tested, V: Verdict>(played: &Played<T>, holds: &impl Fn(&TestRun<T>) -> V) -> Option<Failing> {
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
