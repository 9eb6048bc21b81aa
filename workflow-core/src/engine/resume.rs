//! The runs that an engine's store has: listing and reading them, resuming all open ones after a restart, and handles on
//! single ones.

use futures_util::future::BoxFuture;

use super::Engine;
use super::journals::{Journals, Pages};
use super::load::{Loaded, Resumes};
use super::owner::Owner;
use super::registry::RunRegistry;
use crate::error::ResumeError;
use crate::id::RunId;
use crate::run::RunHandle;
use crate::store::{Record, RunQuery, StoreError, StoredRun};
use crate::workflow::Workflow;

/// What became of the open runs of a store.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Resumed {
    /// Those that go on here.
    pub runs: Vec<RunId>,
    /// Those that are left to other engines, which hold their leases: with [leases](crate::EngineBuilder::lease) alone.
    pub elsewhere: Vec<RunId>,
    /// Those that do not, and why. They are left as they are.
    pub refused: Vec<(RunId, ResumeError)>,
    /// Why the store's list of runs breaks off, if it does: what comes behind was not looked at, and the lists above say
    /// what became of the runs before.
    pub error: Option<StoreError>,
}

/// Resumes the open runs of a store, page by page.
struct OpenRuns<'a, R> {
    journals: &'a Journals,
    runs: &'a RunRegistry,
    resumes: &'a R,
    resumed: Resumed,
    /// Those that are resumed when their parents ask for them.
    awaited: Vec<RunId>,
}

impl Engine {
    /// Goes on with every run of the engine's store that has not ended and does not go on here: after a restart. Each
    /// comes to stand where its journal ends (S39): what it has is not repeated, executions that it has no end of run
    /// again, waits go on until the times that they were set for, requests stay open. Child runs that an execution
    /// waits for go on when it asks for them again, and end when their parent has ended or does.
    ///
    /// Without [leases](crate::EngineBuilder::lease) the store must not be in use by another engine that drives its runs;
    /// with them, runs whose engines hold theirs are left alone. Of two that go on with one run, the second to write
    /// stops with [`RunError::Conflict`](crate::RunError::Conflict) (S40).
    ///
    /// Contexts that an earlier process left of runs that have ended, because it was killed before it cleared them, are
    /// cleared as well, if the store of contexts [lists its scopes](crate::ContextStore::scopes). Those of threads that
    /// outlive their runs stay.
    ///
    /// O(records of open runs) time, and O(runs with contexts) calls of the stores.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and what the store reports of the list of its runs, or of leases, if no run goes on yet; later
    /// than that it is in [`Resumed::error`]. Why single runs do not go on is in [`Resumed::refused`].
    pub async fn resume_open_runs(&self) -> Result<Resumed, StoreError> {
        let inner = &self.inner;
        inner.journals.store()?;
        inner.take_lease().await?;
        let (journals, runs) = (&inner.journals, &inner.runs);
        let open =
            OpenRuns { journals, runs, resumes: inner, resumed: Resumed::default(), awaited: Vec::new() };
        let (resumed, awaited) = open.all().await?;
        inner.orphans().end_among(awaited).await;
        if resumed.error.is_none()
            && let Err(error) = inner.removal().clear_left_contexts().await
        {
            // They are in nobody's way until the next time.
            tracing::warn!(%error, "contexts of runs that have ended could not be looked for");
        }
        Ok(resumed)
    }

    /// The runs that the engine's store has, a page at a time, whether they go on or have ended.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and what the store reports.
    pub async fn runs(&self, query: &RunQuery) -> Result<Vec<StoredRun>, StoreError> {
        self.inner.journals.store()?.runs(query).await
    }

    /// Everything that the engine's store has of a run, in its order; nothing of a run that it does not have.
    /// O(records) time and memory.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and what the store reports.
    pub async fn history(&self, run: &RunId) -> Result<Vec<Record>, StoreError> {
        self.inner.journals.read(run).await
    }

    /// A handle on a run: on one that goes on here, or else on one that the engine's store has. One that has not ended
    /// goes on here from then on, as by [`resume_open_runs`](Self::resume_open_runs); of one that has ended, outcome,
    /// report and explanation are made of its journal. What it showed is in no journal. With
    /// [leases](crate::EngineBuilder::lease), one that goes on in another engine that holds its own is refused.
    ///
    /// # Errors
    /// [`ResumeError`].
    pub fn attach<W: Workflow>(
        &self,
        run: impl Into<RunId>,
    ) -> BoxFuture<'_, Result<RunHandle<W>, ResumeError>> {
        let run = run.into();
        Box::pin(async move {
            match self.inner.find(&run, W::TABLE.name()).await? {
                Loaded::Resumed(shared) | Loaded::Here(shared) | Loaded::Ended(shared) => {
                    Ok(RunHandle::new(shared))
                }
                Loaded::Awaited | Loaded::Moved(_) => Err(ResumeError::UnknownRun { run }),
            }
        })
    }
}

impl<R: Resumes> OpenRuns<'_, R> {
    /// An error of the first page is the answer. One of a later page is part of it.
    async fn all(mut self) -> Result<(Resumed, Vec<RunId>), StoreError> {
        let mut pages = Pages::of(&**self.journals.store()?, RunQuery::new().open());
        let mut is_first = true;
        loop {
            match self.next_page(&mut pages).await {
                Ok(true) => is_first = false,
                Ok(false) => break,
                Err(error) if is_first => return Err(error),
                Err(error) => {
                    self.resumed.error = Some(error);
                    break;
                }
            }
        }
        Ok((self.resumed, self.awaited))
    }

    /// Resumes the runs of the next page; whether there is one.
    async fn next_page(&mut self, pages: &mut Pages<'_>) -> Result<bool, StoreError> {
        let Some(page) = pages.next().await? else { return Ok(false) };
        let owners = self.journals.owners(&page).await?;
        for (place, run) in page.into_iter().enumerate() {
            let owner = owners.as_ref().map(|owners| &owners[place]);
            self.resume(run, owner).await;
        }
        Ok(true)
    }

    async fn resume(&mut self, run: StoredRun, owner: Option<&Owner>) {
        let StoredRun { id, end, .. } = run;
        // A run that was unloaded here waits.
        if self.runs.has(&id) {
            return;
        }
        if matches!(owner, Some(Owner::Elsewhere(_))) {
            self.resumed.elsewhere.push(id);
            return;
        }
        match self.resumes.load(&id, owner.is_some().then_some(end)).await {
            Ok(Loaded::Resumed(_)) => self.resumed.runs.push(id),
            Ok(Loaded::Awaited) => self.awaited.push(id),
            Ok(Loaded::Here(_) | Loaded::Ended(_)) => {}
            Ok(Loaded::Moved(_)) => self.resumed.elsewhere.push(id),
            Err(error) => self.resumed.refused.push((id, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ending::Ending;
    use super::super::fixtures::{Began, Resumer, Written, now};
    use super::*;
    use crate::id::EngineId;

    fn resume(journals: &Journals, runs: &RunRegistry) -> (Resumed, Vec<RunId>, Vec<String>) {
        let fake = Resumer::default();
        let (resumed, awaited) = (Resumed::default(), Vec::new());
        let open = OpenRuns { journals, runs, resumes: &fake, resumed, awaited };
        let (resumed, awaited) = now(open.all()).unwrap();
        (resumed, awaited, fake.asked())
    }

    #[test]
    fn open_runs_are_resumed_unless_they_are_here_or_elsewhere() {
        let (written, other) = (Written::default(), EngineId::generate());
        for run in ["driven", "ended", "m", "unfit-u", "w"] {
            written.begin(run, Began::default());
        }
        written.begin("x", Began { owner: Some(&other), ..Began::default() });
        written.end("ended");
        written.hold_lease(&other);
        let runs = RunRegistry::new(Ending::default().patience());
        let _driven = runs.reserve(&"driven".into());
        let (resumed, awaited, asked) = resume(&written.leased(&EngineId::generate()), &runs);
        assert_eq!(asked, ["load m at 2", "load unfit-u at 2", "load w at 2"]);
        assert_eq!(resumed.elsewhere, ["m".into(), "x".into()]);
        assert_eq!(resumed.refused.iter().map(|(run, _)| run.to_string()).collect::<Vec<_>>(), ["unfit-u"]);
        assert_eq!(awaited, ["w".into()]);
    }

    #[test]
    fn without_leases_a_run_is_resumed_wherever_its_journal_ends() {
        let written = Written::default();
        written.begin("w", Began::default());
        let runs = RunRegistry::new(Ending::default().patience());
        let (_, _, asked) = resume(&written.journals(), &runs);
        assert_eq!(asked, ["load w at any"]);
    }
}
