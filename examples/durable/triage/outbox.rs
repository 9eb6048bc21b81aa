//! The queues: one file with a line per delivered ticket. It stands for a ticket system that knows idempotency keys.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::words::Queue;

pub(crate) struct Outbox {
    file: Mutex<File>,
    /// For tests of a crash: the process is killed after this many deliveries.
    kill_after: Option<u32>,
    delivered: Mutex<u32>,
    path: PathBuf,
}

impl Outbox {
    pub(crate) fn open(folder: &Path, kill_after: Option<u32>) -> io::Result<Self> {
        let path = folder.join("outbox.txt");
        let file = OpenOptions::new().create(true).read(true).append(true).open(&path)?;
        Ok(Self { file: Mutex::new(file), kill_after, delivered: Mutex::new(0), path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Delivers a ticket, unless this key has delivered it already.
    pub(crate) fn put(&self, key: &str, queue: Queue, number: usize) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = String::new();
        File::open(&self.path)?.read_to_string(&mut lines)?;
        if !lines.lines().any(|line| line.ends_with(key)) {
            writeln!(file, "{queue:<10} ticket {number:<3} {key}")?;
        }
        drop(file);
        self.crash_if_asked();
        Ok(())
    }

    /// The effect has happened, and the journal does not know it yet.
    fn crash_if_asked(&self) {
        let mut delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        *delivered += 1;
        if Some(*delivered) == self.kill_after {
            let kill = format!("kill -9 {}", std::process::id());
            let _killed = Command::new("sh").args(["-c", &kill]).status();
        }
    }
}
