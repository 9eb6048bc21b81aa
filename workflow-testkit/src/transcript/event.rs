//! The line of a logged event: its origin, scope and value.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use workflow_core::observe::Observed;
use workflow_core::report::{BranchReport, LoggedEvent, RunReport};
use workflow_core::{AnyEvent, DisplayItem, Origin, ScopeId, Seq};

/// The maximum number of characters of a value.
const CHARACTERS: usize = 200;

/// Writes the events of a log, each in its turn.
pub(super) struct Events<'a> {
    log: HashMap<Seq, &'a LoggedEvent>,
    /// By the position of its item.
    branches: HashMap<Seq, &'a BranchReport>,
    /// Received display events, the next one last.
    received: Vec<&'a AnyEvent>,
}

impl<'a> Events<'a> {
    pub(super) fn of(report: &'a RunReport, observed: &'a [Observed]) -> Self {
        let received = observed.iter().rev().filter_map(|what| match what {
            Observed::Displayed(DisplayItem::Received { event }) => Some(event),
            _ => None,
        });
        Self {
            log: report.log.iter().map(|logged| (logged.seq, logged)).collect(),
            branches: report.branches.iter().map(|branch| (branch.item, branch)).collect(),
            received: received.collect(),
        }
    }

    pub(super) fn write(&mut self, text: &mut String, seq: Seq) -> fmt::Result {
        let Some(&logged) = self.log.get(&seq) else { return Ok(()) };
        write!(text, "{} {}", logged.seq, logged.event)?;
        match (logged.execution, logged.reply_to.or(logged.expired)) {
            (Some(execution), _) => match logged.timer {
                Some(timer) => write!(text, " by {timer} of {execution}")?,
                None => write!(text, " of {execution}")?,
            },
            (None, Some(request)) if logged.expired.is_some() => {
                write!(text, " of {request} without a reply")?;
            }
            (None, Some(request)) => {
                write!(text, " to {request} from outside")?;
                by(text, logged.origin.as_ref())?;
            }
            (None, None) if logged.is_gathered() => {}
            (None, None) => {
                write!(text, " from outside")?;
                by(text, logged.origin.as_ref())?;
            }
        }
        match self.branches.get(&logged.seq) {
            Some(branch) => {
                write!(text, " opens {}", branch.scope)?;
                in_scope(text, branch.parent)?;
            }
            None => in_scope(text, logged.scope)?,
        }
        if self.is_shown(logged) {
            text.push_str(", shown");
        }
        value(text, &logged.value)?;
        text.push('\n');
        Ok(())
    }

    /// Whether the event is the next displayed one from outside.
    fn is_shown(&mut self, logged: &LoggedEvent) -> bool {
        let is_from_outside = logged.execution.is_none() && logged.expired.is_none();
        let is_it = |event: &mut &AnyEvent| is_from_outside && event.name() == logged.value.name();
        self.received.pop_if(is_it).is_some()
    }
}

/// Writes the scope, unless it is the run's own.
pub(super) fn in_scope(text: &mut String, scope: ScopeId) -> fmt::Result {
    if scope == ScopeId::ROOT { Ok(()) } else { write!(text, " in {scope}") }
}

/// Writes a value after a colon, as compact JSON with sorted keys; nothing for an empty value.
pub(super) fn value(text: &mut String, event: &AnyEvent) -> fmt::Result {
    match event.to_json() {
        Ok(serde_json::Value::Null) => Ok(()),
        Ok(mut json) => {
            // Another crate may have enabled insertion order of maps in serde_json.
            json.sort_all_objects();
            write!(text, ": {}", cut(&json.to_string()))
        }
        Err(error) => write!(text, ": it has no form as JSON: {error}"),
    }
}

/// A cut text tells how much is missing, and ends with a digest, so that a change of the rest shows.
pub(super) fn cut(text: &str) -> String {
    let Some((at, _)) = text.char_indices().nth(CHARACTERS) else { return text.to_owned() };
    let (kept, missing) = text.split_at(at);
    format!("{kept}… and {} more characters, digest {:08x}", missing.chars().count(), digest(text))
}

/// FNV-1a: the same on every machine and with every version of the standard library.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |digest, byte| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The origin of an event from outside, if the caller gave one.
fn by(text: &mut String, origin: Option<&Origin>) -> fmt::Result {
    origin.map_or(Ok(()), |origin| write!(text, ", by {origin}"))
}
