//! Removing ended runs. The core selects them.

use std::sync::Arc;
use std::time::SystemTime;

use workflow_core::store::{Retention, StoreError, StoredRun};

use crate::error::WorkError;
use crate::journal;
use crate::listing::written_run;
use crate::shared::Shared;
use crate::tables::{Tables, View};

/// How many runs one job removes. Other jobs run in between. In a file that cannot grow it is fewer: a removal writes pages
/// anew before it frees any.
const AT_ONCE: usize = 64;

/// Removes the runs that no rule retains, with their contexts. Returns how many.
pub(crate) async fn retain(shared: Arc<Shared>, kept: Retention) -> Result<u64, StoreError> {
    let read = move |view: &View| all_runs(view).map_err(crate::tables::ReadError::<StoreError>::from);
    let mut chosen = kept.choose(Arc::clone(&shared).read(read).await?);
    let (mut removed, mut at_once) = (0, AT_ONCE);
    while !chosen.is_empty() {
        let some = Arc::new(chosen.split_off(chosen.len().saturating_sub(at_once)));
        let job = Arc::clone(&some);
        match shared.queue.commit(0, move |tables| remove_all(tables, &job)).await {
            Ok(more) => {
                removed += more;
                at_once = (at_once * 2).min(AT_ONCE);
            }
            Err(WorkError::Full { .. }) if some.len() > 1 => {
                at_once = some.len() / 2;
                chosen.extend(some.iter().cloned());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(removed)
}

/// Removes those of the runs that are still as they were chosen.
fn remove_all(tables: &mut Tables<'_>, runs: &[(StoredRun, SystemTime)]) -> Result<u64, redb::Error> {
    let mut removed = 0;
    for (stored, written) in runs {
        removed += u64::from(journal::remove_seen(tables, stored, *written)?);
    }
    Ok(removed)
}

/// Every readable run, with the time of its latest write.
pub(crate) fn all_runs(view: &View) -> Result<Vec<(StoredRun, SystemTime)>, redb::Error> {
    let mut runs = Vec::new();
    for entry in view.runs.range::<&[u8]>(..)? {
        let (key, value) = entry?;
        runs.extend(written_run(key.value(), value.value()));
    }
    Ok(runs)
}
