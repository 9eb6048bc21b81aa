//! The end of a request's time in the log, together with the request (S32).

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{AnyEvent, Erased, EventKind, Request, request_of};
use crate::panics::release;

/// The log entry that reports the expiry of a request.
#[derive(Debug)]
pub(crate) struct ExpiredRequest<R> {
    pub(crate) request: Arc<R>,
}

impl<R: Request> ExpiredRequest<R> {
    pub(crate) fn new(request: Arc<R>) -> Self {
        Self { request }
    }

    pub(crate) fn decode(_: &str, request: Option<&AnyEvent>) -> Result<AnyEvent, serde_json::Error> {
        Ok(AnyEvent::from_erased(Arc::new(Self::new(request_of(request)?))))
    }
}

impl<R: Request> Erased for ExpiredRequest<R> {
    fn kind(&self) -> EventKind<'_> {
        EventKind::Rust(&R::EXPIRED_TYPE)
    }

    fn release(self: Arc<Self>) {
        release(self);
    }

    fn request(&self) -> Option<AnyEvent> {
        Some(AnyEvent::from_erased(Arc::clone(&self.request) as _))
    }
}

/// Serialises the request, which is all that a reader needs.
impl<R: Request> Serialize for ExpiredRequest<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.request.serialize(serializer)
    }
}
