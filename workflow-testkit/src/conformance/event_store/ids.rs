//! Runs are independent of each other; any text of up to 1 KiB is an id.

use workflow_core::store::EventStore;

use super::journal::{Journal, assert_conflict};
use super::subject::Subject;

/// Ends of ids that a store could take for each other, or for something else.
pub(super) const ALIKE: [&str; 31] = [
    "",
    " ",
    "a",
    "A",
    "B",
    "a ",
    " a",
    "ab",
    "a/b",
    "/",
    "..",
    "/../a",
    "a\\b",
    "a.b",
    "a.json",
    "a:b",
    "a%",
    "%2F",
    "a_",
    "a*",
    "a'b",
    "a\"b",
    "a\0",
    "a\0b",
    "a\nb",
    "ä",
    "a\u{308}",
    "日本",
    "🦀",
    "\u{ffff}",
    "\u{10ffff}",
];

pub fn runs_are_independent<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journals: Vec<Journal> = (0..3).map(|_| Journal::new(&store)).collect();
        let demand = "runs are independent of each other";
        for (journal, records) in journals.iter().zip(1..) {
            journal.put(0..records).await;
        }
        for (journal, end) in journals.iter().zip(1..) {
            journal.put(end..end + end).await;
            assert_conflict(&journal.try_put(end, end..end + 1).await, end, end + end, demand);
        }
        for (journal, end) in journals.iter().zip(1..) {
            journal.assert_ends_at(end + end, demand).await;
        }
    });
}

pub fn any_text_is_an_id<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        keep_apart(&ALIKE.map(|end| journal.beside(end)), "an id is any text").await;
    });
}

pub fn ids_of_1_kib_are_told_apart_to_their_last_byte<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let room = 1_024 - journal.run.as_str().len();
        let stem = "r".repeat(room - 1);
        let ends = [format!("{stem}a"), format!("{stem}b"), stem, "ä".repeat(room / 2)];
        keep_apart(&ends.map(|end| journal.beside(end)), "an id of up to 1 KiB is kept whole").await;
    });
}

pub fn the_empty_text_is_an_id<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let demand = "an id is any text, the empty one too";
        let nameless = Journal::new(&store).of_run("");
        // Only this run can be left from an earlier test on the same backend.
        nameless.remove().await;
        nameless.assert_ends_at(0, demand).await;
        nameless.put(0..2).await;
        nameless.assert_ends_at(2, demand).await;
        assert!(nameless.remove().await, "{demand}: it can be removed");
        nameless.assert_ends_at(0, demand).await;
    });
}

/// Writes a journal of a different length for every run, then removes each, and asserts that the others do not change.
async fn keep_apart(journals: &[Journal], demand: &str) {
    for (journal, end) in journals.iter().zip(1..) {
        let begun = journal.try_put(0, 0..end).await;
        begun.unwrap_or_else(|error| panic!("{demand}: {:?} cannot be begun: {error}", journal.run));
    }
    for (journal, end) in journals.iter().zip(1..) {
        journal.assert_ends_at(end, demand).await;
    }
    for (removed, journal) in journals.iter().enumerate() {
        assert!(journal.remove().await, "{demand}: {:?} was there", journal.run);
        for (journal, end) in journals.iter().zip(1..).skip(removed + 1).take(1) {
            journal.assert_ends_at(end, demand).await;
        }
    }
}
