//! Detaching a run for another process: the run takes in and begins nothing more, its journal gets everything
//! that there is, and the task stops without an end.

use std::sync::atomic::Ordering;

use super::RunShared;

impl RunShared {
    /// Signals the run to detach. The signal is never withdrawn.
    pub(crate) fn signal_detach(&self) {
        self.signals.detach();
    }

    /// Whether the run is to detach.
    pub(crate) fn is_to_detach(&self) -> bool {
        // The flag is that of all runs of the engine, so no run sees another one detach before it must detach
        // itself.
        self.signals.is_to_detach() || self.common.shuts_down.load(Ordering::SeqCst)
    }
}
