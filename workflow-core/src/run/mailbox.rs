//! Where a run is told what its handles want. One that is let go of closes its mailbox, and opens another under the same
//! handles when it is loaded again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::Command;
use crate::children::HostsRuns;

/// The sending side, which all handles share.
pub(crate) struct Mailbox(Mutex<State>);

struct State {
    sender: mpsc::Sender<Command>,
    /// Who loads the run again, while nobody drives it: its handles need somebody who does.
    home: Option<Arc<dyn HostsRuns>>,
}

impl Mailbox {
    /// One that holds so many commands.
    pub(crate) fn new(capacity: usize) -> (Self, mpsc::Receiver<Command>) {
        let (sender, commands) = mpsc::channel(capacity);
        (Self(Mutex::new(State { sender, home: None })), commands)
    }

    /// Another in place of one that was closed, and of the same capacity. What was in that is not in this.
    pub(crate) fn reopen(&self) -> mpsc::Receiver<Command> {
        let (capacity, _home);
        let mut state = self.lock();
        capacity = state.sender.max_capacity();
        let (sender, commands) = mpsc::channel(capacity);
        state.sender = sender;
        // Dropped after the lock: it may be the last that knows the engine.
        _home = state.home.take();
        drop(state);
        commands
    }

    /// Nobody drives the run from here on, until it is loaded again.
    pub(crate) fn leave_to(&self, home: Arc<dyn HostsRuns>) {
        self.lock().home = Some(home);
    }

    pub(super) fn sender(&self) -> mpsc::Sender<Command> {
        self.lock().sender.clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().sender.is_closed()
    }

    /// Nothing in it is ever left half-changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
