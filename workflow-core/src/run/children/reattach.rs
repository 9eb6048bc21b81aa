//! Re-attaching a resumed child to its resumed parent, if no execution has asked for the child.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tokio::runtime::Handle;

use crate::display::{Display, Forward};
use crate::id::ParentRun;
use crate::run::{DropSignal, RunShared};

/// The facts by which a child is re-attached to its parent.
pub(crate) struct Reattach<'a> {
    /// The parent, as the child's journal names it.
    pub(crate) names: &'a ParentRun,
    pub(crate) awaited: bool,
    /// Set when the child is no longer awaited, or its parent is cancelled.
    pub(crate) drop_signal: Arc<DropSignal>,
    /// How often the execution had begun again when the attempt began that asked for the child.
    pub(crate) asked_in: u32,
    /// The parent's display, which also shows the child's items.
    pub(crate) display: Display,
}

impl<'a> Reattach<'a> {
    /// For a child without an asking execution, which may have ended before.
    pub(crate) fn without_request(parent: &RunShared, names: &'a ParentRun, awaited: bool) -> Self {
        let ParentRun { step, execution, attempt, .. } = names;
        let display = parent.display().display(Arc::clone(step), *execution, *attempt);
        Self { names, awaited, drop_signal: Arc::default(), asked_in: parent.asked_in(*execution), display }
    }

    /// Adds the run to its parent's children: the child ends with its parent, and the parent shows the child's items
    /// and learns its status. A child that has joined already is not added again. The caller needs a tokio runtime.
    pub(crate) fn attach(self, parent: &Arc<RunShared>, run: &Arc<RunShared>) {
        let Self { names, awaited, drop_signal, asked_in, display } = self;
        let child = names.child(run.id.clone(), Arc::clone(&run.table.name), awaited);
        let registry = parent.child_registry();
        let joins = !registry.has(&run.id);
        let by = (&drop_signal, asked_in);
        let index = if joins { registry.join(parent, child.clone(), run, by) } else { None };
        if joins && index.is_none() {
            return;
        }
        run.signals.reattach(Arc::downgrade(parent));
        run.display().forward(Forward::new(display, child));
        run.view_above(parent.signals.is_viewed());
        let (parent, run, why) = (Arc::downgrade(parent), Arc::clone(run), names.cancel_reason(awaited));
        let watched = async move {
            let told =
                poll_fn(|cx| if drop_signal.is_set(cx) { ().into() } else { std::task::Poll::Pending });
            if let Either::Left(_) = select(pin!(told), pin!(run.ended())).await {
                // A detached child is not cancelled.
                if !run.is_to_detach() {
                    run.note_cancel(&why);
                }
                run.ended().await;
            }
            if let Some((parent, index)) = parent.upgrade().zip(index) {
                parent.child_registry().left(&parent, index, (&run, run.status()));
            }
        };
        Handle::current().spawn(watched);
    }
}
