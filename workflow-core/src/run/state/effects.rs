//! The queue of effects that have not begun, oldest first.
//!
//! An effect is an attempt, a precondition or the begin of waiting. It names the journal position that it
//! follows from, and begins once the store has that position (S38). An effect may lose its reason while it
//! waits: the execution was dropped, say. The queue checks this when the effect's turn comes. Most runs have
//! one effect at a time, which takes no memory of its own.
//!
//! ```text
//! the store has the journal up to 5
//!
//! first                     rest
//! Execution(x2), after 4    Question(q1), after 5    Execution(x3), after 7    Execution(x4), after 7
//! begins                    begins, if still asked   waits for the store, and so do all behind it
//! ```
//!
//! Invariant: the order is that of the decisions, and positions never decrease from first to last. So an effect
//! that waits for the store may stop all effects behind it, and `next` takes only the first wanted one.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use crate::id::ExecutionId;
use crate::scheduler::{CandidateId, ExecutionStart, Scheduler};
use crate::store::Position;

/// Something that begins once the store has the journal up to a position.
#[derive(Debug)]
pub(in crate::run) struct Effect {
    /// The end of the journal from which the effect follows. Position 0 for an effect that may begin at once.
    pub(in crate::run) after: Position,
    /// The execution, the question or the wait that begins.
    pub(in crate::run) begins: EffectKind,
}

/// The kind of an effect.
#[derive(Debug)]
pub(in crate::run) enum EffectKind {
    /// The first attempt of an execution.
    Execution(ExecutionStart),
    /// A later attempt of an execution, or the one that an earlier process may have begun.
    Attempt(ExecutionId),
    /// The question to a precondition.
    Precondition(CandidateId),
    /// The run waits: nothing happens before something arrives.
    Wait,
}

impl EffectKind {
    /// The effect after an earlier process may have begun it: a first attempt becomes another attempt.
    pub(super) fn again(self) -> Self {
        if let Self::Execution(start) = self { Self::Attempt(start.execution) } else { self }
    }

    /// Whether there is still a reason to begin it.
    #[inline]
    pub(super) fn is_wanted(&self, scheduler: &Scheduler) -> bool {
        match self {
            Self::Execution(start) => scheduler.is_running(start.execution),
            Self::Attempt(execution) => scheduler.is_running(*execution),
            Self::Precondition(candidate) => scheduler.asked(*candidate).is_some(),
            Self::Wait => scheduler.waits(),
        }
    }

    /// The execution that begins, if one does.
    pub(in crate::run) fn execution(&self) -> Option<ExecutionId> {
        match self {
            Self::Execution(start) => Some(start.execution),
            Self::Attempt(execution) => Some(*execution),
            Self::Precondition(_) | Self::Wait => None,
        }
    }
}

/// Effects in the order in which they begin.
#[derive(Debug, Default)]
pub(in crate::run) struct Effects {
    /// The oldest; `None` if there are no effects, or if the oldest was taken and `rest` has the next.
    first: Option<Effect>,
    /// The effects behind `first`, oldest first.
    rest: VecDeque<Effect>,
}

impl Effects {
    #[inline]
    pub(in crate::run) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.rest.is_empty()
    }

    /// Adds an effect behind all others.
    #[inline]
    pub(super) fn push_back(&mut self, effect: Effect) {
        if self.is_empty() {
            self.first = Some(effect);
        } else {
            self.rest.push_back(effect);
        }
    }

    /// Adds an effect before all others.
    pub(super) fn push_front(&mut self, effect: Effect) {
        if let Some(second) = self.first.replace(effect) {
            self.rest.push_front(second);
        }
    }

    /// Takes the oldest effect, whether or not it may begin.
    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<Effect> {
        self.first.take().or_else(|| self.rest.pop_front())
    }

    pub(in crate::run) fn iter(&self) -> impl Iterator<Item = &Effect> {
        self.first.iter().chain(&self.rest)
    }

    /// Takes the oldest wanted effect, if the store has the journal up to its position. Discards unwanted
    /// ones before it. `written` is `None` without a store.
    #[inline]
    pub(super) fn next(&mut self, written: Option<Position>, scheduler: &Scheduler) -> Option<EffectKind> {
        while let Some(effect) = self.pop_front() {
            // An effect may lose its reason in the queue, but gets none back: so it can go for good.
            if !effect.begins.is_wanted(scheduler) {
                continue;
            }
            if written.is_none_or(|written| effect.after <= written) {
                return Some(effect.begins);
            }
            self.push_front(effect);
            return None;
        }
        None
    }

    /// Puts back an effect that may not begin now. It stays first, and the store has what it follows from.
    pub(in crate::run) fn put_back(&mut self, begins: EffectKind) {
        self.push_front(Effect { after: Position(0), begins });
    }

    /// Delays all effects until the store has the journal up to `end`.
    pub(super) fn postpone(&mut self, end: Position) {
        self.first.iter_mut().chain(&mut self.rest).for_each(|effect| effect.after = end);
    }

    /// Removes the begin of waiting: the run is already known to wait.
    pub(in crate::run) fn remove_wait(&mut self) {
        self.retain(|effect| !matches!(effect.begins, EffectKind::Wait));
    }

    /// Removes the attempts of these executions, because a retry timer begins them.
    pub(in crate::run) fn remove_attempts_of(&mut self, executions: impl Iterator<Item = ExecutionId>) {
        let waiting: FxHashSet<ExecutionId> = executions.collect();
        self.retain(|effect| effect.begins.execution().is_none_or(|execution| !waiting.contains(&execution)));
    }

    /// Removes the effects for which `stays` is false.
    fn retain(&mut self, mut stays: impl FnMut(&Effect) -> bool) {
        self.first.take_if(|effect| !stays(effect));
        self.rest.retain(stays);
    }

    /// Removes the questions to these candidates.
    pub(super) fn remove_questions(&mut self, candidates: &[CandidateId]) {
        self.retain(
            |effect| !matches!(&effect.begins, EffectKind::Precondition(id) if candidates.contains(id)),
        );
    }

    /// Moves the questions to preconditions before all others (S61). Both stay in their order.
    pub(super) fn ask_first(&mut self) {
        let is_question = |effect: &Effect| matches!(effect.begins, EffectKind::Precondition(_));
        let Self { first, rest } = std::mem::take(self);
        let all = first.into_iter().chain(rest);
        let (questions, others): (VecDeque<_>, VecDeque<_>) = all.partition(is_question);
        questions.into_iter().chain(others).for_each(|effect| self.push_back(effect));
    }

    /// Moves the first `first` effects behind all others. The driver calls it after a precondition answered at once:
    /// the effects of the answer take the place of the question.
    pub(in crate::run) fn rotate_front(&mut self, first: usize) {
        if first > 0 && first < self.len() {
            if let Some(oldest) = self.first.take() {
                self.rest.push_front(oldest);
            }
            self.rest.rotate_left(first);
        }
    }

    /// Frees memory that no effect needs now.
    pub(super) fn shrink(&mut self) {
        if self.rest.is_empty() {
            self.rest = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(number: u64) -> Effect {
        Effect { after: Position(0), begins: EffectKind::Attempt(ExecutionId(number)) }
    }

    fn numbers(effects: &Effects) -> Vec<u64> {
        let number = |effect: &Effect| match effect.begins {
            EffectKind::Attempt(execution) => execution.0,
            _ => 0,
        };
        effects.iter().map(number).collect()
    }

    fn filled(numbers: impl Iterator<Item = u64>) -> Effects {
        let mut effects = Effects::default();
        numbers.for_each(|number| effects.push_back(effect(number)));
        effects
    }

    #[test]
    fn effects_are_a_queue_at_both_ends() {
        let mut effects = filled(1..4);
        effects.push_front(effect(0));
        assert_eq!((effects.len(), numbers(&effects)), (4, vec![0, 1, 2, 3]));
        let popped = effects.pop_front();
        assert!(matches!(popped, Some(Effect { begins: EffectKind::Attempt(ExecutionId(0)), .. })));
        effects.push_back(effect(4));
        effects.push_front(effect(9));
        assert_eq!(numbers(&effects), [9, 1, 2, 3, 4]);
        while effects.pop_front().is_some() {}
        assert!(effects.is_empty());
        effects.push_back(effect(5));
        assert_eq!(numbers(&effects), [5]);
    }

    #[test]
    fn effects_can_be_removed_and_moved_to_the_front() {
        for popped in [false, true] {
            let mut effects = filled(0..6);
            effects.retain(|effect| !matches!(effect.begins, EffectKind::Attempt(ExecutionId(0 | 3))));
            assert_eq!(numbers(&effects), [1, 2, 4, 5]);
            if popped {
                effects.pop_front();
                effects.rotate_front(1);
                assert_eq!(numbers(&effects), [4, 5, 2]);
            } else {
                effects.rotate_front(3);
                assert_eq!(numbers(&effects), [5, 1, 2, 4]);
                effects.rotate_front(4);
                effects.rotate_front(0);
                assert_eq!(numbers(&effects), [5, 1, 2, 4]);
            }
        }
    }

    // S61
    #[test]
    fn questions_move_before_all_others() {
        let mut effects = filled(1..3);
        for question in [7, 8] {
            let begins = EffectKind::Precondition(CandidateId(question));
            effects.push_back(Effect { after: Position(0), begins });
        }
        effects.push_back(effect(3));
        effects.ask_first();
        assert_eq!(numbers(&effects), [0, 0, 1, 2, 3]);
        effects.remove_questions(&[CandidateId(8), CandidateId(9)]);
        assert_eq!(numbers(&effects), [0, 1, 2, 3]);
        assert!(matches!(
            effects.pop_front(),
            Some(Effect { begins: EffectKind::Precondition(CandidateId(7)), .. })
        ));
    }

    #[test]
    fn an_effect_that_was_put_back_stays_first() {
        let mut effects = filled(1..4);
        effects.remove_wait();
        effects.remove_attempts_of([ExecutionId(2)].into_iter());
        effects.put_back(EffectKind::Wait);
        assert_eq!(numbers(&effects), [0, 1, 3]);
        effects.postpone(Position(7));
        assert!(effects.iter().all(|effect| effect.after == Position(7)));
        effects.remove_wait();
        assert_eq!(numbers(&effects), [1, 3]);
    }
}
