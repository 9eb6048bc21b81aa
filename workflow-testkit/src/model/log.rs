//! The log: events from outside and from executions get positions (S4), and a batch takes effect as one (S23, S28,
//! S33).

use workflow_core::scheduler::{Cause, Emission, End};
use workflow_core::{ExecutionId, Seq};

use super::branches::Opening;
use super::line::{Line, Placed};
use super::{Logged, Model};

/// The effects of a batch once all its events have positions.
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
        self.out.push_back(Line::Appends { cause, entries: vec![entry], timers: Vec::new() });
        self.enter(vec![Part::Event(entry.seq)]);
    }

    /// Gives an event the next position of the log (S4).
    pub(super) fn number(&mut self, scope: u32, event: usize) -> Placed {
        self.log.push(Logged { scope, event, has_arrived: false });
        Placed { seq: self.log.len() as u64, scope, event }
    }

    /// An execution's events belong to the scope in which it was evaluated (S44), and enter the log as one batch.
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
                Emission::FanOut { fan_out, items, terms } => {
                    let opening = self.opening((fan_out.get(), execution), scope, *items, *terms);
                    entries.extend(opening.branches.iter().map(|(_, item)| *item));
                    parts.push(Part::FanOut(opening));
                }
            }
        }
        let cause = Cause::Execution(ExecutionId(execution));
        self.out.push_back(Line::Appends { cause, entries, timers });
        self.enter(parts);
    }

    /// The batch takes effect.
    fn enter(&mut self, parts: Vec<Part>) {
        // S28: the first stop event ends the run, at any index of the batch.
        if let Some(stop) = parts.iter().flat_map(Part::seqs).find(|seq| self.is_stop(*seq)) {
            self.finish(End::Completed(Seq(stop)));
            return;
        }
        let groups = self.count_groups();
        for part in parts {
            match part {
                Part::Event(seq) => self.arrive(seq),
                Part::FanOut(opening) => self.open_group(opening),
                Part::Timer(timer) => self.set_timer(timer),
            }
        }
        self.gather_empty(groups);
    }

    /// Queues a logged event for evaluation. Events of a branch that was dropped meanwhile are ignored.
    pub(super) fn arrive(&mut self, seq: u64) {
        if self.is_open(self.logged(seq).scope) {
            self.log[usize::try_from(seq).expect("a position fits the memory") - 1].has_arrived = true;
            self.unread.push_back(seq);
        }
    }
}

impl Part {
    fn seqs(&self) -> Vec<u64> {
        match self {
            Self::Event(seq) => vec![*seq],
            Self::FanOut(opening) => opening.branches.iter().map(|(_, item)| item.seq).collect(),
            Self::Timer(_) => Vec::new(),
        }
    }
}
