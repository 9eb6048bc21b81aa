//! What enters the log: batches are numbered when they are handed out and take effect when they are
//! confirmed, oldest first (S4, S23).

use std::cmp::Reverse;

use smallvec::{SmallVec, smallvec};

use super::evaluate::Unevaluated;
use super::group::{Items, Opening};
use super::{Action, Cause, Emission, End, Entry, Scheduler, TimerEntry};
use crate::id::{ExecutionId, ScopeId, Seq, TimerId};
use crate::table::{DependencyTable, EventIndex};

/// A batch that was handed out and is not confirmed yet. It holds its scope open.
#[derive(Debug)]
pub(super) struct Batch {
    scope: ScopeId,
    parts: SmallVec<[Part; 1]>,
}

#[derive(Debug)]
enum Part {
    Event(Entry),
    /// Boxed, as timers are: a batch may have very many events.
    FanOut(Box<Opening>),
    Timer(Box<TimerEntry>),
}

/// What an execution commits, while it is being numbered.
#[derive(Debug)]
struct Numbered {
    entries: SmallVec<[Entry; 1]>,
    parts: SmallVec<[Part; 1]>,
    timers: Vec<TimerEntry>,
}

impl Numbered {
    /// Nothing yet, of so many emissions.
    fn of(emissions: usize) -> Self {
        let (entries, parts) = (SmallVec::with_capacity(emissions), SmallVec::with_capacity(emissions));
        Self { entries, parts, timers: Vec::new() }
    }
}

impl Batch {
    /// How many timers it sets.
    pub(super) fn timers(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, Part::Timer(_))).count()
    }
}

impl Part {
    /// The first stop event in it.
    fn stop(&self, table: &DependencyTable) -> Option<Seq> {
        let first = match self {
            Self::Event(entry) => Some(*entry),
            // The others are of the same type.
            Self::FanOut(opening) => opening.items.first(),
            Self::Timer(_) => None,
        };
        first.filter(|entry| table.event(entry.event).roles.is_stop()).map(|entry| entry.seq)
    }
}

/// A request without a reply; it holds its scope open (S47).
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) scope: ScopeId,
    pub(super) event: EventIndex,
    pub(super) reply: EventIndex,
    /// What closes it, if its time is limited.
    pub(super) timer: Option<TimerId>,
}

impl Scheduler {
    /// Keeps a scope from being settled (S47) until [`release`](Self::release).
    pub(super) fn hold(&mut self, scope: ScopeId) {
        if let Some(scope) = self.scopes.get_mut(scope) {
            scope.pending += 1;
        }
    }

    pub(super) fn release(&mut self, id: ScopeId) {
        let Some(scope) = self.scopes.get_mut(id) else { return };
        scope.pending -= 1;
        if scope.pending == 0 && scope.branch.is_some() {
            self.settling.push(Reverse(id));
        }
    }

    pub(super) fn receive(&mut self, event: EventIndex) {
        if self.refuses() {
            return self.refuse();
        }
        self.hold(ScopeId::ROOT);
        self.append_one(Cause::Outside, ScopeId::ROOT, event);
    }

    pub(super) fn receive_reply(&mut self, request: Seq) {
        let open = if self.refuses() { None } else { self.requests.remove(&request) };
        match open {
            // The request's hold on the scope becomes the batch's.
            Some(open) => {
                if let Some(timer) = open.timer {
                    self.timers.remove(&timer);
                }
                self.append_one(Cause::Reply(request), open.scope, open.reply);
            }
            None => self.refuse(),
        }
    }

    pub(super) fn refuse(&mut self) {
        self.want(Action::RefuseReceived);
    }

    /// Whether nothing is accepted any more: the run has ended, or the stop event is on its way to the log.
    pub(crate) fn refuses(&self) -> bool {
        self.end.is_some() || self.stopping
    }

    /// Appends the event that says that an execution failed, in its scope.
    pub(super) fn append_failure(&mut self, id: ExecutionId, scope: ScopeId, event: EventIndex) {
        self.hold(scope);
        self.append_one(Cause::Failure(id), scope, event);
    }

    pub(super) fn append_one(&mut self, cause: Cause, scope: ScopeId, event: EventIndex) {
        let Some(entry) = self.number(scope, event) else { return };
        self.appending.push_back(Batch { scope, parts: smallvec![Part::Event(entry)] });
        self.want(Action::Append { cause, entries: smallvec![entry], timers: Vec::new() });
    }

    /// Appends the event that says that a fan-out is gathered; the group's hold becomes the batch's.
    pub(super) fn append_gathered(&mut self, opener: ScopeId, event: EventIndex) -> Option<Entry> {
        let entry = self.number(opener, event)?;
        self.appending.push_back(Batch { scope: opener, parts: smallvec![Part::Event(entry)] });
        Some(entry)
    }

    /// Gives an event its position, unless the log is full.
    pub(super) fn number(&mut self, scope: ScopeId, event: EventIndex) -> Option<Entry> {
        if self.last_seq >= self.limits.events {
            self.finish(End::LogFull);
            return None;
        }
        self.last_seq += 1;
        self.stopping |= self.table.event(event).roles.is_stop();
        Some(Entry { seq: Seq(self.last_seq), scope, event })
    }

    pub(super) fn commit(&mut self, id: ExecutionId, scope: ScopeId, emissions: &[Emission]) {
        let mut numbered = Numbered::of(emissions.len());
        for emission in emissions {
            if self.number_emission(id, scope, emission, &mut numbered).is_none() {
                return;
            }
        }
        self.hold(scope);
        let Numbered { entries, parts, timers } = numbered;
        self.appending.push_back(Batch { scope, parts });
        self.want(Action::Append { cause: Cause::Execution(id), entries, timers });
    }

    /// Gives an emission its place in the batch, unless the log is full.
    fn number_emission(
        &mut self,
        id: ExecutionId,
        scope: ScopeId,
        emission: &Emission,
        into: &mut Numbered,
    ) -> Option<()> {
        match *emission {
            Emission::Event(event) => {
                self.number_event(scope, event, into)?;
            }
            Emission::Timer(event) => self.number_timer(id, scope, event, None, into),
            Emission::Expiring(event) => {
                let request = self.number_event(scope, event, into)?;
                if let Some(expired) = self.table.event(event).expired {
                    self.number_timer(id, scope, expired, Some(request), into);
                }
            }
            Emission::FanOut { fan_out, items, concurrency, policy } => {
                let event = self.table.fan_out(fan_out).item;
                into.entries.reserve_exact(items as usize);
                let before = into.entries.len();
                for _ in 0..items {
                    let branch = self.scopes.reserve();
                    into.entries.push(self.number(branch, event)?);
                }
                let items = Items::new(into.entries.get(before).copied(), items);
                let opening = Opening { fan_out, opener: scope, items, concurrency, policy };
                into.parts.push(Part::FanOut(Box::new(opening)));
            }
        }
        Some(())
    }

    fn number_event(&mut self, scope: ScopeId, event: EventIndex, into: &mut Numbered) -> Option<Seq> {
        let entry = self.number(scope, event)?;
        into.entries.push(entry);
        into.parts.push(Part::Event(entry));
        Some(entry.seq)
    }

    fn number_timer(
        &mut self,
        execution: ExecutionId,
        scope: ScopeId,
        event: EventIndex,
        request: Option<Seq>,
        into: &mut Numbered,
    ) {
        self.last_timer += 1;
        let timer = TimerEntry { timer: TimerId(self.last_timer), execution, scope, event, request };
        into.timers.push(timer);
        into.parts.push(Part::Timer(Box::new(timer)));
    }

    /// The oldest batch is in the log: its events wait for evaluation, its branches open.
    pub(super) fn confirm_append(&mut self) {
        let Some(Batch { scope, parts }) = self.appending.pop_front() else { return };
        if self.end.is_some() {
            return;
        }
        if let Some(stop) = parts.iter().find_map(|part| part.stop(&self.table)) {
            self.finish(End::Completed(stop));
            return;
        }
        for part in parts {
            match part {
                Part::Event(entry) => self.logged(entry),
                Part::FanOut(opening) => self.open_group(&opening),
                Part::Timer(timer) => self.set_timer(*timer),
            }
        }
        self.release(scope);
    }

    /// An event is in the log of an open scope.
    pub(super) fn logged(&mut self, entry: Entry) {
        if self.scopes.get(entry.scope).is_none() {
            return;
        }
        self.hold(entry.scope);
        self.unevaluated.push_back(Unevaluated { entry });
        let row = self.table.event(entry.event);
        if let Some(reply) = row.reply.filter(|_| row.roles.is_request()) {
            self.hold(entry.scope);
            let Entry { scope, event, .. } = entry;
            let open = OpenRequest { scope, event, reply, timer: None };
            self.requests.insert(entry.seq, Box::new(open));
        }
    }
}
