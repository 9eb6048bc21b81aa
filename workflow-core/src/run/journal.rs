//! A run's way into its store: what is to enter the log waits here until the store has it (S38). What falls
//! due together is one batch of the store's.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::RunStatus;
use super::drive::Run;
use super::in_flight::panic_of;
use super::timers::Setting;
use crate::error::{RunError, SendError, StepError};
use crate::event::AnyEvent;
use crate::id::{EngineId, ExecutionId, RunId, ScopeId, Seq};
use crate::input::Gathered;
use crate::retry::{FailedAttempt, NotRetried};
use crate::scheduler::{Cause, Emission, End, Entry, Fact, TimerEntry};
use crate::store::{
    Batch, EventStore, JOURNAL_FORMAT, OpenedFanOut, Position, Record, RecordedEvent, RunSummary, StoreError,
    StoreFuture, WaitingFor,
};
use crate::table::{DependencyTable, RecordedTable, StepIndex};

/// How many batches wait for the store before the run takes no more news.
const MOST_ENTERING: usize = 256;

/// How many records may wait to be written before nothing more is put on its way.
const MOST_RECORDS: usize = 4 * MOST_ENTERING;

/// The writing side of one run's journal.
pub(crate) struct Journal {
    store: Arc<dyn EventStore>,
    run: RunSummary,
    /// The table that goes on with it, if the journal was written by another.
    table: Option<RecordedTable>,
    /// Where the journal ends, with what is being written.
    end: Position,
    /// Where it ends without that.
    written: Position,
    /// What the next write holds.
    records: Vec<Record>,
    /// The batches that `records` stands for, oldest first.
    entering: Vec<Entering>,
    writing: Option<Writing>,
    /// Why nothing is written any more.
    failure: Option<StoreError>,
    /// Whether the end of the run is written, or on its way.
    ended: bool,
    /// Whether the run goes on from what an earlier process has written.
    resumes: bool,
}

/// A write that the store has not answered.
struct Writing {
    answer: StoreFuture<()>,
    entering: Vec<Entering>,
}

/// A batch on its way into the log.
#[derive(Debug)]
pub(super) struct Entering {
    pub(super) cause: Cause,
    pub(super) entries: SmallVec<[Entry; 1]>,
    pub(super) events: SmallVec<[AnyEvent; 1]>,
    /// The timers that it sets.
    pub(super) timers: Vec<Setting>,
    /// The fan-outs that it opens, for the journal.
    pub(super) fan_outs: Vec<OpenedFanOut>,
    /// Who wants to know that it is there.
    pub(super) done: Option<oneshot::Sender<Result<(), SendError>>>,
}

impl Journal {
    /// The journal of a run that goes on by this table, behind what it has.
    pub(crate) fn resume(
        store: Arc<dyn EventStore>,
        records: &[Record],
        table: &DependencyTable,
    ) -> Option<Self> {
        let Some(Record::RunStarted { workflow, at, .. }) = records.first() else { return None };
        let run = RunSummary::running(Arc::clone(workflow), *at);
        let (end, now) = (Position::default().after(records.len()), table.recorded());
        let before = records.iter().rev().find_map(Record::table);
        let is_new = before.is_none_or(|before| before.fingerprint() != now.fingerprint());
        let table = is_new.then(|| now.clone());
        Some(Self { table, end, written: end, resumes: true, ..Self::at(store, Vec::new(), run) })
    }

    /// The journal of a run that begins.
    pub(crate) fn begin(store: Arc<dyn EventStore>, first: Record, run: RunSummary) -> Self {
        Self::at(store, vec![first], run)
    }

    fn at(store: Arc<dyn EventStore>, records: Vec<Record>, run: RunSummary) -> Self {
        Self {
            store,
            run,
            table: None,
            end: Position(0),
            written: Position(0),
            records,
            entering: Vec::new(),
            writing: None,
            failure: None,
            ended: false,
            resumes: false,
        }
    }

    /// The same journal, whose batches say that this engine writes it.
    pub(super) fn owned_by(mut self, owner: Option<&EngineId>) -> Self {
        self.run = self.run.owned_by(owner.cloned());
        self
    }

    /// What caused the batches that are on their way into the log.
    pub(super) fn entering(&self) -> impl Iterator<Item = Cause> {
        let writing = self.writing.iter().flat_map(|writing| &writing.entering);
        writing.chain(&self.entering).map(|entering| entering.cause)
    }

    /// Whether the store has everything and has refused nothing.
    pub(super) fn is_quiet(&self) -> bool {
        self.writing.is_none() && self.records.is_empty() && self.failure.is_none() && !self.ended
    }

    /// Where it ends.
    pub(super) fn end(&self) -> Position {
        self.end
    }

    fn is_full(&self) -> bool {
        self.entering.len() >= MOST_ENTERING || self.records.len() >= MOST_RECORDS
    }

    /// Adds a record to the next write. Nothing follows the end.
    pub(super) fn record(&mut self, record: Record) {
        if !self.ended {
            self.records.push(record);
        }
    }

    /// The same; says where the journal ends with it.
    pub(super) fn record_to(&mut self, record: Record) -> Position {
        self.record(record);
        self.end.after(self.records.len())
    }

    /// Whether the store has taken everything before this position.
    pub(super) fn is_written_to(&self, position: Position) -> bool {
        self.written >= position
    }

    /// Begins to write what there is, unless something is being written.
    fn write(&mut self, run: &RunId) {
        if self.writing.is_some() || self.failure.is_some() || self.records.is_empty() {
            return;
        }
        let records = std::mem::take(&mut self.records);
        let (expected, end) = (self.end, self.end.after(records.len()));
        let batch = Batch { records, run: self.run.clone() };
        let answer = caught(|| self.store.append(run, expected, batch));
        let answer = answer.unwrap_or_else(|error| StoreFuture::ready(Err(error)));
        self.end = end;
        self.writing = Some(Writing { answer, entering: std::mem::take(&mut self.entering) });
    }

    /// Lets nothing more be written, unless something is being written; says whether it is so.
    pub(super) fn fail(&mut self, why: &StoreError) -> bool {
        if self.writing.is_none() && self.failure.is_none() {
            self.failure = Some(why.clone());
            return true;
        }
        false
    }

    /// What came of the write: the batches that it held.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<Entering>>> {
        let Some(writing) = &mut self.writing else { return Poll::Ready(None) };
        let polled = caught(|| Pin::new(&mut writing.answer).poll(cx));
        let answer = ready!(polled.unwrap_or_else(|error| Poll::Ready(Err(error))));
        match answer {
            Ok(()) => self.written = self.end,
            Err(error) => self.failure = Some(error),
        }
        Poll::Ready(self.writing.take().map(|writing| writing.entering))
    }
}

impl Run {
    /// A batch is to enter the log: at once without a store, else when the store has it.
    pub(super) fn enter(&mut self, entering: Entering) {
        if self.journal.is_none() {
            return self.entered(entering);
        }
        self.record_batch(&entering);
        if let Some(journal) = &mut self.journal {
            journal.entering.push(entering);
        }
    }

    /// Whether the store has fallen so far behind that nothing more is to be put on its way.
    pub(super) fn journal_is_full(&self) -> bool {
        self.journal.as_deref().is_some_and(Journal::is_full)
    }

    fn record_batch(&mut self, entering: &Entering) {
        let Entering { cause, entries, events, timers, .. } = entering;
        if let Cause::Execution(execution) = *cause {
            self.record_success(execution, entering.fan_outs.clone());
        }
        for (entry, event) in entries.iter().zip(events) {
            self.record_event(*entry, *cause, event);
        }
        for timer in timers {
            self.record_timer(timer);
        }
        let table = &self.host.table;
        // The end stands in the batch that brings it about.
        if entries.iter().any(|entry| table.event(entry.event).roles.is_stop()) {
            self.record_end(RunStatus::Completed);
        }
    }

    fn record_event(&mut self, entry: Entry, cause: Cause, event: &AnyEvent) {
        let Some(journal) = &mut self.journal else { return };
        let (Entry { seq, scope, .. }, at) = (entry, self.clock.wall());
        journal.record(match event.payload_arc::<Gathered>() {
            Some(gathered) => {
                let fan_out = Arc::clone(&self.host.table.event(entry.event).name);
                let branches = gathered.branches.iter().map(|branch| branch.scope).collect();
                Record::FanOutGathered { seq, scope, fan_out, branches, at }
            }
            None => Record::EventLogged { seq, scope, cause, event: RecordedEvent::new(event.clone()), at },
        });
    }

    fn record_timer(&mut self, setting: &Setting) {
        let at = self.clock.wall();
        let Some(journal) = &mut self.journal else { return };
        let Setting { entry: TimerEntry { timer, execution, scope, request, .. }, due, event } = setting;
        journal.record(Record::TimerSet {
            timer: *timer,
            execution: *execution,
            scope: *scope,
            request: *request,
            due: *due,
            event: RecordedEvent::new(event.clone()),
            at,
        });
    }

    /// An execution commits; what it emitted is written behind it.
    fn record_success(&mut self, execution: ExecutionId, fan_outs: Vec<OpenedFanOut>) {
        self.record_children();
        let Some(journal) = &mut self.journal else { return };
        let Some((step, scope, trigger)) = self.trace.origin(execution) else { return };
        let (step, at) = (Arc::clone(&self.host.table.step(step).name), self.clock.wall());
        journal.record(Record::ExecutionSucceeded { execution, step, scope, trigger, fan_outs, at });
    }

    /// An execution failed; what follows from it is written behind it. Nothing waits for it to be written: a failure
    /// that is lost with its process is made up by another execution (S39).
    pub(super) fn record_failure(
        &mut self,
        execution: ExecutionId,
        error: &StepError,
        not_retried: NotRetried,
    ) {
        self.record_children();
        let Some(journal) = &mut self.journal else { return };
        let Some((step, scope, trigger)) = self.trace.origin(execution) else { return };
        let (step, at) = (Arc::clone(&self.host.table.step(step).name), self.clock.wall());
        let (class, error) = (error.class(), error.to_string());
        journal.record(Record::ExecutionFailed {
            execution,
            step,
            scope,
            trigger,
            class,
            error,
            not_retried,
            at,
        });
    }

    /// A precondition answered. Nothing waits for it to be written: it is asked again if the answer is lost.
    pub(super) fn record_answer(&mut self, step: StepIndex, scope: ScopeId, trigger: Seq, answer: bool) {
        let Some(journal) = &mut self.journal else { return };
        let (step, at) = (Arc::clone(&self.host.table.step(step).name), self.clock.wall());
        journal.record(Record::PreconditionAnswered { step, scope, trigger, answer, at });
    }

    /// The fan-outs of what an execution is about to commit.
    pub(super) fn opened(&self, execution: ExecutionId) -> Vec<OpenedFanOut> {
        let committing = self.committing.as_ref().filter(|(committing, _)| *committing == execution);
        let committing = committing.filter(|(_, emitted)| self.journal.is_some() && emitted.opens_branches());
        let Some((_, emitted)) = committing else { return Vec::new() };
        let step = self.trace.step_of(execution).and_then(|step| self.emissions(step, emitted).ok());
        let opened = step.into_iter().flatten().filter_map(|emission| match emission {
            Emission::FanOut { fan_out, items, concurrency, policy } => {
                let gathered = self.host.table.fan_out(fan_out).gathered;
                let fan_out = Arc::clone(&self.host.table.event(gathered).name);
                Some(OpenedFanOut { fan_out, items, concurrency, policy })
            }
            _ => None,
        });
        opened.collect()
    }

    /// An attempt failed and is to be followed by another. Nothing waits for it to be written either, not even a next
    /// attempt or a compaction: neither depends on it, for nothing of a failed attempt is in the log (S23, S38). If it is
    /// lost with its process, so is whatever came behind it: the attempt is made again, at least once as everything is
    /// (S39), and a delay that is drawn after it comes of the same seed (S36).
    pub(super) fn record_retry(&mut self, execution: ExecutionId, attempt: u32, failed: &FailedAttempt) {
        self.record_children();
        let Some(journal) = &mut self.journal else { return };
        let Some((step, scope, trigger)) = self.trace.origin(execution) else { return };
        let step = Arc::clone(&self.host.table.step(step).name);
        let FailedAttempt { class, error, retry_in, compacts } = failed.clone();
        let at = self.clock.wall();
        journal.record(Record::RetryScheduled {
            execution,
            step,
            scope,
            trigger,
            attempt,
            class,
            error,
            retry_in,
            compacts,
            at,
        });
    }

    fn record_end(&mut self, status: RunStatus) {
        self.record_children();
        let (at, (step, error)) = (self.clock.wall(), self.why_ended());
        let Some(journal) = self.journal.as_mut().filter(|journal| !journal.ended) else { return };
        journal.record(Record::RunEnded { status, error, step, at });
        journal.run = journal.run.clone().ended(status);
        journal.ended = true;
    }

    /// The run waits, which is told to whoever looks at the store. Nothing waits for it to be written.
    pub(super) fn record_wait(&mut self) {
        if self.journal.is_none() {
            return;
        }
        let (waits_for, at) = (self.waits_for(), self.clock.wall());
        let Some(journal) = self.journal.as_mut().filter(|journal| !journal.ended) else { return };
        journal.run = journal.run.clone().waiting(waits_for.clone());
        journal.record(Record::RunWaiting { waits_for, at });
    }

    /// The run goes on: the next batch says so.
    pub(super) fn note_going_on(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.run = journal.run.clone().going_on();
        }
    }

    fn waits_for(&self) -> WaitingFor {
        let name = |event| Arc::clone(&self.host.table.event(event).name);
        let requests = self.scheduler.open_requests().take(WaitingFor::MOST_NAMED);
        WaitingFor {
            requests: requests.map(|(_, request)| name(request)).collect(),
            open_requests: self.scheduler.count_requests() as u64,
            events: self.scheduler.awaited_events().into_iter().map(name).collect(),
            until: self.timers.pending(&self.scheduler).map(|(due, _)| due).next(),
        }
    }

    /// What nothing else in the journal says of the end: the step whose precondition failed, and the reason.
    fn why_ended(&self) -> (Option<Arc<str>>, Option<String>) {
        match self.scheduler.end() {
            Some(End::Cancelled) => (None, Some(self.why_cancelled().to_string())),
            Some(End::PreconditionFailed(candidate)) => {
                let failure = self.precondition_failures.get(candidate);
                failure.map(|(step, error)| (self.step_name(*step), error.to_string())).unzip()
            }
            _ => (None, None),
        }
    }

    /// Goes on with the journal, once nothing else is left to do or there was enough of it; whether something came of
    /// it.
    pub(super) fn poll_journal(&mut self, cx: &mut Context<'_>) -> bool {
        self.record_children();
        let Some(journal) = &mut self.journal else { return false };
        journal.write(&self.shared.id);
        self.poll_writing(cx)
    }

    /// Takes in what the store has answered.
    pub(super) fn poll_writing(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(journal) = &mut self.journal else { return false };
        let Poll::Ready(Some(entering)) = journal.poll_written(cx) else { return false };
        if journal.failure.is_none() {
            if journal.resumes {
                self.shared.goes_on();
            } else if !self.shared.has_begun() {
                self.shared.begin();
            }
            for batch in entering {
                self.entered(batch);
            }
        } else {
            self.not_entered(entering);
        }
        true
    }

    /// The store did not take what it was given: the run stops here, and what it would have left is refused.
    pub(super) fn not_entered(&mut self, mut refused: Vec<Entering>) {
        let Some(journal) = &mut self.journal else { return };
        journal.records.clear();
        refused.append(&mut journal.entering);
        self.scheduler.apply(Fact::AppendFailed);
        for Entering { cause, events, .. } in refused {
            if let Cause::Execution(execution) = cause {
                self.note_refused(execution, &events);
            }
        }
    }

    /// Writes that the run goes on here, before anything else is done (S40).
    pub(super) async fn claim(&mut self) {
        let at = self.clock.wall();
        if let Some(journal) = &mut self.journal {
            let table = journal.table.take();
            journal.records.insert(0, Record::RunResumed { format: JOURNAL_FORMAT, table, at });
            journal.write(&self.shared.id);
            poll_fn(|cx| self.poll_written_out(cx)).await;
        }
        if self.journal_error().is_none() {
            self.shared.goes_on();
        }
    }

    /// Writes what is left, and how the run ended.
    pub(super) async fn close_journal(&mut self) {
        poll_fn(|cx| self.poll_written_out(cx)).await;
        if let Some(end) = self.scheduler.end() {
            self.record_end(end.into());
        }
        poll_fn(|cx| self.poll_written_out(cx)).await;
    }

    fn poll_written_out(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(journal) = &mut self.journal else { return Poll::Ready(()) };
            if journal.ended {
                journal.write(&self.shared.id);
            }
            if journal.writing.is_none() {
                return Poll::Ready(());
            }
            if !self.poll_writing(cx) {
                return Poll::Pending;
            }
        }
    }

    /// What kept the run from being written, if anything did.
    pub(super) fn journal_error(&self) -> Option<RunError> {
        let error = self.journal.as_ref()?.failure.clone()?;
        Some(match error {
            StoreError::Conflict { .. } => RunError::Conflict { run: self.shared.id.clone() },
            source => RunError::Store { source },
        })
    }
}

/// Calls the store. What it panics with is an error like any other: the run has to end all the same.
fn caught<T>(call: impl FnOnce() -> T) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| StoreError::unavailable(panic_of(panic)))
}
