//! Leaving a run where its journal ends, for whoever goes on with it: it takes in nothing more and begins nothing more, its
//! journal gets what there is, and then it stops without an end.

use std::sync::atomic::Ordering;

use super::RunShared;

impl RunShared {
    /// Leaves the run a note that it is to be left as its journal has it. It is never taken back.
    pub(crate) fn note_leave(&self) {
        self.leave_note.store(true, Ordering::Release);
        self.bell.wake();
    }

    /// Whether it is to be left.
    pub(crate) fn is_to_be_left(&self) -> bool {
        // Said of all runs of the engine at once: none sees what becomes of another before it is left itself.
        self.leave_note.load(Ordering::Acquire) || self.common.hands_over.load(Ordering::SeqCst)
    }
}
