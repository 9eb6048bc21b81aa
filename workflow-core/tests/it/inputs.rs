//! Event inputs: when they are there, what they are bound to, and what they cost (S5, S8, S12–S17).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use workflow_core::BoundInput;
use workflow_core::prelude::*;

use crate::fixtures::{
    Alpha, Begin, Beta, Close, Counted, Done, Item, Part, Seen, log_of, report_of, report_when_settled,
    started,
};

fn numbers(items: &List<Item>) -> String {
    items.iter().map(|item| item.0.to_string()).collect::<Vec<_>>().join(" ")
}

struct ThreeAtOnce(Seen);

#[workflow]
impl ThreeAtOnce {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(reruns)]
    async fn collect(&self, items: &List<Item>) -> Option<Done> {
        self.0.note(numbers(items));
        (items.len() == 3).then_some(Done(3))
    }
}

// S12
#[tokio::test]
async fn three_events_logged_at_once_give_lists_of_one_two_and_three() {
    let seen = Seen::default();
    let report = report_of(ThreeAtOnce(seen.clone()), 3).await;
    assert_eq!(log_of(&report), ["Begin", "Item", "Item", "Item", "Done"]);
    assert_eq!(seen.lines(), ["1", "1 2", "1 2 3"]);
}

struct Join(Seen);

#[workflow]
impl Join {
    #[step]
    async fn join(&self, alpha: &Alpha, beta: &Beta) {
        self.0.note(format!("A{} B{}", alpha.0, beta.0));
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S15
#[tokio::test]
async fn a_join_pairs_every_arrival_with_the_latest_of_the_other_type() {
    let seen = Seen::default();
    let run = started(Join(seen.clone()), 0).await;
    run.send(Alpha(1)).await.unwrap();
    run.send(Beta(1)).await.unwrap();
    run.send(Alpha(2)).await.unwrap();
    run.send(Beta(2)).await.unwrap();
    let report = report_when_settled(&run).await;
    assert_eq!(seen.lines(), ["A1 B1", "A2 B1", "A2 B2"]);
    assert_eq!(report.executions("join"), 3);
}

// S13
#[tokio::test]
async fn a_step_is_not_run_before_every_required_input_is_there() {
    let run = started(Join(Seen::default()), 0).await;
    run.send(Alpha(1)).await.unwrap();
    run.send(Alpha(2)).await.unwrap();
    let report = report_when_settled(&run).await;
    assert_eq!(report.executions("join"), 0);
}

struct BatchJoin(Seen);

#[workflow]
impl BatchJoin {
    /// Part 1, Item 1 and Item 2 and Part 2 are in the log before the first of them is evaluated.
    #[step]
    async fn make(&self, begin: &Begin) -> (Part, Item, Item, Part) {
        let Begin(_) = begin;
        (Part(1), Item(1), Item(2), Part(2))
    }

    #[step]
    async fn join(&self, begin: &Begin, item: &Item) {
        self.0.note(format!("{} with item {}", begin.0, item.0));
    }

    #[step]
    async fn pair(&self, part: &Part, item: &Item) {
        self.0.note(format!("part {} item {}", part.0, item.0));
    }

    #[step]
    async fn end(&self, parts: FixedList<Part, 2>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

// S15
#[tokio::test]
async fn the_trigger_is_bound_even_when_a_later_event_of_its_type_is_logged_already() {
    let seen = Seen::default();
    report_of(BatchJoin(seen.clone()), 9).await;
    let joined: Vec<String> = seen.lines().into_iter().filter(|line| line.starts_with('9')).collect();
    assert_eq!(joined, ["9 with item 1", "9 with item 2"]);
}

// S12
#[tokio::test]
async fn the_latest_of_a_type_is_the_latest_up_to_the_trigger() {
    let seen = Seen::default();
    report_of(BatchJoin(seen.clone()), 9).await;
    let paired: Vec<String> = seen.lines().into_iter().filter(|line| line.starts_with("part")).collect();
    assert_eq!(paired, ["part 1 item 1", "part 1 item 2", "part 2 item 2"]);
}

struct Optional(Seen);

#[workflow]
impl Optional {
    #[step(reruns)]
    async fn take(&self, alpha: &Alpha, beta: Option<&Beta>) {
        let beta = beta.map_or_else(|| "none".to_owned(), |beta| beta.0.to_string());
        self.0.note(format!("A{} B:{beta}", alpha.0));
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S5
#[tokio::test]
async fn an_optional_event_that_comes_first_is_there_in_the_only_execution() {
    let seen = Seen::default();
    let run = started(Optional(seen.clone()), 0).await;
    run.send(Beta(1)).await.unwrap();
    run.send(Alpha(1)).await.unwrap();
    report_when_settled(&run).await;
    assert_eq!(seen.lines(), ["A1 B:1"]);
}

// S5, S14
#[tokio::test]
async fn an_optional_event_that_comes_second_runs_the_step_again() {
    let seen = Seen::default();
    let run = started(Optional(seen.clone()), 0).await;
    run.send(Alpha(1)).await.unwrap();
    run.send(Beta(1)).await.unwrap();
    report_when_settled(&run).await;
    assert_eq!(seen.lines(), ["A1 B:none", "A1 B:1"]);
}

// S5, S8
#[tokio::test]
async fn an_optional_event_that_never_comes_is_none() {
    let seen = Seen::default();
    let run = started(Optional(seen.clone()), 0).await;
    run.send(Alpha(1)).await.unwrap();
    run.send(Alpha(2)).await.unwrap();
    report_when_settled(&run).await;
    assert_eq!(seen.lines(), ["A1 B:none", "A2 B:none"]);
}

struct OnlyOptional(Seen);

#[workflow]
impl OnlyOptional {
    #[step(reruns)]
    async fn take(&self, alpha: Option<Arc<Alpha>>, beta: Option<Beta>) {
        self.0.note(format!("{:?} {:?}", alpha.map(|alpha| alpha.0), beta.map(|beta| beta.0)));
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S9
#[tokio::test]
async fn a_step_with_only_optional_inputs_is_triggered_by_any_of_them() {
    let seen = Seen::default();
    let run = started(OnlyOptional(seen.clone()), 0).await;
    run.send(Beta(1)).await.unwrap();
    run.send(Alpha(2)).await.unwrap();
    report_when_settled(&run).await;
    assert_eq!(seen.lines(), ["None Some(1)", "Some(2) Some(1)"]);
}

struct OptionalLists(Seen);

#[workflow]
impl OptionalLists {
    #[step(reruns)]
    async fn list(&self, alpha: &Alpha, betas: Option<&List<Beta>>) {
        self.0.note(format!("A{} list {:?}", alpha.0, betas.map(List::len)));
    }

    #[step(reruns)]
    async fn fixed(&self, alpha: &Alpha, betas: Option<FixedList<Beta, 2>>) {
        let betas = betas.map(|betas| betas.to_array().map(|beta| beta.0));
        self.0.note(format!("A{} fixed {betas:?}", alpha.0));
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S5
#[tokio::test]
async fn an_optional_list_is_none_while_there_is_no_event_and_every_event_after() {
    let seen = Seen::default();
    let run = started(OptionalLists(seen.clone()), 0).await;
    run.send(Alpha(1)).await.unwrap();
    run.send(Beta(1)).await.unwrap();
    run.send(Beta(2)).await.unwrap();
    report_when_settled(&run).await;
    let lists: Vec<String> = seen.lines().into_iter().filter(|line| line.contains("list")).collect();
    assert_eq!(lists, ["A1 list None", "A1 list Some(1)", "A1 list Some(2)"]);
}

// S5, S17, S20
#[tokio::test]
async fn an_optional_fixed_list_is_none_until_it_is_full_and_then_stays_the_same() {
    let seen = Seen::default();
    let run = started(OptionalLists(seen.clone()), 0).await;
    run.send(Alpha(1)).await.unwrap();
    for number in 1..=3 {
        run.send(Beta(number)).await.unwrap();
    }
    run.send(Alpha(2)).await.unwrap();
    report_when_settled(&run).await;
    let fixed: Vec<String> = seen.lines().into_iter().filter(|line| line.contains("fixed")).collect();
    assert_eq!(fixed, ["A1 fixed None", "A1 fixed Some([1, 2])", "A2 fixed Some([1, 2])"]);
}

struct Pairs(Seen);

#[workflow]
impl Pairs {
    #[step]
    async fn pair(&self, alphas: FixedList<Alpha, 2>, beta: &Beta) {
        let numbers: Vec<u32> = alphas.iter().map(|alpha| alpha.0).collect();
        self.0.note(format!("{numbers:?} B{}", beta.0));
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S13, S17
#[tokio::test]
async fn a_fixed_list_fires_once_with_the_first_n() {
    let seen = Seen::default();
    let run = started(Pairs(seen.clone()), 0).await;
    run.send(Beta(1)).await.unwrap();
    for number in 1..=4 {
        run.send(Alpha(number)).await.unwrap();
    }
    report_when_settled(&run).await;
    assert_eq!(seen.lines(), ["[1, 2] B1"]);
}

// S17
#[tokio::test]
async fn what_comes_after_a_full_fixed_list_is_counted_as_surplus() {
    let run = started(Pairs(Seen::default()), 0).await;
    run.send(Beta(1)).await.unwrap();
    for number in 1..=4 {
        run.send(Alpha(number)).await.unwrap();
    }
    let report = report_when_settled(&run).await;
    let pair = report.steps.iter().find(|row| &*row.step == "pair").unwrap();
    assert_eq!((pair.executions, pair.surplus), (1, 2));
    assert!(report.to_string().contains("(2 surplus events)"));
}

// S14, S17
#[tokio::test]
async fn another_input_fires_a_step_again_with_the_same_fixed_list() {
    let seen = Seen::default();
    let run = started(Pairs(seen.clone()), 0).await;
    run.send(Beta(1)).await.unwrap();
    for number in 1..=3 {
        run.send(Alpha(number)).await.unwrap();
    }
    run.send(Beta(2)).await.unwrap();
    report_when_settled(&run).await;
    assert_eq!(seen.lines(), ["[1, 2] B1", "[1, 2] B2"]);
}

struct Reading(Seen);

#[workflow]
impl Reading {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(precondition = complete)]
    async fn read(&self, begin: &Begin, items: List<Item>) -> Done {
        let Begin(_) = begin;
        self.0.note(format!("{:?} {:?}", items.first(), items.last()));
        self.0.note(format!("{:?} {:?}", items.get(1), items.get(99)));
        self.0.note(format!("{}", items.iter().len()));
        self.0.note(format!("{}", (&items).into_iter().count()));
        self.0.note(format!("{}", items.is_empty()));
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
    let seen = Seen::default();
    assert_eq!(Reading(seen.clone()).run(Begin(9)).await.unwrap(), Done(9));
    assert_eq!(seen.lines(), ["Some(Item(1)) Some(Item(9))", "Some(Item(2)) None", "9", "9", "false"]);
}

struct Keeping(tokio::sync::Mutex<Vec<List<Alpha>>>, Seen);

#[workflow]
impl Keeping {
    #[step(reruns)]
    async fn keep(&self, alphas: List<Alpha>) {
        self.0.lock().await.push(alphas);
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        for list in &*self.0.lock().await {
            let numbers: Vec<u32> = list.iter().map(|alpha| alpha.0).collect();
            self.1.note(format!("{numbers:?}"));
        }
        Done(0)
    }
}

// S12, S16
#[tokio::test]
async fn a_list_that_is_kept_stays_the_prefix_it_was() {
    let seen = Seen::default();
    let run = started(Keeping(tokio::sync::Mutex::default(), seen.clone()), 0).await;
    for number in 1..=3 {
        run.send(Alpha(number)).await.unwrap();
    }
    run.send(Close).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(seen.lines(), ["[1]", "[1, 2]", "[1, 2, 3]"]);
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

struct Aliased(Seen);

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
    ) {
        self.0.note(format!("{} {} {} {}", item.0, items.len(), beta.is_none(), renamed.is_none()));
    }

    #[step]
    async fn end(&self, items: &aliases::Two<Item>) -> core::result::Result<Done, StepError> {
        Ok(Done(items.to_array().iter().map(|item| item.0).sum()))
    }
}

// S5
#[tokio::test]
async fn inputs_may_hide_behind_aliases_and_renamed_imports() {
    let seen = Seen::default();
    assert_eq!(Aliased(seen.clone()).run(Begin(2)).await.unwrap(), Done(1));
    assert_eq!(seen.lines(), ["0 1 true true", "1 2 true true"]);
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
    let report = report_of(Traced, 1).await;
    let bound: Vec<&[BoundInput]> =
        report.trace.iter().filter(|trace| &*trace.step == "look").map(|trace| &*trace.inputs).collect();
    let begin = BoundInput::One(report.log[0].seq);
    let of = |length| [begin, BoundInput::List(length), BoundInput::Nothing, BoundInput::Nothing];
    assert_eq!(bound, [of(1), of(2)]);
}

struct OnlyOnce(Seen);

#[workflow]
impl OnlyOnce {
    #[step]
    async fn both(&self, alpha: &Alpha, same: Arc<Alpha>, copy: Alpha) {
        self.0.note(format!("{} {} {}", alpha.0, same.0, copy.0));
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S11, S20
#[tokio::test]
async fn an_event_that_fills_several_parameters_runs_its_step_once() {
    let seen = Seen::default();
    let run = started(OnlyOnce(seen.clone()), 0).await;
    run.send(Alpha(1)).await.unwrap();
    run.send(Alpha(2)).await.unwrap();
    report_when_settled(&run).await;
    assert_eq!(seen.lines(), ["1 1 1", "2 2 2"]);
}
