//! Which steps compute for long, learned from the polls of their executions (S72). Not where an execution is polled: the
//! driver asks, and decides.
//!
//! ```text
//! unknown ─ a short execution ─▶ light ─ a poll seems long ─┐
//!    │                             ▲                        │
//!    └────────── a long poll ──────┼──────────────────▶ heavy
//!                                  └── short executions ────┘
//! ```
//!
//! One long poll makes a step heavy, and some short executions make it light again, so that a poll that the machine
//! interrupted does no lasting harm. A step of which each thirtieth execution is long stays heavy.
//!
//! Invariants: the level of a step that declares `spawn` itself never changes: 0 for one that stays in its run's task, and
//! unknown for one that has tasks of its own. So the hot path looks at the level alone.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Moving an execution to another task and back costs a few microseconds, a small part of this. In another task a poll takes
/// some microseconds longer than in that of the run, so this is far above them: else a step that was moved once would stay.
const LONG_POLL: Duration = Duration::from_micros(40);

/// Such a poll is no accident of a cold cache.
const VERY_LONG_POLL: Duration = Duration::from_micros(100);

/// From this level on a step is heavy, up to [`MOST`]. Below it, and above 0, its polls are measured.
const HEAVY: u8 = 16;

/// The level after a poll that seemed long: two executions in tasks of their own tell whether it was.
const SUSPECTED: u8 = HEAVY + 1;

/// The highest level: that many short executions make a step light.
const MOST: u8 = 128;

/// The level of a step of which nothing is known: its first execution is measured, and makes it light unless it is long.
const UNKNOWN: u8 = 1;

/// How long the polls of a step take, as the engine has seen so far. An update that is lost between threads does not
/// matter.
#[derive(Debug)]
pub(crate) struct Weight {
    level: AtomicU8,
    /// The choice of the step itself.
    spawn: Option<bool>,
}

/// What one attempt has added to the weight of its step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Added(u8);

impl Weight {
    /// The weight of a step of which nothing is known, with its own choice.
    pub(crate) fn new(spawn: Option<bool>) -> Self {
        Self { level: AtomicU8::new(if spawn == Some(false) { 0 } else { UNKNOWN }), spawn }
    }

    fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    fn set(&self, level: u8) {
        if self.spawn.is_none() {
            self.level.store(level, Ordering::Relaxed);
        }
    }

    /// Whether the step is polled in its run's task, and its polls need not be measured.
    #[inline]
    pub(super) fn is_light(&self) -> bool {
        self.level() == 0
    }

    /// Whether the next execution gets a task of its own. `has_threads`: whether the runtime has several.
    pub(super) fn takes_task(&self, has_threads: impl FnOnce() -> bool) -> bool {
        if let Some(spawn) = self.spawn {
            return spawn;
        }
        self.level() >= HEAVY && has_threads()
    }

    /// Whether the polls of the next execution are measured, or it gets a task. On a runtime with one thread nothing is
    /// learned, because no other thread could help.
    #[inline]
    pub(super) fn is_watched(&self, has_threads: impl FnOnce() -> bool) -> bool {
        !self.is_light() && self.is_watched_unless_alone(has_threads)
    }

    #[cold]
    fn is_watched_unless_alone(&self, has_threads: impl FnOnce() -> bool) -> bool {
        let is_watched = self.spawn.is_some() || has_threads();
        if !is_watched && self.level() == UNKNOWN {
            self.set(0);
        }
        is_watched
    }

    /// Notes the first poll of an execution of a light step, which the time of other work may have prolonged.
    #[inline]
    pub(super) fn note_rough(&self, poll: Duration, has_threads: impl FnOnce() -> bool) {
        if poll > LONG_POLL {
            self.suspect(has_threads);
        }
    }

    #[cold]
    fn suspect(&self, has_threads: impl FnOnce() -> bool) {
        if self.is_light() && has_threads() {
            self.set(SUSPECTED);
        }
    }

    /// Notes a poll, and what its attempt has added. Each attempt adds for its longest poll only.
    #[inline]
    pub(super) fn note(&self, poll: Duration, added: &mut Added) {
        if poll > LONG_POLL {
            self.add(poll, added);
        }
    }

    #[cold]
    fn add(&self, poll: Duration, added: &mut Added) {
        let of_poll = if poll > VERY_LONG_POLL { 2 * HEAVY } else { HEAVY };
        let more = of_poll.saturating_sub(added.0);
        added.0 += more;
        self.set(self.level().saturating_add(more).min(MOST));
    }

    /// Notes that an attempt has ended, with what it has added.
    #[inline]
    pub(super) fn note_end(&self, added: Added) {
        if added.0 == 0 && !self.is_light() {
            self.lower();
        }
    }

    #[cold]
    fn lower(&self) {
        self.set(self.level().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(1);
    const LONG: Duration = Duration::from_micros(50);
    const VERY_LONG: Duration = Duration::from_millis(200);

    /// An execution with these polls.
    fn execute(weight: &Weight, polls: &[Duration]) {
        let mut added = Added::default();
        for poll in polls {
            weight.note(*poll, &mut added);
        }
        weight.note_end(added);
    }

    fn learned() -> Weight {
        let weight = Weight::new(None);
        execute(&weight, &[SHORT]);
        weight
    }

    fn spawns(weight: &Weight) -> bool {
        weight.takes_task(|| true)
    }

    // S72
    #[test]
    fn one_long_poll_among_many_short_ones_gives_the_next_execution_a_task() {
        for polls in [&[VERY_LONG, SHORT, SHORT][..], &[SHORT, LONG, SHORT], &[SHORT, SHORT, VERY_LONG]] {
            let weight = Weight::new(None);
            execute(&weight, polls);
            assert!(spawns(&weight), "{polls:?}");
            assert!(!weight.takes_task(|| false), "only where the runtime has several threads");
        }
    }

    // S72
    #[test]
    fn an_interrupted_poll_is_forgotten_and_a_step_that_alternates_is_not() {
        let weight = learned();
        execute(&weight, &[VERY_LONG]);
        assert!(spawns(&weight));
        (0..2 * HEAVY).for_each(|_| execute(&weight, &[SHORT]));
        assert!(!spawns(&weight) && weight.is_light());
        for _ in 0..100 {
            execute(&weight, &[VERY_LONG]);
            execute(&weight, &[SHORT]);
            assert!(spawns(&weight));
        }
        (0..MOST).for_each(|_| execute(&weight, &[SHORT]));
        assert!(weight.is_light(), "however long it was heavy");
    }

    // S72
    #[test]
    fn a_poll_that_only_seemed_long_is_forgotten_and_a_long_one_is_learned_though_short_ones_were_before() {
        let weight = learned();
        weight.note_rough(LONG, || true);
        for _ in 0..2 {
            assert!(spawns(&weight), "it is measured there");
            execute(&weight, &[SHORT]);
        }
        assert!(!spawns(&weight) && !weight.is_light(), "it is measured for a while");
        let weight = learned();
        weight.note_rough(LONG, || true);
        execute(&weight, &[SHORT]);
        execute(&weight, &[LONG]);
        assert!(spawns(&weight));
    }

    // S72
    #[test]
    fn an_unknown_step_stays_in_the_task_of_its_run() {
        let weight = Weight::new(None);
        assert!(!spawns(&weight));
        execute(&weight, &[SHORT]);
        assert!(!spawns(&weight) && weight.is_light());
    }

    // S72
    #[test]
    fn a_runtime_with_one_thread_learns_nothing_and_takes_nothing_back() {
        let weight = Weight::new(None);
        assert!(!weight.is_watched(|| false) && weight.is_light());
        weight.note_rough(VERY_LONG, || false);
        assert!(weight.is_light() && !weight.is_watched(|| true));
        weight.note_rough(VERY_LONG, || true);
        assert!(!weight.is_watched(|| false) && weight.is_watched(|| true));
        assert!(Weight::new(Some(true)).is_watched(|| false), "the step asks for a task");
    }

    // S72
    #[test]
    fn the_choice_of_a_step_is_final() {
        let (forced, refused) = (Weight::new(Some(true)), Weight::new(Some(false)));
        for polls in [[SHORT; 200], [VERY_LONG; 200]] {
            execute(&forced, &polls);
            execute(&refused, &polls);
            refused.note_rough(VERY_LONG, || true);
            assert!(forced.takes_task(|| false) && !forced.is_light());
            assert!(!spawns(&refused) && refused.is_light());
        }
    }
}
