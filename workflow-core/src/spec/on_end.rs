//! The ends of a run at which a clean-up step runs (S31).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::RunStatus;

/// The ends of a run at which a clean-up step runs.
///
/// A clean-up step never runs after a run that [completed](RunStatus::Completed).
///
/// ```
/// use workflow_core::RunStatus;
/// use workflow_core::table::OnEnd;
///
/// const ENDS: OnEnd = OnEnd::FAILED.and(OnEnd::CANCELLED);
/// assert!(ENDS.includes(RunStatus::Failed) && !ENDS.includes(RunStatus::Stalled));
/// assert!(OnEnd::ANY.includes(RunStatus::Stalled) && !OnEnd::ANY.includes(RunStatus::Completed));
/// assert_eq!(ENDS.to_string(), "failed or cancelled");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<RunStatus>", into = "Vec<RunStatus>")]
pub struct OnEnd(u8);

/// The statuses of the ends, in the order of their bits.
const ENDS: [RunStatus; 4] =
    [RunStatus::Failed, RunStatus::Stalled, RunStatus::Cancelled, RunStatus::TimedOut];

impl OnEnd {
    /// At no end: the beginning of a combination.
    #[doc(hidden)]
    pub const NONE: Self = Self(0);
    /// After a run that [failed](RunStatus::Failed).
    pub const FAILED: Self = Self(1);
    /// After a run that [stalled](RunStatus::Stalled).
    pub const STALLED: Self = Self(2);
    /// After a run that was [cancelled](RunStatus::Cancelled).
    pub const CANCELLED: Self = Self(4);
    /// After a run that [timed out](RunStatus::TimedOut).
    pub const TIMED_OUT: Self = Self(8);
    /// After every run that did not complete.
    pub const ANY: Self = Self(15);

    /// These ends and the others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether the step runs at the end with this status.
    pub fn includes(self, status: RunStatus) -> bool {
        self.statuses().any(|included| included == status)
    }

    /// The statuses of the ends, in a fixed order.
    pub fn statuses(self) -> impl Iterator<Item = RunStatus> {
        ENDS.into_iter().enumerate().filter(move |(bit, _)| self.0 >> bit & 1 == 1).map(|(_, status)| status)
    }
}

impl fmt::Display for OnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ANY {
            return f.write_str("any end but completed");
        }
        let names: Vec<String> = self.statuses().map(|status| status.to_string()).collect();
        f.write_str(&crate::text::enumerated(&names, "or"))
    }
}

impl From<OnEnd> for Vec<RunStatus> {
    fn from(ends: OnEnd) -> Self {
        ends.statuses().collect()
    }
}

impl TryFrom<Vec<RunStatus>> for OnEnd {
    type Error = String;

    fn try_from(statuses: Vec<RunStatus>) -> Result<Self, String> {
        let ends = statuses.iter().try_fold(0, |ends, status| {
            let bit = ENDS.iter().position(|end| end == status);
            bit.map(|bit| ends | 1 << bit).ok_or_else(|| format!("no clean-up runs when a run is {status}"))
        })?;
        if ends == 0 { Err("clean-up names the ends at which it runs".into()) } else { Ok(Self(ends)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S31
    #[test]
    fn ends_are_stored_as_the_statuses_of_runs() {
        let ends = OnEnd::TIMED_OUT.and(OnEnd::FAILED);
        let json = serde_json::to_string(&ends).expect("statuses have a JSON");
        assert_eq!(json, r#"["failed","timed_out"]"#);
        assert_eq!(serde_json::from_str::<OnEnd>(&json).ok(), Some(ends));
        assert!(serde_json::from_str::<OnEnd>(r#"["completed"]"#).is_err());
        assert!(serde_json::from_str::<OnEnd>("[]").is_err());
    }

    #[test]
    fn ends_have_names_in_messages() {
        assert_eq!(OnEnd::ANY.to_string(), "any end but completed");
        assert_eq!(OnEnd::TIMED_OUT.to_string(), "timed out");
    }
}
