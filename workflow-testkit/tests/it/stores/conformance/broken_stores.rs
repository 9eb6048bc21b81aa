//! Each fault of a store fails the check of the broken promise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use workflow_testkit::conformance::context_store::{cancel, clear, keys, list, order, races, update, values};

use super::faulty::{Fault, Faulty};

/// The message of a failing check.
pub(crate) fn failure(check: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(check)).expect_err("the check passed what it has to catch");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).expect("a panic has a text")
}

/// A test per fault: the check that fails, and its demand.
macro_rules! caught {
    ($($name:ident: $fault:ident by $topic:ident::$check:ident, $demand:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let text = failure(|| $topic::$check(|| Faulty::new(Fault::$fault)));
                assert!(text.contains($demand), "{text}");
            }
        )*
    };
}

caught! {
    a_store_that_forgets_writes_is_caught: ForgetsWrites
        by order::what_was_set_is_there_for_every_later_get, "`get` finds what was set before it";
    a_store_whose_reads_remove_is_caught: ReadingRemoves
        by order::a_get_changes_nothing, "`get` changes nothing";
    a_store_that_returns_before_it_has_written_is_caught: WritesTooLate
        by order::a_call_that_returned_comes_before_calls_that_begin_later, "takes effect before it returns";
    a_store_that_returns_the_new_value_is_caught: SetReturnsTheNewValue
        by order::a_set_returns_the_value_that_was_there, "`set` returns `None` where there was no value";
    a_store_that_does_not_remove_is_caught: RemovesNothing
        by order::setting_none_removes_the_value, "removes the value that is there";
    a_store_that_cannot_remove_nothing_is_caught: RemovingNothingIsAnError
        by order::removing_what_is_not_there_is_no_error, "`set` has no reason to fail here";
    a_store_that_takes_runs_for_threads_is_caught: TakesRunsForThreads
        by keys::a_run_and_a_thread_of_one_name_are_two_scopes, "a run and a thread are two scopes";
    a_store_that_joins_scope_and_key_is_caught: JoinsScopeAndKey
        by keys::the_end_of_a_scope_is_not_the_beginning_of_a_key, "not one joined text";
    a_store_that_ignores_case_is_caught: IgnoresCase
        by keys::keys_of_a_scope_are_independent, "keys are independent";
    a_store_that_cuts_keys_is_caught: CutsKeys
        by keys::keys_of_1_kib_are_told_apart_to_their_last_byte, "kept whole";
    a_store_that_has_no_value_between_two_is_caught: SetsInTwoParts
        by cancel::a_set_that_is_dropped_is_done_or_not_done, "done or not done";
    a_store_that_shows_nothing_between_two_values_is_caught: SetsInTwoParts
        by races::nobody_sees_half_of_a_value, "nobody sees half of a call";
    a_store_that_updates_in_two_parts_is_caught: UpdatesInTwoParts
        by cancel::an_update_that_is_dropped_is_done_or_not_done, "done or not done";
    a_store_that_loses_updates_is_caught: UpdatesInTwoParts
        by races::concurrent_updates_all_count, "concurrent increments counts";
    a_store_that_replaces_what_its_change_has_not_seen_is_caught: UpdatesWithoutLooking
        by update::a_change_is_applied_to_the_very_value_that_it_replaces, "the one that is replaced";
    a_store_whose_updates_return_the_old_value_is_caught: UpdateReturnsTheOldValue
        by races::concurrent_updates_all_count, "each update returns what it stored itself";
    a_store_whose_updates_cannot_remove_is_caught: UpdateKeepsWhatIsRemoved
        by update::an_update_to_none_removes_the_value, "`update` returns `None`";
    a_store_that_a_failed_change_empties_is_caught: FailedChangeRemoves
        by update::a_change_that_fails_leaves_everything_as_it_was, "leaves the value that was there";
    a_store_that_hides_the_error_of_a_change_is_caught: HidesTheErrorOfAChange
        by update::a_change_that_fails_leaves_everything_as_it_was, "returns the error that its change";
    a_store_that_a_panic_empties_is_caught: PanicRemoves
        by update::a_change_that_panics_leaves_everything_as_it_was, "leaves the value that was there";
    a_store_that_hides_panics_is_caught: HidesPanics
        by update::a_change_that_panics_leaves_everything_as_it_was, "lets a panic of its change pass";
    a_store_that_takes_null_for_nothing_is_caught: TakesNullForNothing
        by values::a_value_that_is_null_is_a_value, "not the same as no value";
    a_store_that_keeps_only_text_is_caught: KeepsOnlyText
        by values::values_are_read_back_as_they_were_written, "read back as it was";
    a_store_that_removes_before_it_serialises_is_caught: RemovesBeforeItSerialises
        by values::a_value_without_a_form_as_json_is_kept_as_it_is_or_changes_nothing, "nothing was changed";
    a_store_that_hides_that_it_serialises_is_caught: HidesThatItSerialises
        by values::a_value_without_a_form_as_json_is_kept_as_it_is_or_changes_nothing, "form as JSON `serialises`";
    a_store_that_clears_one_key_only_is_caught: ClearsOneKeyOnly
        by clear::clear_removes_everything_in_a_scope, "removes everything in a scope";
    a_store_that_clears_all_scopes_is_caught: ClearsEverything
        by clear::clear_leaves_other_scopes_alone, "alone";
    a_store_that_clears_key_by_key_is_caught: ClearsKeyByKey
        by cancel::a_clear_that_is_dropped_is_done_or_not_done, "done or not done";
    a_store_that_cannot_clear_nothing_is_caught: ClearingNothingIsAnError
        by clear::clear_can_be_repeated_at_will, "`clear` has no reason to fail here";
    a_store_that_lists_in_another_order_is_caught: ListsInTheOrderOfUtf16
        by list::a_list_has_every_key_with_its_value_in_the_order_of_their_bytes, "in the order of";
    a_store_whose_pages_begin_too_early_is_caught: ListsTheKeyItBeginsAfter
        by list::pages_follow_each_other_without_a_gap, "after the last of the page before";
    a_store_whose_pages_begin_too_late_is_caught: PagesLeaveAGap
        by list::pages_follow_each_other_without_a_gap, "goes on where the one before it ended";
    a_store_whose_pages_are_too_long_is_caught: PagesAreTooLong
        by list::pages_follow_each_other_without_a_gap, "a page of at most 1 has 2 keys";
    a_store_that_takes_no_key_for_an_end_is_caught: PagesOfNoneAreEmpty
        by list::pages_follow_each_other_without_a_gap, "in pages of 0";
    a_store_that_has_to_find_where_a_page_begins_is_caught: ListsAllAfterAKeyThatIsNotThere
        by list::a_page_begins_after_a_key_that_need_not_be_there, "be it there or not";
    a_store_that_lists_threads_with_runs_is_caught: ListsThreadsWithRuns
        by list::a_list_has_nothing_of_other_scopes, "nothing of other scopes";
    a_store_that_lists_what_was_removed_is_caught: ListsWhatWasRemoved
        by list::a_list_has_what_was_set_and_not_what_was_removed, "not what was removed";
    a_store_that_lists_what_a_scope_had_is_caught: ListsWhatWasRemoved
        by list::a_scope_that_has_nothing_lists_nothing, "to a `set` lists nothing";
    a_store_that_cannot_list_nothing_is_caught: ListingNothingIsAnError
        by list::a_scope_that_has_nothing_lists_nothing, "`list` has no reason to fail here";
    a_store_that_does_not_list_null_is_caught: TakesNullForNothing
        by list::a_value_that_is_null_is_listed, "not the same as no value";
    a_store_whose_lists_remove_is_caught: ListingRemoves
        by list::a_list_changes_nothing, "it can be repeated";
    a_store_that_counts_its_pages_is_caught: PagesAreCounted
        by list::writes_between_two_pages_do_not_move_what_is_listed, "a key that stays is listed once";
    a_store_that_counts_its_pages_while_others_write_is_caught: PagesAreCounted
        by list::pages_that_are_read_during_writes_have_each_key_once, "listed";
    a_store_that_shows_half_of_a_clear_is_caught: ClearsKeyByKey
        by list::a_list_has_all_that_is_cleared_or_nothing_of_it, "or nothing of it";
}

#[test]
fn a_store_that_locks_while_a_change_runs_is_caught() {
    // No caller gets the lock before the change has returned, so any time limit will do.
    let check = || {
        update::no_lock_is_held_within(Duration::from_millis(1), || Faulty::new(Fault::LocksWhileChanging));
    };
    let text = failure(check);
    assert!(text.contains("meanwhile nobody could read the key"), "{text}");
}
