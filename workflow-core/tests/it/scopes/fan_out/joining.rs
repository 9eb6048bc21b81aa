//! Gathers beside other inputs, several gathers of a fan-out, and several fan-outs of a gather (S48).

use workflow_core::prelude::*;
use workflow_testkit::{Scenario, explore};

use super::{Noted, noted, noted_sorted};
use crate::fixtures::{Alpha, Begin, Beta, Close, Done, Item, Part};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Chapter(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Piece(u32);

fn sum(parts: &Gather<Part>) -> u32 {
    parts.ok().map(|part| part.0).sum()
}

struct Beside;

#[workflow]
impl Beside {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn required(&self, begin: &Begin, parts: &Gather<Part>, alpha: &Alpha) -> Noted {
        Noted(format!("required {} {} {}", begin.0, sum(parts), alpha.0))
    }

    #[step(reruns)]
    async fn optional(&self, parts: &Gather<Part>, beta: Option<&Beta>) -> Noted {
        Noted(format!("optional {} {:?}", sum(parts), beta.map(|beta| beta.0)))
    }

    #[step(reruns)]
    async fn listed(&self, parts: Gather<Part>, alphas: List<Alpha>) -> Noted {
        Noted(format!("listed {} {}", sum(&parts), alphas.len()))
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S48
#[tokio::test]
async fn a_gather_joins_with_the_last_of_the_other_inputs_once() {
    let beside = Scenario::new(Beside).send(Alpha(1)).send(Beta(2)).send(Alpha(3)).send(Close);
    let run = beside.start(Begin(3)).await;
    let [first, rest @ ..] = &noted(&run)[..] else { panic!("nothing is noted") };
    assert_eq!(first, "optional 6 None");
    assert_eq!(rest, ["required 3 6 1", "listed 6 1"]);
    assert_eq!(run.report().branches.len(), 3);
}

/// One fan-out, gathered by the branches' first results and by the results of those.
struct TwoGathers;

#[workflow]
impl TwoGathers {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn polish(&self, part: &Part) -> Option<Piece> {
        (part.0 > 1).then_some(Piece(10 * part.0))
    }

    #[step]
    async fn parts(&self, parts: &Gather<Part>) -> Noted {
        Noted(format!("{:?}", parts.ok().map(|part| part.0).collect::<Vec<_>>()))
    }

    #[step]
    async fn pieces(&self, pieces: &Gather<Piece>) -> Noted {
        Noted(format!("{:?}", pieces.ok().map(|piece| piece.0).collect::<Vec<_>>()))
    }

    #[step]
    async fn end(&self, parts: Gather<Part>, pieces: Gather<Piece>) -> Done {
        assert_eq!((parts.len(), pieces.len()), (3, 3));
        Done(u32::try_from(parts.ok().count() + pieces.ok().count()).unwrap())
    }
}

// S48
#[tokio::test]
async fn two_gathers_of_different_types_take_the_same_fan_out_once_each() {
    let run = Scenario::new(TwoGathers).start(Begin(3)).await;
    run.assert_output(&Done(5));
    assert_eq!(noted(&run), ["[1, 2, 3]", "[20, 30]"]);
    assert_eq!(["parts", "pieces", "end"].map(|step| run.executions(step)), [1, 1, 1]);
}

/// One step with two fan-outs.
struct TwoFanOuts;

#[workflow]
impl TwoFanOuts {
    #[step]
    async fn split(&self, begin: &Begin) -> (FanOut<Item>, FanOut<Chapter>) {
        ((0..begin.0).map(Item).collect(), (0..2 * begin.0).map(Chapter).collect())
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn write(&self, chapter: &Chapter) -> Piece {
        Piece(chapter.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>, pieces: &Gather<Piece>) -> Done {
        Done(10 * u32::try_from(parts.len()).unwrap() + u32::try_from(pieces.len()).unwrap())
    }
}

// S44, S48
#[test]
fn two_fan_outs_of_one_step_are_gathered_each_by_itself() {
    explore(|| Scenario::new(TwoFanOuts).start(Begin(3))).every_order().orders(100).assert(|run| {
        run.assert_output(&Done(36));
        run.assert_executions("end", 1);
    });
}

/// Two fan-outs whose branches make the same.
struct SameProduct;

#[workflow]
impl SameProduct {
    #[step]
    async fn items(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn chapters(&self, begin: &Begin) -> FanOut<Chapter> {
        (0..=begin.0).map(Chapter).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn write(&self, chapter: &Chapter) -> Part {
        Part(10 + chapter.0)
    }

    #[step]
    async fn join(&self, items: &Gather<Part, Item>, chapters: Gather<Part, Chapter>) -> Done {
        let of_items = items.branches().map(|branch| branch.item::<Item>().unwrap().0);
        assert!(of_items.eq(items.ok().map(|part| part.0)));
        let of_chapters = chapters.branches().map(|branch| 10 + branch.item::<Chapter>().unwrap().0);
        assert!(of_chapters.eq(chapters.ok().map(|part| part.0)));
        Done(u32::try_from(10 * items.len() + chapters.len()).unwrap())
    }
}

// S48
#[test]
fn a_gather_that_names_the_item_takes_its_fan_out_alone() {
    let explored = explore(|| Scenario::new(SameProduct).start(Begin(1))).assert(|run| {
        run.assert_output(&Done(12));
        run.assert_executions("join", 1);
    });
    assert!(explored.is_exhaustive() && explored.tried() > 1);
}

/// Two fan-outs with items of one type.
struct SameItem;

#[workflow]
impl SameItem {
    #[step]
    async fn few(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn many(&self, begin: &Begin) -> FanOut<Item> {
        (0..=begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> (Noted, Piece) {
        (Noted(parts.len().to_string()), Piece(0))
    }

    #[step]
    async fn end(&self, _pieces: &FixedList<Piece, 2>) -> Done {
        Done(0)
    }
}

// S48
#[test]
fn a_gather_takes_every_fan_out_of_its_item_one_after_the_other() {
    let explored = explore(|| Scenario::new(SameItem).start(Begin(1))).assert(|run| {
        run.assert_output(&Done(0));
        assert_eq!(noted_sorted(run), ["1", "2"]);
    });
    assert!(explored.is_exhaustive() && explored.tried() > 1);
}

/// Two steps that take the same gather.
struct TwoTakers;

#[workflow]
impl TwoTakers {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn first(&self, parts: &Gather<Part>) -> Noted {
        Noted(format!("first {}", sum(parts)))
    }

    #[step(precondition = many)]
    async fn second(&self, parts: &Gather<Part>) -> Noted {
        Noted(format!("second {}", sum(parts)))
    }

    #[precondition]
    fn many(parts: &Gather<Part>) -> bool {
        parts.len() > 1
    }

    #[step]
    async fn end(&self, parts: Gather<Part>, _begin: Begin) -> Done {
        Done(sum(&parts))
    }
}

// S18, S48
#[tokio::test]
async fn every_step_that_takes_a_gather_is_asked_once() {
    for (items, expected) in [(3, vec!["first 6", "second 6"]), (1, vec!["first 1"])] {
        let run = Scenario::new(TwoTakers).start(Begin(items)).await;
        assert!(run.outcome().is_ok());
        run.assert_executions("end", 1);
        assert_eq!(noted(&run), expected);
    }
}

/// A fan-out whose gather waits for an alpha that suits.
struct Again;

#[workflow]
impl Again {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    /// Refuses odd numbers, so that their gathers are taken later, or never.
    #[step(reruns, precondition = is_even)]
    async fn join(&self, parts: &Gather<Part>, alpha: &Alpha) -> Noted {
        Noted(format!("{} {}", sum(parts), alpha.0))
    }

    #[precondition]
    fn is_even(alpha: &Alpha) -> bool {
        alpha.0.is_multiple_of(2)
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S18, S48
#[tokio::test]
async fn a_gather_that_a_precondition_refused_is_not_taken() {
    let again = Scenario::new(Again).send(Alpha(1)).send(Alpha(2)).send(Alpha(4)).send(Close);
    let run = again.start(Begin(2)).await;
    assert_eq!(noted(&run), ["3 2"], "4 finds it taken");
}
