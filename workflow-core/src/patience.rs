//! How long a call may wait for a store: until the engine gives up on it.

use std::future::Future;
use std::pin::pin;

use futures_util::future::{Either, select};
use tokio_util::sync::CancellationToken;

use crate::store::StoreError;

/// How long an engine waits for its stores: until it gives up. Clones end at the same moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct StorePatience(CancellationToken);

impl StorePatience {
    /// Every call that waits gets an error from now on.
    pub(crate) fn end(&self) {
        self.0.cancel();
    }

    /// Whether the engine has given up.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits for a future that depends on a store, until the engine gives up. An answer that is ready counts.
    pub(crate) async fn wait<T>(&self, waits: impl Future<Output = T>) -> Result<T, StoreError> {
        match select(pin!(waits), pin!(self.0.cancelled())).await {
            Either::Left((answer, _)) => Ok(answer),
            Either::Right(_) => Err(StoreError::ShutDown),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_wait_for_a_store_ends_when_the_engine_gives_up() {
        let patience = StorePatience::default();
        let mut waits = pin!(patience.wait(pending::<()>()));
        assert!(waits.as_mut().now_or_never().is_none());
        patience.end();
        assert!(matches!(waits.now_or_never(), Some(Err(StoreError::ShutDown))));
        assert!(
            matches!(patience.wait(ready(1)).now_or_never(), Some(Ok(1))),
            "an answer that is ready counts"
        );
    }
}
