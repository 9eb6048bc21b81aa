//! A run as text that is the same each time: for golden tests. This file owns how it ends; the order of its lines is in
//! `order`, what a line says of an event in `event`, of an execution in `execution`, and of what it showed in `shown`.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use workflow_core::{
    Arrival, Explanation, InputKind, Observed, OpenRequest, Quality, RunError, RunReport, RunStatus, Seq,
};

mod event;
mod execution;
mod order;
mod shown;

use execution::indented;

/// What is seen of a run that has ended, or waited when its report was made.
pub(crate) struct Seen<'a> {
    pub(crate) report: &'a RunReport,
    pub(crate) status: RunStatus,
    /// What was observed of it, in order.
    pub(crate) observed: &'a [Observed],
    pub(crate) error: Option<&'a RunError>,
    /// Of a run that waits, what it waits for.
    pub(crate) explanation: Option<&'a Explanation>,
    /// Of a run that waits, what may be replied to.
    pub(crate) open: &'a [OpenRequest],
}

/// What happened, in order, and the end.
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

/// How the run ended, and why.
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
        // A branch has its failure with its execution.
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
    let mut stops = seen.report.log.iter().filter(|logged| logged.value.event_type().roles().is_stop());
    stops.next().filter(|_| seen.status == RunStatus::Completed).map(|stop| stop.seq)
}

/// What a run waits for, and what it asked for in vain.
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
    let answered: HashSet<Seq> = report.log.iter().filter_map(|logged| logged.reply_to).collect();
    let requests = report.log.iter().filter(|logged| logged.value.event_type().roles().is_request());
    for request in requests.filter(|request| !answered.contains(&request.seq)) {
        writeln!(text, "without a reply: {} {}", request.seq, request.event)?;
    }
    Ok(())
}

/// How many lines of a long text a failure prints, of its beginning and of its end.
const PRINTED: usize = 100;

/// A text as failures print it: of a long one the beginning and the end.
pub(crate) fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let Some(left_out) = lines.len().checked_sub(2 * PRINTED + 1) else { return text.to_owned() };
    let (first, last) = (lines[..PRINTED].join("\n"), lines[PRINTED + 1 + left_out..].join("\n"));
    format!("{first}\n… {} more lines …\n{last}\n", left_out + 1)
}
