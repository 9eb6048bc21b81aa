//! A child that goes on after a restart without having been asked for, and its parent, which goes on too.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, select};
use tokio::runtime::Handle;

use super::ParentRun;
use crate::run::{Dropped, RunShared};

/// The run is among its parent's children again: it ends with its parent, and the parent learns how it ended. It must be
/// called on a runtime.
pub(crate) fn reunite(
    parent: &Arc<RunShared>,
    names: &ParentRun,
    run: &Arc<RunShared>,
    unwanted: Arc<Dropped>,
    awaited: bool,
) {
    let child = names.child(run.id.clone(), Arc::clone(&run.table.name), awaited);
    if parent.family().has(&run.id) {
        return;
    }
    let Some(place) = parent.family().join(parent, child, run, &unwanted) else { return };
    let (parent, run, why) = (Arc::downgrade(parent), Arc::clone(run), names.why_unwanted(awaited));
    let watched = async move {
        let told = poll_fn(|cx| if unwanted.is_told(cx) { ().into() } else { std::task::Poll::Pending });
        if let Either::Left(_) = select(pin!(told), pin!(run.ended())).await {
            run.cancel_note.leave(&why);
            run.ended().await;
        }
        if let Some(parent) = parent.upgrade() {
            parent.family().left(&parent, place, run.status());
        }
    };
    Handle::current().spawn(watched);
}
