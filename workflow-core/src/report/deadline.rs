//! The deadline of a run in its report.

use std::fmt;
use std::time::SystemTime;

use serde::Serialize;

use crate::text::utc;

/// The deadline of a run ([`RunOptions::deadline`](crate::RunOptions::deadline)).
///
/// ```
/// # use std::time::{Duration, SystemTime};
/// # use workflow_core::prelude::*;
/// # use workflow_core::RunOptions;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeted;
/// # struct Greeter;
/// # #[workflow]
/// # impl Greeter {
/// #     #[step]
/// #     async fn greet(&self, _greet: &Greet) -> Greeted { Greeted }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = Engine::builder().workflow(Greeter).build()?;
/// let tomorrow = SystemTime::now() + Duration::from_secs(86_400);
/// let run = engine.start_with::<Greeter>(Greet, RunOptions::new().deadline(tomorrow)).await?;
/// let deadline = run.report().await?.deadline.ok_or("it has one")?;
/// assert_eq!((deadline.at, deadline.ended_run), (tomorrow, false));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeadlineReport {
    /// The time, by the engine's clock.
    #[serde(serialize_with = "crate::json::rfc3339::serialize")]
    pub at: SystemTime,
    /// Whether it ended the run. A run that timed out otherwise used up its active time.
    pub ended_run: bool,
}

impl fmt::Display for DeadlineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = utc(self.at);
        if self.ended_run {
            write!(f, "its deadline, {at}, ended it")
        } else {
            write!(f, "its deadline is {at}")
        }
    }
}
