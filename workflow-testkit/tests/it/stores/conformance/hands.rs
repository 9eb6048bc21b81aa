//! A clock that is driven by hand, with one fault of any kind, or none.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::thread::ThreadId;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use workflow_core::Clock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    StandsStill,
    GoesBackwards,
    DiffersByThread,
    EndsTooEarly,
    NeverEnds,
    NeverWakes,
    MissesThePast,
    CountsFromTheFirstPoll,
    BlocksInAPoll,
    BlocksInTheCall,
    WakesTheFirstTaskOnly,
    PanicsFarAway,
    EndsFarAwayAtOnce,
    KnowsOneSleepOnly,
    ServesInOrder,
    DroppingForgetsAll,
    DroppingEndsAll,
    WakesOnlyOne,
    DroppingCountsAnew,
    NeedsARuntimeToMakeASleep,
    LosesSleepsMadeAtOnce,
    WakesOnItsOwnThreadOnly,
}

use Fault::*;

const STEP: Duration = Duration::from_millis(1);
const FAR: Duration = Duration::from_hours(24 * 365 * 2);

pub(crate) struct Hands {
    fault: Fault,
    state: Arc<Mutex<State>>,
}

struct State {
    now: SystemTime,
    readings: u32,
    made_on: ThreadId,
    /// The number of the next sleep.
    next: u64,
    waiting: Vec<(u64, Waker)>,
    /// The state of faults.
    ended: bool,
    late: Duration,
    /// The thread of the latest sleep.
    maker: Option<ThreadId>,
}

impl Hands {
    pub(crate) fn new(fault: Fault) -> Self {
        let state = State {
            now: SystemTime::UNIX_EPOCH + Duration::from_hours(1),
            readings: 0,
            made_on: std::thread::current().id(),
            next: 0,
            waiting: Vec::new(),
            ended: false,
            late: Duration::ZERO,
            maker: None,
        };
        Self { fault, state: Arc::new(Mutex::new(state)) }
    }

    pub(crate) fn advance(&self, by: Duration) {
        let mut state = self.state.lock().unwrap();
        if self.fault != StandsStill {
            state.now += by;
        }
        let woken = match self.fault {
            NeverWakes => 0,
            WakesOnItsOwnThreadOnly if state.maker != Some(std::thread::current().id()) => 0,
            WakesOnlyOne => state.waiting.len().min(1),
            _ => state.waiting.len(),
        };
        let waiting: Vec<Waker> = state.waiting.drain(..woken).map(|(_, waker)| waker).collect();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Clock for Hands {
    fn now(&self) -> SystemTime {
        let mut state = self.state.lock().unwrap();
        state.readings += 1;
        let is_elsewhere = state.made_on != std::thread::current().id();
        match self.fault {
            GoesBackwards if state.readings.is_multiple_of(50) => state.now - STEP,
            DiffersByThread if is_elsewhere => state.now - number_of_this_thread() * STEP,
            _ => state.now,
        }
    }

    fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
        let mut state = self.state.lock().unwrap();
        let left = at.duration_since(state.now).unwrap_or_default();
        if self.fault == BlocksInTheCall {
            block_for(left);
        }
        assert!(self.fault != PanicsFarAway || left < FAR, "a time as far away as that");
        if self.fault == NeedsARuntimeToMakeASleep {
            let _ = tokio::runtime::Handle::current();
        }
        let maker = std::thread::current().id();
        let is_shared = state.maker.replace(maker).is_some_and(|last| last != maker);
        state.next += 1;
        let mut sleep = Sleep {
            fault: self.fault,
            number: state.next,
            at,
            left,
            is_lost: self.fault == LosesSleepsMadeAtOnce && is_shared,
            is_polled: false,
            state: Arc::clone(&self.state),
        };
        drop(state);
        Box::pin(poll_fn(move |context| sleep.poll(context.waker())))
    }
}

fn number_of_this_thread() -> u32 {
    let digits: String =
        format!("{:?}", std::thread::current().id()).chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

fn block_for(left: Duration) {
    std::thread::sleep(left);
}

struct Sleep {
    fault: Fault,
    number: u64,
    at: SystemTime,
    /// The remaining time at its creation.
    left: Duration,
    is_lost: bool,
    is_polled: bool,
    state: Arc<Mutex<State>>,
}

impl Sleep {
    fn poll(&mut self, waker: &Waker) -> Poll<()> {
        let state = Arc::clone(&self.state);
        let mut state = state.lock().unwrap();
        let is_first = !std::mem::replace(&mut self.is_polled, true);
        if self.fault == CountsFromTheFirstPoll && is_first {
            self.at = state.now + self.left;
        }
        if self.has_ended(&state, is_first) {
            return Poll::Ready(());
        }
        if self.fault == BlocksInAPoll {
            drop(state);
            block_for(self.left);
            return Poll::Ready(());
        }
        self.wait(&mut state, waker);
        Poll::Pending
    }

    fn has_ended(&self, state: &MutexGuard<'_, State>, is_first: bool) -> bool {
        let has_come = state.now >= self.at && !self.is_lost;
        match self.fault {
            EndsTooEarly => state.now + STEP / 2 >= self.at,
            NeverEnds => self.left.is_zero(),
            MissesThePast => has_come && !is_first,
            EndsFarAwayAtOnce => has_come || self.left > FAR,
            DroppingEndsAll => has_come || state.ended,
            DroppingCountsAnew => state.now >= self.at + state.late,
            _ => has_come,
        }
    }

    fn wait(&self, state: &mut MutexGuard<'_, State>, waker: &Waker) {
        let is_there = state.waiting.iter().any(|(number, _)| *number == self.number);
        match self.fault {
            WakesTheFirstTaskOnly if is_there => return,
            KnowsOneSleepOnly => state.waiting.clear(),
            // Waits for the head of the queue before it serves others.
            ServesInOrder if !is_there && !state.waiting.is_empty() => return,
            _ => state.waiting.retain(|(number, _)| *number != self.number),
        }
        state.waiting.push((self.number, waker.clone()));
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap();
        let has_come = state.now >= self.at;
        match self.fault {
            DroppingForgetsAll => state.waiting.clear(),
            DroppingEndsAll if !has_come => {
                state.ended = true;
                state.waiting.drain(..).for_each(|(_, waker)| waker.wake());
            }
            DroppingCountsAnew if !has_come => state.late += STEP * 10,
            _ => {}
        }
    }
}
