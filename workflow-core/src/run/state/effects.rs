//! The effects of a run's state that have not begun, oldest first. Most runs have one at a time, which needs no memory of
//! its own.

use std::collections::VecDeque;

use super::Effect;

/// A queue of effects.
#[derive(Debug, Default)]
pub(in crate::run) struct Effects {
    /// The oldest; none if it has begun, or if there are none.
    first: Option<Effect>,
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

    pub(super) fn push_back(&mut self, effect: Effect) {
        if self.is_empty() {
            self.first = Some(effect);
        } else {
            self.rest.push_back(effect);
        }
    }

    pub(super) fn push_front(&mut self, effect: Effect) {
        if let Some(second) = self.first.replace(effect) {
            self.rest.push_front(second);
        }
    }

    pub(super) fn pop_front(&mut self) -> Option<Effect> {
        self.first.take().or_else(|| self.rest.pop_front())
    }

    pub(in crate::run) fn iter(&self) -> impl Iterator<Item = &Effect> {
        self.first.iter().chain(&self.rest)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Effect> {
        self.first.iter_mut().chain(&mut self.rest)
    }

    pub(super) fn retain(&mut self, mut stays: impl FnMut(&Effect) -> bool) {
        self.first.take_if(|effect| !stays(effect));
        self.rest.retain(stays);
    }

    /// Those behind the first so many come before them.
    pub(super) fn rotate(&mut self, first: usize) {
        if first > 0 && first < self.len() {
            if let Some(oldest) = self.first.take() {
                self.rest.push_front(oldest);
            }
            self.rest.rotate_left(first);
        }
    }

    /// Gives memory back that nothing needs now.
    pub(super) fn shrink(&mut self) {
        if self.rest.is_empty() {
            self.rest = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ExecutionId;
    use crate::run::state::Begins;
    use crate::store::Position;

    fn effect(number: u64) -> Effect {
        Effect { after: Position(0), begins: Begins::Attempt(ExecutionId(number)) }
    }

    fn numbers(effects: &Effects) -> Vec<u64> {
        let number = |effect: &Effect| match effect.begins {
            Begins::Attempt(execution) => execution.0,
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
    fn they_are_a_queue_at_both_ends() {
        let mut effects = filled(1..4);
        effects.push_front(effect(0));
        assert_eq!((effects.len(), numbers(&effects)), (4, vec![0, 1, 2, 3]));
        let popped = effects.pop_front();
        assert!(matches!(popped, Some(Effect { begins: Begins::Attempt(ExecutionId(0)), .. })));
        effects.push_back(effect(4));
        effects.push_front(effect(9));
        assert_eq!(numbers(&effects), [9, 1, 2, 3, 4]);
        while effects.pop_front().is_some() {}
        assert!(effects.is_empty());
        effects.push_back(effect(5));
        assert_eq!(numbers(&effects), [5]);
    }

    #[test]
    fn some_are_taken_out_and_some_come_first() {
        for popped in [false, true] {
            let mut effects = filled(0..6);
            effects.retain(|effect| !matches!(effect.begins, Begins::Attempt(ExecutionId(0 | 3))));
            assert_eq!(numbers(&effects), [1, 2, 4, 5]);
            if popped {
                effects.pop_front();
                effects.rotate(1);
                assert_eq!(numbers(&effects), [4, 5, 2]);
            } else {
                effects.rotate(3);
                assert_eq!(numbers(&effects), [5, 1, 2, 4]);
                effects.rotate(4);
                effects.rotate(0);
                assert_eq!(numbers(&effects), [5, 1, 2, 4]);
            }
        }
    }
}
