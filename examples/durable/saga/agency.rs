//! An agency with a list of offers, and a ledger with a line per booking and cancellation. It plays the part of services
//! that know idempotency keys: each key has its effect once.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use workflow_core::prelude::*;

/// Shown in the terminal while the run goes on.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
pub(crate) struct Progress(pub(crate) String);

pub(crate) struct Agency {
    /// Lines of what, which, and how many.
    offers: String,
    ledger: PathBuf,
    /// How many lines this process has written, and after how many it is killed.
    written: Mutex<u32>,
    kill_after: Option<u32>,
}

impl Agency {
    pub(crate) fn new(offers: String, ledger: PathBuf, kill_after: Option<u32>) -> Self {
        Self { offers, ledger, written: Mutex::new(0), kill_after }
    }

    pub(crate) fn ledger(&self) -> String {
        fs::read_to_string(&self.ledger).unwrap_or_default()
    }

    /// Books, and returns the number of the booking. The same key returns the same booking.
    pub(crate) fn book(
        &self,
        what: &str,
        which: &str,
        traveller: &str,
        info: &RunInfo,
        display: &Display,
    ) -> Result<String, StepError> {
        let guard = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let (ledger, key) = (self.ledger(), info.idempotency_key());
        let number = format!("{what}/{which}/{traveller}");
        if ledger.lines().any(|line| line.ends_with(&format!("[{key}]"))) {
            return Ok(number);
        }
        let count = |begin: &str| ledger.matches(&format!("{begin} {what}/{which}/")).count();
        if count("booked") >= self.offered(what, which) + count("cancelled") {
            return Err(StepError::rejected(format!("{what} {which} is sold out")));
        }
        self.write(guard, &format!("booked {number} [{key}]"))?;
        display.show(Progress(format!("booked {number}")));
        Ok(number)
    }

    pub(crate) fn cancel(&self, number: &str, info: &RunInfo, display: &Display) -> Result<(), StepError> {
        let guard = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let key = info.idempotency_key();
        if self.ledger().lines().any(|line| line.ends_with(&format!("[{key}]"))) {
            return Ok(());
        }
        self.write(guard, &format!("cancelled {number} [{key}]"))?;
        display.show(Progress(format!("cancelled {number}")));
        Ok(())
    }

    fn offered(&self, what: &str, which: &str) -> usize {
        let mut offers = self.offers.lines().map(|line| line.split(',').map(str::trim).collect::<Vec<_>>());
        let offer = offers.find(|offer| offer.len() == 3 && (offer[0], offer[1]) == (what, which));
        offer.and_then(|offer| offer[2].parse().ok()).unwrap_or(0)
    }

    /// The effect. A process that is killed right after it does not know of it when it resumes.
    fn write(&self, mut written: std::sync::MutexGuard<'_, u32>, line: &str) -> Result<(), StepError> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.ledger)?;
        writeln!(file, "{line}")?;
        *written += 1;
        if Some(*written) == self.kill_after {
            let kill = format!("kill -9 {}", std::process::id());
            let _killed = Command::new("sh").args(["-c", &kill]).status();
        }
        Ok(())
    }
}
