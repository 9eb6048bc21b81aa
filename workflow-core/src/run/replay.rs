//! Going on with a run that a store has (S39): its records are told to the scheduler as the facts that they were, so
//! that it comes to stand where it stood. Nothing is performed meanwhile; what was left to do is done afterwards.
//!
//! The scheduler numbers events when they are on their way into the log and evaluates them when they are there. In
//! between other events may have been numbered, so that a batch is confirmed here only when a record needs what follows
//! from it: then each position is given as it was.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use smallvec::SmallVec;

use super::RunStatus;
use super::drive::Run;
use super::timers::Setting;
use crate::error::StepError;
use crate::event::AnyEvent;
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::retry::{FailedAttempt, NotRetried};
use crate::scheduler::{Action, Answer, CandidateId, Cause, Emission, Entry, Evaluated, Fact, TimerEntry};
use crate::store::{OpenedFanOut, Position, Record, RecordedEvent};
use crate::table::{EventIndex, StepIndex};

/// The first record that the workflow, as it is now, would not have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Divergence {
    pub(crate) position: Position,
    pub(crate) what: String,
}

/// An event that a batch holds, as its records tell of it.
struct Logged<'a> {
    seq: Seq,
    scope: ScopeId,
    event: &'a RecordedEvent,
}

/// A timer that a batch sets, as its record tells of it.
struct TimerSet<'a> {
    request: Option<Seq>,
    due: SystemTime,
    event: &'a RecordedEvent,
}

/// A run that comes to stand where its journal ends.
struct Replay<'a> {
    run: &'a mut Run,
    position: Position,
    /// What the scheduler wants in the log and the journal has not told of yet.
    due: VecDeque<Action>,
    /// What was begun and has not ended, as it was begun.
    started: BTreeMap<ExecutionId, Action>,
    /// What was asked and not answered, in the order of asking.
    asked: BTreeMap<CandidateId, Action>,
    /// When the next attempts of what failed are due.
    retries: HashMap<ExecutionId, SystemTime>,
    /// Per batch that is not confirmed yet, when it was recorded, and the timers that it sets.
    unconfirmed: VecDeque<(Duration, Vec<Setting>)>,
    waits: bool,
    /// When what the scheduler wants came to be wanted: a batch is confirmed when the next record needs that, and was in
    /// the log before.
    now: Duration,
}

type Replayed<T = ()> = Result<T, String>;

impl Run {
    /// Comes to stand where the records end. The first of them says how the run began.
    pub(crate) fn replay(&mut self, records: &[Record]) -> Result<(), Divergence> {
        self.scheduler.recall(numbers(&self.host.table, records));
        self.goes_on();
        let mut replay = Replay {
            run: self,
            position: Position(1),
            due: VecDeque::new(),
            started: BTreeMap::new(),
            asked: BTreeMap::new(),
            retries: HashMap::new(),
            unconfirmed: VecDeque::new(),
            waits: false,
            now: Duration::ZERO,
        };
        let mut rest = records.get(1..).unwrap_or_default();
        while let Some((record, behind)) = rest.split_first() {
            let position = replay.position;
            let taken = replay.take(record, behind).map_err(|what| Divergence { position, what })?;
            replay.now = replay.run.clock.now;
            replay.position = position.after(taken);
            rest = &rest[taken..];
        }
        replay.go_on();
        Ok(())
    }
}

/// The numbers of the executions that the records tell of.
fn numbers(table: &crate::table::DependencyTable, records: &[Record]) -> HashMap<Evaluated, ExecutionId> {
    let numbered = records.iter().filter_map(|record| match record {
        Record::ExecutionSucceeded { execution, step, scope, trigger, .. }
        | Record::ExecutionFailed { execution, step, scope, trigger, .. }
        | Record::RetryScheduled { execution, step, scope, trigger, .. } => {
            Some(((table.step_named(step)?, *scope, *trigger), *execution))
        }
        Record::ChildStarted { child, scope, trigger, .. } => {
            Some(((table.step_named(&child.step)?, *scope, *trigger), child.execution))
        }
        _ => None,
    });
    numbered.collect()
}

impl Replay<'_> {
    /// Takes a record in, with those behind it that belong to it; says how many these were.
    fn take(&mut self, record: &Record, behind: &[Record]) -> Replayed<usize> {
        if let Record::RunResumed { at } = record {
            self.resumed(*at)?;
            return Ok(1);
        }
        self.wake(at(record));
        match record {
            Record::RunStarted { .. } | Record::RunResumed { .. } => {
                return Err("the run begins once more".into());
            }
            Record::EventLogged { seq, scope, cause, event, .. } => {
                let logged = Logged { seq: *seq, scope: *scope, event };
                self.event(*cause, &logged)?;
            }
            Record::TimerSet { .. } => return Err("a timer is set by nobody".into()),
            Record::FanOutGathered { seq, scope, fan_out, .. } => self.gathered(*seq, *scope, fan_out)?,
            Record::PreconditionAnswered { step, scope, trigger, answer, .. } => {
                self.answered((self.step(step)?, *scope, *trigger), *answer)?;
            }
            Record::ExecutionSucceeded { execution, step, scope, trigger, fan_outs, .. } => {
                self.begun(*execution, (self.step(step)?, *scope, *trigger))?;
                return Ok(1 + self.succeeded(*execution, fan_outs, behind)?);
            }
            Record::RetryScheduled {
                execution,
                step,
                scope,
                trigger,
                class,
                error,
                retry_in,
                compacts,
                at,
                ..
            } => {
                self.begun(*execution, (self.step(step)?, *scope, *trigger))?;
                let (class, error) = (*class, error.clone());
                let failed = FailedAttempt { class, error, retry_in: *retry_in, compacts: *compacts };
                self.run.trace.failed_attempt(*execution, self.run.clock.now, failed);
                let due = at.checked_add(*retry_in).unwrap_or(*at);
                self.retries.insert(*execution, due);
            }
            Record::ExecutionFailed {
                execution, step, scope, trigger, class, error, not_retried, ..
            } => {
                let step = self.step(step)?;
                self.begun(*execution, (step, *scope, *trigger))?;
                self.failed(*execution, step, StepError::new(*class, error.clone()), *not_retried);
            }
            Record::ChildStarted { child, at, .. } => self.run.shared.family().recall(child.clone(), *at),
            Record::RunEnded { status, .. } => self.ended(*status)?,
        }
        Ok(1)
    }

    /// The run went on from here once before, with everything confirmed. The time in which nobody drove it is not its own.
    fn resumed(&mut self, at: SystemTime) -> Replayed {
        while self.confirm()? {}
        self.drain()?;
        if !self.waits {
            self.run.rests();
        }
        self.run.clock.show(at);
        self.now = self.run.clock.now;
        if !self.waits {
            self.run.goes_on();
        }
        Ok(())
    }

    /// The clock shows what it did when the record was written, and what waited goes on.
    fn wake(&mut self, at: SystemTime) {
        self.run.clock.show(at);
        self.wakes();
    }

    /// What waited goes on.
    fn wakes(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.run.goes_on();
        }
    }

    fn step(&self, name: &str) -> Replayed<StepIndex> {
        let step = self.run.host.table.step_named(name);
        step.ok_or_else(|| format!("step `{name}` ran, which the workflow does not have any more"))
    }

    fn event_named(&self, name: &str) -> Replayed<EventIndex> {
        let event = self.run.host.table.event_named(name);
        event.ok_or_else(|| format!("event `{name}` was logged, which the workflow does not know any more"))
    }

    fn decoded(&self, event: &RecordedEvent, index: EventIndex, request: Option<Seq>) -> Replayed<AnyEvent> {
        let request = request.and_then(|seq| self.run.log.get(seq)).map(|record| &record.event);
        let decode = self.run.host.table.event(index).decode;
        event.decoded(decode, request).map_err(|error| {
            format!("event `{}` was logged, which cannot be read as what it is now: {error}", event.name())
        })
    }

    /// Takes in what the scheduler wants, without doing any of it.
    fn drain(&mut self) -> Replayed {
        while let Some(action) = self.run.scheduler.next_action() {
            if !matches!(action, Action::Wait) {
                self.wakes();
            }
            match action {
                Action::Append { .. } | Action::AppendGathered { .. } => self.due.push_back(action),
                Action::StartExecution { execution, step, scope, trigger, ref binding } => {
                    let binding = binding.clone();
                    self.run.trace.start(execution, step, scope, trigger, binding, self.now);
                    self.started.insert(execution, action);
                }
                Action::AskPrecondition { candidate, .. } => {
                    self.asked.insert(candidate, action);
                }
                Action::DropExecution { execution } => {
                    self.started.remove(&execution);
                    self.run.trace.dropped(execution, self.run.clock.now);
                }
                Action::FreeScope { scope } => {
                    self.run.free(scope);
                    self.asked.retain(|_, asked| {
                        !matches!(asked, Action::AskPrecondition { scope: of, .. } if *of == scope)
                    });
                }
                Action::Wait => {
                    self.waits = true;
                    self.run.rests_since(self.now);
                }
                Action::RefuseCommit { execution } => {
                    return Err(format!("{execution} committed, which would be refused now"));
                }
                Action::RefuseReceived => return Err("what came would be refused now".into()),
                Action::Finish { .. } => {}
            }
        }
        Ok(())
    }

    /// The oldest batch that is not confirmed is in the log; `false` if there is none.
    fn confirm(&mut self) -> Replayed<bool> {
        let Some((at, timers)) = self.unconfirmed.pop_front() else { return Ok(false) };
        self.run.scheduler.apply(Fact::Appended);
        self.run.set_timers(timers);
        self.drain()?;
        // Behind it stands only what came from outside, while nothing was done.
        if let Some((next, _)) = self.unconfirmed.front()
            && self.run.scheduler.is_idle()
        {
            self.run.has_rested(next.saturating_sub(at));
        }
        Ok(true)
    }

    /// Confirms batches until it is there, which was so when the record was written; `false` if it never is.
    fn until(&mut self, is_there: impl Fn(&Self) -> bool) -> Replayed<bool> {
        self.drain()?;
        let mut is_so = is_there(self);
        while !is_so && self.confirm()? {
            is_so = is_there(self);
        }
        self.now = self.run.clock.now;
        Ok(is_so)
    }

    /// The execution has begun, as the record says.
    fn begun(&mut self, execution: ExecutionId, (step, scope, trigger): Evaluated) -> Replayed {
        if self.until(|replay| replay.started.contains_key(&execution))? {
            self.run.trace.attempted_again(execution);
            return Ok(());
        }
        let name = &self.run.host.table.step(step).name;
        let place = if scope == ScopeId::ROOT { String::new() } else { format!(" in {scope}") };
        Err(format!(
            "step `{name}` ran for {trigger}{place} as {execution}, and would not run for it any more"
        ))
    }

    fn event(&mut self, cause: Cause, logged: &Logged<'_>) -> Replayed {
        let Logged { event: recorded, .. } = *logged;
        let event = match cause {
            Cause::Outside => {
                let index = self.event_named(recorded.name())?;
                let event = self.decoded(recorded, index, None)?;
                self.now = self.run.clock.now;
                self.run.scheduler.apply(Fact::EventReceived { event: index });
                event
            }
            Cause::Reply(request) => {
                let is_open =
                    |replay: &Self| replay.run.scheduler.open_requests().any(|(seq, _)| seq == request);
                if !self.until(is_open)? {
                    return Err(format!("somebody replied to {request}, which asks nobody any more"));
                }
                let event = self.decoded(recorded, self.event_named(recorded.name())?, Some(request))?;
                self.run.scheduler.apply(Fact::ReplyReceived { request });
                event
            }
            Cause::Timer { timer, .. } => {
                if !self.until(|replay| replay.run.scheduler.timer(timer).is_some())? {
                    return Err(format!("timer {timer} fired, which nobody has set"));
                }
                let event = self.decoded(recorded, self.event_named(recorded.name())?, None)?;
                self.run.scheduler.apply(Fact::TimerFired { timer });
                event
            }
            Cause::Expired(request) => {
                let closes = |timer: &&TimerEntry| timer.request == Some(request);
                if !self.until(|replay| replay.run.scheduler.timers().any(|timer| closes(&timer)))? {
                    return Err(format!("{request} expired, which never does any more"));
                }
                let timer = self.run.scheduler.timers().find(closes).map(|entry| entry.timer);
                let timer = timer.ok_or("no timer closes the request")?;
                let event = self.decoded(recorded, self.event_named(recorded.name())?, Some(request))?;
                self.run.scheduler.apply(Fact::TimerFired { timer });
                event
            }
            Cause::Failure(execution) => {
                let is_due = |replay: &Self| matches!(replay.due.front(), Some(Action::Append { cause: due, .. }) if *due == cause);
                if !self.until(is_due)? {
                    return Err(format!("the failure of {execution} was caught, and would not be any more"));
                }
                self.run.failed_event(execution).ok_or("nothing has failed")?
            }
            Cause::Execution(execution) => return Err(format!("{execution} emitted before it ended")),
        };
        self.append(cause, &[(logged.seq, logged.scope, event)], Vec::new())
    }

    /// What the scheduler wants in the log next is what the journal has.
    fn append(
        &mut self,
        cause: Cause,
        events: &[(Seq, ScopeId, AnyEvent)],
        timers: Vec<(SystemTime, AnyEvent)>,
    ) -> Replayed {
        self.drain()?;
        let (entries, set) = match self.due.pop_front() {
            Some(Action::Append { cause: due, entries, timers }) if due == cause => (entries, timers),
            _ => return Err("something else would be logged now".into()),
        };
        let agree = |(entry, (seq, scope, _)): (&Entry, &(Seq, ScopeId, AnyEvent))| {
            entry.seq == *seq && entry.scope == *scope
        };
        if entries.len() != events.len()
            || !entries.iter().zip(events).all(agree)
            || set.len() != timers.len()
        {
            return Err("it would be logged elsewhere now".into());
        }
        if let Cause::Execution(execution) = cause {
            self.run.trace.succeeded(execution);
            self.run.trace.emitted(execution, &entries);
            self.run.note_branches(execution, &entries);
        }
        if let (Cause::Failure(execution), Some(entry)) = (cause, entries.first()) {
            self.run.trace.caught(execution, entry.seq);
        }
        let run = &mut *self.run;
        for (entry, (_, _, event)) in entries.iter().zip(events) {
            run.log.append(&run.host.table, *entry, event.clone(), cause, run.clock.now);
        }
        let settings = set.into_iter().zip(timers);
        let settings = settings.map(|(entry, (due, event))| Setting { entry, due, event });
        self.unconfirmed.push_back((self.run.clock.now, settings.collect()));
        Ok(())
    }

    /// An execution committed what the records behind it tell of; says how many these are.
    fn succeeded(
        &mut self,
        execution: ExecutionId,
        fan_outs: &[OpenedFanOut],
        behind: &[Record],
    ) -> Replayed<usize> {
        let (events, timers) = batch(execution, behind);
        let emissions = self.emissions(fan_outs, &events, &timers)?;
        let mut decoded: Vec<(Seq, ScopeId, AnyEvent)> = Vec::with_capacity(events.len());
        for Logged { seq, scope, event } in &events {
            let index = self.event_named(event.name())?;
            decoded.push((*seq, *scope, self.decoded(event, index, None)?));
        }
        let mut set = Vec::with_capacity(timers.len());
        for TimerSet { request, due, event } in &timers {
            let asked = request.and_then(|seq| decoded.iter().find(|(at, _, _)| *at == seq));
            let decode = self.run.host.table.event(self.event_named(event.name())?).decode;
            let event = event.decoded(decode, asked.map(|(_, _, event)| event));
            set.push((*due, event.map_err(|error| format!("a timer's event cannot be read: {error}"))?));
        }
        let now = self.run.clock.now;
        self.started.remove(&execution);
        self.run.trace.returned(execution, now);
        self.run.scheduler.apply(Fact::ExecutionSucceeded { execution, emissions });
        let taken = events.len() + timers.len();
        self.append(Cause::Execution(execution), &decoded, set)?;
        Ok(taken)
    }

    /// What an execution committed, in the scheduler's terms. Events and timers are numbered apart, so that only
    /// their own orders count, and that what expires has its request before it.
    fn emissions(
        &self,
        fan_outs: &[OpenedFanOut],
        events: &[Logged<'_>],
        timers: &[TimerSet<'_>],
    ) -> Replayed<SmallVec<[Emission; 1]>> {
        let mut emissions = SmallVec::new();
        let (mut next, mut fan_outs) = (0, fan_outs.iter());
        for TimerSet { request, event, .. } in timers {
            match request {
                None => emissions.push(Emission::Timer(self.event_named(event.name())?)),
                Some(request) => {
                    let place = events.iter().position(|logged| logged.seq == *request);
                    let place = place.filter(|place| *place >= next).ok_or("a timer closes no request")?;
                    self.emit(&events[next..place], &mut fan_outs, &mut emissions)?;
                    emissions.push(Emission::Expiring(self.event_named(events[place].event.name())?));
                    next = place + 1;
                }
            }
        }
        self.emit(&events[next..], &mut fan_outs, &mut emissions)?;
        // Those that are left have no items.
        for fan_out in fan_outs {
            emissions.push(self.fan_out(fan_out)?);
        }
        Ok(emissions)
    }

    fn emit<'a>(
        &self,
        events: &[Logged<'_>],
        fan_outs: &mut impl Iterator<Item = &'a OpenedFanOut>,
        emissions: &mut SmallVec<[Emission; 1]>,
    ) -> Replayed {
        let known = self.run.log.branches().len();
        let mut rest = events;
        while let Some((logged, behind)) = rest.split_first() {
            if (logged.scope.0 as usize) <= known {
                emissions.push(Emission::Event(self.event_named(logged.event.name())?));
                rest = behind;
                continue;
            }
            // Its scope is new: the items of a fan-out begin here. Those before it that have none opened nothing.
            let items = loop {
                let opened = fan_outs.next().ok_or("an event is of a scope that nobody opened")?;
                emissions.push(self.fan_out(opened)?);
                if opened.items > 0 {
                    break opened.items as usize;
                }
            };
            rest = rest.get(items..).ok_or("a fan-out lacks items")?;
        }
        Ok(())
    }

    fn fan_out(&self, opened: &OpenedFanOut) -> Replayed<Emission> {
        let OpenedFanOut { fan_out: name, items, concurrency, policy } = opened;
        let gathers = self.run.host.table.event(self.event_named(name)?).gathers;
        let fan_out = gathers.ok_or_else(|| format!("`{name}` is no fan-out any more"))?;
        Ok(Emission::FanOut { fan_out, items: *items, concurrency: *concurrency, policy: *policy })
    }

    fn failed(&mut self, execution: ExecutionId, step: StepIndex, error: StepError, not_retried: NotRetried) {
        self.started.remove(&execution);
        self.run.trace.failed(execution, self.run.clock.now, &error, not_retried);
        let row = self.run.host.table.step(step);
        if row.failed.is_some() || !row.policy.continue_on_error {
            self.run.failures.insert(execution, error);
        }
        self.run.scheduler.apply(Fact::ExecutionFailed { execution });
    }

    fn answered(&mut self, question: Evaluated, answer: bool) -> Replayed {
        let asks = |asked: &Action| matches!(asked, Action::AskPrecondition { step, scope, trigger, .. } if (*step, *scope, *trigger) == question);
        let find = |replay: &Self| replay.asked.iter().find(|(_, asked)| asks(asked)).map(|(id, _)| *id);
        if !self.until(|replay| find(replay).is_some())? {
            let name = &self.run.host.table.step(question.0).name;
            return Err(format!("the precondition of `{name}` was asked, and would not be any more"));
        }
        let Some(candidate) = find(self) else { return Ok(()) };
        self.asked.remove(&candidate);
        let answer = if answer { Answer::Yes } else { Answer::No };
        self.run.scheduler.apply(Fact::PreconditionAnswered { candidate, answer });
        Ok(())
    }

    fn gathered(&mut self, seq: Seq, scope: ScopeId, fan_out: &str) -> Replayed {
        let is_due = |replay: &Self| matches!(replay.due.front(), Some(Action::AppendGathered { .. }));
        if !self.until(is_due)? {
            return Err(format!("`{fan_out}` was logged, and would not be now"));
        }
        let Some(Action::AppendGathered { entry, group }) = self.due.pop_front() else { return Ok(()) };
        if (entry.seq, entry.scope) != (seq, scope) {
            return Err(format!("`{fan_out}` was logged, and would be logged elsewhere now"));
        }
        let event = self.run.gathered(&group);
        let run = &mut *self.run;
        run.log.append(&run.host.table, entry, event, Cause::Outside, run.clock.now);
        self.unconfirmed.push_back((self.run.clock.now, Vec::new()));
        Ok(())
    }

    fn ended(&mut self, status: RunStatus) -> Replayed {
        while self.confirm()? {}
        self.drain()?;
        match status {
            RunStatus::Cancelled => self.run.scheduler.apply(Fact::CancelRequested),
            RunStatus::TimedOut => self.run.scheduler.apply(Fact::TimeRanOut),
            _ => {}
        }
        let _ = self.drain();
        Ok(())
    }

    /// What was left to do when the journal ended is to be done.
    fn go_on(mut self) {
        // Everything that the journal has is in the log. What is refused by now has nobody who waits for it.
        while let Ok(true) = self.confirm() {}
        let Self { run, due, started, asked, retries, .. } = self;
        run.rests();
        run.clock.catch_up();
        if run.scheduler.end().is_some() {
            return;
        }
        run.held.extend(due);
        run.held.extend(asked.into_values());
        for (execution, action) in started {
            match retries.get(&execution).map(|due| due.duration_since(run.clock.wall())) {
                Some(Ok(left)) if !left.is_zero() => run.wait_for_retry(execution, left),
                _ => run.held.push_back(action),
            }
        }
        run.count_time();
    }
}

/// The events and timers of an execution's batch, which stand right behind it.
fn batch(execution: ExecutionId, behind: &[Record]) -> (Vec<Logged<'_>>, Vec<TimerSet<'_>>) {
    let (mut events, mut timers) = (Vec::new(), Vec::new());
    for record in behind {
        match record {
            Record::EventLogged { seq, scope, cause: Cause::Execution(by), event, .. }
                if *by == execution =>
            {
                events.push(Logged { seq: *seq, scope: *scope, event });
            }
            Record::TimerSet { execution: by, request, due, event, .. } if *by == execution => {
                timers.push(TimerSet { request: *request, due: *due, event });
            }
            _ => break,
        }
    }
    (events, timers)
}

fn at(record: &Record) -> SystemTime {
    match record {
        Record::RunStarted { at, .. }
        | Record::EventLogged { at, .. }
        | Record::TimerSet { at, .. }
        | Record::FanOutGathered { at, .. }
        | Record::PreconditionAnswered { at, .. }
        | Record::ExecutionSucceeded { at, .. }
        | Record::RetryScheduled { at, .. }
        | Record::ExecutionFailed { at, .. }
        | Record::ChildStarted { at, .. }
        | Record::RunResumed { at }
        | Record::RunEnded { at, .. } => *at,
    }
}
