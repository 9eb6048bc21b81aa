//! Gathers beside other inputs, several gathers of a fan-out, and several fan-outs of a gather (S14, S48).

use workflow_core::RunStatus;
use workflow_core::prelude::*;

use super::Gates;
use crate::fixtures::{
    Alpha, Begin, Beta, Close, Done, Item, Part, Seen, everyone_else, report_of, report_when_settled, started,
};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Chapter(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Piece(u32);

fn sum(parts: &Gather<Part>) -> u32 {
    parts.ok().map(|part| part.0).sum()
}

struct Beside(Seen);

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
    async fn required(&self, begin: &Begin, parts: &Gather<Part>, alpha: &Alpha) {
        self.0.note(format!("required {} {} {}", begin.0, sum(parts), alpha.0));
    }

    #[step(reruns)]
    async fn optional(&self, parts: &Gather<Part>, beta: Option<&Beta>) {
        self.0.note(format!("optional {} {:?}", sum(parts), beta.map(|beta| beta.0)));
    }

    #[step(reruns)]
    async fn listed(&self, parts: Gather<Part>, alphas: List<Alpha>) {
        self.0.note(format!("listed {} {}", sum(&parts), alphas.len()));
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S14, S48
#[tokio::test]
async fn a_gather_joins_with_other_inputs_like_any_event() {
    let seen = Seen::default();
    let run = started(Beside(seen.clone()), 3).await;
    assert_eq!(run.settled().await, RunStatus::Waiting);
    assert_eq!(seen.lines(), ["optional 6 None"]);
    run.send(Alpha(1)).await.unwrap();
    run.send(Beta(2)).await.unwrap();
    run.send(Alpha(3)).await.unwrap();
    let report = report_when_settled(&run).await;
    let expected = ["required 3 6 1", "listed 6 1", "optional 6 Some(2)", "required 3 6 3", "listed 6 2"];
    assert_eq!(seen.lines()[1..], expected);
    assert_eq!(report.branches.len(), 3);
}

/// One fan-out, gathered by what the branches made first and by what they made of that.
struct TwoGathers(Seen);

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
    async fn parts(&self, parts: &Gather<Part>) {
        self.0.note(format!("{:?}", parts.ok().map(|part| part.0).collect::<Vec<_>>()));
    }

    #[step]
    async fn pieces(&self, pieces: &Gather<Piece>) {
        self.0.note(format!("{:?}", pieces.ok().map(|piece| piece.0).collect::<Vec<_>>()));
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
    let seen = Seen::default();
    let run = started(TwoGathers(seen.clone()), 3).await;
    assert_eq!(run.outcome().await.unwrap(), Done(5));
    assert_eq!(seen.lines(), ["[1, 2, 3]", "[20, 30]"]);
    let report = run.report().await.unwrap();
    let executions = ["parts", "pieces", "end"].map(|step| report.executions(step));
    assert_eq!(executions, [1, 1, 1]);
}

/// One step with two fan-outs.
struct TwoFanOuts(Gates);

#[workflow]
impl TwoFanOuts {
    #[step]
    async fn split(&self, begin: &Begin) -> (FanOut<Item>, FanOut<Chapter>) {
        ((0..begin.0).map(Item).collect(), (0..2 * begin.0).map(Chapter).collect())
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        self.0.pass(0).await;
        Part(item.0)
    }

    #[step]
    async fn write(&self, chapter: &Chapter) -> Piece {
        self.0.pass(1).await;
        Piece(chapter.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>, pieces: &Gather<Piece>) -> Done {
        Done(10 * u32::try_from(parts.len()).unwrap() + u32::try_from(pieces.len()).unwrap())
    }
}

// S44, S48
#[tokio::test]
async fn two_fan_outs_of_one_step_are_gathered_each_by_itself() {
    for order in [[0, 1], [1, 0]] {
        let gates = Gates::closed(2);
        let run = started(TwoFanOuts(gates.clone()), 3).await;
        for place in order {
            everyone_else().await;
            assert_eq!(run.status(), RunStatus::Running);
            gates.open(place);
        }
        assert_eq!(run.outcome().await.unwrap(), Done(36));
        assert_eq!(run.report().await.unwrap().executions("end"), 1);
    }
}

/// Two fan-outs whose branches make the same.
struct SameProduct {
    gates: Gates,
    seen: Seen,
}

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
        self.gates.pass(0).await;
        Part(item.0)
    }

    #[step]
    async fn write(&self, chapter: &Chapter) -> Part {
        self.gates.pass(1).await;
        Part(10 + chapter.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Piece {
        let branches = parts.branches().map(|branch| {
            let item = branch.item::<Item>().map(|item| item.0);
            let chapter = branch.item::<Chapter>().map(|chapter| 10 + chapter.0);
            assert_eq!(item.or(chapter), branch.event().map(|part| part.0));
            branch.any_item().name()
        });
        self.seen.note(branches.collect::<Vec<_>>().join(" "));
        Piece(0)
    }

    #[step]
    async fn end(&self, _pieces: &FixedList<Piece, 2>) -> Done {
        Done(0)
    }
}

// S48
#[tokio::test]
async fn a_gather_takes_every_fan_out_that_fits_one_after_the_other() {
    let all = ["Item Item", "Chapter Chapter Chapter"];
    for order in [[0, 1], [1, 0]] {
        let (gates, seen) = (Gates::closed(2), Seen::default());
        let run = started(SameProduct { gates: gates.clone(), seen: seen.clone() }, 2).await;
        for place in order {
            gates.open(place);
            everyone_else().await;
        }
        assert_eq!(run.outcome().await.unwrap(), Done(0));
        assert_eq!(seen.lines(), order.map(|place| all[place]));
    }
}

/// Two steps that take the same gather.
struct TwoTakers(Seen);

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
    async fn first(&self, parts: &Gather<Part>) {
        self.0.note(format!("first {}", sum(parts)));
    }

    #[step(precondition = many)]
    async fn second(&self, parts: &Gather<Part>) {
        self.0.note(format!("second {}", sum(parts)));
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
        let seen = Seen::default();
        let report = report_of(TwoTakers(seen.clone()), items).await;
        assert_eq!((report.status, report.executions("end")), (RunStatus::Completed, 1));
        assert_eq!(seen.lines(), expected);
    }
}
