//! The commands that handles send to a run. The mailbox of an unloaded run is closed, and opened again when the run is
//! loaded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::task::AtomicWaker;
use tokio::sync::Semaphore;

use super::Command;
use crate::children::HostsRuns;
use crate::panics::locked;

/// The commands that the run has not taken. It takes no room for them before there are any.
pub(crate) struct Mailbox {
    /// A permit for each command more that it has room for. Those who wait for one have their turn in order.
    room: Semaphore,
    /// How many permits there are.
    capacity: usize,
    state: Mutex<State>,
}

struct State {
    /// Oldest first.
    commands: VecDeque<Command>,
    is_open: bool,
    /// The engine that loads the run again, while nobody drives it: its handles keep that engine alive.
    home: Option<Arc<dyn HostsRuns>>,
}

impl Mailbox {
    /// One that holds so many commands.
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State { commands: VecDeque::new(), is_open: true, home: None };
        Self { room: Semaphore::new(capacity), capacity, state: Mutex::new(state) }
    }

    /// Puts a command in when there is room for it, and wakes the run; gives it back if nobody drives the run.
    pub(super) async fn send(&self, command: Command, run: &AtomicWaker) -> Result<(), Command> {
        let _rings = Rings(run);
        // It is never closed: who waits when the mailbox is has its turn soon after, since that is empty then.
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

    /// Takes the oldest command out. A run that finds none is woken by the next.
    pub(super) fn take(&self) -> Option<Command> {
        let command = locked(&self.state).commands.pop_front()?;
        self.room.add_permits(1);
        Some(command)
    }

    /// Whether there is something to be taken.
    pub(super) fn has_commands(&self) -> bool {
        !locked(&self.state).commands.is_empty()
    }

    /// Whether there is a command, or somebody has room for one and has not put it in.
    pub(super) fn is_in_use(&self) -> bool {
        self.room.available_permits() < self.capacity
    }

    /// From here on nothing more comes in. What is in it can be taken out.
    pub(super) fn close(&self) {
        locked(&self.state).is_open = false;
    }

    /// Closes it and drops what is in it.
    pub(super) fn discard(&self) {
        let mut state = locked(&self.state);
        state.is_open = false;
        let commands = std::mem::take(&mut state.commands);
        drop(state);
        self.room.add_permits(commands.len());
    }

    /// Gives back the memory of commands that were taken out.
    pub(super) fn shrink(&self) {
        let mut state = locked(&self.state);
        if state.commands.is_empty() {
            state.commands = VecDeque::new();
        }
    }

    /// Somebody drives the run again.
    pub(crate) fn reopen(&self) {
        let mut state = locked(&self.state);
        state.is_open = true;
        let home = state.home.take();
        drop(state);
        // Dropped after the lock: it may be the last that knows the engine.
        drop(home);
    }

    /// Nobody drives the run from here on, until it is loaded again.
    pub(crate) fn leave_to(&self, home: Arc<dyn HostsRuns>) {
        locked(&self.state).home = Some(home);
    }

    /// Nobody loads the run again.
    pub(crate) fn leave_home(&self) {
        let home = locked(&self.state).home.take();
        // Dropped after the lock: it may be the last that knows the engine.
        drop(home);
    }

    pub(crate) fn is_closed(&self) -> bool {
        !locked(&self.state).is_open
    }
}

/// Wakes the run when somebody has sent something, or has given up.
struct Rings<'a>(&'a AtomicWaker);

impl Drop for Rings<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    use futures_util::FutureExt as _;

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
    fn who_finds_no_room_waits_and_has_its_turn_in_order() {
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
    fn who_gives_up_the_wait_takes_no_room_and_the_run_hears_of_it() {
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
    fn what_is_sent_to_a_closed_one_comes_back_and_what_was_there_is_taken() {
        let mailbox = Mailbox::new(2);
        assert!(send_now(&mailbox, "a").is_ok());
        mailbox.close();
        assert_eq!(send_now(&mailbox, "b").map_err(reason), Err("b".into()));
        assert_eq!((taken(&mailbox), mailbox.is_closed()), (vec!["a".to_owned()], true));
    }

    #[test]
    fn all_who_wait_for_room_are_told_that_it_was_closed() {
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
    fn one_that_is_opened_again_has_all_of_its_room() {
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
