//! The runs of an engine's store, for its users: listing and reading them, resuming the open ones after a restart, and
//! handles on single ones.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};

use super::Engine;
use super::hosts::AskedType;
use super::journals::{Journals, Pages};
use super::load::{Loaded, LoadedBy, Resumes};
use super::owner::Owner;
use super::registry::{Lookup, RunRegistry, Unloaded};
use crate::id::RunId;
use crate::outcome::ResumeError;
use crate::run::{AnyRun, RunHandle, RunShared};
use crate::store::{Record, RunQuery, StoreError, StoredRun};
use crate::workflow::Workflow;

/// The result of [`Engine::resume_open_runs`] and of [`Engine::claim_orphans`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Resumed {
    /// The runs that this engine has resumed, and those that wait and that it has taken up without loading them.
    pub runs: Vec<RunId>,
    /// The runs that other engines drive, which hold their leases. Empty without [leases](crate::EngineBuilder::lease).
    pub elsewhere: Vec<RunId>,
    /// The runs that could not be resumed, with the reasons. Their journals stay as they are. A run that waits is here if its
    /// workflow is unknown or has changed; any other error of it shows when it is loaded.
    pub refused: Vec<(RunId, ResumeError)>,
    /// The error that ended the listing early, if one did. The lists above have the runs before it; later runs were not
    /// looked at.
    pub error: Option<StoreError>,
}

/// How many runs of a page are entered at a time: with leases each is a write, and stores share the cost of writes.
const ENTERED_AT_ONCE: usize = 256;

/// Where a listed run is.
enum Place {
    /// In this engine.
    Here,
    /// In another engine, which holds its lease.
    Elsewhere,
    /// It waits, and was entered or refused.
    Entered(Result<Loaded, ResumeError>),
    /// In the store alone. With leases its journal has to end where it is listed.
    Store { is_leased: bool },
}

/// Resumes the open runs of a store, page by page.
struct OpenRuns<'a, R> {
    journals: &'a Journals,
    runs: &'a RunRegistry,
    resumes: &'a R,
    resumed: Resumed,
    /// Children that are resumed when their parents ask for them.
    awaited: Vec<RunId>,
}

impl Engine {
    /// Resumes every open run of the engine's store that this engine does not drive: after a restart.
    ///
    /// Each run continues where its journal ends. Finished executions are not repeated, and interrupted ones run again.
    /// Waits keep their due times, and requests stay open.
    ///
    /// A run that waits is not loaded, unless it is due, is a child, or was written by another version of its workflow: the
    /// engine takes it up by the store's list, as a run that it has
    /// [unloaded](crate::EngineBuilder::unload_waiting_after), and resumes it once something reaches it.
    /// [`find`](Self::find) does not find such a run, and [`attach`](Self::attach) does.
    ///
    /// A child run that an execution waits for is resumed when the execution asks for it again. The engine cancels it if
    /// its parent has ended, or ends without asking.
    ///
    /// Without [leases](crate::EngineBuilder::lease) no other engine may drive runs of the store. With them, the engine
    /// skips runs whose owners hold a lease. Of two engines that resume one run, the second to write stops it with
    /// [`RunError::Conflict`](crate::RunError::Conflict).
    ///
    /// The call also clears contexts that a killed process left of ended runs, if the store of contexts [lists its
    /// scopes](crate::store::ContextStore::scopes). Contexts of threads that outlive their runs stay, and so do those
    /// of runs that can be [redriven](Self::redrive).
    ///
    /// O(open runs + records of the loaded ones) time, and O(runs with contexts) calls of the stores.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and errors of leases or of the list of runs before any run is resumed. A later error is
    /// in [`Resumed::error`], and the reasons for single runs are in [`Resumed::refused`].
    pub async fn resume_open_runs(&self) -> Result<Resumed, StoreError> {
        let inner = &self.inner;
        inner.journals.store()?;
        inner.take_lease().await?;
        inner.reminders.note_runtime();
        let (journals, runs) = (&inner.journals, &inner.runs);
        let open =
            OpenRuns { journals, runs, resumes: inner, resumed: Resumed::default(), awaited: Vec::new() };
        let (resumed, awaited) = open.all().await?;
        inner.load_waiting_with_messages();
        inner.orphaned_children().cancel_among(awaited, None).await;
        if resumed.error.is_none()
            && let Err(error) = inner.removal().clear_leftover_contexts().await
        {
            // The next call clears them.
            tracing::warn!(%error, "contexts of runs that have ended could not be looked for");
        }
        Ok(resumed)
    }

    /// Claims the runs of engines whose leases have run out, as each renewal of this engine's
    /// [lease](crate::EngineBuilder::lease) does.
    ///
    /// The engine resumes the orphans that it hosts and whose journals have not grown meanwhile, as far as its limits have
    /// free permits: any other engine may claim the rest. Orphans that wait need no permit, and are taken up without being
    /// loaded. Runs without an owner are not claimed; they are for [`resume_open_runs`](Self::resume_open_runs).
    ///
    /// For the duration of a lease that it has just taken, the engine claims nothing, and the result is empty: other
    /// engines may be as new, and have yet to take theirs again. `resume_open_runs` does not wait so long. The result is
    /// empty too without leases.
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow_core::prelude::*;
    /// use workflow_core::store::MemoryStore;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Greet;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Greeting;
    /// # struct Greeter;
    /// # #[workflow]
    /// # impl Greeter {
    /// #     #[step]
    /// #     async fn greet(&self, _greet: &Greet) -> Greeting { Greeting }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Greeter).store(MemoryStore::default());
    /// let engine = engine.lease(Duration::from_secs(30)).build()?;
    /// let claimed = engine.claim_orphans().await?;
    /// assert!(claimed.runs.is_empty(), "the lease is new");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and errors of the lease or of the list of runs before any run is claimed. A later error is in
    /// [`Resumed::error`], and the reasons for single runs are in [`Resumed::refused`].
    pub async fn claim_orphans(&self) -> Result<Resumed, StoreError> {
        self.inner.journals.store()?;
        self.inner.take_lease().await?;
        self.inner.claim_orphans().await
    }

    /// Lists a page of the runs in the engine's store, open and ended ones.
    ///
    /// An engine without a store lists the ended runs that it [keeps](crate::EngineBuilder::keep_ended), without children.
    /// They have no journal, so their [`end`](StoredRun::end) is 0, and they have no position of a stop event.
    /// [`running`](Self::running) has the ids of its open runs.
    ///
    /// # Errors
    /// [`StoreError::NoStore`] without a store, unless the engine keeps ended runs. Errors of the store.
    pub async fn runs(&self, query: &RunQuery) -> Result<Vec<StoredRun>, StoreError> {
        if let Some(ended) = self.inner.runs.ended() {
            return Ok(ended.list(query));
        }
        self.inner.journals.store()?.runs(query).await
    }

    /// Returns all records of a run in their order, and none for an unknown run. O(records) time and memory.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and errors of the store.
    pub async fn history(&self, run: &RunId) -> Result<Vec<Record>, StoreError> {
        self.inner.journals.read(run).await
    }

    /// Returns a handle on a run of this engine or of its store, or on an ended one that the engine
    /// [keeps](crate::EngineBuilder::keep_ended).
    ///
    /// If no engine drives the run, this engine resumes it, as [`resume_open_runs`](Self::resume_open_runs) does. For
    /// an ended run, the engine makes outcome, report and explanation from its journal; displayed items are in no
    /// journal. With [leases](crate::EngineBuilder::lease) a run is refused while another engine with a lease drives
    /// it.
    ///
    /// # Errors
    /// [`ResumeError`], with the reason.
    pub fn attach<W: Workflow>(
        &self,
        run: impl Into<RunId>,
    ) -> BoxFuture<'_, Result<RunHandle<W>, ResumeError>> {
        let run = run.into();
        Box::pin(async move { Ok(RunHandle::new(self.attached(&run, Some(AskedType::of::<W>())).await?)) })
    }

    /// Returns a handle on a run of any workflow, as [`attach`](Self::attach) does.
    ///
    /// ```
    /// use workflow_core::prelude::*;
    /// use workflow_core::store::MemoryStore;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Greet { name: String }
    /// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Greeting(String);
    /// # struct Greeter;
    /// # #[workflow]
    /// # impl Greeter {
    /// #     #[step]
    /// #     async fn greet(&self, greet: &Greet) -> Greeting { Greeting(greet.name.clone()) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder().workflow(Greeter).store(MemoryStore::default()).build()?;
    /// let started = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?;
    /// started.outcome().await?;
    ///
    /// let run = engine.attach_any(started.id().clone()).await?;
    /// assert_eq!(run.workflow(), "Greeter");
    /// assert_eq!(run.outcome_any().await?.to_json()?, serde_json::json!("Ada"));
    /// assert!(engine.attach_any("another").await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ResumeError`], with the reason.
    pub fn attach_any(&self, run: impl Into<RunId>) -> BoxFuture<'_, Result<AnyRun, ResumeError>> {
        let run = run.into();
        Box::pin(async move { Ok(AnyRun::new(self.attached(&run, None).await?)) })
    }

    /// Returns a handle on a run that this engine drives. Waits for nothing and reads no store.
    ///
    /// A run that the engine has unloaded is found as long as it has another handle or a viewer, and an ended one as long
    /// as the engine [keeps](crate::EngineBuilder::keep_ended) it. `None` for every other run, which
    /// [`attach_any`](Self::attach_any) may find in the store.
    pub fn find(&self, run: &RunId) -> Option<AnyRun> {
        let runs = &self.inner.runs;
        let shared = match runs.find(run) {
            Some(Lookup::Driven(shared) | Lookup::Unloaded(Unloaded { run: shared, .. })) => shared.upgrade(),
            None => None,
        };
        // Looked up last: a run that ends meanwhile is among the ended ones before it loses its entry.
        shared.or_else(|| runs.find_ended(run)).map(AnyRun::new)
    }

    async fn attached(&self, run: &RunId, asked: Option<AskedType>) -> Result<Arc<RunShared>, ResumeError> {
        match self.inner.find(run, asked).await? {
            Loaded::Resumed(shared) | Loaded::Here(shared) | Loaded::Ended(shared) => Ok(shared),
            Loaded::Waiting | Loaded::Awaited | Loaded::Moved(_) | Loaded::Full => {
                Err(ResumeError::UnknownRun { run: run.clone() })
            }
        }
    }
}

impl<R: Resumes> OpenRuns<'_, R> {
    /// Resumes all pages. An error of the first page is returned, and an error of a later page is part of the result.
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

    /// Resumes the runs of the next page. Returns whether there was one.
    async fn next_page(&mut self, pages: &mut Pages<'_>) -> Result<bool, StoreError> {
        let (departures, resumes, runs) = (self.runs.departures(), self.resumes, self.runs);
        let Some(page) = pages.next().await? else { return Ok(false) };
        let owners = self.journals.owners(&page).await?;
        let mut owners = owners.map(Vec::into_iter);
        let page: Vec<_> =
            page.into_iter().map(|run| (run, owners.as_mut().and_then(Iterator::next))).collect();
        // Those that wait first: each may cost a write, and none of them is a child.
        let entered = stream::iter(page).map(async |(run, owner)| {
            let entered = match &owner {
                // This engine drives the run, or has unloaded it.
                _ if runs.has(&run.id) => Place::Here,
                Some(Owner::Elsewhere(_)) => Place::Elsewhere,
                _ => match resumes.enter(&run, departures).await {
                    Ok(None) => Place::Store { is_leased: owner.is_some() },
                    Ok(Some(entered)) => Place::Entered(Ok(entered)),
                    Err(error) => Place::Entered(Err(error)),
                },
            };
            (run, entered)
        });
        let entered: Vec<_> = entered.buffered(ENTERED_AT_ONCE).collect().await;
        for (run, place) in entered {
            self.resume(run, place).await;
        }
        Ok(true)
    }

    /// Resumes one listed run, unless that was decided, and sorts it into the result.
    async fn resume(&mut self, run: StoredRun, place: Place) {
        let loaded = match place {
            Place::Here => return,
            Place::Elsewhere => return self.resumed.elsewhere.push(run.id),
            Place::Entered(entered) => entered,
            // Its parent may have resumed it meanwhile.
            Place::Store { .. } if self.runs.has(&run.id) => return,
            Place::Store { is_leased } => match self.resumes.load_parent(&run).await {
                Ok(()) => self.resumes.load(&run.id, is_leased.then_some(run.end), LoadedBy::Engine).await,
                Err(error) => Err(ResumeError::Store(error)),
            },
        };
        let id = run.id;
        match loaded {
            Ok(Loaded::Resumed(_) | Loaded::Waiting) => self.resumed.runs.push(id),
            Ok(Loaded::Awaited) => self.awaited.push(id),
            Ok(Loaded::Here(_) | Loaded::Ended(_) | Loaded::Full) => {}
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

    // S87
    #[test]
    fn runs_that_wait_are_entered_before_any_other_is_loaded_and_parents_before_children() {
        let written = Written::default();
        written.begin("b", Began::default());
        written.begin("c/x-w", Began { parent: Some("c"), ..Began::default() });
        written.begin("d", Began::default());
        written.waits("d");
        let runs = RunRegistry::new(Ending::default().patience());
        let (resumed, awaited, asked) = resume(&written.journals(), &runs);
        assert_eq!(asked, ["enter d", "load b at any", "parent c", "load c/x-w at any"]);
        assert_eq!((resumed.runs, awaited), (vec!["d".into()], vec!["c/x-w".into()]));
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
