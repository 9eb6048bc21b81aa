//! Killing the process of a scenario at every append to its store, and going on from what is left. This file owns what
//! a test says and which crashes are tried; the store that goes down is in `store`, a process from its start to its end
//! in `life`, what is compared in `compare`, and what is said of it in `report`.

use std::fmt;
use std::future::IntoFuture;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use workflow_core::{EventStore, Workflow};

use crate::explore::panic_message;
use crate::transcript::shortened;
use crate::{Start, TestRun, Verdict};

mod compare;
mod confirm;
mod elsewhere;
mod life;
mod promises;
mod report;
mod store;

use compare::{Scope, Sum, rewritten};
use elsewhere::{Keeper, unfaithful};
use life::{End, World};
use report::NotSurvived;
use store::{Crash, Lot};

pub use confirm::Confirms;
pub use report::Crashes;
pub use store::CrashStore;

/// How many pairs of crashes are tried, unless the test says otherwise.
const PAIRS: u64 = 100;

/// Runs a scenario, kills its process at every append to its store, goes on with the run in a new one, and compares
/// what it comes to with the run that nobody interrupted.
///
/// The closure makes the scenario anew for each process, and gives the store that it is handed to the engine. It stands
/// for what a program does when it is started, so that what the workflow keeps in its fields is as new as after a
/// restart.
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_testkit::{Scenario, crash_everywhere};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Ordered { cents: u64 }
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(request, reply = bool)]
/// # struct Approve { cents: u64 }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Charged { cents: u64 }
///
/// struct Orders;
///
/// #[workflow]
/// impl Orders {
///     #[step]
///     async fn ask(&self, order: &Ordered) -> Approve { Approve { cents: order.cents } }
///
///     #[step]
///     async fn charge(&self, approval: &Reply<Approve>) -> Charged {
///         Charged { cents: if **approval { approval.request().cents } else { 0 } }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let crashes = crash_everywhere(|store| {
///     Scenario::new(Orders)
///         .engine(|engine| engine.store(store))
///         .reply(|approve: &Approve| approve.cents < 1_000)
///         .start(Ordered { cents: 70 })
/// });
/// let survived = crashes.assert(|run| run.executions("charge") == 1).await;
/// assert_eq!(survived.to_string(), "survived 10 crashes at 5 appends, and 35 pairs of crashes");
/// # }
/// ```
pub fn crash_everywhere<W, F>(scenario: F) -> CrashEverywhere<W, F>
where
    W: Workflow,
    F: Fn(CrashStore) -> Start<W> + Send + 'static,
{
    CrashEverywhere {
        scenario,
        open: None,
        asserted: Vec::new(),
        scope: Scope::Everything,
        pairs: PAIRS,
        confirms: Confirms::ALL.to_vec(),
    }
}

/// Crashes that are about to be tried. Awaiting it tries them, and says how many there were.
///
/// # What is tried
/// The store is given writes, of one batch of events or of several, and after each a run can be gone on with. For each
/// write of the run and its child runs the process is killed twice: before the write is kept, as if in the middle of it,
/// since a write is kept as a whole or not at all; and after it is kept, but before anybody hears of that. Which batches
/// share a write depends on when the store confirms: so all this is tried with a store that confirms at once, with one
/// that has a write for each completion of a step, and with stores that [confirm late](Confirms), in step with other
/// runs and out of step, unless the uninterrupted run gives the store the same writes as in a way that was tried
/// before. A store that confirms late goes down when it would have confirmed. Contexts outlive the process,
/// and virtual time goes on where it was. In the new process the run is [attached to](workflow_core::Engine::attach),
/// all others of the store are [resumed](workflow_core::Engine::resume_open_runs), and what is left of the script goes
/// on: what is sent, unless the journal has it, at its time since the beginning; replies to what is open. A run whose
/// beginning was lost is started anew. Then pairs of crashes, of which the second comes at an append of the new process:
/// at most [so many](Self::pairs), spread over all of them.
///
/// In each process nothing may begin that follows from an event which the store has not confirmed, and no observer may
/// hear of one.
///
/// # What is compared
/// Each resumed run is compared with the uninterrupted one whose store confirms in the same way: status, output or error, the events of the log without their order, how often each step was executed, and how each
/// child run ended with which events; and that journals still begin with what they were at the crash.
/// [`comparing_outcomes`](Self::comparing_outcomes) compares less, for a workflow whose log depends on when something
/// happens: a step that was interrupted begins again, and takes its time once more. A value that is drawn at random or
/// made of a clock of its own is another one each time: replace the step that makes it.
///
/// # Panics
/// Awaiting it panics if a resumed run comes to something else, or an assertion does not hold for it: with the
/// append, the end of the journal at the crash, the difference, and what both runs did. Also if a run does not end, as
/// [`Start`] does, if a step is mocked, since a test cannot answer by hand in every process, or if the engine was not
/// given the store.
///
/// # Cost
/// A run for each of five ways of confirming, of which two are left out where there are no child runs; two runs for each
/// crash, of which there are two for each write in each way that has writes of its own; and three for each pair. Each on a thread and a runtime that is neither the test's nor any
/// other scenario's.
#[must_use = "nothing is tried before it is awaited"]
pub struct CrashEverywhere<W: Workflow, F> {
    scenario: F,
    /// Makes the stores that keep what the scenarios are given; none if they are kept in memory.
    open: Option<Open>,
    asserted: Vec<Assertion<W>>,
    scope: Scope,
    pairs: u64,
    confirms: Vec<Confirms>,
}

/// Makes a user's store.
type Open = Box<dyn Fn() -> Keeper + Send>;

/// Whether something holds for a run.
type Assertion<W> = Box<dyn Fn(&TestRun<W>) -> bool + Send>;

impl<W: Workflow, F> CrashEverywhere<W, F> {
    /// Asserts something of the uninterrupted run and of every resumed one: it returns `bool`, or nothing if it panics
    /// where it does not hold.
    ///
    /// What a [`TestRun`] knows of the report holds for the whole run, and what it has seen only for what went on after
    /// the last crash: its transcript, what was [displayed](TestRun::displayed) and [emitted](TestRun::emitted). A run
    /// that waits does not go on any more.
    pub fn assert<V: Verdict>(mut self, holds: impl Fn(&TestRun<W>) -> V + Send + 'static) -> Self {
        self.asserted.push(Box::new(move |run| holds(run).holds()));
        self
    }

    /// Compares status and output, or error, and nothing else: for a workflow whose log depends on the order or the
    /// times in which its steps end.
    pub fn comparing_outcomes(self) -> Self {
        Self { scope: Scope::Outcome, ..self }
    }

    /// Keeps the journals in a store of your own: a new one, which has to be empty, is opened for each crash, or pair of
    /// crashes, that is tried, and once for the run that nobody interrupts. Resumed runs read what it has. By default
    /// journals are kept in memory.
    ///
    /// A crash is one of the process that drives runs. The store is used on after it: it is given the batch that
    /// was kept, and not the one that was lost, and is idle when the next process begins. That it has what it was given
    /// is compared in the end. Its calls are made one after the other for writes, on threads that may block, with a tokio
    /// runtime at hand; virtual time stands still meanwhile.
    ///
    /// ```
    /// use workflow_core::MemoryStore;
    /// # use workflow_core::prelude::*;
    /// # use workflow_testkit::{Scenario, crash_everywhere};
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Ordered { cents: u64 }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Charged { cents: u64 }
    /// # struct Orders;
    /// # #[workflow]
    /// # impl Orders {
    /// #     #[step]
    /// #     async fn charge(&self, order: &Ordered) -> Charged { Charged { cents: order.cents } }
    /// # }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let crashes = crash_everywhere(|store| {
    ///     Scenario::new(Orders).engine(|engine| engine.store(store)).start(Ordered { cents: 70 })
    /// });
    /// assert!(crashes.on(MemoryStore::default).await.once() > 0);
    /// # }
    /// ```
    pub fn on<S: EventStore>(self, open: impl Fn() -> S + Send + 'static) -> Self {
        Self { open: Some(Box::new(move || Arc::new(open()))), ..self }
    }

    /// At most so many pairs of crashes are tried, in all ways of confirming together. Default: 100.
    pub fn pairs(self, most: u64) -> Self {
        Self { pairs: most, ..self }
    }

    /// Tries these ways of confirming, in this order, and no others: fewer for a scenario of many writes. Default:
    /// [all](Confirms::ALL). The first one is always tried, and of the others those that make a difference. None are as
    /// [`Confirms::AtOnce`] alone.
    ///
    /// ```
    /// # use workflow_core::prelude::*;
    /// # use workflow_testkit::{Confirms, Scenario, crash_everywhere};
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Ordered { cents: u64 }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Charged { cents: u64 }
    /// # struct Orders;
    /// # #[workflow]
    /// # impl Orders {
    /// #     #[step]
    /// #     async fn charge(&self, order: &Ordered) -> Charged { Charged { cents: order.cents } }
    /// # }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let crashes = crash_everywhere(|store| {
    ///     Scenario::new(Orders).engine(|engine| engine.store(store)).start(Ordered { cents: 70 })
    /// });
    /// assert_eq!(crashes.confirming([Confirms::Late]).await.once(), 4);
    /// # }
    /// ```
    pub fn confirming(self, ways: impl IntoIterator<Item = Confirms>) -> Self {
        let mut confirms: Vec<_> = ways.into_iter().collect();
        if confirms.is_empty() {
            confirms.push(Confirms::AtOnce);
        }
        Self { confirms, ..self }
    }
}

impl<W: Workflow, F: Fn(CrashStore) -> Start<W>> CrashEverywhere<W, F> {
    /// Tries them all.
    ///
    /// # Errors
    /// What is wrong, in full sentences.
    fn run(&self) -> Result<Crashes, String> {
        let wholes = self.wholes()?;
        let (mut crashes, mut pairs) = (Crashes::default(), Vec::new());
        for whole in &wholes {
            crashes.appends += whole.answered;
            for first in whole.crashes() {
                let Some(appends) = self.try_out(whole, &[first])? else { continue };
                crashes.once += 1;
                pairs.extend((1..=appends).map(|at| {
                    // Each is as likely as the other to be among those that are tried.
                    let batch = Lot::BOTH[usize::from((at + u64::from(first.batch == Lot::Lost)) % 2 == 0)];
                    (whole, [first, Crash { at, batch }])
                }));
            }
        }
        for (whole, pair) in spread(&pairs, self.pairs) {
            crashes.twice += u64::from(self.try_out(whole, &pair)?.is_some());
        }
        Ok(crashes)
    }

    /// The uninterrupted runs: one for each way of confirming that makes a difference.
    fn wholes(&self) -> Result<Vec<Whole>, String> {
        let mut wholes: Vec<Whole> = Vec::new();
        for confirms in &self.confirms {
            let is_alone = wholes.first().is_some_and(|whole| whole.runs == 1);
            if is_alone && confirms.is_about_others() {
                continue;
            }
            let whole = self.uninterrupted(*confirms)?;
            if wholes.iter().all(|before| before.writes != whole.writes) {
                wholes.push(whole);
            }
        }
        Ok(wholes)
    }

    /// A store for the processes that follow each other.
    fn empty(&self, confirms: Confirms) -> CrashStore {
        CrashStore::kept_by(self.open.as_ref().map(|open| open()), confirms)
    }

    fn uninterrupted(&self, confirms: Confirms) -> Result<Whole, String> {
        let whole = self.uncut(confirms);
        whole.map_err(
            |what| if confirms == Confirms::AtOnce { what } else { format!("where {confirms}: {what}") },
        )
    }

    fn uncut(&self, confirms: Confirms) -> Result<Whole, String> {
        let store = self.empty(confirms);
        let start = (self.scenario)(store.clone());
        if let Some(step) = start.cast().mocked() {
            return Err(format!(
                "`{step}` is mocked: a test cannot answer by hand in every process; use `replace`"
            ));
        }
        let mut world = World::with(store.clone());
        let End::Settled(run) = world.live(start)? else { return Err("the store is down".to_owned()) };
        let appends = store.appends();
        if appends == 0 {
            return Err("the scenario keeps no journal in the store that it was given: \
                        add `.engine(|engine| engine.store(store))`"
                .to_owned());
        }
        if let Some(unfaithful) = unfaithful(&store) {
            return Err(format!("without a crash: the store has not what it was given:\n{unfaithful}"));
        }
        self.asserts(&run).map_err(|message| format!("without a crash: {message}"))?;
        Ok(Whole {
            confirms,
            sum: Sum::of(&run, &store),
            appends,
            answered: appends - store.turns(|turns| turns.len()) as u64,
            writes: store.writes(),
            runs: store.kept_runs().len(),
            transcript: shortened(&run.transcript()),
        })
    }

    /// Crashes, goes on, and compares; says how many appends the last process had, or nothing if it did not come so far
    /// that all of these could happen.
    fn try_out(&self, whole: &Whole, crashes: &[Crash]) -> Result<Option<u64>, String> {
        let (mut world, mut at_crash) = (World::default(), self.empty(whole.confirms));
        for crash in crashes.iter().copied().map(Some).chain([None]) {
            world.store = at_crash.restarted(crash);
            let fails = |what: &str, run| whole.not_survived(crashes, &at_crash, what, run);
            let lived = world.live((self.scenario)(world.store.clone()));
            if let End::Settled(run) = lived.map_err(|what| fails(&what, None))? {
                let judged = self.judge(whole, &at_crash, &world.store, &run);
                judged.map_err(|what| fails(&what, Some(&*run)))?;
                return Ok(crash.is_none().then(|| world.store.appends()));
            }
            at_crash = world.store.clone();
        }
        Ok(None)
    }

    /// Whether a run came to what it has to.
    fn judge(
        &self,
        whole: &Whole,
        at_crash: &CrashStore,
        store: &CrashStore,
        run: &TestRun<W>,
    ) -> Result<(), String> {
        if let Some(rewritten) = rewritten(at_crash, store) {
            return Err(format!("it has another journal:\n{rewritten}"));
        }
        if let Some(unfaithful) = unfaithful(store) {
            return Err(format!("its store has not what it was given:\n{unfaithful}"));
        }
        match whole.sum.difference(&Sum::of(run, store), self.scope) {
            Some(difference) => Err(format!("it comes to something else:\n{difference}")),
            None => self.asserts(run),
        }
    }

    fn asserts(&self, run: &TestRun<W>) -> Result<(), String> {
        let holds = || self.asserted.iter().all(|holds| holds(run));
        match catch_unwind(AssertUnwindSafe(holds)) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the assertion is false".to_owned()),
            Err(panic) => Err(panic_message(panic)),
        }
    }
}

/// The run that nobody interrupted.
struct Whole {
    /// When its store confirmed.
    confirms: Confirms,
    sum: Sum,
    appends: u64,
    /// How many of them the store had answered when the run settled. No process goes down with another.
    answered: u64,
    /// A digest of each write.
    writes: Vec<u64>,
    /// How many runs its store has, child runs included.
    runs: usize,
    transcript: String,
}

impl Whole {
    /// The crashes that are tried by themselves.
    fn crashes(&self) -> impl Iterator<Item = Crash> + use<> {
        (1..=self.appends).flat_map(|at| Lot::BOTH.map(|batch| Crash { at, batch }))
    }

    fn not_survived<W: Workflow>(
        &self,
        crashes: &[Crash],
        at_crash: &CrashStore,
        what: &str,
        run: Option<&TestRun<W>>,
    ) -> String {
        let resumed = run.map(|run| shortened(&run.transcript()));
        let records = at_crash.down().map_or_else(Vec::new, |run| at_crash.journal(&run));
        NotSurvived {
            what,
            crashes,
            appends: self.appends,
            confirms: self.confirms,
            records: &records,
            whole: &self.transcript,
            resumed: resumed.as_deref(),
        }
        .to_string()
    }
}

/// At most so many of these, from the first to the last.
fn spread<T: Copy>(all: &[T], most: u64) -> impl Iterator<Item = T> {
    let step = (all.len() as u64).div_ceil(most.max(1)).max(1);
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    all.iter().copied().step_by(step).take(most)
}

impl<W, F> IntoFuture for CrashEverywhere<W, F>
where
    W: Workflow,
    F: Fn(CrashStore) -> Start<W> + Send + 'static,
{
    type Output = Crashes;
    type IntoFuture = BoxFuture<'static, Crashes>;

    fn into_future(self) -> BoxFuture<'static, Crashes> {
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            let thread = std::thread::Builder::new().name(format!("crashes of {}", W::TABLE.name()));
            let thread = thread.spawn(move || drop(tell.send(self.run())));
            match (told.await, thread) {
                (Ok(Ok(crashes)), _) => crashes,
                (Ok(Err(what)), _) => panic!("{what}"),
                (Err(_), Ok(thread)) => go_on_with_panic(thread),
                (Err(_), Err(error)) => panic!("no thread for a scenario: {error}"),
            }
        })
    }
}

/// Goes on with what the closure that makes the scenario panicked with.
fn go_on_with_panic(thread: JoinHandle<()>) -> ! {
    match thread.join() {
        Err(panic) => std::panic::resume_unwind(panic),
        Ok(()) => panic!("the thread of the scenario is gone"),
    }
}

impl<W: Workflow, F> fmt::Debug for CrashEverywhere<W, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asserted, scope, pairs, confirms, .. } = self;
        f.debug_struct("CrashEverywhere")
            .field("workflow", &W::TABLE.name())
            .field("asserted", &asserted.len())
            .field("scope", scope)
            .field("pairs", pairs)
            .field("confirms", confirms)
            .finish_non_exhaustive()
    }
}
