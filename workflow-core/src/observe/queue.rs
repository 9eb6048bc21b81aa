//! The queue and the thread of each observer.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::added::Added;
use super::{Observation, Observed, Observer};
use crate::panics::{caught, locked};

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
        let replies: Vec<Receiver<()>> = queues.map(Queue::mark).collect();
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
        if self.queues.is_empty() {
            return;
        }
        let observation = Arc::new(observation.clone());
        for queue in &self.queues {
            queue.push(&observation);
        }
    }
}

/// Longer than any wait, and still in the range of a clock.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// How many observations the thread of an observer takes at once.
const BATCH: usize = 256;

/// How long such a thread still looks into its queue by itself after it has emptied it. Meanwhile no run has to wake it,
/// which costs a run more than all else that an observer does.
const LINGER: Duration = Duration::from_millis(1);

enum Message {
    Observation(Arc<Observation>),
    Mark(SyncSender<()>),
}

/// The queue of an observer, which its thread empties. The thread ends once the queue is dropped and empty.
struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    waiting: Mutex<Waiting>,
    /// Wakes the thread.
    news: Condvar,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Message>,
    /// How many observations found the queue full since the last message, and the latest of them.
    missed: Option<(u64, Arc<Observation>)>,
    /// Whether the thread sleeps until it is woken.
    sleeps: bool,
    /// Whether nothing more comes, or nobody takes it.
    closed: bool,
}

impl Queue {
    fn start(observer: Arc<dyn Observer>) -> Self {
        let shared = Arc::new(Shared { waiting: Mutex::default(), news: Condvar::new() });
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("workflow-observer".into());
        // If the thread cannot start, the observer sees nothing, and no run fails.
        if thread.spawn(move || serving.serve(&*observer)).is_err() {
            shared.close();
        }
        Self { shared }
    }

    fn push(&self, observation: &Arc<Observation>) {
        let mut waiting = locked(&self.shared.waiting);
        if waiting.closed {
            return;
        }
        if waiting.messages.len() >= QUEUE {
            let count = waiting.missed.as_ref().map_or(0, |(count, _)| *count);
            waiting.missed = Some((count + 1, Arc::clone(observation)));
            return;
        }
        waiting.add_missed();
        waiting.messages.push_back(Message::Observation(Arc::clone(observation)));
        // A thread that lingers is woken too if much waits for it.
        if waiting.sleeps || waiting.messages.len() == QUEUE / 2 {
            waiting.sleeps = false;
            drop(waiting);
            self.shared.news.notify_one();
        }
    }

    /// A receiver that completes when the observer has seen all observations up to now.
    fn mark(&self) -> Receiver<()> {
        let (sender, receiver) = sync_channel(1);
        let mut waiting = locked(&self.shared.waiting);
        if !waiting.closed {
            waiting.add_missed();
            waiting.messages.push_back(Message::Mark(sender));
            waiting.sleeps = false;
            self.shared.news.notify_one();
        }
        receiver
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl Waiting {
    /// Adds the number of observations that were missed, if there is one.
    fn add_missed(&mut self) {
        if let Some((count, last)) = self.missed.take() {
            let missed = Observation { what: Observed::Missed { count }, ..(*last).clone() };
            self.messages.push_back(Message::Observation(Arc::new(missed)));
        }
    }
}

impl Shared {
    fn close(&self) {
        locked(&self.waiting).closed = true;
        self.news.notify_one();
    }

    fn serve(&self, observer: &dyn Observer) {
        while let Some(batch) = self.next_batch() {
            for message in batch {
                match message {
                    Message::Observation(observation) => {
                        let _ = caught(|| observer.observe(&observation));
                    }
                    Message::Mark(sender) => {
                        let _ = sender.try_send(());
                    }
                }
            }
        }
    }

    /// The next messages, or `None` after the last ones. Blocks until there are some.
    fn next_batch(&self) -> Option<Vec<Message>> {
        let mut waiting = locked(&self.waiting);
        if waiting.messages.is_empty() && !waiting.closed {
            waiting = self.news.wait_timeout(waiting, LINGER).unwrap_or_else(PoisonError::into_inner).0;
        }
        loop {
            if waiting.messages.len() < BATCH {
                waiting.add_missed();
            }
            if !waiting.messages.is_empty() {
                waiting.sleeps = false;
                let count = waiting.messages.len().min(BATCH);
                return Some(waiting.messages.drain(..count).collect());
            }
            if waiting.closed {
                return None;
            }
            waiting.sleeps = true;
            waiting = self.news.wait(waiting).unwrap_or_else(PoisonError::into_inner);
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
