//! The texts of inputs and outputs in messages.

use std::fmt;
use std::sync::Arc;

use super::{InputShape, OutputShape};
use crate::spec::InputKind;

impl fmt::Display for InputShape {
    /// For example "an optional list of `Draft` or `Note`".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = Either(&self.events);
        let article = match (self.passive, self.optional) {
            (true, _) => "a passive",
            (false, true) => "an optional",
            (false, false) => "a",
        };
        match self.kind {
            InputKind::List => write!(f, "{article} list of {events}"),
            InputKind::Fixed(count) => write!(f, "{article} list of exactly {count} of {events}"),
            InputKind::Gather => {
                write!(f, "{article} gather of {events}")?;
                self.item.iter().try_for_each(|item| write!(f, " in branches of `{item}`"))
            }
            _ if self.optional => write!(f, "{article} {events}"),
            _ => write!(f, "{events}"),
        }
    }
}

impl fmt::Display for OutputShape {
    /// For example "at most one `Draft`".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = &self.event;
        match (self.fan_out, self.many, self.least) {
            (true, _, 0) => write!(f, "at most a branch per `{event}`")?,
            (true, ..) => write!(f, "a branch per `{event}`")?,
            (false, true, _) => write!(f, "any number of `{event}`")?,
            (false, false, 0) => write!(f, "at most one `{event}`")?,
            (false, false, _) => write!(f, "`{event}`")?,
        }
        f.write_str(if self.timed { " by a timer" } else { "" })
    }
}

/// Lists names with "or".
struct Either<'a>(&'a [Arc<str>]);

impl fmt::Display for Either<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for name in self.0 {
            write!(f, "{separator}`{name}`")?;
            separator = " or ";
        }
        Ok(())
    }
}
