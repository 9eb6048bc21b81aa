//! What waits to be written to the journal of a run: records, the batches that they are of, and how many of these one write
//! takes. Nothing here calls a store.

use std::collections::VecDeque;

use crate::store::{Batch, Position, Record, RunSummary};

/// How many batches wait for the store before the run takes no more news.
const MOST_QUEUED: usize = 256;

/// How many records may wait to be written before the run takes no more news.
const MOST_RECORDS: usize = 4 * MOST_QUEUED;

/// The most records of one write, unless a single batch has more.
const WRITE_RECORDS: usize = 1_000;

/// The most bytes of one write, unless a single batch has more.
const WRITE_BYTES: usize = 16 << 20;

/// The part of a journal that the store does not have.
pub(super) struct WriteQueue {
    /// In order. Those of the write that is under way come first.
    records: VecDeque<Record>,
    /// The batches of `records`, oldest first.
    batches: VecDeque<QueuedBatch>,
    /// Where the journal ends with everything that is queued.
    end: Position,
    /// How many of the next batches are written one at a time, because the store refused a write with them.
    write_singly: usize,
    /// Whether the end of the run was queued: nothing follows it.
    ended: bool,
    next: NextBatch,
}

/// How the next batch is queued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum NextBatch {
    #[default]
    Plain,
    /// As part of the first batch, which so far has only the record `RunStarted`.
    JoinsFirst,
    /// With a summary that says that the run is no longer waiting.
    Resumes,
}

/// Records that enter the journal at once.
struct QueuedBatch {
    records: usize,
    /// About how many bytes they have where the store keeps bytes.
    bytes: usize,
    /// How the run stands with them, if that has changed.
    run: Option<RunSummary>,
}

/// How much a write takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) batches: usize,
    pub(super) records: usize,
}

impl WriteQueue {
    /// Of a journal that ends there.
    pub(super) fn behind(end: Position) -> Self {
        Self {
            records: VecDeque::new(),
            batches: VecDeque::new(),
            end,
            write_singly: 0,
            ended: false,
            next: NextBatch::Plain,
        }
    }

    /// How many records are queued.
    pub(super) fn records(&self) -> usize {
        self.records.len()
    }

    /// Where the journal ends with everything that is queued.
    pub(super) fn end(&self) -> Position {
        self.end
    }

    /// Whether the end of the run was queued.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether no more is to be queued. What the write under way has taken does not count.
    pub(super) fn is_full(&self, taken: Taken) -> bool {
        self.batches.len() - taken.batches >= MOST_QUEUED
            || self.records.len() - taken.records >= MOST_RECORDS
    }

    /// Queues one batch, unless the end is queued. `run` is the summary with this batch, if the batch changes it;
    /// `before` is the summary that the store has.
    pub(super) fn push(
        &mut self,
        records: impl IntoIterator<Item = Record>,
        run: Option<RunSummary>,
        before: &RunSummary,
    ) {
        if self.ended {
            return;
        }
        let already = self.records.len();
        let mut bytes = 0;
        self.records.extend(records.into_iter().inspect(|record| bytes += record.stored_bytes()));
        let records = self.records.len() - already;
        self.end = self.end.after(records);
        let next = std::mem::take(&mut self.next);
        let run = run.or_else(|| (next == NextBatch::Resumes).then(|| before.clone().going_on()));
        match self.batches.back_mut().filter(|_| next == NextBatch::JoinsFirst) {
            // A journal without a start event could not be resumed.
            Some(first) => {
                first.records += records;
                first.bytes = first.bytes.saturating_add(bytes);
                first.run = run.or(first.run.take());
            }
            None => self.batches.push_back(QueuedBatch { records, bytes, run }),
        }
    }

    /// The last batch ends the run: nothing follows it.
    pub(super) fn close(&mut self) {
        self.ended = true;
    }

    /// The next batch is one with the only one that is queued.
    pub(super) fn join_first(&mut self) {
        self.next = NextBatch::JoinsFirst;
    }

    /// The next batch says that the run goes on.
    pub(super) fn note_going_on(&mut self) {
        self.next = NextBatch::Resumes;
    }

    /// The next write with its summary: that of its last batch that has one, else `before`. None if nothing is queued.
    pub(super) fn next_write(&self, before: &RunSummary) -> Option<(Taken, Batch)> {
        if self.batches.is_empty() {
            return None;
        }
        let taken = self.taken_next();
        let batches = self.batches.iter().take(taken.batches);
        let run = batches.rev().find_map(|batch| batch.run.as_ref()).unwrap_or(before).clone();
        Some((taken, Batch { records: self.records.iter().take(taken.records).cloned().collect(), run }))
    }

    fn taken_next(&self) -> Taken {
        let most = if self.write_singly > 0 { 1 } else { usize::MAX };
        let (mut taken, mut bytes) = (Taken::default(), 0_usize);
        for batch in self.batches.iter().take(most) {
            let fits = taken.records + batch.records <= WRITE_RECORDS
                && bytes.saturating_add(batch.bytes) <= WRITE_BYTES;
            if taken.batches > 0 && !fits {
                break;
            }
            taken.batches += 1;
            taken.records += batch.records;
            bytes = bytes.saturating_add(batch.bytes);
        }
        taken
    }

    /// The store has what a write took.
    pub(super) fn wrote(&mut self, taken: Taken) {
        self.batches.drain(..taken.batches);
        self.records.drain(..taken.records);
        self.write_singly = self.write_singly.saturating_sub(taken.batches);
    }

    /// So many batches are written one by one from here on.
    pub(super) fn write_singly(&mut self, batches: usize) {
        self.write_singly = batches;
    }

    /// Nothing of it will be written.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.batches.clear();
    }

    /// Removes the records behind that position, which the store does not have, and returns them.
    pub(super) fn rewind(&mut self, written: Position) -> Vec<Record> {
        self.batches.clear();
        (self.end, self.ended, self.next) = (written, false, NextBatch::Plain);
        self.records.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::id::RunStatus;

    const AT: SystemTime = SystemTime::UNIX_EPOCH;

    fn running() -> RunSummary {
        RunSummary::running("W", AT)
    }

    /// A queue with a batch of so many records each.
    fn queue(batches: &[usize]) -> WriteQueue {
        let mut queue = WriteQueue::behind(Position(10));
        for records in batches {
            queue.push(vec![Record::RunKept { at: AT }; *records], None, &running());
        }
        queue
    }

    fn taken(queue: &WriteQueue) -> Option<(usize, usize)> {
        let (Taken { batches, records }, batch) = queue.next_write(&running())?;
        assert_eq!(batch.records.len(), records);
        Some((batches, records))
    }

    #[test]
    fn a_write_takes_what_is_queued_until_the_store_has_it() {
        let mut queue = queue(&[2, 1]);
        assert_eq!((queue.end(), taken(&queue)), (Position(13), Some((2, 3))));
        queue.push([Record::RunKept { at: AT }], None, &running());
        queue.wrote(Taken { batches: 2, records: 3 });
        assert_eq!((queue.end(), taken(&queue)), (Position(14), Some((1, 1))));
        queue.wrote(Taken { batches: 1, records: 1 });
        assert_eq!((queue.records(), taken(&queue)), (0, None));
    }

    #[test]
    fn batches_of_a_refused_write_are_taken_one_by_one_and_those_behind_together() {
        let mut queue = queue(&[2, 1, 1, 1]);
        queue.write_singly(2);
        for (expected, wrote) in [(Some((1, 2)), 2), (Some((1, 1)), 1)] {
            assert_eq!(taken(&queue), expected);
            queue.wrote(Taken { batches: 1, records: wrote });
        }
        assert_eq!(taken(&queue), Some((2, 2)));
    }

    #[test]
    fn it_is_full_by_batches_or_records_behind_those_that_a_write_has_taken() {
        let many = queue(&[1; MOST_QUEUED]);
        assert!(many.is_full(Taken::default()));
        assert!(!many.is_full(Taken { batches: 1, records: 1 }));
        let large = queue(&[1, MOST_RECORDS]);
        assert!(large.is_full(Taken { batches: 1, records: 1 }));
        assert!(!large.is_full(Taken { batches: 2, records: MOST_RECORDS + 1 }));
    }

    #[test]
    fn a_write_leaves_the_run_as_its_last_batch_that_says_so() {
        let mut queue = queue(&[1]);
        let status = |queue: &WriteQueue, before: RunSummary| {
            queue.next_write(&before).map(|(_, batch)| batch.run.status)
        };
        let waiting = || running().waiting(crate::store::WaitingFor::default());
        assert_eq!(status(&queue, waiting()), Some(RunStatus::Waiting));
        queue.note_going_on();
        queue.push([Record::RunKept { at: AT }], None, &waiting());
        queue.push([Record::RunKept { at: AT }], None, &waiting());
        assert_eq!(status(&queue, waiting()), Some(RunStatus::Running));
        queue.push([Record::RunKept { at: AT }], Some(running().ended(RunStatus::Completed)), &waiting());
        queue.close();
        assert_eq!(status(&queue, waiting()), Some(RunStatus::Completed));
        queue.push([Record::RunKept { at: AT }], None, &waiting());
        assert_eq!((queue.records(), queue.has_ended()), (4, true), "nothing follows the end");
    }

    #[test]
    fn what_is_removed_can_be_queued_again_also_behind_an_end() {
        let mut queue = queue(&[1, 2]);
        queue.close();
        assert_eq!(queue.rewind(Position(10)).len(), 3);
        assert_eq!((queue.end(), queue.has_ended(), taken(&queue)), (Position(10), false, None));
        queue.push([Record::RunKept { at: AT }], None, &running());
        assert_eq!((queue.end(), taken(&queue)), (Position(11), Some((1, 1))));
    }
}
