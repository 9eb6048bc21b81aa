//! The contract of `Clock`, sentence by sentence. Each check is a function that panics if the contract is broken; the
//! macro makes a test of each. No check limits how long something takes. Checks assert only order, and that something
//! happens at all.

pub mod drops;
pub mod readings;
pub mod sleeps;
mod subject;
pub mod threads;

pub use subject::Subject;

/// The tests that a [`Clock`](workflow_core::Clock) must pass: one for each sentence of its contract that can
/// be tested.
///
/// The macro takes an expression that makes a clock, of type `FnOnce() -> C` where `C: Clock`, and expands to a module
/// `clock` of tests. Each test evaluates the expression once, in the scope of the calling module. To test several
/// clocks in one file, put each into a module of its own.
///
/// - A clock whose time passes by itself needs no second argument. The tests wait for it, at most about twenty
///   milliseconds at a time if it runs at normal speed.
/// - A clock that the test drives needs a second expression, of type `Fn(&C, Duration)`, that advances it by that much.
///   The tests call it from any thread.
/// - For a clock that follows tokio's virtual time, pause the time where you make it: `|| { tokio::time::pause();
///   VirtualClock::new() }`.
/// - Each clock is made inside a single-threaded tokio runtime with timers. Its sleeps are polled there. Other threads
///   read its time and create sleeps as well.
/// - A test fails after ten seconds and reports what it waited for. Set another limit at the end:
///   `clock_conformance!(open, patience = Duration::from_mins(1))`.
///
/// The suite does not test how soon a sleep ends after its time, nor a clock on a machine that is suspended or whose
/// clock is set.
///
/// ```
/// mod system {
///     workflow_testkit::clock_conformance!(|| workflow_core::SystemClock);
/// }
///
/// mod by_hand {
///     use std::sync::{Arc, Mutex};
///     use std::task::{Poll, Waker};
///     use std::time::{Duration, SystemTime};
///
///     use futures::future::{BoxFuture, poll_fn};
///     use workflow_core::Clock;
///
///     /// The time, and who waits for a later one.
///     struct Hands(Arc<Mutex<(SystemTime, Vec<Waker>)>>);
///
///     impl Hands {
///         fn new() -> Self {
///             Self(Arc::new(Mutex::new((SystemTime::UNIX_EPOCH, Vec::new()))))
///         }
///
///         fn advance(&self, by: Duration) {
///             let mut hands = self.0.lock().unwrap();
///             hands.0 += by;
///             hands.1.drain(..).for_each(Waker::wake);
///         }
///     }
///
///     impl Clock for Hands {
///         fn now(&self) -> SystemTime {
///             self.0.lock().unwrap().0
///         }
///
///         fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
///             let hands = Arc::clone(&self.0);
///             Box::pin(poll_fn(move |context| {
///                 let mut hands = hands.lock().unwrap();
///                 if hands.0 >= at {
///                     return Poll::Ready(());
///                 }
///                 hands.1.push(context.waker().clone());
///                 Poll::Pending
///             }))
///         }
///     }
///
///     workflow_testkit::clock_conformance!(Hands::new, Hands::advance);
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! clock_conformance {
    ($open:expr $(, patience = $patience:expr)? $(,)?) => {
        $crate::__clock_conformance! { $crate::conformance::clock::Subject::new($open)$(.patience($patience))? }
    };
    ($open:expr, $advance:expr $(, patience = $patience:expr)? $(,)?) => {
        $crate::__clock_conformance! {
            $crate::conformance::clock::Subject::driven($open, $advance)$(.patience($patience))?
        }
    };
}

/// The tests of a clock, for either way of advancing it.
#[doc(hidden)]
#[macro_export]
macro_rules! __clock_conformance {
    ($subject:expr) => {
        $crate::__conformance_suite! { clock: $subject;
            readings {
                time_goes_on
                now_does_not_go_backwards
                now_does_not_go_backwards_from_one_thread_to_another
            }
            sleeps {
                a_sleep_does_not_end_before_its_time
                a_sleep_ends_when_its_time_has_come
                a_sleep_until_a_time_that_has_passed_ends_at_once
                a_sleep_that_is_first_polled_late_ends_at_once
                a_sleep_does_not_block_its_thread
                a_sleep_wakes_the_task_that_polled_it_last
                a_time_thousands_of_years_away_is_waited_for_like_any_other
                a_long_sleep_does_not_hold_up_a_short_one
                a_thousand_sleeps_end_each_at_its_time
            }
            threads {
                a_sleep_is_made_on_any_thread_also_without_a_runtime
                sleeps_are_made_on_several_threads_at_once
                time_that_passes_on_another_thread_wakes_a_sleep
            }
            drops {
                a_dropped_sleep_leaves_others_until_the_same_time_alone
                a_sleep_that_is_dropped_when_its_time_has_come_leaves_others_alone
                a_sleep_that_is_begun_anew_over_and_over_keeps_its_time
            }
        }
    };
}
