//! The mailbox of a run: the bounded queue of commands from its handles.
//!
//! ```text
//! open ──close──▶ closed: senders get their command back ──load──▶ open
//! ```
//!
//! The mailbox of an unloaded run is closed. A sender whose command comes back has the run loaded, and sends
//! again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::task::AtomicWaker;
use tokio::sync::Semaphore;

use super::Command;
use crate::panics::locked;
use crate::run::HostsRuns;

/// The commands that the run has not taken. An empty mailbox needs no memory.
pub(crate) struct Mailbox {
    /// A permit for each free slot. Senders that wait for one get it in order.
    room: Semaphore,
    /// The most commands in the mailbox.
    capacity: usize,
    state: Mutex<State>,
}

struct State {
    /// Oldest first.
    commands: VecDeque<Command>,
    is_open: bool,
    /// The engine that loads the run again, while the run is unloaded: the run's handles keep that engine
    /// alive.
    engine: Option<Arc<dyn HostsRuns>>,
}

impl Mailbox {
    /// An open mailbox for at most this many commands.
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State { commands: VecDeque::new(), is_open: true, engine: None };
        Self { room: Semaphore::new(capacity), capacity, state: Mutex::new(state) }
    }

    /// Waits for room, puts a command in and wakes the run. Returns the command if the mailbox is closed.
    pub(super) async fn send(&self, command: Command, run: &AtomicWaker) -> Result<(), Command> {
        let _wakes = WakeOnDrop(run);
        // The semaphore is never closed: `discard` empties the mailbox, so waiting senders get their turn.
        let room = self.room.acquire().await;
        let mut state = locked(&self.state);
        if !state.is_open {
            return Err(command);
        }
        state.commands.push_back(command);
        drop(state);
        if let Ok(room) = room {
            room.forget();
        }
        Ok(())
    }

    /// Takes the oldest command out. A run that finds none is woken by the next one.
    pub(super) fn take(&self) -> Option<Command> {
        let command = locked(&self.state).commands.pop_front()?;
        self.room.add_permits(1);
        Some(command)
    }

    /// Takes out the oldest command that need not wait for an unpause, which stays. So does a pause behind it.
    #[cold]
    pub(super) fn take_before_unpause(&self) -> Option<Command> {
        let mut state = locked(&self.state);
        let first = state.commands.front()?;
        let changes_pause = |command: &Command| command.is_unpause() || command.is_pause();
        let place = if first.is_unpause() {
            state.commands.iter().position(|command| !changes_pause(command))?
        } else {
            0
        };
        let command = state.commands.remove(place)?;
        drop(state);
        self.room.add_permits(1);
        Some(command)
    }

    /// Whether there is a command.
    pub(super) fn has_commands(&self) -> bool {
        !locked(&self.state).commands.is_empty()
    }

    /// Whether there is a command, or a sender that has room and has not put its command in yet.
    pub(super) fn is_in_use(&self) -> bool {
        self.room.available_permits() < self.capacity
    }

    /// Closes the mailbox. Commands in it can still be taken out.
    pub(super) fn close(&self) {
        locked(&self.state).is_open = false;
    }

    /// Closes the mailbox and drops the commands in it.
    pub(super) fn discard(&self) {
        let mut state = locked(&self.state);
        state.is_open = false;
        let commands = std::mem::take(&mut state.commands);
        drop(state);
        self.room.add_permits(commands.len());
    }

    /// Frees the memory of commands that were taken out.
    pub(super) fn shrink(&self) {
        let mut state = locked(&self.state);
        if state.commands.is_empty() {
            state.commands = VecDeque::new();
        }
    }

    /// Opens the mailbox: a task drives the run again.
    pub(crate) fn reopen(&self) {
        let mut state = locked(&self.state);
        state.is_open = true;
        let engine = state.engine.take();
        drop(state);
        // Dropped outside of the lock, since it may be the last reference to the engine.
        drop(engine);
    }

    /// Keeps the engine alive until it loads the unloaded run.
    pub(crate) fn close_for_unload(&self, engine: Arc<dyn HostsRuns>) {
        locked(&self.state).engine = Some(engine);
    }

    /// Releases the engine: it will not load the run again.
    pub(crate) fn release_engine(&self) {
        let engine = locked(&self.state).engine.take();
        // Dropped outside of the lock, since it may be the last reference to the engine.
        drop(engine);
    }

    pub(crate) fn is_closed(&self) -> bool {
        !locked(&self.state).is_open
    }
}

/// Wakes the run when a sender has sent its command, or has given up waiting.
struct WakeOnDrop<'a>(&'a AtomicWaker);

impl Drop for WakeOnDrop<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    use futures::FutureExt as _;

    use super::*;

    fn command(reason: &str) -> Command {
        Command::Cancel { reason: reason.into(), done: tokio::sync::oneshot::channel().0 }
    }

    fn reason(command: Command) -> String {
        match command {
            Command::Cancel { reason, .. } => reason.to_string(),
            _ => panic!("only such commands are sent here"),
        }
    }

    fn taken(mailbox: &Mailbox) -> Vec<String> {
        std::iter::from_fn(|| mailbox.take()).map(reason).collect()
    }

    fn send_now(mailbox: &Mailbox, text: &str) -> Result<(), Command> {
        mailbox.send(command(text), &AtomicWaker::new()).now_or_never().expect("there is room")
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn commands_are_taken_in_the_order_in_which_they_were_sent() {
        let mailbox = Mailbox::new(3);
        for text in ["a", "b", "c"] {
            assert!(send_now(&mailbox, text).is_ok());
        }
        assert_eq!(taken(&mailbox), ["a", "b", "c"]);
    }

    #[test]
    fn a_command_wakes_the_run_once_it_is_there() {
        let (mailbox, run, wakes) = (Mailbox::new(1), AtomicWaker::new(), Arc::new(Wakes::default()));
        run.register(&Arc::clone(&wakes).into());
        assert!(mailbox.send(command("a"), &run).now_or_never().expect("there is room").is_ok());
        assert_eq!((wakes.0.load(Ordering::SeqCst), taken(&mailbox).len()), (1, 1));
    }

    #[test]
    fn senders_without_room_wait_in_order() {
        let (mailbox, run) = (Mailbox::new(1), AtomicWaker::new());
        assert!(send_now(&mailbox, "a").is_ok());
        let mut second = pin!(mailbox.send(command("b"), &run));
        let mut third = pin!(mailbox.send(command("c"), &run));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(mailbox.take().map(reason).as_deref(), Some("a"));
        assert!(third.as_mut().now_or_never().is_none());
        assert!(second.now_or_never().expect("it is its turn").is_ok());
        assert_eq!(taken(&mailbox), ["b"]);
        assert!(third.now_or_never().expect("it is its turn").is_ok());
        assert_eq!(taken(&mailbox), ["c"]);
    }

    #[test]
    fn a_sender_that_gives_up_takes_no_room_and_wakes_the_run() {
        let (mailbox, run, wakes) = (Mailbox::new(1), AtomicWaker::new(), Arc::new(Wakes::default()));
        assert!(send_now(&mailbox, "a").is_ok());
        {
            let mut waits = pin!(mailbox.send(command("b"), &run));
            assert!(waits.as_mut().now_or_never().is_none());
            assert_eq!(taken(&mailbox), ["a"]);
            assert!(mailbox.is_in_use(), "it has its turn");
            run.register(&Arc::clone(&wakes).into());
        }
        assert_eq!((wakes.0.load(Ordering::SeqCst), mailbox.is_in_use()), (1, false));
        assert!(send_now(&mailbox, "c").is_ok());
        assert!(mailbox.is_in_use());
    }

    #[test]
    fn a_closed_mailbox_returns_new_commands_and_still_gives_out_earlier_ones() {
        let mailbox = Mailbox::new(2);
        assert!(send_now(&mailbox, "a").is_ok());
        mailbox.close();
        assert_eq!(send_now(&mailbox, "b").map_err(reason), Err("b".into()));
        assert_eq!((taken(&mailbox), mailbox.is_closed()), (vec!["a".to_owned()], true));
    }

    #[test]
    fn every_sender_that_waits_for_room_gets_its_command_back_when_the_mailbox_closes() {
        let (mailbox, run, wakes) = (Mailbox::new(1), AtomicWaker::new(), Arc::new(Wakes::default()));
        assert!(send_now(&mailbox, "a").is_ok());
        let told = Arc::clone(&wakes).into();
        let mut waiting = ["b", "c"].map(|text| Box::pin(mailbox.send(command(text), &run)));
        for waiting in &mut waiting {
            assert!(waiting.as_mut().poll(&mut Context::from_waker(&told)).is_pending());
        }
        mailbox.discard();
        for (woken, waiting) in (1..).zip(waiting) {
            assert_eq!(wakes.0.load(Ordering::SeqCst), woken);
            assert!(waiting.now_or_never().expect("it has its turn").is_err());
        }
    }

    #[test]
    fn a_mailbox_that_is_opened_again_has_all_of_its_room() {
        let mailbox = Mailbox::new(2);
        for text in ["a", "b"] {
            assert!(send_now(&mailbox, text).is_ok());
        }
        mailbox.discard();
        mailbox.reopen();
        for text in ["c", "d"] {
            assert!(send_now(&mailbox, text).is_ok());
        }
        assert!(mailbox.send(command("e"), &AtomicWaker::new()).now_or_never().is_none());
        assert_eq!(taken(&mailbox), ["c", "d"]);
    }

    #[test]
    fn others_pass_an_unpause_that_waits_and_a_pause_behind_it_does_not() {
        let mailbox = Mailbox::new(5);
        let done = || tokio::sync::oneshot::channel().0;
        let pause = || Command::Pause { how: crate::id::Pause::AfterRunning, done: done() };
        let commands = [pause(), Command::Unpause { done: done() }, pause(), command("a")];
        for command in commands {
            assert!(
                mailbox.send(command, &AtomicWaker::new()).now_or_never().expect("there is room").is_ok()
            );
        }
        assert!(mailbox.take_before_unpause().is_some_and(|command| command.is_pause()));
        assert_eq!(mailbox.take_before_unpause().map(reason).as_deref(), Some("a"));
        assert!(mailbox.take_before_unpause().is_none());
        assert!(mailbox.take().is_some_and(|command| command.is_unpause()));
        assert!(mailbox.take_before_unpause().is_some_and(|command| command.is_pause()));
        assert!(!mailbox.is_in_use());
    }

    #[test]
    fn nothing_is_allocated_before_the_first_command_nor_after_the_last() {
        let mailbox = Mailbox::new(64);
        assert_eq!(locked(&mailbox.state).commands.capacity(), 0);
        assert!(send_now(&mailbox, "a").is_ok());
        mailbox.shrink();
        assert_eq!(taken(&mailbox), ["a"]);
        mailbox.shrink();
        assert_eq!(locked(&mailbox.state).commands.capacity(), 0);
    }
}
