//! Forecasts: how often the steps of a table can run, per run or per arrival, derived from the table alone. A
//! forecast claims no bound that a run could break.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::lists::Lists;
use super::{DependencyTable, EventIndex, FanOutIndex, FanOutRow, StepIndex, StepRow};

mod certain;
mod count;
mod needed;
mod scopes;
mod search;

use count::{Counts, Most};
use needed::{Needed, starts};
use scopes::{Scopes, taken};
use search::{Links, Search};

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
    /// The first call forecasts all steps, about in O(size of the table × (start events + depth of nested fan-outs)),
    /// and the table stores the result.
    ///
    /// # Panics
    /// If the table has no such step.
    pub fn forecast(&self, step: StepIndex) -> Forecast {
        self.forecasts.get_or_init(|| self.forecast_all())[step.get()].clone()
    }

    /// The forecast of each step, by index.
    fn forecast_all(&self) -> Vec<Forecast> {
        let links = Links::of(self);
        let scopes = Scopes::of(self, &links, &self.ready(&links));
        let counts = Counts::of(&scopes);
        let in_branches = counts.in_branches();
        let needed = Needed::of(self, &links);
        let single_items = self.single_items();
        let mut forecasts =
            Forecasts { table: self, counts, in_branches, needed, single_items, certain: Vec::new() };
        forecasts.certain = (0..self.fan_outs.len()).map(|fan_out| forecasts.certain_of(fan_out)).collect();
        (0..self.steps.len()).map(StepIndex::at).map(|step| forecasts.of(step)).collect()
    }

    /// By event, whether one output emits it, once.
    fn single_items(&self) -> Vec<bool> {
        let mut outputs = vec![0_usize; self.events.len()];
        for output in self.steps.iter().flat_map(|step| &step.outputs) {
            // An output of any number counts like several.
            outputs[output.event.get()] += if output.many { 2 } else { 1 };
        }
        outputs.into_iter().map(|outputs| outputs == 1).collect()
    }

    /// By step, whether the events that it requires can occur in one run.
    fn ready(&self, links: &Links) -> Vec<bool> {
        let mut search = Search::of(self, links, true);
        let external = (0..self.events.len()).map(EventIndex::at);
        search.begin(external.filter(|event| self.event(*event).roles.is_external()));
        let mut starts = starts(self).peekable();
        // A step that requires nothing is ready, as soon as there can be a run.
        let requires = |step: &StepRow| taken(step).any(|input| !input.optional);
        let begins = starts.peek().is_some();
        let mut ready: Vec<bool> = self.steps.iter().map(|step| begins && !requires(step)).collect();
        let mut found = 0;
        for start in starts {
            let common = search.found();
            search.begin([start]);
            // The consequences of external events alone are found with the first start event.
            search.ran_since(found).for_each(|step| ready[step.get()] = true);
            search.take_back(common);
            found = common;
        }
        ready
    }
}

/// Makes the forecasts of a table's steps.
struct Forecasts<'a> {
    table: &'a DependencyTable,
    counts: Counts<'a>,
    /// By step, the fan-outs in whose branches it can run, with its bound there.
    in_branches: Lists<(FanOutIndex, Most)>,
    needed: Needed,
    /// By event, whether one output emits it, once.
    single_items: Vec<bool>,
    /// By fan-out, the steps that run in every branch before the run completes.
    certain: Vec<HashSet<StepIndex>>,
}

impl Forecasts<'_> {
    fn of(&self, step: StepIndex) -> Forecast {
        // S31: clean-up runs at most once, and no run that completes needs it.
        if self.table.step(step).cleans_up() {
            return Forecast { least: 0, greatest: Some(1), per: None };
        }
        match (self.counts.runs(None, step), self.in_branches.row(step.get())) {
            (greatest @ Some(_), []) => Forecast { least: self.least(step, greatest), greatest, per: None },
            (None, []) => self.per_arrival(step),
            (Some(0), [(fan_out, greatest)]) => {
                let item = self.table.fan_out(*fan_out).item;
                let per = greatest.map(|_| Arc::clone(&self.table.event(item).name));
                let is_certain = per.is_some() && self.certain[fan_out.get()].contains(&step);
                Forecast { least: u64::from(is_certain), greatest: *greatest, per }
            }
            _ => Forecast { least: self.least(step, None), greatest: None, per: None },
        }
    }

    /// 1 if no run completes without the step, else 0.
    fn least(&self, step: StepIndex, greatest: Option<u64>) -> u64 {
        u64::from(greatest != Some(0) && self.needed.step(step))
    }

    /// The forecast of a step in the root whose number depends on arrivals, perhaps of one event type only.
    fn per_arrival(&self, step: StepIndex) -> Forecast {
        match self.counts.only_unbounded(step) {
            Some(event) => {
                let per = Some(Arc::clone(&self.table.event(event).name));
                Forecast { least: 0, greatest: Some(1), per }
            }
            None => Forecast { least: self.least(step, None), greatest: None, per: None },
        }
    }

    /// The steps that run in every branch of the fan-out before the run completes. There are some only if the fan-out
    /// opens once, and no run completes before it is gathered.
    fn certain_of(&self, fan_out: usize) -> HashSet<StepIndex> {
        let row = &self.table.fan_outs[fan_out];
        let opens_once =
            self.counts.runs(None, row.step) == Some(1) && self.in_branches.row(row.step.get()).is_empty();
        if opens_once && self.needed.end(row.gathered) && self.is_item_only(row) {
            self.table.certain_steps(FanOutIndex::at(fan_out))
        } else {
            HashSet::new()
        }
    }

    /// Whether each event of the item's type opens a branch of this fan-out.
    fn is_item_only(&self, row: &FanOutRow) -> bool {
        let roles = self.table.event(row.item).roles;
        !roles.is_start() && !roles.is_external() && self.single_items[row.item.get()]
    }
}

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
