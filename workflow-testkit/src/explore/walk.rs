//! Drives the exploration from run to run, and collects the findings.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use workflow_core::report::LoggedEvent;

use super::footprint::Interest;
use super::gate::Op;
use super::order::{Choose, Order, Random, Replay};
use super::play::{Played, play, words};
use super::report::{NOT_THE_SAME, WHY_NOT_THE_SAME};
use super::search::{Reduction, Search};
use super::{Explored, Outcome};
use crate::Start;
use crate::subject::Tested;

/// The maximum number of runs per order: some runs are abandoned once they prove equivalent to others.
const RUNS_PER_ORDER: u64 = 20;

/// Called with each run of a new order.
type Visit<'a, T> = &'a mut dyn FnMut(&Played<T>) -> ControlFlow<()>;

/// An exploration in progress.
pub(super) struct Walk<'a, T: Tested, F> {
    scenario: &'a F,
    interest: Arc<Interest>,
    pub(super) explored: Explored,
    seen: HashSet<Order>,
    outcomes: HashSet<Outcome>,
    visit: Visit<'a, T>,
    /// The number of runs so far.
    played: u64,
}

/// The first this many runs are compared with their journals, and then one in this many: the runs of an exploration are
/// similar, and the check takes longer than they do.
const CHECKED: u64 = 16;

impl<'a, T: Tested, F: Fn() -> Start<T>> Walk<'a, T, F> {
    pub(super) fn new(scenario: &'a F, interest: &Arc<Interest>, reduced: bool, visit: Visit<'a, T>) -> Self {
        let (interest, explored) = (Arc::clone(interest), Explored::new(reduced));
        Self {
            scenario,
            interest,
            explored,
            seen: HashSet::new(),
            outcomes: HashSet::new(),
            visit,
            played: 0,
        }
    }

    fn play(&mut self, choose: &mut dyn Choose) -> Played<T> {
        let is_checked = self.played < CHECKED || self.played.is_multiple_of(CHECKED);
        self.played += 1;
        let start =
            if is_checked { (self.scenario)() } else { workflow_core::without_replay_check(self.scenario) };
        let played = play(start, &self.interest, choose);
        self.explored.caveats.add(played.caveats);
        if played.run.iter().any(|run| run.report().log.iter().any(LoggedEvent::is_order_read)) {
            self.interest.note_order_read();
        }
        played
    }

    /// Tries every order that makes a difference; returns whether the search ended within the limit.
    pub(super) fn systematically(&mut self, mut search: Search<'_>, orders: u64) -> ControlFlow<(), bool> {
        let mut runs = 0;
        while self.explored.tried < orders && runs < orders.saturating_mul(RUNS_PER_ORDER) {
            runs += 1;
            let played = self.play(&mut search);
            assert_same(&search, &played);
            if played.opens_branches_in_turn && search.reduction() == Reduction::Races {
                search.restart(Reduction::Sleep);
                (self.explored, runs) = (Explored::new(true), 0);
                self.seen.clear();
                self.outcomes.clear();
                continue;
            }
            if played.broken.is_some() {
                self.visit(played)?;
                return ControlFlow::Continue(false);
            }
            let more = search.advance(&played.moments, &played.left);
            self.explored.left_out = search.left_out;
            self.visit(played)?;
            if !more {
                self.explored.exhaustive = !self.explored.caveats.gave_up_on_time;
                return ControlFlow::Continue(true);
            }
        }
        ControlFlow::Continue(false)
    }

    pub(super) fn at_random(&mut self, seed: u64, orders: u64) -> ControlFlow<()> {
        let systematic = self.explored.tried;
        let mut ways = 0.0;
        for place in 0..orders {
            let mut random = Random::new(seed, place);
            let played = self.draw(&mut random);
            let visited = self.visit(played);
            ways += random.ways();
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let mean = ways / (place + 1) as f64;
            self.explored.estimate = Some(mean);
            self.explored.drawn = Some((self.explored.tried - systematic, seed));
            visited?;
        }
        ControlFlow::Continue(())
    }

    /// Runs a random order.
    fn draw(&mut self, random: &mut Random) -> Played<T> {
        loop {
            let played = self.play(random);
            if !random.begins_again() {
                return played;
            }
        }
    }

    pub(super) fn replay(&mut self, order: &Order) -> ControlFlow<()> {
        let played = self.play(&mut Replay::strict(order));
        let fits = (played.run.is_some() || played.broken.is_some()) && played.order() == *order;
        assert!(fits, "the order {order} does not fit: the run went\n{}", words(&played.moments));
        self.visit(played)
    }

    fn visit(&mut self, played: Played<T>) -> ControlFlow<()> {
        if played.run.is_none() && played.broken.is_none() {
            return ControlFlow::Continue(());
        }
        let order = played.order();
        if !self.seen.insert(order.clone()) {
            return ControlFlow::Continue(());
        }
        self.explored.tried += 1;
        (self.visit)(&played)?;
        self.note(played, order);
        ControlFlow::Continue(())
    }

    fn note(&mut self, played: Played<T>, order: Order) {
        let Played { run: Some(run), broken: None, arrived, .. } = played else { return };
        let outcome = Outcome::of(run.report(), &arrived, &self.interest);
        if self.outcomes.insert(outcome.clone()) {
            self.explored.outcomes.push((outcome, order));
        }
    }
}

/// Panics if the same order leads to a different run.
fn assert_same<T: Tested>(search: &Search<'_>, played: &Played<T>) {
    let Some((before, now)) = &search.differs else { return };
    let list = |ops: &[Op]| ops.iter().map(|op| &*op.words).collect::<Vec<_>>().join("; ");
    panic!(
        "{NOT_THE_SAME}: after\n{}came once [{}] and once [{}]\n{WHY_NOT_THE_SAME}",
        words(&played.moments),
        list(before),
        list(now)
    );
}
