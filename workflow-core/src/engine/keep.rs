//! Keeping runs after a time without a lease (S40): each driven run writes that this engine keeps it.
//!
//! ```text
//! lease lapses ─▶ another engine claims `a` ─▶ lease renewed, next term ─▶ every driven run writes `RunKept`
//!                                                                           ├ taken:    the run is this engine's
//!                                                                           └ conflict: `a` ends here, its children detach
//! ```
//!
//! Otherwise a run that only waits would never write, and never learn that it is lost. Its children would stay here, where
//! the engine that has the run now cannot get them.
//!
//! A lease that never lapses costs nothing. After a lapse at most 32 runs write at a time.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};

use super::Inner;
use super::reminders::MAX_CONCURRENT_LOADS;
use crate::id::RunId;
use crate::lease::Lease;

impl Inner {
    /// Has each driven run write that this engine keeps it, once in each term of the lease but the first. Runs that are
    /// lost have ended here afterwards, unless the store does not answer in time.
    pub(super) async fn keep_runs(&self) {
        let Some(lease) = self.journals.lease() else { return };
        let Some(term) = lease.term().filter(|term| self.claims.has_to_keep(*term)) else { return };
        let asked = stream::iter(self.runs.ids()).map(|run| self.keep(lease, run));
        let all =
            asked.buffer_unordered(MAX_CONCURRENT_LOADS).fold(true, async |all, asked| all && asked).await;
        if all {
            self.claims.note_kept(term);
        }
    }

    /// Has a run write that this engine keeps it, if the engine drives it. Returns `false` if the run could not be asked, and
    /// is to be asked again.
    async fn keep(&self, lease: &Arc<Lease>, run: RunId) -> bool {
        let Some(run) = self.runs.driven(&run) else { return true };
        let Some(asked) = lease.wait(run.ask_to_keep()).await else { return false };
        if let Some(answer) = asked {
            let kept_or_over = async {
                if answer.await.is_err() {
                    run.ended().await;
                }
            };
            // A store that does not answer in time delays no other run.
            lease.wait(kept_or_over).await;
        }
        true
    }
}
