//! The owners of runs: which open runs of a store this engine may resume (S40).
//!
//! Three checks in this order keep a run from having two owners:
//!
//! 1. The engine lists the run, and notes where its journal ends.
//! 2. The engine asks the store which engines hold a lease.
//! 3. The engine resumes the run only if its journal still ends where step 1 saw the end.
//!
//! An owner that lost its lease takes the lease again, and writes `RunKept` to the run before it begins anything. If it
//! takes the lease before step 2, the claiming engine sees the lease. If it writes before step 3, the claim fails. If
//! it writes later, the store refuses its write.

use super::journals::Journals;
use crate::id::{EngineId, RunId};
use crate::outcome::ResumeError;
use crate::store::{Position, StoreError, StoredRun};

/// How often an engine looks a run up again that another engine wrote to meanwhile.
pub(super) const LOOKUPS: usize = 3;

/// The owner of an open run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// This engine, or no engine that takes leases.
    OwnOrNone,
    /// An engine that holds no lease any more.
    Orphan,
    /// Another engine, which holds a lease.
    Elsewhere(EngineId),
}

/// Whether this engine may resume a run that it does not drive, as one look at the store shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Availability {
    /// The store does not have the run.
    Unknown,
    /// The engine may resume the run, or look back at an ended one, as long as its journal ends there. `None` without
    /// leases, where no end is checked.
    Free(Option<Position>),
    /// Another engine drives it.
    Elsewhere(EngineId),
}

/// The ends of a run's journal in several look-ups: the listed one and the read one.
#[derive(Default)]
pub(super) struct SeenEnds {
    first: Option<(Position, Position)>,
    /// Whether two look-ups differ: an engine writes to the run.
    differ: bool,
}

impl SeenEnds {
    /// Adds a look-up: the listed end, and the end of the journal that was read after it.
    pub(super) fn note(&mut self, listed: Position, read: Position) {
        self.differ |= *self.first.get_or_insert((listed, read)) != (listed, read);
    }

    /// The error of a store whose list contradicts the journal. `None` if the ends agree, or another engine may have
    /// written.
    fn mislisted(&self, run: &RunId) -> Option<StoreError> {
        let (listed, read) = self.first.filter(|(listed, read)| !self.differ && listed != read)?;
        Some(StoreError::corrupt(run, read, Mislisted { listed, read }))
    }
}

/// A store whose list disagrees with the journal.
#[derive(Debug, thiserror::Error)]
#[error("the list of runs says that the journal ends at {}, and it ends at {}", listed.0, read.0)]
struct Mislisted {
    listed: Position,
    read: Position,
}

impl Journals {
    /// The owners of these listed runs, in their order; `None` for an engine that takes no leases.
    pub(super) async fn owners(&self, runs: &[StoredRun]) -> Result<Option<Vec<Owner>>, StoreError> {
        let Some(lease) = self.lease() else { return Ok(None) };
        let other = |run: &StoredRun| run.run.owner.clone().filter(|owner| owner != lease.engine());
        // The store is asked only if some run has another owner.
        let others = runs.iter().any(|run| other(run).is_some());
        let holders = if others { lease.renew().await? } else { Some(Vec::new()) };
        let owner = |run| match (other(run), &holders) {
            (None, _) => Owner::OwnOrNone,
            (Some(owner), Some(holders)) if !holders.contains(&owner) => Owner::Orphan,
            (Some(owner), _) => Owner::Elsewhere(owner),
        };
        Ok(Some(runs.iter().map(owner).collect()))
    }

    /// Whether this engine may resume the run now. Calls the store at most twice.
    pub(super) async fn availability(&self, id: &RunId) -> Result<Availability, StoreError> {
        if self.lease().is_none() {
            return Ok(Availability::Free(None));
        }
        let Some(stored) = self.listed(id).await? else { return Ok(Availability::Unknown) };
        if stored.run.status.is_ended() {
            return Ok(Availability::Free(Some(stored.end)));
        }
        let owners = self.owners(std::slice::from_ref(&stored)).await?;
        Ok(match owners.and_then(|mut owners| owners.pop()) {
            Some(Owner::Elsewhere(engine)) => Availability::Elsewhere(engine),
            _ => Availability::Free(Some(stored.end)),
        })
    }

    /// Whether a run that this engine drives is still its own, or has ended. An engine without a lease for a time may have
    /// lost the run without a notice, and its knowledge of the run may be old. Calls the store once, with leases.
    pub(super) async fn has_kept(&self, id: &RunId) -> Result<bool, StoreError> {
        let Some(lease) = self.lease() else { return Ok(true) };
        // A run that the store does not list begins here.
        let stored = self.listed(id).await?;
        let is_kept =
            |run: StoredRun| run.run.status.is_ended() || run.run.owner.as_ref() == Some(lease.engine());
        Ok(stored.is_none_or(is_kept))
    }

    /// The reason why a run is not resumed whose journal changed between each look-up and its reading.
    pub(super) async fn contention(&self, id: &RunId, ends: &SeenEnds) -> Result<ResumeError, StoreError> {
        let run = id.clone();
        Ok(match self.availability(id).await? {
            Availability::Elsewhere(engine) => ResumeError::Elsewhere { run, engine },
            Availability::Unknown | Availability::Free(_) => match ends.mislisted(id) {
                Some(error) => ResumeError::Store(error),
                None => ResumeError::Contended { run },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Began, OPEN, Written, now};
    use super::*;
    use crate::store::RunQuery;

    /// A store with one run of this engine, one of an engine with a lease, one of an engine without, and one without an
    /// owner.
    fn shared_by(own: &EngineId, other: &EngineId) -> Written {
        let (written, gone) = (Written::default(), EngineId::generate());
        for (run, owner) in [("elsewhere", other), ("orphan", &gone), ("own", own)] {
            written.begin(run, Began { owner: Some(owner), ..Began::default() });
        }
        written.begin("unowned", Began::default());
        written.hold_lease(other);
        written
    }

    #[test]
    fn a_run_belongs_to_the_engine_that_wrote_to_it_as_long_as_that_holds_a_lease() {
        let (own, other) = (EngineId::generate(), EngineId::generate());
        let written = shared_by(&own, &other);
        let runs = now(written.store().runs(&RunQuery::new())).unwrap();
        let owners = now(written.leased(&own).owners(&runs)).unwrap();
        let elsewhere = Owner::Elsewhere(other);
        assert_eq!(owners, Some(vec![elsewhere, Owner::Orphan, Owner::OwnOrNone, Owner::OwnOrNone]));
        assert_eq!(
            now(written.journals().owners(&runs)).unwrap(),
            None,
            "without leases the owner is unknown"
        );
    }

    #[test]
    fn a_run_may_be_resumed_unless_another_engine_drives_it() {
        let (own, other) = (EngineId::generate(), EngineId::generate());
        let written = shared_by(&own, &other);
        written.end("unowned");
        let journals = written.leased(&own);
        let availability = |run: &str| now(journals.availability(&run.into())).unwrap();
        assert_eq!(availability("elsewhere"), Availability::Elsewhere(other));
        assert_eq!(availability("orphan"), Availability::Free(Some(OPEN)));
        assert_eq!(availability("unowned"), Availability::Free(Some(OPEN.after(1))));
        assert_eq!(availability("nobody"), Availability::Unknown);
        let unleased = now(written.journals().availability(&"elsewhere".into())).unwrap();
        assert_eq!(unleased, Availability::Free(None));
    }

    #[test]
    fn a_run_that_moves_is_contended_and_one_that_is_mislisted_is_corrupt() {
        let written = Written::default();
        written.begin("a", Began::default());
        let journals = written.leased(&EngineId::generate());
        let seen = |ends: &[(u64, u64)]| {
            let mut seen = SeenEnds::default();
            for (listed, read) in ends {
                seen.note(Position(*listed), Position(*read));
            }
            now(journals.contention(&"a".into(), &seen)).unwrap()
        };
        assert!(matches!(seen(&[(1, 2), (2, 3)]), ResumeError::Contended { .. }));
        assert!(matches!(seen(&[(1, 2), (1, 2)]), ResumeError::Store(StoreError::Corrupt { .. })));
    }
}
