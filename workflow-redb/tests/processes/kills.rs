//! Who is killed and when: drawn from a seed, counted from when a worker has the file, or from when the one before it
//! was killed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::ledger::latest_holder;
use crate::worker::Worker;

/// How long a worker has the file before it is killed, in milliseconds.
const WORK: std::ops::Range<u64> = 5..150;

/// How long after a kill another one follows that waits for nothing, in milliseconds.
const SOON: std::ops::Range<u64> = 0..60;

pub(crate) struct Kills {
    folder: PathBuf,
    rng: Rng,
    until: Instant,
    /// One has the file, or is about to, and the other waits for it.
    workers: [Worker; 2],
}

impl Kills {
    /// Starts two workers.
    pub(crate) fn new(folder: &Path, seed: u64, deadline: Duration) -> Self {
        let workers = [Worker::new(folder), Worker::new(folder)];
        Self {
            folder: folder.to_owned(),
            rng: Rng::with_seed(seed),
            until: Instant::now() + deadline,
            workers,
        }
    }

    /// Kills one of them and starts another. In one round of five it is any of the two, soon after the round before,
    /// while the file is opened or runs are resumed; in the others it is who has the file.
    pub(crate) fn round(&mut self) {
        let victim = if self.rng.u8(..5) == 0 {
            std::thread::sleep(Duration::from_millis(self.rng.u64(SOON)));
            usize::from(self.rng.bool())
        } else {
            let holder = self.holder();
            std::thread::sleep(Duration::from_millis(self.rng.u64(WORK)));
            holder
        };
        self.workers.iter_mut().for_each(Worker::still_works);
        let killed = std::mem::replace(&mut self.workers[victim], Worker::new(&self.folder));
        killed.kill();
    }

    /// Waits until one of them has the file, and says which.
    fn holder(&mut self) -> usize {
        loop {
            assert!(Instant::now() < self.until, "nobody gets the file: {:?}", self.workers);
            self.workers.iter_mut().for_each(Worker::still_works);
            // The latest to have it may be one that was killed.
            let latest = latest_holder(&self.folder);
            let holder = self.workers.iter().position(|worker| Some(worker.process()) == latest);
            if let Some(holder) = holder {
                return holder;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
