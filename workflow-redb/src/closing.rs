//! Stores of this process that still hold their file after the drop of their last handle. Opening such a file waits.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// How long an opening waits for the release of the file. The release takes as long only if the disk does not answer,
/// or the caller holds something that the store's thread needs, such as a lock of a waker.
pub(crate) const AT_MOST: Duration = Duration::from_mins(1);

/// Notified when a store has released its file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Release(Arc<(Mutex<bool>, Condvar)>);

impl Release {
    /// Called when the file is released, also after a failure.
    pub(crate) fn done(&self) {
        *self.is_done() = true;
        self.0.1.notify_all();
    }

    /// Waits for the release, at most for this time. Returns whether it came.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        let waited = self.0.1.wait_timeout_while(self.is_done(), at_most, |is_done| !*is_done);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn is_done(&self) -> MutexGuard<'_, bool> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store that is closing.
struct Closing {
    file: PathBuf,
    /// The thread that closes the store.
    thread: ThreadId,
    release: Release,
}

static CLOSING: Mutex<Vec<Closing>> = Mutex::new(Vec::new());

fn closing() -> MutexGuard<'static, Vec<Closing>> {
    CLOSING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that a store is closing, until its thread has released the file.
pub(crate) fn note(file: PathBuf, thread: ThreadId, release: Release) {
    let mut closing = closing();
    closing.retain(|other| !*other.release.is_done());
    closing.push(Closing { file, thread, release });
}

/// Waits for a closing store of this process to release the file. Returns `false` if there is none, or it did not.
pub(crate) fn wait_for(file: &Path) -> bool {
    // The thread that closes a store cannot wait for itself.
    let here = thread::current().id();
    let find =
        |closing: &Closing| (closing.file == file && closing.thread != here).then(|| closing.release.clone());
    let found = closing().iter().rev().find_map(find);
    found.is_some_and(|release| release.wait(AT_MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_never_released_is_waited_for_in_vain_and_not_without_end() {
        let (file, release) = (PathBuf::from("/a file of this test"), Release::default());
        assert!(!wait_for(&file), "no thread closes it");
        assert!(!release.wait(Duration::from_millis(1)));
        note(file.clone(), thread::current().id(), release.clone());
        assert!(!wait_for(&file), "this thread closes it");
        let other = thread::spawn({
            let file = file.clone();
            move || wait_for(&file)
        });
        release.done();
        assert!(other.join().unwrap());
        assert!(release.wait(Duration::ZERO));
    }
}
