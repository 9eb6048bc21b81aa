//! Limits per scope: `max_executions`, fixed lists, lists and idempotency; and the stop, which ends the whole run (S17,
//! S19, S28, S45, S46).

use std::time::Duration;

use tokio::time::sleep;
use workflow_core::prelude::*;
use workflow_core::report::ExecutionOutcome;
use workflow_testkit::Scenario;

use super::{Noted, Told, noted, told};
use crate::fixtures::{Alive, Alpha, Begin, Done, Item, Part, outcomes_of};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Piece(u32);

/// Each branch makes five parts; a step takes two.
struct AtMostTwo;

#[workflow]
impl AtMostTwo {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn make(&self, item: &Item) -> Vec<Part> {
        (0..5).map(|part| Part(10 * item.0 + part)).collect()
    }

    #[step(max_executions = 2)]
    async fn take(&self, part: &Part) -> Piece {
        Piece(part.0)
    }

    #[step]
    async fn end(&self, pieces: &Gather<Piece>) -> Told {
        told(pieces.ok().map(|piece| piece.0.to_string()))
    }
}

// S19, S46
#[tokio::test]
async fn max_executions_counts_per_branch_and_the_report_adds_up() {
    let run = Scenario::new(AtMostTwo).start(Begin(3)).await;
    run.assert_executions("take", 6);
    run.assert_output(&told(["0", "1", "10", "11", "20", "21"]));
}

/// Each branch makes as many parts as its item says; the list takes two.
struct Pairs;

#[workflow]
impl Pairs {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn make(&self, item: &Item) -> Vec<Part> {
        (0..item.0).map(|part| Part(10 * item.0 + part)).collect()
    }

    #[step]
    async fn pair(&self, item: &Item, parts: &FixedList<Part, 2>) -> (Piece, Noted) {
        (Piece(item.0), Noted(format!("{} {:?}", item.0, parts.to_array().map(|part| part.0))))
    }

    #[step]
    async fn end(&self, pieces: &Gather<Piece>) -> Done {
        Done(u32::try_from(pieces.ok().count()).unwrap())
    }
}

// S17, S46
#[tokio::test]
async fn a_fixed_list_counts_per_branch_and_the_report_adds_the_surplus_up() {
    let run = Scenario::new(Pairs).start(Begin(5)).await;
    assert_eq!(noted(&run), ["2 [20, 21]", "3 [30, 31]", "4 [40, 41]"]);
    run.assert_executions("pair", 3);
    let pair = run.report().steps.iter().find(|step| &*step.step == "pair").unwrap();
    // One too many in the branch of 3, two in that of 4.
    assert_eq!(pair.surplus, 3);
}

/// Notes come from outside and are made in branches as well.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(String);

struct Noting;

#[workflow]
impl Noting {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn early(&self, item: &Item) -> Note {
        sleep(Duration::from_secs([2, 4][item.0 as usize])).await;
        Note(["a", "A"][item.0 as usize].into())
    }

    #[step]
    async fn late(&self, item: &Item) -> (Note, Part) {
        sleep(Duration::from_secs([6, 8][item.0 as usize])).await;
        (Note(["b", "B"][item.0 as usize].into()), Part(item.0))
    }

    #[step(reruns)]
    async fn collect(&self, item: &Item, _part: &Part, notes: &List<Note>) -> Noted {
        let all: Vec<&str> = notes.iter().map(|note| note.0.as_str()).collect();
        let (first, last) = (notes.first().unwrap(), notes.last().unwrap());
        assert_eq!((first.0.as_str(), last.0.as_str(), notes.len()), (all[0], all[all.len() - 1], all.len()));
        assert!((0..all.len()).all(|at| notes.get(at).unwrap().0 == all[at]));
        Noted(format!("{} {}", item.0, all.join(" ")))
    }

    #[step]
    async fn three(&self, item: &Item, notes: &FixedList<Note, 3>) -> Noted {
        Noted(format!("three {} {}", item.0, notes.to_array().map(|note| note.0.as_str()).join(" ")))
    }

    #[step]
    async fn end(&self, _parts: &Gather<Part>) -> Done {
        Done(0)
    }
}

async fn note_all() -> Vec<String> {
    let noting =
        [(1, "1"), (3, "2"), (5, "3")].into_iter().fold(Scenario::new(Noting), |noting, (at, note)| {
            noting.send_after(Duration::from_secs(at), Note(note.into()))
        });
    let run = noting.start(Begin(2)).await;
    run.assert_output(&Done(0));
    noted(&run)
}

// S45
#[tokio::test]
async fn a_list_in_a_branch_merges_its_own_and_outer_events_in_the_logs_order() {
    let lines: Vec<String> = note_all().await.into_iter().filter(|line| !line.starts_with("three")).collect();
    assert_eq!(lines, ["0 1 a 2 3 b", "1 1 2 A 3 B"]);
}

// S17, S45, S46
#[tokio::test]
async fn a_fixed_list_in_a_branch_is_filled_by_the_first_it_sees_of_all_its_scopes() {
    let lines: Vec<String> = note_all().await.into_iter().filter(|line| line.starts_with("three")).collect();
    assert_eq!(lines, ["three 0 1 a 2", "three 1 1 2 A"]);
}

/// A step that is ready in every branch with the same outer events and its own item.
struct Once;

#[workflow]
impl Once {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn hold(&self, item: &Item) -> Part {
        sleep(Duration::from_secs(2)).await;
        Part(item.0)
    }

    #[step(reruns)]
    async fn first_alpha(&self, item: Option<&Item>, alphas: &FixedList<Alpha, 1>) -> Noted {
        Noted(format!("{:?} {}", item.map(|item| item.0), alphas.to_array()[0].0))
    }

    #[step]
    async fn end(&self, _parts: &Gather<Part>) -> Done {
        Done(0)
    }
}

// S17, S20, S46
#[tokio::test]
async fn a_combination_executes_once_in_each_scope_that_has_something_of_its_own() {
    let later = Duration::from_secs(1);
    let once = Scenario::new(Once).send_after(later, Alpha(1)).send_after(later, Alpha(2));
    let run = once.send_after(later, Alpha(3)).start(Begin(2)).await;
    run.assert_output(&Done(0));
    assert_eq!(noted(&run), ["None 1", "Some(0) 1", "Some(1) 1"]);
    run.assert_executions("first_alpha", 3);
}

/// The first branch with a result ends the run.
struct Searching(Alive);

#[workflow]
impl Searching {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn search(&self, item: &Item) -> Option<Done> {
        let _alive = self.0.guard();
        sleep(Duration::from_secs([1, 3, 2][item.0 as usize])).await;
        (item.0 != 0).then_some(Done(item.0))
    }
}

// S28
#[tokio::test]
async fn a_stop_in_a_branch_ends_the_run_and_drops_the_other_branches() {
    let alive = Alive::default();
    let run = Scenario::new(Searching(alive.clone())).start(Begin(3)).await;
    run.assert_output(&Done(2));
    assert_eq!(alive.count(), 0);
    assert_eq!(outcomes_of(run.report(), "search")[1], &ExecutionOutcome::Dropped);
}
