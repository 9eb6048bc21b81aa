//! The texts of the errors of runs that reached their bound of executions or of events.

use std::sync::Arc;

use crate::error::Excess;

pub(super) fn text(
    limit: u64,
    looping: &[Arc<str>],
    rounds: u64,
    busiest: &Arc<str>,
    executions: u64,
    excess: Option<&Excess>,
) -> String {
    if let Some(Excess { step, amount, left, .. }) = excess {
        return format!(
            "`{step}` fanned out {amount} items, each of which needs an execution, and the run may have {left} more of its {limit}: divide the items among several runs, or raise `max_executions_per_run`"
        );
    }
    let begin = format!("the run had {limit} executions, which is the most it may have, and another was due");
    match looping {
        [] => format!(
            "{begin}: `{busiest}` ran {executions} times and no loop led there, so something fans out that far or sends that much; if it is meant to, raise `max_executions_per_run`"
        ),
        looping => format!(
            "{begin}: {}{}; give the loop a way out, bound one of its steps with `max_executions`, or raise `max_executions_per_run`",
            loop_text(looping, rounds),
            if looping.contains(busiest) {
                String::new()
            } else {
                format!(", and `{busiest}`, which follows from it, ran {executions} times")
            },
        ),
    }
}

pub(super) fn of_log(limit: u64, busiest: &Arc<str>, events: u64, excess: Option<&Excess>) -> String {
    match excess {
        Some(Excess { step, amount, left, .. }) => format!(
            "`{step}` returned {amount} events at once, and the run's log has room for {left} more of its {limit}: divide them among several runs, or raise `max_events_per_run`"
        ),
        None => format!(
            "the run's log holds {limit} events, which is the most it may, and {events} of them are `{busiest}`: a loop may have no way out, or raise `max_events_per_run`"
        ),
    }
}

fn loop_text(looping: &[Arc<str>], rounds: u64) -> String {
    match looping {
        [only] => format!("`{only}` triggered itself {rounds} times"),
        many => {
            let names: Vec<String> =
                many.iter().chain(many.first()).map(|name| format!("`{name}`")).collect();
            format!("the loop {} went round {rounds} times", names.join(" \u{2192} "))
        }
    }
}
