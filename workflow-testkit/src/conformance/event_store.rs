//! The contract of `EventStore`, sentence by sentence. Each check is a function that panics if the contract is broken;
//! the macro makes a test of each. Every check uses its own runs and workflows, so all checks can share one backend
//! with leftovers of earlier tests.

pub mod append;
pub mod cancel;
pub mod handles;
pub mod ids;
mod journal;
pub mod leases;
pub mod listing;
pub mod pages;
pub mod population;
pub mod queries;
pub mod races;
pub mod reading;
pub mod records;
pub mod removal;
pub mod retaining;
mod samples;
mod subject;
mod watched;

pub use subject::Subject;

/// The tests that an [`EventStore`](workflow_core::store::EventStore) must pass: one for each sentence of its
/// contract that can be tested.
///
/// The macro takes an expression that opens a store, of type `FnOnce() -> S` where `S: EventStore`, and expands to a
/// module `event_store` of tests. Each test evaluates the expression once, in the scope of the calling module. To test
/// several stores in one file, put each into a module of its own.
///
/// - The stores may share a backend, even concurrently: no two tests use the same run or workflow, and other data there
///   makes no difference. The suite does not clean up. Only one test uses the run with the empty id, and removes it
///   before and after.
/// - Each store is opened and dropped outside of any task, inside a multi-threaded tokio runtime with timers and I/O.
///   To await in the expression, write `|| tokio::runtime::Handle::current().block_on(MyStore::open(url))`.
/// - A test fails if one call takes longer than a minute. The longest test makes about 300 calls in sequence. Set
///   another limit at the end: `event_store_conformance!(open, patience = Duration::from_secs(5))`.
/// - If your backend allows a second handle, `event_store_conformance!(open, reopen = again)` tests two handles side by
///   side, as two processes would use them. A lock inside one store object does not separate them. `again` has the type
///   of `open`, and is evaluated while the first handle exists; `patience` follows it.
///
/// The suite does not test a store whose backend is unreachable
/// ([`Unavailable`](workflow_core::store::StoreError::Unavailable)) or damaged
/// ([`Corrupt`](workflow_core::store::StoreError::Corrupt)), crash safety, whether a slow run delays others, a retention of
/// all workflows at once, and, unless the store can be reopened, several handles on one backend.
///
/// ```
/// # use workflow_core::store::MemoryStore;
/// workflow_testkit::event_store_conformance!(MemoryStore::default);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! event_store_conformance {
    ($open:expr $(, patience = $patience:expr)? $(,)?) => {
        $crate::__event_store_conformance! {
            $crate::conformance::event_store::Subject::new($open)$(.patience($patience))?;
        }
    };
    ($open:expr, reopen = $reopen:expr $(, patience = $patience:expr)? $(,)?) => {
        $crate::__event_store_conformance! {
            $crate::conformance::event_store::Subject::new($open).reopen($reopen)$(.patience($patience))?;
            handles {
                of_appends_by_two_handles_at_one_position_exactly_one_succeeds
                what_one_handle_did_the_other_sees
                a_lease_by_one_handle_the_other_sees
            }
        }
    };
}

/// The tests of an event store, and those that need a certain kind of store.
#[doc(hidden)]
#[macro_export]
macro_rules! __event_store_conformance {
    ($subject:expr; $($more:tt)*) => {
        $crate::__conformance_suite! { event_store: $subject;
            $($more)*
            append {
                a_journal_begins_at_position_0_and_only_there
                a_journal_goes_on_where_it_ends_and_nowhere_else
                an_append_that_is_repeated_is_a_conflict
                a_conflict_changes_nothing
            }
            reading {
                a_batch_is_read_back_whole_and_in_its_order
                a_read_begins_at_its_position
                a_read_returns_at_most_so_many_records_and_at_least_one
                reads_put_together_are_the_whole_journal
                from_behind_the_end_there_is_nothing_to_read
                a_run_that_is_not_there_has_no_records
                a_read_changes_nothing
            }
            records {
                every_kind_of_record_is_read_back_as_it_was
                events_are_read_back_in_every_form_of_json
                an_event_without_a_form_as_json_is_kept_as_it_is_or_changes_nothing
                a_batch_of_1000_records_is_kept_whole
                an_event_of_1_mib_is_kept_whole
            }
            ids {
                runs_are_independent
                any_text_is_an_id
                ids_of_1_kib_are_told_apart_to_their_last_byte
                the_empty_text_is_an_id
            }
            listing {
                a_run_is_listed_as_its_latest_batch_left_it
                runs_are_listed_in_the_order_of_the_bytes_of_their_ids
                runs_that_have_ended_are_not_open
                runs_are_listed_by_the_whole_name_of_their_workflow
                a_listing_changes_nothing
            }
            pages {
                a_page_begins_behind_the_id_that_it_comes_after
                a_page_is_shorter_than_asked_only_if_it_is_the_last
                pages_put_together_list_each_run_once
                a_page_counts_only_the_runs_that_the_query_asks_for
            }
            queries {
                every_field_of_a_summary_is_listed_as_it_was_written
                a_query_for_one_run_lists_that_run_and_no_other
                runs_below_an_id_are_listed_and_no_others
                runs_are_listed_by_the_whole_name_of_their_thread
                runs_of_excluded_owners_are_not_listed
                the_run_that_started_last_is_listed_first_on_demand
                a_page_newest_first_begins_behind_its_run
                pages_newest_first_list_each_run_once
                a_page_newest_first_counts_only_the_runs_that_the_query_asks_for
                a_run_is_listed_by_its_latest_summary_alone
            }
            population {
                queries_list_what_a_scan_of_all_runs_finds
            }
            removal {
                a_run_that_was_removed_is_gone
                remove_says_whether_there_was_a_run
                remove_leaves_other_runs_alone
                the_id_of_a_run_that_was_removed_is_free
                who_still_writes_to_a_run_that_was_removed_gets_a_conflict
            }
            retaining {
                retain_removes_runs_that_have_ended_and_says_how_many
                retain_keeps_runs_that_go_on
                retain_keeps_children_as_long_as_a_run_above_them_goes_on
                retain_keeps_the_last_runs_that_ended
                retain_keeps_what_ended_a_short_while_ago
                retain_keeps_what_failed_on_demand
                retain_is_about_one_workflow_on_demand
                contexts_that_a_store_hands_out_are_its_own_and_go_with_the_runs
            }
            leases {
                who_takes_a_lease_holds_one
                a_lease_runs_out_and_not_before_its_time
                the_last_renewal_counts
                a_lease_of_no_time_is_given_up
                engines_are_told_apart_by_their_whole_ids
            }
            races {
                of_concurrent_appends_at_one_position_exactly_one_succeeds
                concurrent_writers_of_several_runs_do_not_disturb_each_other
                a_remove_leaves_nothing_of_an_append_at_the_same_time
                nobody_reads_half_of_a_batch
                nobody_lists_a_batch_without_its_summary
                a_call_that_returned_comes_before_calls_that_begin_later
            }
            cancel {
                an_append_that_is_dropped_is_done_or_not_done
                a_remove_that_is_dropped_is_done_or_not_done
                a_read_or_a_listing_that_is_dropped_is_in_nobodys_way
            }
        }
    };
}
