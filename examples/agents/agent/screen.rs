//! The terminal: items of a run as they come, and questions on the standard input.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the terminal of an example")]

use std::error::Error;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

use tokio::io::{AsyncBufReadExt as _, BufReader, Stdin};
use workflow_agent::prelude::*;
use workflow_agent::{AnswerError, PendingApproval, PendingQuestion, Piece, terminal_safe};
use workflow_core::ExecutionId;

/// Lines of the standard input.
pub(crate) struct Lines(tokio::io::Lines<BufReader<Stdin>>);

impl Default for Lines {
    fn default() -> Self {
        Self(BufReader::new(tokio::io::stdin()).lines())
    }
}

impl Lines {
    /// Asks for a line. `None` at the end of the input.
    pub(crate) async fn ask(&mut self, question: &str) -> io::Result<Option<String>> {
        print!("{question}");
        io::stdout().flush()?;
        let line = self.0.next_line().await?;
        if line.is_none() || !io::stdin().is_terminal() {
            println!("{}", line.as_deref().unwrap_or_default());
        }
        Ok(line)
    }
}

/// Shows runs.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// Whether the last line has no end yet.
    is_open: bool,
    /// The attempt of the text that was shown last.
    attempt: Option<(ExecutionId, u32)>,
}

impl Screen {
    /// A line of its own.
    pub(crate) fn say(&mut self, line: impl Display) {
        if std::mem::take(&mut self.is_open) {
            println!();
        }
        println!("{line}");
    }

    /// A piece of text.
    fn piece(&mut self, piece: &Piece) {
        print!("{}", terminal_safe(piece));
        (self.is_open, self.attempt) = (true, Some((piece.execution, piece.attempt)));
        drop(io::stdout().flush());
    }

    /// Takes the text of an attempt back, as far as a terminal can: by a remark below it. Other texts stay as they are.
    fn retract(&mut self, attempt: (ExecutionId, u32)) {
        if self.attempt.take_if(|shown| *shown == attempt).is_some() {
            self.say("(this reply broke off: once more)");
        }
    }

    /// Shows a run to its end. `false` if it waits for an answer that nobody gives.
    pub(crate) async fn show(
        &mut self,
        mut run: AgentRun,
        lines: &mut Lines,
    ) -> Result<bool, Box<dyn Error>> {
        while let Some(shown) = run.next().await {
            if !self.item(shown, lines).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Shows an item of a run. `false` if nobody answers.
    pub(crate) async fn item(&mut self, shown: Shown, lines: &mut Lines) -> Result<bool, Box<dyn Error>> {
        match shown {
            Shown::Delta(piece) => self.piece(&piece),
            Shown::Thought(text) => self.say(format_args!("({})", terminal_safe(&text))),
            Shown::ToolUse(call) => {
                self.say(format_args!(
                    "> {} {}",
                    terminal_safe(&call.tool),
                    terminal_safe(&call.arguments.to_string())
                ));
            }
            Shown::ToolResult(done) => self.say(format_args!("< {}", terminal_safe(&done.text))),
            Shown::Retracted { execution, attempt } => self.retract((execution, attempt)),
            Shown::Approval(approval) => return self.approve(&approval, lines).await,
            Shown::Question(question) => return self.answer(&question, lines).await,
            Shown::Done(Outcome::Stopped(stopped)) => self.say(format_args!("(stopped: {})", stopped.reason)),
            Shown::Done(_) => self.say(""),
            Shown::Ended(status) => self.say(format_args!("(the run is {status})")),
            _ => {}
        }
        Ok(true)
    }

    async fn approve(
        &mut self,
        approval: &PendingApproval,
        lines: &mut Lines,
    ) -> Result<bool, Box<dyn Error>> {
        self.say(format_args!(
            "? {} wants to run with {}",
            terminal_safe(approval.tool()),
            terminal_safe(&approval.arguments().to_string())
        ));
        loop {
            let Some(line) = lines.ask("y, n, or other arguments as JSON> ").await? else { return Ok(false) };
            let sent = match line.trim() {
                "y" => approval.approve().await,
                "n" => approval.reject("").await,
                text => match serde_json::from_str(text) {
                    Ok(arguments) => approval.edit(arguments).await,
                    Err(_) => continue,
                },
            };
            match sent {
                Ok(()) => return Ok(true),
                Err(error @ AnswerError::Edit { .. }) => self.say(error),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn answer(
        &mut self,
        question: &PendingQuestion,
        lines: &mut Lines,
    ) -> Result<bool, Box<dyn Error>> {
        self.say(format_args!("? {}", terminal_safe(question.question())));
        let Some(line) = lines.ask("answer> ").await? else { return Ok(false) };
        question.answer(line).await?;
        Ok(true)
    }
}

/// Prints an error with its causes.
pub(crate) fn complain(error: &(impl Display + ?Sized)) {
    eprintln!("agent: {error}");
}
