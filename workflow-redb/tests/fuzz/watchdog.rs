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

use rustix::time::{ClockId, clock_gettime};

/// No input takes so much of a processor on any machine, unless it never ends.
const AT_MOST: Duration = Duration::from_mins(1);

/// Nor does any take so long, however busy the machine is with other work.
const LATE: Duration = Duration::from_mins(20);

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

/// What is tried.
struct Watched {
    since: Instant,
    /// What the process had used of processors by then.
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

    /// Does the work, and ends the process if it does not end. The work says whether the input was read, and not refused.
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

/// What this process has used of processors.
fn used() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.try_into().unwrap_or_default()
}

fn lock(input: &Mutex<Option<Watched>>) -> MutexGuard<'_, Option<Watched>> {
    input.lock().unwrap_or_else(PoisonError::into_inner)
}
