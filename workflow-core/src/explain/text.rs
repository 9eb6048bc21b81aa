//! Explanations as text for people.

use std::fmt;

use super::{
    Cited, CitedInput, Explanation, MissingInput, Reason, StepExplanation, WhyNot, WhyNotProduced, WhyRan,
};
use crate::id::ScopeId;

/// How many rows of a kind are printed per step; the rest is counted.
const ROWS: usize = 20;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} of `{}`: {}", self.run, self.workflow, self.status)?;
        self.steps.iter().try_for_each(|step| write!(f, "\n{step}"))
    }
}

impl fmt::Display for StepExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ran.len() as u64 {
            0 => write!(f, "step `{}` did not run", self.step)?,
            ran => write!(f, "step `{}` ran {}", self.step, times(ran))?,
        }
        rows(f, &self.ran)?;
        rows(f, &self.did_not_run)?;
        for missing in &self.missing {
            write!(f, "\n    it waits for {missing}")?;
            missing.producers.iter().try_for_each(|producer| write!(f, "\n      {producer}"))?;
        }
        Ok(())
    }
}

fn rows<T: fmt::Display>(f: &mut fmt::Formatter<'_>, rows: &[T]) -> fmt::Result {
    rows.iter().take(ROWS).try_for_each(|row| write!(f, "\n    {row}"))?;
    match rows.len().saturating_sub(ROWS) {
        0 => Ok(()),
        more => write!(f, "\n    … and {more} more times"),
    }
}

impl fmt::Display for WhyRan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} by {}", self.execution, in_scope(self.scope), self.trigger)?;
        let mut separator = ", with ";
        for input in self.inputs.iter().filter(|input| **input != CitedInput::Nothing) {
            write!(f, "{separator}{input}")?;
            separator = ", ";
        }
        Ok(())
    }
}

impl fmt::Display for CitedInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::One(cited) => cited.fmt(f),
            Self::List(count) => write!(f, "a list of {count}"),
        }
    }
}

impl fmt::Display for Cited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.seq, self.event)?;
        self.producer.iter().try_for_each(|step| write!(f, " of `{step}`"))
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not{} at {}: {}", in_scope(self.scope), self.trigger, self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(missing) => {
                let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
                write!(f, "it waited for {}", missing.join(" and "))
            }
            Self::Covered => f.write_str("nothing new in this branch; the scope above covers it"),
            Self::Duplicate => f.write_str("it has run with these very events"),
            Self::LimitReached { limit } => write!(f, "it has run {}, its limit", times(u64::from(*limit))),
            Self::Refused { precondition } => write!(f, "precondition `{precondition}` said no"),
            Self::PreconditionFailed { precondition } => write!(f, "precondition `{precondition}` failed"),
            Self::Asking { precondition } => write!(f, "precondition `{precondition}` has not answered"),
        }
    }
}

impl fmt::Display for MissingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, have, need, .. } = self;
        let events = events.join("` or `");
        match (have, need) {
            (_, 1) => write!(f, "`{events}`"),
            _ => write!(f, "{need} of `{events}` and has {have}"),
        }
    }
}

impl fmt::Display for WhyNotProduced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DidNotRun { step } => write!(f, "`{step}` could emit it, but did not run"),
            Self::Refused { step, precondition } => {
                write!(f, "`{step}` could emit it, but its precondition `{precondition}` said no")
            }
            Self::EmittedNone { step, executions } => {
                write!(f, "`{step}` ran {} and returned none", times(*executions))
            }
            Self::EmittedSome { step, events } => write!(f, "`{step}` emitted {events}"),
            Self::EmittedInBranches { step, events } => write!(
                f,
                "`{step}` emitted {events}, in branches of a fan-out that are not seen here: join them with `Gather`"
            ),
            Self::Failed { step, error } => write!(f, "`{step}` failed: {error}"),
            Self::LimitReached { step, limit } => {
                write!(f, "`{step}` could emit it, but has run {}, its limit", times(u64::from(*limit)))
            }
            Self::Running { step } => write!(f, "`{step}` is still running"),
            Self::NotSent { event } => write!(f, "`{event}` comes from outside and was not sent"),
            Self::NotReplied { request, asked: true } => write!(f, "`{request}` was not answered"),
            Self::NotReplied { request, asked: false } => write!(f, "`{request}` was not asked"),
            Self::NotGathered { step, opened: true } => {
                write!(f, "the branches of `{step}` have not all settled")
            }
            Self::NotGathered { step, opened: false } => write!(f, "`{step}` has not fanned out"),
            Self::Nobody { event } => write!(f, "no step emits `{event}`"),
        }
    }
}

fn in_scope(scope: ScopeId) -> String {
    if scope == ScopeId::ROOT { String::new() } else { format!(" in {scope}") }
}

pub(super) fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        more => format!("{more} times"),
    }
}
