//! The shared events, and the assertions for all workflows.

use workflow_core::prelude::*;

/// Opens every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Begin(pub(crate) u32);

/// An external event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(external)]
pub(crate) struct Note(pub(crate) u32);

/// A control event between steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Item(pub(crate) u32);

/// Another control event between steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Part(pub(crate) u32);

/// Ends every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Done(pub(crate) u32);

/// Yields to other tasks until a condition holds; fails the test if it never does.
pub(crate) async fn until(is_so: impl AsyncFn() -> bool) {
    let since = std::time::Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < std::time::Duration::from_mins(2), "what is waited for does not happen");
        tokio::task::yield_now().await;
    }
}

/// Expands each scenario to a test that it survives crashes everywhere; the block after it has additional assertions.
macro_rules! survive {
    ($($name:ident: $scenario:expr, $begin:expr $(, $and:ident($($more:expr),*))*;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let scenario = |store| -> workflow_testkit::Start<_> {
                    $scenario.engine(|engine| engine.store(store)).start(crate::fixtures::Begin($begin))
                };
                let survived = workflow_testkit::crash_everywhere(scenario)$(.$and($($more),*))*.await;
                // Every process has the same events in the same order.
                assert_eq!(survived.once(), 2 * survived.appends(), "{survived}");
                assert!(survived.appends() >= 2 && survived.twice() >= 4, "{survived}");
            }
        )*
    };
}

pub(crate) use survive;
