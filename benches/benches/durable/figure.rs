//! A line of the table: what was measured beside what, and their ratio.

use std::fmt;
use std::time::Duration;

/// Two values in one unit, and the ratio that is wanted of them.
#[derive(Debug)]
pub(crate) struct Figure {
    name: String,
    unit: &'static str,
    ours: f64,
    beside: &'static str,
    other: f64,
    target: Option<Target>,
}

/// What the ratio is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Figure {
    /// The head of the table.
    pub(crate) const HEADER: &'static str =
        "figure                   ours        other  unit           ratio  target      beside";

    pub(crate) fn new(name: impl Into<String>, unit: &'static str, ours: f64, other: f64) -> Self {
        Self { name: name.into(), unit, ours, beside: "", other, target: None }
    }

    /// Says what the other value is of.
    pub(crate) fn beside(self, beside: &'static str) -> Self {
        Self { beside, ..self }
    }

    pub(crate) fn target(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, unit, ours, beside, other, target } = self;
        let target = match target {
            None => String::new(),
            Some(Target::AtLeast(least)) => format!(">= {least}"),
            Some(Target::AtMost(most)) => format!("<= {most}"),
        };
        let ratio = ours / other;
        write!(f, "{name:<18} {ours:>10.1} {other:>12.1}  {unit:<12} {ratio:>7.2}  {target:<10}  {beside}")
    }
}

/// How many of something there are in a second.
pub(crate) fn per_second(count: u64, time: Duration) -> f64 {
    as_float(count) / time.as_secs_f64()
}

/// Counts of a benchmark are far below what a float holds exactly.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(crate) fn as_float(count: u64) -> f64 {
    count as f64
}
