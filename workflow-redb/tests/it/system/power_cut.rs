//! The state after power cuts at any moment: every confirmed batch, no part of others, and a consistent file.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use futures::executor::block_on;
use futures::future::{join_all, maybe_done, poll_immediate};
use workflow_core::RunStatus;
use workflow_core::store::{
    ContextScope, ContextStore, ContextValue, EventStore, Position, Record, StoreError, Write,
};
use workflow_redb::{Durability, RedbStore};

use crate::disk::Disk;
use crate::fixtures::{batch, last_batch, text};

/// Chains of cuts, each of which continues with the previous state.
const CHAINS: u64 = 40;
const CUTS: u64 = 25;

/// The maximum number of writes and syncs of a disk.
const LIFE: usize = 100;

/// The knowledge about a run: its confirmed batches, and what may have happened besides.
#[derive(Default, Clone)]
struct Known {
    /// The confirmed batches, each with its number among all.
    answered: Vec<(u64, Write)>,
    /// A batch without an answer.
    unanswered: Option<Write>,
    ended: bool,
}

/// A store on a disk, and the operations on it.
struct World {
    rng: Rng,
    durability: Durability,
    image: Vec<u8>,
    runs: BTreeMap<String, Known>,
    batches: u64,
    /// The last batch up to which everything is synced.
    synced: u64,
    /// The possible values of a context.
    counter: Vec<Option<u64>>,
}

#[test]
fn after_1000_cuts_what_was_answered_is_there_and_every_batch_is_whole() {
    for chain in 0..CHAINS {
        let mut world = World::new(chain, Durability::Sync);
        for cut in 0..CUTS {
            world.live_until_cut();
            world.verify(&format!("chain {chain}, cut {cut}"));
        }
    }
}

#[test]
fn a_cut_of_a_buffered_store_loses_the_latest_batches_and_none_that_was_synced() {
    for chain in 0..CHAINS {
        let mut world = World::new(chain, Durability::Buffered(Duration::MAX));
        for cut in 0..4 {
            world.live_until_cut();
            world.verify(&format!("chain {chain}, cut {cut}"));
        }
    }
}

/// The reason for the rewrite after a failed sync, on a disk as hard as in the tests of the rewrite.
#[test]
fn what_is_answered_after_a_failed_sync_is_lost_where_the_disk_is_opened_again_as_it_is() {
    let append =
        |store: &RedbStore, run: &str, to| block_on(store.append(&run.into(), Position(0), batch(0..to)));
    let survives = |seed| {
        let disk = Disk::default();
        let open = |disk: &Disk| RedbStore::builder().open_backend("disk", disk.clone());
        let store = open(&disk).unwrap();
        append(&store, "a", 2).unwrap();
        disk.lose_next_sync(Rng::with_seed(seed));
        append(&store, "b", 200).unwrap_err();
        drop(store);
        append(&open(&disk).ok()?, "c", 2).ok()?;
        let after = Disk::holding(disk.after_the_cut(&mut Rng::with_seed(seed)));
        let there = block_on(open(&after).ok()?.read(&"c".into(), Position(0), 10)).ok()?;
        (there.len() == 2).then_some(())
    };
    let kept = (0..40).filter(|seed| survives(*seed).is_some()).count();
    assert!(kept < 40, "the disk loses nothing");
}

impl World {
    fn new(seed: u64, durability: Durability) -> Self {
        let disk = Disk::default();
        drop(RedbStore::builder().open_backend("disk", disk.clone()).unwrap());
        let rng = Rng::with_seed(seed);
        let image = disk.after_the_cut(&mut Rng::with_seed(0));
        let (runs, counter) = (BTreeMap::new(), vec![None]);
        Self { rng, durability, image, runs, batches: 0, synced: 0, counter }
    }

    fn open(&self, disk: &Disk) -> RedbStore {
        let builder = RedbStore::builder().durability(self.durability).cache_bytes(1 << 20);
        builder.open_backend("disk", disk.clone()).unwrap()
    }

    fn live_until_cut(&mut self) {
        let disk = Disk::holding(std::mem::take(&mut self.image));
        let store = self.open(&disk);
        let life = self.rng.usize(1..LIFE);
        disk.cut_after(life);
        while !disk.is_off() {
            self.act(&store, &disk);
        }
        drop(store);
        self.image = disk.after_the_cut(&mut self.rng);
    }

    fn act(&mut self, store: &RedbStore, disk: &Disk) {
        match self.rng.u8(..8) {
            0 => self.count(store),
            1 if block_on(store.sync()).is_ok() => self.synced = self.batches,
            _ => self.append_together(store, disk),
        }
    }

    /// Appends to several runs; the committer finds all of them waiting, except the first, for which the disk was
    /// blocked.
    fn append_together(&mut self, store: &RedbStore, disk: &Disk) {
        let mut chosen: Vec<(String, Write)> = Vec::new();
        for _ in 0..self.rng.usize(1..6) {
            let run = self.open_run();
            if chosen.iter().all(|(other, _)| *other != run) {
                let batch = self.next_batch(&run);
                chosen.push((run, batch));
            }
        }
        let append = |(run, batch): &(String, Write)| {
            let end = self.runs.get(run).map_or(0, Known::end);
            Box::pin(maybe_done(store.append(&run.as_str().into(), Position(end), batch.clone())))
        };
        let mut appends: Vec<_> = chosen.iter().map(append).collect();
        // A store that answers before it writes is not blocked: the block would not be noticed.
        if self.durability == Durability::Sync {
            disk.hold();
            assert!(
                block_on(poll_immediate(&mut appends[0])).is_none(),
                "nothing is answered before it is written"
            );
            disk.until_held();
        }
        let mut answers = join_all(&mut appends);
        let waiting = block_on(poll_immediate(&mut answers)).is_none();
        disk.let_go();
        if waiting {
            block_on(answers);
        } else {
            drop(answers);
        }
        let answers: Vec<_> = appends.iter_mut().filter_map(|append| append.as_mut().take_output()).collect();
        for ((run, batch), answer) in chosen.into_iter().zip(answers) {
            self.note(run, batch, answer);
        }
    }

    /// One of a dozen open runs; a new one replaces each ended one.
    fn open_run(&mut self) -> String {
        let place = self.rng.u8(..12);
        let ids = (0..).map(|number| format!("run-{place}-{number}"));
        let mut open = ids.filter(|id| self.runs.get(id).is_none_or(|known| !known.ended));
        open.next().unwrap()
    }

    fn next_batch(&mut self, run: &str) -> Write {
        let end = self.runs.entry(run.to_owned()).or_default().end();
        if end > 0 && self.rng.u8(..10) == 0 {
            return last_batch(RunStatus::Failed);
        }
        batch(end..end + self.rng.u64(1..5))
    }

    fn note(&mut self, run: String, batch: Write, answer: Result<(), StoreError>) {
        let known = self.runs.entry(run).or_default();
        match answer {
            Ok(()) => {
                self.batches += 1;
                known.ended |= batch.run.status.is_ended();
                known.answered.push((self.batches, batch));
            }
            Err(StoreError::Unavailable { .. }) => known.unanswered = Some(batch),
            Err(error) => panic!("an append was refused: {error}"),
        }
    }

    fn count(&mut self, store: &RedbStore) {
        let next = self.batches;
        let value = Some(ContextValue::new(next));
        match block_on(store.set(&ContextScope::Run("run-0".into()), "counter", value)) {
            Ok(_) if self.durability == Durability::Sync => self.counter = vec![Some(next)],
            _ => self.counter.push(Some(next)),
        }
    }

    /// Opens the remaining file, compares it with the known state, and continues with it.
    fn verify(&mut self, moment: &str) {
        let disk = Disk::holding(self.image.clone());
        let store = self.open(&disk);
        let (mut lost, mut kept) = (u64::MAX, 0);
        for (run, known) in &mut self.runs {
            let there = block_on(store.read(&run.as_str().into(), Position(0), 10_000)).unwrap();
            let kept_batches = known
                .kept(&there)
                .unwrap_or_else(|| panic!("{moment}: of {run} there is a part of a batch: {}", text(&there)));
            let (stay, gone) = known.answered.split_at(kept_batches.min(known.answered.len()));
            kept = stay.last().map_or(kept, |(number, _)| kept.max(*number));
            lost = gone.first().map_or(lost, |(number, _)| lost.min(*number));
            known.settle(kept_batches, self.batches);
        }
        let answered = if self.durability == Durability::Sync { self.batches } else { self.synced };
        assert!(lost > answered, "{moment}: batch {lost} was answered and is lost");
        assert!(lost > kept, "{moment}: batch {lost} is lost, and {kept}, which came later, is there");
        self.verify_counter(&store, moment);
        let report = block_on(store.check()).unwrap();
        assert!(report.is_sound(), "{moment}: {:?}", report.problems);
        drop(store);
        self.synced = self.batches;
        self.image = disk.after_the_cut(&mut self.rng);
    }

    fn verify_counter(&mut self, store: &RedbStore, moment: &str) {
        let scope = ContextScope::Run("run-0".into());
        let there = block_on(store.get(&scope, "counter")).unwrap().map(|value| value.get::<u64>().unwrap());
        assert!(self.counter.contains(&there), "{moment}: a value is {there:?}, not of {:?}", self.counter);
        self.counter = vec![there];
    }
}

impl Known {
    fn end(&self) -> u64 {
        self.answered.iter().map(|(_, batch)| batch.records.len() as u64).sum()
    }

    /// The number of batches that make up these records; `None` if they are no whole batches.
    fn kept(&self, there: &[Record]) -> Option<usize> {
        let batches = self.answered.iter().map(|(_, batch)| batch).chain(&self.unanswered);
        let expected = text(there);
        let (mut count, mut records) = (0, Vec::new());
        let mut found = (there.is_empty()).then_some(0);
        for batch in batches {
            records.extend(batch.records.iter().cloned());
            count += 1;
            if records.len() == there.len() && text(&records) == expected {
                found = Some(count);
            }
        }
        found
    }

    /// Updates the known state to the present content.
    fn settle(&mut self, kept: usize, number: u64) {
        if let Some(batch) = self.unanswered.take()
            && kept > self.answered.len()
        {
            self.answered.push((number, batch));
        }
        self.answered.truncate(kept);
        self.ended = self.answered.last().is_some_and(|(_, batch)| batch.run.status.is_ended());
    }
}
