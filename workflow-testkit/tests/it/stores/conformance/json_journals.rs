//! A store of bytes, like one on a disk: every record is a line of JSON, a read returns a few of them, and every call
//! takes some time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tokio::task::yield_now;
use workflow_core::RunId;
use workflow_core::store::{
    EngineId, EventStore, Leases, Position, Record, Retention, RunQuery, StoreError, StoreFuture, StoredRun,
    Write,
};

/// The most records that a read returns.
const PAGE: usize = 10;

#[derive(Debug, Clone)]
pub(crate) struct JsonJournals(Arc<Mutex<BTreeMap<String, File>>>, Arc<Leases>);

/// The listed run, and the records.
#[derive(Debug)]
struct File {
    head: Vec<u8>,
    lines: Vec<Vec<u8>>,
    written: SystemTime,
}

impl JsonJournals {
    pub(crate) fn open(_path: &str) -> Self {
        Self(Arc::default(), Arc::default())
    }

    fn write(&self, run: &RunId, at: Position, lines: Vec<Vec<u8>>, batch: Write) -> Result<(), StoreError> {
        let mut files = self.0.lock().unwrap();
        let there = files.get(run.as_str()).map_or(0, |file| file.lines.len());
        let found = Position(there as u64);
        if found != at {
            return Err(StoreError::Conflict { expected: at, found });
        }
        let stored = StoredRun { id: run.clone(), end: found.after(lines.len()), run: batch.run };
        let head = serde_json::to_vec(&stored).map_err(StoreError::unserialisable)?;
        let empty = File { head: Vec::new(), lines: Vec::new(), written: SystemTime::UNIX_EPOCH };
        let file = files.entry(run.as_str().to_owned()).or_insert(empty);
        file.head = head;
        file.lines.extend(lines);
        file.written = SystemTime::now();
        Ok(())
    }

    fn page(&self, run: &RunId, from: Position, at_most: usize) -> Result<Vec<Record>, StoreError> {
        let files = self.0.lock().unwrap();
        let lines = files.get(run.as_str()).map_or(&[][..], |file| &file.lines);
        let from = usize::try_from(from.0).unwrap_or(usize::MAX);
        let page = lines.iter().enumerate().skip(from).take(at_most.clamp(1, PAGE));
        let read = page.map(|(at, line)| {
            serde_json::from_slice(line)
                .map_err(|error| StoreError::corrupt(run, Position::default().after(at), error))
        });
        read.collect()
    }

    fn list(&self, query: &RunQuery) -> Result<Vec<StoredRun>, StoreError> {
        let files = self.0.lock().unwrap();
        let read = |file: &File| serde_json::from_slice(&file.head).map_err(StoreError::unavailable);
        Ok(query.choose(files.values().map(read).collect::<Result<Vec<_>, _>>()?))
    }
}

impl JsonJournals {
    fn choose(&self, kept: &Retention) -> Result<Vec<StoredRun>, StoreError> {
        let files = self.0.lock().unwrap();
        let read = |file: &File| Ok((serde_json::from_slice(&file.head)?, file.written));
        let runs = files.values().map(read).collect::<Result<Vec<_>, serde_json::Error>>();
        let chosen = kept.choose(runs.map_err(StoreError::unavailable)?);
        Ok(chosen.into_iter().map(|(stored, _)| stored).collect())
    }

    /// Removes a run if it has not changed since.
    fn remove_seen(&self, seen: &StoredRun) -> bool {
        let mut files = self.0.lock().unwrap();
        let head = files.get(seen.id.as_str()).map(|file| &*file.head);
        let is_as_seen = head.is_some_and(|head| serde_json::from_slice(head).ok().as_ref() == Some(seen));
        is_as_seen && files.remove(seen.id.as_str()).is_some()
    }
}

impl EventStore for JsonJournals {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let (files, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            let lines: Result<Vec<_>, _> = batch.records.iter().map(serde_json::to_vec).collect();
            let lines = lines.map_err(StoreError::unserialisable)?;
            yield_now().await;
            files.write(&run, expected, lines, batch)
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        let (files, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            yield_now().await;
            files.page(&run, from, at_most)
        })
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        let (files, query) = (self.clone(), query.clone());
        StoreFuture::new(async move {
            yield_now().await;
            files.list(&query)
        })
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        let (files, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            yield_now().await;
            Ok(files.0.lock().unwrap().remove(run.as_str()).is_some())
        })
    }
    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        let (files, kept) = (self.clone(), kept.clone());
        StoreFuture::new(async move {
            let mut removed = 0;
            for seen in files.choose(&kept)? {
                yield_now().await;
                removed += u64::from(files.remove_seen(&seen));
            }
            Ok(removed)
        })
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        let leases = self.1.renew(engine, duration);
        StoreFuture::new(async move {
            yield_now().await;
            Ok(leases)
        })
    }
}
