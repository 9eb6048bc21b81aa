//! Chooses the process to kill and the time, from a seed. The time counts from when a worker gets the file, or from the
//! previous kill.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::ledger::latest_holder;
use crate::worker::{Kind, Worker};

/// The time that a worker has the file before it is killed, in milliseconds.
const WORK: std::ops::Range<u64> = 5..150;

/// The time between a kill and an immediate second one, in milliseconds.
const SOON: std::ops::Range<u64> = 0..60;

pub(crate) struct Kills {
    folder: PathBuf,
    rng: Rng,
    until: Instant,
    kind: Kind,
    /// One has the file, or is about to get it, and the other waits.
    workers: [Worker; 2],
}

impl Kills {
    /// Starts two workers.
    pub(crate) fn new(folder: &Path, kind: Kind, seed: u64, deadline: Duration) -> Self {
        let workers = [Worker::new(folder, kind), Worker::new(folder, kind)];
        Self {
            folder: folder.to_owned(),
            rng: Rng::with_seed(seed),
            until: Instant::now() + deadline,
            kind,
            workers,
        }
    }

    /// Kills one of them and starts another. One round in five kills any of the two soon after the previous kill, while
    /// the file is being opened or runs are resumed. The other rounds kill the holder of the file.
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
        let killed = std::mem::replace(&mut self.workers[victim], Worker::new(&self.folder, self.kind));
        killed.kill();
    }

    /// Waits until one of them has the file, and returns which.
    fn holder(&mut self) -> usize {
        loop {
            assert!(Instant::now() < self.until, "no worker gets the file: {:?}", self.workers);
            self.workers.iter_mut().for_each(Worker::still_works);
            // The latest holder may already be killed.
            let latest = latest_holder(&self.folder);
            let holder = self.workers.iter().position(|worker| Some(worker.process()) == latest);
            if let Some(holder) = holder {
                return holder;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
