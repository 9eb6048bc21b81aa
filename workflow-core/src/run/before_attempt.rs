//! Whether an attempt is made, or made again: by what the journal says of earlier lives of the run, and by the policy of
//! the step (S35, S69).

use super::state::Earlier;
use crate::error::{InDoubt, Interrupted, StepError, TimedOut};
use crate::panics::Panicked;

/// What comes before an attempt.
#[derive(Debug)]
pub(super) enum BeforeAttempt {
    /// Nothing: it begins.
    Begins,
    /// The execution waits for its turn, and the attempt is journaled.
    TakesTurn,
    /// The attempt is journaled.
    IsJournaled,
    /// The attempt is not made, and the execution fails.
    Fails(StepError),
}

/// Decides by what earlier lives did with the execution, whether its step is `at_most_once`, whether the step failed
/// before, and how many attempts may be interrupted.
pub(super) fn before_attempt(
    earlier: Earlier,
    at_most_once: bool,
    is_retry: bool,
    most_interrupted: u32,
) -> BeforeAttempt {
    if at_most_once && earlier.may_have_begun && !earlier.insisted {
        return BeforeAttempt::Fails(InDoubt::begun());
    }
    if earlier.interruptions >= most_interrupted {
        return BeforeAttempt::Fails(Interrupted::after(earlier.interruptions));
    }
    if earlier.takes_turn() {
        BeforeAttempt::TakesTurn
    } else if at_most_once && is_retry && !earlier.began {
        BeforeAttempt::IsJournaled
    } else {
        BeforeAttempt::Begins
    }
}

/// Who made the error of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorOf {
    /// The attempt: the step returned it, or the attempt timed out or panicked.
    Attempt,
    /// The run, which refused what the step returned.
    Run,
}

/// The error with which the attempt of an `at_most_once` step fails: in doubt, unless the step returned it. An error of
/// the compaction or of the key at a limit comes before the step.
pub(super) fn in_doubt_unless_returned(error: StepError, of: ErrorOf) -> StepError {
    let ended = || {
        let is_panic = error.downcast_ref::<Panicked>().is_some();
        is_panic
            || error.downcast_ref::<TimedOut>().is_some()
            || error.downcast_ref::<tokio::task::JoinError>().is_some()
    };
    if of == ErrorOf::Run || !error.is_before_step() && ended() { InDoubt::after(&error) } else { error }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::ErrorClass;
    use crate::panics::panic_of;

    fn decided(interruptions: u32, may_have_begun: bool, at_most_once: bool) -> String {
        let mut earlier = Earlier::default();
        (earlier.interruptions, earlier.may_have_begun) = (interruptions, may_have_begun);
        match before_attempt(earlier, at_most_once, false, 5) {
            BeforeAttempt::Fails(error) => error.class().to_string(),
            other => format!("{other:?}"),
        }
    }

    // S35, S69
    #[test]
    fn an_attempt_begins_takes_a_turn_or_is_not_made() {
        assert_eq!(decided(0, false, false), "Begins");
        assert_eq!(decided(1, true, false), "Begins");
        assert_eq!(decided(2, true, false), "TakesTurn");
        assert_eq!(decided(5, true, false), "interrupted");
        assert_eq!(decided(1, true, true), "in_doubt");
        assert_eq!(decided(1, false, true), "Begins");
        let mut earlier = Earlier::default();
        assert!(matches!(before_attempt(earlier, true, true, 5), BeforeAttempt::IsJournaled));
        assert!(matches!(before_attempt(earlier, false, true, 5), BeforeAttempt::Begins));
        earlier.began = true;
        assert!(matches!(before_attempt(earlier, true, true, 5), BeforeAttempt::Begins));
    }

    fn class(error: StepError, of: ErrorOf) -> ErrorClass {
        in_doubt_unless_returned(error, of).class()
    }

    // S69
    #[test]
    fn an_attempt_is_in_doubt_unless_its_error_is_the_steps() {
        let timed_out = || TimedOut::after(Duration::from_secs(1));
        let panicked = StepError::permanent(panic_of(Box::new("on purpose")));
        assert_eq!(class(StepError::tool("busy"), ErrorOf::Attempt), ErrorClass::Tool);
        assert_eq!(class(StepError::tool("too large"), ErrorOf::Run), ErrorClass::InDoubt);
        assert_eq!(class(timed_out(), ErrorOf::Attempt), ErrorClass::InDoubt);
        assert_eq!(class(panicked, ErrorOf::Attempt), ErrorClass::InDoubt);
        assert_eq!(class(timed_out().of_compaction(), ErrorOf::Attempt), ErrorClass::Transient);
        let of_key = StepError::permanent(panic_of(Box::new("no key"))).of_limit_key();
        assert_eq!(class(of_key, ErrorOf::Attempt), ErrorClass::Permanent);
    }
}
