//! Two handles on one backend, as two processes have them.

use tokio::task::JoinSet;
use workflow_core::store::EventStore;

use super::journal::{Journal, assert_conflict};
use super::leases;
use super::subject::Subject;

const ROUNDS: u64 = 25;

pub fn of_appends_by_two_handles_at_one_position_exactly_one_succeeds<S: EventStore>(subject: Subject<S>) {
    subject.check_two(|[one, other]| async move {
        let journal = Journal::new(&one);
        let demand = "of appends by two handles at one position exactly one succeeds";
        for at in 0..ROUNDS {
            let mut writers = JoinSet::new();
            for store in [&one, &other, &one, &other] {
                let journal = journal.by(store);
                writers.spawn(async move { journal.try_put(at, at..at + 1).await });
            }
            let returned = writers.join_all().await;
            let taken = returned.iter().filter(|returned| returned.is_ok()).count();
            assert_eq!(taken, 1, "{demand}: four at {at} at the same time returned {returned:?}");
            for refused in returned.iter().filter(|returned| returned.is_err()) {
                assert_conflict(refused, at, at + 1, demand);
            }
        }
        journal.by(&other).assert_ends_at(ROUNDS, demand).await;
    });
}

pub fn what_one_handle_did_the_other_sees<S: EventStore>(subject: Subject<S>) {
    subject.check_two(|[one, other]| async move {
        let (journal, demand) =
            (Journal::new(&one), "what one handle did the other sees when it has returned");
        let other = journal.by(&other);
        journal.put(0..2).await;
        other.assert_ends_at(2, demand).await;
        other.put(2..5).await;
        journal.assert_ends_at(5, demand).await;
        journal.remove().await;
        other.assert_ends_at(0, demand).await;
    });
}

pub fn a_lease_by_one_handle_the_other_sees<S: EventStore>(subject: Subject<S>) {
    subject.check_two(leases::seen_by_the_other);
}
