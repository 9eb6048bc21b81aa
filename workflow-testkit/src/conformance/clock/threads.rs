//! Checks across threads: any thread may create a sleep or advance the time.

use std::sync::Barrier;
use std::time::Duration;

use workflow_core::Clock;

use super::Subject;
use super::subject::{Sleep, Watch};

/// The number of threads, and of sleeps per thread.
const THREADS: usize = 4;
const SLEEPS: usize = 50;

pub fn a_sleep_is_made_on_any_thread_also_without_a_runtime<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("a sleep that was made on a thread without a runtime ends when its time has come");
        let until = watch.now() + Duration::from_millis(20);
        let made = std::thread::scope(|threads| threads.spawn(|| watch.sleep(until)).join());
        let asleep = watch.fall_asleep(unwound(made), until).await;
        watch.pass_until(until).await;
        asleep.ends().await;
    });
}

pub fn sleeps_are_made_on_several_threads_at_once<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("of sleeps that were made on several threads at once each ends when its time has come");
        let until = watch.now() + Duration::from_millis(20);
        let mut asleep = Vec::new();
        for sleep in at_once(|| watch.sleep(until)) {
            asleep.push(watch.fall_asleep(sleep, until).await);
        }
        watch.pass_until(until).await;
        for asleep in asleep {
            asleep.ends().await;
        }
    });
}

/// Makes sleeps on several threads that begin together.
fn at_once(make: impl Fn() -> Sleep + Sync) -> Vec<Sleep> {
    let begin = Barrier::new(THREADS);
    let makes = || {
        begin.wait();
        (0..SLEEPS).map(|_| make()).collect::<Vec<_>>()
    };
    std::thread::scope(|threads| {
        let threads = [(); THREADS].map(|()| threads.spawn(makes));
        threads.into_iter().flat_map(|thread| unwound(thread.join())).collect()
    })
}

pub fn time_that_passes_on_another_thread_wakes_a_sleep<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("a sleep ends when its time has come, also when time passes on another thread");
        let until = watch.now() + Duration::from_millis(20);
        let asleep = watch.fall_asleep(watch.sleep(until), until).await;
        elsewhere(&watch, until).await;
        asleep.ends().await;
    });
}

/// Lets time pass on a thread without a runtime, if it does not pass by itself.
async fn elsewhere<C: Clock>(watch: &Watch<C>, until: std::time::SystemTime) {
    if watch.is_driven() {
        while watch.now() < until {
            let passed = std::thread::scope(|threads| threads.spawn(|| watch.pass_a_little()).join());
            unwound(passed);
        }
    } else {
        watch.pass_until(until).await;
    }
}

fn unwound<T>(joined: std::thread::Result<T>) -> T {
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
