//! How sending into a run fails.

use std::sync::Arc;
use std::time::SystemTime;

use crate::error::{EventTooLarge, UnfitEvent, UnfitValue, at, chain, unfit_text};
use crate::event::Inadmissible;
use crate::id::{RunId, RunStatus, Seq};
use crate::store::StoreError;
use crate::text::{enumerated, first, quoted};

/// Why a run refused a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The run has ended, or cleans up before it ends. Nothing reaches it any more.
    #[error("run `{run}` has ended: {status}")]
    Ended {
        /// The run.
        run: RunId,
        /// The final status.
        status: RunStatus,
    },
    /// The run is open, and stopped here before its journal had the call: its store failed, another engine has the run, or
    /// the engine shut down. Who continues the run may not know of the call: [attach](crate::Engine::attach) to it there,
    /// and repeat the call, with the same [origin](crate::AnyRun::with_origin).
    #[error(
        "run `{run}` is open, and stopped here before its journal had this: {}; repeat it where the run continues",
        why_stopped(.source)
    )]
    Stopped {
        /// The run.
        run: RunId,
        /// Why it stopped.
        r#source: StoreError,
    },
    /// No step of the workflow takes the event.
    #[error("no step of the workflow takes `{event}`")]
    NotTaken {
        /// The event's wire name.
        event: Arc<str>,
    },
    /// The workflow has no external event of this name that a step takes, or that ends a run.
    #[error("{}", unknown_event("external event", event, fitting))]
    UnknownEvent {
        /// The name.
        event: Arc<str>,
        /// The names of the workflow's external events, sorted.
        fitting: Vec<Arc<str>>,
    },
    /// The engine has no store, and the run cannot be dropped now and continued later. See [`Pause::Now`](crate::Pause::Now).
    #[error(
        "run `{run}` has no store, so `Pause::Now` cannot drop its executions: use `Pause::AfterRunning`, or build the \
         engine with `.store(…)`"
    )]
    NoStore {
        /// The run.
        run: RunId,
    },
    /// The event or the reply is too large. The run took nothing.
    #[error(transparent)]
    TooLarge(EventTooLarge),
    /// The event or the reply has no JSON that could be read back, and the engine's store serialises; or the event came
    /// as JSON that does not fit its type. The run took nothing.
    #[error("{}", unfit_text(event, path, problem))]
    Unfit {
        /// The event's wire name; of a reply, that of its request and `.reply`.
        event: Arc<str>,
        /// Where in the event's JSON, as in `lines[3].price`; empty for the whole.
        path: String,
        /// The problem at that place.
        problem: UnfitValue,
    },
    /// The engine's store refuses the event or the reply, for example for its size. The run took nothing, and
    /// continues.
    #[error("the store of run `{run}` refuses `{event}`: {}", chain(.source))]
    Refused {
        /// The run.
        run: RunId,
        /// The event's wire name; of a reply, that of its request and `.reply`.
        event: Arc<str>,
        /// The store's error.
        r#source: StoreError,
    },
    /// No request is open at this sequence number: there was none, or its branch was dropped.
    #[error("no request is open at {request}: there never was one, or its branch is gone")]
    NotOpen {
        /// The sequence number.
        request: Seq,
    },
    /// The workflow has no request of this name, or of this Rust type.
    #[error("the workflow has no request `{asked}`: {}", known_events(fitting))]
    UnknownRequest {
        /// The name.
        asked: Arc<str>,
        /// The names of the workflow's requests, sorted.
        fitting: Vec<Arc<str>>,
    },
    /// The run has not made a request of this type so far.
    #[error("no request `{asked}` is open: the run has made none so far")]
    NotAsked {
        /// The request's wire name.
        asked: Arc<str>,
    },
    /// Several requests of this type are open.
    #[error("{count} requests `{asked}` are open: choose one of {} with `reply`", numbers(open, *count))]
    SeveralOpen {
        /// The requests' wire name.
        asked: Arc<str>,
        /// The sequence numbers of the oldest ones, oldest first; at most [`MOST_NAMED`](Self::MOST_NAMED).
        open: Vec<Seq>,
        /// How many are open.
        count: u64,
    },
    /// The request at this sequence number was answered before.
    #[error("the request at {request} was answered already")]
    Answered {
        /// The sequence number.
        request: Seq,
    },
    /// The request at this sequence number has expired.
    #[error("the request at {request} has expired")]
    Expired {
        /// The sequence number.
        request: Seq,
        /// The time at which the expiry entered the log. If no process drove the run when the request fell due, this is
        /// when one did again.
        at: SystemTime,
    },
    /// The message is no reply to the request at this sequence number.
    #[error("that is no reply to the `{asked}` at {request}: {}{problem}", at(.path))]
    UnfitReply {
        /// The sequence number.
        request: Seq,
        /// The request's wire name.
        asked: String,
        /// The place in the reply; empty or `.` for the whole.
        path: String,
        /// The problem at that place.
        problem: String,
    },
    /// The request at this sequence number is of another type.
    #[error("the request at {request} is a `{asked}`, and the reply is one to a `{answered}`")]
    WrongRequest {
        /// The sequence number.
        request: Seq,
        /// The request's wire name.
        asked: String,
        /// The wire name of the request that the reply is for.
        answered: &'static str,
    },
    /// The engine had [unloaded](crate::EngineBuilder::unload_waiting_after) the waiting run, and cannot read its
    /// journal now. The run took nothing and still waits. The call can be repeated.
    #[error("run `{run}` waits in its store, and cannot be read now: {}", chain(.source))]
    NotLoaded {
        /// The run.
        run: RunId,
        /// The store's error.
        r#source: StoreError,
    },
    /// A part of the origin is too long.
    #[error(
        "the author or the id of the origin has {bytes} bytes, and may have {limit}: shorten it, or send a hash of it"
    )]
    OriginTooLong {
        /// The bytes of the part.
        bytes: usize,
        /// The most: 256.
        limit: usize,
    },
}

/// Why a run stopped here. An error that says that a store is unavailable has the reason as its cause.
fn why_stopped(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable { source } => chain(&**source),
        error => chain(error),
    }
}

impl SendError {
    /// The most sequence numbers in [`SeveralOpen`](Self::SeveralOpen).
    pub const MOST_NAMED: usize = 16;

    pub(crate) fn several(asked: Arc<str>, open: impl ExactSizeIterator<Item = Seq>) -> Self {
        let count = open.len() as u64;
        Self::SeveralOpen { asked, open: open.take(Self::MOST_NAMED).collect(), count }
    }
}

impl From<Inadmissible> for SendError {
    fn from(inadmissible: Inadmissible) -> Self {
        match inadmissible {
            Inadmissible::TooLarge(error) => Self::TooLarge(error),
            Inadmissible::Unfit(UnfitEvent { event, path, problem }) => Self::Unfit { event, path, problem },
        }
    }
}

pub(super) fn unknown_event(kind: &str, event: &str, fitting: &[Arc<str>]) -> String {
    format!("the workflow takes no {kind} `{event}`: {}", known_events(fitting))
}

fn known_events(known: &[Arc<str>]) -> String {
    match &quoted(known)[..] {
        [] => "it has none".to_owned(),
        all => format!("it has {}", enumerated(all, "and")),
    }
}

fn numbers(open: &[Seq], count: u64) -> String {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    enumerated(&first(open, count), "and")
}
