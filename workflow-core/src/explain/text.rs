//! The text of explanations, for people.

use std::fmt;

use super::{
    Arrival, Cited, CitedInput, Explanation, FailedStep, IdleStep, MissingInput, MissingProducer,
    PreconditionRefusals, Reason, Rejected, StallReport, StepExplanation, Unconsumed, WhyNoCleanUp, WhyNot,
    WhyNotProduced, WhyRan,
};
use crate::id::ScopeId;
use crate::retry::tried;
use crate::spec::InputKind;
use crate::text::{enumerated, times};

/// The rows printed per step and kind: the first ones, and after a count of the rest the last ones.
pub(super) const FIRST_ROWS: usize = 5;
const LAST_ROWS: usize = 2;

impl fmt::Display for StallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the run of `{}` stalled: nothing runs", self.workflow)?;
        let can_arrive: Vec<String> = self.can_arrive.iter().map(ToString::to_string).collect();
        match &can_arrive[..] {
            [] => f.write_str(" and nothing can arrive")?,
            some => write!(f, ", and {} would make no step run", enumerated(some, "or"))?,
        }
        fmt_missing_stops(f, "ended the run", &self.missing_stops)?;
        self.idle.iter().try_for_each(|step| write!(f, "\n- {step}"))?;
        let mut unreported = self.failed.iter().filter(|step| !self.blames(step));
        unreported.try_for_each(|step| fmt_row(f, "- ", step))?;
        self.rejected.iter().try_for_each(|step| write!(f, "\n- {step}"))?;
        self.unconsumed.iter().try_for_each(|unconsumed| write!(f, "\n- {unconsumed}"))
    }
}

/// Prints stop events with the same producers together.
fn fmt_missing_stops(f: &mut fmt::Formatter<'_>, ended: &str, stops: &[MissingProducer]) -> fmt::Result {
    for alike in stops.chunk_by(|one, other| one.producers == other.producers) {
        let names: Vec<String> = alike.iter().map(|stop| stop.input.to_string()).collect();
        write!(f, "\n- no {} {ended}", names.join(" and no "))?;
        fmt_producers(f, 4, &alike[0].producers)?;
    }
    Ok(())
}

/// Prints a row. Further lines of an error are indented, so that none of them looks like a row.
fn fmt_row(f: &mut fmt::Formatter<'_>, prefix: &str, row: &impl fmt::Display) -> fmt::Result {
    let row = row.to_string();
    let mut lines = row.split(['\n', '\r']).filter(|line| !line.trim().is_empty());
    write!(f, "\n{prefix}{}", lines.next().unwrap_or_default())?;
    let indent = prefix.len() + 4;
    lines.try_for_each(|line| write!(f, "\n{:indent$}{line}", ""))
}

fn fmt_producers(f: &mut fmt::Formatter<'_>, indent: usize, producers: &[WhyNotProduced]) -> fmt::Result {
    let prefix = " ".repeat(indent);
    producers.iter().try_for_each(|producer| fmt_row(f, &prefix, producer))
}

fn fmt_missing(f: &mut fmt::Formatter<'_>, missing: &[MissingProducer]) -> fmt::Result {
    for MissingProducer { input, producers } in missing {
        write!(f, "\n    it needs {}", input.wanted())?;
        if input.need > 1 {
            write!(f, " and has {}", input.have)?;
        }
        fmt_producers(f, 8, producers)?;
    }
    Ok(())
}

impl fmt::Display for IdleStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` did not run", self.step)?;
        self.refused.iter().try_for_each(|refused| write!(f, "\n    {refused}"))?;
        fmt_missing(f, &self.missing)
    }
}

impl fmt::Display for PreconditionRefusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { precondition, times: count, last } = self;
        write!(f, "its precondition `{precondition}` said no ")?;
        match count {
            1 => write!(f, "at {last}"),
            more => write!(f, "{}, the last time at {last}", times(*more)),
        }
    }
}

impl fmt::Display for FailedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, executions, failures, error, branches } = self;
        write!(f, "`{step}` ")?;
        if failures < executions {
            write!(f, "ran {} and ", times(*executions))?;
        }
        f.write_str("failed")?;
        if *executions > 1 {
            write!(f, " {}", times(*failures))?;
        }
        fmt_branches(f, branches)?;
        f.write_str(if *failures == 1 { "" } else { ", the last time" })?;
        write!(f, ": {error}")
    }
}

fn fmt_branches(f: &mut fmt::Formatter<'_>, branches: &[Cited]) -> fmt::Result {
    match branches {
        [] => Ok(()),
        [only] => write!(f, " in the branch of {}", only.without_producer()),
        many => write!(f, " in the branches of {}", items_of(many)),
    }
}

/// The first items of branches, and how many more there are.
pub(super) fn items_of(branches: &[Cited]) -> String {
    let mut items: Vec<String> = branches.iter().take(FIRST_ROWS).map(Cited::without_producer).collect();
    match branches.len().saturating_sub(FIRST_ROWS) {
        0 => {}
        more => items.push(format!("{more} more")),
    }
    enumerated(&items, "and")
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, executions, scope, trigger, reason } = self;
        write!(f, "`{step}` ran {}, but not for {trigger}: {reason}", times(*executions))?;
        match reason {
            Reason::LimitReached { limit } if *scope == ScopeId::ROOT && *executions > u64::from(*limit) => {
                f.write_str(" outside of branches")
            }
            reason => f.write_str(in_each_branch(reason, *scope)),
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            InputKind::Reply => write!(f, "the reply to `{}`", self.event),
            _ => write!(f, "`{}`", self.event),
        }
    }
}

impl fmt::Display for Unconsumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            InputKind::Reply => write!(f, "no step takes the reply to {}", self.last),
            _ => write!(f, "no step takes {}", self.last),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run `{}` of `{}`: {}", self.run, self.workflow, self.status)?;
        if !self.incomplete_clean_up.is_empty() {
            write!(f, ", clean-up incomplete: {}", self.incomplete_clean_up.join(", "))?;
        }
        self.paused.iter().try_for_each(|paused| write!(f, "\n- {paused}"))?;
        self.redrives.iter().try_for_each(|redrive| write!(f, "\n- {redrive}"))?;
        self.deadline.iter().try_for_each(|deadline| write!(f, "\n- {deadline}"))?;
        let ended = if self.status.is_ended() { "ended the run" } else { "has ended the run yet" };
        fmt_missing_stops(f, ended, &self.missing_stops)?;
        self.steps.iter().try_for_each(|step| write!(f, "\n- {step}"))?;
        self.dropped.iter().try_for_each(|dropped| write!(f, "\n- {dropped}"))?;
        self.unconsumed.iter().try_for_each(|unconsumed| write!(f, "\n- {unconsumed}"))?;
        self.timers.iter().try_for_each(|timer| write!(f, "\n- {timer}"))
    }
}

impl fmt::Display for StepExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.clean_up {
            write!(f, "`{}` {}: {why}", self.step, clean_up_text(why))?;
            return fmt_missing(f, &self.missing);
        }
        match self.ran.len() as u64 {
            0 if self.is_due() => write!(f, "`{}` has not run yet", self.step)?,
            0 => write!(f, "`{}` did not run", self.step)?,
            ran => write!(f, "`{}` ran {}", self.step, times(ran))?,
        }
        fmt_rows(f, &self.ran)?;
        fmt_rows(f, &self.did_not_run)?;
        fmt_missing(f, &self.missing)?;
        if self.reads.is_empty() {
            return Ok(());
        }
        let reads: Vec<String> = self.reads.iter().map(|event| format!("`{event}`")).collect();
        write!(f, "\n    it reads {} without being triggered", enumerated(&reads, "and"))
    }
}

fn clean_up_text(why: &WhyNoCleanUp) -> &'static str {
    match why {
        WhyNoCleanUp::NotEnded => "runs at the end only",
        WhyNoCleanUp::NotYet | WhyNoCleanUp::Asking { .. } => "has not run yet at this end",
        _ => "did not run at this end",
    }
}

impl StepExplanation {
    /// Whether one of its executions waits to start.
    fn is_due(&self) -> bool {
        self.did_not_run.iter().any(|why| matches!(why.reason, Reason::Waiting { .. }))
    }
}

fn fmt_rows<T: fmt::Display>(f: &mut fmt::Formatter<'_>, rows: &[T]) -> fmt::Result {
    let folded = rows.len().saturating_sub(FIRST_ROWS + LAST_ROWS);
    let first = if folded > 1 { FIRST_ROWS } else { rows.len() };
    rows[..first].iter().try_for_each(|row| fmt_row(f, "    ", row))?;
    if folded > 1 {
        write!(f, "\n    … {folded} more …")?;
        rows[rows.len() - LAST_ROWS..].iter().try_for_each(|row| fmt_row(f, "    ", row))?;
    }
    Ok(())
}

impl fmt::Display for WhyRan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.execution, in_scope(self.scope))?;
        if let Some(item) = self.branch.as_ref().filter(|item| **item != self.trigger) {
            write!(f, ", the branch of {item}")?;
        }
        write!(f, ", triggered by {}", self.trigger)?;
        let is_trigger = |input: &CitedInput| *input == CitedInput::One(self.trigger.clone());
        let others = self.inputs.iter().filter(|input| **input != CitedInput::Nothing && !is_trigger(input));
        let others: Vec<String> = others.map(ToString::to_string).collect();
        if !others.is_empty() {
            write!(f, ", with {}", enumerated(&others, "and"))?;
        }
        if !self.attempts.is_empty() {
            write!(f, ", {}", tried(&self.attempts, self.outcome.next(self.next_attempt)))?;
        }
        f.write_str(&self.outcome.summary(self.next_attempt, self.running))
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
        match &self.gathered {
            Some(item) => write!(f, "{} the gathered `{item}`", self.seq)?,
            None => write!(f, "{} `{}`", self.seq, self.event)?,
        }
        self.producer.iter().try_for_each(|step| write!(f, " of `{step}`"))
    }
}

impl Cited {
    pub(super) fn without_producer(&self) -> String {
        Self { producer: None, ..self.clone() }.to_string()
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if matches!(self.reason, Reason::Waiting { .. }) { "not yet" } else { "not" };
        write!(f, "{not} for {}{}: {}", self.trigger, in_scope(self.scope), self.reason)?;
        f.write_str(in_each_branch(&self.reason, self.scope))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(missing) => {
                let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
                write!(f, "it waited for {}", enumerated(&missing, "and"))
            }
            Self::Covered => {
                f.write_str("none of its events is this branch's own, so the scope above sees to it")
            }
            Self::Duplicate => f.write_str("it has run with these very events"),
            Self::GatherTaken { by } => {
                write!(f, "its execution {by} took the latest gather, and each is taken once")
            }
            Self::LimitReached { limit: 1 } => f.write_str("by its `max_executions` it may run only once"),
            Self::LimitReached { limit } => {
                write!(f, "by its `max_executions` it may run only {}", times(u64::from(*limit)))
            }
            Self::RunEnded => f.write_str("the run had ended before its workflow had the step"),
            Self::RunLimitReached { limit } => {
                write!(f, "the run had all {limit} executions that it may have (`max_executions_per_run`)")
            }
            Self::Refused { precondition } => write!(f, "its precondition `{precondition}` said no"),
            Self::PreconditionFailed { precondition } => {
                write!(f, "its precondition `{precondition}` failed")
            }
            Self::Asking { precondition } => {
                write!(f, "its precondition `{precondition}` has not answered yet")
            }
            Self::Deferred { precondition } => {
                write!(f, "its precondition `{precondition}` is asked once the run is unpaused")
            }
            Self::Waiting { execution, waits_for } => write!(f, "{execution} {}", waits_for.summary(1)),
            Self::NeverStarted { execution } => write!(f, "{execution} was dropped before its turn came"),
        }
    }
}

impl fmt::Display for MissingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.wanted())?;
        if self.need > 1 { write!(f, " ({} so far)", self.have) } else { Ok(()) }
    }
}

impl MissingInput {
    fn wanted(&self) -> String {
        let alternatives = std::iter::once(self).chain(&self.or).flat_map(|input| {
            let events = input.events.iter();
            events.map(|event| match input.kind {
                InputKind::Reply => format!("the reply to `{event}`"),
                InputKind::Gather => format!("the gathered `{event}`"),
                _ => format!("`{event}`"),
            })
        });
        let alternatives = enumerated(&alternatives.collect::<Vec<_>>(), "or");
        if self.need == 1 { alternatives } else { format!("{} of {alternatives}", self.need) }
    }
}

/// The suffix for a limit in a branch, since limits count per scope (S46).
fn in_each_branch(reason: &Reason, scope: ScopeId) -> &'static str {
    match reason {
        Reason::LimitReached { .. } if scope != ScopeId::ROOT => " in each branch",
        _ => "",
    }
}

fn in_scope(scope: ScopeId) -> String {
    if scope == ScopeId::ROOT { String::new() } else { format!(" in {scope}") }
}
