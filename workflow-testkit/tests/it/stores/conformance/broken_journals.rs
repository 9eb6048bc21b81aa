//! Each fault of an event store fails the check of the broken promise.

use std::sync::Arc;
use std::time::Duration;

use workflow_core::RunId;
use workflow_core::store::{
    EngineId, EventStore, MemoryStore, Position, Record, Retention, RunQuery, StoreFuture, StoredRun, Write,
};
use workflow_testkit::conformance::event_store::{
    Subject, append, cancel, handles, ids, leases, listing, pages, population, queries, races, reading,
    records, removal, retaining,
};

use super::broken_stores::failure;
use super::faulty_journals::{Fault, FaultyJournals};

/// A test per fault: the check that fails, and its demand.
macro_rules! caught {
    ($($name:ident: $fault:ident by $topic:ident::$check:ident, $demand:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let text = failure(|| $topic::$check(Subject::new(|| FaultyJournals::new(Fault::$fault))));
                assert!(text.contains($demand), "{text}");
            }
        )*
    };
}

caught! {
    a_store_that_begins_anywhere_is_caught: BeginsAnywhere
        by append::a_journal_begins_at_position_0_and_only_there, "position 0 begins a journal";
    a_store_that_ignores_the_position_is_caught: IgnoresThePosition
        by append::a_journal_goes_on_where_it_ends_and_nowhere_else, "and nowhere else";
    a_store_that_takes_low_positions_is_caught: TakesLowPositions
        by append::a_journal_goes_on_where_it_ends_and_nowhere_else, "and nowhere else";
    a_store_that_counts_from_1_is_caught: CountsFromOne
        by append::a_journal_goes_on_where_it_ends_and_nowhere_else, "and nowhere else";
    a_store_that_takes_repeats_is_caught: TakesRepeats
        by append::an_append_that_is_repeated_is_a_conflict, "that is repeated is a conflict";
    a_store_that_finds_one_too_few_is_caught: FindsOneTooFew
        by append::a_journal_goes_on_where_it_ends_and_nowhere_else, "names what was expected";
    a_store_whose_conflicts_change_the_summary_is_caught: ConflictChangesTheSummary
        by append::a_conflict_changes_nothing, "as it is listed";
    a_store_whose_conflicts_cut_the_journal_is_caught: ConflictCutsTheJournal
        by append::a_conflict_changes_nothing, "a conflict changes nothing";

    a_store_that_loses_the_last_of_a_batch_is_caught: LosesTheLastOfABatch
        by reading::a_batch_is_read_back_whole_and_in_its_order, "as a whole";
    a_store_that_reverses_batches_is_caught: ReversesBatches
        by reading::a_batch_is_read_back_whole_and_in_its_order, "in its order";
    a_store_that_reads_one_too_late_is_caught: ReadsOneTooLate
        by reading::a_read_begins_at_its_position, "begins with the record at its position";
    a_store_that_reads_from_the_beginning_is_caught: ReadsFromTheBeginning
        by reading::a_read_begins_at_its_position, "begins with the record at its position";
    a_store_that_reads_all_is_caught: ReadsAll
        by reading::a_read_returns_at_most_so_many_records_and_at_least_one, "at most 1";
    a_store_that_reads_by_threes_is_caught: ReadsByThrees
        by reading::a_read_returns_at_most_so_many_records_and_at_least_one, "and at least one";
    a_store_that_reads_nothing_where_0_is_asked_for_is_caught: ReadsNothingForNothing
        by reading::a_read_returns_at_most_so_many_records_and_at_least_one, "at most 0, and at least one";
    a_store_that_reads_backwards_is_caught: ReadsBackwards
        by reading::reads_put_together_are_the_whole_journal, "make the whole journal";
    a_store_that_reads_the_last_from_behind_is_caught: ReadsTheLastFromBehind
        by reading::from_behind_the_end_there_is_nothing_to_read, "there is nothing";
    a_store_that_refuses_unknown_runs_is_caught: RefusesUnknownRuns
        by reading::a_run_that_is_not_there_has_no_records, "`read` has no reason to fail here";
    a_store_whose_reads_begin_runs_is_caught: ReadingBegins
        by reading::a_run_that_is_not_there_has_no_records, "does not begin one";
    a_store_whose_reads_remove_records_is_caught: ReadingRemoves
        by reading::a_read_changes_nothing, "a read changes nothing";

    a_store_that_writes_before_it_serialises_is_caught: WritesBeforeItSerialises
        by records::an_event_without_a_form_as_json_is_kept_as_it_is_or_changes_nothing, "nothing was changed";
    a_store_that_hides_what_it_cannot_serialise_is_caught: HidesWhatIsUnserialisable
        by records::an_event_without_a_form_as_json_is_kept_as_it_is_or_changes_nothing, "has stored the batch";
    a_store_that_hides_that_it_serialises_is_caught: HidesThatItSerialises
        by records::an_event_without_a_form_as_json_is_kept_as_it_is_or_changes_nothing, "form as JSON `serialises`";
    a_store_that_rounds_times_is_caught: RoundsTimes
        by records::every_kind_of_record_is_read_back_as_it_was, "read back as it was";
    a_store_that_takes_null_for_no_event_is_caught: TakesNullForNothing
        by records::events_are_read_back_in_every_form_of_json, "read back as it was";
    a_store_that_cuts_batches_is_caught: CutsBatches
        by records::a_batch_of_1000_records_is_kept_whole, "1,000 records is kept whole";
    a_store_that_cuts_events_is_caught: CutsEvents
        by records::an_event_of_1_mib_is_kept_whole, "1 MiB is kept whole";

    a_store_that_ignores_the_case_of_ids_is_caught: IgnoresCase
        by ids::any_text_is_an_id, "an id is any text";
    a_store_that_cuts_ids_is_caught: CutsIds
        by ids::ids_of_1_kib_are_told_apart_to_their_last_byte, "kept whole";
    a_store_that_refuses_the_empty_id_is_caught: RefusesTheEmptyId
        by ids::the_empty_text_is_an_id, "`append` has no reason to fail here";
    a_store_that_mixes_up_ids_that_begin_alike_is_caught: MixesUpPrefixes
        by ids::any_text_is_an_id, "an id is any text";

    a_store_that_keeps_the_first_summary_is_caught: KeepsTheFirstSummary
        by listing::a_run_is_listed_as_its_latest_batch_left_it, "the summary of its latest batch";
    a_store_that_counts_batches_is_caught: CountsBatches
        by listing::a_run_is_listed_as_its_latest_batch_left_it, "the end of its journal";
    a_store_that_lists_by_age_is_caught: ListsByAge
        by listing::runs_are_listed_in_the_order_of_the_bytes_of_their_ids, "the bytes of their ids";
    a_store_that_lists_without_case_is_caught: ListsByCase
        by listing::runs_are_listed_in_the_order_of_the_bytes_of_their_ids, "the bytes of their ids";
    a_store_that_lists_ended_runs_as_open_is_caught: ListsEndedAsOpen
        by listing::runs_that_have_ended_are_not_open, "until its summary says";
    a_store_that_lists_stalled_runs_as_open_is_caught: ListsStalledAsOpen
        by listing::runs_that_have_ended_are_not_open, "until its summary says";
    a_store_that_lists_open_runs_only_is_caught: ListsOpenOnly
        by listing::runs_that_have_ended_are_not_open, "unless only open ones are asked for";
    a_store_that_forgets_the_workflow_is_caught: ForgetsTheWorkflow
        by listing::runs_are_listed_by_the_whole_name_of_their_workflow, "the very workflow";
    a_store_that_takes_the_beginning_of_a_workflow_for_all_is_caught: TakesPrefixesOfWorkflows
        by listing::runs_are_listed_by_the_whole_name_of_their_workflow, "the very workflow";
    a_store_whose_listings_remove_is_caught: ListingRemoves
        by listing::a_listing_changes_nothing, "a listing changes nothing";

    a_store_that_forgets_after_is_caught: ForgetsAfter
        by pages::a_page_begins_behind_the_id_that_it_comes_after, "without that one";
    a_store_that_pages_from_the_last_one_is_caught: PagesFromTheLastOne
        by pages::a_page_begins_behind_the_id_that_it_comes_after, "without that one";
    a_store_that_pages_from_where_the_last_was_is_caught: PagesFromWhereTheLastWas
        by pages::a_page_begins_behind_the_id_that_it_comes_after, "whether the store has that one or not";
    a_store_that_forgets_at_most_is_caught: ForgetsAtMost
        by pages::a_page_is_shorter_than_asked_only_if_it_is_the_last, "as many runs as were asked for";
    a_store_that_shortens_pages_is_caught: ShortensPages
        by pages::pages_put_together_list_each_run_once, "list each run once";
    a_store_that_limits_before_it_filters_is_caught: LimitsBeforeItFilters
        by pages::a_page_counts_only_the_runs_that_the_query_asks_for, "counts only the runs";
    a_store_that_loses_labels_is_caught: LosesLabels
        by queries::every_field_of_a_summary_is_listed_as_it_was_written, "every field of a summary";
    a_store_that_rounds_starts_is_caught: RoundsStarts
        by queries::the_run_that_started_last_is_listed_first_on_demand, "started last is listed first";
    a_store_that_forgets_the_run_is_caught: ForgetsTheRun
        by queries::a_query_for_one_run_lists_that_run_and_no_other, "the very run";
    a_store_that_takes_what_begins_alike_as_below_is_caught: TakesPrefixesOfIds
        by queries::runs_below_an_id_are_listed_and_no_others, "an id, a slash, and more";
    a_store_that_takes_prefixes_of_threads_is_caught: TakesPrefixesOfThreads
        by queries::runs_are_listed_by_the_whole_name_of_their_thread, "the very thread";
    a_store_that_lists_excluded_owners_is_caught: ListsExcludedOwners
        by queries::runs_of_excluded_owners_are_not_listed, "of the excluded engines are not listed";
    a_store_that_excludes_runs_without_an_owner_is_caught: ExcludesRunsWithoutAnOwner
        by queries::runs_of_excluded_owners_are_not_listed, "those of others and of none are";
    a_store_that_lists_the_newest_last_is_caught: ListsNewestLast
        by queries::the_run_that_started_last_is_listed_first_on_demand, "started last is listed first";
    a_store_that_lists_the_least_id_first_is_caught: ListsTheLeastIdFirst
        by queries::the_run_that_started_last_is_listed_first_on_demand, "the greatest id";
    a_store_that_pages_from_the_next_time_is_caught: PagesFromTheNextTime
        by queries::pages_newest_first_list_each_run_once, "newest first list each run once";
    a_store_that_pages_from_the_same_time_is_caught: PagesFromTheSameTime
        by queries::a_page_newest_first_begins_behind_its_run, "without that one";
    a_store_that_forgets_the_status_of_the_newest_is_caught: ForgetsTheStatusOfTheNewest
        by queries::a_page_newest_first_counts_only_the_runs_that_the_query_asks_for, "counts only the runs";
    a_store_that_keeps_the_first_thread_is_caught: KeepsTheFirstThread
        by queries::a_run_is_listed_by_its_latest_summary_alone, "its thread";
    a_store_that_mixes_up_filters_is_caught: MixesUpFilters
        by population::queries_list_what_a_scan_of_all_runs_finds, "what a scan of all runs finds";

    a_store_that_removes_nothing_is_caught: RemovesNothing
        by removal::a_run_that_was_removed_is_gone, "with its journal";
    a_store_that_leaves_the_summary_is_caught: RemoveLeavesTheSummary
        by removal::a_run_that_was_removed_is_gone, "as it is listed";
    a_store_that_leaves_the_records_is_caught: RemoveLeavesRecords
        by removal::a_run_that_was_removed_is_gone, "with its journal";
    a_store_that_always_says_it_removed_is_caught: RemoveIsAlwaysTrue
        by removal::remove_says_whether_there_was_a_run, "returns `false`";
    a_store_that_removes_what_begins_alike_is_caught: RemovesPrefixes
        by removal::remove_leaves_other_runs_alone, "leaves other runs alone";
    a_store_that_remembers_the_end_of_removed_runs_is_caught: RemembersTheEnd
        by removal::the_id_of_a_run_that_was_removed_is_free, "begins at position 0 again";
    a_store_that_takes_anything_of_removed_runs_is_caught: RemovedTakesAnything
        by removal::who_still_writes_to_a_run_that_was_removed_gets_a_conflict, "gets a conflict";

    a_store_that_retains_all_is_caught: RetainsAll
        by retaining::retain_removes_runs_that_have_ended_and_says_how_many, "says how many";
    a_store_that_miscounts_what_it_removes_is_caught: RetainMiscounts
        by retaining::retain_removes_runs_that_have_ended_and_says_how_many, "says how many";
    a_store_whose_retention_leaves_records_is_caught: RetainLeavesRecords
        by retaining::retain_removes_runs_that_have_ended_and_says_how_many, "whole";
    a_store_whose_retention_removes_open_runs_is_caught: RetainRemovesOpen
        by retaining::retain_keeps_runs_that_go_on, "keeps runs that have not ended";
    a_store_whose_retention_removes_children_is_caught: RetainRemovesChildren
        by retaining::retain_keeps_children_as_long_as_a_run_above_them_goes_on, "keeps the children";
    a_store_whose_retention_goes_by_age_is_caught: RetainGoesByAge
        by retaining::retain_keeps_the_last_runs_that_ended, "by when their latest batches were written";
    a_store_whose_retention_forgets_the_time_is_caught: RetainForgetsTheTime
        by retaining::retain_keeps_what_ended_a_short_while_ago, "what ended within the time";
    a_store_whose_retention_forgets_what_failed_is_caught: RetainForgetsWhatFailed
        by retaining::retain_keeps_what_failed_on_demand, "neither completed nor was cancelled";
    a_store_whose_retention_forgets_the_workflow_is_caught: RetainForgetsTheWorkflow
        by retaining::retain_is_about_one_workflow_on_demand, "of other workflows are kept";
    a_store_that_hands_out_new_contexts_is_caught: HandsOutNewContexts
        by retaining::contexts_that_a_store_hands_out_are_its_own_and_go_with_the_runs, "the same contexts";
    a_store_whose_retention_leaves_contexts_is_caught: RetainLeavesContexts
        by retaining::contexts_that_a_store_hands_out_are_its_own_and_go_with_the_runs, "removes the contexts";

    a_store_that_leaves_out_the_caller_is_caught: LeavesOutTheCaller
        by leases::who_takes_a_lease_holds_one, "the caller among them";
    a_store_that_leases_to_one_is_caught: LeasesToOne
        by leases::who_takes_a_lease_holds_one, "every engine that holds one";
    a_store_whose_leases_run_out_early_is_caught: LeasesRunOutEarly
        by leases::a_lease_runs_out_and_not_before_its_time, "does not run out before";
    a_store_where_the_first_lease_counts_is_caught: FirstLeaseCounts
        by leases::the_last_renewal_counts, "lasts from the renewal on";
    a_store_whose_leases_only_grow_is_caught: LeasesOnlyGrow
        by leases::the_last_renewal_counts, "the last counts";
    a_store_that_leases_for_ever_is_caught: LeasesForEver
        by leases::a_lease_runs_out_and_not_before_its_time, "gone a second later";
    a_store_that_keeps_leases_that_are_given_up_is_caught: KeepsLeasesThatAreGivenUp
        by leases::a_lease_of_no_time_is_given_up, "holds none";
    a_store_that_gives_up_all_leases_is_caught: GivesUpAllLeases
        by leases::a_lease_of_no_time_is_given_up, "leaves those of others alone";
    a_store_that_mixes_up_engines_is_caught: MixesUpEngines
        by leases::engines_are_told_apart_by_their_whole_ids, "told apart";

    a_store_that_checks_before_it_writes_is_caught: ChecksBeforeItWrites
        by races::of_concurrent_appends_at_one_position_exactly_one_succeeds, "exactly one succeeds";
    a_store_that_removes_between_a_check_and_its_write_is_caught: ChecksBeforeItWrites
        by races::a_remove_leaves_nothing_of_an_append_at_the_same_time, "a remove leaves nothing";
    a_store_that_shows_parts_of_batches_is_caught: AppendsInTwoParts
        by races::nobody_reads_half_of_a_batch, "nobody sees a part of a batch";
    a_store_that_sums_up_too_late_is_caught: SumsUpTooLate
        by races::nobody_lists_a_batch_without_its_summary, "together with its summary";
    a_store_that_answers_too_early_is_caught: AnswersTooEarly
        by races::a_call_that_returned_comes_before_calls_that_begin_later, "takes effect before it returns";

    a_store_that_appends_in_two_parts_is_caught: AppendsInTwoParts
        by cancel::an_append_that_is_dropped_is_done_or_not_done, "done or not done";
    a_store_that_sums_up_apart_is_caught: SumsUpTooLate
        by cancel::an_append_that_is_dropped_is_done_or_not_done, "the journal and the summary alike";
    a_store_that_removes_in_two_parts_is_caught: RemovesInTwoParts
        by cancel::a_remove_that_is_dropped_is_done_or_not_done, "done or not done";
}

/// Serialises its own calls, but not those of another handle.
#[derive(Clone)]
struct LocksByHandle(FaultyJournals, Arc<tokio::sync::Mutex<()>>);

impl LocksByHandle {
    fn handle(journals: &FaultyJournals) -> Self {
        Self(journals.clone(), Arc::default())
    }
}

impl EventStore for LocksByHandle {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let (own, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            let _locked = own.1.lock().await;
            own.0.append(&run, expected, batch).await
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.0.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.0.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.0.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.0.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.0.lease(engine, duration)
    }
}

fn locks_by_handle() -> Subject<LocksByHandle> {
    let backend = FaultyJournals::new(Fault::ChecksBeforeItWrites);
    let (one, other) = (LocksByHandle::handle(&backend), LocksByHandle::handle(&backend));
    Subject::new(|| one).reopen(|| other)
}

#[test]
fn a_store_that_locks_by_handle_is_caught_by_two_handles_only() {
    races::of_concurrent_appends_at_one_position_exactly_one_succeeds(locks_by_handle());
    let check = handles::of_appends_by_two_handles_at_one_position_exactly_one_succeeds;
    let text = failure(|| check(locks_by_handle()));
    assert!(text.contains("of appends by two handles at one position exactly one succeeds"), "{text}");
}

#[test]
fn a_handle_that_sees_nothing_of_the_other_is_caught() {
    let subject = Subject::new(MemoryStore::default).reopen(MemoryStore::default);
    let text = failure(|| handles::what_one_handle_did_the_other_sees(subject));
    assert!(text.contains("what one handle did the other sees when it has returned"), "{text}");
}

#[test]
fn a_handle_that_knows_only_its_own_leases_is_caught() {
    let subject = Subject::new(MemoryStore::default).reopen(MemoryStore::default);
    let text = failure(|| handles::a_lease_by_one_handle_the_other_sees(subject));
    assert!(text.contains("is seen by the other"), "{text}");
}

/// Never returns from a call.
struct Hangs;

impl EventStore for Hangs {
    fn append(&self, _: &RunId, _: Position, _: Write) -> StoreFuture<()> {
        StoreFuture::new(std::future::pending())
    }

    fn read(&self, _: &RunId, _: Position, _: usize) -> StoreFuture<Vec<Record>> {
        StoreFuture::ready(Ok(Vec::new()))
    }

    fn runs(&self, _: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        StoreFuture::ready(Ok(Vec::new()))
    }

    fn remove(&self, _: &RunId) -> StoreFuture<bool> {
        StoreFuture::ready(Ok(false))
    }

    fn retain(&self, _: &Retention) -> StoreFuture<u64> {
        StoreFuture::ready(Ok(0))
    }

    fn lease(&self, _: &EngineId, _: Duration) -> StoreFuture<Vec<EngineId>> {
        StoreFuture::ready(Ok(Vec::new()))
    }
}

#[test]
fn a_call_that_never_returns_is_named() {
    let subject = Subject::new(|| Hangs).patience(Duration::from_millis(200));
    let text = failure(|| ids::the_empty_text_is_an_id(subject));
    let named = "a call never returned: 5 calls were made, the last was `append` of 2 records to ";
    assert!(text.starts_with(named) && text.ends_with("nothing happened for 200ms"), "{text}");
}
