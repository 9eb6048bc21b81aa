//! Retention in faulty journals.

use std::time::{Duration, SystemTime};

use workflow_core::store::{Position, Retention, StoredRun};
use workflow_core::{RunId, RunStatus};

use super::Fault::{self, *};
use super::{Journal, Kept};

impl Kept {
    pub(super) fn retain(&mut self, fault: Fault, kept: &Retention) -> u64 {
        let runs = self.journals.iter().map(|(id, journal)| seen(fault, id, journal));
        let chosen: Vec<RunId> = match fault {
            RetainsAll => Vec::new(),
            // The result of its query for the runs of all workflows.
            RetainForgetsTheWorkflow => self.journals.keys().cloned().collect(),
            _ => kept.choose(runs).into_iter().map(|(stored, _)| restored(&stored.id)).collect(),
        };
        for run in &chosen {
            match self.journals.get_mut(run) {
                Some(journal) if fault == RetainLeavesRecords => journal.hidden = true,
                _ => drop(self.journals.remove(run)),
            }
        }
        let removed = chosen.len() as u64;
        if fault == RetainMiscounts { removed + 1 } else { removed }
    }
}

/// A run as the fault sees it.
fn seen(fault: Fault, id: &RunId, journal: &Journal) -> (StoredRun, SystemTime) {
    let mut stored = StoredRun { id: id.clone(), end: Position(0), run: journal.run.clone() };
    let mut at = journal.written;
    match fault {
        RetainRemovesOpen => stored.run.status = RunStatus::Completed,
        // Without a visible difference from a child.
        RetainRemovesChildren => stored.id = id.as_str().replace('/', "|").into(),
        RetainGoesByAge => {
            at = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(journal.age).unwrap());
        }
        RetainForgetsTheTime => at = SystemTime::UNIX_EPOCH,
        RetainForgetsWhatFailed if stored.run.status.is_ended() => stored.run.status = RunStatus::Completed,
        _ => {}
    }
    (stored, at)
}

fn restored(id: &RunId) -> RunId {
    id.as_str().replace('|', "/").into()
}
