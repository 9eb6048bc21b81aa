//! Correct stores, observers and clocks pass the suites, and faulty ones are caught.

mod broken_clocks;
mod broken_journals;
mod broken_observers;
pub(crate) mod broken_stores;
mod faulty;
mod faulty_journals;
mod hands;
mod json_journals;
mod json_store;

/// The library's store, with names in scope that the suite must not mind.
mod contexts_in_memory {
    #[expect(unused_imports, reason = "it is in the way, and that is all it is for")]
    use tokio::test;
    use workflow_core::store::MemoryContexts;

    #[expect(dead_code, reason = "it is in the way, and that is all it is for")]
    struct Option;

    workflow_testkit::context_store_conformance!(MemoryContexts::default);
}

mod contexts_as_json {
    use super::json_store::JsonContexts;

    workflow_testkit::context_store_conformance!(|| JsonContexts::open("a file, say"));
}

/// The library's store, with the same names in scope.
mod journals_in_memory {
    #[expect(unused_imports, reason = "it is in the way, and that is all it is for")]
    use tokio::test;
    use workflow_core::store::MemoryStore;

    #[expect(dead_code, reason = "it is in the way, and that is all it is for")]
    struct Option;

    workflow_testkit::event_store_conformance!(MemoryStore::default);
}

mod journals_as_json {
    use std::time::Duration;

    use super::json_journals::JsonJournals;

    thread_local! {
        /// One for each test, which has a thread of its own.
        static FILE: JsonJournals = JsonJournals::open("a file, say");
    }

    workflow_testkit::event_store_conformance!(
        || FILE.with(Clone::clone),
        reopen = || FILE.with(Clone::clone),
        patience = Duration::from_mins(2)
    );
}

mod tracing_observer {
    use workflow_core::observe::TracingObserver;

    workflow_testkit::observer_conformance!(TracingObserver::new);
}

mod middling_observer {
    use workflow_core::observe::{Observation, Observer};

    /// Opens its target inside a runtime, and is slow for each line.
    struct Lines(tokio::runtime::Handle, tokio::sync::mpsc::Sender<String>);

    impl Lines {
        fn open(room: usize) -> Self {
            let (sender, mut lines) = tokio::sync::mpsc::channel(room);
            tokio::spawn(async move { while lines.recv().await.is_some() {} });
            Self(tokio::runtime::Handle::current(), sender)
        }
    }

    impl Observer for Lines {
        fn observe(&self, observation: &Observation) {
            let line = format!("{:?}", observation.what);
            // The receiver is gone when the runtime shuts down.
            let _ = self.0.block_on(self.1.send(line));
        }
    }

    workflow_testkit::observer_conformance!(|| Lines::open(1));
}

mod system_clock {
    use workflow_core::SystemClock;

    workflow_testkit::clock_conformance!(|| SystemClock);
}

mod virtual_clock {
    use workflow_testkit::VirtualClock;

    fn paused() -> VirtualClock {
        tokio::time::pause();
        VirtualClock::new()
    }

    workflow_testkit::clock_conformance!(paused);
}

mod virtual_clock_on_real_time {
    use workflow_testkit::VirtualClock;

    workflow_testkit::clock_conformance!(VirtualClock::new, patience = std::time::Duration::from_mins(1));
}

/// A clock that is driven by hand, with names in scope that the suite must not mind.
mod clock_by_hand {
    use super::hands::{Fault, Hands};
    #[expect(unused_imports, reason = "it is in the way, and that is all it is for")]
    use tokio::test;

    #[expect(dead_code, reason = "it is in the way, and that is all it is for")]
    struct Option;

    workflow_testkit::clock_conformance!(
        || Hands::new(Fault::Nothing),
        Hands::advance,
        patience = std::time::Duration::from_mins(1)
    );
}
