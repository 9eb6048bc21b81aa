//! Giving back memory that a run needs only while it runs. There may be very many that wait.

use std::collections::VecDeque;

use super::drive::Run;

/// Up to how many events in its log a run gives back what it may need again soon. What one that waits over and over has to
/// allocate anew each time is bounded by that, and of one with a long log the rest is little.
pub(super) const SHORT: u64 = 16;

impl Run {
    /// The run waits.
    pub(super) fn give_back(&mut self) {
        self.shared.mailbox.shrink();
        if self.scheduler.last_seq().0 > SHORT {
            return;
        }
        self.in_flight.shrink();
        shrink(&mut self.arrived);
        shrink(&mut self.receiving);
        shrink(&mut self.held);
        self.scheduler.shrink();
    }
}

fn shrink<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() {
        *queue = VecDeque::new();
    }
}
