//! The contract of `ContextStore`, sentence by sentence. Each check is a function that panics if the contract is
//! broken; the macro makes a test of each. Every check uses its own scopes, so all checks can share one backend with
//! leftovers of earlier tests.

pub mod cancel;
pub mod clear;
pub mod keys;
pub mod list;
pub mod order;
mod place;
pub mod races;
pub mod update;
pub mod values;

/// The tests that a [`ContextStore`](workflow_core::store::ContextStore) must pass: one for each sentence of its
/// contract that can be tested.
///
/// The macro takes an expression that opens a store, of type `FnOnce() -> S` where `S: ContextStore`, and expands to a
/// module `context_store` of tests. Each test evaluates the expression once, in the scope of the calling module. To
/// test several stores in one file, put each into a module of its own.
///
/// - The stores may share a backend, even concurrently: no two tests use the same scope. The suite does not clean up.
/// - Each store is opened and dropped outside of any task, inside a multi-threaded tokio runtime with timers and I/O.
///   To await in the expression, write `|| tokio::runtime::Handle::current().block_on(MyStore::open(url))`.
/// - A test fails after a minute. The longest by far makes 200 updates of one key, eight at a time.
///
/// The suite does not test a store whose backend is unreachable
/// ([`Unavailable`](workflow_core::errors::ContextError::Unavailable)), crash safety, or several processes.
///
/// ```
/// # use workflow_core::store::MemoryContexts;
/// workflow_testkit::context_store_conformance!(MemoryContexts::default);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! context_store_conformance {
    ($open:expr $(,)?) => {
        $crate::__conformance_suite! { context_store: $open;
            order {
                what_was_set_is_there_for_every_later_get
                a_key_that_was_never_set_has_no_value
                a_get_changes_nothing
                a_set_returns_the_value_that_was_there
                setting_none_removes_the_value
                removing_what_is_not_there_is_no_error
                setting_the_same_value_twice_is_as_good_as_once
                a_call_that_returned_comes_before_calls_that_begin_later
            }
            keys {
                keys_of_a_scope_are_independent
                scopes_are_independent
                a_run_and_a_thread_of_one_name_are_two_scopes
                the_end_of_a_scope_is_not_the_beginning_of_a_key
                keys_of_1_kib_are_told_apart_to_their_last_byte
            }
            update {
                an_update_hands_the_value_to_its_change_and_returns_what_it_stored
                an_update_to_none_removes_the_value
                a_change_that_fails_leaves_everything_as_it_was
                a_change_that_panics_leaves_everything_as_it_was
                no_lock_is_held_while_a_change_runs
                a_change_is_applied_to_the_very_value_that_it_replaces
            }
            races {
                concurrent_updates_all_count
                of_concurrent_sets_each_returns_what_it_replaced
                updates_of_several_keys_do_not_disturb_each_other
                nobody_sees_half_of_a_value
            }
            values {
                values_are_read_back_as_they_were_written
                a_value_that_is_null_is_a_value
                a_value_can_be_read_as_the_type_that_was_written
                a_value_can_change_its_type
                a_value_without_a_form_as_json_is_kept_as_it_is_or_changes_nothing
            }
            list {
                a_list_has_every_key_with_its_value_in_the_order_of_their_bytes
                pages_follow_each_other_without_a_gap
                a_page_begins_after_a_key_that_need_not_be_there
                a_list_has_nothing_of_other_scopes
                a_scope_that_has_nothing_lists_nothing
                a_list_has_what_was_set_and_not_what_was_removed
                a_value_that_is_null_is_listed
                a_list_changes_nothing
                writes_between_two_pages_do_not_move_what_is_listed
                pages_that_are_read_during_writes_have_each_key_once
                a_list_has_all_that_is_cleared_or_nothing_of_it
            }
            clear {
                clear_removes_everything_in_a_scope
                clear_leaves_other_scopes_alone
                clear_can_be_repeated_at_will
                a_scope_that_was_cleared_can_be_used_again
            }
            cancel {
                a_set_that_is_dropped_is_done_or_not_done
                an_update_that_is_dropped_is_done_or_not_done
                a_clear_that_is_dropped_is_done_or_not_done
            }
        }
    };
}
