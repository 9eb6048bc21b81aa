//! Explanations for people.

use std::fmt::{self, Write as _};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::{
    Dropped, Explanation, FailedHow, Led, NodeExplanation, NotTaken, SeenValue, VisitsEnded, Wait, WhyNot,
    once,
};
use crate::VisitStatus;
use crate::expression::short;
use crate::trace::{on_one_line, spoken, stamp};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut begin = format!("run {} of {}: {}\n", self.run, self.graph, self.summary);
        self.waits.iter().try_for_each(|wait| writeln!(begin, "  {wait}"))?;
        let mut parts = vec![begin];
        parts.extend(self.nodes.iter().map(ToString::to_string));
        once::once(&mut parts, &self.nodes);
        parts.iter().try_for_each(|part| f.write_str(part))
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply { node, branch, request, text, schema, at, left, .. } => {
                write!(f, "`{node}`")?;
                branch.iter().try_for_each(|branch| write!(f, " in {branch}"))?;
                let text = on_one_line(text);
                write!(f, " waits for the reply to {request}: {text}")?;
                let form = schema.as_ref().map(|schema| format!("the reply is {}", form(schema)));
                let expires = at.zip(*left).map(|(at, left)| format!("expires {}", due(left, at)));
                match (form, expires) {
                    (None, None) => Ok(()),
                    (Some(form), Some(expires)) => write!(f, " ({form}; {expires})"),
                    (Some(one), None) | (None, Some(one)) => write!(f, " ({one})"),
                }
            }
            Self::Attempt { node, attempt, error, at, left, .. } => {
                write!(f, "`{node}` waits for attempt {attempt}, which is due {}: {error}", due(*left, *at))
            }
            Self::Child { node, item, run, graph } => {
                write!(f, "`{node}`")?;
                item.iter().try_for_each(|item| write!(f, " at index {item}"))?;
                write!(f, " waits for `{graph}` (run {run})")
            }
            Self::Turn { node, limit } => write!(f, "`{node}` waits for its turn: {limit}"),
            Self::Unpause { node } => write!(f, "`{node}` goes on once the run is unpaused"),
        }
    }
}

/// The most fields of a reply that are named.
const FIELDS: usize = 8;

/// The values that a schema allows, in a few words.
fn form(schema: &Value) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty())
    else {
        return form_of_field(schema);
    };
    let required = schema.get("required").and_then(Value::as_array);
    let fields = properties.iter().take(FIELDS).map(|(name, field)| {
        let is_required = required.is_some_and(|all| all.iter().any(|known| known == name));
        let optional = if is_required { "" } else { ", optional" };
        format!("`{}` ({}{optional})", on_one_line(name), form_of_field(field))
    });
    let more = if properties.len() > FIELDS { ", …" } else { "" };
    format!("an object with {}{more}", fields.collect::<Vec<_>>().join(", "))
}

/// The same without the fields of an object.
fn form_of_field(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let more = if values.len() > FIELDS { ", …" } else { "" };
        let values: Vec<_> = values.iter().take(FIELDS).map(|value| on_one_line(&short(value))).collect();
        return format!("one of {}{more}", values.join(", "));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("null") => "null".into(),
        Some(kind @ ("array" | "integer" | "object")) => format!("an {kind}"),
        Some(kind @ ("boolean" | "number" | "string")) => format!("a {kind}"),
        _ if schema.get("properties").is_some() => "an object".into(),
        _ => "any value that fits its schema".into(),
    }
}

/// The time that is left, and the moment.
fn due(left: Duration, at: SystemTime) -> String {
    if left.is_zero() {
        format!("now, since {}", stamp(at))
    } else {
        format!("in {}, at {}", spoken(left), stamp(at))
    }
}

/// A line about the node, and one below it for each route.
impl fmt::Display for NodeExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): ", self.node, self.kind)?;
        match (&*self.ends, self.visits, self.under_way, self.dropped) {
            (_, 0, false, None) => f.write_str("not visited")?,
            (_, 0, true, _) => f.write_str("under way")?,
            (_, 0, false, Some(Dropped::StepsUsed)) => {
                f.write_str("not visited, since the run had used all of its steps")?;
            }
            (_, 0, false, Some(dropped)) => write!(f, "begun, and {dropped}{}", self.effect())?,
            ([only], 1, ..) if only.status != VisitStatus::Success && !only.kept => {
                f.write_str(if only.status == VisitStatus::Failed { "failed once" } else { "skipped" })?;
                why(f, only)?;
            }
            (ends, visits, ..) => {
                write!(f, "visited {}", times(visits))?;
                for (place, ends) in ends.iter().enumerate() {
                    f.write_str(if place == 0 { " (" } else { "; " })?;
                    write!(f, "{ends}")?;
                }
                f.write_str(if ends.is_empty() { "" } else { ")" })?;
            }
        }
        match (self.visits, self.under_way, self.dropped) {
            (0, ..) | (_, false, None) => writeln!(f)?,
            (_, true, _) => writeln!(f, ", and under way")?,
            (_, false, Some(dropped)) => {
                writeln!(f, ", and the next visit was {dropped}{}", self.effect())?;
            }
        }
        if self.start {
            writeln!(f, "  the run begins here")?;
        }
        self.meets.iter().try_for_each(|meeting| writeln!(f, "  {meeting}"))?;
        self.led.iter().try_for_each(|led| writeln!(f, "  {led}"))?;
        let shown = self.decisions.first().map_or(0, |first| self.visits.saturating_sub(first.visit) + 1);
        if shown > 1 && shown < self.visits {
            writeln!(f, "  its last {shown} visits:")?;
        }
        match self.visits {
            0 | 1 => self.decisions.iter().try_for_each(|decision| write!(f, "{decision}"))?,
            _ => self.decisions.iter().try_for_each(|decision| write!(f, "{decision:#}"))?,
        }
        self.not_taken.iter().try_for_each(|route| writeln!(f, "  {route}"))
    }
}

impl NodeExplanation {
    /// The consequence of a visit without an end.
    fn effect(&self) -> &'static str {
        let kind = self.kind.split(' ').next().unwrap_or_default();
        let has_begun = self.dropped != Some(Dropped::StepsUsed);
        if matches!(kind, "value" | "human") || !has_begun { "" } else { "; its work may have taken effect" }
    }
}

/// A part of the line about a node with several visits.
impl fmt::Display for VisitsEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(items) = &self.items {
            return items.fmt(f);
        }
        match self.times {
            1 if self.latest => f.write_str("the last ")?,
            times => write!(f, "{times} ")?,
        }
        if self.kept {
            return f.write_str("kept the result before it: beyond max_visits");
        }
        f.write_str(match (self.status, self.latest && self.times == 1) {
            (VisitStatus::Failed, _) => "failed",
            (VisitStatus::Skipped, true) => "was skipped",
            (VisitStatus::Skipped, false) => "skipped",
            (VisitStatus::Success, _) => "succeeded",
        })?;
        why(f, self)
    }
}

/// The reason of an end, and its consequence.
fn why(f: &mut fmt::Formatter<'_>, ended: &VisitsEnded) -> fmt::Result {
    ended.attempts.iter().try_for_each(|attempts| write!(f, " after {attempts} attempts"))?;
    f.write_str(match ended.failed {
        Some(FailedHow::BeforeWork) => " before its work",
        Some(FailedHow::WithBranches) => " with its branches",
        Some(FailedHow::NotRetried) | None => "",
    })?;
    ended.error.iter().try_for_each(|error| write!(f, ": {error}"))?;
    if ended.failed == Some(FailedHow::NotRetried) {
        let class = ended.error.as_ref().map_or("final", |error| &error.class);
        write!(f, " (not retried: a {class} failure never is)")?;
    }
    ended.child.iter().try_for_each(|run| write!(f, " (its child is run {run})"))?;
    ended.reason.iter().try_for_each(|reason| write!(f, ": {}", on_one_line(reason)))?;
    ended.earlier.iter().try_for_each(|error| write!(f, " (an attempt before: {error})"))?;
    match (&ended.led_to, ended.went_on) {
        (Some(to), _) => write!(f, "; `on_failure` led to `{to}`"),
        (None, true) => f.write_str("; the walk went on"),
        (None, false) => Ok(()),
    }
}

fn times(count: u32) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        more => format!("{more} times"),
    }
}

impl fmt::Display for Led {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from `{}`: ", self.from)?;
        self.words(f)?;
        match (self.times, &*self.values) {
            (0 | 1, []) => return Ok(()),
            (0 | 1, _) => f.write_str(" (")?,
            (times, []) => return write!(f, " ({times} times)"),
            (times, _) => write!(f, " ({times} times; the last: ")?,
        }
        with(f, &self.values, "")?;
        f.write_str(")")
    }
}

impl Led {
    /// Its name and reason.
    pub(super) fn words(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.iter().try_for_each(|id| write!(f, "{id}: "))?;
        match (self.branch, &*self.reason) {
            (true, "parallel") => return f.write_str("branch"),
            (true, form @ ("always" | "on success" | "only path")) => return write!(f, "branch, {form}"),
            (true, _) => f.write_str("branch if ")?,
            (false, _) => {}
        }
        f.write_str(&on_one_line(&self.reason))?;
        let is_form = matches!(&*self.reason, "default" | "only path");
        f.write_str(if self.on_failure && is_form { " of `on_failure`" } else { "" })
    }
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not from `{}` ({}): ", self.from, on_one_line(&self.route))?;
        self.why.told(f, &self.from)
    }
}

impl WhyNot {
    /// Why a route from the node `from` was not taken.
    pub(super) fn told(&self, f: &mut fmt::Formatter<'_>, from: &str) -> fmt::Result {
        match self {
            Self::NotVisited => write!(f, "`{from}` was not visited"),
            Self::UnderWay => write!(f, "`{from}` has not ended"),
            Self::DidNotHold { visit, values } => {
                f.write_str("false")?;
                if *visit > 1 {
                    write!(f, " at visit {visit}")?;
                }
                with(f, values, ": ")
            }
            Self::Dropped { since } => write!(f, "`{from}` was {since}"),
            Self::NotBegun { since } => write!(f, "the branch had not begun, and was {since}"),
            Self::Erred { visit, error, values } => {
                write!(f, "the condition failed at visit {visit}: {}", on_one_line(error))?;
                with(f, values, "; ")
            }
            Self::UsedUp { max, values } => {
                write!(f, "`max: {max}` is used up")?;
                with(f, values, ", though its condition holds: ")
            }
            Self::AnotherRoute { taken, to, also: None } => {
                write!(f, "the route to `{to}` comes first ({})", on_one_line(taken))
            }
            Self::AnotherRoute { taken, to, also: Some(values) } => {
                write!(f, "also holds, but comes later than the route to `{to}` ({})", on_one_line(taken))?;
                with(f, values, ": ")
            }
            Self::NotChosen { taken, to } => write!(f, "the choice was `{to}` ({})", on_one_line(taken)),
            Self::WouldTake { values } => {
                f.write_str("a run would take it")?;
                with(f, values, ": ")
            }
            Self::WouldAsk => write!(f, "the dry run ended at `{from}`, where a run asks a model"),
            Self::DidNotFail => write!(f, "`{from}` did not fail"),
            Self::Failed { error: Some(error) } => write!(f, "`{from}` failed ({error})"),
            Self::Failed { error: None } => write!(f, "`{from}` failed"),
            Self::WalkEnded => write!(f, "the walk ended at `{from}`"),
        }
    }
}

pub(super) fn with(f: &mut fmt::Formatter<'_>, values: &[SeenValue], before: &str) -> fmt::Result {
    for (place, SeenValue { path, value, ends }) in values.iter().enumerate() {
        f.write_str(if place == 0 { before } else { ", " })?;
        let path = on_one_line(path);
        match (value, ends) {
            (Some(value), None) => write!(f, "{path} = {}", short(value))?,
            (Some(value), Some(ends)) => write!(f, "{path} = {} ({})", short(value), on_one_line(ends))?,
            (None, Some(ends)) => write!(f, "{path} is missing ({})", on_one_line(ends))?,
            (None, None) => write!(f, "{path} is missing")?,
        }
    }
    Ok(())
}
