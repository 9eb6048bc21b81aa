//! Candidates: ready steps whose preconditions are being asked (S18). Candidates are numbered in order, and
//! most answers arrive in that order. So a queue with gaps stores them rather than a map.
//!
//! Example: candidates 7, 8 and 9 are asked. The answer for 8 leaves a gap, and the queue is `[7, gap, 9]`
//! with `first = 7`. The answer for 7 removes both entries, and `first` is 9.
//!
//! ```text
//!  open     [7, gap, 9]   first = 7   asked = 2   next number 10
//!             ▲                answer for 7 ─▶ [9]   first = 9   asked = 1   next number 10
//!             └ place = number - first
//! ```
//!
//! Invariant: a number is given once and belongs to one question for the whole run, also across a suspension.
//! So a late answer to a dropped question finds nothing.

use std::collections::{HashSet, VecDeque};

use super::{Binding, CandidateId};
use crate::id::{ScopeId, Seq};
use crate::table::StepIndex;

/// A ready step whose precondition is being asked.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The step that has the precondition.
    pub(crate) step: StepIndex,
    /// The scope in which the step was evaluated. Dropping this scope drops the question.
    pub(crate) scope: ScopeId,
    /// The event that triggered the evaluation.
    pub(crate) trigger: Seq,
    /// The binding of the step, fixed at its trigger: events that come before the answer do not change it (S12).
    pub(crate) binding: Binding,
    /// The place in which the answer of the precondition is recorded.
    pub(super) place: VerdictSlot,
    /// Whether the question waits for the end of a pause (S61).
    pub(crate) deferred: bool,
}

/// The place in which the verdict of a candidate is recorded.
#[derive(Debug, Clone, Copy)]
pub(super) enum VerdictSlot {
    /// At this place of the recorded decisions: the step was evaluated in the scope of its trigger.
    At(usize),
    /// With the sweep, in a branch below the scope of the trigger.
    Below { sweep: u32 },
    /// In the clean-up of the run.
    CleanUp,
}

impl Candidate {
    /// The sweep, step and branch of a question below the scope of the trigger; `None` for others.
    pub(super) fn asked_below(&self) -> Option<(u32, (StepIndex, ScopeId))> {
        let VerdictSlot::Below { sweep } = self.place else { return None };
        Some((sweep, (self.step, self.scope)))
    }
}

/// The candidates of one run.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Candidate n is at n - `first`, as `None` once it is answered or dropped. The front is never `None`.
    open: VecDeque<Option<Candidate>>,
    /// The number of the candidate at the front of `open`, or of the next one if it is empty.
    first: u64,
    /// The number of open candidates: the `Some` entries of `open`.
    asked: usize,
}

impl Candidates {
    /// Creates an empty queue whose next number is this, for a scheduler that was suspended.
    pub(super) fn from(next: u64) -> Self {
        Self { first: next, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asked == 0
    }

    /// The number of the oldest candidate that is open, or of the next one.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The number of the next candidate.
    pub(super) fn next(&self) -> u64 {
        self.first + self.open.len() as u64
    }

    #[inline]
    pub(super) fn add(&mut self, candidate: Candidate) -> CandidateId {
        let id = CandidateId(self.next());
        self.open.push_back(Some(candidate));
        self.asked += 1;
        id
    }

    pub(super) fn get(&self, id: CandidateId) -> Option<&Candidate> {
        self.open.get(self.place(id)?)?.as_ref()
    }

    /// Removes a candidate; `None` if it is answered or dropped. Amortised O(1).
    #[inline]
    pub(super) fn remove(&mut self, id: CandidateId) -> Option<Candidate> {
        let place = self.place(id)?;
        let candidate = if place == 0 {
            let oldest = self.open.pop_front()??;
            self.first += 1;
            oldest
        } else {
            self.open.get_mut(place)?.take()?
        };
        self.asked -= 1;
        self.forget_answered();
        Some(candidate)
    }

    /// Removes and returns the candidates of these scopes, with their numbers.
    pub(super) fn drop_in(&mut self, scopes: &HashSet<ScopeId>) -> Vec<(CandidateId, Candidate)> {
        if self.asked == 0 {
            return Vec::new();
        }
        let is_in_scopes = |candidate: &mut Candidate| scopes.contains(&candidate.scope);
        let numbered = (self.first..).map(CandidateId).zip(&mut self.open);
        let dropped = numbered.filter_map(|(id, place)| Some((id, place.take_if(is_in_scopes)?)));
        let dropped: Vec<_> = dropped.collect();
        self.asked -= dropped.len();
        self.forget_answered();
        dropped
    }

    /// Removes and returns all candidates. Their numbers are not given again.
    pub(super) fn take_all(&mut self) -> Vec<(CandidateId, Candidate)> {
        let numbers = (self.first..).map(CandidateId);
        (self.first, self.asked) = (self.next(), 0);
        let open = std::mem::take(&mut self.open);
        numbers.zip(open).filter_map(|(id, candidate)| Some((id, candidate?))).collect()
    }

    /// The open candidates, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (CandidateId, &Candidate)> {
        let numbered = (self.first..).map(CandidateId).zip(&self.open);
        numbered.filter_map(|(id, candidate)| Some((id, candidate.as_ref()?)))
    }

    /// Restores the invariant of `open`: its front is not `None`.
    fn forget_answered(&mut self) {
        while self.open.front().is_some_and(Option::is_none) {
            self.open.pop_front();
            self.first += 1;
        }
    }

    /// Defers a question until [`take_deferred`](Self::take_deferred).
    pub(super) fn defer(&mut self, id: CandidateId) {
        let candidate = self.place(id).and_then(|place| self.open.get_mut(place)?.as_mut());
        if let Some(candidate) = candidate {
            candidate.deferred = true;
        }
    }

    /// Takes the mark off the deferred candidates, and returns their numbers in order.
    pub(super) fn take_deferred(&mut self) -> Vec<CandidateId> {
        let numbered = (self.first..).map(CandidateId).zip(&mut self.open);
        let deferred = numbered
            .filter_map(|(id, candidate)| std::mem::take(&mut candidate.as_mut()?.deferred).then_some(id));
        deferred.collect()
    }

    /// Where the candidate is in `open`; `None` for a number below `first`. A number not given yet is behind
    /// the end.
    fn place(&self, id: CandidateId) -> Option<usize> {
        usize::try_from(id.0.checked_sub(self.first)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(scope: u32) -> Candidate {
        let (step, trigger) = (StepIndex::at(0), Seq(1));
        let (binding, place) = (Binding::new(), VerdictSlot::At(0));
        Candidate { step, scope: ScopeId(scope), trigger, binding, place, deferred: false }
    }

    #[test]
    fn candidates_are_found_by_number_until_answered_in_any_order() {
        let mut candidates = Candidates::from(7);
        let ids: Vec<_> = (0..4).map(|scope| candidates.add(candidate(scope))).collect();
        assert_eq!(ids, [7, 8, 9, 10].map(CandidateId));
        for id in [ids[1], ids[0], ids[3]] {
            assert!(candidates.remove(id).is_some());
            assert!(candidates.remove(id).is_none() && candidates.get(id).is_none());
        }
        assert_eq!(candidates.iter().map(|(id, _)| id).collect::<Vec<_>>(), [ids[2]]);
        assert!(candidates.remove(ids[2]).is_some());
        assert!(candidates.is_empty());
        assert_eq!(candidates.add(candidate(0)), CandidateId(11));
        assert!(candidates.get(CandidateId(3)).is_none());
    }

    // S61
    #[test]
    fn deferred_candidates_are_taken_once_in_order() {
        let mut candidates = Candidates::default();
        let ids: Vec<_> = (0..4).map(|scope| candidates.add(candidate(scope))).collect();
        for id in [ids[3], ids[1], ids[2], CandidateId(9)] {
            candidates.defer(id);
        }
        assert!(candidates.remove(ids[2]).is_some());
        assert_eq!(candidates.take_deferred(), [ids[1], ids[3]]);
        assert!(candidates.take_deferred().is_empty());
    }

    #[test]
    fn candidates_of_dropped_scopes_are_dropped() {
        let mut candidates = Candidates::default();
        let ids: Vec<_> = (0..3).map(|scope| candidates.add(candidate(scope))).collect();
        let dropped = candidates.drop_in(&HashSet::from([ScopeId(0), ScopeId(2)]));
        assert!(dropped.iter().map(|(id, _)| *id).eq([ids[0], ids[2]]));
        assert_eq!(candidates.iter().map(|(id, _)| id).collect::<Vec<_>>(), [ids[1]]);
        assert_eq!(candidates.next(), 3);
        assert!(candidates.remove(ids[0]).is_none());
        assert!(!candidates.is_empty());
    }
}
