//! A run as its journal alone tells of it: without its workflow, an engine or a runtime. The records are told to a
//! scheduler as when a run goes on (`replay`), and then what it came to is looked at instead of gone on with.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;

use super::commit::Committer;
use super::drive::{Run, RunLimits};
use super::held_state::HeldState;
use super::view::View;
use super::waiting::Deferred;
use super::{Common, Host, RunExtras, RunReport, RunShared, RunStatus};
use crate::clock::{Clock, EngineClock};
use crate::draw::Graph;
use crate::error::RecordedRunError;
use crate::explain::Explanation;
use crate::id::RunId;
use crate::observe::Observers;
use crate::store::{JOURNAL_FORMAT, Position, Record};
use crate::table::DependencyTable;

/// A run as its records tell of it: what it did, why, and where it stands, without the program that wrote them.
///
/// For the tools of stores, front ends and tests. Nothing runs, nothing is written, and no runtime is needed. It is a
/// look at one moment: a run that goes on is made anew of its records then.
///
/// # What is known
/// - Of a run that has ended, what [`RunHandle::report`](crate::RunHandle::report) and
///   [`explain`](crate::RunHandle::explain) said.
/// - Of one that has not, where it stands when its journal ends: it [waits](RunStatus::Waiting), or is
///   [running](RunStatus::Running) and somebody drives it, or nobody does any more. Executions that had not ended are
///   shown as running, times up to the last record.
/// - Events by their names and as JSON: [`LoggedEvent::event`](crate::LoggedEvent::event) has the name,
///   [`LoggedEvent::value`](crate::LoggedEvent::value) only [`to_json`](crate::AnyEvent::to_json). What was never
///   serialised, in records that come straight from a [`MemoryStore`](crate::MemoryStore), is the value itself.
///
/// # What is not
/// - What is in no journal: displays, contexts, doc comments, and the limits of the engine. What waits for its turn by
///   the `concurrency` of its step waits; what an engine's limit held back is shown as running. An execution that ran
///   when the run ended is shown as dropped, whatever it would have left. When executions began is told only by the
///   records around that.
/// - Parameters that no event fills, which are not among the inputs of an execution.
/// - How child runs came out, which their own journals tell: they are listed as running.
///
/// # When the workflow has changed
/// The records are read by the last table among them, which is the one that the run last went on by. That it fits what
/// was written before was checked then (S41). Records that do not fit it are
/// [`Contradiction`](RecordedRunError::Contradiction)s, and nothing is made of them.
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_core::{MemoryStore, RecordedRun, RunOptions, RunStatus};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet { name: String }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeting(String);
/// # struct Greeter;
/// # #[workflow]
/// # impl Greeter {
/// #     #[step]
/// #     async fn greet(&self, greet: &Greet) -> Greeting {
/// #         Greeting(format!("Hello, {}!", greet.name))
/// #     }
/// # }
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Greeter).store(MemoryStore::default()).build()?;
/// let options = RunOptions::new().id("r-1");
/// let run = engine.start_with::<Greeter>(Greet { name: "Ada".into() }, options).await?;
/// run.outcome().await?;
///
/// let records = engine.history(run.id()).await?;
/// let recorded = RecordedRun::of(run.id(), &records)?;
/// assert_eq!(recorded.status(), RunStatus::Completed);
/// assert_eq!(recorded.report().executions("greet"), 1);
/// assert_eq!(recorded.explain().to_string(), run.explain().await?.to_string());
///
/// // Without its end the run is on its way.
/// let recorded = RecordedRun::of(run.id(), &records[..2])?;
/// assert_eq!(recorded.status(), RunStatus::Running);
/// # Ok(())
/// # }
/// ```
pub struct RecordedRun {
    state: HeldState,
    report: RunReport,
}

impl RecordedRun {
    /// Reads all records of a run, in their order, or the first so many to see it as it stood then. O(records) time and
    /// memory, with as much again for each event and step that they lead to.
    ///
    /// # Errors
    /// [`RecordedRunError`].
    pub fn of(run: &RunId, records: &[Record]) -> Result<Self, RecordedRunError> {
        check_format(run, records)?;
        let host = Arc::new(Host::of_table(Arc::new(last_table(run, records)?)));
        let shared = Arc::new(shared(run, &host, records)?);
        let mut replayed = Run::new(shared, host, RunLimits::default(), None, None);
        let contradiction = |difference| RecordedRunError::Contradiction { run: run.clone(), difference };
        let _ = replayed.resume(records).map_err(contradiction)?;
        let report = replayed.report_at_rest(records.last());
        Ok(Self { state: replayed.driver.committer.state.take(), report })
    }

    /// Where the run stands when its records end.
    pub fn status(&self) -> RunStatus {
        self.report.status
    }

    /// What the run did.
    pub fn report(&self) -> &RunReport {
        &self.report
    }

    /// Why each step of it ran, and why it did not. O(events + executions), and more for each step that never ran.
    pub fn explain(&self) -> Explanation {
        Explanation::of(&self.state.scheduler, &self.report)
    }

    /// The table that the records were read by. It has what decides how a run behaves, and no doc comments.
    pub fn table(&self) -> &DependencyTable {
        self.state.table()
    }

    /// The drawing of its table with the run laid over it.
    pub fn graph(&self) -> Graph {
        self.table().graph().with_report(&self.report)
    }
}

impl fmt::Debug for RecordedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedRun")
            .field("run", &self.report.run)
            .field("workflow", &self.report.workflow)
            .field("status", &self.report.status)
            .finish_non_exhaustive()
    }
}

impl Run {
    /// What a run did that stands where its journal ends, and is not gone on with.
    fn report_at_rest(&mut self, last: Option<&Record>) -> RunReport {
        let Committer { state, clock, .. } = &mut self.driver.committer;
        let ended = match last {
            Some(Record::RunEnded { status, .. }) => Some(*status),
            _ => state.end().map(RunStatus::from),
        };
        let Some(status) = ended else {
            let waits = state.scheduler.waits();
            let status = if waits { RunStatus::Waiting } else { RunStatus::Running };
            return View { status, deferred: Some(Deferred::default()), ..self.driver.view() }.report();
        };
        for execution in state.trace.running() {
            state.trace.dropped(execution, clock.now);
        }
        View { status, deferred: None, ..self.driver.view() }.report()
    }
}

/// Shows one time for ever.
struct Stopped(SystemTime);

impl Clock for Stopped {
    fn now(&self) -> SystemTime {
        self.0
    }

    fn sleep_until(&self, _: SystemTime) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

fn check_format(run: &RunId, records: &[Record]) -> Result<(), RecordedRunError> {
    let mut formats =
        records.iter().enumerate().filter_map(|(place, record)| Some((place, record.format()?)));
    let newer = formats.find(|(_, format)| *format > JOURNAL_FORMAT);
    newer.map_or(Ok(()), |(place, format)| {
        let position = Position::default().after(place);
        Err(RecordedRunError::NewerFormat { run: run.clone(), position, format, known: JOURNAL_FORMAT })
    })
}

/// The table by which the last records were written.
fn last_table(run: &RunId, records: &[Record]) -> Result<DependencyTable, RecordedRunError> {
    let mut tables = records.iter().enumerate().rev();
    let last = tables.find_map(|(place, record)| Some((place, record.table()?)));
    let (place, table) = last.ok_or_else(|| RecordedRunError::NoBeginning { run: run.clone() })?;
    let (run, position) = (run.clone(), Position::default().after(place));
    let shape = match table.shape() {
        Ok(shape) => shape,
        Err(source) => return Err(RecordedRunError::UnreadableTable { run, position, source }),
    };
    DependencyTable::from_shape(&shape).map_err(|source| RecordedRunError::UnsoundTable {
        run,
        position,
        source,
    })
}

/// What a run shares that has neither handles nor an engine.
fn shared(run: &RunId, host: &Host, records: &[Record]) -> Result<RunShared, RecordedRunError> {
    let opens = |record: &Record| matches!(record, Record::EventLogged { .. } | Record::RunEnded { .. });
    let (Some(Record::RunStarted { thread, metadata, parent, private_thread, timeout, .. }), true) =
        (records.first(), records.iter().any(opens))
    else {
        return Err(RecordedRunError::NoBeginning { run: run.clone() });
    };
    let last = records.iter().map(Record::at).max().unwrap_or(SystemTime::UNIX_EPOCH);
    let common = without_engine(Observers::start(Vec::new()), last);
    let (table, extras) =
        (Arc::clone(&host.table), RunExtras { metadata: metadata.clone(), ..RunExtras::default() });
    let shared = RunShared::new(run.clone(), Some(thread.clone()), *timeout, table, Arc::new(common), extras);
    Ok(shared.restored(*private_thread, *timeout).resumed(parent.clone()))
}

/// What runs share that have no engine. Their clock shows this time for ever.
pub(super) fn without_engine(observers: Observers, now: SystemTime) -> Common {
    Common { observers, ..Common::without_engine(EngineClock::new(Stopped(now))) }
}
