//! Forecasts: how often the steps of a table can run, per run or per arrival, derived from the table alone. A
//! forecast claims no bound that a run could break.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{DependencyTable, StepIndex};

mod certain;
mod count;

use count::Counts;

/// The number of executions of a step that a run can have.
///
/// Displayed as `1`, `0-1`, `0-n`, or ``1 per `Page` ``.
///
/// ```
/// use workflow_core::signature::Roles;
/// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
///
/// let table = DependencyTable::builder("reader")
///     .event(EventDef::new("Document", Roles::NONE.start()))
///     .event(EventDef::new("Page", Roles::NONE))
///     .event(EventDef::new("Summary", Roles::NONE.stop()))
///     .step(StepDef::new("split").input(InputDef::one("Document")).output(OutputDef::fan_out("Page")))
///     .step(StepDef::new("read").input(InputDef::one("Page")))
///     .step(StepDef::new("sum").input(InputDef::gather("Page")).output(OutputDef::event("Summary")))
///     .build()?;
/// let forecast = |step: &str| table.forecast(table.step_named(step).unwrap()).to_string();
/// assert_eq!(forecast("split"), "1");
/// assert_eq!(forecast("read"), "1 per `Page`");
/// # Ok::<(), workflow_core::table::TableError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Forecast {
    /// The fewest executions in a run that completes without a failure and drops no branch
    /// ([`FanOut::until`](crate::FanOut::until)).
    pub least: u64,
    /// The most executions in any run; `None` without a limit.
    pub greatest: Option<u64>,
    /// Both numbers are per event of this type. `None`: they are per run.
    pub per: Option<Arc<str>>,
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.greatest {
            Some(greatest) if greatest == self.least => write!(f, "{greatest}")?,
            Some(greatest) => write!(f, "{}-{greatest}", self.least)?,
            None => write!(f, "{}-n", self.least)?,
        }
        self.per.iter().try_for_each(|event| write!(f, " per `{event}`"))
    }
}

impl DependencyTable {
    /// Forecasts how often the step can run.
    ///
    /// The bounds follow from the inputs and outputs of steps, from `max_executions`, and from the events
    /// that open runs or come from outside. Preconditions and optional outputs only lower the actual number.
    /// O(steps × (steps + fan-outs)).
    ///
    /// # Panics
    /// If the table has no such step.
    pub fn forecast(&self, step: StepIndex) -> Forecast {
        // S31: clean-up runs at most once, and no run that completes needs it.
        if self.step(step).cleans_up() {
            return Forecast { least: 0, greatest: Some(1), per: None };
        }
        let mut counts = Counts::of(self);
        let branches = counts.branches_running(step);
        match (counts.runs(None, step), &branches[..]) {
            (greatest @ Some(_), []) => Forecast { least: self.least(step, greatest), greatest, per: None },
            (None, []) => self.per_arrival(step, &mut counts),
            (Some(0), [fan_out]) => {
                let greatest = counts.runs(Some(*fan_out), step);
                let per = greatest.map(|_| Arc::clone(&self.event(self.fan_out(*fan_out).item).name));
                let least =
                    u64::from(per.is_some() && self.runs_in_every_branch(*fan_out, step, &mut counts));
                Forecast { least, greatest, per }
            }
            _ => Forecast { least: self.least(step, None), greatest: None, per: None },
        }
    }

    /// 1 if no run completes without the step, else 0.
    fn least(&self, step: StepIndex, greatest: Option<u64>) -> u64 {
        u64::from(greatest != Some(0) && self.is_needed(step))
    }

    /// The forecast of a step in the root whose number depends on arrivals, perhaps of one event type only.
    fn per_arrival(&self, step: StepIndex, counts: &mut Counts<'_>) -> Forecast {
        let per = counts.only_unbounded(step).map(|event| Arc::clone(&self.event(event).name));
        match per {
            Some(per) => Forecast { least: 0, greatest: Some(1), per: Some(per) },
            None => Forecast { least: self.least(step, None), greatest: None, per: None },
        }
    }
}

#[cfg(test)]
mod tests;
