//! The shapes with a runtime of their own: observers, and work shared by two threads.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use workflow_benches::figure::{Figure, Target};
use workflow_benches::in_turns;
use workflow_benches::work::{Way, Work};

use crate::row::Row;
use crate::side_by_side::{self, go, per_item};

/// A subscriber that enables everything and does nothing.
struct Ignores;

impl Subscriber for Ignores {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// On one thread, which alone has the subscriber.
pub(crate) fn observed(turns: usize, works: &[Work]) -> Vec<Row> {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let go = |way: &Way| tracing::subscriber::with_default(Ignores, || go(&runtime, way));
    side_by_side::measure(turns, works, &go, None)
}

/// The speed-up of two threads for work that a workflow spreads.
pub(crate) fn speed_up(turns: usize, work: &Work) -> Option<Figure> {
    let way = work.ours()?;
    let threads = |threads: usize| {
        Builder::new_multi_thread().worker_threads(threads).enable_all().build().expect("a runtime starts")
    };
    let runtimes: [Runtime; 2] = [threads(1), threads(2)];
    let turn = |runtime| Box::new(move || go(runtime, way).0) as Box<dyn FnMut() -> Duration + '_>;
    let times = in_turns(turns, runtimes.iter().map(turn).collect());
    let [one, two] = [times[0], times[1]].map(|time| per_item(time, work.items));
    let rates = [two, one].map(|time| 1e9 / time);
    let figure = Figure::new(&work.name, "branches/s", rates[0], rates[1]);
    Some(figure.beside("one thread instead of two").target(Target::AtLeast(1.85)))
}
