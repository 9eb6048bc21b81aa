//! Runs of every shape survive a crash at every append (S38, S39, S42): they come to the same end as without one.

use workflow_testkit::Scenario;

use crate::fixtures::{Note, survive};
use crate::shapes::{
    Ask, Asks, Branches, Catches, Fails, FailsAll, Joins, Lists, Loops, Pairs, Parents, Retries, Stalls,
    Waits,
};

survive! {
    joins: Scenario::new(Joins), 4;
    lists: Scenario::new(Lists), 4;
    fixed_lists: Scenario::new(Pairs), 5;
    loops: Scenario::new(Loops), 4;
    retries: Scenario::new(Retries), 4;
    failures_that_are_caught: Scenario::new(Catches), 4;
    failures: Scenario::new(Fails), 4;
    stalls: Scenario::new(Stalls), 4;
    branches: Scenario::new(Branches), 4;
    a_failure_that_drops_branches: Scenario::new(FailsAll), 4;
    no_branches: Scenario::new(Branches), 0;
    requests: Scenario::new(Asks).reply(|ask: &Ask| ask.0 + 1), 3;
    timers: Scenario::new(Waits).send(Note(5)), 3;
    children: Scenario::new(Parents).host(Joins).host(Loops), 3;
}
