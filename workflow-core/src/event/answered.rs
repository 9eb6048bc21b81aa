//! A reply in the log, together with the request it answers.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{AnyEvent, Erased, EventKind, Request, request_of};
use crate::panics::{Contained, release};

/// The log entry of a reply.
#[derive(Debug)]
pub(crate) struct Answered<R: Request> {
    /// Both are contained separately, since the drop of either may panic.
    pub(crate) request: Contained<Arc<R>>,
    pub(crate) reply: Contained<R::Reply>,
}

impl<R: Request> Answered<R> {
    pub(crate) fn new(request: Arc<R>, reply: Contained<R::Reply>) -> Self {
        Self { request: Contained::new(request), reply }
    }

    pub(crate) fn decode(data: &str, request: Option<&AnyEvent>) -> Result<AnyEvent, serde_json::Error> {
        let (request, reply) = (request_of(request)?, serde_json::from_str(data)?);
        Ok(AnyEvent::from_erased(Arc::new(Self::new(request, Contained::new(reply)))))
    }
}

impl<R: Request> Erased for Answered<R> {
    fn kind(&self) -> EventKind<'_> {
        EventKind::Rust(&R::REPLY_TYPE)
    }

    fn release(self: Arc<Self>) {
        release(self);
    }

    fn request(&self) -> Option<AnyEvent> {
        Some(AnyEvent::from_erased(Arc::clone(&self.request) as _))
    }
}

impl<R: Request> Serialize for Answered<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.reply.serialize(serializer)
    }
}
