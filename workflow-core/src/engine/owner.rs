//! The owners of runs: which of a store's open runs another engine drives (S40).
//!
//! Runs are listed before the store is asked who holds a lease, and a run is resumed only if its journal still ends where
//! it did when it was listed. So an engine that takes a lost lease again, and then writes to its run before it begins
//! anything, has either been seen by the one that claims, or makes the claim fail, or is refused itself.

use super::journals::Journals;
use crate::id::{EngineId, RunId};
use crate::outcome::ResumeError;
use crate::store::{Position, StoreError, StoredRun};

/// How often a run is looked up again that another engine wrote to meanwhile.
pub(super) const LOOKUPS: usize = 3;

/// The owner of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// This engine's, or nobody's that could be known.
    Own,
    /// An engine's that holds no lease any more.
    Orphan,
    /// Another engine's.
    Elsewhere(EngineId),
}

/// Whether a run that does not run here may be resumed here, as one look at the store tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Availability {
    /// The store does not have it.
    Unknown,
    /// It may, as long as its journal ends there, and it can be looked back at if it has ended. Without leases nobody
    /// has to look.
    Free(Option<Position>),
    /// Another engine drives it.
    Elsewhere(EngineId),
}

/// Where a run's journal ended each time that it was looked up, as it was listed and as it was read.
#[derive(Default)]
pub(super) struct SeenEnds {
    first: Option<(Position, Position)>,
    /// Whether it was not the same every time: somebody writes to it.
    differ: bool,
}

impl SeenEnds {
    pub(super) fn note(&mut self, listed: Position, read: Position) {
        self.differ |= *self.first.get_or_insert((listed, read)) != (listed, read);
    }

    /// That the store lists another end than the journal has, if it did so every time and nobody wrote to it.
    fn mislisted(&self, run: &RunId) -> Option<StoreError> {
        let (listed, read) = self.first.filter(|(listed, read)| !self.differ && listed != read)?;
        Some(StoreError::corrupt(run, read, Mislisted { listed, read }))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the list of runs says that the journal ends at {}, and it ends at {}", listed.0, read.0)]
struct Mislisted {
    listed: Position,
    read: Position,
}

impl Journals {
    /// The owners of these runs, which were listed before; none for an engine that takes no leases.
    pub(super) async fn owners(&self, runs: &[StoredRun]) -> Result<Option<Vec<Owner>>, StoreError> {
        let Some(lease) = self.lease() else { return Ok(None) };
        let other = |run: &StoredRun| run.run.owner.clone().filter(|owner| owner != lease.engine());
        // Only a look, if nobody else is concerned.
        let others = runs.iter().any(|run| other(run).is_some());
        let holders = if others { lease.renew().await? } else { Some(Vec::new()) };
        let owner = |run| match (other(run), &holders) {
            (None, _) => Owner::Own,
            (Some(owner), Some(holders)) if !holders.contains(&owner) => Owner::Orphan,
            (Some(owner), _) => Owner::Elsewhere(owner),
        };
        Ok(Some(runs.iter().map(owner).collect()))
    }

    /// Whether the run may be resumed here.
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

    /// Why a run is not resumed that somebody wrote to each time that it was looked up.
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

    /// A store with a run of this engine, of one that holds a lease, of one that holds none any more, and of nobody.
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
        assert_eq!(owners, Some(vec![elsewhere, Owner::Orphan, Owner::Own, Owner::Own]));
        assert_eq!(now(written.journals().owners(&runs)).unwrap(), None, "without leases nobody can say");
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
