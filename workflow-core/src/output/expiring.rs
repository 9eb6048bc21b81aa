//! `Expiring<R>`: a request that expires (S32).

use std::sync::Arc;

use super::timer::SetTimer;
use super::{Emitted, EmittedItem, One, StepOutput};
use crate::error::StepError;
use crate::event::{AnyEvent, ExpiredRequest, Expiring, Request};
use crate::spec::OutputSpec;

impl<R: Request> StepOutput for Expiring<R> {
    const SPEC: OutputSpec =
        OutputSpec::Expiring { request: R::TYPE, reply: R::REPLY_TYPE, expired: R::EXPIRED_TYPE };
    type Events = One<R>;

    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
        let request = Arc::new(self.request);
        let expired = AnyEvent::from_erased(Arc::new(ExpiredRequest::new(Arc::clone(&request))));
        let timer = SetTimer { when: self.when, event: expired };
        let request = AnyEvent::from_erased(request);
        emitted.put(EmittedItem::Expiring(Box::new((request, timer))));
        Ok(())
    }
}
