//! Ends the process when one input takes too long: a loop without an end cannot be left otherwise.

use std::fmt::Debug;
use std::io::Write as _;
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// No input takes so long on any machine, unless it never ends.
const AT_MOST: Duration = Duration::from_mins(2);

/// Does the work, and ends the process if it does not end.
pub(crate) fn watched<T>(input: &impl Debug, work: impl FnOnce() -> T) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    let input = format!("{input:?}");
    let watchdog = thread::spawn(move || {
        if let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(AT_MOST) {
            let _ = writeln!(std::io::stderr(), "this input takes more than {AT_MOST:?}: {input}");
            process::abort();
        }
    });
    let worked = work();
    drop(done);
    watchdog.join().unwrap();
    worked
}
