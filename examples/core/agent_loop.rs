//! An agent's loop: a step emits its own input again, until it emits the stop event, and runs at most a set number of
//! times. The model is a trait. Here one model is scripted and the other never stops.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Task {
    text: String,
}

/// The conversation so far.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Turn {
    transcript: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done {
    answer: String,
}

/// Either the task itself or the previous turn: the trigger of a turn.
#[derive(Debug, EventSet)]
enum Prompt {
    Task(Arc<Task>),
    Turn(Arc<Turn>),
}

/// Either another turn or the end.
#[derive(Debug, EventSet)]
enum Next {
    Turn(Turn),
    Done(Done),
}

enum Decision {
    UseTool { tool: &'static str, argument: String },
    Finish { answer: String },
}

trait Model: Send + Sync + 'static {
    fn decide(&self, task: &str, transcript: &[String]) -> Decision;
}

struct Agent<M> {
    model: M,
}

#[workflow(name = "Agent")]
impl<M: Model> Agent<M> {
    /// One turn: the model decides, a tool answers. `loops` declares that the step may emit its own input.
    /// `max_executions` ends the loop even if the model does not.
    #[step(loops, max_executions = 5)]
    async fn act(&self, task: &Task, prompt: &Prompt) -> Next {
        let transcript = match prompt {
            Prompt::Task(_) => &[],
            Prompt::Turn(turn) => &turn.transcript[..],
        };
        match self.model.decide(&task.text, transcript) {
            Decision::Finish { answer } => Next::Done(Done { answer }),
            Decision::UseTool { tool, argument } => {
                let said = format!("{tool}({argument}) = {}", use_tool(tool, &argument));
                Next::Turn(Turn { transcript: [transcript, &[said]].concat() })
            }
        }
    }
}

fn use_tool(tool: &str, argument: &str) -> String {
    match tool {
        "length" => argument.chars().count().to_string(),
        "reverse" => argument.chars().rev().collect(),
        _ => "no such tool".into(),
    }
}

/// Uses each tool once, then answers with the results.
struct Scripted;

impl Model for Scripted {
    fn decide(&self, task: &str, transcript: &[String]) -> Decision {
        match transcript.len() {
            0 => Decision::UseTool { tool: "reverse", argument: task.into() },
            1 => Decision::UseTool { tool: "length", argument: task.into() },
            _ => Decision::Finish { answer: transcript.join(", ") },
        }
    }
}

/// Requests another tool endlessly.
struct Endless;

impl Model for Endless {
    fn decide(&self, task: &str, _: &[String]) -> Decision {
        Decision::UseTool { tool: "length", argument: task.into() }
    }
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let task = Task { text: "stressed".into() };
    println!("{}", Agent { model: Scripted }.run(task.clone()).await?.answer);
    match (Agent { model: Endless }).run(task).await {
        Err(RunError::Stalled(report)) => println!("after five turns: {report}"),
        other => println!("unexpected: {other:?}"),
    }
    Ok(())
}
