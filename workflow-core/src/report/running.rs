//! An attempt that is under way, in reports and explanations.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Below this a running attempt is no news.
const NEWS: Duration = Duration::from_secs(1);

/// An attempt that is silent after this has done no more than to begin.
const BEGIN: Duration = Duration::from_millis(100);

/// An attempt that runs in this process, by the engine's clock: for how long, and when it was last heard of.
///
/// It is heard of when a poll of its future ends, but for one by its own `timeout`, and when it, or a child run that it
/// started, shows an item that the run retains. So an attempt that awaits something slow is silent, and so is one that
/// computes without showing anything.
///
/// ```
/// # use std::time::Duration;
/// # use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Ask;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Answer;
/// # struct Slow;
/// # #[workflow]
/// # impl Slow {
/// #     #[step]
/// #     async fn answer(&self, _ask: &Ask) -> Answer { std::future::pending().await }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = Engine::builder().workflow(Slow).build()?;
/// let run = engine.start::<Slow>(Ask).await?;
/// tokio::time::sleep(Duration::from_millis(10)).await;
/// let report = run.report_so_far().await?;
/// let running = report.trace[0].running.ok_or("`answer` waits for something that never comes")?;
/// assert!(running.silent_for <= running.running_for);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunningAttempt {
    /// The time since it began. Earlier attempts and the delays between them do not count.
    pub running_for: Duration,
    /// The time since it was last heard of; as long as `running_for` if it has not been heard of.
    pub silent_for: Duration,
}

impl fmt::Display for RunningAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { running_for, silent_for } = *self;
        if running_for < NEWS {
            return f.write_str("still running");
        }
        write!(f, "running for {}s, ", running_for.as_secs())?;
        match silent_for {
            _ if silent_for < NEWS => f.write_str("last heard of less than a second ago"),
            _ if running_for.saturating_sub(silent_for) < BEGIN => f.write_str("not heard of since it began"),
            _ => write!(f, "last heard of {}s ago", silent_for.as_secs()),
        }
    }
}
