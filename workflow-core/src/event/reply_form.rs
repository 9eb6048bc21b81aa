//! Replies to a request whose type the caller does not know: reading them from JSON, and their JSON schema.
//! Front ends that show requests to people use it.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::{AnyEvent, Request};
use crate::error::UnfitJson;
use crate::event::Answered;
use crate::json::read_json;
use crate::panics::Contained;

/// How to read the replies to one type of request, with their schema. The derive makes it.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct ReplyForm {
    pub(crate) schema: Option<fn() -> Value>,
    pub(crate) read: fn(&AnyEvent, Value) -> Result<AnyEvent, UnfitJson>,
}

impl ReplyForm {
    /// The form of replies to `R`, with the schema from [`Schema`](super::Schema).
    pub const fn of<R: Request>(schema: Option<fn() -> Value>) -> Self {
        Self { schema, read: read::<R> }
    }
}

impl fmt::Debug for ReplyForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyForm").field("has_schema", &self.schema.is_some()).finish_non_exhaustive()
    }
}

/// Makes the log entry of a reply from its request and JSON.
fn read<R: Request>(asked: &AnyEvent, reply: Value) -> Result<AnyEvent, UnfitJson> {
    let reply = read_json(reply)?;
    let request = asked.downcast::<R>().ok_or_else(|| UnfitJson::whole("the request is of another type"))?;
    Ok(AnyEvent::from_erased(Arc::new(Answered::new(request, Contained::new(reply)))))
}
