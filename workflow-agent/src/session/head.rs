//! The head of a session: the run that started last, and the last exchange. Every change of a session is one update of its
//! head, so an exchange that the head does not lead to is no part of the session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow_core::errors::ContextError;
use workflow_core::prelude::*;
use workflow_core::{RunId, ThreadContext};

use super::{SessionError, exchanges};
use crate::agent::SessionPlace;
use crate::failures;

/// The numbers of runs end before this one, so that all keys have one length.
pub(super) const NUMBERS: u64 = 1_000_000_000_000 - 1;

/// The head of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredHead")]
pub(super) struct Head {
    /// Distinguishes sessions of one name in different stores.
    pub(super) nonce: String,
    /// The number of the run that started last.
    pub(super) started: u64,
    /// The number of the last exchange; 0 without one.
    pub(super) last: u64,
    /// The exchanges that there are.
    pub(super) count: u64,
    /// The number of the last exchange that begins with a summary.
    pub(super) summary: u64,
    /// The entry of the last exchange; `None` if that was copied, or another one was taken back since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) entered: Option<Entered>,
    /// The runs up to this number add nothing any more.
    pub(super) closed: u64,
    /// Set while the session is copied from another one: which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copies: Option<Arc<str>>,
}

/// The entry of the last exchange of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entered {
    /// The execution that entered it. A later one of the run may replace it.
    pub(super) execution: u64,
    /// The number of the exchange before.
    pub(super) last: u64,
    /// The number of the last summary before.
    pub(super) summary: u64,
    /// Whether the exchange stays however its run ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) left: bool,
}

/// A head as it was stored, before its numbers are compared.
#[derive(Deserialize)]
struct StoredHead {
    nonce: String,
    started: u64,
    last: u64,
    count: u64,
    #[serde(default)]
    summary: u64,
    #[serde(default)]
    entered: Option<Entered>,
    #[serde(default)]
    closed: u64,
    #[serde(default)]
    copies: Option<Arc<str>>,
}

impl TryFrom<StoredHead> for Head {
    type Error = &'static str;

    fn try_from(stored: StoredHead) -> Result<Self, Self::Error> {
        let StoredHead { nonce, started, last, count, summary, entered, closed, copies } = stored;
        let is_before = |entered: &Entered| entered.last < last && entered.summary <= entered.last;
        if started >= NUMBERS
            || closed >= NUMBERS
            || last > started
            || count >= NUMBERS
            || summary > last
            || !entered.as_ref().is_none_or(is_before)
        {
            return Err("the numbers of the session contradict each other");
        }
        Ok(Self { nonce, started, last, count, summary, entered, closed, copies })
    }
}

impl Head {
    /// The head that there is, or a new one.
    pub(super) fn of(there: Option<Self>) -> Self {
        let mut head = there.unwrap_or_default();
        if head.nonce.is_empty() {
            head.nonce = RunId::generate().to_string();
        }
        head
    }

    /// The head once a run has started: the next one, or one of those before.
    fn started(self, place: &SessionPlace) -> Self {
        let SessionPlace { number, takes_back, .. } = *place;
        let is_next = self.copies.is_none() && number == self.started + 1 && number < NUMBERS;
        if !is_next {
            return self;
        }
        let head = if takes_back { self.without(number - 1) } else { self };
        Self { started: number, ..head }
    }

    /// Whether the run of this number may add its exchange, or has added it.
    fn accepts(&self, number: u64) -> bool {
        self.copies.is_none() && self.started <= number && self.last <= number && self.closed < number
    }

    /// The entry of an exchange, if there is anything to enter.
    pub(super) fn entry(&self, number: u64, execution: u64) -> Option<Entered> {
        if !self.accepts(number) {
            return None;
        }
        if self.last < number {
            return Some(Entered { execution, last: self.last, summary: self.summary, left: false });
        }
        let earlier = self.entered.filter(|entered| entered.execution < execution)?;
        Some(Entered { execution, left: false, ..earlier })
    }

    /// The head with this exchange as its last one, unless it takes none.
    pub(super) fn with(self, number: u64, (execution, left): (u64, bool), is_summary: bool) -> Self {
        let Some(entered) = self.entry(number, execution) else { return self };
        Self {
            started: self.started.max(number),
            last: number,
            count: self.count + u64::from(self.last < number),
            summary: if is_summary { number } else { entered.summary },
            entered: Some(Entered { left, ..entered }),
            ..self
        }
    }

    /// The head without its last exchange, whose run has ended otherwise. What such a run left stays.
    pub(super) fn before_last(self) -> Self {
        if self.entered.as_ref().is_some_and(|entered| entered.left) { self } else { self.without_last() }
    }

    /// The head without its last exchange, whose run may still end otherwise.
    pub(super) fn without_last(self) -> Self {
        match self.entered {
            Some(Entered { last, summary, .. }) => {
                Self { last, summary, count: self.count.saturating_sub(1), entered: None, ..self }
            }
            None => self,
        }
    }

    /// The head without the exchange of this run, which adds none any more. Once a later run has started, which may have
    /// seen the exchange, nothing changes.
    fn without(self, number: u64) -> Self {
        if self.started > number || self.copies.is_some() {
            return self;
        }
        let closed = self.closed.max(number);
        let head = if self.last == number { self.before_last() } else { self };
        Self { closed, ..head }
    }
}

pub(super) fn key(session: &str) -> String {
    format!("agent/session/{session}/head")
}

/// The head of a session; an empty one of a session that there is not yet.
pub(super) async fn read(thread: &ThreadContext, session: &str) -> Result<Head, ContextError> {
    Ok(thread.get::<Head>(&key(session)).await?.unwrap_or_default())
}

/// The head of a session that is not being copied.
pub(super) async fn read_complete(thread: &ThreadContext, session: &str) -> Result<Head, SessionError> {
    match read(thread, session).await? {
        Head { copies: Some(_), .. } => Err(SessionError::Busy { session: session.into() }),
        head => Ok(head),
    }
}

/// Notes that the next run has started. Any other number changes nothing, and the head tells.
pub(super) async fn start(thread: &ThreadContext, place: &SessionPlace) -> Result<Head, ContextError> {
    thread.update::<Head>(&key(&place.id), |head| Head::of(head).started(place)).await
}

/// Whether the exchange of a run may enter its session, or has done so in an earlier life of the run. A run that was
/// redriven after a later one started adds nothing.
pub(crate) async fn accepts(thread: &ThreadContext, place: &SessionPlace) -> Result<bool, StepError> {
    let head = read(thread, &place.id).await.map_err(failures::of_context)?;
    Ok(head.accepts(place.number))
}

/// Takes back the exchange of a run that ended otherwise after it had entered. The run adds none any more.
pub(crate) async fn take_back(thread: &ThreadContext, place: &SessionPlace) -> Result<(), ContextError> {
    let without = |head: Option<Head>| Head::of(head).without(place.number);
    let head = thread.update::<Head>(&key(&place.id), without).await?;
    // It cannot enter any more, so nobody needs what was written.
    if head.last < place.number && head.closed >= place.number {
        thread.remove(&exchanges::key(&place.id, place.number)).await?;
    }
    Ok(())
}
