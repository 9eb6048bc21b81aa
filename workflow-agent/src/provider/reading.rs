//! Reading of answers: streams with a bound on silence, whole replies and error bodies with bounds on size and time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::failure::{Failure, Subject};
use super::frames::{Frames, Framing, REPLY};
use super::wire::{Advance, Decoder};
use crate::model::{ModelEvent, ModelReply, ModelStream};

/// The longest error body in bytes.
const ERROR_BODY: usize = 64 * 1024;

/// How many times longer than a silence a provider may send signs of life alone, or work on a whole reply.
pub(super) const PATIENCE: u32 = 10;

/// A streamed reply, from bytes to events.
pub(super) struct Reader {
    frames: Frames,
    decoder: Box<dyn Decoder>,
    /// Whether the last event of the reply has come.
    is_done: bool,
}

impl Reader {
    pub(super) fn new(framing: Framing, decoder: Box<dyn Decoder>) -> Self {
        Self { frames: Frames::new(framing), decoder, is_done: false }
    }

    /// Reads the next bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<Advance, Failure> {
        self.frames.push(chunk)?;
        let mut advance = Advance::Nothing;
        while let Some(data) = self.frames.next()? {
            advance = advance.max(self.decoder.event(&data)?);
            if advance == Advance::Done {
                self.is_done = true;
                return Ok(advance);
            }
        }
        Ok(if self.frames.is_within_frame() { advance.max(Advance::Alive) } else { advance })
    }

    pub(super) fn shown(&mut self) -> Vec<ModelEvent> {
        self.decoder.shown()
    }

    /// The reply after the end of its body, or after its last event.
    pub(super) fn finish(&mut self) -> Result<ModelReply, Failure> {
        if let Some(data) = self.frames.rest().filter(|_| !self.is_done) {
            self.decoder.event(&data)?;
        }
        self.decoder.finish()
    }
}

/// A stream that is being read.
struct Live {
    response: Response,
    reader: Reader,
    subject: Arc<Subject>,
    silence: Duration,
    /// Until then something must come.
    alive_by: Instant,
    /// Until then the reply must have more than now.
    moved_by: Instant,
    shown: VecDeque<ModelEvent>,
    /// The end of the stream, after everything in `shown`.
    end: Option<Result<ModelReply, Failure>>,
}

/// The events of a streamed reply.
pub(super) fn events(
    response: Response,
    reader: Reader,
    subject: Arc<Subject>,
    silence: Duration,
) -> ModelStream {
    let now = Instant::now();
    let live = Live {
        response,
        reader,
        subject,
        silence,
        alive_by: now + silence,
        moved_by: now + silence * PATIENCE,
        shown: VecDeque::new(),
        end: None,
    };
    stream::unfold(Some(live), |live| async move {
        let mut live = live?;
        loop {
            if let Some(event) = live.shown.pop_front() {
                return Some((Ok(event), Some(live)));
            }
            match live.end.take() {
                Some(Ok(reply)) => return Some((Ok(ModelEvent::Finished(reply)), None)),
                Some(Err(failure)) => return Some((Err(live.subject.error(failure)), None)),
                None => live.end = live.step().await,
            }
        }
    })
    .boxed()
}

impl Live {
    /// Reads what comes next. Returns the end of the stream.
    async fn step(&mut self) -> Option<Result<ModelReply, Failure>> {
        let chunk = match timeout_at(self.alive_by.min(self.moved_by), self.response.chunk()).await {
            Err(_) => return Some(Err(silent(self.silence))),
            Ok(Err(error)) => {
                let failure = Failure::transient("the stream broke off");
                return Some(Err(failure.caused_by(error.without_url())));
            }
            Ok(Ok(None)) => {
                let end = self.reader.finish();
                self.shown.extend(self.reader.shown());
                return Some(end);
            }
            Ok(Ok(Some(chunk))) => chunk,
        };
        let advance = self.reader.push(&chunk);
        self.shown.extend(self.reader.shown());
        let advance = match advance {
            Err(failure) => return Some(Err(failure)),
            Ok(advance) => advance,
        };
        let now = Instant::now();
        if advance >= Advance::Alive {
            self.alive_by = now + self.silence;
        }
        if advance >= Advance::Moved {
            self.moved_by = now + self.silence * PATIENCE;
        }
        if advance < Advance::Done {
            return None;
        }
        // The end of the body, if it is here already, frees the connection for the next call.
        drop(self.response.chunk().now_or_never());
        Some(self.reader.finish())
    }
}

pub(super) fn silent(silence: Duration) -> Failure {
    Failure::transient(format!("nothing came for {} s", silence.as_secs_f64()))
}

/// The body of a whole reply.
pub(super) async fn whole(response: &mut Response, until: Instant) -> Result<Vec<u8>, Failure> {
    match body(response, REPLY, until).await {
        (body, None) => Ok(body),
        (_, Some(failure)) => Err(failure),
    }
}

/// The body of an error, as far as it comes, and whether it was cut.
pub(super) async fn error_body(response: &mut Response, until: Instant) -> (Vec<u8>, bool) {
    let (body, failure) = body(response, ERROR_BODY, until).await;
    (body, failure.is_some())
}

async fn body(response: &mut Response, most: usize, until: Instant) -> (Vec<u8>, Option<Failure>) {
    let mut body = Vec::new();
    loop {
        match timeout_at(until, response.chunk()).await {
            Err(_) => return (body, Some(Failure::transient("the reply did not come in time"))),
            Ok(Err(error)) => {
                let failure = Failure::transient("the reply broke off").caused_by(error.without_url());
                return (body, Some(failure));
            }
            Ok(Ok(None)) => return (body, None),
            Ok(Ok(Some(chunk))) => {
                let room = most - body.len();
                body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if chunk.len() > room {
                    let failure = Failure::unusable(format!("the reply has more than {most} bytes"));
                    return (body, Some(failure));
                }
            }
        }
    }
}
