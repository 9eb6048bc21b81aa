//! Ends the process when one input takes too long, the only way out of an endless loop. Reports the number of inputs at
//! the end.

use std::fmt::Debug;
use std::io::Write as _;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The limit of processor time per input: only an endless one reaches it, on any machine.
const AT_MOST: Duration = Duration::from_mins(1);

/// The limit of real time per input, on any busy machine.
const LATE: Duration = Duration::from_mins(20);

/// The interval between checks.
const LOOK: Duration = Duration::from_secs(5);

/// Watches over the inputs of one target.
pub(crate) struct Watchdog {
    target: &'static str,
    input: Arc<Mutex<Option<Watched>>>,
    tried: AtomicU64,
    read: AtomicU64,
    /// Dropped with the target.
    _over: Sender<()>,
}

/// The present input.
struct Watched {
    since: Instant,
    /// The processor time of the process at its start.
    used: Duration,
    input: Box<dyn Debug + Send>,
}

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

    /// Does the work, and ends the process if the work does not end. The work returns whether the input was accepted.
    pub(crate) fn watch(&self, input: &(impl Debug + Clone + Send + 'static), work: impl FnOnce() -> bool) {
        let input = Box::new(input.clone());
        *lock(&self.input) = Some(Watched { since: Instant::now(), used: used(), input });
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
    if let Some(Watched { since, used: before, input }) = &*lock(input) {
        let (took, used) = (since.elapsed(), used().saturating_sub(*before));
        if used > AT_MOST || took > LATE {
            let _ = writeln!(std::io::stderr(), "no end after {took:?}, {used:?} of a processor: {input:?}");
            process::abort();
        }
    }
}

/// The processor time of this process.
fn used() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.try_into().unwrap_or_default()
}

fn lock(input: &Mutex<Option<Watched>>) -> MutexGuard<'_, Option<Watched>> {
    input.lock().unwrap_or_else(PoisonError::into_inner)
}
