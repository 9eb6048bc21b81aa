//! The place of a run in a distributed trace, as W3C Trace Context writes it (S71).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The place of a run in a distributed trace: the header `traceparent` of W3C Trace Context.
///
/// [`RunOptions::trace_parent`](crate::RunOptions::trace_parent) gives it to a run, its children inherit it, and
/// [`RunInfo::trace_parent`](crate::RunInfo::trace_parent) hands it to steps. So the services that they call join one trace,
/// whichever process drives the run. The run's own `tracing` spans have it in the field `workflow.run.trace_parent`, and do not
/// become its children by themselves. The text is checked when it is parsed, as
/// [Trace Context](https://www.w3.org/TR/trace-context/#traceparent-header) says: of a later version than 00, only the parts
/// that 00 has are kept.
///
/// ```
/// use workflow_core::TraceParent;
///
/// let parent: TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse()?;
/// assert_eq!(parent.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
/// assert!(parent.is_sampled());
/// assert!("00-00000000000000000000000000000000-00f067aa0ba902b7-01".parse::<TraceParent>().is_err());
/// # Ok::<(), workflow_core::errors::InvalidTraceParent>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace: u128,
    parent: u64,
    flags: u8,
}

/// A text is no `traceparent` of W3C Trace Context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid `traceparent`: {problem}; one looks like `00-<32 hex digits>-<16 hex digits>-<2 hex digits>`"
)]
#[non_exhaustive]
pub struct InvalidTraceParent {
    /// The problem.
    pub problem: &'static str,
}

impl TraceParent {
    /// The id of the trace; never 0.
    pub fn trace_id(&self) -> u128 {
        self.trace
    }

    /// The id of the span below which the run is; never 0.
    pub fn parent_id(&self) -> u64 {
        self.parent
    }

    /// Whether the caller may have recorded the trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }
}

impl FromStr for TraceParent {
    type Err = InvalidTraceParent;

    fn from_str(text: &str) -> Result<Self, InvalidTraceParent> {
        let invalid = |problem| InvalidTraceParent { problem };
        let mut parts = text.split('-');
        let version =
            number(parts.next(), 2).ok_or(invalid("its version is not two lower-case hex digits"))?;
        if version == 0xff {
            return Err(invalid("version ff is forbidden"));
        }
        let trace =
            number(parts.next(), 32).ok_or(invalid("its trace id is not 32 lower-case hex digits"))?;
        let parent =
            number(parts.next(), 16).ok_or(invalid("its parent id is not 16 lower-case hex digits"))?;
        let flags = number(parts.next(), 2).ok_or(invalid("its flags are not two lower-case hex digits"))?;
        if version == 0 && parts.next().is_some() {
            return Err(invalid("version 00 has four parts"));
        }
        let parent = u64::try_from(parent).unwrap_or(0);
        if trace == 0 || parent == 0 {
            return Err(invalid("an id is 0"));
        }
        // Version 00 knows the flag `sampled` alone; others are cleared.
        let flags = u8::try_from(flags & 1).unwrap_or(0);
        Ok(Self { trace, parent, flags })
    }
}

/// A number of so many lower-case hex digits.
fn number(part: Option<&str>, digits: usize) -> Option<u128> {
    let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    let part = part.filter(|part| part.len() == digits && part.bytes().all(is_digit))?;
    u128::from_str_radix(part, 16).ok()
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.parent, self.flags)
    }
}

impl fmt::Debug for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceParent({self})")
    }
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_trace_context_allows_is_parsed() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parsed = |text: String| text.parse::<TraceParent>();
        assert!(parsed(format!("00-{trace}-00f067aa0ba902b7-00")).is_ok_and(|parent| !parent.is_sampled()));
        // Unknown flags are cleared, and parts of a later version are left out.
        let later = parsed(format!("cc-{trace}-00f067aa0ba902b7-ff-what-follows")).unwrap();
        assert_eq!(later.to_string(), format!("00-{trace}-00f067aa0ba902b7-01"));
        for (text, problem) in [
            (String::new(), "version"),
            (format!("ff-{trace}-00f067aa0ba902b7-01"), "forbidden"),
            (format!("0-{trace}-00f067aa0ba902b7-01"), "version"),
            (format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()), "trace id"),
            (format!("00-{}-00f067aa0ba902b7-01", &trace[1..]), "trace id"),
            (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), "an id is 0"),
            (format!("00-{trace}-0000000000000000-01"), "an id is 0"),
            (format!("00-{trace}-+0f067aa0ba902b7-01"), "parent id"),
            (format!("00-{trace}-00f067aa0ba902b7"), "flags"),
            (format!("00-{trace}-00f067aa0ba902b7-01-"), "four parts"),
        ] {
            let error = parsed(text.clone()).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
