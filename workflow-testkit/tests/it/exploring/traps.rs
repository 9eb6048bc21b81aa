//! The six classic traps of event-driven steps, each fallen into and avoided: the exploration refutes the one with a
//! small order and tries every order of the other.

use workflow_core::Workflow;
use workflow_core::prelude::*;
use workflow_testkit::{Scenario, Start, TestRun, explore};

use crate::support::panic_of;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Ordered;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Priced(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Gift(u64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Closed(u64);

/// The order that refutes the assertion, with a line per operation.
fn refuted<W: Workflow>(
    scenario: impl Fn() -> Start<W>,
    holds: impl Fn(&TestRun<W>) -> bool,
) -> (String, Vec<String>) {
    let failure = panic_of(|| explore(&scenario).assert(&holds));
    let order = failure.split('"').nth(1).expect("an order to replay").to_owned();
    let replayed = panic_of(|| explore(&scenario).replay(&order).assert(&holds));
    assert_eq!(replayed.split("found in").next(), failure.split("found in").next());
    let steps = failure.lines().skip_while(|line| *line != "in this order:").skip(1);
    (order, steps.take_while(|line| !line.is_empty()).map(|line| line[5..].to_owned()).collect())
}

/// Asserts that every order was tried, and returns their number.
fn holds<W: Workflow>(scenario: impl Fn() -> Start<W>, holds: impl Fn(&TestRun<W>) -> bool) -> u64 {
    let explored = explore(scenario).assert(holds);
    assert!(explored.is_exhaustive(), "{explored}");
    explored.tried()
}

macro_rules! shop {
    ($name:ident, #[$notify:meta]) => {
        struct $name;

        #[workflow]
        impl $name {
            #[step]
            async fn wrap(&self, _: &Ordered) -> Gift {
                Gift(1)
            }

            #[step]
            async fn price(&self, _: &Ordered) -> Priced {
                Priced(70)
            }

            #[$notify]
            async fn notify(&self, _: &Priced, _: Option<&Gift>) {}

            #[step]
            async fn close(&self, priced: &Priced, gift: &Gift) -> Closed {
                Closed(priced.0 + gift.0)
            }
        }
    };
}

shop!(NotifiesTwice, #[step(reruns)]);
shop!(NotifiesOnce, #[step(precondition = wrapped)]);

#[precondition]
fn wrapped(gift: Option<&Gift>) -> bool {
    gift.is_some()
}

#[test]
fn an_optional_input_without_a_precondition_runs_its_step_twice() {
    let once = |run: &TestRun<NotifiesTwice>| run.executions("notify") == 1;
    let (order, steps) = refuted(|| Scenario::new(NotifiesTwice).start(Ordered), once);
    assert_eq!(order, "1");
    assert_eq!(steps[0], "price(#1) completes with Priced");
    assert!(holds(|| Scenario::new(NotifiesOnce).start(Ordered), |run| run.executions("notify") == 1) > 1);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Vote(bool);

macro_rules! jury {
    ($name:ident, #[$decide:meta]) => {
        struct $name;

        #[workflow]
        impl $name {
            #[step]
            async fn first(&self, _: &Ordered) -> Vote {
                Vote(false)
            }

            #[step]
            async fn second(&self, _: &Ordered) -> Vote {
                Vote(true)
            }

            #[step]
            async fn third(&self, _: &Ordered) -> Vote {
                Vote(false)
            }

            #[$decide]
            async fn decide(&self, votes: &List<Vote>) -> Closed {
                let yes = votes.iter().filter(|vote| vote.0).count();
                Closed(u64::from(2 * yes > votes.len()))
            }
        }
    };
}

jury!(Hasty, #[step(reruns)]);
jury!(Patient, #[step(precondition = all_voted)]);

#[precondition]
fn all_voted(votes: &List<Vote>) -> bool {
    votes.len() == 3
}

#[test]
fn a_list_without_a_precondition_is_taken_before_it_is_complete() {
    let (order, steps) =
        refuted(|| Scenario::new(Hasty).start(Ordered), |run| run.outcome().unwrap() == &Closed(0));
    assert_eq!(order, "1");
    assert_eq!(steps[0], "second(#1) completes with Vote");
    // The votes have six orders; the order of the decision follows from its last vote.
    assert_eq!(
        holds(|| Scenario::new(Patient).start(Ordered), |run| run.outcome().unwrap() == &Closed(0)),
        6
    );
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Charged;

macro_rules! till {
    ($name:ident, $claims:path) => {
        struct $name;

        #[workflow]
        impl $name {
            #[step]
            async fn by_card(&self, _: &Ordered, context: RunContext) -> Result<Option<Charged>, StepError> {
                Ok($claims(&context).await?.then_some(Charged))
            }

            #[step]
            async fn by_voucher(
                &self,
                _: &Ordered,
                context: RunContext,
            ) -> Result<Option<Charged>, StepError> {
                Ok($claims(&context).await?.then_some(Charged))
            }

            #[step]
            async fn book(&self, _: &Charged) -> Option<Closed> {
                None
            }
        }
    };
}

async fn checks_then_acts(context: &RunContext) -> Result<bool, StepError> {
    let is_first = context.get::<bool>("charged").await?.is_none();
    if is_first {
        context.set("charged", true).await?;
    }
    Ok(is_first)
}

async fn counts(context: &RunContext) -> Result<bool, StepError> {
    Ok(context.increment("charges", 1).await? == 1)
}

till!(ChargesTwice, checks_then_acts);
till!(ChargesOnce, counts);

#[test]
fn what_was_read_of_a_context_may_have_changed_when_it_is_acted_upon() {
    let (_, steps) =
        refuted(|| Scenario::new(ChargesTwice).start(Ordered), |run| run.executions("book") == 1);
    assert_eq!(steps[..2], ["by_card(#1) reads `charged`", "by_voucher(#1) reads `charged`"]);
    assert!(holds(|| Scenario::new(ChargesOnce).start(Ordered), |run| run.executions("book") == 1) > 1);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Refused;

#[derive(Debug, Clone, PartialEq, EventSet)]
enum End {
    Closed(Closed),
    Refused(Refused),
}

struct FirstWins;

#[workflow(output = End)]
impl FirstWins {
    #[step]
    async fn check(&self, _: &Ordered) -> Option<Refused> {
        Some(Refused)
    }

    #[step]
    async fn price(&self, _: &Ordered) -> Closed {
        Closed(70)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Checked(bool);

struct OneDecides;

#[workflow(output = End)]
impl OneDecides {
    #[step]
    async fn check(&self, _: &Ordered) -> Checked {
        Checked(false)
    }

    #[step]
    async fn price(&self, _: &Ordered) -> Priced {
        Priced(70)
    }

    #[step]
    async fn decide(&self, checked: &Checked, priced: &Priced) -> End {
        if checked.0 { End::Closed(Closed(priced.0)) } else { End::Refused(Refused) }
    }
}

#[test]
fn of_two_stops_the_first_one_wins() {
    let (order, steps) = refuted(
        || Scenario::new(FirstWins).start(Ordered),
        |run| run.outcome().unwrap() == &End::Refused(Refused),
    );
    assert_eq!((&*order, &*steps), ("1", &["price(#1) completes with Closed".to_owned()][..]));
    let refused = |run: &TestRun<OneDecides>| run.outcome().unwrap() == &End::Refused(Refused);
    assert_eq!(holds(|| Scenario::new(OneDecides).start(Ordered), refused), 2);
}

macro_rules! late {
    ($name:ident, $gift:ty, |$bound:ident| $value:expr) => {
        struct $name;

        #[workflow]
        impl $name {
            #[step]
            async fn wrap(&self, _: &Ordered) -> Gift {
                Gift(1)
            }

            #[step]
            async fn price(&self, _: &Ordered) -> Priced {
                Priced(70)
            }

            #[step(reruns)]
            async fn close(&self, priced: &Priced, $bound: $gift) -> Closed {
                Closed(priced.0 + $value)
            }
        }
    };
}

late!(ClosesEarly, Option<&Gift>, |gift| gift.map_or(0, |gift| gift.0));
late!(ClosesLate, &Gift, |gift| gift.0);

#[test]
fn an_optional_input_that_comes_late_is_left_out_of_the_join() {
    let (order, steps) =
        refuted(|| Scenario::new(ClosesEarly).start(Ordered), |run| run.outcome().unwrap() == &Closed(71));
    assert_eq!(order, "1");
    assert_eq!(steps[0], "price(#1) completes with Priced");
    assert_eq!(steps[2], "close(#1) completes with Closed");
    let all = |run: &TestRun<ClosesLate>| run.outcome().unwrap() == &Closed(71);
    assert_eq!(holds(|| Scenario::new(ClosesLate).start(Ordered), all), 2);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Plan(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Retry(u64);

#[derive(Debug, EventSet)]
enum Begins {
    Ordered(Ordered),
    Retry(Retry),
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Found(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Weighed(u64);

#[derive(Debug, EventSet)]
enum Merged {
    Retry(Retry),
    Closed(Closed),
}

macro_rules! rounds {
    ($name:ident, #[$merge:meta]) => {
        struct $name;

        #[workflow]
        impl $name {
            #[step]
            async fn plan(&self, begins: Begins) -> Plan {
                match begins {
                    Begins::Ordered(_) => Plan(1),
                    Begins::Retry(retry) => Plan(retry.0 + 1),
                }
            }

            #[step]
            async fn search(&self, plan: &Plan) -> Found {
                Found(plan.0)
            }

            #[step]
            async fn weigh(&self, plan: &Plan) -> Weighed {
                Weighed(plan.0)
            }

            #[$merge]
            async fn merge(&self, found: &Found, weighed: &Weighed) -> Merged {
                if found.0 < 2 {
                    return Merged::Retry(Retry(found.0));
                }
                Merged::Closed(Closed(found.0 * 10 + weighed.0))
            }
        }
    };
}

rounds!(MixesRounds, #[step]);
rounds!(KeepsRounds, #[step(precondition = of_one_round)]);

#[precondition]
fn of_one_round(found: &Found, weighed: &Weighed) -> bool {
    found.0 == weighed.0
}

#[test]
fn a_loop_joins_an_event_of_this_round_with_one_of_the_last() {
    let (order, steps) =
        refuted(|| Scenario::new(MixesRounds).start(Ordered), |run| run.outcome().unwrap() == &Closed(22));
    assert!(order.len() <= 11, "{order}");
    assert!(steps.contains(&"search(#2) completes with Found".to_owned()), "{steps:?}");
    let one_round = |run: &TestRun<KeepsRounds>| run.outcome().unwrap() == &Closed(22);
    assert_eq!(holds(|| Scenario::new(KeepsRounds).start(Ordered), one_round), 4);
}
