//! A naive limit: one list of arrivals, walked from the start after each act.

use proptest::prelude::*;

use super::*;

/// Something that happens to a limit. Numbers choose among what there is.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Arrives { key: u8 },
    Releases(usize),
    GivesBack(usize),
    Leaves(usize),
    Passes { millis: u64 },
}

pub(super) fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..3u8).prop_map(|key| Act::Arrives { key }),
        3 => any::<usize>().prop_map(Act::Releases),
        1 => any::<usize>().prop_map(Act::GivesBack),
        1 => any::<usize>().prop_map(Act::Leaves),
        2 => (1..700u64).prop_map(|millis| Act::Passes { millis }),
    ]
}

/// The most at a time, and the rate.
pub(super) type Bounds = (Option<u32>, Option<(u32, u64)>);

pub(super) fn limits() -> impl Strategy<Value = Bounds> {
    prop_oneof![
        (1..4u32).prop_map(|most| (Some(most), None)),
        (1..5u32, 1..2_000u64).prop_map(|rate| (None, Some(rate))),
        (1..4u32, (1..5u32, 1..2_000u64)).prop_map(|(most, rate)| (Some(most), Some(rate))),
    ]
}

/// The naive limit. Times are in millionths of a millisecond over the count, as fractions of a token.
#[derive(Debug, Default)]
struct Naive {
    waiting: Vec<(u64, u8)>,
    held: Vec<(u64, u8)>,
    /// By key: the tokens that were taken and are not back yet, in nanoseconds times the count.
    missing: [u128; 3],
}

impl Naive {
    fn pass(&mut self, (_, rate): Bounds, millis: u64) {
        let Some((count, _)) = rate else { return };
        for missing in &mut self.missing {
            *missing = missing.saturating_sub(u128::from(millis) * 1_000_000 * u128::from(count));
        }
    }

    /// Hands out permits to all that may have one, from the oldest to the newest.
    fn settle(&mut self, (most, rate): Bounds) {
        self.waiting.sort_unstable();
        let mut blocked = [false; 3];
        for (number, key) in std::mem::take(&mut self.waiting) {
            let permits = usize::from(key);
            let held = self.held.iter().filter(|(_, other)| *other == key).count();
            let is_full = most.is_some_and(|most| held >= most as usize);
            let token = rate.map(|(_, per)| u128::from(per) * 1_000_000);
            let all = rate.zip(token).map(|((count, _), token)| u128::from(count) * token);
            let is_empty = token.zip(all).is_some_and(|(token, all)| self.missing[permits] + token > all);
            if blocked[permits] || is_full || is_empty {
                blocked[permits] = true;
                self.waiting.push((number, key));
            } else {
                self.missing[permits] += token.unwrap_or(0);
                self.held.push((number, key));
            }
        }
    }

    fn put_back(&mut self, (_, rate): Bounds, key: u8) {
        let token = rate.map_or(0, |(_, per)| u128::from(per) * 1_000_000);
        let missing = &mut self.missing[usize::from(key)];
        *missing = missing.saturating_sub(token);
    }
}

/// The real one beside it.
struct Real {
    limiter: Arc<Limiter>,
    clock: Still,
    woken: Arc<Counts>,
    turns: Vec<(u64, u8, PermitWait)>,
    permits: Vec<(u64, u8, LimitPermit)>,
}

impl Real {
    fn enter(&mut self, (number, key): (u64, u8), arrival: Arrival) {
        match arrival.take() {
            Ok(permit) => self.permits.push((number, key, permit)),
            Err(turn) => self.turns.push((number, key, turn)),
        }
    }

    /// Polls until nobody was woken: a wake that is missing would show as a difference to the naive limit.
    fn settle(&mut self) {
        for (number, key, mut turn) in std::mem::take(&mut self.turns) {
            match poll(&mut turn, &self.woken) {
                Some(permit) => self.permits.push((number, key, permit)),
                None => self.turns.push((number, key, turn)),
            }
        }
    }

    fn settled(&mut self) {
        loop {
            let before = self.woken.0.load(Ordering::SeqCst);
            let held = self.permits.len();
            self.settle();
            if self.woken.0.load(Ordering::SeqCst) == before && self.permits.len() == held {
                return;
            }
        }
    }
}

fn limit_of((most, rate): Bounds) -> Limit {
    let limit = most.map(Limit::concurrent);
    match (limit, rate) {
        (Some(limit), Some((count, millis))) => limit.rate(count, Duration::from_millis(millis)),
        (Some(limit), None) => limit,
        (None, Some((count, millis))) => Limit::at_rate(count, Duration::from_millis(millis)),
        (None, None) => Limit::at_rate(1, Duration::ZERO),
    }
}

pub(super) fn compare(bounds: Bounds, acts: &[Act]) {
    let (limiter, clock) = limiter(limit_of(bounds));
    let mut real = Real { limiter, clock, woken: Arc::default(), turns: Vec::new(), permits: Vec::new() };
    let (mut naive, mut next) = (Naive::default(), 0);
    for act in acts {
        match *act {
            Act::Arrives { key } => {
                naive.waiting.push((next, key));
                let arrival = real.limiter.arrive(&key.to_string(), holder(next));
                real.enter((next, key), arrival);
                next += 1;
            }
            Act::Releases(which) if !real.permits.is_empty() => {
                let (number, _, permit) = real.permits.swap_remove(which % real.permits.len());
                naive.held.retain(|(held, _)| *held != number);
                drop(permit);
            }
            Act::GivesBack(which) if !real.permits.is_empty() => {
                let (number, key, permit) = real.permits.swap_remove(which % real.permits.len());
                naive.held.retain(|(held, _)| *held != number);
                naive.put_back(bounds, key);
                // Others come first, and then it stands in front of those that arrived later.
                let arrival = permit.give_back();
                naive.settle(bounds);
                naive.waiting.push((number, key));
                real.enter((number, key), arrival);
            }
            Act::Leaves(which) if !real.turns.is_empty() => {
                let (number, _, turn) = real.turns.swap_remove(which % real.turns.len());
                naive.waiting.retain(|(waiting, _)| *waiting != number);
                drop(turn);
            }
            Act::Passes { millis } => {
                naive.pass(bounds, millis);
                real.clock.pass(Duration::from_millis(millis));
            }
            _ => {}
        }
        naive.settle(bounds);
        real.settled();
        let mut held: Vec<_> = real.permits.iter().map(|(number, key, _)| (*number, *key)).collect();
        held.sort_unstable();
        naive.held.sort_unstable();
        assert_eq!(held, naive.held, "after {act:?}");
    }
}
