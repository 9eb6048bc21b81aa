//! The text of a cause: why a step produced none, or too few, of the events that another one needs.

use std::fmt;
use std::sync::Arc;

use super::text::FIRST_ROWS;
use super::{Cited, WhyNotProduced};
use crate::text::{enumerated, times};

impl fmt::Display for WhyNotProduced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DidNotRun { step } => write!(f, "`{step}` did not run"),
            Self::Refused { step, precondition } => {
                write!(f, "`{step}` did not run: its precondition `{precondition}` said no")
            }
            Self::Running { step, next_attempt: None, running: None } => {
                write!(f, "`{step}` is still running")
            }
            Self::Running { step, next_attempt: None, running: Some(running) } => {
                write!(f, "`{step}` is {running}")
            }
            Self::Running { step, next_attempt: Some(due), .. } => {
                write!(f, "`{step}` waits for its next attempt, which is due {due:?} after the run began")
            }
            Self::Waiting { step, waits_for } => write!(f, "`{step}` {}", waits_for.summary(1)),
            Self::EmittedNone { step, executions, limit, only } => {
                write!(f, "`{step}` ran {}", times(*executions))?;
                fmt_limit(f, *executions, limit.map(u64::from))?;
                fmt_only(f, only)
            }
            Self::OpenedNone { step, executions } => {
                write!(f, "`{step}` ran {} and fanned out to no items", times(*executions))
            }
            Self::EmittedSome { step, executions, events } => {
                write!(f, "`{step}` ran {} and emitted {events}", times(*executions))
            }
            Self::EmittedInBranches { step, events, seen } => {
                write!(f, "`{step}` emitted {events} in ")?;
                f.write_str(if *seen == 0 { "branches" } else { "other branches" })?;
                f.write_str(" of a fan-out, which are not seen from here: `Gather` joins them")
            }
            Self::ArrivedLate { event, branch, gather } => {
                write!(f, "{event} came after the branch of {branch} had ended")?;
                fmt_remedy(f, gather)
            }
            Self::NotEvaluated { event } => write!(f, "{event} came, and was not evaluated"),
            Self::Failed { step, executions: 1, error, .. } => write!(f, "`{step}` failed: {error}"),
            Self::Failed { step, executions, failures, error, events, only } => {
                write!(f, "`{step}` ")?;
                if failures < executions {
                    fmt_successes(f, *executions, *events, only)?;
                }
                write!(f, "failed {}", times(*failures))?;
                f.write_str(if *failures == 1 { "" } else { ", the last time" })?;
                write!(f, ": {error}")
            }
            Self::NotFailed { steps } => fmt_not_failed(f, steps),
            Self::FailedSome { step, elsewhere, seen } => fmt_failed_some(f, step, *elsewhere, *seen),
            Self::NotSent { event, sent: 0 } => write!(f, "`{event}` comes from outside and was not sent"),
            Self::NotSent { event, sent } => {
                write!(f, "`{event}` comes from outside and was sent {}", times(*sent))
            }
            Self::NotBegunWith { event, began_with } if event == began_with => {
                write!(f, "`{event}` starts a run, and only one does")
            }
            Self::NotBegunWith { event, began_with } => {
                write!(f, "`{event}` starts runs, and this one was started with `{began_with}`")
            }
            Self::NotReplied { request } => write!(f, "`{request}` was asked and not answered"),
            Self::Expired { request } => {
                write!(f, "`{request}` was asked and expired before anybody answered")
            }
            Self::TimerPending { step, after } => {
                write!(f, "`{step}` has set a timer for it, which fires {after:?} after the run began")
            }
            Self::NotGathered { step, branches, failed, unopened, open } => {
                fmt_not_gathered(f, step, *branches, *failed)?;
                fmt_unopened(f, *unopened, open)
            }
            Self::NoProducer { event } => write!(f, "no step emits `{event}`"),
        }
    }
}

fn fmt_not_gathered(f: &mut fmt::Formatter<'_>, step: &str, branches: u64, failed: u64) -> fmt::Result {
    match failed {
        0 => write!(f, "`{step}` fanned out, and not all of its {branches} branches have settled"),
        failed => write!(f, "`{step}` fanned out to {branches} branches, of which {failed} failed"),
    }
}

fn fmt_failed_some(f: &mut fmt::Formatter<'_>, step: &str, elsewhere: u64, seen: u64) -> fmt::Result {
    if elsewhere == 0 {
        return write!(f, "`{step}` failed {}", times(seen));
    }
    let branches = if seen == 0 { "branches" } else { "other branches" };
    write!(f, "`{step}` failed {} in {branches} of a fan-out, ", times(elsewhere))?;
    f.write_str("where a failure stays: it is not seen from here")
}

/// The branches that wait for others of their fan-out.
fn fmt_unopened(f: &mut fmt::Formatter<'_>, unopened: u64, open: &[Cited]) -> fmt::Result {
    if unopened == 0 {
        return Ok(());
    }
    let waits = if unopened == 1 { "waits" } else { "wait" };
    write!(f, "; {unopened} {waits} for a place (`FanOut::concurrency`)")?;
    let items: Vec<String> = open.iter().map(Cited::without_producer).collect();
    match &items[..] {
        [] => Ok(()),
        [only] => write!(f, " behind the branch of {only}"),
        many => write!(f, " behind the branches of {}", enumerated(many, "and")),
    }
}

fn fmt_not_failed(f: &mut fmt::Formatter<'_>, steps: &[Arc<str>]) -> fmt::Result {
    let mut names: Vec<String> = steps.iter().take(FIRST_ROWS).map(|step| format!("`{step}`")).collect();
    match steps.len().saturating_sub(FIRST_ROWS) {
        0 => {}
        more => names.push(format!("{more} more")),
    }
    match &names[..] {
        [only] => write!(f, "{only} did not fail"),
        [one, other] => write!(f, "neither {one} nor {other} failed"),
        many => write!(f, "none of {} failed", enumerated(many, "and")),
    }
}

fn fmt_only(f: &mut fmt::Formatter<'_>, only: &[Arc<str>]) -> fmt::Result {
    if only.is_empty() {
        return f.write_str(" and emitted nothing");
    }
    let only: Vec<String> = only.iter().map(|event| format!("`{event}`")).collect();
    write!(f, " and emitted only {}", enumerated(&only, "and"))
}

/// The limit that the step reached. Limits count per scope, so a step with more executions ran in branches.
fn fmt_limit(f: &mut fmt::Formatter<'_>, executions: u64, limit: Option<u64>) -> fmt::Result {
    match limit {
        Some(limit) if executions > limit => {
            write!(f, ", by its `max_executions` at most {} in each branch,", times(limit))
        }
        Some(_) => f.write_str(", its `max_executions`,"),
        None => Ok(()),
    }
}

/// The gathers that would join an event with a branch that had ended.
fn fmt_remedy(f: &mut fmt::Formatter<'_>, gather: &[Arc<str>]) -> fmt::Result {
    if gather.is_empty() {
        return Ok(());
    }
    let gather: Vec<String> = gather.iter().map(|event| format!("`Gather<{event}>`")).collect();
    write!(f, ": take {} beside it", enumerated(&gather, "and"))
}

/// The executions of a step of which only some failed.
fn fmt_successes(f: &mut fmt::Formatter<'_>, executions: u64, events: u64, only: &[Arc<str>]) -> fmt::Result {
    write!(f, "ran {}", times(executions))?;
    match events {
        0 => fmt_only(f, only)?,
        some => write!(f, " and emitted {some}")?,
    }
    f.write_str("; it ")
}
