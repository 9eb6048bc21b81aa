//! A line of the table: two measurements and their ratio.

use std::fmt;
use std::time::Duration;

/// Two values in one unit, and the target of their ratio.
#[derive(Debug)]
pub struct Figure {
    name: String,
    unit: &'static str,
    ours: f64,
    beside: &'static str,
    other: f64,
    target: Option<Target>,
}

/// The target of a ratio.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// This, or more.
    AtLeast(f64),
    /// This, or less.
    AtMost(f64),
}

impl Figure {
    /// The head of the table.
    pub const HEADER: &'static str =
        "figure                       ours        other  unit           ratio  target            beside";

    /// A measurement and the value to compare with.
    pub fn new(name: impl Into<String>, unit: &'static str, ours: f64, other: f64) -> Self {
        Self { name: name.into(), unit, ours, beside: "", other, target: None }
    }

    /// Names the other value.
    pub fn beside(self, beside: &'static str) -> Self {
        Self { beside, ..self }
    }

    /// Sets the target of the ratio.
    pub fn target(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, unit, ours, beside, other, target } = self;
        let ratio = ours / other;
        let target = match target {
            None => String::new(),
            Some(Target::AtLeast(least)) => format!(">= {least} {}", verdict(ratio >= *least)),
            Some(Target::AtMost(most)) => format!("<= {most} {}", verdict(ratio <= *most)),
        };
        write!(f, "{name:<22} {ours:>10.1} {other:>12.1}  {unit:<12} {ratio:>7.2}  {target:<16}  {beside}")
    }
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

/// The number of items per second.
pub fn per_second(count: u64, time: Duration) -> f64 {
    as_float(count) / time.as_secs_f64()
}

/// Counts of a benchmark are far below what a float holds exactly.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub fn as_float(count: u64) -> f64 {
    count as f64
}
