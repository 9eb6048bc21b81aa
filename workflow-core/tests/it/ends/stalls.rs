//! Every way in which a run can stall, each with the full text of its report (S30). No test waits: the virtual clock
//! proves that a stall is noticed the moment the run is idle.

#![expect(clippy::needless_raw_string_hashes, reason = "`expect-test` writes expected texts this way")]

use std::time::Duration;

use expect_test::expect;
use workflow_core::explain::StallReport;
use workflow_core::prelude::*;
use workflow_testkit::{Scenario, Start};

use crate::fixtures::{Begin, Done, Item, Part};

mod arrivals;
mod branches;
mod errors;

/// The stall report of this scenario.
async fn stall_of<W: Workflow>(scenario: Start<W>) -> StallReport {
    let run = scenario.await;
    run.assert_stalled("stalled: nothing runs");
    assert_eq!(run.elapsed(), Duration::ZERO, "nothing waited for a timer");
    let report = run.stall().unwrap();
    for idle in &report.idle {
        assert!(
            !idle.missing.is_empty() || idle.refused.is_some(),
            "no reason for `{}`: {report}",
            idle.step
        );
        assert!(idle.missing.iter().all(|unmet| !unmet.producers.is_empty()), "no cause: {report}");
    }
    report.clone()
}

async fn stall<W: Workflow>(workflow: W) -> StallReport {
    stall_of(Scenario::new(workflow).start(Begin(3))).await
}

/// The error of these steps.
#[derive(Debug, thiserror::Error)]
#[error("{0} has no price")]
struct NoPrice(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Enough;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Short;

#[derive(Debug, EventSet)]
enum Graded {
    Enough(Enough),
    Short(Short),
}

struct OtherVariant;

#[workflow]
impl OtherVariant {
    #[step]
    async fn grade(&self, begin: &Begin) -> Graded {
        if begin.0 > 9 { Graded::Enough(Enough) } else { Graded::Short(Short) }
    }

    #[step]
    async fn answer(&self, _enough: &Enough) -> Done {
        Done(0)
    }
}

// S3, S30
#[tokio::test]
async fn a_variant_that_no_step_takes() {
    expect![[r#"
        the run of `OtherVariant` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `answer` did not run
        - `answer` did not run
            it needs `Enough`
                `grade` ran once and emitted only `Short`
        - no step takes #2 `Short` of `grade`"#]]
    .assert_eq(&stall(OtherVariant).await.to_string());
}

struct NothingLast;

#[workflow]
impl NothingLast {
    #[step]
    async fn finish(&self, begin: &Begin) -> Option<Done> {
        (begin.0 > 9).then_some(Done(0))
    }
}

// S24, S30
#[tokio::test]
async fn none_from_the_last_step() {
    expect![[r#"
        the run of `NothingLast` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` ran once and emitted nothing"#]]
    .assert_eq(&stall(NothingLast).await.to_string());
}

struct NeverTrue;

#[workflow]
impl NeverTrue {
    #[step]
    async fn make(&self, begin: &Begin) -> (Item, Part) {
        (Item(begin.0), Part(begin.0))
    }

    #[precondition]
    fn large_enough(item: &Item) -> bool {
        item.0 > 9
    }

    #[step(precondition = large_enough)]
    async fn finish(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

// S18, S30
#[tokio::test]
async fn a_precondition_that_is_never_true() {
    expect![[r#"
        the run of `NeverTrue` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` did not run: its precondition `large_enough` said no
        - `finish` did not run
            its precondition `large_enough` said no at #3 `Part` of `make`"#]]
    .assert_eq(&stall(NeverTrue).await.to_string());
}

struct CountedTooFar;

#[workflow]
impl CountedTooFar {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[precondition]
    async fn all_are_there(begin: &Begin, items: &List<Item>) -> bool {
        tokio::task::yield_now().await;
        items.len() > begin.0 as usize
    }

    #[step(precondition = all_are_there)]
    async fn join(&self, _begin: &Begin, items: List<Item>) -> Part {
        Part(items.iter().map(|item| item.0).sum())
    }

    #[step]
    async fn finish(&self, part: &Part) -> Done {
        Done(part.0)
    }
}

// S13, S18, S30
#[tokio::test]
async fn a_counted_list_whose_count_is_wrong() {
    expect![[r#"
        the run of `CountedTooFar` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` did not run
        - `finish` did not run
            it needs `Part`
                `join` did not run: its precondition `all_are_there` said no
        - `join` did not run
            its precondition `all_are_there` said no 3 times, the last time at #4 `Item` of `make`"#]]
    .assert_eq(&stall(CountedTooFar).await.to_string());
}

struct OneShort;

#[workflow]
impl OneShort {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn join(&self, items: FixedList<Item, 4>) -> Done {
        Done(items.len().try_into().unwrap())
    }
}

// S13, S30
#[tokio::test]
async fn a_fixed_list_that_is_one_short() {
    expect![[r#"
        the run of `OneShort` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `join` did not run
        - `join` did not run
            it needs 4 of `Item` and has 3
                `make` ran once and emitted 3"#]]
    .assert_eq(&stall(OneShort).await.to_string());
}

struct OnlyOptional;

#[workflow]
impl OnlyOptional {
    #[step]
    async fn find_item(&self, begin: &Begin) -> Option<Item> {
        (begin.0 > 9).then_some(Item(0))
    }

    #[step]
    async fn find_part(&self, begin: &Begin) -> Option<Part> {
        (begin.0 > 9).then_some(Part(0))
    }

    #[step(reruns)]
    async fn finish(&self, item: Option<&Item>, part: Option<&Part>) -> Done {
        Done(item.map_or(0, |item| item.0) + part.map_or(0, |part| part.0))
    }
}

// S9, S30
#[tokio::test]
async fn optional_inputs_none_of_which_came() {
    expect![[r#"
        the run of `OnlyOptional` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` did not run
        - `finish` did not run
            it needs `Item` or `Part`
                `find_item` ran once and emitted nothing
                `find_part` ran once and emitted nothing"#]]
    .assert_eq(&stall(OnlyOptional).await.to_string());
}

struct FailedOnTheWay;

#[workflow]
impl FailedOnTheWay {
    #[step(on_error = "continue")]
    async fn price(&self, begin: &Begin) -> Result<Item, NoPrice> {
        Err(NoPrice(begin.0))
    }

    #[step]
    async fn finish(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

// S29, S30
#[tokio::test]
async fn a_failed_producer_that_does_not_fail_the_run() {
    expect![[r#"
        the run of `FailedOnTheWay` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` did not run
        - `finish` did not run
            it needs `Item`
                `price` failed: 3 has no price"#]]
    .assert_eq(&stall(FailedOnTheWay).await.to_string());
}

struct FailedOnce;

#[workflow]
impl FailedOnce {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(on_error = "continue")]
    async fn price(&self, item: &Item) -> Result<Part, NoPrice> {
        if item.0 == 2 { Err(NoPrice(item.0)) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn finish(&self, parts: FixedList<Part, 3>) -> Done {
        Done(parts.len().try_into().unwrap())
    }
}

// S17, S29, S30
#[tokio::test]
async fn one_failure_among_several_that_are_all_needed() {
    expect![[r#"
        the run of `FailedOnce` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` did not run
        - `finish` did not run
            it needs 3 of `Part` and has 2
                `price` ran 3 times and emitted 2; it failed once: 2 has no price"#]]
    .assert_eq(&stall(FailedOnce).await.to_string());
}

struct LimitReached;

#[workflow]
impl LimitReached {
    #[step(max_executions = 2, reruns)]
    async fn think(&self, begin: &Begin, part: Option<&Part>) -> Turn {
        if part.is_some_and(|part| part.0 > begin.0) { Turn::Done(Done(0)) } else { Turn::Item(Item(0)) }
    }

    #[step]
    async fn act(&self, item: &Item) -> Part {
        Part(item.0 + 1)
    }
}

#[derive(Debug, EventSet)]
enum Turn {
    Item(Item),
    Done(Done),
}

// S19, S30
#[tokio::test]
async fn a_limit_that_is_reached() {
    expect![[r#"
        the run of `LimitReached` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `think` ran twice, its `max_executions`, and emitted only `Item`
        - `think` ran twice, but not for #5 `Part` of `act`: by its `max_executions` it may run only twice"#]]
    .assert_eq(&stall(LimitReached).await.to_string());
}

struct NoWayOn;

#[workflow]
impl NoWayOn {
    #[step]
    async fn draft(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn review(&self, item: &Item) -> Verdict {
        if item.0 > 9 { Verdict::Enough(Enough) } else { Verdict::Part(Part(item.0)) }
    }

    #[precondition]
    fn worth_it(part: &Part) -> bool {
        part.0 < 5
    }

    #[step(precondition = worth_it)]
    async fn revise(&self, part: &Part) -> Item {
        Item(part.0 + 1)
    }

    #[step]
    async fn publish(&self, _approved: &Enough) -> Done {
        Done(0)
    }
}

#[derive(Debug, EventSet)]
enum Verdict {
    Enough(Enough),
    Part(Part),
}

// S18, S30
#[tokio::test]
async fn a_loop_that_ends_without_a_stop() {
    expect![[r#"
        the run of `NoWayOn` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `publish` did not run
        - `publish` did not run
            it needs `Enough`
                `review` ran 3 times and emitted only `Part`
        - `revise` ran twice, but not for #7 `Part` of `review`: its precondition `worth_it` said no"#]]
    .assert_eq(&stall(NoWayOn).await.to_string());
}

/// A request to a person.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Approve;

struct NeverAsked;

#[workflow]
impl NeverAsked {
    #[step]
    async fn find(&self, begin: &Begin) -> Option<Item> {
        (begin.0 > 9).then_some(Item(0))
    }

    #[step]
    async fn ask(&self, _item: &Item) -> Approve {
        Approve
    }

    #[step]
    async fn decide(&self, approval: &Reply<Approve>) -> Option<Done> {
        approval.then_some(Done(0))
    }
}

// S30
#[tokio::test]
async fn a_reply_to_a_request_that_was_never_made() {
    expect![[r#"
        the run of `NeverAsked` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `decide` did not run
        - `decide` did not run
            it needs the reply to `Approve`
                `ask` did not run
        - `ask` did not run
            it needs `Item`
                `find` ran once and emitted nothing"#]]
    .assert_eq(&stall(NeverAsked).await.to_string());
}

// S30
#[tokio::test]
async fn a_reply_that_can_still_come_is_waited_for_and_one_that_changes_nothing_ends_the_run() {
    Scenario::new(NeverAsked).start(Begin(10)).await.assert_waiting();
    let refused = Scenario::new(NeverAsked).reply(|_: &Approve| false).start(Begin(10));
    expect![[r#"
        the run of `NeverAsked` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `decide` ran once and emitted nothing"#]]
    .assert_eq(&stall_of(refused).await.to_string());
}

struct ReplyNotTaken;

#[workflow]
impl ReplyNotTaken {
    #[step]
    async fn ask(&self, _begin: &Begin) -> Approve {
        Approve
    }

    #[step]
    async fn finish(&self, _approve: &Approve) -> Option<Done> {
        None
    }
}

// S30
#[tokio::test]
async fn a_request_whose_reply_no_step_takes() {
    expect![[r#"
        the run of `ReplyNotTaken` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` ran once and emitted nothing
        - no step takes the reply to #2 `Approve` of `ask`"#]]
    .assert_eq(&stall(ReplyNotTaken).await.to_string());
}

struct LongChain;

#[workflow]
impl LongChain {
    #[step]
    async fn finish(&self, short: &Short) -> Done {
        let Short = short;
        Done(0)
    }

    #[step]
    async fn second(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn third(&self, _part: &Part) -> Short {
        Short
    }

    #[step]
    async fn beside(&self, _part: &Part) {}

    #[step]
    async fn first(&self, begin: &Begin) -> Option<Item> {
        (begin.0 > 9).then_some(Item(0))
    }
}

// S30
#[tokio::test]
async fn a_report_follows_a_chain_from_the_stop_back_to_the_cause() {
    expect![[r#"
        the run of `LongChain` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` did not run
        - `finish` did not run
            it needs `Short`
                `third` did not run
        - `third` did not run
            it needs `Part`
                `second` did not run
        - `second` did not run
            it needs `Item`
                `first` ran once and emitted nothing
        - `beside` did not run
            it needs `Part`
                `second` did not run"#]]
    .assert_eq(&stall(LongChain).await.to_string());
}

struct EmptyList;

#[workflow]
impl EmptyList {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (10..=begin.0).map(Item).collect()
    }

    #[step(reruns)]
    async fn finish(&self, items: List<Item>) -> Done {
        Done(items.len().try_into().unwrap())
    }
}

// S24, S30
#[tokio::test]
async fn an_empty_list() {
    expect![[r#"
        the run of `EmptyList` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` did not run
        - `finish` did not run
            it needs `Item`
                `make` ran once and emitted nothing"#]]
    .assert_eq(&stall(EmptyList).await.to_string());
}

struct NothingEmitted;

#[workflow]
impl NothingEmitted {
    #[step]
    async fn read(&self, begin: &Begin, items: &Emitter<Item>) -> Result<(), StepError> {
        for number in 10..=begin.0 {
            items.emit(Item(number))?;
        }
        Ok(())
    }

    #[step]
    async fn finish(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

// S7, S30
#[tokio::test]
async fn an_emitter_that_emitted_nothing() {
    expect![[r#"
        the run of `NothingEmitted` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` did not run
        - `finish` did not run
            it needs `Item`
                `read` ran once and emitted nothing"#]]
    .assert_eq(&stall(NothingEmitted).await.to_string());
}

struct NotGathered;

#[workflow]
impl NotGathered {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn price(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: FixedList<Part, 3>) -> Done {
        Done(parts.len().try_into().unwrap())
    }
}

// S45, S30
#[tokio::test]
async fn events_of_branches_that_are_joined_without_a_gather() {
    expect![[r#"
        the run of `NotGathered` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `join` did not run
        - `join` did not run
            it needs 3 of `Part` and has 1
                `price` emitted 2 in other branches of a fan-out, which are not seen from here: `Gather` joins them"#]]
    .assert_eq(&stall(NotGathered).await.to_string());
}

struct NeverOpened;

#[workflow]
impl NeverOpened {
    #[step]
    async fn find(&self, begin: &Begin) -> Option<Item> {
        (begin.0 > 9).then_some(Item(0))
    }

    #[step]
    async fn split(&self, item: &Item) -> FanOut<Part> {
        (1..=item.0).map(Part).collect()
    }

    #[step]
    async fn join(&self, parts: Gather<Part>) -> Done {
        Done(parts.len().try_into().unwrap())
    }
}

// S48, S30
#[tokio::test]
async fn a_gather_whose_fan_out_was_never_opened() {
    expect![[r#"
        the run of `NeverOpened` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `join` did not run
        - `join` did not run
            it needs the gathered `Part`
                `split` did not run
        - `split` did not run
            it needs `Item`
                `find` ran once and emitted nothing"#]]
    .assert_eq(&stall(NeverOpened).await.to_string());
}

struct AllFailed;

#[workflow]
impl AllFailed {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn price(&self, item: &Item) -> Result<Part, NoPrice> {
        Err(NoPrice(item.0))
    }

    #[step]
    async fn pack(&self, _item: &Item, _part: &Part) -> Enough {
        Enough
    }

    #[step]
    async fn finish(&self, packed: Gather<Enough>) -> Option<Done> {
        packed.ok().next().map(|_| Done(0))
    }
}

// S49, S30
#[tokio::test]
async fn branches_that_all_failed_and_left_nothing_to_gather() {
    expect![[r#"
        the run of `AllFailed` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` ran once and emitted nothing
        - `pack` did not run
            it needs `Part`
                `price` failed 3 times, the last time: 3 has no price"#]]
    .assert_eq(&stall(AllFailed).await.to_string());
}

struct Dropped;

#[workflow]
impl Dropped {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn turn(&self, item: &Item) -> FanOut<Part> {
        std::iter::once(Part(item.0)).collect()
    }

    #[step]
    async fn count(&self, part: &Part) -> Result<Short, NoPrice> {
        Err(NoPrice(part.0))
    }

    #[step]
    async fn sum_up(&self, counted: Gather<Short>) -> Enough {
        assert!(counted.is_empty());
        Enough
    }

    #[step]
    async fn finish(&self, sums: Gather<Enough>) -> Option<Done> {
        sums.ok().next().map(|_| Done(0))
    }
}

// S49, S30
#[tokio::test]
async fn branches_that_were_dropped_before_they_could_be_gathered() {
    expect![[r#"
        the run of `Dropped` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` ran once and emitted nothing
        - `sum_up` did not run
            it needs the gathered `Short`
                `turn` fanned out to 3 branches, of which 3 failed
        - `count` failed 3 times in the branches of #5 `Part`, #6 `Part` and #7 `Part`, the last time: 2 has no price"#]]
    .assert_eq(&stall(Dropped).await.to_string());
}

struct NoItems;

#[workflow]
impl NoItems {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (10..=begin.0).map(Item).collect()
    }

    #[step]
    async fn price(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn finish(&self, parts: Gather<Part>) -> Option<Done> {
        parts.ok().next().map(|part| Done(part.0))
    }
}

// S44, S48, S30
#[tokio::test]
async fn a_fan_out_without_items() {
    expect![[r#"
        the run of `NoItems` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `finish` ran once and emitted nothing
        - `price` did not run
            it needs `Item`
                `split` ran once and fanned out to no items"#]]
    .assert_eq(&stall(NoItems).await.to_string());
}

struct OneOfTwo;

#[workflow]
impl OneOfTwo {
    #[step]
    async fn make(&self, begin: &Begin) -> (Item, Option<Part>) {
        (Item(begin.0), (begin.0 > 9).then_some(Part(0)))
    }

    #[step]
    async fn join(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

// S13, S30
#[tokio::test]
async fn two_required_inputs_one_of_which_is_missing() {
    expect![[r#"
        the run of `OneOfTwo` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `join` did not run
        - `join` did not run
            it needs `Part`
                `make` ran once and emitted only `Item`"#]]
    .assert_eq(&stall(OneOfTwo).await.to_string());
}

struct SeveralProducers;

#[workflow(output = Ends)]
impl SeveralProducers {
    #[step]
    async fn grade(&self, begin: &Begin) -> Option<Graded> {
        (begin.0 > 9).then_some(Graded::Short(Short))
    }

    #[step(on_error = "continue")]
    async fn guess(&self, begin: &Begin) -> Result<Enough, NoPrice> {
        Err(NoPrice(begin.0))
    }

    #[step]
    async fn end(&self, graded: Graded) -> Ends {
        match graded {
            Graded::Enough(_) => Ends::Done(Done(0)),
            Graded::Short(_) => Ends::GaveUp(GaveUp),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct GaveUp;

#[derive(Debug, EventSet)]
enum Ends {
    Done(Done),
    GaveUp(GaveUp),
}

// S3, S30
#[tokio::test]
async fn a_union_of_events_none_of_which_came() {
    expect![[r#"
        the run of `SeveralProducers` stalled: nothing runs and nothing can arrive
        - no `Done` and no `GaveUp` ended the run
            `end` did not run
        - `end` did not run
            it needs `Enough` or `Short`
                `grade` ran once and emitted nothing
                `guess` failed: 3 has no price"#]]
    .assert_eq(&stall(SeveralProducers).await.to_string());
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Resume;

struct TwoStarts;

#[workflow]
impl TwoStarts {
    #[step]
    async fn begin(&self, begin: &Begin) -> (Item, Option<Part>) {
        (Item(begin.0), None)
    }

    #[step]
    async fn resume(&self, _resume: &Resume) -> Part {
        Part(0)
    }

    #[step]
    async fn join(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

// S2, S30
#[tokio::test]
async fn a_step_that_waits_for_another_start_event() {
    expect![[r#"
            the run of `TwoStarts` stalled: nothing runs and nothing can arrive
            - no `Done` ended the run
                `join` did not run
            - `join` did not run
                it needs `Part`
                    `begin` ran once and emitted only `Item`
                    `resume` did not run
            - `resume` did not run
                it needs `Resume`
                    `Resume` starts runs, and this one was started with `Begin`"#]]
    .assert_eq(&stall(TwoStarts).await.to_string());
    expect![[r#"
        the run of `TwoStarts` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `join` did not run
        - `join` did not run
            it needs `Item`
                `begin` did not run
        - `begin` did not run
            it needs `Begin`
                `Begin` starts runs, and this one was started with `Resume`"#]]
    .assert_eq(&stall_of(Scenario::new(TwoStarts).start(Resume)).await.to_string());
}

// S30
#[tokio::test]
async fn the_report_is_data_for_machines() {
    let report = serde_json::to_string_pretty(&stall(NeverTrue).await).unwrap();
    expect![[r#"
        {
          "workflow": "NeverTrue",
          "missing_stops": [
            {
              "events": [
                "Done"
              ],
              "kind": "one",
              "have": 0,
              "need": 1,
              "producers": [
                {
                  "refused": {
                    "step": "finish",
                    "precondition": "large_enough"
                  }
                }
              ]
            }
          ],
          "idle": [
            {
              "step": "finish",
              "missing": [],
              "refused": {
                "precondition": "large_enough",
                "times": 1,
                "last": {
                  "seq": 3,
                  "event": "Part",
                  "producer": "make"
                }
              }
            }
          ],
          "failed": [],
          "rejected": [],
          "unconsumed": [],
          "can_arrive": []
        }"#]]
    .assert_eq(&report);
    let report = serde_json::to_string_pretty(&stall(LimitReached).await).unwrap();
    expect![[r#"
        {
          "workflow": "LimitReached",
          "missing_stops": [
            {
              "events": [
                "Done"
              ],
              "kind": "one",
              "have": 0,
              "need": 1,
              "producers": [
                {
                  "emitted_none": {
                    "step": "think",
                    "executions": 2,
                    "limit": 2,
                    "only": [
                      "Item"
                    ]
                  }
                }
              ]
            }
          ],
          "idle": [],
          "failed": [],
          "rejected": [
            {
              "step": "think",
              "executions": 2,
              "scope": 0,
              "trigger": {
                "seq": 5,
                "event": "Part",
                "producer": "act"
              },
              "reason": {
                "limit_reached": {
                  "limit": 2
                }
              }
            }
          ],
          "unconsumed": [],
          "can_arrive": []
        }"#]]
    .assert_eq(&report);
}
