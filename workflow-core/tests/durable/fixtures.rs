//! The events that the workflows pass from step to step, and what is asserted of all of them.

use workflow_core::prelude::*;

/// Opens every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Begin(pub(crate) u32);

/// Comes from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(external)]
pub(crate) struct Note(pub(crate) u32);

/// Is passed from step to step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Item(pub(crate) u32);

/// Is passed from step to step as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Part(pub(crate) u32);

/// Ends every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Done(pub(crate) u32);

/// Lets others go on until something is so. That it never is fails the test.
pub(crate) async fn until(is_so: impl AsyncFn() -> bool) {
    let since = std::time::Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < std::time::Duration::from_mins(2), "what is waited for does not happen");
        tokio::task::yield_now().await;
    }
}

/// Each is a scenario that gives its store to its engine, and survives crashes everywhere; what comes behind it is what
/// else is said of these.
macro_rules! survive {
    ($($name:ident: $scenario:expr, $begin:expr $(, $and:ident($($more:expr),*))*;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let scenario = |store| -> workflow_testkit::Start<_> {
                    $scenario.engine(|engine| engine.store(store)).start(crate::fixtures::Begin($begin))
                };
                let survived = workflow_testkit::crash_everywhere(scenario)$(.$and($($more),*))*.await;
                // In every process the same comes in the same order.
                assert_eq!(survived.once(), 2 * survived.appends(), "{survived}");
                assert!(survived.appends() >= 2 && survived.twice() >= 4, "{survived}");
            }
        )*
    };
}

pub(crate) use survive;
