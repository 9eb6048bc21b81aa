//! The fate of a request: whether the server may have received it. Transports write it, calls read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage};

/// The fate of one request. It travels with the request in its extensions, which are never sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Delivery(Arc<AtomicU8>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The server certainly did not receive it, or said that it has lost the session: it may be sent again.
    Unsent,
    /// The server may have received it.
    Sent,
    /// The server refused it, and would again.
    Denied,
}

impl Delivery {
    /// That of the request; one that nobody reads for other messages.
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Self {
        match message {
            JsonRpcMessage::Request(request) => {
                request.request.extensions().get::<Self>().cloned().unwrap_or_default()
            }
            _ => Self::default(),
        }
    }

    pub(super) fn set(&self, fate: Fate) {
        let number = match fate {
            Fate::Unsent => 0,
            Fate::Sent => 1,
            Fate::Denied => 2,
        };
        self.0.store(number, Ordering::SeqCst);
    }

    pub(super) fn fate(&self) -> Fate {
        match self.0.load(Ordering::SeqCst) {
            0 => Fate::Unsent,
            2 => Fate::Denied,
            _ => Fate::Sent,
        }
    }
}
