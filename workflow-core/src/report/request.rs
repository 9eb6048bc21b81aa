//! Open requests of a run, with everything that a front end needs to show them and to reply.

use std::fmt;
use std::marker::PhantomData;
use std::time::SystemTime;

use serde::ser::{Error as _, SerializeStruct};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::event::{AnyEvent, EventKind, Request};
use crate::id::Seq;
use crate::json::{self, rfc3339::Rfc3339};

/// A request that waits for its reply.
///
/// An open request serialises with everything that a generic page needs: its sequence number and name, its
/// data, the JSON schema of the reply (with the feature `schemars`, if the reply's type has one), and its times. The
/// page sends the entered reply with [`AnyRun::reply_json`](crate::AnyRun::reply_json).
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct RefundAsked { cents: u64 }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Decided { granted: bool }
/// # struct Refunds;
/// # #[workflow]
/// # impl Refunds {
/// #     #[step]
/// #     async fn ask(&self, refund: &RefundAsked) -> ApproveRefund { ApproveRefund { cents: refund.cents } }
/// #     #[step]
/// #     async fn decide(&self, approval: &Reply<ApproveRefund>) -> Decided {
/// #         Decided { granted: approval.granted }
/// #     }
/// # }
///
/// #[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
/// struct Approval { granted: bool }
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// #[event(request, reply = Approval)]
/// struct ApproveRefund { cents: u64 }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Refunds).build()?;
/// let run = engine.start::<Refunds>(RefundAsked { cents: 4_200 }).await?;
/// run.settled().await;
/// let request = run.requests().await?.remove(0);
/// assert_eq!(request.name(), "ApproveRefund");
/// assert_eq!(request.data()?, serde_json::json!({"cents": 4200}));
/// assert!(request.asked_at() <= std::time::SystemTime::now() && request.expires_at().is_none());
/// assert_eq!(request.reply_schema().unwrap()["required"], serde_json::json!(["granted"]));
///
/// run.reply_json(request.seq(), serde_json::json!({"granted": true})).await?;
/// assert_eq!(run.outcome().await?, Decided { granted: true });
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct OpenRequest {
    pub(crate) seq: Seq,
    pub(crate) event: AnyEvent,
    pub(crate) asked_at: SystemTime,
    pub(crate) expires_at: Option<SystemTime>,
}

impl OpenRequest {
    /// The id for a typed reply, if the request is an `R`.
    pub fn id<R: Request>(&self) -> Option<RequestId<R>> {
        self.event.downcast_ref::<R>().map(|_| RequestId::new(self.seq))
    }

    /// The request, if it is an `R`.
    pub fn downcast_ref<R: Request>(&self) -> Option<&R> {
        self.event.downcast_ref()
    }

    /// The request, of any type.
    pub fn event(&self) -> &AnyEvent {
        &self.event
    }

    /// The request's sequence number in the log.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The wire name of the request's type.
    pub fn name(&self) -> &str {
        self.event.name()
    }

    /// The request as JSON.
    ///
    /// # Errors
    /// The error of the type's own `Serialize`.
    pub fn data(&self) -> Result<Value, serde_json::Error> {
        self.event.to_json()
    }

    /// The JSON schema of the reply.
    ///
    /// `None` unless the reply's type implements `schemars::JsonSchema` (version 1) and the request type
    /// derives `Event`. Needs the feature `schemars`.
    #[cfg(feature = "schemars")]
    pub fn reply_schema(&self) -> Option<Value> {
        self.schema()
    }

    /// The schema; `None` without the feature `schemars`.
    fn schema(&self) -> Option<Value> {
        match self.event.kind() {
            EventKind::Rust(_) => json::schema(self.event.reply_form()?.schema),
            EventKind::Json(known) => known.reply_schema.clone(),
        }
    }

    /// When a step made the request, by the engine's clock.
    pub fn asked_at(&self) -> SystemTime {
        self.asked_at
    }

    /// When the request expires; `None` unless it is [`Expiring`](crate::Expiring).
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.expires_at
    }
}

impl Serialize for OpenRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut request = serializer.serialize_struct("OpenRequest", 6)?;
        request.serialize_field("seq", &self.seq)?;
        request.serialize_field("name", self.name())?;
        request.serialize_field("data", &self.data().map_err(S::Error::custom)?)?;
        request.serialize_field("reply_schema", &self.schema())?;
        request.serialize_field("asked_at", &Rfc3339(self.asked_at))?;
        request.serialize_field("expires_at", &self.expires_at.map(Rfc3339))?;
        request.end()
    }
}

/// The id of an open request of type `R` in its run: the request's sequence number.
///
/// A program can store its [`seq`](Self::seq) and make the id again with [`new`](Self::new). The run checks
/// at the reply whether the request really is an `R`.
pub struct RequestId<R> {
    seq: Seq,
    request: PhantomData<fn() -> R>,
}

impl<R: Request> RequestId<R> {
    /// The id of the request with this sequence number.
    pub fn new(seq: Seq) -> Self {
        Self { seq, request: PhantomData }
    }

    /// The request's sequence number in the log.
    pub fn seq(&self) -> Seq {
        self.seq
    }
}

impl<R> Clone for RequestId<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for RequestId<R> {}

impl<R> fmt::Debug for RequestId<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({})", self.seq)
    }
}
