//! Where a run is, or how it ended, in a sentence.

use workflow_core::RunStatus;
use workflow_core::report::Ending;

use super::under_way::{Begun, Dropped};
use super::why::Why;
use crate::document::model::Dialect;
use crate::state::{Output, names};
use crate::trace::{History, Log, data, on_one_line};
use crate::{GraphStatus, VisitStatus};

pub(super) fn summary(log: &Log<'_>, history: &History, begun: &Begun, why: &Why<'_, '_>) -> String {
    let at = under(log, begun);
    let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
    match log.report.status {
        RunStatus::Completed => ended(log, why).unwrap_or_else(|| "The run completed.".into()),
        RunStatus::Failed => failed(history).unwrap_or_else(|| "The run failed.".into()),
        RunStatus::Cancelled => cancelled(log, &at),
        RunStatus::TimedOut if log.report.deadline.is_some_and(|deadline| deadline.ended_run) => {
            format!("The deadline of the run passed{at}.")
        }
        RunStatus::TimedOut => format!("The run used up its time{at}."),
        RunStatus::Stalled => format!("The run stalled{at}."),
        RunStatus::Waiting => format!("The run waits{at}."),
        RunStatus::Paused => match &log.report.paused {
            Some(paused) if at.is_empty() => format!("{}.", sentence(&paused.to_string())),
            Some(paused) => format!("{}; it has not ended, and is{at}.", sentence(&paused.to_string())),
            None => format!("The run is paused{at}."),
        },
        status => format!("The run is {status}{at}."),
    }
}

/// The end that the walk left.
fn ended(log: &Log<'_>, why: &Why<'_, '_>) -> Option<String> {
    let output = log.report.log.iter().rev().find(|event| *event.event == *names::OUTPUT)?;
    let Output { status, at, candidates, .. } = data(output)?;
    Some(match status {
        GraphStatus::Completed => format!("The run completed at `{at}`."),
        GraphStatus::NoMatch => format!("No route of `{at}` held, and the walk ended there."),
        GraphStatus::DryRun if candidates.is_empty() => format!("The dry run ended at `{at}`."),
        GraphStatus::DryRun => {
            let may = why.may_take(candidates);
            if may.is_empty() {
                return Some(format!("The dry run ended at `{at}`, where no route holds."));
            }
            let routes: Vec<String> = may.iter().map(|route| format!("`{route}`")).collect();
            let would = if may.len() == 1 { "would" } else { "may" };
            let routes = routes.join(" or ");
            format!("The dry run ended at `{at}`, its first choice, from where a run {would} take {routes}.")
        }
        GraphStatus::StepLimit => {
            let most = log.graph.limits.steps;
            // SWEny documents have no key for it.
            let key = match log.graph.dialect {
                Dialect::Native => " (`limits.steps`)",
                Dialect::Hive(_) => " (`max_steps`)",
                Dialect::Sweny(_) => "",
            };
            format!("The run used all of its {most} steps{key}, and ended before `{at}`.")
        }
    })
}

/// The last failure that nothing handled.
fn failed(history: &History) -> Option<String> {
    let mut visits = history.visited.iter().zip(&history.trace.visits).rev();
    let (_, visit) =
        visits.find(|(visited, visit)| visit.status == VisitStatus::Failed && !visited.went_on)?;
    let branch = visit.branch.as_ref().map_or_else(String::new, |branch| format!(" in {branch}"));
    let error = visit.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
    let attempts = match visit.attempts {
        0 | 1 => String::new(),
        more => format!(", after {more} attempts"),
    };
    Some(format!("The run failed at `{}`{branch}{attempts}{error}.", visit.node))
}

/// The cancel, with its reason and its author as far as the report has them.
fn cancelled(log: &Log<'_>, at: &str) -> String {
    let by = log.report.cancelled_by.as_ref().map_or_else(String::new, |origin| format!(" by {origin}"));
    let cleaned_up = || match &log.report.clean_up.as_ref()?.ending {
        Ending::Cancelled { reason } => Some(reason),
        _ => None,
    };
    let reason = log.report.cancel_reason.as_ref().or_else(cleaned_up);
    let reason = reason.map_or_else(String::new, |reason| format!(": {}", on_one_line(reason)));
    format!("The run was cancelled{at}{by}{reason}.")
}

/// The nodes that are under way, or were when the run ended, at most five of them by name.
fn under(log: &Log<'_>, begun: &Begun) -> String {
    const NAMED: usize = 5;
    let graph = log.graph;
    let was = |place: usize| begun.dropped[place] == Some(Dropped::RunEnded) && log.report.status.is_ended();
    let places = (0..graph.nodes.len()).filter(|place| begun.under_way[*place] || was(*place));
    let count = places.clone().count();
    let mut names: Vec<String> =
        places.take(NAMED).map(|place| format!("`{}`", graph.nodes[place].id.value)).collect();
    if count > NAMED {
        names.push(format!("{} more nodes", count - NAMED));
    }
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

/// The words with a capital letter.
fn sentence(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}
