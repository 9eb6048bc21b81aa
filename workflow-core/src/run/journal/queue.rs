//! The part of a journal that waits for the store: records, their batches, and how much one write takes.
//! Calls no store.
//!
//! ```text
//! records  r1 r2 | r3 | r4 r5 r6 | r7        batches of 2, 1, 3 and 1 records
//!          ╰──── next write ────╯            as many whole batches as fit, at least one
//! ```

use std::collections::VecDeque;

use crate::store::{Position, Record, RunSummary, Write};

/// The most batches that wait for the store before the run stops taking input.
const MOST_QUEUED: usize = 256;

/// The most records that wait for the store before the run stops taking input.
const MOST_RECORDS: usize = 4 * MOST_QUEUED;

/// The most records of one write, unless a single batch has more.
const WRITE_RECORDS: usize = 1_000;

/// The most bytes of one write, unless a single batch has more.
const WRITE_BYTES: usize = 16 << 20;

/// The records that the store does not have, in batches.
pub(super) struct WriteQueue {
    /// Oldest first. The records of the write under way come first.
    records: VecDeque<Record>,
    /// The batches in `records`, oldest first.
    batches: VecDeque<QueuedBatch>,
    /// The end of the journal with everything queued.
    end: Position,
    /// How many of the next batches go into a write of their own, because the store refused a write with
    /// them.
    write_singly: usize,
    /// Whether the end of the run is queued: nothing is queued behind it.
    ended: bool,
    next: NextBatch,
}

/// How the next batch joins the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum NextBatch {
    #[default]
    Plain,
    /// As a part of the first batch, which has only `RunStarted` so far. The journal thus never has a run
    /// without its start event.
    JoinsFirst,
    /// With a summary that says that the run no longer waits.
    Resumes,
}

/// The records of one batch.
struct QueuedBatch {
    records: usize,
    /// Their approximate size in a store that keeps bytes.
    bytes: usize,
    /// The run's summary with this batch, if the batch changes it. Boxed, since few batches do.
    run: Option<Box<RunSummary>>,
}

/// How much of the queue a write takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WriteExtent {
    pub(super) batches: usize,
    pub(super) records: usize,
}

impl WriteQueue {
    /// An empty queue of a journal that ends there.
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

    /// How many records the queue has.
    pub(super) fn records(&self) -> usize {
        self.records.len()
    }

    /// The end of the journal with everything queued.
    pub(super) fn end(&self) -> Position {
        self.end
    }

    /// Whether the end of the run is queued.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the run must take in nothing more. The part that the write under way has taken does not count.
    pub(super) fn is_full(&self, taken: WriteExtent) -> bool {
        self.batches.len() - taken.batches >= MOST_QUEUED
            || self.records.len() - taken.records >= MOST_RECORDS
    }

    /// Queues one batch, unless the end is queued. `run` is the summary with this batch, if the batch changes
    /// it. `before` is the summary in the store.
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
        let run = run.or_else(|| (next == NextBatch::Resumes).then(|| before.clone().running_again()));
        let run = run.map(Box::new);
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

    /// Marks the last batch as the end of the run.
    pub(super) fn close(&mut self) {
        self.ended = true;
    }

    /// Lets the next batch become a part of the first one.
    pub(super) fn join_first(&mut self) {
        self.next = NextBatch::JoinsFirst;
    }

    /// Lets the next batch carry a summary that says that the run runs again.
    pub(super) fn note_running_again(&mut self) {
        self.next = NextBatch::Resumes;
    }

    /// The next write. Its summary is that of its last batch that has one, else `before`. `None` if the queue
    /// is empty.
    pub(super) fn next_write(&self, before: &RunSummary) -> Option<(WriteExtent, Write)> {
        if self.batches.is_empty() {
            return None;
        }
        let taken = self.taken_next();
        let batches = self.batches.iter().take(taken.batches);
        let run = batches.rev().find_map(|batch| batch.run.as_deref()).unwrap_or(before).clone();
        Some((taken, Write { records: self.records.iter().take(taken.records).cloned().collect(), run }))
    }

    /// How much the next write takes.
    fn taken_next(&self) -> WriteExtent {
        let most = if self.write_singly > 0 { 1 } else { usize::MAX };
        let (mut taken, mut bytes) = (WriteExtent::default(), 0_usize);
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

    /// Removes the records that the store has taken with a write.
    pub(super) fn wrote(&mut self, taken: WriteExtent) {
        self.batches.drain(..taken.batches);
        self.records.drain(..taken.records);
        self.write_singly = self.write_singly.saturating_sub(taken.batches);
    }

    /// Frees the memory of an empty queue: the run rests, and may for long.
    pub(super) fn free(&mut self) {
        if self.batches.is_empty() {
            (self.records, self.batches) = (VecDeque::new(), VecDeque::new());
        }
    }

    /// Gives each of the next batches a write of its own.
    pub(super) fn write_singly(&mut self, batches: usize) {
        self.write_singly = batches;
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.batches.clear();
    }

    /// Empties the queue and returns its records. The journal then ends at `written`, and may be queued to
    /// again.
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

    /// A queue with batches of these numbers of records.
    fn queue(batches: &[usize]) -> WriteQueue {
        let mut queue = WriteQueue::behind(Position(10));
        for records in batches {
            queue.push(vec![Record::RunKept { at: AT }; *records], None, &running());
        }
        queue
    }

    fn taken(queue: &WriteQueue) -> Option<(usize, usize)> {
        let (WriteExtent { batches, records }, batch) = queue.next_write(&running())?;
        assert_eq!(batch.records.len(), records);
        Some((batches, records))
    }

    #[test]
    fn a_write_takes_what_is_queued_until_the_store_has_it() {
        let mut queue = queue(&[2, 1]);
        assert_eq!((queue.end(), taken(&queue)), (Position(13), Some((2, 3))));
        queue.push([Record::RunKept { at: AT }], None, &running());
        queue.wrote(WriteExtent { batches: 2, records: 3 });
        assert_eq!((queue.end(), taken(&queue)), (Position(14), Some((1, 1))));
        queue.wrote(WriteExtent { batches: 1, records: 1 });
        assert_eq!((queue.records(), taken(&queue)), (0, None));
    }

    #[test]
    fn an_empty_queue_has_no_memory_once_it_is_freed() {
        let mut queue = queue(&[2]);
        queue.free();
        assert_eq!(taken(&queue), Some((1, 2)), "a queue that is not empty stays");
        queue.wrote(WriteExtent { batches: 1, records: 2 });
        assert!(queue.records.capacity() > 0 && queue.batches.capacity() > 0);
        queue.free();
        assert_eq!((queue.records.capacity(), queue.batches.capacity()), (0, 0));
        queue.push([Record::RunKept { at: AT }], None, &running());
        assert_eq!((queue.end(), taken(&queue)), (Position(13), Some((1, 1))));
    }

    #[test]
    fn batches_of_a_refused_write_are_taken_one_by_one_and_those_behind_together() {
        let mut queue = queue(&[2, 1, 1, 1]);
        queue.write_singly(2);
        for (expected, wrote) in [(Some((1, 2)), 2), (Some((1, 1)), 1)] {
            assert_eq!(taken(&queue), expected);
            queue.wrote(WriteExtent { batches: 1, records: wrote });
        }
        assert_eq!(taken(&queue), Some((2, 2)));
    }

    #[test]
    fn a_queue_is_full_by_batches_or_records_beyond_the_write_under_way() {
        let many = queue(&[1; MOST_QUEUED]);
        assert!(many.is_full(WriteExtent::default()));
        assert!(!many.is_full(WriteExtent { batches: 1, records: 1 }));
        let large = queue(&[1, MOST_RECORDS]);
        assert!(large.is_full(WriteExtent { batches: 1, records: 1 }));
        assert!(!large.is_full(WriteExtent { batches: 2, records: MOST_RECORDS + 1 }));
    }

    #[test]
    fn a_write_has_the_summary_of_its_last_batch_with_one() {
        let mut queue = queue(&[1]);
        let status = |queue: &WriteQueue, before: RunSummary| {
            queue.next_write(&before).map(|(_, batch)| batch.run.status)
        };
        let waiting = || running().waiting(crate::store::WaitingFor::default());
        assert_eq!(status(&queue, waiting()), Some(RunStatus::Waiting));
        queue.note_running_again();
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
    fn removed_records_can_be_queued_again_also_behind_an_end() {
        let mut queue = queue(&[1, 2]);
        queue.close();
        assert_eq!(queue.rewind(Position(10)).len(), 3);
        assert_eq!((queue.end(), queue.has_ended(), taken(&queue)), (Position(10), false, None));
        queue.push([Record::RunKept { at: AT }], None, &running());
        assert_eq!((queue.end(), taken(&queue)), (Position(11), Some((1, 1))));
    }
}
