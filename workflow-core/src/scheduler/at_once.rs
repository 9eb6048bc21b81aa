//! Events that nothing has to be waited for with, be they from outside or committed, and what follows from them directly:
//! in a chain of steps that is all there is to do, and none of it needs a queue.

use super::scope::Scope;
use super::{End, Entry, Inputs, Scheduler, Start, Verdict};
use crate::id::{ExecutionId, ScopeId};
use crate::table::{EventIndex, StepIndex};

/// What an event that enters the log comes to.
#[derive(Debug)]
pub(crate) struct AtOnce {
    /// What enters the log.
    pub(crate) entry: Entry,
    /// The execution that it triggers, if that is the next thing to be done.
    pub(crate) next: Option<Start>,
}

impl Scheduler {
    /// Commits one event that is logged at once: what comes of [`Fact::ExecutionSucceeded`](super::Fact),
    /// [`Action::Append`](super::Action) and [`Fact::Appended`](super::Fact) where nothing lies between them. `None`, and
    /// nothing is done, if something may.
    pub(crate) fn commit_at_once(&mut self, id: ExecutionId, event: EventIndex) -> Option<AtOnce> {
        if !self.is_free() {
            return None;
        }
        let (_, scope) = self.end_execution(id)?;
        self.enter_at_once(scope, event)
    }

    /// The same for an event from outside, instead of [`Fact::EventReceived`](super::Fact).
    pub(crate) fn receive_at_once(&mut self, event: EventIndex) -> Option<AtOnce> {
        if !self.is_free() {
            return None;
        }
        self.hold(ScopeId::ROOT);
        self.enter_at_once(ScopeId::ROOT, event)
    }

    /// Whether nothing is on its way to the log, and there is room in it.
    fn is_free(&self) -> bool {
        let is_free = self.actions.is_empty() && self.appending.is_empty() && !self.refuses();
        is_free && self.last_seq < self.limits.events
    }

    /// An event enters the log. Its scope was held open for it.
    fn enter_at_once(&mut self, scope: ScopeId, event: EventIndex) -> Option<AtOnce> {
        self.waits = false;
        let entry = self.number(scope, event)?;
        let mut next = None;
        if self.stopping {
            self.close(End::Completed(entry.seq));
        } else if let Some(step) = self.follower(entry) {
            next = Some(self.follow(step, entry));
        } else {
            self.logged(entry);
            self.release(scope);
            self.start_waiting();
        }
        Some(AtOnce { entry, next })
    }

    /// The step that the event makes run, if nothing else is to be done and nothing is in its way.
    fn follower(&self, entry: Entry) -> Option<StepIndex> {
        let row = self.table.event(entry.event);
        let step = row.direct.filter(|_| !row.roles.is_request())?;
        let is_alone = self.unevaluated.is_empty() && self.cursor.is_none() && self.settling.is_empty();
        let is_leaf = self.scopes.get(entry.scope).is_some_and(Scope::is_leaf);
        let may_start = self.waiting == 0 && self.executed() < self.limits.executions && self.has_room(step);
        (is_alone && is_leaf && may_start).then_some(step)
    }

    /// The event is evaluated. What held its scope open is followed by the execution.
    fn follow(&mut self, step: StepIndex, trigger: Entry) -> Start {
        let Entry { seq, scope, .. } = trigger;
        self.count(trigger);
        let execution = self.count_execution((step, scope, seq));
        self.decide(step, scope, seq, Verdict::Executed(execution));
        self.run(execution, step, scope);
        Start { execution, step, scope, trigger: seq, inputs: Inputs::TRIGGER }
    }

    /// The execution runs from here on.
    pub(super) fn run(&mut self, id: ExecutionId, step: StepIndex, scope: ScopeId) {
        let place = self.running_in_branches.len();
        if let Some(execution) = self.execution(id) {
            execution.begin(place);
        }
        self.totals[step.get()].running += 1;
        self.running += 1;
        if scope != ScopeId::ROOT {
            self.running_in_branches.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::event::Roles;
    use crate::id::Seq;
    use crate::scheduler::{Action, Emission, Fact, SchedulerLimits};
    use crate::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef, TableBuilder};

    /// How the scheduler is told.
    #[derive(Clone, Copy)]
    enum Way {
        AtOnce,
        ByFacts,
    }

    fn events() -> TableBuilder {
        DependencyTable::builder("ways")
            .event(EventDef::new("Begin", Roles::NONE.start()))
            .event(EventDef::new("Middle", Roles::NONE))
            .event(EventDef::new("Side", Roles::NONE))
            .event(EventDef::new("End", Roles::NONE.stop()))
            .step(StepDef::new("first").input(InputDef::one("Begin")).output(OutputDef::event("Middle")))
            .step(StepDef::new("second").input(InputDef::one("Middle")).output(OutputDef::event("Side")))
    }

    /// Steps one after the other.
    fn straight() -> DependencyTable {
        let last = StepDef::new("last").input(InputDef::one("Side")).output(OutputDef::event("End"));
        events().step(last).build().expect("the table is sound")
    }

    /// The last of them takes what the run began with too, so that this makes two steps be evaluated.
    fn joined() -> DependencyTable {
        let last = StepDef::new("last").input(InputDef::one("Begin")).input(InputDef::one("Side"));
        events().step(last.output(OutputDef::event("End"))).build().expect("the table is sound")
    }

    fn scheduler(table: DependencyTable, events: u64) -> Scheduler {
        Scheduler::with_limits(table.into(), SchedulerLimits { events, ..SchedulerLimits::default() })
    }

    /// Logs what was handed out, and says which executions are to start.
    fn started(scheduler: &mut Scheduler) -> Vec<ExecutionId> {
        let mut started = Vec::new();
        while let Some(action) = scheduler.next_action() {
            match action {
                Action::Append { .. } => scheduler.apply(Fact::Appended),
                Action::StartExecution { execution, .. } => started.push(execution),
                _ => {}
            }
        }
        started
    }

    impl Way {
        /// An event enters the log, of an execution or from outside: which executions follow.
        fn enter(self, scheduler: &mut Scheduler, by: Option<ExecutionId>, event: &str) -> Vec<ExecutionId> {
            let event = scheduler.table().event_named(event).expect("the table has it");
            match (self, by) {
                (Self::AtOnce, by) => {
                    let entered = match by {
                        Some(execution) => scheduler.commit_at_once(execution, event),
                        None => scheduler.receive_at_once(event),
                    };
                    let next = entered.expect("nothing is in the way").next;
                    let next = next.map(|start| start.execution);
                    return next.into_iter().chain(started(scheduler)).collect();
                }
                (Self::ByFacts, None) => scheduler.apply(Fact::EventReceived { event }),
                (Self::ByFacts, Some(execution)) => {
                    let emissions = smallvec![Emission::Event(event)];
                    scheduler.apply(Fact::ExecutionSucceeded { execution, emissions });
                }
            }
            started(scheduler)
        }
    }

    /// Of four events, the last of which ends the run and is the last that the log has room for.
    fn comes_to_the_same(table: fn() -> DependencyTable) {
        let [mut at_once, mut by_facts] = [scheduler(table(), 4), scheduler(table(), 4)];
        let steps = [(None, "Begin"), (Some(1), "Middle"), (Some(2), "Side"), (Some(3), "End")];
        for (n, (by, event)) in (1..).zip(steps) {
            let by = by.map(ExecutionId);
            let started = Way::AtOnce.enter(&mut at_once, by, event);
            assert_eq!(started, Way::ByFacts.enter(&mut by_facts, by, event), "{event}");
            assert_eq!(started, if event == "End" { vec![] } else { vec![ExecutionId(n)] }, "{event}");
            assert_eq!(at_once.decisions(), by_facts.decisions(), "{event}");
            assert_eq!(at_once.last_seq(), by_facts.last_seq(), "{event}");
            assert_eq!(at_once.end(), by_facts.end(), "{event}");
            let [pending, wanted] =
                [&at_once, &by_facts].map(|it| it.scopes.get(ScopeId::ROOT).map(|root| root.pending));
            assert_eq!(pending, wanted, "{event}");
        }
        assert_eq!(at_once.end(), Some(&End::Completed(Seq(4))));
        let begin = at_once.table().event_named("Begin").expect("the table has it");
        assert!(at_once.receive_at_once(begin).is_none(), "it has ended");
    }

    #[test]
    fn what_enters_the_log_at_once_comes_to_the_same_as_by_facts_and_actions() {
        comes_to_the_same(straight);
        comes_to_the_same(joined);
    }

    #[test]
    fn nothing_enters_at_once_behind_what_is_on_its_way_or_where_the_log_is_full() {
        let mut scheduler = scheduler(straight(), 1);
        let begin = scheduler.table().event_named("Begin").expect("the table has it");
        scheduler.apply(Fact::EventReceived { event: begin });
        assert!(scheduler.receive_at_once(begin).is_none());
        assert_eq!(started(&mut scheduler), [ExecutionId(1)]);
        let middle = scheduler.table().event_named("Middle").expect("the table has it");
        assert!(scheduler.commit_at_once(ExecutionId(1), middle).is_none());
        assert!(scheduler.is_running(ExecutionId(1)));
    }

    #[test]
    fn the_first_execution_that_there_is_no_room_for_ends_the_run_as_by_facts() {
        let limits = SchedulerLimits { executions: 0, ..SchedulerLimits::default() };
        let [mut at_once, mut by_facts] = [(); 2].map(|()| Scheduler::with_limits(straight().into(), limits));
        assert_eq!(Way::AtOnce.enter(&mut at_once, None, "Begin"), []);
        assert_eq!(Way::ByFacts.enter(&mut by_facts, None, "Begin"), []);
        assert_eq!(at_once.end(), Some(&End::TooManyExecutions));
        assert_eq!((at_once.end(), at_once.decisions()), (by_facts.end(), by_facts.decisions()));
    }
}
