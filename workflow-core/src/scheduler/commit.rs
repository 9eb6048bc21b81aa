//! What enters the log: a batch gets its positions and takes effect at once (S4, S23), whoever keeps it afterwards.

#![expect(
    clippy::inline_always,
    reason = "every step goes through here: as one function its parts pass no values through memory"
)]

use smallvec::SmallVec;

use super::awaited::OpenRequest;
use super::group::{GroupId, Items, Opening};
use super::scope::Scope;
use super::{Action, Cause, Emission, End, Entry, ExecutionStart, Inputs, Scheduler, TimerEntry, Verdict};
use crate::id::{ExecutionId, ScopeId, Seq, TimerId};
use crate::output::FanOutPolicy;
use crate::table::{EventIndex, StepIndex};

/// A batch that is in the log.
#[derive(Debug)]
pub(crate) enum Entered {
    /// It leaves nothing.
    Nothing,
    /// It is one event, as nearly every batch is. With the execution that follows from it, where that is all that
    /// follows: no queue has it.
    One(Entry, Option<Follower>),
    /// Any other. Boxed: batches are handed on.
    Many(Box<Entries>),
}

/// An execution that follows from one event: it is of the event's scope, and bound to it alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follower {
    pub(crate) execution: ExecutionId,
    step: StepIndex,
}

/// What a batch consists of.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Its events, in order.
    pub(crate) events: Vec<Entry>,
    /// The timers that it sets, in order.
    pub(crate) timers: Vec<TimerEntry>,
}

impl Entered {
    /// Its events, in order.
    #[inline]
    pub(crate) fn events(&self) -> &[Entry] {
        match self {
            Self::Nothing => &[],
            Self::One(entry, _) => std::slice::from_ref(entry),
            Self::Many(entries) => &entries.events,
        }
    }

    /// The timers that it sets, in order.
    #[inline]
    pub(crate) fn timers(&self) -> &[TimerEntry] {
        match self {
            Self::Nothing | Self::One(..) => &[],
            Self::Many(entries) => &entries.timers,
        }
    }

    /// The execution that follows from it, where that is all that follows.
    #[inline]
    pub(crate) fn next(&self) -> Option<ExecutionStart> {
        let Self::One(Entry { seq, scope, .. }, Some(next)) = *self else { return None };
        let Follower { execution, step } = next;
        Some(ExecutionStart { execution, step, scope, trigger: seq, inputs: Inputs::TRIGGER })
    }
}

/// What became of an execution's end.
#[derive(Debug)]
pub(crate) enum Committed {
    /// Its batch is in the log.
    Entered(Entered),
    /// The run has ended, and takes nothing more (S28).
    Refused,
    /// The execution is unknown, over or dropped, or the log is full.
    Nothing,
}

/// What a batch does to the scheduler once all of it has its positions.
enum Part {
    Event(Entry),
    /// Boxed, as timers are: a batch may have very many events.
    FanOut(Box<Opening>),
    Timer(Box<TimerEntry>),
}

impl Scheduler {
    /// One event enters the log, from outside, as a reply, by a timer or as a failure. Its scope is held for it.
    #[inline(always)]
    fn enter_one(&mut self, scope: ScopeId, event: EventIndex) -> Option<Entered> {
        let entry = self.number(scope, event)?;
        Some(Entered::One(entry, self.enter_single(entry)))
    }

    /// An event that is a batch of its own takes effect: the execution that follows, where that is all that follows.
    #[inline(always)]
    fn enter_single(&mut self, entry: Entry) -> Option<Follower> {
        if self.table.event(entry.event).roles.is_stop() {
            self.close(End::Completed(entry.seq));
            return None;
        }
        if let Some(step) = self.follower(entry) {
            return Some(self.follow(step, entry));
        }
        self.logged(entry);
        self.scopes.release(entry.scope);
        None
    }

    /// The step that the event makes run, if nothing else is to be done and nothing is in its way.
    #[inline(always)]
    fn follower(&self, entry: Entry) -> Option<StepIndex> {
        let row = self.table.event(entry.event);
        let step = row.direct.filter(|_| !row.roles.is_request())?;
        let is_alone = self.actions.is_empty() && self.evaluation.is_done() && self.scopes.are_settled();
        let is_leaf = self.scopes.get(entry.scope).is_some_and(Scope::is_leaf);
        let executions = &self.executions;
        let may_start = executions.waiting() == 0
            && executions.count() < self.limits.executions
            && executions.has_room(step, &self.table);
        (is_alone && is_leaf && may_start).then_some(step)
    }

    /// The event is evaluated. Its hold on the scope is the execution's from here on.
    #[inline(always)]
    fn follow(&mut self, step: StepIndex, trigger: Entry) -> Follower {
        let Entry { seq, scope, .. } = trigger;
        self.count(trigger);
        if let Some(scope) = self.scopes.get_mut(scope) {
            scope.executed(step, self.table.step(step));
        }
        let evaluated = (step, scope, seq);
        let execution = self.executions.create_running(evaluated);
        self.evaluation.decide(evaluated, Verdict::Executed(execution));
        Follower { execution, step }
    }

    /// An event from outside; none if the run has ended, or has no room for it.
    pub(crate) fn receive(&mut self, event: EventIndex) -> Option<Entered> {
        self.prepare()?;
        self.scopes.hold(ScopeId::ROOT);
        self.enter_one(ScopeId::ROOT, event)
    }

    /// The same while something is left to do: a mistake that the replay check has to find.
    #[cfg(test)]
    pub(crate) fn receive_early(&mut self, event: EventIndex) -> Option<Entered> {
        self.scopes.hold(ScopeId::ROOT);
        self.enter_one(ScopeId::ROOT, event)
    }

    /// A reply; none if the request is not open. The request's hold on the scope becomes the batch's.
    pub(crate) fn receive_reply(&mut self, request: Seq) -> Option<Entered> {
        self.prepare()?;
        let open = self.awaited.close(request)?;
        self.enter_one(open.scope, open.reply)
    }

    /// A timer fires; none if it is not pending. The hold of the timer, or of the request that it closes, becomes the
    /// batch's.
    pub(crate) fn fire(&mut self, timer: TimerId) -> Option<(Cause, Entered)> {
        self.prepare()?;
        let TimerEntry { execution, scope, event, request, .. } = self.awaited.fire(timer)?;
        let cause = request.map_or(Cause::Timer { timer, execution }, Cause::Expired);
        Some((cause, self.enter_one(scope, event)?))
    }

    /// None if the run has ended. What follows from the batches before is complete: whoever tells of one sees to it.
    #[inline(always)]
    fn prepare(&mut self) -> Option<()> {
        debug_assert!(self.end.is_some() || self.evaluation.is_done() && self.scopes.are_settled());
        self.waits = false;
        self.end.is_none().then_some(())
    }

    /// S23: an execution's emissions enter the log as one batch.
    #[inline(always)]
    pub(crate) fn succeed(&mut self, id: ExecutionId, emissions: &[Emission]) -> Committed {
        let accepts = self.prepare().is_some();
        let Some((_, scope)) = self.executions.end(id) else { return Committed::Nothing };
        if !accepts {
            return Committed::Refused;
        }
        // The execution's hold on its scope becomes the batch's.
        let entered = match emissions {
            [Emission::Event(event)] => self.enter_one(scope, *event),
            [] => {
                self.scopes.release(scope);
                Some(Entered::Nothing)
            }
            _ => self.enter_all(id, scope, emissions),
        };
        self.start_waiting();
        entered.map_or(Committed::Nothing, Committed::Entered)
    }

    /// S29. A failure that is caught is an event of the scope it happened in, which has not failed; `None` if it is not
    /// caught. One that comes after the stop event does not change how the run ends (S28).
    pub(crate) fn fail(&mut self, id: ExecutionId) -> Option<Entered> {
        let accepts = self.prepare().is_some();
        let (step, scope) = self.executions.end(id)?;
        if !accepts {
            return None;
        }
        let row = self.table.step(step);
        let (failed, goes_on) = (row.failed, row.policy.continue_on_error);
        self.degraded |= failed.is_some() || goes_on;
        let entered = if let Some(failed) = failed {
            self.enter_one(scope, failed)
        } else {
            if !goes_on {
                self.fail_scope(scope, vec![id]);
            }
            self.scopes.release(scope);
            None
        };
        self.start_waiting();
        entered
    }

    fn enter_all(&mut self, id: ExecutionId, scope: ScopeId, emissions: &[Emission]) -> Option<Entered> {
        let mut parts: SmallVec<[Part; 1]> = SmallVec::with_capacity(emissions.len());
        let mut entries = Box::<Entries>::default();
        for emission in emissions {
            self.number_emission(id, scope, emission, &mut entries, &mut parts)?;
        }
        let stop = entries.events.iter().find(|entry| self.table.event(entry.event).roles.is_stop());
        if let Some(stop) = stop {
            self.close(End::Completed(stop.seq));
            return Some(Entered::Many(entries));
        }
        let mut opened: SmallVec<[GroupId; 1]> = SmallVec::new();
        for part in parts {
            match part {
                Part::Event(entry) => self.logged(entry),
                Part::FanOut(opening) => opened.push(self.open_group(&opening)),
                Part::Timer(timer) => self.set_timer(*timer),
            }
        }
        for group in opened {
            self.gather_if_settled(group);
        }
        self.scopes.release(scope);
        Some(Entered::Many(entries))
    }

    /// Gives an event its position, unless the log is full.
    #[inline(always)]
    pub(super) fn number(&mut self, scope: ScopeId, event: EventIndex) -> Option<Entry> {
        if self.last_seq >= self.limits.events {
            self.finish(End::LogFull);
            return None;
        }
        self.last_seq += 1;
        Some(Entry { seq: Seq(self.last_seq), scope, event })
    }

    /// Gives an emission its place in the batch, unless the log is full.
    fn number_emission(
        &mut self,
        id: ExecutionId,
        scope: ScopeId,
        emission: &Emission,
        into: &mut Entries,
        parts: &mut SmallVec<[Part; 1]>,
    ) -> Option<()> {
        let mut timer = None;
        match *emission {
            Emission::Event(event) => {
                let entry = self.number(scope, event)?;
                into.events.push(entry);
                parts.push(Part::Event(entry));
            }
            Emission::Timer(event) => timer = Some((event, None)),
            Emission::Expiring(event) => {
                let entry = self.number(scope, event)?;
                into.events.push(entry);
                parts.push(Part::Event(entry));
                timer = self.table.event(event).expired.map(|expired| (expired, Some(entry.seq)));
            }
            Emission::FanOut { fan_out, items, concurrency, policy } => {
                let event = self.table.fan_out(fan_out).item;
                into.events.reserve_exact(items as usize);
                let before = into.events.len();
                for _ in 0..items {
                    let branch = self.scopes.reserve();
                    into.events.push(self.number(branch, event)?);
                }
                let items = Items::new(into.events.get(before).copied(), items);
                let opening = Opening { fan_out, opener: scope, items, concurrency, policy };
                parts.push(Part::FanOut(Box::new(opening)));
            }
        }
        if let Some((event, request)) = timer {
            let timer = self.awaited.number_timer();
            let timer = TimerEntry { timer, execution: id, scope, event, request };
            into.timers.push(timer);
            parts.push(Part::Timer(Box::new(timer)));
        }
        Some(())
    }

    /// The request holds the scope already that a timer of its own closes.
    fn set_timer(&mut self, timer: TimerEntry) {
        if self.awaited.set_timer(timer) && timer.request.is_none() {
            self.scopes.hold(timer.scope);
        }
    }

    /// An event is in the log of an open scope.
    pub(super) fn logged(&mut self, entry: Entry) {
        self.scopes.hold(entry.scope);
        self.evaluation.push(entry);
        let row = self.table.event(entry.event);
        if let Some(reply) = row.reply.filter(|_| row.roles.is_request()) {
            self.scopes.hold(entry.scope);
            self.awaited.open(entry.seq, OpenRequest::new(entry.scope, entry.event, reply));
        }
    }

    /// A failure in a scope: it ends the run at the root, and goes by the fan-out's policy in a branch (S49).
    pub(super) fn fail_scope(&mut self, mut id: ScopeId, failures: Vec<ExecutionId>) {
        // However deep branches nest, the failure comes from scope to scope.
        let mut openers = Vec::new();
        while let Some(scope) = self.scopes.get_mut(id) {
            let Some((group, _)) = scope.branch else {
                self.finish(End::Failed(failures));
                break;
            };
            scope.failures.extend(failures.iter().copied());
            match self.groups.policy_of(group) {
                Some((FanOutPolicy::FailAll, opener)) => {
                    self.drop_group(group);
                    openers.push(opener);
                    id = opener;
                    continue;
                }
                Some((FanOutPolicy::ContinueOthers, _)) => self.degraded = true,
                Some((FanOutPolicy::WaitAll, _)) | None => {}
            }
            break;
        }
        for opener in openers.into_iter().rev() {
            self.scopes.release(opener);
        }
    }

    /// Starts what waited, oldest first, as far as there is room. O(steps) per execution started.
    #[inline(always)]
    pub(super) fn start_waiting(&mut self) {
        while self.end.is_none()
            && let Some(start) = self.executions.next_waiting(&self.table)
        {
            self.actions.push_back(super::QueuedAction::Start(start));
        }
    }

    /// Says what became of what was applied.
    pub(super) fn say(&mut self, action: Action) {
        self.actions.push_back(super::QueuedAction::Said(Box::new(action)));
    }
}
