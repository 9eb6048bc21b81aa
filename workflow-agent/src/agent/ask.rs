//! Runs of an agent: in memory with `ask`, and in an engine with `start`.

use std::sync::Arc;

use futures_util::StreamExt as _;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use workflow_core::errors::chain;
use workflow_core::{BuildError, Engine, RunError, RunOptions, SendError, StartError};

use super::{Agent, Answer, DataError, HostAgents as _, Outcome, Prompt, PromptError, Stopped};
use crate::run::{AgentRun, Shown, first_request, tool_of};

/// Why an agent did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The run stopped without an answer.
    #[error("the agent stopped: {}", .0.reason)]
    Stopped(Box<Stopped>),
    /// The prompt exceeds a bound.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The data of the answer is not of the type that was asked for.
    #[error(transparent)]
    Output(#[from] DataError),
    /// A tool call needs a person, and nobody can answer a run of `ask`.
    #[error(
        "`{request}` needs a person: host the agent in an engine, and start it with `Agent::start` or a `Session`"
    )]
    NeedsPeople {
        /// The tool that needs an approval, or `ask_user`.
        request: String,
    },
    /// The engine does not host the agent.
    #[error("the engine does not host agent `{agent}`: add `.agent(…)` to its builder")]
    NotHosted {
        /// The name of the agent.
        agent: Arc<str>,
    },
    /// The run could not be started.
    #[error("the run could not be started: {}", chain(.0))]
    Start(#[source] StartError),
    /// The run ended in another way, such as cancelled.
    #[error("the run did not end with an outcome: {}", chain(.0))]
    Run(#[from] RunError),
    /// The run did not take a message.
    #[error("the run did not take the message: {}", chain(.0))]
    Send(#[from] SendError),
    /// The engine could not be built.
    #[error("the engine could not be built: {}", chain(.0))]
    Build(#[from] BuildError),
}

impl Agent {
    /// Asks in memory: runs the agent without a store, and returns its answer. Dropping the future cancels the run.
    ///
    /// Nothing of the run remains: each call has an engine of its own, so a memory is empty at each call, and no session
    /// exists. Nobody can answer there, so the first call that needs an approval, or that asks a person, ends the run with
    /// [`AgentError::NeedsPeople`]. For sessions, memory and people, host the agent in an engine
    /// ([`HostAgents::agent`](crate::HostAgents::agent)), and use [`start`](Self::start) or a [`Session`](crate::Session).
    ///
    /// # Errors
    /// [`AgentError::Stopped`] if the run stops without an answer, [`AgentError::NeedsPeople`] as soon as a call needs an
    /// approval or asks a person, and failures of the run.
    pub async fn ask(&self, prompt: impl Into<Prompt>) -> Result<Answer, AgentError> {
        let engine = Engine::builder().agent(self.clone()).build()?;
        let mut run = self.start(&engine, prompt).await?;
        let guard = run.handle().clone().cancel_on_drop("nobody waits for the answer");
        while let Some(shown) = run.next().await {
            let request = match shown {
                Shown::Approval(approval) => approval.tool().to_owned(),
                Shown::Question(_) => super::ASK_USER.to_owned(),
                // A request may be among the missed items.
                Shown::Missed(_) => match first_request(&engine).await?.as_ref().and_then(tool_of) {
                    Some(request) => request,
                    None => continue,
                },
                _ => continue,
            };
            return Err(AgentError::NeedsPeople { request });
        }
        let outcome = guard.outcome().await?;
        drop(guard.disarm());
        match outcome {
            Outcome::Answered(answer) => Ok(answer),
            Outcome::Stopped(stopped) => Err(AgentError::Stopped(Box::new(stopped))),
        }
    }

    /// Asks in memory for an answer of a type: the model must keep to its JSON schema.
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_agent::prelude::*;
    /// use workflow_agent::model::{ScriptedModel, ScriptedReply};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Weather { celsius: f64 }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new([ScriptedReply::call("1", "final_answer", json!({"celsius": 21.5}))]);
    /// let agent = Agent::builder("weather").model(model).build()?;
    /// let weather: Weather = agent.ask_for("Warm in Bern?").await?;
    /// assert_eq!(weather.celsius, 21.5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`ask`](Self::ask), and [`AgentError::Output`] if the data fits the schema and still is no `T`.
    pub async fn ask_for<T: DeserializeOwned + JsonSchema>(
        &self,
        prompt: impl Into<Prompt>,
    ) -> Result<T, AgentError> {
        let answer = self.ask(prompt.into().output_of::<T>()).await?;
        Ok(answer.read()?)
    }

    /// Starts a run in an engine that hosts the agent. Secrets of the agent are removed from the prompt before anything
    /// is stored.
    ///
    /// The name decides: the run is one of the agent that the engine hosts under the name of this one, with the model and
    /// the tools of that one. So give the same build to [`HostAgents::agent`](crate::HostAgents::agent) and to this method.
    /// Of another build with the same name, only the secrets and the checks before a message is sent would count.
    ///
    /// # Errors
    /// If the prompt exceeds a bound, or the engine refuses the run.
    pub async fn start(&self, engine: &Engine, prompt: impl Into<Prompt>) -> Result<AgentRun, AgentError> {
        self.start_with(engine, prompt, RunOptions::new()).await
    }

    /// Starts a run with options, such as an id or a thread.
    ///
    /// # Errors
    /// If the prompt exceeds a bound, or the engine does not host the agent or refuses the run.
    pub async fn start_with(
        &self,
        engine: &Engine,
        prompt: impl Into<Prompt>,
        options: RunOptions,
    ) -> Result<AgentRun, AgentError> {
        let mut prompt = prompt.into();
        prompt.redact(&self.inner.caller.redactor);
        prompt.check()?;
        self.check_price(&prompt)?;
        let options = options.workflow(Arc::clone(&self.inner.name));
        let run = engine.start_with::<Self>(prompt, options).await.map_err(|error| match error {
            StartError::UnknownWorkflow { .. } => {
                AgentError::NotHosted { agent: Arc::clone(&self.inner.name) }
            }
            error => AgentError::Start(error),
        })?;
        Ok(AgentRun::new(engine.clone(), self.clone(), run))
    }
}
