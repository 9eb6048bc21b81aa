//! The numbers of executions that a journal tells of, kept until the executions are created again.

use std::collections::{HashMap, VecDeque};

use super::Evaluated;
use crate::id::ExecutionId;

/// Numbers by what was evaluated. Executions are mostly created again in the order of their numbers: what comes next is
/// looked at first, and only what comes out of turn is looked up. Amortised O(1) each.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    /// What each number stands for, that of number 1 first; nothing where the journal does not tell, or that was taken.
    told: Vec<Option<Evaluated>>,
    /// The numbers below the last one that the journal does not tell of: of executions that had not ended when it ended,
    /// in their order.
    untold: VecDeque<ExecutionId>,
    /// How many of `told` are there.
    left: usize,
    /// Nothing before this place is there.
    next: usize,
    /// The places of all that were there when the first one came out of turn.
    places: Option<HashMap<Evaluated, usize>>,
}

impl Recalled {
    /// Those that the journal tells of, up to the greatest number that a run may have.
    pub(super) fn new(numbers: impl Iterator<Item = (Evaluated, ExecutionId)>, most: u64) -> Self {
        let mut told = Vec::new();
        for (evaluated, id) in numbers.filter(|(_, id)| id.0 <= most) {
            let Some(place) = place_of(id) else { continue };
            if told.len() <= place {
                told.resize(place + 1, None);
            }
            told[place] = Some(evaluated);
        }
        let left = told.iter().flatten().count();
        let untold = (1..).map(ExecutionId).zip(&told).filter(|(_, told)| told.is_none());
        let untold = untold.map(|(id, _)| id).collect();
        Self { told, untold, left, next: 0, places: None }
    }

    /// How many numbers are left.
    pub(super) fn left(&self) -> usize {
        self.left + self.untold.len()
    }

    /// The greatest number that was told, or 0.
    pub(super) fn last(&self) -> usize {
        self.told.len()
    }

    /// The number of what was evaluated, if the journal tells of it, or else the next that it does not tell of.
    pub(super) fn number(&mut self, evaluated: Evaluated) -> Option<ExecutionId> {
        self.take(evaluated).or_else(|| self.untold.pop_front())
    }

    /// The number of what was evaluated, if the journal tells of it.
    fn take(&mut self, evaluated: Evaluated) -> Option<ExecutionId> {
        if self.left == 0 {
            return None;
        }
        while self.told.get(self.next).is_some_and(Option::is_none) {
            self.next += 1;
        }
        let is_next = self.told.get(self.next) == Some(&Some(evaluated));
        let place = if is_next { self.next } else { self.look_up(evaluated)? };
        self.told[place] = None;
        self.left -= 1;
        Some(ExecutionId(place as u64 + 1))
    }

    fn look_up(&mut self, evaluated: Evaluated) -> Option<usize> {
        let told = &self.told;
        let all = || {
            let places = told.iter().enumerate();
            places.filter_map(|(place, told)| Some(((*told)?, place))).collect()
        };
        let place = *self.places.get_or_insert_with(all).get(&evaluated)?;
        // What was taken in its turn since is still listed.
        (told[place] == Some(evaluated)).then_some(place)
    }
}

fn place_of(id: ExecutionId) -> Option<usize> {
    usize::try_from(id.0).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ScopeId, Seq};
    use crate::table::StepIndex;

    fn triggered_by(seq: u64) -> Evaluated {
        (StepIndex::at(0), ScopeId::ROOT, Seq(seq))
    }

    /// Number by number, by which event it was triggered.
    fn recalled(numbers: &[(u64, u64)]) -> Recalled {
        Recalled::new(numbers.iter().map(|(id, seq)| (triggered_by(*seq), ExecutionId(*id))), 100)
    }

    #[test]
    fn numbers_are_found_in_whatever_order_and_once() {
        let numbers = [(1, 10), (2, 20), (4, 40), (5, 50), (7, 70)];
        for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 1, 4, 3], [0, 3, 1, 2, 4]] {
            let mut recalled = recalled(&numbers);
            for (done, at) in order.into_iter().enumerate() {
                let (id, seq) = numbers[at];
                assert_eq!(recalled.left, numbers.len() - done);
                assert_eq!(recalled.take(triggered_by(seq)), Some(ExecutionId(id)), "{order:?}");
                assert_eq!(recalled.take(triggered_by(seq)), None, "{order:?}");
            }
            assert_eq!(recalled.left, 0);
        }
    }

    #[test]
    fn what_the_journal_does_not_tell_of_has_no_number_and_leaves_the_others_theirs() {
        let mut recalled = recalled(&[(2, 20), (3, 30)]);
        assert_eq!(recalled.untold, [ExecutionId(1)]);
        assert_eq!(recalled.take(triggered_by(10)), None);
        assert_eq!(recalled.take(triggered_by(20)), Some(ExecutionId(2)));
        assert_eq!(recalled.take(triggered_by(10)), None);
        assert_eq!(recalled.take(triggered_by(30)), Some(ExecutionId(3)));
        assert_eq!((recalled.left(), recalled.number(triggered_by(10))), (1, Some(ExecutionId(1))));
        assert_eq!((recalled.left(), recalled.number(triggered_by(40))), (0, None));
    }

    #[test]
    fn numbers_that_no_run_has_are_left_out() {
        let recalled = recalled(&[(0, 10), (1, 20), (101, 30), (u64::MAX, 40)]);
        assert_eq!((recalled.left(), recalled.last()), (1, 1));
    }
}
