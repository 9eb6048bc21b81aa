//! The news of requests for the viewers of a run (S64). A run without viewers notes nothing.
//!
//! ```text
//! first viewer ─▶ the open requests ──┐
//! requests that open or close ────────┴─▶ untold ── the store has it ─▶ display
//! ```
//!
//! The display knows the requests that it has told, so that the run may tell all again: after a reload, a rewind or a suspension, and
//! to a new display above.

use std::collections::VecDeque;

use super::commit::Committer;
use super::driver::{Driver, open_requests, why_not_open};
use super::journal::Journal;
use crate::display::{DisplayItem, RequestEnd};
use crate::id::Seq;
use crate::outcome::SendError;
use crate::report::OpenRequest;
use crate::scheduler::{End, RequestChange};
use crate::store::Position;

/// Items for viewers, each with the end of the journal that it waits for, in order.
pub(super) type Untold = VecDeque<(Position, DisplayItem)>;

impl Driver {
    /// Tells the viewers, if there are any, of requests that opened or closed.
    #[inline]
    pub(super) fn tell_requests(&mut self) {
        if self.committer.shared.signals.is_viewed() {
            self.committer.tell_requests();
        }
    }
}

impl Committer {
    /// Tells the viewers of requests that opened or closed, as far as the store has it.
    #[cold]
    #[inline(never)]
    fn tell_requests(&mut self) {
        // The journal is open: the rest is told where the run continues.
        if matches!(self.state.end(), Some(End::AppendFailed)) {
            return self.tell_written();
        }
        let is_new = self.shared.signals.take_new_viewer();
        let changes = self.state.scheduler.take_request_changes();
        let end = self.journal.as_deref().map_or(Position::default(), Journal::end);
        match changes {
            Some(changes) if !is_new => self.note_changes(changes, end),
            _ => self.note_all(end),
        }
        self.tell_written();
    }

    fn note_changes(&mut self, changes: Vec<RequestChange>, end: Position) {
        for change in changes {
            let item = match change {
                RequestChange::Opened(seq) => match self.open_request(seq) {
                    Some(request) => DisplayItem::Asked { request },
                    None => continue,
                },
                RequestChange::Replied(seq) => DisplayItem::Closed { seq, how: RequestEnd::Replied },
                RequestChange::Expired(seq) => DisplayItem::Closed { seq, how: RequestEnd::Expired },
                RequestChange::Dropped(seq) => DisplayItem::Closed { seq, how: RequestEnd::Dropped },
            };
            self.telemetry.untold.get_or_insert_default().push_back((end, item));
        }
    }

    /// Compares the requests that viewers know with the state, and notes changes from here on.
    fn note_all(&mut self, end: Position) {
        // Another process continues the run.
        if self.state.end().is_some() && self.shared.is_to_detach() {
            return;
        }
        self.state.scheduler.note_request_changes();
        let is_open = self.state.end().is_none();
        let open = if is_open { open_requests(&self.state, self.clock.began_at) } else { Vec::new() };
        let mut closed = self.shared.display().asked(&self.shared.id);
        for request in &open {
            closed.remove(&request.seq);
        }
        let closed: Vec<_> = closed.into_iter().map(|seq| (end, self.closed(seq))).collect();
        let open = open.into_iter().map(|request| (end, DisplayItem::Asked { request }));
        // The state has all that still waited.
        **self.telemetry.untold.insert(Box::default()) = closed.into_iter().chain(open).collect();
    }

    /// Tells the news that the store has.
    fn tell_written(&mut self) {
        let Some(untold) = &mut self.telemetry.untold else { return };
        let written = self.journal.as_deref().map(Journal::written);
        while let Some((_, item)) =
            untold.pop_front_if(|(end, _)| written.is_none_or(|written| *end <= written))
        {
            self.shared.display().tell(item);
        }
    }

    /// Closes the requests that viewers know as open: the run cleans up, and takes no reply any more.
    pub(super) fn close_requests(&self) {
        if self.shared.signals.is_viewed() {
            let display = self.shared.display();
            for seq in display.asked(&self.shared.id) {
                display.tell(DisplayItem::Closed { seq, how: RequestEnd::Dropped });
            }
        }
    }

    /// One open request. Searches the timers if the request expires.
    fn open_request(&self, seq: Seq) -> Option<OpenRequest> {
        let state = &self.state;
        let awaited = &state.scheduler.board().awaited;
        let record = state.log.get(seq).filter(|_| awaited.is_open(seq))?;
        let due = awaited.expiry(seq).and_then(|expiry| {
            let mut pending = state.timers.pending(&state.scheduler);
            pending.find(|(_, timer)| timer.timer == expiry).map(|(due, _)| due)
        });
        let (event, asked_at) = (record.event.clone(), self.clock.began_at + record.at);
        Some(OpenRequest { seq, event, asked_at, expires_at: due })
    }

    /// The end of a request that the state does not have open.
    fn closed(&self, seq: Seq) -> DisplayItem {
        let how = match why_not_open(&self.state, seq, self.clock.began_at) {
            SendError::Answered { .. } => RequestEnd::Replied,
            SendError::Expired { .. } => RequestEnd::Expired,
            _ => RequestEnd::Dropped,
        };
        DisplayItem::Closed { seq, how }
    }
}
