//! Child runs that somebody waited for in an earlier process, and nobody does any more: they end (S31).

use super::Engine;
use super::claim::Look;
use super::resume::{Beginning, Loaded, Returns};
use crate::error::ResumeError;
use crate::id::RunId;
use crate::store::{Position, Record, RunQuery, StoreError};

impl Engine {
    /// Ends what the run waited for in an earlier process and has not asked for again, which is about to end itself. What
    /// the store does not tell is left to the next restart.
    pub(super) async fn end_forsaken_by(&self, parent: &RunId) {
        let Ok(store) = self.inner.store() else { return };
        // The ids of children begin like that.
        let prefix = format!("{parent}/");
        let mut query = RunQuery::new().open().after(prefix.as_str());
        while let Ok(page) = store.runs(&query).await {
            for run in page.iter().take_while(|run| run.id.as_str().starts_with(&prefix)) {
                let _ = self.end_if(&run.id, |beginning| names(beginning, parent)).await;
            }
            match page.last().filter(|last| last.id.as_str().starts_with(&prefix)) {
                Some(last) if page.len() == query.page() => query = query.after(last.id.clone()),
                _ => return,
            }
        }
    }

    /// Ends those of these runs whose parents have ended. What the store does not tell is left to the next restart.
    pub(super) async fn end_forsaken_among(&self, awaited: Vec<RunId>) {
        for run in awaited {
            let Ok(records) = self.history(&run).await else { continue };
            let Ok(Beginning { parent: Some(parent), .. }) = Beginning::of(&run, &records) else { continue };
            if self.here(&parent.run).is_none() && self.has_ended(&parent.run).await.unwrap_or(false) {
                let _ = self.end_if(&run, |beginning| names(beginning, &parent.run)).await;
            }
        }
    }

    /// Whether the store has the run's end, or nothing of it.
    async fn has_ended(&self, run: &RunId) -> Result<bool, StoreError> {
        Ok(self.history(run).await?.last().is_none_or(|last| matches!(last, Record::RunEnded { .. })))
    }

    /// Cancels a run that does not go on here, if it began like that, and waits for its end.
    async fn end_if(&self, id: &RunId, is_it: impl Fn(&Beginning) -> bool) -> Result<(), ResumeError> {
        let loading = self.hold(id).await.map_err(ResumeError::Store)?;
        if self.here(id).is_some() {
            return Ok(());
        }
        // One that another engine goes on with is that engine's to end.
        let end = match self.inner.lease {
            Some(_) => match self.look(id).await.map_err(ResumeError::Store)? {
                Look::Free(end) => Some(end),
                Look::Unknown | Look::Elsewhere(_) => return Ok(()),
            },
            None => None,
        };
        let records = self.history(id).await.map_err(ResumeError::Store)?;
        if end.is_some_and(|end| end != Position::default().after(records.len())) {
            return Ok(());
        }
        let beginning = Beginning::of(id, &records)?;
        let Some(parent) = beginning.parent.clone().filter(|_| is_it(&beginning)) else { return Ok(()) };
        let host = self.host_named(id, &beginning.workflow)?;
        let unwanted = parent.why_unwanted(true);
        let loaded = self.stored(
            id,
            &host,
            beginning,
            &records,
            Returns { unwanted: Some(&unwanted), ..Returns::default() },
        )?;
        drop(loading);
        if let Loaded::Resumed(run) = loaded {
            run.ended().await;
        }
        Ok(())
    }
}

/// Whether the run was begun for an execution of that one, which waited for it.
fn names(beginning: &Beginning, parent: &RunId) -> bool {
    beginning.awaited && beginning.parent.as_ref().is_some_and(|names| names.run == *parent)
}
