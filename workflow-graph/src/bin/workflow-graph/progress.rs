//! Progress of a run on the standard error: lines that stay, and on a terminal one that changes below them.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use workflow_core::{ExecutionId, RunId};

use crate::text::{one_line, plain};

mod watch;

pub(crate) use watch::Watch;

/// The most nodes that the changing line names.
const NAMED: usize = 6;

/// A sign of a run's progress.
#[derive(Debug)]
pub(crate) enum Sign {
    /// Work began.
    Began { run: RunId, execution: ExecutionId, node: String },
    /// Work ended, in one way or another.
    Ended { run: RunId, execution: ExecutionId },
    /// A line that stays.
    Line(String),
}

/// Shows signs.
#[derive(Debug)]
pub(crate) struct Progress {
    is_live: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// As many as the engine runs at once.
    working: BTreeMap<(RunId, ExecutionId), String>,
    bar: Option<ProgressBar>,
    /// A question stands on the terminal: nothing changes there.
    is_held: bool,
}

impl Progress {
    /// Lines that change need a terminal that can move its cursor.
    pub(crate) fn new() -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { is_live: io::stderr().is_terminal() && !is_dumb, state: Mutex::default() }
    }

    pub(crate) fn show(&self, sign: Sign) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match sign {
            Sign::Began { run, execution, node } => {
                state.working.insert((run, execution), node);
            }
            Sign::Ended { run, execution } => {
                state.working.remove(&(run, execution));
            }
            Sign::Line(line) => state.line(&one_line(&line)),
        }
        if self.is_live {
            state.draw();
        }
    }

    /// Prints a line.
    pub(crate) fn line(&self, line: &str) {
        self.show(Sign::Line(line.to_owned()));
    }

    /// Removes the changing line, for a question, or brings it back.
    pub(crate) fn hold(&self, is_held: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_held = is_held;
        if self.is_live {
            state.draw();
        }
    }
}

impl State {
    fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            // Progress that cannot be shown ends no run.
            None => drop(writeln!(io::stderr(), "{line}")),
        }
    }

    fn draw(&mut self) {
        if self.is_held || self.working.is_empty() {
            if let Some(bar) = self.bar.take() {
                bar.finish_and_clear();
            }
            return;
        }
        let bar = self.bar.get_or_insert_with(bar);
        let mut nodes: Vec<&str> = self.working.values().map(String::as_str).collect();
        nodes.dedup();
        let more = nodes.len().saturating_sub(NAMED);
        nodes.truncate(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        bar.set_message(plain(&format!("{}{more}", nodes.join(", "))));
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    // A template that does not parse leaves the default one.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
