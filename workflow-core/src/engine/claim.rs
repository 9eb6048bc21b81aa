//! Claiming orphans: open runs whose owners hold no lease any more (S40, S66).
//!
//! A search asks for the leases, lists the open runs of other owners page by page, asks again, and resumes every orphan
//! that this engine hosts: at most 32 at a time, in an order that differs from engine to engine. A failed search is not
//! repeated; the next renewal of the lease starts another.
//!
//! ```text
//! listed      owner          parent    result
//! ────────    ────────────   ───────   ─────────────────────────────────────
//! –           lease held     –         not listed
//! a/greet…    no lease       not here  left to the engine that has `a`, as the store says
//! b           no lease       –         resumed; its first append is awaited. One that waits is entered as unloaded
//! b/greet…    no lease       here      resumed, or left until `b` asks for it
//! ```
//!
//! A run of this engine's own that it stopped driving because its store was unavailable is an orphan too, and only this
//! engine claims it, as long as it holds its lease. If it is a child whose parent another engine has, the engine releases
//! it: the store has an owner for it from then on that never holds a lease.
//!
//! Invariant: a child is claimed only where its parent is, or if its parent has ended. The list is ordered by id, and a
//! child's id begins with its parent's. Within a page, ids with fewer slashes come first. So the search has decided about a
//! parent before it sees a child.
//!
//! Example: engine `e1` is gone with runs `a` and `a/greet-x1.1`. Engine `e2` hosts the workflow of `a` and
//! resumes it. It waits until the store has the first write of `a`, which is the claim. Then the child is an
//! orphan whose parent is here, and `e2` resumes it, or leaves it until `a` asks for it. If `e3` was faster
//! with `a`, `e2` leaves the child to `e3`.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt as _, stream};

use super::Inner;
use super::ending::Ending;
use super::hosts::Hosts;
use super::journals::{Journals, Pages};
use super::load::{Loaded, Resumes};
use super::owner::Owner;
use super::registry::{Lookup, RunRegistry};
use super::reminders::MAX_CONCURRENT_LOADS;
use super::resume::Resumed;
use crate::config::ConfigError;
use crate::id::{EngineId, RunId};
use crate::lease::Lease;
use crate::outcome::{ResumeError, RunError};
use crate::panics::locked;
use crate::store::{Position, Record, RunQuery, StoreError, StoredRun};

/// The facts that an engine keeps from one search to the next.
#[derive(Default)]
pub(super) struct ClaimMemory {
    /// The orphans that do not fit their workflows, with the ends of their journals. The next search reads such a run only
    /// if its journal has another end.
    incompatible: Mutex<HashMap<RunId, Position>>,
    /// Whether the engine has stopped driving a run because its store was unavailable, since the last search. The next
    /// one looks at the engine's own runs too.
    has_lost: AtomicBool,
    /// The latest term of the lease for which every driven run was asked to write that it is kept; 0 for the first.
    kept: AtomicU64,
}

impl ClaimMemory {
    /// Whether driven runs are to write that they are kept: the lease had run out before this term.
    pub(super) fn has_to_keep(&self, term: u64) -> bool {
        term > self.kept.load(Ordering::Acquire).max(1)
    }

    /// Notes that every driven run was asked in this term. Another engine may have the parent of a child that no longer is
    /// here, because its parent was unloaded in its pause.
    pub(super) fn note_kept(&self, term: u64) {
        self.kept.fetch_max(term, Ordering::AcqRel);
        self.has_lost.store(true, Ordering::Release);
    }

    /// Notes how a run ended here. The next search resumes one that the store did not let continue, or leaves it to the
    /// engine with its parent. A conflict may be with the engine's own write, which the store took and did not confirm.
    pub(super) fn note_end(&self, error: &RunError) {
        let may_be_lost = matches!(
            error,
            RunError::Store { source: StoreError::Unavailable { .. } }
                | RunError::Conflict { .. }
                | RunError::Detached
        );
        if may_be_lost {
            self.has_lost.store(true, Ordering::Release);
        }
    }
}

/// One search over the open runs of other owners.
pub(super) struct OrphanSearch<'a, R> {
    /// Lists runs and asks for their owners.
    journals: &'a Journals,
    /// The workflows of this engine: an orphan of any other is left to an engine that hosts it.
    hosts: &'a Hosts,
    /// The runs of this engine. A parent is here if it is in it.
    runs: &'a RunRegistry,
    /// An engine that ends claims nothing more.
    ending: &'a Ending,
    /// Each search replaces the facts of the one before.
    memory: &'a ClaimMemory,
    /// Resumes the orphans; in tests a fake.
    resumes: &'a R,
    /// Whether the lease is too new for a claim. The search then only leaves children to the engines with their parents.
    only_leaves: bool,
}

/// The findings of a search so far.
#[derive(Default)]
struct SearchResult {
    /// The orphans that were resumed, and those that were not.
    resumed: Resumed,
    /// Orphaned children that executions of their parents wait for.
    awaited: Vec<RunId>,
    /// Orphans that do not fit, for the next search.
    incompatible: HashMap<RunId, Position>,
    /// Whether the next search has to look at the engine's own runs again.
    leaves_own: bool,
}

/// Where an orphan belongs.
#[derive(PartialEq)]
enum Place {
    Here,
    /// Where its parent is resumed, which is not decided yet.
    WithParent,
    /// Another engine has its parent.
    Elsewhere,
}

/// What became of one orphan.
enum Claimed {
    By(Result<Loaded, ResumeError>),
    /// It did not fit at the last search, and its journal is as it was.
    Unfit,
    /// It is left to another engine.
    Left,
    /// This engine had it, and has left it to the engine that has its parent.
    Released,
}

impl Claimed {
    /// Whether a later claim may succeed with the same journal.
    fn comes_again(&self) -> bool {
        match self {
            Self::By(Ok(loaded)) => matches!(loaded, Loaded::Full),
            Self::By(Err(error)) => !stays_refused(error),
            Self::Unfit => false,
            // A release changes nothing if the run was written to meanwhile, or was here again.
            Self::Left | Self::Released => true,
        }
    }
}

impl<R: Resumes> OrphanSearch<'_, R> {
    /// Searches once. Returns the orphans, and the children among them that executions wait for.
    async fn all(self) -> Result<(Resumed, Vec<RunId>), StoreError> {
        // The runs of this engine are looked at only if it has lost one, because it drives nearly all of them.
        let has_lost = self.memory.has_lost.swap(false, Ordering::AcqRel);
        let mut found = SearchResult::default();
        let searched = self.search(has_lost, &mut found).await;
        if has_lost && (searched.is_err() || found.leaves_own) {
            self.memory.has_lost.store(true, Ordering::Release);
        }
        if self.ending.has_begun() {
            return Ok((found.resumed, Vec::new()));
        }
        let SearchResult { mut resumed, awaited, incompatible, .. } = found;
        if !self.only_leaves {
            *locked(&self.memory.incompatible) = incompatible;
        }
        // An error ends the search. The claims before it count, and the next search finds the rest.
        resumed.error = match searched {
            Err(error) if resumed.runs.is_empty() && resumed.refused.is_empty() => return Err(error),
            searched => searched.err(),
        };
        Ok((resumed, awaited))
    }

    /// Goes through the open runs of other owners, page by page, and claims the orphans among them.
    async fn search(&self, has_lost: bool, found: &mut SearchResult) -> Result<(), StoreError> {
        let Some(lease) = self.journals.lease() else { return Ok(()) };
        let Some(mut holders) = lease.renew().await? else { return Ok(()) };
        let own = |run: &StoredRun| run.run.owner.as_ref() == Some(lease.engine());
        if has_lost {
            holders.retain(|holder| holder != lease.engine());
        }
        let query = RunQuery::new().open().not_owned_by(holders);
        let mut pages = Pages::of(&**self.journals.store()?, query);
        while let Some(page) = pages.next().await? {
            // One question per page: the answer is at most one page old when a run of it is claimed. The
            // first write of a claimed run settles who owns it.
            let Some(owners) = self.journals.owners(&page).await? else { return Ok(()) };
            // Parents first: a child's id has more slashes than its parent's.
            let mut by_depth: BTreeMap<usize, Vec<StoredRun>> = BTreeMap::new();
            for (run, owner) in page.into_iter().zip(owners) {
                let is_lost = has_lost && own(&run) && !self.runs.has(&run.id);
                if is_lost || owner == Owner::Orphan && !self.only_leaves {
                    by_depth.entry(run.id.as_str().matches('/').count()).or_default().push(run);
                }
            }
            for mut orphans in by_depth.into_values() {
                orphans.sort_by_cached_key(|run| rank(lease.engine(), &run.id));
                let claims = stream::iter(orphans).map(async |run| (self.claim(lease, &run).await, run));
                let mut claims = claims.buffer_unordered(MAX_CONCURRENT_LOADS);
                while let Some((claimed, run)) = claims.next().await {
                    found.leaves_own |= own(&run) && claimed.comes_again();
                    found.note(run, claimed);
                }
            }
            if self.ending.has_begun() {
                return Ok(());
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

    /// Where a run belongs: a child with its parent, unless that has ended, and any other run here.
    async fn place(&self, lease: &Lease, run: &StoredRun) -> Result<Place, StoreError> {
        let Some(parent) = self.parent_of(run).await? else { return Ok(Place::Here) };
        // The store names the engine with the parent: this engine may have lost one that it still drives or has unloaded.
        Ok(match self.journals.listed(&parent).await? {
            None => Place::Here,
            Some(parent) if parent.run.status.is_ended() => Place::Here,
            Some(parent) if parent.run.owner.as_ref() != Some(lease.engine()) => Place::Elsewhere,
            Some(parent) if self.is_here(&parent.id) => Place::Here,
            Some(_) => Place::WithParent,
        })
    }

    /// The parent of a child. An id may have a slash without being a child's.
    async fn parent_of(&self, run: &StoredRun) -> Result<Option<RunId>, StoreError> {
        if !run.id.as_str().contains('/') {
            return Ok(None);
        }
        if let Some(parent) = &run.run.parent {
            return Ok(Some(parent.run.clone()));
        }
        // The summary may be from an earlier release, and the first record always has the parent.
        let first = self.journals.store()?.read(&run.id, Position(0), 1).await?;
        Ok(match first.first() {
            Some(Record::RunStarted { parent, .. }) => parent.as_ref().map(|parent| parent.run.clone()),
            _ => None,
        })
    }

    /// Resumes one orphan, if this engine can, and it belongs here.
    async fn claim(&self, lease: &Arc<Lease>, run: &StoredRun) -> Claimed {
        if self.ending.has_begun() || !self.hosts.has(&run.run.workflow) {
            return Claimed::Left;
        }
        // The same journal would be refused again, and reading it costs more than this look.
        if locked(&self.memory.incompatible).get(&run.id) == Some(&run.end) {
            return Claimed::Unfit;
        }
        match self.place(lease, run).await {
            Ok(Place::Here) if !self.only_leaves => {}
            Ok(Place::Elsewhere) if run.run.owner.as_ref() == Some(lease.engine()) => {
                // The parent could not go on where it is, as long as this engine has its child.
                return match self.resumes.release(run).await {
                    Ok(()) => Claimed::Released,
                    Err(error) => Claimed::By(Err(ResumeError::Store(error))),
                };
            }
            Ok(Place::Here | Place::Elsewhere | Place::WithParent) => return Claimed::Left,
            Err(error) => return Claimed::By(Err(ResumeError::Store(error))),
        }
        let loaded = self.resumes.claim(run).await;
        if let Ok(Loaded::Resumed(shared)) = &loaded {
            // Its children are claimed here only if the run began here. If the store does not answer in time, the
            // search continues: the run keeps waiting in its own task, and its children wait for a later search.
            lease.wait(shared.status.begun()).await;
        }
        Claimed::By(loaded)
    }
}

impl SearchResult {
    /// Sorts one orphan into the result.
    fn note(&mut self, run: StoredRun, claimed: Claimed) {
        let StoredRun { id, end, .. } = run;
        match claimed {
            Claimed::By(Ok(Loaded::Resumed(_) | Loaded::Waiting)) => self.resumed.runs.push(id),
            Claimed::By(Ok(Loaded::Moved(_))) => self.resumed.elsewhere.push(id),
            Claimed::By(Ok(Loaded::Awaited)) => self.awaited.push(id),
            Claimed::By(Ok(Loaded::Here(_) | Loaded::Ended(_) | Loaded::Full))
            | Claimed::Left
            | Claimed::Released => {}
            Claimed::Unfit => drop(self.incompatible.insert(id, end)),
            Claimed::By(Err(error)) => {
                if stays_refused(&error) {
                    self.incompatible.insert(id.clone(), end);
                }
                self.resumed.refused.push((id, error));
            }
        }
    }
}

/// Whether the same journal would be refused for the same reason. The next search asks the sources of a configuration
/// again.
pub(super) fn stays_refused(error: &ResumeError) -> bool {
    match error {
        ResumeError::Config(error) => !matches!(error, ConfigError::Unavailable { .. }),
        ResumeError::Incompatible { .. } | ResumeError::Crashing { .. } => true,
        _ => false,
    }
}

/// The place of a run in the order of an engine's claims. Each engine has another order, so that several engines begin
/// with different runs.
fn rank(engine: &EngineId, run: &RunId) -> u64 {
    let mut hasher = DefaultHasher::new();
    (engine.as_str(), run.as_str()).hash(&mut hasher);
    hasher.finish()
}

impl Inner {
    /// Resumes the orphans of the engine's store, and cancels orphaned children whose parents have ended. While the
    /// engine's lease is new, it only leaves its lost children to the engines with their parents.
    pub(super) async fn claim_orphans(self: &Arc<Self>) -> Result<Resumed, StoreError> {
        let Some(lease) = self.journals.lease() else { return Ok(Resumed::default()) };
        let only_leaves = !lease.may_claim();
        if only_leaves && (lease.term().is_none() || !self.claims.has_lost.load(Ordering::Acquire)) {
            return Ok(Resumed::default());
        }
        let search = OrphanSearch {
            journals: &self.journals,
            hosts: &self.hosts,
            runs: &self.runs,
            ending: &self.ending,
            memory: &self.claims,
            resumes: self,
            only_leaves,
        };
        let (resumed, awaited) = search.all().await?;
        if !resumed.runs.is_empty() {
            self.load_waiting_with_messages();
        }
        self.orphaned_children().cancel_among(awaited, Some(lease)).await;
        Ok(resumed)
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
        memory: ClaimMemory,
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
                memory: ClaimMemory::default(),
                resumer: Resumer::default(),
            }
        }

        /// The runs that it was asked to load, sorted: engines differ in their orders.
        fn asked(&self) -> Vec<String> {
            let mut asked = self.resumer.asked();
            asked.sort();
            asked
        }

        /// Searches once: the orphans that are awaited.
        fn search(&self) -> Vec<RunId> {
            let search = OrphanSearch {
                journals: &self.journals,
                hosts: &self.hosts,
                runs: &self.runs,
                ending: &self.ending,
                memory: &self.memory,
                resumes: &self.resumer,
                only_leaves: false,
            };
            now(search.all()).unwrap().1
        }
    }

    fn orphans(runs: &[(&str, Option<&str>)]) -> Written {
        let (written, gone) = (Written::default(), EngineId::generate());
        for (run, parent) in runs {
            written.begin(run, Began { parent: *parent, owner: Some(&gone), ..Began::default() });
        }
        written
    }

    // S66
    #[test]
    fn orphans_are_resumed_where_their_journals_end_and_others_are_not() {
        let written = orphans(&[("a", None), ("b-m", None), ("c-w", None)]);
        written.begin("unowned", Began::default());
        let parts = Parts::of(&written);
        assert_eq!(parts.search(), ["c-w".into()]);
        assert_eq!(parts.asked(), ["load a at 2", "load b-m at 2", "load c-w at 2"]);
    }

    // S66
    #[test]
    fn a_child_is_claimed_only_where_its_parent_is() {
        let written = orphans(&[("a", None), ("a/x", Some("a")), ("b/x", Some("b")), ("c/x", Some("c"))]);
        let parts = Parts::of(&written);
        let own = parts.journals.lease().map(|lease| lease.engine());
        written.begin("c", Began { owner: own, ..Began::default() });
        parts.search();
        assert_eq!(
            parts.asked(),
            ["load a at 2", "load b/x at 2"],
            "the parent of the last is not driven yet"
        );
        // This engine has lost the one, and the store says so.
        let _driven = ["a", "c"].map(|run| parts.runs.reserve(&run.into()));
        parts.search();
        assert_eq!(parts.asked(), ["load a at 2", "load b/x at 2", "load c/x at 2"]);
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
        assert!(parts.search().is_empty());
        assert!(parts.resumer.asked().is_empty());
    }
}
