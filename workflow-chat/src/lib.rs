//! Chats on [`workflow_core`], beside any model.
//!
//! - Streamed text: [`ShowText`] shows a model's tokens on a step's [`Display`](workflow_core::Display) as they come, and
//!   returns the whole text. Viewers receive [`Chunk`]s and [`Thought`]s.
//! - [`ChatTurn`], the start event of a workflow that answers a conversation.
//!
//! ```
//! use futures::stream;
//! use workflow_chat::{ChatMessage, ChatTurn, ShowText as _};
//! use workflow_core::prelude::*;
//!
//! #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
//! #[event(stop)]
//! struct Answer { text: String }
//!
//! struct Echo;
//!
//! #[workflow]
//! impl Echo {
//!     #[step]
//!     async fn answer(&self, turn: &ChatTurn, display: &Display) -> Answer {
//!         let asked = turn.messages.last().map(ChatMessage::text).unwrap_or_default();
//!         let words: Vec<String> = asked.split_inclusive(' ').map(str::to_owned).collect();
//!         Answer { text: display.stream_text(stream::iter(words)).await.text }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), RunError> {
//! let answer = Echo.run(ChatTurn::new([ChatMessage::user("is it you?")])).await?;
//! assert_eq!(answer.text, "is it you?");
//! # Ok(())
//! # }
//! ```

mod message;
mod splitter;
mod text;
mod turn;

pub use message::{ChatContent, ChatImage, ChatMessage, ChatPart, ChatRole, ToolCall, ToolFunction};
pub use text::{Chunk, ShowText, StreamedText, TextPiece, Thought};
pub use turn::ChatTurn;
