//! Drives a run until it ends, or waits for an answer that nobody gives here. Every wait ends with the run, a deadline, or a
//! signal.

use std::pin::pin;
use std::time::Duration;

use serde_json::Value;
use workflow_core::{Pause, SendError};
use workflow_graph::{GraphError, GraphFailure, GraphResult, GraphRun, ScriptedExecutor};

use crate::ask::{self, Lines};
use crate::interrupts::Interrupts;
use crate::problem::Problem;
use crate::progress::Progress;
use crate::reply;
use crate::standing::{Open, Standing, has_ended, named};

/// How often a run is looked at that reports nothing: a child may have come to wait unnoticed.
const LOOK: Duration = Duration::from_secs(1);

/// The longest time that a run may take to pause or to be cancelled.
const PATIENCE: Duration = Duration::from_secs(10);

/// The end of a drive.
pub(crate) enum Driven {
    Ended(Box<GraphResult>),
    Failed(Box<GraphFailure>),
    Waits(Vec<Open>),
    Paused,
}

/// An answer from the command line.
pub(crate) struct Given {
    pub(crate) gate: String,
    pub(crate) answer: String,
}

/// The parts that drive a run.
pub(crate) struct Driver<'a> {
    pub(crate) script: Option<&'a ScriptedExecutor>,
    pub(crate) progress: &'a Progress,
    pub(crate) settled: tokio::sync::watch::Receiver<u64>,
    pub(crate) interrupts: Interrupts,
    /// Lines of people, if questions are asked here.
    pub(crate) lines: Option<Lines>,
    /// Whether the run has a store, so that it can go on later.
    pub(crate) is_stored: bool,
}

/// The end of a question.
enum Asked {
    Closed,
    Nobody,
    Interrupted,
}

impl Driver<'_> {
    /// Drives the run. `given` answers a question of it first.
    pub(crate) async fn drive(
        &mut self,
        run: &GraphRun,
        mut given: Option<Given>,
    ) -> Result<Driven, Problem> {
        let mut outcome = pin!(run.outcome());
        loop {
            self.settled.borrow_and_update();
            if run.run().status().is_ended() {
                if let Some(Given { gate, .. }) = given {
                    let status = run.run().status();
                    let text = format!("`{gate}` cannot be answered: the run {}", has_ended(status));
                    return Err(Problem::Wrong(text));
                }
                return driven(outcome.await);
            }
            let Standing { is_paused, is_still, gates } = Standing::of(run).await?;
            if let Some(Given { gate, answer }) = &given {
                match named(&gates, gate) {
                    Ok(open) => {
                        let answer =
                            reply::read(open.gate.schema.as_ref(), answer).map_err(Problem::Wrong)?;
                        open.run.answer(&open.gate, answer).await?;
                        given = None;
                        continue;
                    }
                    Err(text) if is_still => return Err(Problem::Wrong(text)),
                    // The question may come yet.
                    Err(_) => {}
                }
            } else if self.played(&gates).await? {
                continue;
            } else if is_paused {
                return Ok(Driven::Paused);
            } else if is_still {
                match self.ask(&gates).await? {
                    Asked::Closed => continue,
                    Asked::Nobody => return Ok(Driven::Waits(gates)),
                    Asked::Interrupted => return self.interrupt(run).await,
                }
            }
            tokio::select! {
                ended = &mut outcome, if given.is_none() => return driven(ended),
                _ = self.settled.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
                () = self.interrupts.next() => return self.interrupt(run).await,
            }
        }
    }

    /// Answers the first question for which the script has a reply.
    async fn played(&self, gates: &[Open]) -> Result<bool, Problem> {
        let Some(script) = self.script else { return Ok(false) };
        let reply = gates.iter().find_map(|open| Some((open, script.reply_to(&open.gate)?.clone())));
        let Some((open, reply)) = reply else { return Ok(false) };
        match answered(open, reply).await? {
            Some(problem) => {
                let text = format!("the script's reply to `{}` does not fit: {problem}", open.label);
                Err(Problem::Wrong(text))
            }
            None => Ok(true),
        }
    }

    /// Asks the first question, until it is closed.
    async fn ask(&mut self, gates: &[Open]) -> Result<Asked, Problem> {
        let (Some(lines), Some(open)) = (&mut self.lines, gates.first()) else { return Ok(Asked::Nobody) };
        self.progress.hold(true);
        ask::print(open)?;
        let asked = loop {
            tokio::select! {
                line = lines.next() => {
                    let Some(line) = line else { break Asked::Nobody };
                    if line.trim().is_empty() {
                        ask::refuse(open, "the answer is empty")?;
                        continue;
                    }
                    match reply::read(open.gate.schema.as_ref(), &line) {
                        Err(problem) => ask::refuse(open, &problem)?,
                        Ok(answer) => match answered(open, answer).await? {
                            Some(problem) => ask::refuse(open, &problem)?,
                            None => break Asked::Closed,
                        },
                    }
                }
                () = tokio::time::sleep(LOOK) => {
                    let is_open = match open.run.gates().await {
                        Ok(gates) => {
                            gates.iter().any(|gate| gate.id == open.gate.id && gate.run == open.gate.run)
                        }
                        Err(_) => false,
                    };
                    if !is_open {
                        self.progress.line("");
                        self.progress.line(&format!("{}: the question is closed", open.label));
                        break Asked::Closed;
                    }
                }
                () = self.interrupts.next() => break Asked::Interrupted,
            }
        };
        self.progress.hold(false);
        Ok(asked)
    }

    /// Pauses a run that can go on later, and cancels any other. A second signal, or the end of patience, leaves the run to
    /// its journal.
    async fn interrupt(&mut self, run: &GraphRun) -> Result<Driven, Problem> {
        let ending = async {
            if self.is_stored {
                match run.pause(Pause::Now).await {
                    Err(GraphError::Send(SendError::Ended { .. } | SendError::Stopped { .. })) => {}
                    paused => paused?,
                }
            } else {
                match run.cancel("it was interrupted").await {
                    Err(GraphError::Send(SendError::Ended { .. } | SendError::Stopped { .. })) => {}
                    cancelled => cancelled?,
                }
            }
            if run.settled().await.is_ended() { driven(run.outcome().await) } else { Ok(Driven::Paused) }
        };
        tokio::select! {
            ended = ending => ended,
            () = tokio::time::sleep(PATIENCE) => Err(late()),
            () = self.interrupts.next() => Err(late()),
        }
    }
}

fn late() -> Problem {
    Problem::Failed("the run has not stopped in time: a stored one continues with `resume`".into())
}

/// Answers a question. Returns why the answer is refused, and nothing if it is taken or comes too late.
async fn answered(open: &Open, answer: Value) -> Result<Option<String>, Problem> {
    match open.run.answer(&open.gate, answer).await {
        Ok(())
        | Err(GraphError::Send(
            SendError::Ended { .. }
            | SendError::Stopped { .. }
            | SendError::Answered { .. }
            | SendError::Expired { .. }
            | SendError::NotOpen { .. },
        )) => Ok(None),
        Err(error @ (GraphError::UnfitAnswer { .. } | GraphError::Send(SendError::TooLarge(_)))) => {
            Ok(Some(workflow_core::errors::chain(&error)))
        }
        Err(error) => Err(error.into()),
    }
}

fn driven(outcome: Result<GraphResult, GraphError>) -> Result<Driven, Problem> {
    match outcome {
        Ok(result) => Ok(Driven::Ended(Box::new(result))),
        Err(GraphError::Failed(failure)) => Ok(Driven::Failed(failure)),
        Err(error) => Err(error.into()),
    }
}
