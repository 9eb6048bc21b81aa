//! `check`: whether a file is sound, and what is wrong with it.

use workflow_redb::{Report, StoreFile};

use crate::table::plain;
use crate::{Output, Problem};

pub(crate) fn run(mut file: StoreFile, output: &mut Output<'_>) -> Result<bool, Problem> {
    let report = file.check()?;
    if output.json {
        serde_json::to_writer(&mut *output.to, &report)?;
        writeln!(output.to)?;
    } else {
        print(&report, output)?;
    }
    Ok(report.is_sound())
}

fn print(report: &Report, output: &mut Output<'_>) -> Result<(), Problem> {
    let (red, green, end) = if output.colour { ("\x1b[31m", "\x1b[32m", "\x1b[0m") } else { ("", "", "") };
    for problem in &report.problems {
        writeln!(output.to, "{red}problem{end}: {}", plain(&problem.to_string()))?;
    }
    if report.more_problems > 0 {
        writeln!(output.to, "and {} more", report.more_problems)?;
    }
    let Report { runs, records, context_values, pending_messages, .. } = report;
    let messages = match pending_messages {
        0 => String::new(),
        pending => format!(", {pending} pending messages"),
    };
    let verdict =
        if report.is_sound() { format!("{green}sound{end}") } else { format!("{red}not sound{end}") };
    Ok(writeln!(
        output.to,
        "{verdict}: {runs} runs, {records} records, {context_values} values of contexts{messages}"
    )?)
}
