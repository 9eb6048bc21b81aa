//! The queue and the thread of each observer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use super::added::Added;
use super::{Observation, Observed, Observer};
use crate::panics::caught;

/// How many observations wait for a slow observer.
const QUEUE: usize = 4_096;

/// The observers of an engine. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observers {
    /// Those that the engine was built with.
    built: Arc<Audience>,
    /// Whether one of these looks at observations. Here, since every event of every run asks.
    looks: bool,
    pub(crate) added: Arc<Added>,
}

impl Observers {
    pub(crate) fn start(observers: Vec<Arc<dyn Observer>>) -> Self {
        let built = Audience::of(observers);
        Self { looks: !built.is_empty(), built: Arc::new(built), added: Arc::default() }
    }

    /// Whether there is no observer, so that no observation need be made.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.looks && self.added.is_empty()
    }

    pub(crate) fn wants_spans(&self) -> bool {
        self.built.wants_spans() || self.added.wants_spans()
    }

    /// Passes an observation to every observer. Never waits.
    pub(crate) fn tell(&self, observation: &Observation) {
        self.built.tell(observation);
        if !self.added.is_empty() {
            self.added.tell(observation);
        }
    }

    /// Waits until every observer has seen all earlier observations, or the time is up. Blocks.
    pub(crate) fn flush(&self, at_most: Duration) {
        let now = Instant::now();
        let until = now.checked_add(at_most).unwrap_or(now + FOREVER);
        let added = self.added.all();
        let queues = added.iter().chain([&self.built]).flat_map(|audience| &audience.queues);
        let replies: Vec<Receiver<()>> = queues.map(|queue| queue.mark(until)).collect();
        for reply in replies {
            let _ = reply.recv_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}

/// Some observers: those who look at observations at once, those with queues, and whether one wants spans.
#[derive(Debug, Default)]
pub(super) struct Audience {
    at_once: Vec<Arc<dyn Observer>>,
    queues: Vec<Queue>,
    spans: bool,
}

impl Audience {
    /// Starts a thread per observer, except for direct observers and those that only need spans. The threads end with
    /// the audience.
    pub(super) fn of(observers: impl IntoIterator<Item = Arc<dyn Observer>>) -> Self {
        let (spans, looking): (Vec<_>, Vec<_>) = observers.into_iter().partition(Observer::wants_spans);
        let (at_once, queued): (Vec<_>, Vec<_>) = looking.into_iter().partition(Observer::is_synchronous);
        Self { at_once, queues: queued.into_iter().map(Queue::start).collect(), spans: !spans.is_empty() }
    }

    /// Whether nobody looks at observations.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.at_once.is_empty()
    }

    pub(super) fn wants_spans(&self) -> bool {
        self.spans
    }

    pub(super) fn tell(&self, observation: &Observation) {
        for observer in &self.at_once {
            let _ = caught(|| observer.observe(observation));
        }
        for queue in &self.queues {
            queue.push(observation.clone());
        }
    }
}

/// Longer than any wait, and still in the range of a clock.
const FOREVER: Duration = Duration::from_hours(24 * 365);

enum Message {
    Observation(Box<Observation>),
    Mark(SyncSender<()>),
}

struct Queue {
    sender: SyncSender<Message>,
    missed: Arc<AtomicU64>,
}

impl Queue {
    fn start(observer: Arc<dyn Observer>) -> Self {
        let (sender, receiver) = sync_channel(QUEUE);
        let missed = Arc::<AtomicU64>::default();
        let serving = Serving { observer, missed: Arc::clone(&missed), last: None };
        // If the thread cannot start, the queue has no receiver: the observer sees nothing, and no run fails.
        let _ = std::thread::Builder::new()
            .name("workflow-observer".into())
            .spawn(move || serving.serve(&receiver));
        Self { sender, missed }
    }

    fn push(&self, observation: Observation) {
        let missed = self.missed.swap(0, Ordering::Relaxed);
        if missed > 0
            && !self.offer(Observation { what: Observed::Missed { count: missed }, ..observation.clone() })
        {
            self.missed.fetch_add(missed, Ordering::Relaxed);
        }
        if !self.offer(observation) {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn offer(&self, observation: Observation) -> bool {
        let offered = self.sender.try_send(Message::Observation(Box::new(observation)));
        !matches!(offered, Err(TrySendError::Full(_)))
    }

    /// A receiver that completes when the observer has seen all observations up to now.
    fn mark(&self, until: Instant) -> Receiver<()> {
        let (sender, receiver) = sync_channel(1);
        while let Err(TrySendError::Full(_)) = self.sender.try_send(Message::Mark(sender.clone())) {
            if Instant::now() >= until {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        receiver
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("missed", &self.missed).finish_non_exhaustive()
    }
}

/// An observer with the state of its thread.
struct Serving {
    observer: Arc<dyn Observer>,
    missed: Arc<AtomicU64>,
    last: Option<Box<Observation>>,
}

impl Serving {
    fn serve(mut self, receiver: &Receiver<Message>) {
        for message in receiver {
            match message {
                Message::Observation(observation) => {
                    self.tell(&observation);
                    self.last = Some(observation);
                }
                Message::Mark(sender) => {
                    self.tell_missed();
                    let _ = sender.try_send(());
                }
            }
        }
        self.tell_missed();
    }

    fn tell(&self, observation: &Observation) {
        let _ = caught(|| self.observer.observe(observation));
    }

    /// The latest missed observations, if no later observation has reported them.
    fn tell_missed(&self) {
        let count = self.missed.swap(0, Ordering::Relaxed);
        if let Some(last) = self.last.as_ref().filter(|_| count > 0) {
            self.tell(&Observation { what: Observed::Missed { count }, ..(**last).clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;
    use std::time::SystemTime;

    use super::*;
    use crate::id::RunId;

    fn observation() -> Observation {
        Observation {
            run: RunId::new("r"),
            workflow: "w".into(),
            at: SystemTime::now(),
            what: Observed::RunWaiting,
        }
    }

    struct Blocked(Mutex<mpsc::Receiver<()>>, Mutex<mpsc::Sender<Observed>>);

    impl Observer for Blocked {
        fn observe(&self, observation: &Observation) {
            let _ = self.1.lock().unwrap().send(observation.what.clone());
            let _ = self.0.lock().unwrap().recv();
        }
    }

    #[test]
    fn a_blocked_observer_receives_the_number_of_observations_it_missed() {
        let (release, blocked) = mpsc::channel();
        let (sender, seen) = mpsc::channel();
        let observers = Observers::start(vec![Arc::new(Blocked(Mutex::new(blocked), Mutex::new(sender)))]);
        observers.tell(&observation());
        let _first = seen.recv().unwrap();
        for _ in 0..QUEUE + 7 {
            observers.tell(&observation());
        }
        drop(release);
        observers.flush(Duration::from_mins(1));
        observers.tell(&observation());
        observers.flush(Duration::from_mins(1));
        let missed: Vec<u64> = seen
            .try_iter()
            .filter_map(|seen| if let Observed::Missed { count } = seen { Some(count) } else { None })
            .collect();
        assert_eq!(missed, [7]);
    }

    struct Panics(Mutex<mpsc::Sender<()>>);

    impl Observer for Panics {
        fn observe(&self, _: &Observation) {
            let _ = self.0.lock().map(|sender| sender.send(()));
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }

    #[test]
    fn an_observer_that_panics_is_called_again() {
        let (sender, seen) = mpsc::channel();
        let observers = Observers::start(vec![Arc::new(Panics(Mutex::new(sender)))]);
        observers.tell(&observation());
        observers.tell(&observation());
        observers.flush(Duration::from_mins(1));
        assert_eq!(seen.try_iter().count(), 2);
    }
}
