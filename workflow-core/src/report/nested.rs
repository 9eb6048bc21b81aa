//! Reports within reports: those of children are printed and serialised to a certain depth, and no deeper.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use serde::ser::{SerializeMap as _, Serializer};

use super::{ChildReport, RunReport};

/// The most levels of children's reports within one report. Each takes three levels of JSON, of which readers take 127.
const MOST_LEVELS: usize = 32;

thread_local! {
    /// The level of the report that this thread prints or serialises. Neither hands on a value of its caller.
    static LEVEL: Cell<usize> = const { Cell::new(0) };
}

/// The report of a child is being printed or serialised.
pub(super) struct Level(());

impl Level {
    /// Begins the report of a child; `None` if it would be too deep.
    pub(super) fn enter() -> Option<Self> {
        let level = LEVEL.get();
        (level < MOST_LEVELS).then(|| {
            LEVEL.set(level + 1);
            Self(())
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        LEVEL.set(LEVEL.get() - 1);
    }
}

/// Serialises the report of a child as an entry of the child, or that it is left out.
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
pub(super) fn serialize<S: Serializer>(
    report: &Option<Arc<RunReport>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut entries = serializer.serialize_map(None)?;
    if let Some(report) = report {
        match Level::enter() {
            Some(_level) => entries.serialize_entry("report", report)?,
            None => entries.serialize_entry("report_left_out", &true)?,
        }
    }
    entries.end()
}

impl fmt::Debug for ChildReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { child, status, report } = self;
        let mut fields = f.debug_struct("ChildReport");
        fields.field("child", child).field("status", status);
        let level = report.as_ref().map(|_| Level::enter());
        match level {
            Some(None) => fields.field("report", &"left out"),
            _ => fields.field("report", report),
        };
        fields.finish()
    }
}
