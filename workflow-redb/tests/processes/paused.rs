//! Pauses of runs in processes that are killed (S61). The ledger has when a pause had returned and when the next unpause
//! was about to be called: in between no execution of the run begins, whatever process drives it, except those that the
//! journal lists as under way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use workflow_core::Pause;
use workflow_core::RunHandle;
use workflow_core::store::Record;
use workflow_redb::RedbStore;

use crate::ledger::{Deed, Ledger, Line, lines};
use crate::load::Load;
use crate::verdict::{all_runs, records_of};

/// The most pauses of a run by one process.
const PAUSES: u32 = 4;

/// Pauses the run a few times, in either way, and leaves it paused in the end now and then.
pub(crate) async fn pauses_and_unpauses(run: &RunHandle<Load>, ledger: &Ledger) {
    for _ in 0..fastrand::u32(..=PAUSES) {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..6))).await;
        let how = if fastrand::bool() { Pause::AfterRunning } else { Pause::Now };
        if run.pause(how).await.is_err() {
            // It has ended.
            return;
        }
        ledger.add(&Line::Paused { run: run.id().to_string() });
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..12))).await;
        if fastrand::bool() {
            unpauses(run, ledger).await;
        }
    }
}

pub(crate) async fn unpauses(run: &RunHandle<Load>, ledger: &Ledger) {
    ledger.add(&Line::Unpauses { run: run.id().to_string() });
    // It may have ended.
    drop(run.unpause().await);
}

/// The state of the ledger and the store in the end.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The pauses in the journals, of runs and their children.
    pub(crate) pauses: u64,
    /// Those that dropped what was under way.
    pub(crate) dropped: u64,
    /// The resumes of paused runs.
    pub(crate) resumed: u64,
    /// The effects after a pause that were under way.
    pub(crate) under_way: u64,
}

/// How often a run of the ledger was paused that was not paused before.
pub(crate) fn pauses(folder: &Path) -> usize {
    let mut paused = BTreeSet::new();
    let new = lines(folder).into_iter().filter(|line| match line {
        Line::Paused { run } => paused.insert(run.clone()),
        Line::Unpauses { run } => {
            paused.remove(run);
            false
        }
        _ => false,
    });
    new.count()
}

/// Checks that nothing began in a pause.
pub(crate) fn judge(folder: &Path) -> Found {
    let store = RedbStore::open(folder.join("runs.redb")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut found, under_way) = runtime.block_on(of_journals(&store));
    let mut paused = BTreeSet::new();
    for line in &lines(folder) {
        match line {
            Line::Paused { run } => drop(paused.insert(run.clone())),
            Line::Unpauses { run } => drop(paused.remove(run)),
            Line::Did(Deed { run, key, execution, .. }) if paused.contains(run) => {
                let is_under_way = under_way.get(run).is_some_and(|all| all.contains(execution));
                assert!(is_under_way, "{key} of {run} began while the run was paused");
                found.under_way += 1;
            }
            _ => {}
        }
    }
    found
}

/// The pauses in the journals, and the executions that were under way when one began, by run.
async fn of_journals(store: &RedbStore) -> (Found, BTreeMap<String, BTreeSet<u64>>) {
    let (mut found, mut under_way) = (Found::default(), BTreeMap::new());
    for run in all_runs(store).await {
        let (mut own, mut with_parent) = (false, false);
        for record in records_of(store, &run).await {
            match record {
                Record::RunPaused { by_parent, running, dropped, .. } => {
                    *(if by_parent { &mut with_parent } else { &mut own }) = true;
                    found.pauses += 1;
                    found.dropped += u64::from(!dropped.is_empty());
                    let of_run: &mut BTreeSet<u64> = under_way.entry(run.id.to_string()).or_default();
                    of_run.extend(running.iter().map(|execution| execution.0));
                }
                Record::RunUnpaused { by_parent, .. } => {
                    *(if by_parent { &mut with_parent } else { &mut own }) = false;
                }
                Record::RunEnded { .. } => (own, with_parent) = (false, false),
                Record::RunResumed { .. } => found.resumed += u64::from(own || with_parent),
                _ => {}
            }
        }
    }
    (found, under_way)
}
