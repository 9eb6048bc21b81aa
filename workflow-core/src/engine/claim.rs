//! Claiming orphans: runs that nobody drives any more, because the engines that did hold no lease (S40).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use super::Inner;
use super::ending::Ending;
use super::hosts::Hosts;
use super::journals::{Journals, Pages};
use super::load::{Loaded, Resumes};
use super::owner::Owner;
use super::registry::{Lookup, RunRegistry};
use crate::error::ResumeError;
use crate::id::RunId;
use crate::panics::locked;
use crate::store::{Position, Record, RunQuery, StoreError, StoredRun};

/// The orphans that do not fit their workflows, by where their journals end: they are not read again and again.
#[derive(Default)]
pub(super) struct IncompatibleOrphans(Mutex<HashMap<RunId, Position>>);

/// One search of all open runs, which resumes the orphans among them, one after the other.
pub(super) struct Claim<'a, R> {
    journals: &'a Journals,
    hosts: &'a Hosts,
    runs: &'a RunRegistry,
    ending: &'a Ending,
    unfit: &'a IncompatibleOrphans,
    resumes: &'a R,
    found: Found,
}

#[derive(Default)]
struct Found {
    /// Open runs that are not driven here: where they are, their children are.
    not_here: HashSet<RunId>,
    /// Orphans that their parents' executions wait for.
    awaited: Vec<RunId>,
    unfit: HashMap<RunId, Position>,
}

impl<R: Resumes> Claim<'_, R> {
    /// Answers the orphans that their parents' executions wait for; none if the engine ends. The next search finds those
    /// that the store does not tell of.
    async fn all(mut self) -> Option<Vec<RunId>> {
        // An error ends the search: the runs before it count.
        let _ = self.search().await;
        if self.ending.has_begun() {
            return None;
        }
        let Found { awaited, unfit, .. } = self.found;
        *locked(&self.unfit.0) = unfit;
        Some(awaited)
    }

    async fn search(&mut self) -> Result<(), StoreError> {
        let mut pages = Pages::of(&**self.journals.store()?, RunQuery::new().open());
        while let Some(page) = pages.next().await? {
            let Some(owners) = self.journals.owners(&page).await? else { return Ok(()) };
            for (run, owner) in page.into_iter().zip(owners) {
                if self.ending.has_begun() {
                    return Ok(());
                }
                if owner == Owner::Orphan && self.may_claim(&run).await {
                    self.claim(&run).await;
                }
                if !self.is_here(&run.id) {
                    self.found.not_here.insert(run.id);
                }
            }
        }
        Ok(())
    }

    /// Whether this engine has the run. A run whose first append the store has not answered may still be lost to another
    /// engine.
    fn is_here(&self, run: &RunId) -> bool {
        match self.runs.find(run) {
            Some(Lookup::Driven(run)) => run.upgrade().is_none_or(|run| run.has_begun()),
            Some(Lookup::Unloaded(_)) => true,
            None => false,
        }
    }

    /// Whether the orphan can be resumed here, and belongs here: a child belongs where its parent is.
    async fn may_claim(&mut self, run: &StoredRun) -> bool {
        if !self.hosts.has(&run.run.workflow) {
            return false;
        }
        if locked(&self.unfit.0).get(&run.id) == Some(&run.end) {
            self.found.unfit.insert(run.id.clone(), run.end);
            return false;
        }
        // A run comes before its children: their ids begin with its own.
        let not_here = &self.found.not_here;
        let mut above = run.id.as_str().match_indices('/').map(|(at, _)| RunId::new(&run.id.as_str()[..at]));
        if !above.any(|above| not_here.contains(&above)) {
            return true;
        }
        let Ok(store) = self.journals.store() else { return false };
        let Ok(first) = store.read(&run.id, Position(0), 1).await else { return false };
        let Some(Record::RunStarted { parent, .. }) = first.first() else { return false };
        parent.as_ref().is_none_or(|parent| !not_here.contains(&parent.run))
    }

    async fn claim(&mut self, run: &StoredRun) {
        match self.resumes.load(&run.id, Some(run.end)).await {
            Ok(Loaded::Resumed(shared)) => {
                // Its children are resumed here only if it began here. If the store does not answer in time, the search
                // continues: this run keeps waiting in its own task, and its children wait for a later search.
                if let Some(lease) = self.journals.lease() {
                    lease.wait(shared.status.begun()).await;
                }
            }
            Ok(Loaded::Awaited) => self.found.awaited.push(run.id.clone()),
            Err(ResumeError::Incompatible { .. } | ResumeError::Config(_)) => {
                self.found.unfit.insert(run.id.clone(), run.end);
            }
            Ok(Loaded::Here(_) | Loaded::Ended(_) | Loaded::Moved(_)) | Err(_) => {}
        }
    }
}

impl Inner {
    /// Resumes the orphans of the engine's store, and ends those that nobody waits for any more.
    pub(super) async fn claim_orphans(self: &Arc<Self>) {
        let claim = Claim {
            journals: &self.journals,
            hosts: &self.hosts,
            runs: &self.runs,
            ending: &self.ending,
            unfit: &self.unfit,
            resumes: self,
            found: Found::default(),
        };
        if let Some(awaited) = claim.all().await {
            self.orphans().end_among(awaited, self.journals.lease()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Began, Resumer, Written, greeter, now};
    use super::*;
    use crate::config::ConfigSet;
    use crate::id::EngineId;

    /// The parts that a search needs, of an engine that has a lease.
    struct Parts {
        journals: Journals,
        hosts: Hosts,
        runs: RunRegistry,
        ending: Ending,
        unfit: IncompatibleOrphans,
        resumer: Resumer,
    }

    impl Parts {
        fn of(written: &Written) -> Self {
            let ending = Ending::default();
            Self {
                journals: written.leased(&EngineId::generate()),
                hosts: Hosts::new([greeter()].into_iter(), ConfigSet::default()),
                runs: RunRegistry::new(ending.patience()),
                ending,
                unfit: IncompatibleOrphans::default(),
                resumer: Resumer::default(),
            }
        }

        /// Searches once: the orphans that are awaited.
        fn search(&self) -> Option<Vec<RunId>> {
            let claim = Claim {
                journals: &self.journals,
                hosts: &self.hosts,
                runs: &self.runs,
                ending: &self.ending,
                unfit: &self.unfit,
                resumes: &self.resumer,
                found: Found::default(),
            };
            now(claim.all())
        }
    }

    fn orphans(runs: &[(&str, Option<&str>)]) -> Written {
        let (written, gone) = (Written::default(), EngineId::generate());
        for (run, parent) in runs {
            written.begin(run, Began { parent: *parent, owner: Some(&gone), ..Began::default() });
        }
        written
    }

    #[test]
    fn orphans_are_resumed_where_their_journals_end_and_others_are_not() {
        let written = orphans(&[("a", None), ("b-m", None), ("c-w", None)]);
        written.begin("unowned", Began::default());
        let parts = Parts::of(&written);
        assert_eq!(parts.search(), Some(vec!["c-w".into()]));
        assert_eq!(parts.resumer.asked(), ["load a at 2", "load b-m at 2", "load c-w at 2"]);
    }

    #[test]
    fn a_child_is_claimed_only_where_its_parent_is() {
        let parts = Parts::of(&orphans(&[("a", None), ("a/x", Some("a")), ("b/x", Some("b"))]));
        parts.search();
        assert_eq!(parts.resumer.asked(), ["load a at 2", "load b/x at 2"]);
        let _driven = parts.runs.reserve(&"a".into());
        parts.search();
        assert_eq!(parts.resumer.asked(), ["load a at 2", "load a/x at 2", "load b/x at 2"]);
    }

    #[test]
    fn an_orphan_that_does_not_fit_is_read_once() {
        let parts = Parts::of(&orphans(&[("a-u", None)]));
        for asked in [1, 0, 0] {
            parts.search();
            assert_eq!(parts.resumer.asked().len(), asked);
        }
    }

    #[test]
    fn an_engine_that_ends_claims_nothing() {
        let parts = Parts::of(&orphans(&[("a", None)]));
        parts.ending.begin();
        assert_eq!(parts.search(), None);
        assert!(parts.resumer.asked().is_empty());
    }
}
