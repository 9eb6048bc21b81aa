//! The order in which the calls of a reply run. A pure function of what the log has, so that a resumed run continues in the
//! same order. It runs nothing itself.
//!
//! Calls that read run side by side, up to the next call that acts. A call that acts runs once all before it that read or act
//! have results, also where one of these waits for a person. Other calls are beside: nothing waits for them, and they wait for
//! nothing.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow_core::prelude::*;

use crate::entry::{FailureClass, ToolDone};

/// The calls of a reply, in their order, as they were checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "agent.planned")]
pub(crate) struct Planned {
    pub(crate) calls: Vec<PlannedCall>,
}

/// A call of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlannedCall {
    pub(crate) call: Arc<str>,
    pub(crate) place: Place,
    /// Whether it may run without a person's decision. A call that has its result at once never runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ready: bool,
}

/// The place of a call among those of its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// It waits for the calls before it that act.
    Reads,
    /// It waits for the calls before it that read or act.
    Acts,
    /// It waits for none, and none waits for it.
    Beside,
}

/// A person approved a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "agent.approved")]
pub(crate) struct Approved {
    pub(crate) call: Arc<str>,
    /// The arguments in the place of the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edited: Option<serde_json::Value>,
}

/// An event that lets other calls begin.
#[derive(Debug, EventSet)]
pub(crate) enum Move {
    Approved(Approved),
    Done(ToolDone),
}

impl Move {
    fn call(&self) -> &str {
        match self {
            Self::Approved(approved) => &approved.call,
            Self::Done(done) => &done.call,
        }
    }
}

/// How far the calls of a reply have come.
pub(crate) struct Order<'a> {
    planned: &'a Planned,
    calls: Vec<Progress>,
    /// Set once a person's rejection ends the run: nothing begins any more.
    stopped: bool,
}

#[derive(Clone, Copy)]
struct Progress {
    ready: bool,
    begun: bool,
    done: bool,
}

impl<'a> Order<'a> {
    /// The order before the first call runs, and the calls that begin.
    pub(crate) fn begin(planned: &'a Planned) -> (Self, Vec<&'a PlannedCall>) {
        let progress = |call: &PlannedCall| Progress { ready: call.ready, begun: false, done: false };
        let mut order = Self { planned, calls: planned.calls.iter().map(progress).collect(), stopped: false };
        let begun = order.next();
        (order, begun)
    }

    /// Takes an approval, and returns the calls that begin.
    pub(crate) fn approve(&mut self, call: &str) -> Vec<&'a PlannedCall> {
        let Some(place) = self.place(call) else { return Vec::new() };
        self.calls[place].ready = true;
        self.next()
    }

    /// Takes a result, and returns the calls that begin; none once a rejection stops the run.
    pub(crate) fn done(&mut self, call: &str, stops: bool) -> Vec<&'a PlannedCall> {
        let Some(place) = self.place(call) else { return Vec::new() };
        self.calls[place].done = true;
        self.stopped |= stops;
        self.next()
    }

    /// Whether nothing of the reply is left to wait for.
    pub(crate) fn is_over(&self) -> bool {
        let is_open = |call: &Progress| !call.done && (!self.stopped || call.begun);
        !self.calls.iter().any(is_open)
    }

    /// Whether the reply has this call.
    pub(crate) fn has(&self, call: &str) -> bool {
        self.place(call).is_some()
    }

    fn place(&self, call: &str) -> Option<usize> {
        self.planned.calls.iter().position(|planned| *planned.call == *call)
    }

    fn next(&mut self) -> Vec<&'a PlannedCall> {
        let mut begun = Vec::new();
        // Whether a call before that reads, or that acts, has no result yet.
        let (mut reads, mut acts) = (false, false);
        for (planned, call) in self.planned.calls.iter().zip(&mut self.calls) {
            let waits = match planned.place {
                Place::Reads => acts,
                Place::Acts => reads || acts,
                Place::Beside => false,
            };
            if call.ready && !call.begun && !call.done && !waits && !self.stopped {
                call.begun = true;
                begun.push(planned);
            }
            reads |= planned.place == Place::Reads && !call.done;
            acts |= planned.place == Place::Acts && !call.done;
        }
        begun
    }
}

/// The state of a reply's calls after an approval or a result.
pub(super) struct After<'a> {
    /// Whether the last event is the one with which the reply is over.
    pub(super) is_over: bool,
    /// The calls that the last event lets begin.
    pub(super) begin: Vec<&'a PlannedCall>,
    /// The approvals of the reply so far.
    pub(super) approved: Vec<Approved>,
    /// The results of the reply so far.
    pub(super) results: Vec<ToolDone>,
}

/// The state after these events. Those of earlier replies stand before and do not count.
pub(super) fn after<'a>(planned: &'a Planned, moves: &List<Move>) -> After<'a> {
    let (mut order, _) = Order::begin(planned);
    let latest = (0..moves.len()).rev().filter_map(|index| moves.get(index));
    let mut latest: Vec<Move> = latest.take_while(|item| order.has(item.call())).collect();
    latest.reverse();
    let mut after = After { is_over: false, begin: Vec::new(), approved: Vec::new(), results: Vec::new() };
    let mut was_over = false;
    for item in latest {
        was_over = order.is_over();
        match item {
            Move::Approved(approved) => {
                after.begin = order.approve(&approved.call);
                after.approved.push(approved);
            }
            Move::Done(done) => {
                after.begin = order.done(&done.call, done.ends_run == Some(FailureClass::Rejected));
                after.results.push(done);
            }
        }
    }
    // A reply is over once: the calls behind a result that ends the run may have their own results later.
    after.is_over = order.is_over() && !was_over;
    after
}

#[cfg(test)]
mod tests {
    use super::{Order, Place, Planned, PlannedCall};

    fn planned(calls: &[(&str, Place, bool)]) -> Planned {
        let call = |(call, place, ready): &(&str, Place, bool)| PlannedCall {
            call: (*call).into(),
            place: *place,
            ready: *ready,
        };
        Planned { calls: calls.iter().map(call).collect() }
    }

    fn names(calls: &[&PlannedCall]) -> String {
        calls.iter().map(|call| &*call.call).collect::<Vec<_>>().join(" ")
    }

    use Place::{Acts, Beside, Reads};

    /// A12
    #[test]
    fn reads_run_together_up_to_the_next_act_and_acts_one_after_the_other() {
        let planned = planned(&[
            ("r1", Reads, true),
            ("r2", Reads, true),
            ("a1", Acts, true),
            ("r3", Reads, true),
            ("b", Beside, true),
            ("a2", Acts, true),
        ]);
        let (mut order, begun) = Order::begin(&planned);
        assert_eq!(names(&begun), "r1 r2 b");
        assert_eq!(names(&order.done("r2", false)), "");
        assert_eq!(names(&order.done("r1", false)), "a1");
        assert_eq!(names(&order.done("a1", false)), "r3");
        assert_eq!(names(&order.done("r3", false)), "a2");
        assert_eq!(names(&order.done("a2", false)), "");
        assert!(!order.is_over());
        assert_eq!(names(&order.done("b", false)), "");
        assert!(order.is_over());
    }

    /// A12, A20
    #[test]
    fn a_later_act_waits_for_one_that_waits_for_a_person_and_an_early_approval_counts() {
        let planned =
            planned(&[("a1", Acts, false), ("a2", Acts, true), ("a3", Acts, false), ("r", Reads, true)]);
        let (mut order, begun) = Order::begin(&planned);
        assert_eq!(names(&begun), "");
        assert_eq!(names(&order.approve("a3")), "");
        assert_eq!(names(&order.approve("a1")), "a1");
        assert_eq!(names(&order.done("a1", false)), "a2");
        assert_eq!(names(&order.done("a2", false)), "a3");
        assert_eq!(names(&order.done("a3", false)), "r");
    }

    /// A12, A21
    #[test]
    fn nothing_begins_behind_a_rejection_that_stops_the_run_and_what_began_is_waited_for() {
        let planned = planned(&[("b", Beside, true), ("a1", Acts, false), ("a2", Acts, true)]);
        let (mut order, begun) = Order::begin(&planned);
        assert_eq!(names(&begun), "b");
        assert_eq!(names(&order.done("a1", true)), "");
        assert!(!order.is_over());
        assert_eq!(names(&order.done("b", false)), "");
        assert!(order.is_over());
    }
}
