//! Event inputs: their readiness, binding and cost (S5, S8, S12–S17).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use workflow_core::prelude::*;
use workflow_core::report::BoundInput;
use workflow_testkit::Scenario;

use crate::fixtures::{Alpha, Begin, Beta, Close, Counted, Done, Item, Part, Saw, log_of, saw};

struct ThreeAtOnce;

#[workflow]
impl ThreeAtOnce {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(reruns)]
    async fn collect(&self, items: &List<Item>) -> (Saw, Option<Done>) {
        let numbers: Vec<u32> = items.iter().map(|item| item.0).collect();
        (Saw(format!("{numbers:?}")), (items.len() == 3).then_some(Done(3)))
    }
}

// S12
#[tokio::test]
async fn three_events_logged_at_once_give_lists_of_one_two_and_three() {
    let run = Scenario::new(ThreeAtOnce).start(Begin(3)).await;
    assert_eq!(log_of(run.report()), ["Begin", "Item", "Item", "Item", "Saw", "Saw", "Saw", "Done"]);
    assert_eq!(saw(&run), ["[1]", "[1, 2]", "[1, 2, 3]"]);
}

struct Join;

#[workflow]
impl Join {
    #[step]
    async fn join(&self, alpha: &Alpha, beta: &Beta) -> Saw {
        Saw(format!("A{} B{}", alpha.0, beta.0))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S15
#[tokio::test]
async fn a_join_pairs_every_arrival_with_the_latest_of_the_other_type() {
    let scenario = Scenario::new(Join).send(Alpha(1)).send(Beta(1)).send(Alpha(2)).send(Beta(2));
    assert_eq!(saw(&scenario.start(Begin(0)).await), ["A1 B1", "A2 B1", "A2 B2"]);
}

// S13
#[tokio::test]
async fn a_step_is_not_run_before_every_required_input_is_there() {
    let run = Scenario::new(Join).send(Alpha(1)).send(Alpha(2)).start(Begin(0)).await;
    run.assert_executions("join", 0);
}

struct BatchJoin;

#[workflow]
impl BatchJoin {
    /// Part 1, Item 1 and Item 2 and Part 2 are in the log before the first of them is evaluated.
    #[step]
    async fn make(&self, _begin: &Begin) -> (Part, Item, Item, Part) {
        (Part(1), Item(1), Item(2), Part(2))
    }

    #[step]
    async fn join(&self, begin: &Begin, item: &Item) -> Saw {
        Saw(format!("{} with item {}", begin.0, item.0))
    }

    #[step]
    async fn pair(&self, part: &Part, item: &Item) -> Saw {
        Saw(format!("part {} item {}", part.0, item.0))
    }

    #[step]
    async fn end(&self, parts: FixedList<Part, 2>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

// S12, S15
#[tokio::test]
async fn the_trigger_is_bound_and_else_the_latest_up_to_it_even_when_later_ones_are_logged_already() {
    let run = Scenario::new(BatchJoin).start(Begin(9)).await;
    let (joined, paired): (Vec<_>, Vec<_>) = saw(&run).into_iter().partition(|line| line.starts_with('9'));
    assert_eq!(joined, ["9 with item 1", "9 with item 2"]);
    assert_eq!(paired, ["part 1 item 1", "part 1 item 2", "part 2 item 2"]);
}

struct Optional;

#[workflow]
impl Optional {
    #[step(reruns)]
    async fn take(&self, alpha: &Alpha, beta: Option<&Beta>) -> Saw {
        Saw(format!("A{} {:?}", alpha.0, beta.map(|beta| beta.0)))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S5
#[tokio::test]
async fn an_optional_event_that_comes_first_is_there_in_the_only_execution() {
    let run = Scenario::new(Optional).send(Beta(1)).send(Alpha(1)).start(Begin(0)).await;
    assert_eq!(saw(&run), ["A1 Some(1)"]);
}

// S5, S14
#[tokio::test]
async fn an_optional_event_that_comes_second_runs_the_step_again() {
    let run = Scenario::new(Optional).send(Alpha(1)).send(Beta(1)).start(Begin(0)).await;
    assert_eq!(saw(&run), ["A1 None", "A1 Some(1)"]);
}

// S5, S8
#[tokio::test]
async fn an_optional_event_that_never_comes_is_none() {
    let run = Scenario::new(Optional).send(Alpha(1)).send(Alpha(2)).start(Begin(0)).await;
    assert_eq!(saw(&run), ["A1 None", "A2 None"]);
}

struct OnlyOptional;

#[workflow]
impl OnlyOptional {
    #[step(reruns)]
    async fn take(&self, alpha: Option<Arc<Alpha>>, beta: Option<Beta>) -> Saw {
        Saw(format!("{:?} {:?}", alpha.map(|alpha| alpha.0), beta.map(|beta| beta.0)))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S9
#[tokio::test]
async fn a_step_with_only_optional_inputs_is_triggered_by_any_of_them() {
    let run = Scenario::new(OnlyOptional).send(Beta(1)).send(Alpha(2)).start(Begin(0)).await;
    assert_eq!(saw(&run), ["None Some(1)", "Some(2) Some(1)"]);
}

struct OptionalList;

#[workflow]
impl OptionalList {
    #[step(reruns)]
    async fn list(&self, alpha: &Alpha, betas: Option<&List<Beta>>) -> Saw {
        Saw(format!("A{} {:?}", alpha.0, betas.map(List::len)))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S5
#[tokio::test]
async fn an_optional_list_is_none_while_there_is_no_event_and_every_event_after() {
    let run = Scenario::new(OptionalList).send(Alpha(1)).send(Beta(1)).send(Beta(2)).start(Begin(0)).await;
    assert_eq!(saw(&run), ["A1 None", "A1 Some(1)", "A1 Some(2)"]);
}

struct OptionalPair;

#[workflow]
impl OptionalPair {
    #[step(reruns)]
    async fn fixed(&self, alpha: &Alpha, betas: Option<FixedList<Beta, 2>>) -> Saw {
        Saw(format!("A{} {:?}", alpha.0, betas.map(|betas| betas.to_array().map(|beta| beta.0))))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S5, S17, S20
#[tokio::test]
async fn an_optional_fixed_list_is_none_until_it_is_full_and_then_stays_the_same() {
    let scenario = Scenario::new(OptionalPair).send(Alpha(1)).send(Beta(1)).send(Beta(2)).send(Beta(3));
    let run = scenario.send(Alpha(2)).start(Begin(0)).await;
    assert_eq!(saw(&run), ["A1 None", "A1 Some([1, 2])", "A2 Some([1, 2])"]);
}

struct Pairs;

#[workflow]
impl Pairs {
    #[step]
    async fn pair(&self, alphas: FixedList<Alpha, 2>, beta: &Beta) -> Saw {
        Saw(format!("{:?} B{}", alphas.to_array().map(|alpha| alpha.0), beta.0))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S13, S17
#[tokio::test]
async fn a_fixed_list_fires_once_with_the_first_n_and_what_comes_after_is_counted_as_surplus() {
    let scenario = (1..=4).fold(Scenario::new(Pairs).send(Beta(1)), |scenario, n| scenario.send(Alpha(n)));
    let run = scenario.send(Close).start(Begin(0)).await;
    assert_eq!(saw(&run), ["[1, 2] B1"]);
    let pair = run.report().steps.iter().find(|row| &*row.step == "pair").unwrap();
    assert_eq!((pair.executions, pair.surplus), (1, 2));
    assert!(run.report().to_string().contains("(2 surplus events)"));
}

// S14, S17
#[tokio::test]
async fn another_input_fires_a_step_again_with_the_same_fixed_list() {
    let scenario = (1..=3).fold(Scenario::new(Pairs).send(Beta(1)), |scenario, n| scenario.send(Alpha(n)));
    let run = scenario.send(Beta(2)).start(Begin(0)).await;
    assert_eq!(saw(&run), ["[1, 2] B1", "[1, 2] B2"]);
}

struct Reading;

#[workflow]
impl Reading {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(precondition = complete)]
    async fn read(&self, _begin: &Begin, items: List<Item>) -> Done {
        assert_eq!((items.first(), items.last()), (Some(&Item(1)), Some(&Item(9))));
        assert_eq!((items.get(1), items.get(99)), (Some(&Item(2)), None));
        assert_eq!((items.iter().len(), (&items).into_iter().count()), (9, 9));
        assert!(!items.is_empty());
        Done(u32::try_from(items.clone().len()).unwrap())
    }

    #[precondition]
    fn complete(begin: &Begin, items: &List<Item>) -> bool {
        items.len() == begin.0 as usize
    }
}

// S16
#[tokio::test]
async fn a_list_is_read_like_a_slice() {
    assert_eq!(Reading.run(Begin(9)).await.unwrap(), Done(9));
}

#[derive(Default)]
struct Keeping(tokio::sync::Mutex<Vec<List<Alpha>>>);

#[workflow]
impl Keeping {
    #[step(reruns)]
    async fn keep(&self, alphas: List<Alpha>) {
        self.0.lock().await.push(alphas);
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> (Saw, Done) {
        let numbers = |list: &List<Alpha>| list.iter().map(|alpha| alpha.0).collect::<Vec<_>>();
        let kept: Vec<_> = self.0.lock().await.iter().map(numbers).collect();
        (Saw(format!("{kept:?}")), Done(0))
    }
}

// S12, S16
#[tokio::test]
async fn a_list_that_is_kept_stays_the_prefix_it_was() {
    let scenario = (1..=3).fold(Scenario::new(Keeping::default()), |scenario, n| scenario.send(Alpha(n)));
    assert_eq!(saw(&scenario.send(Close).start(Begin(0)).await), ["[[1], [1, 2], [1, 2, 3]]"]);
}

struct Costs {
    clones: Arc<AtomicUsize>,
}

#[workflow]
impl Costs {
    #[step]
    async fn make(&self, begin: &Begin) -> Counted {
        Counted::new(begin.0, &self.clones)
    }

    #[step]
    async fn borrow(&self, counted: &Counted) -> Item {
        Item(counted.number)
    }

    #[step(reruns)]
    async fn borrow_optionally(&self, counted: Option<&Counted>) {
        assert!(counted.is_some());
    }

    #[step(reruns)]
    async fn borrow_all(&self, counted: &List<Counted>) {
        assert_eq!(counted.first().map(|counted| counted.number), Some(1));
    }

    #[step]
    async fn share(&self, counted: Arc<Counted>) {
        assert_eq!(counted.number, 1);
    }

    #[step]
    async fn end(&self, item: &Item, counted: &Counted) -> Done {
        Done(item.0 + counted.number)
    }
}

// S5
#[tokio::test]
async fn references_lists_and_shared_events_are_never_cloned() {
    let clones = Arc::default();
    assert_eq!(Costs { clones: Arc::clone(&clones) }.run(Begin(1)).await.unwrap(), Done(2));
    assert_eq!(clones.load(Ordering::SeqCst), 0);
}

struct Owned {
    clones: Arc<AtomicUsize>,
}

#[workflow]
impl Owned {
    #[step]
    async fn make(&self, begin: &Begin) -> Counted {
        Counted::new(begin.0, &self.clones)
    }

    #[step]
    async fn take(&self, counted: Counted) -> Done {
        Done(counted.number)
    }
}

// S5
#[tokio::test]
async fn an_event_by_value_is_cloned_once_per_execution() {
    let clones = Arc::default();
    Owned { clones: Arc::clone(&clones) }.run(Begin(1)).await.unwrap();
    assert_eq!(clones.load(Ordering::SeqCst), 1);
}

struct OwnedOptionally {
    clones: Arc<AtomicUsize>,
}

#[workflow]
impl OwnedOptionally {
    #[step]
    async fn make(&self, begin: &Begin) -> Counted {
        Counted::new(begin.0, &self.clones)
    }

    #[step(reruns)]
    async fn take(&self, counted: Option<Counted>) -> Done {
        Done(counted.map_or(0, |counted| counted.number))
    }
}

// S5
#[tokio::test]
async fn an_optional_event_by_value_is_cloned_once_per_execution() {
    let clones = Arc::default();
    OwnedOptionally { clones: Arc::clone(&clones) }.run(Begin(1)).await.unwrap();
    assert_eq!(clones.load(Ordering::SeqCst), 1);
}

#[derive(Default)]
struct Pointers(std::sync::Mutex<Vec<usize>>);

impl Pointers {
    fn note(&self, item: &Item) {
        self.0.lock().unwrap().push(std::ptr::from_ref(item).addr());
    }
}

struct SamePlace(Arc<Pointers>);

#[workflow]
impl SamePlace {
    #[step]
    async fn make(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn share(&self, item: Arc<Item>) {
        self.0.note(&item);
    }

    #[step]
    async fn borrow(&self, item: &Item) {
        self.0.note(item);
    }

    #[step(reruns)]
    async fn list(&self, items: List<Item>) -> Part {
        self.0.note(items.first().unwrap());
        Part(0)
    }

    #[step]
    async fn end(&self, _part: &Part, item: Arc<Item>) -> Done {
        self.0.note(&item);
        Done(0)
    }
}

// S5
#[tokio::test]
async fn shared_borrowed_and_listed_events_are_the_very_one_in_the_log() {
    let pointers = Arc::<Pointers>::default();
    SamePlace(Arc::clone(&pointers)).run(Begin(1)).await.unwrap();
    let places = pointers.0.lock().unwrap();
    assert_eq!(places.len(), 4);
    assert!(places.iter().all(|place| *place == places[0]));
}

mod aliases {
    use std::sync::Arc;

    pub(super) use workflow_core::FixedList as FirstFew;
    use workflow_core::List;

    pub(super) use crate::fixtures::Alpha as Renamed;
    use crate::fixtures::{Beta, Item};

    pub(super) type Maybe<T> = Option<T>;
    pub(super) type TheItem<'a> = &'a Item;
    pub(super) type Items = List<Item>;
    pub(super) type Two<E> = FirstFew<E, 2>;
    pub(super) type Shared<E> = Arc<E>;
    pub(super) type MaybeBeta<'a> = Maybe<&'a Beta>;
}

struct Aliased;

#[workflow]
impl Aliased {
    #[step]
    async fn make(&self, begin: &Begin) -> std::vec::Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(reruns)]
    async fn read(
        &self,
        item: aliases::TheItem<'_>,
        items: aliases::Items,
        beta: aliases::MaybeBeta<'_>,
        renamed: aliases::Maybe<aliases::Shared<aliases::Renamed>>,
    ) -> Saw {
        Saw(format!("{} {} {} {}", item.0, items.len(), beta.is_none(), renamed.is_none()))
    }

    #[step]
    async fn end(&self, items: &aliases::Two<Item>) -> core::result::Result<Done, StepError> {
        Ok(Done(items.to_array().iter().map(|item| item.0).sum()))
    }
}

// S5
#[tokio::test]
async fn inputs_may_hide_behind_aliases_and_renamed_imports() {
    let run = Scenario::new(Aliased).start(Begin(2)).await;
    run.assert_output(&Done(1));
    assert_eq!(saw(&run), ["0 1 true true", "1 2 true true"]);
}

struct Traced;

#[workflow]
impl Traced {
    #[step]
    async fn make(&self, begin: &Begin) -> (Item, Item) {
        (Item(begin.0), Item(begin.0 + 1))
    }

    #[step(reruns)]
    async fn look(
        &self,
        begin: &Begin,
        items: &List<Item>,
        part: Option<&Part>,
        info: &RunInfo,
    ) -> Option<Done> {
        assert!(part.is_none() && info.step() == "look");
        (items.len() == 2).then_some(Done(begin.0))
    }

    #[step]
    async fn never(&self, _close: &Close) -> Part {
        Part(0)
    }
}

// S15, S34
#[tokio::test]
async fn the_report_tells_what_each_execution_was_bound_to() {
    let run = Scenario::new(Traced).start(Begin(1)).await;
    let report = run.report();
    let bound: Vec<&[BoundInput]> =
        report.trace.iter().filter(|trace| &*trace.step == "look").map(|trace| &*trace.inputs).collect();
    let begin = BoundInput::One(report.log[0].seq);
    let of = |length| [begin, BoundInput::List(length), BoundInput::Nothing, BoundInput::Nothing];
    assert_eq!(bound, [of(1), of(2)]);
}

struct OnlyOnce;

#[workflow]
impl OnlyOnce {
    #[step]
    async fn both(&self, alpha: &Alpha, same: Arc<Alpha>, copy: Alpha) -> Saw {
        Saw(format!("{} {} {}", alpha.0, same.0, copy.0))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S11, S20
#[tokio::test]
async fn an_event_that_fills_several_parameters_runs_its_step_once() {
    let run = Scenario::new(OnlyOnce).send(Alpha(1)).send(Alpha(2)).start(Begin(0)).await;
    assert_eq!(saw(&run), ["1 1 1", "2 2 2"]);
}
