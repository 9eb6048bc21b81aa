//! Text that is shown while it comes in: the two display events for it, and the helper that forwards a stream of
//! tokens. Where a thought begins and ends is decided in `splitter`.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use serde::{Deserialize, Serialize};

use super::Display;
use super::splitter::{Part, Splitter};
use crate::event::NotStop;
use crate::{DisplayEvent, Event, Roles};

/// A piece of a text that a step is producing: viewers append it to those of the same execution and attempt.
///
/// ```
/// use futures::StreamExt;
/// use workflow_core::{Chunk, DisplayItem, RunHandle, Workflow};
///
/// async fn watch<W: Workflow>(run: &RunHandle<W>) -> String {
///     let chunk = async |item: DisplayItem| Some(item.event::<Chunk>()?.text.clone());
///     run.display().filter_map(chunk).collect().await
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The piece, as it came.
    pub text: String,
}

/// A piece of what a model thinks before it answers: shown to people, and no part of the answer.
///
/// ```
/// use workflow_core::{DisplayItem, Thought};
///
/// fn is_thinking(item: &DisplayItem) -> bool {
///     item.event::<Thought>().is_some()
/// }
/// # assert!(!is_thinking(&DisplayItem::Missed { count: 1 }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thought {
    /// The piece, as it came.
    pub text: String,
}

macro_rules! display_event {
    ($type:ty, $name:literal) => {
        impl Event for $type {
            const NAME: &'static str = $name;
            const ROLES: Roles = Roles::NONE.display();
            type Stop = NotStop;
        }

        impl DisplayEvent for $type {}
    };
}

// Not the types' own names: those are free for events of a workflow, and wire names are unique (S1).
display_event!(Chunk, "workflow.chunk");
display_event!(Thought, "workflow.thought");

/// What a stream of text added up to: [`Display::stream_text`] returns it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
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
    /// What stood between each `<think>` and its `</think>`, in order; one that holds nothing is left out.
    pub thoughts: Vec<String>,
}

/// What a stream of text may yield: `String`, `&str`, `Cow<str>`, `Box<str>`, `Arc<str>`, or `Result<T, E>` where `T`
/// is anything that can be read as text. [`Display::stream_text`] returns a [`StreamedText`] for the first ones, and
/// `Result<StreamedText, E>` for the last.
///
/// It cannot be implemented elsewhere: map a stream of anything else to one of these.
///
/// ```
/// use futures::{Stream, StreamExt};
/// use workflow_core::{Display, StreamedText};
///
/// struct Delta { content: String }
///
/// async fn forward(display: &Display, deltas: impl Stream<Item = Delta>) -> StreamedText {
///     display.stream_text(deltas.map(|delta| delta.content)).await
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a piece of text",
    label = "not text",
    note = "map the stream to `String`, `&str`, `Cow<str>`, `Box<str>`, `Arc<str>`, or `Result<T, E>` with `T: AsRef<str>`"
)]
pub trait TextPiece: sealed::Sealed {
    /// What comes of a whole stream of these.
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

impl Display {
    /// Shows a piece of text at once: `show(Chunk { text })`.
    ///
    /// ```
    /// fn greet(display: &workflow_core::Display) {
    ///     display.chunk("Hello, ");
    ///     display.chunk("Ada!");
    /// }
    /// # greet(&workflow_core::Display::detached().0);
    /// ```
    pub fn chunk(&self, text: impl Into<String>) {
        self.show(Chunk { text: text.into() });
    }

    /// Shows a piece of a thought at once: `show(Thought { text })`.
    ///
    /// ```
    /// fn think(display: &workflow_core::Display) {
    ///     display.thought("Who is it that I greet?");
    /// }
    /// # think(&workflow_core::Display::detached().0);
    /// ```
    pub fn thought(&self, text: impl Into<String>) {
        self.show(Thought { text: text.into() });
    }

    /// Forwards a stream of text, usually a model's tokens, and returns the whole.
    ///
    /// Each piece is shown as a [`Chunk`] when it comes. What stands between `<think>` and `</think>` is shown as
    /// [`Thought`] instead, also where the tags are cut anywhere over several pieces; without a `</think>` it goes on
    /// to the end. A closing tag outside of a thought, and an opening one inside, are text like any other. No more is
    /// held back than what may still become a tag: seven bytes at most.
    ///
    /// The step waits for the end of the stream. A stream that always has a next piece leaves turns to others.
    /// Dropping the future drops the stream. The result grows with the stream: bound a stream that does not end.
    ///
    /// # Errors
    /// The first error of the stream, if it yields `Result`s. What was shown by then stays shown until the attempt
    /// fails, and is then taken back like anything else that the attempt showed (S25).
    ///
    /// ```
    /// use futures::Stream;
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
    pub async fn stream_text<S>(&self, stream: S) -> <S::Item as TextPiece>::Streamed
    where
        S: Stream<Item: TextPiece>,
    {
        let mut stream = pin!(stream);
        let mut streaming = Streaming::default();
        while let Some(piece) = stream.next().await {
            match piece.piece() {
                Ok(text) => streaming.take(self, text.as_ref()),
                Err(error) => return S::Item::streamed(Err(error)),
            }
            tokio::task::coop::consume_budget().await;
        }
        S::Item::streamed(Ok(streaming.end(self)))
    }
}

/// A stream of text that is being forwarded.
#[derive(Default)]
struct Streaming {
    splitter: Splitter,
    streamed: StreamedText,
    /// Whether what is thought next belongs to the latest thought.
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
