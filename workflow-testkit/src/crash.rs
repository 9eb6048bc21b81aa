//! Kills the process of a scenario at every append to its store, and resumes the run from the journal. This file owns
//! the API and the choice of crashes. `store` has the store that goes down, `life` one process from start to end,
//! `compare` the comparison, and `report` the messages.
//!
//! ```text
//! append          1     2     3
//! uninterrupted   ├─────┼─────┤ end       the result to compare with
//! first life      ├─────╳                 the store goes down at append 2, with or without keeping it
//! second life           ├─────┤ end       a new process resumes the run from the journal
//! ```

use std::fmt;
use std::future::IntoFuture;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use workflow_core::store::EventStore;

use crate::explore::panic_message;
use crate::subject::Tested;
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

/// The default number of pairs of crashes.
const PAIRS: u64 = 100;

/// Kills a scenario's process at every write to its store, and compares the resumed runs.
///
/// A write is one call of [`EventStore::append`]; printed results count appends.
///
/// Each resumed run continues in a new process and is compared with an uninterrupted run.
///
/// The closure makes a new scenario for each process, and gives the store that it receives to the engine. The closure
/// plays the part of a program's start, so the workflow's fields are fresh, as after a restart.
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
pub fn crash_everywhere<T, F>(scenario: F) -> CrashEverywhere<T, F>
where
    T: Tested,
    F: Fn(CrashStore) -> Start<T> + Send + 'static,
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

/// A crash test. Awaiting it tries the crashes and returns how many there were.
///
/// # What is tried
/// The store receives writes of one or several batches, and a run can be resumed after each. For each write of the run
/// and its child runs, the process is killed twice: before the store keeps the write, and after the store has kept it
/// but before any caller gets the confirmation. A write is kept completely or not at all.
///
/// The time of confirmations decides which batches share a write. So all this is tried with a store that confirms at
/// once, with one that writes each completion of a step separately, and with stores that [confirm late](Confirms), in
/// step with other runs and out of step. A way is skipped if the store would receive the same writes as in an earlier
/// one. A late store goes down at the time when it would have confirmed.
///
/// Contexts outlive the process, and virtual time continues. In the new process the run is [attached
/// to](workflow_core::Engine::attach), all others of the store are [resumed](workflow_core::Engine::resume_open_runs),
/// and the script continues: events that the journal does not have are sent at their times since the beginning, and
/// open requests get their replies. A run whose beginning was lost is started again. Then pairs of crashes are tried,
/// with the second crash at a write of the new process: at most [this many](Self::pairs), spread over all of them.
///
/// In each process, no work may begin and no observer may see an event before the store has confirmed what they follow
/// from.
///
/// # What is compared
/// Each resumed run is compared with the uninterrupted one whose store confirms in the same way: status, output or
/// error, the events of the log regardless of order, the number of executions per step, and the end and events of each
/// child run. Journals must still begin with their content at the crash.
/// [`comparing_outcomes`](Self::comparing_outcomes) compares less, for a workflow whose log depends on times: an
/// interrupted step runs again and takes its time once more. Random values and values of a private clock differ each
/// time: replace the step that makes them.
///
/// # Panics
/// Awaiting panics if a resumed run has a different result, or if an assertion fails for it. The message contains the
/// write, the end of the journal at the crash, the difference, and what both runs did. It also panics if a run does
/// not end, as [`Start`] does; if a step is mocked, because a test cannot answer in every process; or if the engine did
/// not get the store.
///
/// # Cost
/// One run for each of five ways of confirming, of which two are skipped without child runs; two runs for each crash,
/// with two crashes for each write of each way that has writes of its own; and three runs for each pair. Each run has
/// its own thread and runtime.
#[must_use = "nothing is tried before it is awaited"]
pub struct CrashEverywhere<T: Tested, F> {
    scenario: F,
    /// Opens the stores under the scenarios; `None` keeps journals in memory.
    open: Option<Open>,
    asserted: Vec<Assertion<T>>,
    scope: Scope,
    pairs: u64,
    confirms: Vec<Confirms>,
}

/// Makes a user's store.
type Open = Box<dyn Fn() -> Keeper + Send>;

/// Returns whether the assertion holds for a run.
type Assertion<T> = Box<dyn Fn(&TestRun<T>) -> bool + Send>;

impl<T: Tested, F> CrashEverywhere<T, F> {
    /// Checks an assertion on the uninterrupted run and on every resumed one.
    ///
    /// The assertion returns `bool`, or returns nothing and panics if it fails.
    ///
    /// The report of the [`TestRun`] covers the whole run. Its observations cover only the time after the last crash:
    /// its transcript, and the [displayed](TestRun::displayed) and [emitted](TestRun::emitted) events. A waiting run
    /// cannot be continued.
    pub fn assert<V: Verdict>(mut self, holds: impl Fn(&TestRun<T>) -> V + Send + 'static) -> Self {
        self.asserted.push(Box::new(move |run| holds(run).holds()));
        self
    }

    /// Compares only status and output or error.
    ///
    /// For a workflow whose log depends on order or times.
    pub fn comparing_outcomes(self) -> Self {
        Self { scope: Scope::Outcome, ..self }
    }

    /// Keeps the journals in your own store. Default: in memory.
    ///
    /// A new store, which must be empty, is opened for each crash or pair of crashes, and once for the uninterrupted
    /// run. Resumed runs read from it.
    ///
    /// Only the process that drives runs crashes. The store object is used again afterwards: it gets the batch that was
    /// kept, not the lost one, and is idle when the next process begins. At the end its content is compared with
    /// everything it was given. Writes are made one after the other. All calls are made on threads that may block,
    /// inside a tokio runtime; virtual time stands still meanwhile.
    ///
    /// ```
    /// use workflow_core::store::MemoryStore;
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

    /// Limits the number of pairs of crashes over all ways of confirming. Default: 100.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// use workflow_testkit::{Scenario, crash_everywhere};
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Ordered;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Sent;
    /// struct Orders;
    ///
    /// #[workflow]
    /// impl Orders {
    ///     /// Takes longer after a crash, because it runs again.
    ///     #[step]
    ///     async fn pack(&self, _order: &Ordered) -> Sent {
    ///         tokio::time::sleep(Duration::from_secs(60)).await;
    ///         Sent
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let crashes = crash_everywhere(|store| {
    ///     Scenario::new(Orders).engine(|engine| engine.store(store)).start(Ordered)
    /// });
    /// // Compares only how the runs end, and tries at most five pairs.
    /// let survived = crashes.comparing_outcomes().pairs(5).await;
    /// assert!(survived.once() > 0 && survived.twice() <= 5);
    /// # }
    /// ```
    pub fn pairs(self, most: u64) -> Self {
        Self { pairs: most, ..self }
    }

    /// Tries only these ways of confirming, in this order. Default: [all](Confirms::ALL).
    ///
    /// Use fewer ways for a scenario with many writes.
    ///
    /// The first way is always tried, and each of the others if it makes a difference. An empty list means
    /// [`Confirms::AtOnce`].
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

impl<T: Tested, F: Fn(CrashStore) -> Start<T>> CrashEverywhere<T, F> {
    /// Tries all crashes.
    ///
    /// # Errors
    /// Describes the problem in full sentences.
    fn run(&self) -> Result<Crashes, String> {
        let uninterrupted_runs = self.uninterrupted_runs()?;
        let (mut crashes, mut pairs) = (Crashes::default(), Vec::new());
        for whole in &uninterrupted_runs {
            crashes.appends += whole.answered;
            for first in whole.crashes() {
                let Some(appends) = self.crash_and_compare(whole, &[first])? else { continue };
                crashes.once += 1;
                pairs.extend((1..=appends).map(|at| {
                    // Both are equally likely to be chosen.
                    let batch = Lot::BOTH[usize::from((at + u64::from(first.batch == Lot::Lost)) % 2 == 0)];
                    (whole, [first, Crash { at, batch }])
                }));
            }
        }
        for (whole, pair) in spread(&pairs, self.pairs) {
            crashes.twice += u64::from(self.crash_and_compare(whole, &pair)?.is_some());
        }
        Ok(crashes)
    }

    /// The uninterrupted runs: one for each way of confirming that makes a difference.
    fn uninterrupted_runs(&self) -> Result<Vec<UninterruptedRun>, String> {
        let mut uninterrupted_runs: Vec<UninterruptedRun> = Vec::new();
        for confirms in &self.confirms {
            let is_alone = uninterrupted_runs.first().is_some_and(|whole| whole.runs == 1);
            if is_alone && confirms.is_about_others() {
                continue;
            }
            let whole = self.uninterrupted(*confirms)?;
            if uninterrupted_runs.iter().all(|before| before.writes != whole.writes) {
                uninterrupted_runs.push(whole);
            }
        }
        Ok(uninterrupted_runs)
    }

    /// An empty store for a sequence of processes.
    fn empty(&self, confirms: Confirms) -> CrashStore {
        CrashStore::kept_by(self.open.as_ref().map(|open| open()), confirms)
    }

    fn uninterrupted(&self, confirms: Confirms) -> Result<UninterruptedRun, String> {
        let whole = self.run_uninterrupted(confirms);
        whole.map_err(
            |what| if confirms == Confirms::AtOnce { what } else { format!("where {confirms}: {what}") },
        )
    }

    fn run_uninterrupted(&self, confirms: Confirms) -> Result<UninterruptedRun, String> {
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
        Ok(UninterruptedRun {
            confirms,
            sum: Sum::of(&run, &store),
            appends,
            answered: appends - store.turns(|turns| turns.len()) as u64,
            writes: store.writes(),
            runs: store.kept_runs().len(),
            transcript: shortened(&run.transcript()),
        })
    }

    /// Crashes, resumes and compares. Returns the number of appends of the last process, or `None` if a process ended
    /// before its crash.
    fn crash_and_compare(&self, whole: &UninterruptedRun, crashes: &[Crash]) -> Result<Option<u64>, String> {
        let (mut world, mut at_crash) = (World::default(), self.empty(whole.confirms));
        for crash in crashes.iter().copied().map(Some).chain([None]) {
            world.store = at_crash.restarted(crash);
            let fails = |what: &str, run| whole.not_survived(crashes, &at_crash, what, run);
            let lived = world.live((self.scenario)(world.store.clone()));
            if let End::Settled(run) = lived.map_err(|what| fails(&what, None))? {
                let judged = self.verify(whole, &at_crash, &world.store, &run);
                judged.map_err(|what| fails(&what, Some(&*run)))?;
                return Ok(crash.is_none().then(|| world.store.appends()));
            }
            at_crash = world.store.clone();
        }
        Ok(None)
    }

    /// Checks the result of a run.
    fn verify(
        &self,
        whole: &UninterruptedRun,
        at_crash: &CrashStore,
        store: &CrashStore,
        run: &TestRun<T>,
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

    fn asserts(&self, run: &TestRun<T>) -> Result<(), String> {
        let holds = || self.asserted.iter().all(|holds| holds(run));
        match catch_unwind(AssertUnwindSafe(holds)) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the assertion is false".to_owned()),
            Err(panic) => Err(panic_message(panic)),
        }
    }
}

/// The uninterrupted run.
struct UninterruptedRun {
    /// When its store confirmed.
    confirms: Confirms,
    sum: Sum,
    appends: u64,
    /// The writes that the store had answered when the run settled. No process goes down with a later one.
    answered: u64,
    /// A digest of each write.
    writes: Vec<u64>,
    /// The number of runs in its store, including child runs.
    runs: usize,
    transcript: String,
}

impl UninterruptedRun {
    /// The single crashes to try.
    fn crashes(&self) -> impl Iterator<Item = Crash> + use<> {
        (1..=self.appends).flat_map(|at| Lot::BOTH.map(|batch| Crash { at, batch }))
    }

    fn not_survived<T: Tested>(
        &self,
        crashes: &[Crash],
        at_crash: &CrashStore,
        what: &str,
        run: Option<&TestRun<T>>,
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

/// At most this many of the items, spread from the first to the last.
fn spread<T: Copy>(all: &[T], most: u64) -> impl Iterator<Item = T> {
    let step = (all.len() as u64).div_ceil(most.max(1)).max(1);
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    all.iter().copied().step_by(step).take(most)
}

impl<T, F> IntoFuture for CrashEverywhere<T, F>
where
    T: Tested,
    F: Fn(CrashStore) -> Start<T> + Send + 'static,
{
    type Output = Crashes;
    type IntoFuture = BoxFuture<'static, Crashes>;

    fn into_future(self) -> BoxFuture<'static, Crashes> {
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            let thread = std::thread::Builder::new().name("crashes of a scenario".to_owned());
            let thread = thread.spawn(move || drop(tell.send(self.run())));
            match (told.await, thread) {
                (Ok(Ok(crashes)), _) => crashes,
                (Ok(Err(what)), _) => panic!("{what}"),
                (Err(_), Ok(thread)) => resume_panic(thread),
                (Err(_), Err(error)) => panic!("no thread for a scenario: {error}"),
            }
        })
    }
}

/// Resumes the panic of the closure that makes the scenario.
fn resume_panic(thread: JoinHandle<()>) -> ! {
    match thread.join() {
        Err(panic) => std::panic::resume_unwind(panic),
        Ok(()) => panic!("the thread of the scenario is gone"),
    }
}

impl<T: Tested, F> fmt::Debug for CrashEverywhere<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asserted, scope, pairs, confirms, .. } = self;
        f.debug_struct("CrashEverywhere")
            .field("asserted", &asserted.len())
            .field("scope", scope)
            .field("pairs", pairs)
            .field("confirms", confirms)
            .finish_non_exhaustive()
    }
}
