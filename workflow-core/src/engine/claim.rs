//! Claiming orphans: open runs whose owners hold no lease any more (S40).
//!
//! A search reads the list of open runs page by page and asks for the owners of each page. It resumes every orphan that
//! this engine hosts, one after the other. A failed search is not repeated; the next renewal of the lease starts
//! another.
//!
//! ```text
//! listed      owner          parent    result
//! ────────    ────────────   ───────   ─────────────────────────────────────
//! a           lease held     –         not here
//! a/greet…    no lease       not here  left to the engine that has `a`
//! b           no lease       –         resumed; its first append is awaited
//! b/greet…    no lease       here      resumed, or left until `b` asks for it
//! ```
//!
//! Invariant: a child is claimed only where its parent is. The list is ordered by id, and a child's id begins with its
//! parent's, so the search has decided about a parent before it sees a child.
//!
//! Example: engine `e1` is gone with runs `a` and `a/greet-x1.1`. Engine `e2` hosts the workflow of `a` and
//! resumes it. It waits until the store has the first write of `a`, which is the claim. Then the child is an
//! orphan whose parent is here, and `e2` resumes it, or leaves it until `a` asks for it. If `e3` was faster
//! with `a`, `e2` leaves the child to `e3`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use super::Inner;
use super::ending::Ending;
use super::hosts::Hosts;
use super::journals::{Journals, Pages};
use super::load::{Loaded, Resumes};
use super::owner::Owner;
use super::registry::{Lookup, RunRegistry};
use crate::config::ConfigError;
use crate::id::RunId;
use crate::outcome::ResumeError;
use crate::panics::locked;
use crate::store::{Position, Record, RunQuery, StoreError, StoredRun};

/// The orphans that do not fit their workflows, with the ends of their journals. The next search reads such a run only
/// if its journal has another end.
#[derive(Default)]
pub(super) struct IncompatibleOrphans(Mutex<HashMap<RunId, Position>>);

/// One search over all open runs.
pub(super) struct OrphanSearch<'a, R> {
    /// Lists runs and asks for their owners.
    journals: &'a Journals,
    /// The workflows of this engine: an orphan of any other is left to an engine that hosts it.
    hosts: &'a Hosts,
    /// The runs of this engine. A parent is here if it is in it.
    runs: &'a RunRegistry,
    /// An engine that ends claims nothing more.
    ending: &'a Ending,
    /// The engine's orphans that did not fit at the last search. Each search replaces them.
    incompatible: &'a IncompatibleOrphans,
    /// Resumes the orphans; in tests a fake.
    resumes: &'a R,
    /// Grows with each listed run. Its findings replace those of the search before, if this one is not cut off by the
    /// end of the engine.
    result: SearchResult,
}

/// The findings of a search so far.
#[derive(Default)]
struct SearchResult {
    /// Open runs that this engine does not drive. Their children belong elsewhere too.
    not_here: HashSet<RunId>,
    /// Orphaned children that executions of their parents wait for.
    awaited: Vec<RunId>,
    /// Orphans that do not fit, for the next search.
    incompatible: HashMap<RunId, Position>,
}

impl<R: Resumes> OrphanSearch<'_, R> {
    /// Searches once. Returns the orphaned children that executions wait for, or `None` if the engine ends.
    async fn all(mut self) -> Option<Vec<RunId>> {
        // An error ends the search. The claims before it count, and the next search finds the rest.
        let _ = self.search().await;
        if self.ending.has_begun() {
            return None;
        }
        let SearchResult { awaited, incompatible, .. } = self.result;
        *locked(&self.incompatible.0) = incompatible;
        Some(awaited)
    }

    /// Goes through all open runs, page by page, and claims the orphans among them.
    async fn search(&mut self) -> Result<(), StoreError> {
        let mut pages = Pages::of(&**self.journals.store()?, RunQuery::new().open());
        while let Some(page) = pages.next().await? {
            // One question per page: the answer is at most one page old when a run of it is claimed. The
            // first write of a claimed run settles who owns it.
            let Some(owners) = self.journals.owners(&page).await? else { return Ok(()) };
            for (run, owner) in page.into_iter().zip(owners) {
                if self.ending.has_begun() {
                    return Ok(());
                }
                if owner == Owner::Orphan && self.may_claim(&run).await {
                    self.claim(&run).await;
                }
                // Noted after the claim, so that the children below find the outcome.
                if !self.is_here(&run.id) {
                    self.result.not_here.insert(run.id);
                }
            }
        }
        Ok(())
    }

    /// Whether this engine has the run. A run whose first append the store has not answered may still be lost to
    /// another engine.
    fn is_here(&self, run: &RunId) -> bool {
        match self.runs.find(run) {
            Some(Lookup::Driven(run)) => run.upgrade().is_none_or(|run| run.has_begun()),
            Some(Lookup::Unloaded(_)) => true,
            None => false,
        }
    }

    /// Whether this engine can resume the orphan, and the orphan belongs here.
    async fn may_claim(&mut self, run: &StoredRun) -> bool {
        if !self.hosts.has(&run.run.workflow) {
            return false;
        }
        // The same journal would be refused again, and reading it costs more than this look.
        if locked(&self.incompatible.0).get(&run.id) == Some(&run.end) {
            self.result.incompatible.insert(run.id.clone(), run.end);
            return false;
        }
        // A parent comes before its children, whose ids begin with its id.
        let not_here = &self.result.not_here;
        let mut above = run.id.as_str().match_indices('/').map(|(at, _)| RunId::new(&run.id.as_str()[..at]));
        if !above.any(|above| not_here.contains(&above)) {
            return true;
        }
        // An id may have a slash without being a child's. The first record says who the parent is.
        let Ok(store) = self.journals.store() else { return false };
        let Ok(first) = store.read(&run.id, Position(0), 1).await else { return false };
        let Some(Record::RunStarted { parent, .. }) = first.first() else { return false };
        parent.as_ref().is_none_or(|parent| !not_here.contains(&parent.run))
    }

    /// Resumes one orphan, and notes in `result` why it was not resumed.
    async fn claim(&mut self, run: &StoredRun) {
        match self.resumes.load(&run.id, Some(run.end)).await {
            Ok(Loaded::Resumed(shared)) => {
                // Its children are claimed here only if the run began here. If the store does not answer in time, the
                // search continues: the run keeps waiting in its own task, and its children wait for a later search.
                if let Some(lease) = self.journals.lease() {
                    lease.wait(shared.status.begun()).await;
                }
            }
            Ok(Loaded::Awaited) => self.result.awaited.push(run.id.clone()),
            // The next search asks the sources of its configuration again.
            Err(ResumeError::Config(ConfigError::Unavailable { .. })) => {}
            Err(ResumeError::Incompatible { .. } | ResumeError::Config(_)) => {
                self.result.incompatible.insert(run.id.clone(), run.end);
            }
            Ok(Loaded::Here(_) | Loaded::Ended(_) | Loaded::Moved(_)) | Err(_) => {}
        }
    }
}

impl Inner {
    /// Resumes the orphans of the engine's store, and cancels orphaned children whose parents have ended.
    pub(super) async fn claim_orphans(self: &Arc<Self>) {
        let search = OrphanSearch {
            journals: &self.journals,
            hosts: &self.hosts,
            runs: &self.runs,
            ending: &self.ending,
            incompatible: &self.incompatible,
            resumes: self,
            result: SearchResult::default(),
        };
        if let Some(awaited) = search.all().await {
            self.orphaned_children().cancel_among(awaited, self.journals.lease()).await;
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
        incompatible: IncompatibleOrphans,
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
                incompatible: IncompatibleOrphans::default(),
                resumer: Resumer::default(),
            }
        }

        /// Searches once: the orphans that are awaited.
        fn search(&self) -> Option<Vec<RunId>> {
            let search = OrphanSearch {
                journals: &self.journals,
                hosts: &self.hosts,
                runs: &self.runs,
                ending: &self.ending,
                incompatible: &self.incompatible,
                resumes: &self.resumer,
                result: SearchResult::default(),
            };
            now(search.all())
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
