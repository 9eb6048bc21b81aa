//! The terminal: the display of a run, and the answers of people.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the terminal of an example")]

use std::error::Error;
use std::fmt::Display;
use std::io;

use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Stdin};
use workflow_core::DisplayItem;
use workflow_graph::{Activity, Gate, GraphError, GraphRun, NodeActivity};

pub(crate) fn complain(error: impl Display) {
    eprintln!("{error}");
}

pub(crate) fn say(line: impl Display) {
    println!("{line}");
}

/// Lines of the standard input.
pub(crate) struct Answers(tokio::io::Lines<BufReader<Stdin>>);

impl Default for Answers {
    fn default() -> Self {
        Self(BufReader::new(tokio::io::stdin()).lines())
    }
}

impl Answers {
    /// `y`, `n`, or an answer in JSON. `None` at the end of the input.
    async fn next(&mut self) -> io::Result<Option<Value>> {
        while let Some(line) = self.0.next_line().await? {
            match line.trim() {
                "y" => return Ok(Some(json!({ "granted": true }))),
                "n" => return Ok(Some(json!({ "granted": false }))),
                other => match serde_json::from_str(other) {
                    Ok(answer) => return Ok(Some(answer)),
                    Err(_) => say("y, n, or an answer in JSON?"),
                },
            }
        }
        Ok(None)
    }
}

/// Shows a run until it has ended, and asks people on the way. Whether it has ended: nobody may answer.
pub(crate) async fn follow(run: &GraphRun, answers: &mut Answers) -> Result<bool, Box<dyn Error>> {
    let mut shown = run.run().display();
    while let Some(item) = shown.next().await {
        if let Some(NodeActivity { node, activity: Activity::Progress { text }, .. }) = item.event() {
            say(format!("{node}: {text}"));
        }
        let DisplayItem::Asked { request } = item else { continue };
        let gates = run.gates().await?;
        let Some(gate) = gates.iter().find(|gate| gate.id == request.seq()) else { continue };
        if !asked(run, gate, answers).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn asked(run: &GraphRun, gate: &Gate, answers: &mut Answers) -> Result<bool, Box<dyn Error>> {
    say(format!("{}: {} [y/n]", gate.node, gate.text));
    while let Some(answer) = answers.next().await? {
        match run.answer(gate.id, answer).await {
            // The question stays open after an answer that does not fit.
            Err(error @ GraphError::UnfitAnswer { .. }) => complain(error),
            answered => return Ok(answered.map(|()| true)?),
        }
    }
    Ok(false)
}
