//! Batches of several emissions (S23). Numbering comes first: each emission gets its position. Then all of
//! them take effect together, so that no evaluation sees a part of a batch.
//!
//! ```text
//!  emissions      [A, fan-out of 2 items, timer, B]
//!  number         A at 4, items at 5 and 6 in new scopes, timer 1, B at 7
//!  enter          log A, open the fan-out, set timer 1, log B
//! ```
//!
//! A batch with a stop event ends the run instead: its events are in the log, and none of them is evaluated
//! (S28).
//!
//! Invariants: a batch takes effect whole or not at all. If it is beyond a limit of the run, `number` ends the run and no
//! [`NumberedBatch`] exists. Items have consecutive positions and consecutive scopes, on which [`Items`]
//! relies.
//!
//! The pending count of the execution stays until `enter` is over. So the scope is never settled between the
//! end of the execution and the evaluation of its events (S47).

use smallvec::SmallVec;

use super::board::Board;
use super::evaluate::Evaluation;
use super::group::{GroupId, Groups, Items, Opening};
use super::{BatchEntries, Emission, End, Entry, LoggedBatch, TimerEntry};
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::table::EventIndex;

/// A batch whose emissions have their positions and take effect with [`enter`](Self::enter).
#[derive(Debug)]
pub(super) struct NumberedBatch {
    /// The execution that emitted the batch. Timers name it.
    execution: ExecutionId,
    /// The scope of the execution, which its events belong to. Items belong to new scopes below.
    scope: ScopeId,
    /// The events and timers with their numbers, for the caller.
    entries: Box<BatchEntries>,
    /// The effects of the batch, in the order of its emissions.
    parts: SmallVec<[Part; 1]>,
}

/// The effect of one emission.
#[derive(Debug)]
enum Part {
    /// The event is queued for evaluation, and opened if it is a request.
    Event(Entry),
    /// A group opens, with as many branches as its bound allows. Boxed, as timers are: a batch may have very many
    /// events.
    FanOut(Box<Opening>),
    /// The timer becomes pending. Its request, if it closes one, is an earlier part.
    Timer(Box<TimerEntry>),
}

impl NumberedBatch {
    /// Numbers the emissions of an execution in this scope. Ends the run and returns `None` if they are beyond one of its
    /// limits (S76).
    pub(super) fn number(
        (execution, scope): (ExecutionId, ScopeId),
        emissions: &[Emission],
        board: &mut Board,
    ) -> Option<Self> {
        if let Some(end) = board.excess((execution, scope), emissions) {
            board.finish(end);
            return None;
        }
        let parts = SmallVec::with_capacity(emissions.len());
        let mut batch = Self { execution, scope, entries: Box::default(), parts };
        emissions.iter().try_for_each(|emission| batch.add(emission, board))?;
        Some(batch)
    }

    /// Numbers one emission; `None` if the log is full.
    fn add(&mut self, emission: &Emission, board: &mut Board) -> Option<()> {
        match *emission {
            Emission::Event(event) => {
                let entry = board.number(self.scope, event)?;
                self.add_event(entry);
            }
            Emission::Timer(event) => self.add_timer(event, None, board),
            Emission::Expiring(event) => {
                let entry = board.number(self.scope, event)?;
                // The event comes before its timer: a timer finds the request that it closes when it is set.
                self.add_event(entry);
                if let Some(expired) = board.table.event(event).expired {
                    self.add_timer(expired, Some(entry.seq), board);
                }
            }
            Emission::FanOut { fan_out, items, terms } => {
                let event = board.table.fan_out(fan_out).item;
                let events = &mut self.entries.events;
                // Items are entries of the batch, and no parts: each branch logs its item when it opens
                // (S50).
                events.reserve_exact(items as usize);
                let before = events.len();
                for _ in 0..items {
                    let branch = board.scopes.reserve();
                    events.push(board.number(branch, event)?);
                }
                let items = Items::new(events.get(before).copied(), items);
                let opening = Opening { fan_out, by: self.execution, opener: self.scope, items, terms };
                self.parts.push(Part::FanOut(Box::new(opening)));
            }
        }
        Some(())
    }

    fn add_event(&mut self, entry: Entry) {
        self.entries.events.push(entry);
        self.parts.push(Part::Event(entry));
    }

    fn add_timer(&mut self, event: EventIndex, request: Option<Seq>, board: &mut Board) {
        let Self { execution, scope, .. } = *self;
        let timer = board.awaited.number_timer();
        let timer = TimerEntry { timer, execution, scope, event, request };
        self.entries.timers.push(timer);
        self.parts.push(Part::Timer(Box::new(timer)));
    }

    /// Lets all emissions take effect. Ends the execution's count in its scope, unless the batch ends the
    /// run.
    /// The caller has ended the execution, and completed what follows from earlier batches.
    pub(super) fn enter(
        self,
        groups: &mut Groups,
        evaluation: &mut Evaluation,
        board: &mut Board,
    ) -> LoggedBatch {
        let Self { scope, entries, parts, .. } = self;
        // The first stop event counts (S28). Later events of the batch are in the log too, but nothing
        // evaluates them.
        let stop = entries.events.iter().find(|entry| board.table.event(entry.event).roles.is_stop());
        if let Some(stop) = stop {
            board.close(End::Completed(stop.seq));
            return LoggedBatch::Many(entries);
        }
        let mut opened: SmallVec<[GroupId; 1]> = SmallVec::new();
        for part in parts {
            match part {
                Part::Event(entry) => board.queue_evaluation(entry),
                Part::FanOut(opening) => opened.push(groups.open(&opening, board)),
                Part::Timer(timer) => board.set_timer(*timer),
            }
        }
        // Gathers the fan-outs without items: behind all parts, since the positions of the batch are adjacent (S23).
        for group in opened {
            groups.gather_if_settled(group, evaluation, board);
        }
        // Last: the parts have added their own counts by now, so the scope settles only if nothing follows.
        board.scopes.remove_pending(scope);
        LoggedBatch::Many(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::fixtures::{self, event};
    use crate::scheduler::{FanOutTerms, SchedulerLimits};
    use crate::table::FanOutIndex;

    const AT: (ExecutionId, ScopeId) = (ExecutionId(1), ScopeId::ROOT);

    fn board() -> Board {
        let mut board = fixtures::board(SchedulerLimits { events: 5, ..SchedulerLimits::default() });
        board.scopes.add_pending(ScopeId::ROOT);
        board
    }

    fn fan_out(items: u32) -> Emission {
        Emission::FanOut { fan_out: FanOutIndex::at(0), items, terms: FanOutTerms::default() }
    }

    fn enter(emissions: &[Emission], board: &mut Board) -> Option<LoggedBatch> {
        let batch = NumberedBatch::number(AT, emissions, board)?;
        Some(batch.enter(&mut Groups::default(), &mut Evaluation::default(), board))
    }

    // S23
    #[test]
    fn events_of_a_batch_are_adjacent_and_each_item_has_a_branch() {
        let mut board = board();
        let note = event(&board, "Note");
        let entered = enter(&[Emission::Event(note), fan_out(2), Emission::Timer(note)], &mut board);
        let entered = entered.expect("the log has room");
        let places = entered.events().iter().map(|entry| (entry.seq.0, entry.scope.0));
        assert!(places.eq([(1, 0), (2, 1), (3, 2)]));
        assert!(board.is_open(ScopeId(1)) && board.is_open(ScopeId(2)));
        assert!(entered.timers().iter().eq(board.awaited.timers()));
        assert_eq!(std::iter::from_fn(|| board.next_event()).count(), 3);
    }

    #[test]
    fn a_fan_out_without_items_is_gathered_behind_the_batch() {
        let mut board = board();
        let note = event(&board, "Note");
        let entered = enter(&[fan_out(0), Emission::Event(note)], &mut board);
        assert!(entered.is_some_and(|entered| entered.events().len() == 1));
        let logged: Vec<u64> = std::iter::from_fn(|| board.next_event()).map(|entry| entry.seq.0).collect();
        assert_eq!(logged, [1, 2]);
    }

    // S28
    #[test]
    fn a_batch_with_a_stop_event_ends_the_run_and_is_not_evaluated() {
        let mut board = board();
        let (note, done) = (event(&board, "Note"), event(&board, "Done"));
        let entered = enter(&[Emission::Event(note), Emission::Event(done)], &mut board);
        assert!(entered.is_some_and(|entered| entered.events().len() == 2));
        assert_eq!(board.progress.end(), Some(&End::Completed(Seq(2))));
        assert!(board.is_evaluated());
    }

    #[test]
    fn a_batch_beyond_the_limit_of_the_log_ends_the_run() {
        let mut board = board();
        assert!(enter(&[fan_out(6)], &mut board).is_none());
        assert!(matches!(board.progress.end(), Some(End::TooManyEvents(excess)) if excess.left == 5));
        assert_eq!(board.progress.last_seq(), Seq(0), "nothing of it has a position");
    }
}
