//! Streamed text: the two display events for it, and the trait that forwards a stream of tokens to a display. `splitter`
//! finds the thoughts.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use serde::{Deserialize, Serialize};
use workflow_core::{Display, Event};

use crate::splitter::{Part, Splitter};

/// A piece of a text that a step is producing: viewers append it to those of the same execution and attempt.
///
/// ```
/// use futures::StreamExt;
/// use workflow_chat::Chunk;
/// use workflow_core::{DisplayItem, RunHandle, Workflow};
///
/// async fn watch<W: Workflow>(run: &RunHandle<W>) -> String {
///     let chunk = async |item: DisplayItem| Some(item.event::<Chunk>()?.text.clone());
///     run.display().filter_map(chunk).collect().await
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(display, name = "chat.chunk")]
pub struct Chunk {
    /// The piece, unchanged.
    pub text: String,
}

/// A piece of a model's thoughts before its answer: for display, and no part of the answer.
///
/// ```
/// use workflow_chat::Thought;
/// use workflow_core::DisplayItem;
///
/// fn is_thinking(item: &DisplayItem) -> bool {
///     item.event::<Thought>().is_some()
/// }
/// # assert!(!is_thinking(&DisplayItem::Missed { count: Some(1) }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(display, name = "chat.thought")]
pub struct Thought {
    /// The piece, unchanged.
    pub text: String,
}

/// The sum of a stream of text, as [`ShowText::stream_text`] returns it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use workflow_chat::ShowText as _;
///
/// let (display, _shown) = workflow_core::Display::detached();
/// let tokens = futures::stream::iter(["<thi", "nk>a sum</think>", "4", "2"]);
/// let streamed = display.stream_text(tokens).await;
/// assert_eq!(streamed.text, "42");
/// assert_eq!(streamed.thoughts, ["a sum"]);
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamedText {
    /// The whole text without thoughts and their tags; nothing is trimmed.
    pub text: String,
    /// The contents of each `<think>` … `</think>`, in order. Empty ones are left out.
    pub thoughts: Vec<String>,
}

/// An item of a stream of text.
///
/// These are `String`, `&str`, `Cow<str>`, `Box<str>`, `Arc<str>`, and `Result<T, E>` where `T` can be read as text.
/// [`ShowText::stream_text`] returns a [`StreamedText`] for the first ones, and `Result<StreamedText, E>` for the last.
/// The trait cannot be implemented elsewhere: map other streams to one of these types.
///
/// ```
/// use futures::{Stream, StreamExt};
/// use workflow_chat::{ShowText as _, StreamedText};
/// use workflow_core::Display;
///
/// struct Delta { content: String }
///
/// async fn forward(display: &Display, deltas: impl Stream<Item = Delta> + Send) -> StreamedText {
///     display.stream_text(deltas.map(|delta| delta.content)).await
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a piece of text",
    label = "not text",
    note = "map the stream to `String`, `&str`, `Cow<str>`, `Box<str>`, `Arc<str>`, or `Result<T, E>` with `T: AsRef<str>`"
)]
pub trait TextPiece: sealed::Sealed {
    /// The result of a whole stream.
    type Streamed;

    #[doc(hidden)]
    type Text: AsRef<str>;

    #[doc(hidden)]
    type Error;

    #[doc(hidden)]
    fn piece(self) -> Result<Self::Text, Self::Error>;

    #[doc(hidden)]
    fn streamed(result: Result<StreamedText, Self::Error>) -> Self::Streamed;
}

mod sealed {
    #[doc(hidden)]
    pub trait Sealed {}

    #[doc(hidden)]
    pub trait Display {}

    impl Display for workflow_core::Display {}
}

macro_rules! text_piece {
    ($($type:ty),+ $(,)?) => {
        $(
            impl sealed::Sealed for $type {}

            impl TextPiece for $type {
                type Streamed = StreamedText;
                type Text = Self;
                type Error = std::convert::Infallible;

                fn piece(self) -> Result<Self, Self::Error> {
                    Ok(self)
                }

                fn streamed(result: Result<StreamedText, Self::Error>) -> StreamedText {
                    let Ok(streamed) = result;
                    streamed
                }
            }
        )+
    };
}

text_piece!(String, &str, Cow<'_, str>, Box<str>, Arc<str>);

impl<T, E> sealed::Sealed for Result<T, E> {}

impl<T: AsRef<str>, E> TextPiece for Result<T, E> {
    type Streamed = Result<StreamedText, E>;
    type Text = T;
    type Error = E;

    fn piece(self) -> Self {
        self
    }

    fn streamed(result: Result<StreamedText, E>) -> Result<StreamedText, E> {
        result
    }
}

/// Text on a [`Display`], piece by piece.
///
/// Only `Display` implements it.
pub trait ShowText: sealed::Display {
    /// Shows a piece of text at once: `show(Chunk { text })`.
    ///
    /// ```
    /// use workflow_chat::ShowText as _;
    ///
    /// fn greet(display: &workflow_core::Display) {
    ///     display.chunk("Hello, ");
    ///     display.chunk("Ada!");
    /// }
    /// # greet(&workflow_core::Display::detached().0);
    /// ```
    fn chunk(&self, text: impl Into<String>);

    /// Shows a piece of a thought at once: `show(Thought { text })`.
    ///
    /// ```
    /// use workflow_chat::ShowText as _;
    ///
    /// fn think(display: &workflow_core::Display) {
    ///     display.thought("Who is it that I greet?");
    /// }
    /// # think(&workflow_core::Display::detached().0);
    /// ```
    fn thought(&self, text: impl Into<String>);

    /// Forwards a stream of text, usually a model's tokens, and returns the whole.
    ///
    /// Each piece is shown as a [`Chunk`] when it comes. Text between `<think>` and `</think>` is shown as [`Thought`]
    /// instead, even if a tag is cut over several pieces; without a `</think>` the thought lasts to the end. A closing
    /// tag outside of a thought, and an opening one inside, are text. At most seven bytes are held back, because they
    /// may become a tag.
    ///
    /// The future completes at the end of the stream. A stream that is always ready yields to other tasks. Dropping the
    /// future drops the stream. The result grows with the stream, so bound an endless stream.
    ///
    /// # Errors
    /// The first error of the stream, if it yields `Result`s. Displayed items stay until the attempt fails, and are
    /// retracted with the attempt's other items.
    ///
    /// ```
    /// use futures::Stream;
    /// use workflow_chat::ShowText as _;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Question { text: String }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Answer { text: String }
    /// # struct Model;
    /// # impl Model {
    /// #     fn stream(&self, prompt: &str) -> impl Stream<Item = Result<String, std::io::Error>> + use<> {
    /// #         futures::stream::iter(["<think>so</think>", "yes"].map(|token| Ok(token.to_owned())))
    /// #     }
    /// # }
    /// struct Oracle { model: Model }
    ///
    /// #[workflow]
    /// impl Oracle {
    ///     #[step]
    ///     async fn answer(&self, question: &Question, display: &Display) -> Result<Answer, StepError> {
    ///         let streamed = display.stream_text(self.model.stream(&question.text)).await?;
    ///         Ok(Answer { text: streamed.text })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), RunError> {
    /// let answer = Oracle { model: Model }.run(Question { text: "is it?".into() }).await?;
    /// assert_eq!(answer.text, "yes");
    /// # Ok(())
    /// # }
    /// ```
    fn stream_text<S>(&self, stream: S) -> impl Future<Output = <S::Item as TextPiece>::Streamed> + Send
    where
        S: Stream<Item: TextPiece + Send> + Send;
}

impl ShowText for Display {
    fn chunk(&self, text: impl Into<String>) {
        self.show(Chunk { text: text.into() });
    }

    fn thought(&self, text: impl Into<String>) {
        self.show(Thought { text: text.into() });
    }

    async fn stream_text<S>(&self, stream: S) -> <S::Item as TextPiece>::Streamed
    where
        S: Stream<Item: TextPiece + Send> + Send,
    {
        let mut stream = pin!(stream);
        let mut streaming = Streaming::default();
        loop {
            // Not `while let`, which would hold the item over the other await: then the future were not `Send`.
            let Some(piece) = stream.next().await else { break };
            if let Err(error) = piece.piece().map(|text| streaming.take(self, text.as_ref())) {
                return S::Item::streamed(Err(error));
            }
            tokio::task::coop::consume_budget().await;
        }
        S::Item::streamed(Ok(streaming.end(self)))
    }
}

/// A stream of text in progress.
#[derive(Default)]
struct Streaming {
    splitter: Splitter,
    streamed: StreamedText,
    /// Whether the next piece of a thought belongs to the latest thought.
    is_thinking: bool,
}

impl Streaming {
    fn take(&mut self, display: &Display, piece: &str) {
        let Self { splitter, streamed, is_thinking } = self;
        splitter.push(piece, |part| add(streamed, is_thinking, display, part));
    }

    fn end(mut self, display: &Display) -> StreamedText {
        let rest = self.splitter.end();
        if let Some(part) = rest {
            add(&mut self.streamed, &mut self.is_thinking, display, part);
        }
        self.streamed
    }
}

fn add(streamed: &mut StreamedText, is_thinking: &mut bool, display: &Display, part: Part) {
    match part {
        Part::Text(text) => {
            streamed.text.push_str(&text);
            display.chunk(text);
        }
        Part::Thought(text) => {
            if !std::mem::replace(is_thinking, true) {
                streamed.thoughts.push(String::new());
            }
            if let Some(thought) = streamed.thoughts.last_mut() {
                thought.push_str(&text);
            }
            display.thought(text);
        }
        Part::ThoughtEnded => *is_thinking = false,
    }
}
