//! What enters the log: batches are numbered when they are handed out and take effect when they are
//! confirmed, oldest first (S4, S23).

use smallvec::{SmallVec, smallvec};

use super::evaluate::Unevaluated;
use super::group::Opening;
use super::{Action, Cause, Emission, End, Entry, Scheduler};
use crate::id::{ExecutionId, ScopeId, Seq};
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
    FanOut(Opening),
}

impl Part {
    /// The first stop event in it.
    fn stop(&self, table: &DependencyTable) -> Option<Seq> {
        let is_stop = |entry: &&Entry| table.event(entry.event).roles.is_stop();
        let stop = match self {
            Self::Event(entry) => Some(entry).filter(is_stop),
            Self::FanOut(opening) => opening.items.iter().find(is_stop),
        };
        stop.map(|entry| entry.seq)
    }
}

/// A request without a reply; it holds its scope open (S47).
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) scope: ScopeId,
    pub(super) event: EventIndex,
    pub(super) reply: EventIndex,
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
            self.settling.insert(id);
        }
    }

    pub(super) fn receive(&mut self, event: EventIndex) {
        if self.refuses() {
            self.actions.push_back(Action::RefuseReceived);
            return;
        }
        self.hold(ScopeId::ROOT);
        self.append_one(Cause::Outside, ScopeId::ROOT, event);
    }

    pub(super) fn receive_reply(&mut self, request: Seq) {
        let open = if self.refuses() { None } else { self.requests.remove(&request) };
        match open {
            // The request's hold on the scope becomes the batch's.
            Some(open) => self.append_one(Cause::Reply(request), open.scope, open.reply),
            None => self.actions.push_back(Action::RefuseReceived),
        }
    }

    /// Whether nothing is accepted any more: the run has ended, or the stop event is on its way to the log.
    pub(super) fn refuses(&self) -> bool {
        self.end.is_some() || self.stopping
    }

    /// Appends the event that says that an execution failed, in its scope.
    pub(super) fn append_failure(&mut self, id: ExecutionId, scope: ScopeId, event: EventIndex) {
        self.hold(scope);
        self.append_one(Cause::Failure(id), scope, event);
    }

    fn append_one(&mut self, cause: Cause, scope: ScopeId, event: EventIndex) {
        let Some(entry) = self.number(scope, event) else { return };
        self.appending.push_back(Batch { scope, parts: smallvec![Part::Event(entry)] });
        self.actions.push_back(Action::Append { cause, entries: smallvec![entry] });
    }

    /// Appends the event that says that a fan-out is gathered; the group's hold becomes the batch's.
    pub(super) fn append_gathered(&mut self, opener: ScopeId, event: EventIndex) -> Option<Entry> {
        let entry = self.number(opener, event)?;
        self.appending.push_back(Batch { scope: opener, parts: smallvec![Part::Event(entry)] });
        Some(entry)
    }

    /// Gives an event its position, unless the log is full.
    fn number(&mut self, scope: ScopeId, event: EventIndex) -> Option<Entry> {
        if self.last_seq >= self.limits.events {
            self.finish(End::LogFull);
            return None;
        }
        self.last_seq += 1;
        self.stopping |= self.table.event(event).roles.is_stop();
        Some(Entry { seq: Seq(self.last_seq), scope, event })
    }

    pub(super) fn commit(&mut self, id: ExecutionId, scope: ScopeId, emissions: &[Emission]) {
        let mut entries = SmallVec::new();
        let mut parts = SmallVec::new();
        for emission in emissions {
            let Some(part) = self.part(scope, emission, &mut entries) else { return };
            parts.push(part);
        }
        self.hold(scope);
        self.appending.push_back(Batch { scope, parts });
        self.actions.push_back(Action::Append { cause: Cause::Execution(id), entries });
    }

    fn part(
        &mut self,
        scope: ScopeId,
        emission: &Emission,
        entries: &mut SmallVec<[Entry; 1]>,
    ) -> Option<Part> {
        match *emission {
            Emission::Event(event) => {
                let entry = self.number(scope, event)?;
                entries.push(entry);
                Some(Part::Event(entry))
            }
            Emission::FanOut { fan_out, items, concurrency, policy } => {
                let event = self.table.fan_out(fan_out).item;
                let first = entries.len();
                for _ in 0..items {
                    let branch = self.scopes.reserve();
                    entries.push(self.number(branch, event)?);
                }
                let items = entries[first..].iter().copied().collect();
                Some(Part::FanOut(Opening { fan_out, opener: scope, items, concurrency, policy }))
            }
        }
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
                Part::FanOut(opening) => self.open_group(opening),
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
            self.requests.insert(entry.seq, OpenRequest { scope: entry.scope, event: entry.event, reply });
        }
    }
}
