//! Ends the process when one input takes too long: a loop without an end cannot be left otherwise. Says in the end how
//! many inputs there were.

use std::fmt::Debug;
use std::io::Write as _;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// No input takes so long on any machine, unless it never ends.
const AT_MOST: Duration = Duration::from_mins(2);

/// How often the time is looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Watches over the inputs of one target.
pub(crate) struct Watchdog {
    target: &'static str,
    input: Arc<Mutex<Option<Watched>>>,
    tried: AtomicU64,
    read: AtomicU64,
    /// Gone with the target.
    _over: Sender<()>,
}

/// What is tried, and since when.
type Watched = (Instant, Box<dyn Debug + Send>);

impl Watchdog {
    pub(crate) fn of(target: &'static str) -> Self {
        let input = Arc::default();
        let watched = Arc::clone(&input);
        let (over, is_over) = mpsc::channel::<()>();
        thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(LOOK) {
                end_if_late(&watched);
            }
        });
        Self { target, input, tried: AtomicU64::new(0), read: AtomicU64::new(0), _over: over }
    }

    /// Does the work, and ends the process if it does not end. The work says whether the input was read, and not refused.
    pub(crate) fn watch(&self, input: &(impl Debug + Clone + Send + 'static), work: impl FnOnce() -> bool) {
        *lock(&self.input) = Some((Instant::now(), Box::new(input.clone())));
        let read = work();
        *lock(&self.input) = None;
        self.tried.fetch_add(1, Ordering::Relaxed);
        self.read.fetch_add(u64::from(read), Ordering::Relaxed);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let (target, tried) = (self.target, self.tried.load(Ordering::Relaxed));
        let read = self.read.load(Ordering::Relaxed);
        let _ = writeln!(std::io::stderr(), "{target}: {tried} inputs, of which {read} were read");
    }
}

fn end_if_late(input: &Mutex<Option<Watched>>) {
    if let Some((since, input)) = &*lock(input)
        && since.elapsed() > AT_MOST
    {
        let _ = writeln!(std::io::stderr(), "this input takes more than {AT_MOST:?}: {input:?}");
        process::abort();
    }
}

fn lock(input: &Mutex<Option<Watched>>) -> MutexGuard<'_, Option<Watched>> {
    input.lock().unwrap_or_else(PoisonError::into_inner)
}
