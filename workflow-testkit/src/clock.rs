//! The clock of scenarios. It follows the virtual time of their runtime and begins on a fixed date.

use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep};
use workflow_core::Clock;

/// The days from the epoch to the first of January 2000.
const BEGINNING: Duration = Duration::from_hours(24 * 10_957);

/// The longest single sleep; tokio's timers fail beyond two years.
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// A clock that follows a tokio runtime's time, paused or not.
///
/// It begins at midnight on the first of January 2000, UTC.
///
/// While tokio's time is [paused](tokio::time::pause) the clock shows virtual time. It stands still while any task can
/// make progress, and then jumps to the next timer. So all recorded times are the same in each execution of a test, and
/// sleeps take no real time. A [`Scenario`](crate::Scenario) sets this clock on its engine. For your own engine, create
/// one in a test on paused time. Clones share one clock, also across threads.
///
/// ```
/// use std::time::Duration;
/// use workflow_core::{Clock, Engine};
/// use workflow_testkit::VirtualClock;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), workflow_core::BuildError> {
/// let clock = VirtualClock::new();
/// let engine = Engine::builder().clock(clock.clone()).build()?;
///
/// let tomorrow = clock.now() + Duration::from_hours(24);
/// clock.sleep_until(tomorrow).await;
/// assert_eq!(clock.now(), tomorrow);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct VirtualClock {
    runtime: Handle,
    began: Instant,
}

impl VirtualClock {
    /// Creates a clock that begins now, on the current runtime.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime. On a runtime without timers, a sleep that has to wait panics.
    #[expect(clippy::new_without_default, reason = "a default does not depend on where it is made")]
    pub fn new() -> Self {
        Self { runtime: Handle::current(), began: Instant::now() }
    }

    /// The time at which every virtual clock begins: 2000-01-01T00:00:00Z.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use workflow_testkit::VirtualClock;
    ///
    /// let seconds = Duration::from_secs(946_684_800);
    /// assert_eq!(VirtualClock::beginning(), SystemTime::UNIX_EPOCH + seconds);
    /// ```
    pub fn beginning() -> SystemTime {
        SystemTime::UNIX_EPOCH + BEGINNING
    }

    fn left(&self, at: SystemTime) -> Option<Duration> {
        at.duration_since(self.now()).ok().filter(|left| !left.is_zero())
    }

    fn sleep(&self, left: Duration) -> Sleep {
        let _entered = self.runtime.enter();
        tokio::time::sleep(left.min(LONGEST))
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> SystemTime {
        // Each runtime has its own time; a thread outside of it sees only real time.
        let _entered = self.runtime.enter();
        Self::beginning() + self.began.elapsed()
    }

    fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        Box::pin(async move {
            while let Some(left) = clock.left(at) {
                clock.sleep(left).await;
            }
        })
    }
}
