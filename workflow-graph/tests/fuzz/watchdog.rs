//! Ends the process when one input takes too long, the only way out of an endless loop.

use std::fmt::Debug;
use std::io::Write as _;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{process, thread};

/// The limit per input: only an endless one reaches it, on any busy machine.
const LATE: Duration = Duration::from_mins(10);

/// The interval between checks.
const LOOK: Duration = Duration::from_secs(5);

type Present = Arc<Mutex<Option<(Instant, Box<dyn Debug + Send>)>>>;

/// Watches over the inputs of one target, and reports how many there were.
pub(crate) struct Watchdog {
    target: &'static str,
    input: Present,
    /// Inputs, and those of them that were accepted.
    tried: Mutex<(u64, u64)>,
    /// Dropped with the target.
    _over: Sender<()>,
}

impl Watchdog {
    pub(crate) fn of(target: &'static str) -> Self {
        let input = Present::default();
        let watched = Arc::clone(&input);
        let (over, is_over) = mpsc::channel::<()>();
        thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(LOOK) {
                if let Some((since, input)) = &*lock(&watched)
                    && since.elapsed() > LATE
                {
                    let _ = writeln!(std::io::stderr(), "no end after {LATE:?}: {input:?}");
                    process::abort();
                }
            }
        });
        Self { target, input, tried: Mutex::default(), _over: over }
    }

    /// Does the work, and ends the process if the work does not end. The work returns whether the input was accepted.
    pub(crate) fn watch(&self, input: &(impl Debug + Clone + Send + 'static), work: impl FnOnce() -> bool) {
        *lock(&self.input) = Some((Instant::now(), Box::new(input.clone())));
        let is_accepted = work();
        *lock(&self.input) = None;
        let mut tried = lock(&self.tried);
        *tried = (tried.0 + 1, tried.1 + u64::from(is_accepted));
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let (tried, accepted) = *lock(&self.tried);
        let target = self.target;
        let _ = writeln!(std::io::stderr(), "{target}: {tried} inputs, of which {accepted} were accepted");
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
