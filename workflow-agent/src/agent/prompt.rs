//! The start event of an agent's run.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use workflow_core::Event;

use crate::budget::Budget;
use crate::chain::Continues;
use crate::model::Image;
use crate::phase::Conversation;
use crate::secret::Redactor;

/// The longest text of a prompt in bytes.
pub(crate) const TEXT: usize = 1024 * 1024;
/// The largest image in bytes.
pub(crate) const IMAGE: usize = 5 * 1024 * 1024;
/// The most images of a prompt.
const IMAGES: usize = 20;
/// The longest conversation with which a run starts, in bytes.
pub(crate) const CONVERSATION: usize = 16 * 1024 * 1024;

/// The message that a run answers, and the terms of the run.
///
/// Anything that converts into text is a prompt: `agent.ask("Warm in Bern?")`.
///
/// ```
/// use workflow_agent::{Budget, Prompt};
///
/// let prompt = Prompt::new("Compare the offers.").tools(["read_file"]).turns(10).budget(Budget::tokens(50_000));
/// # let _ = prompt;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Event)]
#[event(start, name = "agent.prompt")]
#[non_exhaustive]
pub struct Prompt {
    /// The text, at most 1 MiB.
    pub text: Arc<str>,
    /// Images that belong to it, at most 20, and 5 MiB each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Of the agent's tools, those that the run may use; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The JSON schema of the answer's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The most model calls; `None` for the agent's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The most that the run may use, beside the agent's own budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The conversation that the run continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// Whether the answer has the conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub return_conversation: bool,
    /// The session to which the run belongs, and its number there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<SessionPlace>,
    /// The run that this one continues, in a conversation over several runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) continues: Option<Continues>,
    /// A text behind the identity of the agent, in the system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) setting: Option<Arc<str>>,
    /// Whether the answer has the run's id and its calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) return_work: bool,
}

/// The place of a run in its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionPlace {
    pub(crate) id: Arc<str>,
    pub(crate) number: u64,
    /// Whether the run before ended otherwise than completed: its exchange, if it entered, goes as this run starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) takes_back: bool,
}

impl Prompt {
    /// A prompt without further terms.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Adds an image.
    #[must_use]
    pub fn image(mut self, image: Image) -> Self {
        self.images.push(image);
        self
    }

    /// Limits the run to some of the agent's tools. A name that the agent lacks has no effect.
    #[must_use]
    pub fn tools<S: Into<String>>(self, tools: impl IntoIterator<Item = S>) -> Self {
        Self { tools: Some(tools.into_iter().map(Into::into).collect()), ..self }
    }

    /// Sets the JSON schema of the answer's data. [`output_of`](Self::output_of) derives it from a type.
    #[must_use]
    pub fn output(self, schema: Value) -> Self {
        Self { output: Some(schema), ..self }
    }

    /// Sets the type of the answer's data: the model must keep to its JSON schema. [`Answer::read`](crate::Answer::read)
    /// gives the value. [`Agent::ask_for`](crate::Agent::ask_for) does both.
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
    /// let answer = agent.ask(Prompt::new("Warm in Bern?").output_of::<Weather>()).await?;
    /// assert_eq!(answer.read::<Weather>()?.celsius, 21.5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn output_of<T: JsonSchema>(self) -> Self {
        self.output(crate::tool::schema_of::<T>())
    }

    /// Limits the model calls of the run.
    #[must_use]
    pub fn turns(self, turns: u32) -> Self {
        Self { turns: Some(turns), ..self }
    }

    /// Limits the run further than the agent's own budget does.
    #[must_use]
    pub fn budget(self, budget: Budget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Continues a conversation.
    #[must_use]
    pub fn conversation(self, conversation: Conversation) -> Self {
        Self { conversation: Some(conversation), ..self }
    }

    /// Asks for the conversation in the answer.
    #[must_use]
    pub fn return_conversation(self) -> Self {
        Self { return_conversation: true, ..self }
    }

    /// Removes secrets, before anything is stored.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        self.text = redactor.shared(&self.text);
        self.setting = self.setting.take().map(|setting| redactor.shared(&setting));
        if let Some(marker) = self.continues.as_mut().and_then(|continues| continues.marker.as_mut()) {
            marker.accomplished = redactor.shared(&marker.accomplished);
        }
        for image in &mut self.images {
            if let Image::Url(url) = image {
                *url = redactor.text(url).into_owned();
            }
        }
        if let Some(schema) = &mut self.output {
            redactor.value(schema);
        }
        if let Some(conversation) = self.conversation.take() {
            self.conversation = Some(conversation.redacted(redactor));
        }
    }

    /// The first bound that the prompt exceeds.
    pub(crate) fn check(&self) -> Result<(), PromptError> {
        if self.text.trim().is_empty() && self.images.is_empty() {
            return Err(PromptError::Empty);
        }
        let bytes = self.text.len() + self.setting.as_ref().map_or(0, |setting| setting.len());
        if bytes > TEXT {
            return Err(PromptError::TooLong { bytes, limit: TEXT });
        }
        if self.images.len() > IMAGES {
            return Err(PromptError::TooManyImages { images: self.images.len(), limit: IMAGES });
        }
        let images = self.images.iter().map(Image::bytes).max().unwrap_or(0);
        if images > IMAGE * 4 / 3 + 4 {
            return Err(PromptError::ImageTooLarge { bytes: images / 4 * 3, limit: IMAGE });
        }
        let conversation = self.conversation.as_ref().map_or(0, Conversation::bytes);
        if conversation > CONVERSATION {
            return Err(PromptError::ConversationTooLong { bytes: conversation, limit: CONVERSATION });
        }
        if let Some(schema) = &self.output {
            crate::tool::Schema::new(schema).map_err(|problem| PromptError::Schema { problem })?;
        }
        Ok(())
    }
}

impl<T: Into<Arc<str>>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// Why a prompt cannot start a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// There is neither text nor an image.
    #[error("the prompt is empty: give it a text or an image")]
    Empty,
    /// The text exceeds its bound.
    #[error("the prompt has {bytes} bytes, and {limit} at most are allowed: let a tool read long texts")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// An image exceeds its bound.
    #[error("an image has {bytes} bytes, and {limit} at most are allowed: scale it down")]
    ImageTooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// There are too many images.
    #[error("the prompt has {images} images, and {limit} at most are allowed: send them in several messages")]
    TooManyImages {
        /// Their number.
        images: usize,
        /// The bound.
        limit: usize,
    },
    /// The conversation exceeds its bound.
    #[error(
        "the conversation has {bytes} bytes, and {limit} at most are allowed: use a session, or `hand_off`"
    )]
    ConversationTooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// The schema of the output is no JSON schema.
    #[error("the schema of the output is not valid: {problem}")]
    Schema {
        /// The problem.
        problem: String,
    },
    /// The agent cannot keep a budget in money.
    #[error(
        "the budget limits the cost, and the model `{model}` has no price: set it with `Provider::price`, or in the `ModelLimits` of your own model"
    )]
    NoPrice {
        /// The name of the model.
        model: String,
    },
}
