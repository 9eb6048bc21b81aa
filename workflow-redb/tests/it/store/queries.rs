//! Queries of many runs, beside a scan, and what their pages read.

use redb::backends::InMemoryBackend;
use workflow_redb::RedbStore;
use workflow_testkit::conformance::event_store::Subject;
use workflow_testkit::conformance::event_store::population::{Population, queries_of_a_population};

#[test]
fn queries_of_10_000_runs_in_a_file_equal_a_scan() {
    let open = || RedbStore::builder().open_backend("in memory", InMemoryBackend::new()).unwrap();
    let size = Population { runs: 10_000, queries: 300, alone: true };
    queries_of_a_population(Subject::new(open), size);
}
