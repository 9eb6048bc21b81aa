//! The reference implementations: the code that a good tokio programmer would write by hand instead of a workflow. Both
//! forms have the same meaning as a run: events of any type enter a log, a static table says which steps take which
//! type, and a ready step gets its events from the log. Neither has checks, names, times, limits, failures, reports,
//! observers or cancellation.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::mpsc;

/// A type of events, by its index in the table.
pub(crate) trait Kind: Any + Send + Sync {
    const KIND: usize;
}

/// An event with the index of its type.
#[derive(Debug, Clone)]
pub(crate) struct Erased {
    kind: usize,
    event: Arc<dyn Any + Send + Sync>,
}

impl Erased {
    pub(crate) fn new<E: Kind>(event: E) -> Self {
        Self { kind: E::KIND, event: Arc::new(event) }
    }

    /// The event, of the type that a step takes.
    pub(crate) fn of<E: Kind>(&self) -> &E {
        self.event.downcast_ref().expect("the table has the type")
    }
}

/// The events of a step.
#[derive(Debug)]
pub(crate) enum Emitted {
    Nothing,
    One(Erased),
    Many(Vec<Erased>),
    /// The end, and its result.
    Stop(u64),
}

impl Emitted {
    pub(crate) fn one<E: Kind>(event: E) -> Self {
        Self::One(Erased::new(event))
    }

    pub(crate) fn many<E: Kind>(events: impl Iterator<Item = E>) -> Self {
        Self::Many(events.map(Erased::new).collect())
    }
}

/// A step that runs.
pub(crate) type Running = Pin<Box<dyn Future<Output = Emitted> + Send>>;

/// A step: called for each event of a type that it takes, it begins if it is ready.
pub(crate) type Step = fn(&Log, &Erased) -> Option<Running>;

/// The steps that take each type.
pub(crate) type Table = &'static [&'static [Step]];

/// A step that begins.
#[expect(clippy::unnecessary_wraps, reason = "it is what a step returns")]
pub(crate) fn begin(step: impl Future<Output = Emitted> + Send + 'static) -> Option<Running> {
    Some(Box::pin(step))
}

/// Every event in order, and the positions per type.
#[derive(Debug)]
pub(crate) struct Log {
    events: Vec<Erased>,
    by_kind: Vec<Vec<usize>>,
}

impl Log {
    fn new(kinds: usize) -> Self {
        Self { events: Vec::new(), by_kind: vec![Vec::new(); kinds] }
    }

    /// The number of events of a type.
    pub(crate) fn count<E: Kind>(&self) -> usize {
        self.by_kind[E::KIND].len()
    }

    /// The latest event of a type.
    pub(crate) fn latest<E: Kind>(&self) -> Option<&Erased> {
        self.by_kind[E::KIND].last().map(|&position| &self.events[position])
    }

    /// All events of a type.
    pub(crate) fn all<E: Kind>(&self) -> Vec<Erased> {
        self.by_kind[E::KIND].iter().map(|&position| self.events[position].clone()).collect()
    }

    /// Adds an event to the log; ready steps then begin.
    fn enter(&mut self, table: Table, event: Erased, mut begun: impl FnMut(Running)) {
        let position = self.events.len();
        self.by_kind[event.kind].push(position);
        self.events.push(event);
        let event = &self.events[position];
        table[event.kind].iter().filter_map(|step| step(self, event)).for_each(&mut begun);
    }

    /// Adds a step's events to the log; returns the result at the end.
    fn take(&mut self, table: Table, emitted: Emitted, mut begun: impl FnMut(Running)) -> Option<u64> {
        match emitted {
            Emitted::Nothing => {}
            Emitted::One(event) => self.enter(table, event, begun),
            Emitted::Many(events) => {
                for event in events {
                    self.enter(table, event, &mut begun);
                }
            }
            Emitted::Stop(result) => return Some(result),
        }
        None
    }
}

/// Runs everything in one task; returns the result, or 0 without one.
pub(crate) async fn floor<E: Kind>(table: Table, start: E) -> u64 {
    let mut log = Log::new(table.len());
    let mut running = FuturesUnordered::new();
    log.enter(table, Erased::new(start), |step| running.push(step));
    while let Some(emitted) = running.next().await {
        if let Some(result) = log.take(table, emitted, |step| running.push(step)) {
            return result;
        }
    }
    0
}

/// Runs a task per step, which returns its events through a channel; returns the result, or 0 without one.
pub(crate) async fn spawn<E: Kind>(table: Table, start: E) -> u64 {
    let (sender, mut emitted) = mpsc::unbounded_channel();
    let begun = |step: Running| {
        let sender = sender.clone();
        tokio::spawn(async move {
            // The receiver is gone after the end.
            let _ = sender.send(step.await);
        });
    };
    let mut log = Log::new(table.len());
    log.enter(table, Erased::new(start), begun);
    while let Some(emitted) = emitted.recv().await {
        if let Some(result) = log.take(table, emitted, begun) {
            return result;
        }
    }
    0
}
