//! The shared events, and the assertions for all workflows.

use futures::StreamExt as _;
use workflow_core::prelude::*;
use workflow_core::{AnyRun, DisplayItem, DisplayStream};

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

/// Waits for a note.
pub(crate) struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn work(&self, begin: &Begin, note: &Note) -> Done {
        Done(begin.0 + note.0)
    }
}

/// Yields to other tasks until a condition holds; fails the test if it never does.
pub(crate) async fn until(is_so: impl AsyncFn() -> bool) {
    let since = std::time::Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < std::time::Duration::from_mins(2), "what is waited for does not happen");
        tokio::task::yield_now().await;
    }
}

/// What a display told of requests, and its end.
fn told(item: &DisplayItem) -> String {
    match item {
        DisplayItem::Asked { request } => format!("asked {}", request.seq()),
        DisplayItem::Closed { seq, .. } => format!("closed {seq}"),
        DisplayItem::Child { path, item } => format!("{} {}", path[path.len() - 1].run, told(item)),
        item => format!("{item:?}"),
    }
}

/// Asserts for a run that has ended here: each request was asked and closed once, and a viewer who comes back after any
/// item receives what this one received, who never left.
pub(crate) async fn assert_told_once(run: &AnyRun, viewer: DisplayStream) {
    let live: Vec<String> = viewer.map(|item| told(&item)).collect().await;
    let (mut later, mut items) = (run.display(), Vec::new());
    while let Some(item) = later.next().await {
        items.push((later.position().unwrap(), told(&item)));
    }
    let told_all: Vec<String> = items.iter().map(|(_, item)| item.clone()).collect();
    assert_eq!(live, told_all);
    for (place, (position, _)) in items.iter().enumerate().take(items.len() - 1) {
        let again: Vec<String> = run.display_after(*position).map(|item| told(&item)).collect().await;
        assert_eq!(again, told_all[place + 1..]);
    }
    for item in &told_all {
        assert_eq!(told_all.iter().filter(|other| *other == item).count(), 1, "{told_all:?}");
        let closed = item.replace("asked", "closed");
        assert!(told_all.contains(&closed), "{closed}: {told_all:?}");
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
