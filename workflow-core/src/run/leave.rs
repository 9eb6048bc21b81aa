//! Leaving a run where its journal ends, for whoever goes on with it: it takes in nothing more and begins nothing more, its
//! journal gets what there is, and then it stops without an end.

use std::sync::atomic::Ordering;

use super::RunShared;

impl RunShared {
    /// Signals the run to stop and leave its journal open. It is never taken back.
    pub(crate) fn note_leave(&self) {
        self.signals.detach();
    }

    /// Whether it is to stop and leave its journal open.
    pub(crate) fn is_to_detach(&self) -> bool {
        // Said of all runs of the engine at once: none sees what becomes of another before it is left itself.
        self.signals.is_to_detach() || self.common.hands_over.load(Ordering::SeqCst)
    }
}
