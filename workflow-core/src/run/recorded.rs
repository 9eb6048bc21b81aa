//! A run from its journal alone, without its workflow, an engine or a runtime. The records are replayed as on
//! resume, and the state that they lead to is reported instead of driven.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;

use super::commit::Committer;
use super::deadline::deadline_of;
use super::drive::{Run, RunLimits};
use super::driver::open_requests;
use super::redriven::Redrive;
use super::state_box::StateBox;
use super::view::View;
use super::waiting::Deferred;
use super::{EngineParts, Host, RunExtras, RunShared};
use crate::clock::{Clock, EngineClock};
use crate::draw::Graph;
use crate::explain::Explanation;
use crate::id::{Redriver, RunId, RunStatus};
use crate::observe::Observers;
use crate::outcome::{RecordedRunError, RedriveError};
use crate::report::{OpenRequest, RunReport};
use crate::store::{JOURNAL_FORMAT, Position, Record, Write};
use crate::table::DependencyTable;

/// A run from its records: what it did, why, and its status, without the program that wrote them.
///
/// For tools of stores, front ends and tests. Nothing runs, nothing is written, and no runtime is needed. A
/// `RecordedRun` shows one moment: to follow a run that continues, make a new one from its newer records.
///
/// # What it knows
/// - Of a run that has ended: all that [`AnyRun::report`](crate::AnyRun::report) and
///   [`explain`](crate::AnyRun::explain) returned.
/// - Of any other run: its status at the end of its journal. It is [waiting](RunStatus::Waiting), or it is
///   [running](RunStatus::Running), whether or not an engine drives it now. Executions that had not ended are
///   shown as running, with times up to the last record.
/// - Events by name and as JSON. [`LoggedEvent::event`](crate::report::LoggedEvent::event) has the name, and
///   [`LoggedEvent::value`](crate::report::LoggedEvent::value) only [`to_json`](crate::AnyEvent::to_json). Records
///   that come straight from a [`MemoryStore`](crate::store::MemoryStore) and were never serialised have the values
///   themselves.
///
/// # What it does not know
/// - Displays, contexts, doc comments and the engine's limits, which no journal has. An execution that waits
///   for the `concurrency` of its step is shown as waiting; one that waits for a limit of the engine is shown
///   as running. An execution that ran when the run ended is shown as dropped. Start times of executions are
///   those of the records around them.
/// - Parameters that no event fills. They are not among the inputs of an execution.
/// - The present statuses, the results and the reports of child runs, which are in the children's own journals. Children are
///   listed with their ends, and as running without one. Journals of earlier releases have no ends of children.
///
/// # When the workflow has changed
/// The last table among the records reads all of them. The run last resumed with it, and the engine checked
/// then that it fits the earlier records. A record that does not fit is a
/// [`Contradiction`](RecordedRunError::Contradiction), and `of` returns that error instead of a run.
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_core::{RecordedRun, RunOptions, RunStatus};
/// use workflow_core::store::MemoryStore;
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
/// assert!(recorded.requests().is_empty());
///
/// // Without its last records the run has not ended.
/// let recorded = RecordedRun::of(run.id(), &records[..2])?;
/// assert_eq!(recorded.status(), RunStatus::Running);
/// # Ok(())
/// # }
/// ```
pub struct RecordedRun {
    state: StateBox,
    report: RunReport,
    began_at: SystemTime,
}

impl RecordedRun {
    /// Reads the records of a run, in order. The first n of them show the run as it was then.
    ///
    /// Takes O(records) time and memory, and about as much again for the events and steps that the records
    /// lead to.
    ///
    /// # Errors
    /// A [`RecordedRunError`] if the records have a newer format, lack their beginning, or contradict each
    /// other.
    pub fn of(run: &RunId, records: &[Record]) -> Result<Self, RecordedRunError> {
        check_format(run, records)?;
        let host = Arc::new(Host::of_table(Arc::new(last_table(run, records)?)));
        let shared = Arc::new(shared(run, &host, records)?);
        let mut replayed = Run::new(shared, host, RunLimits::default(), None, None);
        let contradiction = |difference| RecordedRunError::Contradiction { run: run.clone(), difference };
        let _ = replayed.resume(records).map_err(contradiction)?;
        let report = replayed.report_at_rest(records.last());
        let Committer { state, clock, .. } = &mut replayed.driver.committer;
        Ok(Self { state: state.take(), report, began_at: clock.began_at })
    }

    /// The write that makes a run continue after its end, for tools of a store that no engine drives runs of.
    ///
    /// The store takes it with [`EventStore::append`](crate::store::EventStore::append) at the end of these records,
    /// which are all of the run's. The run is open again then, and the next engine that
    /// [resumes](crate::Engine::resume_open_runs) the runs of the store continues it as
    /// [`Engine::redrive`](crate::Engine::redrive) would. That engine checks whether its workflow fits; this checks the
    /// records alone.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use workflow_core::{RecordedRun, Redrive, RedriveError};
    ///
    /// let error = RecordedRun::redrive(&"nobody".into(), &[], &Redrive::new(), SystemTime::now()).unwrap_err();
    /// assert!(matches!(error, RedriveError::Resume(_)));
    /// ```
    ///
    /// # Errors
    /// A [`RedriveError`] with the reason: the run has not ended, for example, or its workflow has no step of a name that
    /// is to be made again. [`RedriveError::Recorded`] if the records contradict each other.
    pub fn redrive(
        run: &RunId,
        records: &[Record],
        redrive: &Redrive,
        at: SystemTime,
    ) -> Result<Write, RedriveError> {
        let write = redrive.write(run, records, Redriver::CommandLine, at)?;
        let records: Vec<Record> = records.iter().chain(&write.records).cloned().collect();
        let recorded = Self::of(run, &records)?;
        redrive.check(recorded.state.table())?;
        Ok(write)
    }

    /// The status of the run at the end of its records.
    pub fn status(&self) -> RunStatus {
        self.report.status
    }

    /// The report of the run.
    pub fn report(&self) -> &RunReport {
        &self.report
    }

    /// Explains why each step ran or did not. O(events + executions), and more for each step that never ran.
    pub fn explain(&self) -> Explanation {
        Explanation::of(&self.state.scheduler, &self.report)
    }

    /// The open requests, oldest first, as [`AnyRun::requests`](crate::AnyRun::requests) lists them.
    ///
    /// Their data is JSON, and their `reply_schema` is `None`: no journal has schemas. A run that has ended or cleans up
    /// has none. O(open requests + pending timers).
    pub fn requests(&self) -> Vec<OpenRequest> {
        let is_open = matches!(self.status(), RunStatus::Running | RunStatus::Waiting | RunStatus::Paused);
        if is_open { open_requests(&self.state, self.began_at) } else { Vec::new() }
    }

    /// The table that read the records. It has everything that decides how a run behaves, and no doc
    /// comments.
    pub fn table(&self) -> &DependencyTable {
        self.state.table()
    }

    /// The drawing of the table with the run laid over it.
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
    /// The report of a replayed run that is not driven.
    fn report_at_rest(&mut self, last: Option<&Record>) -> RunReport {
        let Committer { state, clock, .. } = &mut self.driver.committer;
        let ended = match last {
            Some(Record::RunEnded { status, .. }) => Some(*status),
            _ => state.end().filter(|_| state.scheduler.is_over()).map(RunStatus::from),
        };
        let Some(status) = ended else {
            // A delay that has passed is over: no record says that the next attempt began.
            for execution in state.trace.running() {
                state.end_passed_delay(execution, clock.now);
            }
            let status = match state.end() {
                Some(_) => RunStatus::CleaningUp,
                None if state.scheduler.waits() => RunStatus::Waiting,
                None if state.rests_in_pause() => RunStatus::Paused,
                None => RunStatus::Running,
            };
            let deferred = Some(Deferred::recorded(&self.driver.committer.state));
            return View { status, deferred, ..self.driver.view() }.report();
        };
        state.drop_running(clock.end_of(last).unwrap_or(clock.now));
        let mut report = View { status, deferred: None, ..self.driver.view() }.report();
        if let Some(Record::RunEnded { status: RunStatus::Cancelled, error: Some(reason), .. }) = last {
            report.cancel_reason = Some(reason.as_str().into());
        }
        report
    }
}

/// A clock that always shows the same time.
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

/// The last table in the records.
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

/// The shared part of a run that has neither handles nor an engine.
fn shared(run: &RunId, host: &Host, records: &[Record]) -> Result<RunShared, RecordedRunError> {
    let opens = |record: &Record| matches!(record, Record::EventLogged { .. } | Record::RunEnded { .. });
    let (Some(Record::RunStarted { thread, metadata, parent, private_thread, timeout, .. }), true) =
        (records.first(), records.iter().any(opens))
    else {
        return Err(RecordedRunError::NoBeginning { run: run.clone() });
    };
    let deadline = deadline_of(records);
    let last = records.iter().map(Record::at).max().unwrap_or(SystemTime::UNIX_EPOCH);
    let common = without_engine(Observers::start(Vec::new()), last);
    let (table, extras) =
        (Arc::clone(&host.table), RunExtras { metadata: metadata.clone(), deadline, ..RunExtras::default() });
    let shared = RunShared::new(run.clone(), Some(thread.clone()), *timeout, table, Arc::new(common), extras);
    Ok(shared.restored(*private_thread, *timeout).resumed(parent.clone()))
}

/// The common part of runs without an engine, whose clock always shows this time.
pub(super) fn without_engine(observers: Observers, now: SystemTime) -> EngineParts {
    EngineParts { observers, ..EngineParts::without_engine(EngineClock::new(Stopped(now))) }
}
