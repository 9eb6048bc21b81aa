//! The numbers that a journal has for executions, until a replay creates these executions again.
//!
//! Example: a journal has execution 1 at event 2 and execution 4 at event 3. Executions 2 and 3 had not ended
//! when the journal ended, so it does not have them. On replay, the evaluation of event 2 gets number 1 and
//! that of event 3 gets 4. Any other gets 2, then 3, then 5.
//!
//! ```text
//!  numbered   [event 2, -, -, event 3]     gaps [2, 3]     last 4
//!  number(event 3) ─▶ 4      number(event 9) ─▶ 2      number(event 2) ─▶ 1      number(event 10) ─▶ 3
//! ```
//!
//! Invariant: no number is given twice. A recorded number is given only to its own evaluation, since the
//! journal names executions by number, in emissions, failures and children.

use std::collections::{HashMap, VecDeque};

use super::EvaluationKey;
use crate::id::ExecutionId;

/// Numbers by evaluation. A replay creates most executions in the order of their numbers, so the next number
/// is compared first and others are looked up. Amortised O(1) each.
#[derive(Debug, Default)]
pub(super) struct RecordedNumbers {
    /// The evaluation of each number, that of number 1 first; `None` where the journal has none, or the
    /// number was taken.
    numbered: Vec<Option<EvaluationKey>>,
    /// The numbers below the greatest one that the journal does not have, in order: their executions had not
    /// ended.
    gaps: VecDeque<ExecutionId>,
    /// The number of `Some` entries of `numbered`.
    left: usize,
    /// No entry before this place is `Some`.
    next: usize,
    /// The places of all entries that were left at the first lookup out of order; `None` before.
    places: Option<HashMap<EvaluationKey, usize>>,
}

impl RecordedNumbers {
    /// Collects the numbers of a journal that are at most `most`.
    pub(super) fn new(numbers: impl Iterator<Item = (EvaluationKey, ExecutionId)>, most: u64) -> Self {
        let mut numbered = Vec::new();
        for (evaluated, id) in numbers.filter(|(_, id)| id.0 <= most) {
            let Some(place) = place_of(id) else { continue };
            if numbered.len() <= place {
                numbered.resize(place + 1, None);
            }
            numbered[place] = Some(evaluated);
        }
        let left = numbered.iter().flatten().count();
        let gaps = (1..).map(ExecutionId).zip(&numbered).filter(|(_, numbered)| numbered.is_none());
        let gaps = gaps.map(|(id, _)| id).collect();
        Self { numbered, gaps, left, next: 0, places: None }
    }

    /// The number of reserved numbers that are not taken yet.
    pub(super) fn left(&self) -> usize {
        self.left + self.gaps.len()
    }

    /// The greatest number of the journal, or 0.
    pub(super) fn last(&self) -> usize {
        self.numbered.len()
    }

    /// Takes the number of an evaluation: the journal's, else the next one that the journal does not have.
    pub(super) fn number(&mut self, evaluated: EvaluationKey) -> Option<ExecutionId> {
        self.take(evaluated).or_else(|| self.gaps.pop_front())
    }

    /// Takes the number that the journal has for the evaluation, if any.
    fn take(&mut self, evaluated: EvaluationKey) -> Option<ExecutionId> {
        if self.left == 0 {
            return None;
        }
        while self.numbered.get(self.next).is_some_and(Option::is_none) {
            // Skips numbers that were taken out of order and gaps: each is skipped once.
            self.next += 1;
        }
        // Most replays create executions in the order of their numbers.
        let is_next = self.numbered.get(self.next) == Some(&Some(evaluated));
        let place = if is_next { self.next } else { self.look_up(evaluated)? };
        self.numbered[place] = None;
        self.left -= 1;
        Some(ExecutionId(place as u64 + 1))
    }

    /// The index is built once, at the first execution that comes out of order.
    fn look_up(&mut self, evaluated: EvaluationKey) -> Option<usize> {
        let numbered = &self.numbered;
        let all = || {
            let places = numbered.iter().enumerate();
            places.filter_map(|(place, numbered)| Some(((*numbered)?, place))).collect()
        };
        let place = *self.places.get_or_insert_with(all).get(&evaluated)?;
        // The index still has numbers that were taken in order since.
        (numbered[place] == Some(evaluated)).then_some(place)
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

    fn triggered_by(seq: u64) -> EvaluationKey {
        (StepIndex::at(0), ScopeId::ROOT, Seq(seq))
    }

    /// Pairs of a number and the event that triggered its execution.
    fn recalled(numbers: &[(u64, u64)]) -> RecordedNumbers {
        RecordedNumbers::new(numbers.iter().map(|(id, seq)| (triggered_by(*seq), ExecutionId(*id))), 100)
    }

    #[test]
    fn each_number_is_found_once_in_any_order() {
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
    fn an_execution_that_the_journal_does_not_have_takes_none_of_its_numbers() {
        let mut recalled = recalled(&[(2, 20), (3, 30)]);
        assert_eq!(recalled.gaps, [ExecutionId(1)]);
        assert_eq!(recalled.take(triggered_by(10)), None);
        assert_eq!(recalled.take(triggered_by(20)), Some(ExecutionId(2)));
        assert_eq!(recalled.take(triggered_by(10)), None);
        assert_eq!(recalled.take(triggered_by(30)), Some(ExecutionId(3)));
        assert_eq!((recalled.left(), recalled.number(triggered_by(10))), (1, Some(ExecutionId(1))));
        assert_eq!((recalled.left(), recalled.number(triggered_by(40))), (0, None));
    }

    #[test]
    fn numbers_beyond_the_limit_of_a_run_are_left_out() {
        let recalled = recalled(&[(0, 10), (1, 20), (101, 30), (u64::MAX, 40)]);
        assert_eq!((recalled.left(), recalled.last()), (1, 1));
    }
}
