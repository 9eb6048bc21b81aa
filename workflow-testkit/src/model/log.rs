//! The log: what comes in from outside or from an execution gets its position when it is handed out to be
//! appended (S4), and is evaluated once its batch is confirmed (S23, S28, S33).

use workflow_core::scheduler::{Cause, Emission, End};
use workflow_core::{ExecutionId, Seq};

use super::branches::Opening;
use super::line::{Line, Placed};
use super::{Logged, Model};

/// What was handed out to be appended as one.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) scope: u32,
    pub(super) parts: Vec<Part>,
}

#[derive(Debug)]
pub(super) enum Part {
    Event(u64),
    FanOut(Opening),
    /// By its number.
    Timer(u64),
}

impl Model {
    pub(super) fn receive(&mut self, event: usize) {
        if self.is_closed() {
            self.out.push_back(Line::RefusesReceived);
        } else {
            self.append_one(Cause::Outside, 0, event);
        }
    }

    pub(super) fn receive_reply(&mut self, request: u64) {
        if self.is_closed() || !self.open_requests().contains(&request) {
            self.out.push_back(Line::RefusesReceived);
            return;
        }
        self.closed.insert(request);
        let Logged { scope, event, .. } = self.logged(request);
        let reply = self.plan.events[event].reply.expect("only requests are open");
        // A reply belongs to the branch that asked (S47).
        self.append_one(Cause::Reply(Seq(request)), scope, reply);
    }

    pub(super) fn append_one(&mut self, cause: Cause, scope: u32, event: usize) {
        let entry = self.number(scope, event);
        self.unconfirmed.push_back(Batch { scope, parts: vec![Part::Event(entry.seq)] });
        self.out.push_back(Line::Appends { cause, entries: vec![entry], timers: Vec::new() });
    }

    /// Gives an event the next position of the log (S4).
    pub(super) fn number(&mut self, scope: u32, event: usize) -> Placed {
        self.log.push(Logged { scope, event, has_arrived: false });
        let seq = self.log.len() as u64;
        self.is_stopping |= self.is_stop(seq);
        Placed { seq, scope, event }
    }

    /// What an execution emits belongs to the scope it was evaluated in (S44), and enters the log as one.
    pub(super) fn commit(&mut self, execution: u64, scope: u32, emissions: &[Emission]) {
        let (mut entries, mut parts, mut timers) = (Vec::new(), Vec::new(), Vec::new());
        for emission in emissions {
            match emission {
                Emission::Event(event) | Emission::Expiring(event) => {
                    let entry = self.number(scope, event.get());
                    entries.push(entry);
                    parts.push(Part::Event(entry.seq));
                    if matches!(emission, Emission::Expiring(_)) {
                        let expired = self.plan.events[event.get()].expired.expect("it can expire");
                        timers.push(self.number_timer(execution, scope, expired, Some(entry.seq)));
                        parts.push(Part::Timer(self.timers.len() as u64));
                    }
                }
                Emission::Timer(event) => {
                    timers.push(self.number_timer(execution, scope, event.get(), None));
                    parts.push(Part::Timer(self.timers.len() as u64));
                }
                Emission::FanOut { fan_out, items, concurrency, policy } => {
                    let concurrency = concurrency.map(|most| most.get() as usize);
                    let opening = self.opening(fan_out.get(), scope, *items, concurrency, *policy);
                    entries.extend(opening.branches.iter().map(|(_, item)| *item));
                    parts.push(Part::FanOut(opening));
                }
            }
        }
        self.unconfirmed.push_back(Batch { scope, parts });
        let cause = Cause::Execution(ExecutionId(execution));
        self.out.push_back(Line::Appends { cause, entries, timers });
    }

    /// The oldest batch is in the log.
    pub(super) fn confirm(&mut self) {
        let Some(batch) = self.unconfirmed.pop_front() else { return };
        if self.end.is_some() {
            return;
        }
        // S28: the first stop event ends the run, wherever in the batch it stands.
        if let Some(stop) = batch.seqs().into_iter().find(|seq| self.is_stop(*seq)) {
            self.finish(End::Completed(Seq(stop)));
            return;
        }
        for part in batch.parts {
            match part {
                Part::Event(seq) => self.arrive(seq),
                Part::FanOut(opening) => self.open_group(opening),
                Part::Timer(timer) => self.set_timer(timer),
            }
        }
    }

    /// An event is in the log, to be evaluated after those before it. What belongs to a branch that was
    /// dropped in the meantime is of no interest to anyone.
    pub(super) fn arrive(&mut self, seq: u64) {
        if self.is_open(self.logged(seq).scope) {
            self.log[usize::try_from(seq).expect("a position fits the memory") - 1].has_arrived = true;
            self.unread.push_back(seq);
        }
    }
}

impl Batch {
    fn seqs(&self) -> Vec<u64> {
        let seqs = self.parts.iter().flat_map(|part| match part {
            Part::Event(seq) => vec![*seq],
            Part::FanOut(opening) => opening.branches.iter().map(|(_, item)| item.seq).collect(),
            Part::Timer(_) => Vec::new(),
        });
        seqs.collect()
    }
}
