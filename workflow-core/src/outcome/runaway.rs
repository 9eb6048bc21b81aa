//! The text of the error of a run that reached its bound of executions.

use std::sync::Arc;

pub(super) fn text(
    limit: u64,
    looping: &[Arc<str>],
    rounds: u64,
    busiest: &Arc<str>,
    executions: u64,
) -> String {
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
