//! Explanations of a waiting run, an ended run, and a large one.

#![expect(clippy::needless_raw_string_hashes, reason = "`expect-test` writes expected texts this way")]

use std::time::Instant;

use expect_test::{expect, expect_file};
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Item, Part};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Approve(u32);

struct Orders;

#[workflow]
impl Orders {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(max_executions = 2)]
    async fn price(&self, item: &Item) -> Part {
        Part(item.0 * 10)
    }

    #[precondition]
    fn both_are_there(parts: &List<Part>) -> bool {
        parts.len() == 2
    }

    #[step(precondition = both_are_there)]
    async fn ask(&self, _begin: &Begin, parts: List<Part>) -> Approve {
        Approve(parts.iter().map(|part| part.0).sum())
    }

    #[step]
    async fn end(&self, begin: &Begin, approval: &Reply<Approve>) -> Done {
        assert!(**approval);
        Done(begin.0)
    }
}

// S30
#[tokio::test]
async fn a_run_that_waits_says_what_ran_with_which_events_and_what_it_waits_for() {
    let run = Scenario::new(Orders).start(Begin(3)).await;
    expect![[r#"
        run `scenario` of `Orders`: waiting
        - no `Done` has ended the run yet
            `end` did not run
        - `list` ran once
            x1, triggered by #1 `Begin`
        - `price` ran twice
            x2, triggered by #2 `Item` of `list`
            x3, triggered by #3 `Item` of `list`
            not for #4 `Item` of `list`: by its `max_executions` it may run only twice
        - `ask` ran once
            x4, triggered by #6 `Part` of `price`, with #1 `Begin` and a list of 2
            not for #1 `Begin`: it waited for `Part`
            not for #5 `Part` of `price`: its precondition `both_are_there` said no
        - `end` did not run
            not for #1 `Begin`: it waited for the reply to `Approve`
            it needs the reply to `Approve`
                `Approve` was asked and not answered"#]]
    .assert_eq(&run.explanation().unwrap().to_string());
}

// S30
#[tokio::test]
async fn a_run_that_completed_says_the_same_after_its_end_and_no_more_what_it_waits_for() {
    let run = Scenario::new(Orders).reply(|_: &Approve| true).start(Begin(3)).await;
    expect![[r#"
        run `scenario` of `Orders`: completed
        - `list` ran once
            x1, triggered by #1 `Begin`
        - `price` ran twice
            x2, triggered by #2 `Item` of `list`
            x3, triggered by #3 `Item` of `list`
            not for #4 `Item` of `list`: by its `max_executions` it may run only twice
        - `ask` ran once
            x4, triggered by #6 `Part` of `price`, with #1 `Begin` and a list of 2
            not for #1 `Begin`: it waited for `Part`
            not for #5 `Part` of `price`: its precondition `both_are_there` said no
        - `end` ran once
            x5, triggered by #8 `Approve.reply`, with #1 `Begin`
            not for #1 `Begin`: it waited for the reply to `Approve`"#]]
    .assert_eq(&run.explanation().unwrap().to_string());
}

struct Both;

#[workflow]
impl Both {
    #[step]
    async fn make(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn join(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }

    #[step]
    async fn find(&self, item: &Item) -> Option<Part> {
        (item.0 > 9).then_some(Part(0))
    }
}

// S30
#[tokio::test]
async fn an_explanation_is_data_for_machines() {
    let run = Scenario::new(Both).start(Begin(3)).await;
    let json = serde_json::to_string_pretty(&*run.explanation().unwrap()).unwrap();
    expect_file!["explain/explanation.json"].assert_eq(&(json + "\n"));
}

// S15, S20
#[tokio::test]
async fn every_execution_names_its_trigger_its_events_and_their_producers() {
    let explanation = Scenario::new(Both).start(Begin(10)).await.explanation().unwrap();
    let [why] = &explanation.steps[1].ran[..] else { panic!("{explanation}") };
    assert_eq!((why.trigger.seq.to_string(), &*why.trigger.event), ("#3".to_owned(), "Part"));
    let inputs: Vec<String> = why.inputs.iter().map(ToString::to_string).collect();
    assert_eq!(inputs, ["#2 `Item` of `make`", "#3 `Part` of `find`"]);
    assert!(explanation.missing_stops.is_empty());
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Label(u32);

#[derive(Debug, thiserror::Error)]
#[error("no {0} left")]
struct NoneLeft(u32);

struct Parcels;

#[workflow]
impl Parcels {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn pick(&self, item: &Item) -> Result<Part, NoneLeft> {
        if item.0 == 2 { Err(NoneLeft(item.0)) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn pack(&self, begin: &Begin, item: &Item, part: &Part) -> Label {
        Label(begin.0 + item.0 + part.0)
    }

    #[step]
    async fn ship(&self, labels: &Gather<Label>) -> Done {
        Done(labels.ok().map(|label| label.0).sum())
    }
}

// S45, S51
#[tokio::test]
async fn executions_in_a_branch_name_the_branch() {
    expect![[r#"
        run `scenario` of `Parcels`: completed
        - `split` ran once
            x1, triggered by #1 `Begin`
        - `pick` ran twice
            x2 in scope 1, triggered by #2 `Item` of `split`
            x3 in scope 2, triggered by #3 `Item` of `split`: failed (permanent): no 2 left
        - `pack` ran once
            x4 in scope 1, triggered by #4 `Part` of `pick`, with #1 `Begin` and #2 `Item` of `split`
            not for #1 `Begin`: it waited for `Item` and `Part`
            not for #2 `Item` of `split` in scope 1: it waited for `Part`
            not for #3 `Item` of `split` in scope 2: it waited for `Part`
        - `ship` ran once
            x5, triggered by #6 the gathered `Item` of `split`"#]]
    .assert_eq(&Scenario::new(Parcels).start(Begin(2)).await.explanation().unwrap().to_string());
}

struct Covered;

#[workflow]
impl Covered {
    #[step]
    async fn split(&self, begin: &Begin) -> (Label, FanOut<Item>) {
        (Label(0), (1..=begin.0).map(Item).collect())
    }

    #[step]
    async fn wait(&self, label: &Label) -> Part {
        tokio::task::yield_now().await;
        Part(label.0)
    }

    #[step]
    async fn hold(&self, _item: &Item) -> Approve {
        Approve(0)
    }

    #[step]
    async fn answered(&self, _approval: &Reply<Approve>) -> Approved {
        Approved
    }

    #[step]
    async fn note(&self, _label: &Label, _part: &Part) {}

    #[step]
    async fn end(&self, approved: &Gather<Approved>) -> Done {
        Done(approved.len().try_into().unwrap())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Approved;

// S46
#[tokio::test]
async fn a_branch_skips_bindings_without_an_event_of_its_own() {
    let run = Scenario::new(Covered).start(Begin(2)).await;
    expect![[r#"
        run `scenario` of `Covered`: waiting
        - no `Done` has ended the run yet
            `end` did not run
        - `split` ran once
            x1, triggered by #1 `Begin`
        - `wait` ran once
            x2, triggered by #2 `Label` of `split`
            not for #2 `Label` of `split` in scope 1: none of its events is this branch's own, so the scope above sees to it
            not for #2 `Label` of `split` in scope 2: none of its events is this branch's own, so the scope above sees to it
        - `hold` ran twice
            x3 in scope 1, triggered by #3 `Item` of `split`
            x4 in scope 2, triggered by #4 `Item` of `split`
        - `answered` did not run
            it needs the reply to `Approve`
                `Approve` was asked and not answered
        - `note` ran once
            x5, triggered by #7 `Part` of `wait`, with #2 `Label` of `split`
            not for #2 `Label` of `split`: it waited for `Part`
            not for #2 `Label` of `split` in scope 1: it waited for `Part`
            not for #2 `Label` of `split` in scope 2: it waited for `Part`
            not for #7 `Part` of `wait` in scope 1: none of its events is this branch's own, so the scope above sees to it
            not for #7 `Part` of `wait` in scope 2: none of its events is this branch's own, so the scope above sees to it
        - `end` did not run
            it needs the gathered `Approved`
                `split` fanned out, and not all of its 2 branches have settled"#]].assert_eq(&run.explanation().unwrap().to_string());
}

struct Repeats;

#[workflow]
impl Repeats {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn first(&self, items: FixedList<Item, 2>) -> Part {
        Part(items.len().try_into().unwrap())
    }

    #[precondition]
    fn never(part: &Part) -> Result<bool, NoneLeft> {
        if part.0 > 9 { Ok(true) } else { Err(NoneLeft(part.0)) }
    }

    #[step(precondition = never)]
    async fn end(&self, part: &Part) -> Done {
        Done(part.0)
    }
}

// S17, S18, S20
#[tokio::test]
async fn repeats_and_failed_preconditions_are_explained() {
    expect![[r#"
        run `scenario` of `Repeats`: failed
        - no `Done` ended the run
            `end` did not run
        - `make` ran once
            x1, triggered by #1 `Begin`
        - `first` ran once
            x2, triggered by #3 `Item` of `make`, with a list of 2
            not for #2 `Item` of `make`: it waited for 2 of `Item` (1 so far)
            not for #4 `Item` of `make`: it has run with these very events
            not for #5 `Item` of `make`: it has run with these very events
        - `end` did not run
            not for #6 `Part` of `first`: its precondition `never` failed"#]]
    .assert_eq(&Scenario::new(Repeats).start(Begin(4)).await.explanation().unwrap().to_string());
}

struct Many;

#[workflow]
impl Many {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn price(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step(reruns)]
    async fn join(&self, parts: FixedList<Part, 200_000>, _items: &List<Item>) -> Done {
        Done(parts.len().try_into().unwrap())
    }
}

// S30
#[tokio::test]
async fn a_large_run_is_explained_in_one_pass_and_printed_folded() {
    let run = Scenario::new(Many).start(Begin(50_000)).await;
    run.assert_stalled("it needs 200000 of `Part` and has 50000");
    let before = Instant::now();
    let explanation = run.explanation().unwrap();
    assert_eq!(explanation.steps[1].ran.len(), 50_000);
    assert_eq!(explanation.steps[2].did_not_run.len(), 100_000);
    assert!(before.elapsed().as_secs() < 20, "one pass over 100,000 triggers took {:?}", before.elapsed());
    expect![[r#"
        run `scenario` of `Many`: stalled
        - no `Done` ended the run
            `join` did not run
        - `make` ran once
            x1, triggered by #1 `Begin`
        - `price` ran 50000 times
            x2, triggered by #2 `Item` of `make`
            x3, triggered by #3 `Item` of `make`
            x4, triggered by #4 `Item` of `make`
            x5, triggered by #5 `Item` of `make`
            x6, triggered by #6 `Item` of `make`
            … 49993 more …
            x50000, triggered by #50000 `Item` of `make`
            x50001, triggered by #50001 `Item` of `make`
        - `join` did not run
            not for #2 `Item` of `make`: it waited for 200000 of `Part` (0 so far)
            not for #3 `Item` of `make`: it waited for 200000 of `Part` (0 so far)
            not for #4 `Item` of `make`: it waited for 200000 of `Part` (0 so far)
            not for #5 `Item` of `make`: it waited for 200000 of `Part` (0 so far)
            not for #6 `Item` of `make`: it waited for 200000 of `Part` (0 so far)
            … 99993 more …
            not for #100000 `Part` of `price`: it waited for 200000 of `Part` (49999 so far)
            not for #100001 `Part` of `price`: it waited for 200000 of `Part` (50000 so far)
            it needs 200000 of `Part` and has 50000
                `price` ran 50000 times and emitted 50000"#]]
    .assert_eq(&explanation.to_string());
}
