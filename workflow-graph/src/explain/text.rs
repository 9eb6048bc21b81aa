//! Explanations for people.

use std::fmt;

use super::{Explanation, Led, NodeExplanation, NotTaken, SeenValue, Wait, WhyNot};
use crate::expression::short;
use crate::trace::spoken;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "run {} of {}: {}", self.run, self.graph, self.summary)?;
        self.waits.iter().try_for_each(|wait| writeln!(f, "  {wait}"))?;
        self.nodes.iter().try_for_each(|node| node.fmt(f))
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply { node, branch, request, text, expires } => {
                write!(f, "`{node}`")?;
                branch.iter().try_for_each(|branch| write!(f, " in {branch}"))?;
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                write!(f, " waits for the reply to {request}: {text}")?;
                let Some(expires) = expires else { return Ok(()) };
                write!(f, " (expires {} after the run began)", spoken(*expires))
            }
            Self::Attempt { node, attempt, error, due } => {
                let due = spoken(*due);
                write!(
                    f,
                    "`{node}` waits for attempt {attempt}, which is due {due} after the run began: {error}"
                )
            }
            Self::Child { node, run, graph } => write!(f, "`{node}` waits for run {run} of {graph}"),
            Self::Turn { node, limit } => write!(f, "`{node}` waits for its turn: {limit}"),
        }
    }
}

/// A line about the node, and one below it for each route.
impl fmt::Display for NodeExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): ", self.node, self.kind)?;
        match (self.visits, self.under_way) {
            (0, false) => writeln!(f, "not visited")?,
            (0, true) => writeln!(f, "under way")?,
            (visits, false) => writeln!(f, "visited {}", times(visits))?,
            (visits, true) => writeln!(f, "visited {}, and under way", times(visits))?,
        }
        if self.start {
            writeln!(f, "  the run begins here")?;
        }
        self.led.iter().try_for_each(|led| writeln!(f, "  {led}"))?;
        self.not_taken.iter().try_for_each(|route| writeln!(f, "  {route}"))
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
        write!(f, "from `{}`: {}", self.from, self.reason)?;
        if self.times > 1 { write!(f, " ({} times)", self.times) } else { Ok(()) }
    }
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, route, why } = self;
        write!(f, "not from `{from}` ({route}): ")?;
        match why {
            WhyNot::NotVisited => write!(f, "`{from}` was not visited"),
            WhyNot::UnderWay => write!(f, "`{from}` has not ended"),
            WhyNot::DidNotHold { visit, values } => {
                write!(f, "the condition was false at visit {visit}")?;
                with(f, values)
            }
            WhyNot::Erred { visit, error, values } => {
                write!(f, "the condition failed at visit {visit}: {error}")?;
                with(f, values)
            }
            WhyNot::UsedUp { max } => write!(f, "it was taken {max} times, as often as it may be"),
            WhyNot::AnotherRoute { taken, to } => write!(f, "the route to `{to}` comes first ({taken})"),
            WhyNot::NotChosen { taken, to } => write!(f, "the choice was `{to}` ({taken})"),
            WhyNot::DidNotFail => write!(f, "`{from}` did not fail"),
            WhyNot::Failed { error: Some(error) } => write!(f, "`{from}` failed ({error})"),
            WhyNot::Failed { error: None } => write!(f, "`{from}` failed"),
            WhyNot::WalkEnded => write!(f, "the walk ended at `{from}`"),
        }
    }
}

fn with(f: &mut fmt::Formatter<'_>, values: &[SeenValue]) -> fmt::Result {
    for (place, SeenValue { path, value }) in values.iter().enumerate() {
        f.write_str(if place == 0 { "; " } else { ", " })?;
        match value {
            Some(value) => write!(f, "{path} = {}", short(value))?,
            None => write!(f, "{path} is missing")?,
        }
    }
    Ok(())
}
