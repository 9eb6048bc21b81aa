//! A child that goes on after a restart without having been asked for, and its parent, which goes on too.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tokio::runtime::Handle;

use super::ParentRun;
use crate::display::{Display, Forward};
use crate::run::{Dropped, RunShared};

/// How a child comes back to its parent.
pub(crate) struct Reunion<'a> {
    /// Who the parent is, as the child's journal says.
    pub(crate) names: &'a ParentRun,
    pub(crate) awaited: bool,
    /// Tells it that nobody wants it any more.
    pub(crate) unwanted: Arc<Dropped>,
    /// Where its parent shows what it shows.
    pub(crate) display: Display,
}

impl<'a> Reunion<'a> {
    /// Without an execution that asks for the child: it may have ended before.
    pub(crate) fn unasked(parent: &RunShared, names: &'a ParentRun, awaited: bool) -> Self {
        let ParentRun { step, execution, attempt, .. } = names;
        let display = parent.display().display(Arc::clone(step), *execution, *attempt);
        Self { names, awaited, unwanted: Arc::default(), display }
    }

    /// The run is among its parent's children again: it ends with its parent, which shows what it shows and learns how it
    /// ended. One that is there already is the execution's that asks for it now. It must be called on a runtime.
    pub(crate) fn reunite(self, parent: &Arc<RunShared>, run: &Arc<RunShared>) {
        let Self { names, awaited, unwanted, display } = self;
        let child = names.child(run.id.clone(), Arc::clone(&run.table.name), awaited);
        let family = parent.family();
        let joins = !family.has(&run.id);
        let place = if joins { family.join(parent, child.clone(), run, &unwanted) } else { None };
        if joins && place.is_none() {
            return;
        }
        run.display().forward(Forward::new(display, child));
        let (parent, run, why) = (Arc::downgrade(parent), Arc::clone(run), names.why_unwanted(awaited));
        let watched = async move {
            let told = poll_fn(|cx| if unwanted.is_told(cx) { ().into() } else { std::task::Poll::Pending });
            if let Either::Left(_) = select(pin!(told), pin!(run.ended())).await {
                // Where its parent is left, so is it.
                if !run.is_to_detach() {
                    run.note_cancel(&why);
                }
                run.ended().await;
            }
            if let Some((parent, place)) = parent.upgrade().zip(place) {
                parent.family().left(&parent, place, run.status());
            }
        };
        Handle::current().spawn(watched);
    }
}
