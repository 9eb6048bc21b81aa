//! A run as reproducible text, for golden tests. This file owns the end of the text. `order` has the order of lines,
//! `event` the lines of events, `execution` those of executions, and `shown` those of displayed items.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use workflow_core::explain::{Arrival, Explanation};
use workflow_core::observe::Observed;
use workflow_core::report::{OpenRequest, Quality, RunReport};
use workflow_core::table::InputKind;
use workflow_core::{RunError, RunStatus, Seq};

mod event;
mod execution;
mod order;
mod shown;

use execution::indented;

/// The visible parts of a run that has ended, or waited when its report was made.
pub(crate) struct Seen<'a> {
    pub(crate) report: &'a RunReport,
    pub(crate) status: RunStatus,
    /// The observations, in order.
    pub(crate) observed: &'a [Observed],
    pub(crate) error: Option<&'a RunError>,
    /// The explanation of a waiting run, with what it waits for.
    pub(crate) explanation: Option<&'a Explanation>,
    /// The open requests of a waiting run.
    pub(crate) open: &'a [OpenRequest],
}

/// The transcript.
pub(crate) fn of(seen: &Seen<'_>) -> String {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = write(&mut text, seen);
    text
}

fn write(text: &mut String, seen: &Seen<'_>) -> fmt::Result {
    order::write(text, seen.report, seen.observed)?;
    surplus(text, seen.report)?;
    ended(text, seen)?;
    left_open(text, seen)
}

fn surplus(text: &mut String, report: &RunReport) -> fmt::Result {
    for row in report.steps.iter().filter(|row| row.surplus > 0) {
        writeln!(text, "events that came when a fixed list of {} was full: {}", row.step, row.surplus)?;
    }
    Ok(())
}

/// Writes how the run ended, and why.
fn ended(text: &mut String, seen: &Seen<'_>) -> fmt::Result {
    let (status, report) = (seen.status, seen.report);
    write!(text, "{status}")?;
    if let Some(output) = output(seen) {
        write!(text, " with {output}")?;
    }
    if report.quality == Quality::Degraded {
        write!(text, ", {}", report.quality)?;
    }
    match seen.error {
        // A failed branch has its failure in its execution's line.
        Some(RunError::StepFailed { execution, .. }) => writeln!(text, " by {execution}"),
        Some(RunError::BranchesFailed { failures }) => {
            writeln!(text, " by {} branches", failures.len())
        }
        Some(RunError::Stalled(stall)) => writeln!(text, "\n{}", stall.to_string().trim_end()),
        Some(RunError::Cancelled { reason }) => writeln!(text, ": {}", indented(reason)),
        Some(error) => writeln!(text, ": {}", indented(&error.to_string())),
        None => writeln!(text),
    }
}

/// The event that a completed run ended with: the first that stops it.
fn output(seen: &Seen<'_>) -> Option<Seq> {
    let mut stops = seen.report.log.iter().filter(|logged| logged.value.roles().is_stop());
    stops.next().filter(|_| seen.status == RunStatus::Completed).map(|stop| stop.seq)
}

/// Writes what a run waits for, or, of an ended run, the requests that have neither a reply nor expired.
fn left_open(text: &mut String, seen: &Seen<'_>) -> fmt::Result {
    if seen.status.is_ended() {
        return unanswered(text, seen.report);
    }
    for open in seen.open {
        writeln!(text, "   for the reply to {} {}", open.seq(), open.event().name())?;
    }
    for timer in &seen.report.timers {
        writeln!(text, "   for {}, {:?} after the run began", timer.event, timer.after)?;
    }
    let arrivals = seen.explanation.map_or(&[][..], |explanation| &explanation.can_arrive);
    for Arrival { event, .. } in arrivals.iter().filter(|arrival| arrival.kind != InputKind::Reply) {
        writeln!(text, "   for {event} from outside")?;
    }
    Ok(())
}

fn unanswered(text: &mut String, report: &RunReport) -> fmt::Result {
    let ended = report.log.iter().filter_map(|logged| logged.reply_to.or(logged.expired));
    let ended: HashSet<Seq> = ended.collect();
    let requests = report.log.iter().filter(|logged| logged.value.roles().is_request());
    for request in requests.filter(|request| !ended.contains(&request.seq)) {
        writeln!(text, "without a reply: {} {}", request.seq, request.event)?;
    }
    Ok(())
}

/// The number of lines that a failure prints of a long text, from its beginning and its end.
const PRINTED: usize = 100;

/// Shortens a long text to its beginning and its end.
pub(crate) fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let Some(left_out) = lines.len().checked_sub(2 * PRINTED + 1) else { return text.to_owned() };
    let (first, last) = (lines[..PRINTED].join("\n"), lines[PRINTED + 1 + left_out..].join("\n"));
    format!("{first}\n… {} more lines …\n{last}\n", left_out + 1)
}
