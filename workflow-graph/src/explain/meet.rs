//! Branches and the node where they meet: which of them arrived, and how the others ended.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use workflow_core::report::BranchReport;

use super::failed;
use super::under_way::{Begun, Dropped, has_failed_around, has_failed_with};
use crate::VisitStatus;
use crate::state::Opened;
use crate::trace::{History, Log, RouteTaken, StepName, VisitError, data};

/// The branches that meet at a node, of the latest visit of the parallel node that opened them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Meeting {
    /// The parallel node.
    pub of: Arc<str>,
    /// Whether all branches have ended, and the walk went on where they meet.
    pub met: bool,
    /// The branches, in their order.
    pub branches: Vec<BranchEnd>,
}

/// A branch, as the node where it should arrive has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BranchEnd {
    /// The node with which it begins.
    pub to: Arc<str>,
    /// How it ended, if it did.
    pub state: BranchState,
    /// The failure of a branch that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<VisitError>,
}

/// The state of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BranchState {
    /// It came to the node where branches meet.
    Arrived,
    /// It ended elsewhere.
    Ended,
    /// It failed.
    Failed,
    /// It has not ended.
    UnderWay,
    /// It was dropped, since another branch failed.
    BranchFailed,
    /// It was dropped, since the run ended.
    RunEnded,
}

/// Whether the route ends its branch at the node where it meets others.
pub(super) fn is_arrival(log: &Log<'_>, route: &RouteTaken) -> bool {
    let opener = route.branch.as_deref().and_then(|path| path.rsplit('/').nth(1));
    let join = opener.and_then(|opener| log.joins[log.graph.find(opener)?]);
    join.is_some() && join == log.graph.find(&route.to)
}

/// The branches that were to meet at the node of this place.
pub(super) fn meetings(log: &Log<'_>, history: &History, begun: &Begun, join: usize) -> Vec<Meeting> {
    let openers = (0..log.joins.len()).filter(|place| log.joins[*place] == Some(join));
    openers.filter_map(|opener| meeting(log, history, begun, opener)).collect()
}

fn meeting(log: &Log<'_>, history: &History, begun: &Begun, opener: usize) -> Option<Meeting> {
    let place = history.visited.iter().rposition(|visited| visited.node == opener)?;
    let (visited, visit) = (&history.visited[place], &history.trace.visits[place]);
    let is_own = |branch: &&BranchReport| {
        let step = StepName::of(&branch.step);
        let visit_of = || log.visit_of(log.execution(branch.opener)?).map(|work| work.execution);
        step.is_some_and(|step| step.node == &*visit.node) && visit_of() == Some(visited.began)
    };
    let branches: Vec<_> = log.report.branches.iter().filter(is_own).collect();
    let met = history.trace.routes.iter().any(|route| {
        route.is_join()
            && route.from == visit.node
            && route.iteration == visit.iteration
            && route.branch == visit.branch
    });
    let branches = branches.into_iter().map(|branch| end(log, history, begun, branch)).collect();
    Some(Meeting { of: visit.node.clone(), met, branches })
}

fn end(log: &Log<'_>, history: &History, begun: &Begun, branch: &BranchReport) -> BranchEnd {
    let to = log.event(branch.item).and_then(data::<Opened>).map_or_else(|| "?".into(), |opened| opened.to);
    let has_arrived = || {
        let mut routes = history.trace.routes.iter().zip(&history.scopes);
        routes.any(|(route, scope)| *scope == branch.scope && is_arrival(log, route))
    };
    let is_lost = || log.gathered(branch.scope).is_none() && has_failed_around(log, branch.scope);
    let state = if log.has_failed(branch) {
        BranchState::Failed
    } else if has_arrived() {
        BranchState::Arrived
    } else if has_failed_with(log, branch) || is_lost() {
        BranchState::BranchFailed
    } else if !begun.scopes.contains(&branch.scope) {
        BranchState::Ended
    } else if log.report.status.is_ended() {
        BranchState::RunEnded
    } else {
        BranchState::UnderWay
    };
    let error = (state == BranchState::Failed).then(|| error(log, history, branch)).flatten();
    BranchEnd { to, state, error }
}

/// The failure that failed the branch: no step in it handled that.
fn error(log: &Log<'_>, history: &History, branch: &BranchReport) -> Option<VisitError> {
    let visits = history.visited.iter().zip(&history.trace.visits).rev();
    let mut failed = visits.filter(|(visited, visit)| {
        visit.status == VisitStatus::Failed && !visited.went_on && log.is_inside(visited.scope, branch.scope)
    });
    failed.next().and_then(|(visited, visit)| failed::told(log, visited, visit))
}

impl fmt::Display for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, met, branches } = self;
        if branches.is_empty() {
            return write!(f, "`{of}` opened no branch");
        }
        if !met {
            write!(f, "branches of `{of}`: ")?;
            for (place, branch) in branches.iter().enumerate() {
                f.write_str(if place == 0 { "" } else { "; " })?;
                write!(f, "`{}` {}", branch.to, branch.state)?;
                branch.error.iter().try_for_each(|error| write!(f, " ({error})"))?;
            }
            return Ok(());
        }
        write!(f, "all branches of `{of}` have ended (")?;
        let states =
            [BranchState::Arrived, BranchState::Ended, BranchState::Failed, BranchState::BranchFailed];
        let mut is_first = true;
        for state in states {
            let ended: Vec<_> = branches.iter().filter(|branch| branch.state == state).collect();
            if ended.is_empty() {
                continue;
            }
            f.write_str(if is_first { "" } else { ", " })?;
            is_first = false;
            let words = match state {
                BranchState::Ended => "ended before they met".to_owned(),
                state => state.to_string(),
            };
            let words = if ended.len() > 1 { words.replacen("was ", "were ", 1) } else { words };
            write!(f, "{} {words}", ended.len())?;
            for (place, branch) in
                ended.iter().filter(|branch| branch.state == BranchState::Failed).enumerate()
            {
                write!(f, "{} `{}`", if place == 0 { ":" } else { "," }, branch.to)?;
                branch.error.iter().try_for_each(|error| write!(f, " ({error})"))?;
            }
        }
        f.write_str(")")
    }
}

impl fmt::Display for BranchState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrived => f.write_str("arrived"),
            Self::Ended => f.write_str("ended elsewhere"),
            Self::Failed => f.write_str("failed"),
            Self::UnderWay => f.write_str("is under way"),
            Self::BranchFailed => write!(f, "was {}", Dropped::BranchFailed),
            Self::RunEnded => write!(f, "was {}", Dropped::RunEnded),
        }
    }
}
