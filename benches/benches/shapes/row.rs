//! A row of the table, which is a shape of the report.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// The measurements of a shape in one size; missing ones are absent.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) ours: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) spawn: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) floor: Option<f64>,
    /// Only in the table: the chain alone has them.
    #[serde(skip)]
    pub(crate) stages: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) peers: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allocations: Option<f64>,
    /// Time per item at the largest size of the shape over that at 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) growth: Option<f64>,
}

/// The report for other programs.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    pub(crate) shapes: &'a [Row],
}

impl Row {
    /// The head of the table.
    pub(crate) const HEADER: &'static str = "shape                  unit                 ours      spawn      floor     stages   /spawn   /floor   growth   allocs  peers";

    pub(crate) fn new(name: impl Into<String>, unit: impl Into<String>, ours: f64) -> Self {
        Self { name: name.into(), unit: unit.into(), ours, ..Self::default() }
    }

    /// Its size, if it has one.
    pub(crate) fn size(&self) -> Option<u64> {
        self.name.split_once('/')?.1.parse().ok()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, unit, ours, spawn, floor, stages, peers, allocations, growth } = self;
        write!(f, "{name:<22} {unit:<14} {ours:>10.1}")?;
        for other in [spawn, floor, stages] {
            write!(f, " {}", Cell(*other, 10, 1))?;
        }
        for other in [spawn, floor] {
            write!(f, " {}", Cell(other.map(|other| ours / other), 8, 2))?;
        }
        write!(f, " {} {}", Cell(*growth, 8, 2), Cell(*allocations, 8, 2))?;
        for (peer, time) in peers {
            write!(f, "  {peer} {time:.1} ({:.2})", ours / time)?;
        }
        Ok(())
    }
}

/// A number with a width and a number of digits; blank if there is none.
struct Cell(Option<f64>, usize, usize);

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, width, digits) = *self;
        match number {
            Some(number) => write!(f, "{number:>width$.digits$}"),
            None => write!(f, "{:>width$}", "-"),
        }
    }
}
