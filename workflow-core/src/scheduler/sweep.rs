//! Sweeps: the evaluation of an event of an outer scope in the open branches below that scope (S46).
//!
//! A run may have very many branches that wait, and each outer event concerns all of them. So a sweep
//! evaluates the event only where it can make a step run, and records a verdict only where it differs from
//! the previous one. [`Decisions`](super::decisions::Decisions) derives all others on demand from the
//! history.
//!
//! ```text
//!   sweep           0         1         2         3
//!   event          Note      Note      Note      Note
//!   branch 1    Executed   Executed   Refused  Refused     recorded: 0, 1, 2   derived: 3
//!   branch 2    NotReady   NotReady   NotReady NotReady    recorded: none      derived: all
//! ```
//!
//! Invariant: the tree of scopes, the joins and the changes in the history together determine the verdict of
//! each step in each branch at each sweep. Nothing of them is removed while the run is in memory; a closed
//! branch leaves its part in `closed` and `joined`.
//!
//! Two numbers order everything here: the number of a sweep, and the number of sweeps before something
//! happened. A branch that opened after 3 sweeps and closed after 5 was part of sweeps 3 and 4 (counted from
//! 0). A verdict of sweep 3 that stays holds for sweep 4 too if both events have the same type, unless a
//! change of sweep 4 replaces it.
//!
//! Example, with the picture: branch 1 executed in sweeps 0 and 1, which are two changes that do not stay. In
//! sweep 2 the precondition refused: a change that stays. In sweep 3 it refused again. Nothing is recorded,
//! and [`Join::latest`](super::joins::Join) now says 3.

use super::board::Board;
use super::joins::{self, Joined, Joins, Latest};
use super::scope::{ClosedBranch, Scope, Scopes};
use super::{Decision, Entry, Verdict};
use crate::id::{ScopeId, Seq};
use crate::table::{EventIndex, StepIndex};

/// The history of all sweeps; `None` in a run without a sweep and without a join.
#[derive(Debug, Default)]
pub(super) struct Sweeps(Option<Box<History>>);

/// Everything from which the verdict of each evaluation in each branch follows.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The steps and open branches in which an outer event can matter.
    pub(super) joins: Joins,
    /// All sweeps in order; the index is the number of the sweep.
    pub(super) sweeps: Vec<Sweep>,
    /// The recorded verdicts, in the order in which they became known.
    pub(super) changes: Vec<Change>,
    /// The closed branches that were open during some sweep.
    pub(super) closed: Vec<Closed>,
    /// For the closed branches: the number of sweeps before the branch had an event of its own that the step
    /// takes.
    pub(super) joined: Vec<(StepIndex, ScopeId, u32)>,
    /// Events from this position on were removed from the log: their sweeps yield no decisions.
    pub(super) retracted: Option<Seq>,
}

/// One event that was evaluated in the branches below its scope.
#[derive(Debug)]
pub(super) struct Sweep {
    /// The position of the event.
    pub(super) trigger: Seq,
    /// The scope of the event. The branches below it were swept.
    pub(super) scope: ScopeId,
    /// The type of the event. Verdicts that stay, stay per type.
    pub(super) event: EventIndex,
    /// The number of decisions recorded before this sweep, those in the event's own scope included.
    pub(super) position: usize,
}

/// The verdict of an evaluation in a branch, where it differs from the previous one.
#[derive(Debug)]
pub(super) struct Change {
    /// The number of the sweep. Changes are in the order of their verdicts, and not always of their sweeps.
    pub(super) sweep: u32,
    /// The evaluated step.
    pub(super) step: StepIndex,
    /// The branch in which it was evaluated.
    pub(super) scope: ScopeId,
    /// Whether later evaluations have the same verdict until the next change. An execution, for example,
    /// happens once.
    pub(super) stays: bool,
    /// The verdict, from this sweep on if it stays.
    pub(super) verdict: Verdict,
}

/// A branch that was open during some sweep.
#[derive(Debug)]
pub(super) struct Closed {
    /// The branch that closed.
    pub(super) scope: ScopeId,
    /// Its parent, which the tree does not know any more.
    pub(super) parent: ScopeId,
    /// The number of sweeps before it opened, and before it closed.
    pub(super) during: [u32; 2],
}

/// A closed branch that may open again.
#[derive(Debug)]
pub(super) struct KeptBranch {
    /// Its state when it closed. No branch below it was open.
    pub(super) scope: Scope,
    /// The steps that joined in it.
    joins: Vec<Joined>,
}

/// The place of a sweep in progress: the branch, and the number of steps already evaluated there.
pub(super) type Until = (ScopeId, usize);

impl Sweeps {
    /// The history; `None` if no branch ever met an outer event or had one to join.
    pub(super) fn history(&self) -> Option<&History> {
        self.0.as_deref()
    }

    fn history_mut(&mut self) -> &mut History {
        self.0.get_or_insert_default()
    }

    /// The number of sweeps so far.
    fn count(&self) -> u32 {
        self.history().map_or(0, History::count)
    }

    /// Whether the step takes an event of this branch itself and has all it requires there.
    pub(super) fn is_ready(&self, step: StepIndex, scope: ScopeId) -> bool {
        self.history().is_some_and(|history| history.joins.is_ready(step, scope))
    }

    /// Closes a branch and adds it to the history if it was swept.
    #[inline]
    pub(super) fn close_branch(&mut self, id: ScopeId, scopes: &mut Scopes) -> Option<ClosedBranch> {
        // Asked before closing, which removes the scope from the tree.
        let during = scopes.swept(id);
        let branch = scopes.close(id)?;
        self.close(id, during.map(|during| Closed { scope: id, parent: branch.parent, during }));
        Some(branch)
    }

    /// Closes a branch that a redrive may open again. Returns all of its state.
    pub(super) fn keep_branch(&mut self, id: ScopeId, scopes: &mut Scopes) -> Option<KeptBranch> {
        let joins = self.history().map(|history| history.joins.of(id)).unwrap_or_default();
        let during = scopes.swept(id);
        let scope = scopes.keep(id)?;
        let swept = during.zip(scope.parent).map(|(during, parent)| Closed { scope: id, parent, during });
        self.close(id, swept);
        Some(KeptBranch { scope, joins })
    }

    /// Opens a branch again. It took part in no sweep since it closed.
    pub(super) fn reopen_branch(&mut self, id: ScopeId, kept: KeptBranch, board: &mut Board) {
        let KeptBranch { scope, joins } = kept;
        let sweeps = self.count();
        let closed = self.0.as_mut().and_then(|history| {
            let is_it = |closed: &mut Closed| closed.scope == id && closed.during[1] == sweeps;
            history.closed.extract_if(.., is_it).next()
        });
        // A branch that missed no sweep continues as if it had never closed.
        let opened = closed.map_or(sweeps, |closed| closed.during[0]);
        board.scopes.reopen(id, scope, opened);
        // Readiness is a matter of what the scope sees; no trigger has a part in it.
        let trigger = Entry { seq: Seq(0), scope: id, event: EventIndex::at(0) };
        for joined in joins {
            let is_ready = board.binder(trigger, id).is_ready(joined.0);
            self.history_mut().joins.put_back(id, joined, is_ready);
        }
    }

    /// The question of a sweep is open again: forgets the verdict that it had for this sweep alone.
    pub(super) fn ask_again(&mut self, sweep: u32, (step, scope): (StepIndex, ScopeId)) {
        if let Some(history) = &mut self.0 {
            let is_it = |change: &Change| (change.sweep, change.step, change.scope) == (sweep, step, scope);
            history.changes.retain(|change| change.stays || !is_it(change));
        }
    }

    /// Moves the joins of a closed branch to the history, if a sweep happened while it was open.
    fn close(&mut self, scope: ScopeId, swept: Option<Closed>) {
        let Some(history) = &mut self.0 else { return };
        let History { joins, joined, closed, .. } = &mut **history;
        let removed = joins.remove(scope);
        if let Some(swept) = swept {
            let until = swept.during[1];
            // A join that began after the last sweep was part of none, and derives nothing.
            let seen = removed.filter(|(_, since)| *since < until);
            joined.extend(seen.map(|(step, since)| (step, scope, since)));
            closed.push(swept);
        } else {
            removed.for_each(drop);
        }
    }

    /// Records the verdict of an evaluation in a branch. The answer of a precondition may arrive after the
    /// verdicts of later sweeps.
    pub(super) fn conclude(&mut self, sweep: u32, (step, scope): (StepIndex, ScopeId), verdict: Verdict) {
        let Some(history) = &mut self.0 else { return };
        let stays = history.is_new(sweep, (step, scope), verdict);
        if let Some(stays) = stays {
            history.changes.push(Change { sweep, step, scope, stays, verdict });
        }
    }

    /// Removes the events from this position on. `decisions` has all recorded decisions, including those to
    /// be dropped. The sweeps themselves stay, since their numbers order everything else.
    pub(super) fn retract(&mut self, from: Seq, decisions: &[Decision]) {
        let Some(history) = &mut self.0 else { return };
        let (mut read, mut kept) = (0, 0);
        // Each sweep refers to the number of decisions before it, which shrinks with the decisions dropped.
        for sweep in &mut history.sweeps {
            let between = &decisions[read..sweep.position];
            kept += between.iter().filter(|decision| decision.trigger < from).count();
            (read, sweep.position) = (sweep.position, kept);
        }
        history.retracted = Some(history.retracted.map_or(from, |before| before.min(from)));
    }

    pub(super) fn shrink(&mut self) {
        if let Some(history) = &mut self.0 {
            history.sweeps.shrink_to_fit();
            history.changes.shrink_to_fit();
            history.closed.shrink_to_fit();
            history.joined.shrink_to_fit();
        }
    }
}

impl History {
    fn count(&self) -> u32 {
        u32::try_from(self.sweeps.len()).expect("a run has fewer than 4 billion events from outside")
    }

    /// Whether to record the verdict: `None` if it is the one before, else whether it stays. Updates the latest
    /// verdict of the join. A step that is not ready in the branch has no join there, and its verdict is recorded for
    /// this sweep alone.
    fn is_new(&mut self, sweep: u32, at: (StepIndex, ScopeId), verdict: Verdict) -> Option<bool> {
        // A verdict that happens once is always recorded. One that stays is recorded only where it is new for
        // this type of trigger.
        let stays = match verdict {
            Verdict::NotReady
            | Verdict::Covered
            | Verdict::Duplicate
            | Verdict::GatherTaken(_)
            | Verdict::LimitReached
            | Verdict::Refused => true,
            Verdict::Executed(_)
            | Verdict::RunLimitReached
            | Verdict::Asking
            | Verdict::PreconditionFailed => false,
        };
        let event = self.sweeps.get(sweep as usize)?.event;
        let Some(join) = self.joins.join_mut(at.0, at.1).filter(|_| stays) else { return Some(false) };
        match join.latest.iter_mut().find(|latest| latest.event == event) {
            // The answer of a precondition came after a later sweep, whose verdict stands for the sweeps
            // after it.
            Some(latest) if latest.sweep > sweep => return Some(false),
            Some(latest) if latest.verdict == verdict => {
                latest.sweep = sweep;
                return None;
            }
            Some(latest) => (latest.sweep, latest.verdict) = (sweep, verdict),
            None => join.latest.push(Latest { event, sweep, verdict }),
        }
        Some(true)
    }
}

impl Sweeps {
    /// Registers a new event of a branch: from here on outer events can make the steps run that take both.
    pub(super) fn join(&mut self, own: Entry, board: &Board) {
        let binder = board.binder(own, own.scope);
        for step in joins::joining(&board.table, own.event) {
            let (is_ready, count) = (binder.is_ready(step), self.count());
            self.history_mut().joins.add(step, own.scope, is_ready, count);
        }
    }

    /// Begins a sweep. `position` is the number of decisions recorded so far. Returns the number of the
    /// sweep, and the branches in which the event can make a step run, the first one last.
    ///
    /// The caller has evaluated the event in its own scope, and has counted it there. So the event is visible to
    /// the branches when `mark_ready` tests their readiness. Every sweep is recorded, also one without a candidate:
    /// the derived decisions need it.
    pub(super) fn sweep(&mut self, entry: Entry, position: usize, board: &mut Board) -> (u32, Vec<ScopeId>) {
        let Entry { seq: trigger, scope, event } = entry;
        let sweep = self.count();
        board.scopes.sweep(scope);
        let history = self.history_mut();
        history.sweeps.push(Sweep { trigger, scope, event, position });
        let steps: Vec<StepIndex> = joins::joining(&board.table, event).collect();
        if steps.is_empty() {
            return (sweep, Vec::new());
        }
        // At the root all branches are below, most of which may have nothing to do with the event. So the
        // joins list the candidates there.
        let mut below = Vec::new();
        if scope != ScopeId::ROOT {
            board.scopes.below(scope, &mut below);
        }
        if board.may_complete(entry) {
            history.mark_ready(entry, &steps, &below, board);
        }
        let joins = &history.joins;
        if scope == ScopeId::ROOT {
            below.extend(steps.iter().flat_map(|step| joins.ready(*step)));
            board.scopes.sort(&mut below);
        } else {
            below.retain(|branch| steps.iter().any(|step| joins.is_ready(*step, *branch)));
        }
        // The cursor pops the next branch off the end.
        below.reverse();
        (sweep, below)
    }
}

impl History {
    /// Marks where the steps became ready by this event: below the root in all branches, else only in those
    /// of `below`.
    fn mark_ready(&mut self, trigger: Entry, steps: &[StepIndex], below: &[ScopeId], board: &Board) {
        let joins = &mut self.joins;
        for step in steps {
            let is_ready = |branch: &ScopeId| board.binder(trigger, *branch).is_ready(*step);
            let ready: Vec<ScopeId> = if trigger.scope == ScopeId::ROOT {
                joins.unready(*step).filter(is_ready).collect()
            } else {
                let unready = below.iter().copied().filter(|branch| joins.is_unready(*step, *branch));
                unready.filter(is_ready).collect()
            };
            for branch in ready {
                joins.set_ready(*step, branch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::fixtures::{self, entry, entry_in, step};
    use crate::scheduler::{GroupId, SchedulerLimits};

    /// Two open branches; the first one has an item.
    fn joined() -> (Sweeps, Board) {
        let (mut sweeps, mut board) = (Sweeps::default(), fixtures::board(SchedulerLimits::default()));
        for place in 0..2 {
            let scope = board.scopes.reserve();
            board.scopes.open(scope, ScopeId::ROOT, (GroupId::of(0), place), false);
        }
        let item = entry_in(&mut board, ScopeId(1), "Item");
        assert!(board.count(item));
        sweeps.join(item, &board);
        (sweeps, board)
    }

    fn swept() -> (Sweeps, Board, Vec<ScopeId>) {
        let (mut sweeps, mut board) = joined();
        let note = entry(&mut board, "Note");
        assert!(board.count(note));
        let (sweep, below) = sweeps.sweep(note, 0, &mut board);
        assert_eq!((sweep, sweeps.count()), (0, 1));
        (sweeps, board, below)
    }

    fn changes(sweeps: &Sweeps) -> Vec<(u32, Verdict)> {
        let changes = sweeps.history().into_iter().flat_map(|history| &history.changes);
        changes.map(|change| (change.sweep, change.verdict)).collect()
    }

    // S46
    #[test]
    fn an_outer_event_is_evaluated_where_it_makes_a_step_ready_that_takes_an_event_of_the_branch() {
        let (sweeps, board) = joined();
        let pack = step(&board, "pack");
        assert!(!sweeps.is_ready(pack, ScopeId(1)), "no note has come");
        let (sweeps, _, below) = swept();
        assert_eq!(below, [ScopeId(1)]);
        assert!(sweeps.is_ready(pack, ScopeId(1)) && !sweeps.is_ready(pack, ScopeId(2)));
    }

    #[test]
    fn a_verdict_is_recorded_where_it_differs_from_the_one_before() {
        let (mut sweeps, mut board, _) = swept();
        let at = (step(&board, "pack"), ScopeId(1));
        sweeps.conclude(0, at, Verdict::Duplicate);
        for sweep in 1..3 {
            let note = entry(&mut board, "Note");
            assert!(board.count(note));
            sweeps.sweep(note, 0, &mut board);
            sweeps.conclude(sweep, at, if sweep == 1 { Verdict::Duplicate } else { Verdict::Refused });
        }
        assert_eq!(changes(&sweeps), [(0, Verdict::Duplicate), (2, Verdict::Refused)]);
    }

    #[test]
    fn only_a_closed_branch_that_was_swept_stays_in_the_history() {
        let (mut sweeps, mut board, _) = swept();
        assert!(sweeps.close_branch(ScopeId(1), &mut board.scopes).is_some());
        assert!(sweeps.close_branch(ScopeId(1), &mut board.scopes).is_none());
        let late = board.scopes.reserve();
        board.scopes.open(late, ScopeId::ROOT, (GroupId::of(1), 0), false);
        assert!(sweeps.close_branch(late, &mut board.scopes).is_some());
        let closed = sweeps.history().into_iter().flat_map(|history| &history.closed);
        assert!(closed.map(|closed| (closed.scope, closed.during)).eq([(ScopeId(1), [0, 1])]));
        assert!(!sweeps.is_ready(step(&board, "pack"), ScopeId(1)));
    }
}
