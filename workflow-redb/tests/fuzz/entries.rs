//! Files with changed table entries: keys, values, bytes. Pages with wrong checksums are refused early; here all pages
//! are sound, but their contents are not.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::executor::block_on;
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase as _, StorageBackend, TableDefinition};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use workflow_core::RunOptions;
use workflow_core::errors::ContextError;
use workflow_core::prelude::*;
use workflow_core::store::{ContextScope, ContextStore, Retention, RunQuery};
use workflow_redb::{RedbStore, StoreFile};

use crate::files::{look_at, typed, use_store};
use crate::fixtures::Place;
use crate::shapes::{Begin, Done, Lists, Note};
use crate::watchdog::Watchdog;
use crate::{Edit, INPUTS, TIME, few, mutate, pick};

const TABLES: [&str; 6] = [
    "workflow.meta",
    "workflow.records",
    "workflow.recent",
    "workflow.runs",
    "workflow.open",
    "workflow.contexts",
];

/// The table of contexts alone.
const CONTEXTS: [usize; 1] = [5];

/// The other tables; the one with the format last.
const JOURNALS: [usize; 5] = [1, 2, 3, 4, 0];

/// More than the number of pages of any table.
const PAGES: usize = 2_000;

/// The time limit for an engine's end.
const END: Duration = Duration::from_secs(2);

fn definition(table: usize) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(TABLES[table])
}

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// A file in memory that can be opened again.
#[derive(Debug, Clone)]
struct Memory(Arc<InMemoryBackend>);

impl Memory {
    fn of(bytes: &[u8]) -> Self {
        let memory = InMemoryBackend::new();
        memory.set_len(bytes.len() as u64).unwrap();
        memory.write(0, bytes).unwrap();
        Self(Arc::new(memory))
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.0.len().unwrap()).unwrap()];
        self.0.read(0, &mut bytes).unwrap();
        bytes
    }
}

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

/// The context keys that a run and its thread read and change.
const KEYS: [&str; 4] = ["count", "text", "list", "nothing"];

/// Writes to contexts, and waits.
struct Keeps;

#[workflow]
impl Keeps {
    #[step]
    async fn keep(
        &self,
        begin: &Begin,
        run: &RunContext,
        thread: &ThreadContext,
    ) -> Result<(), ContextError> {
        run.set("count", begin.0).await?;
        run.set("text", "some".to_owned()).await?;
        run.set("list", vec![vec![1_i64, -1], vec![i64::MAX, i64::MIN]]).await?;
        run.set("nothing", ()).await?;
        thread.set("count", i64::MAX - 1).await?;
        thread.set("text", "other".to_owned()).await
    }

    /// Any content gives a value or a typed error.
    #[step]
    async fn end(&self, note: &Note, run: &RunContext, thread: &ThreadContext) -> Done {
        for key in KEYS {
            typed(run.get::<u32>(key).await);
            typed(run.get::<Vec<Vec<i64>>>(key).await);
            typed(run.increment(key, i64::from(note.0)).await);
            typed(run.update(key, |was: Option<String>| was.unwrap_or_default() + "!").await);
            typed(thread.increment(key, i64::MAX).await);
            typed(thread.increment(key, i64::MIN).await);
            typed(thread.get::<Value>(key).await);
            typed(thread.remove(key).await);
        }
        typed(run.list(None, 3).await);
        Done(note.0)
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn engine(store: &Arc<RedbStore>) -> Engine {
    let engine = Engine::builder().workflow(Keeps).workflow(Lists);
    engine.store(Arc::clone(store)).build().unwrap()
}

/// A file of runs that wait and have contexts, and the entries of its tables.
struct Valid {
    bytes: Vec<u8>,
    tables: [Vec<Entry>; 6],
}

fn valid() -> &'static Valid {
    static VALID: OnceLock<Valid> = OnceLock::new();
    VALID.get_or_init(|| {
        let place = Place::new();
        runtime().block_on(async {
            let store = Arc::new(place.open());
            let engine = engine(&store);
            let waits = |id: &str| RunOptions::new().id(id);
            let alone = engine.start_with::<Keeps>(Begin(7), waits("a")).await.unwrap();
            let options = waits("b").thread("user-4");
            let together = engine.start_with::<Keeps>(Begin(8), options).await.unwrap();
            let lists = engine.start_with::<Lists>(Begin(4), waits("c")).await.unwrap();
            let ended = engine.start_with::<Lists>(Begin(4), waits("d")).await.unwrap();
            ended.send(Note(1)).await.unwrap();
            ended.outcome().await.unwrap();
            let _ = (alone.settled().await, together.settled().await, lists.settled().await);
            engine.shut_down(END).await;
        });
        let bytes = place.bytes();
        let database = Database::builder().create_with_backend(Memory::of(&bytes)).unwrap();
        let read = database.begin_read().unwrap();
        let tables = std::array::from_fn(|table| {
            let table = read.open_table(definition(table)).unwrap();
            let entries = table.range::<&[u8]>(..).unwrap().map(Result::unwrap);
            entries.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())).collect()
        });
        Valid { bytes, tables }
    })
}

/// The file with changed entries in some of its tables.
fn edited(tables: &[usize], edits: &[Edit]) -> Memory {
    let valid = valid();
    let memory = Memory::of(&valid.bytes);
    let database = Database::builder().create_with_backend(memory.clone()).unwrap();
    let transaction = database.begin_write().unwrap();
    for (kind, at, to, with) in few(edits) {
        // Changes of the format's entry are rare.
        let table = tables[if at % 64 == 0 { tables.len() - 1 } else { pick(*to, tables.len().max(2) - 1) }];
        let entries = &valid.tables[table];
        let Some((key, value)) = entries.get(pick(*at, entries.len())).cloned() else { continue };
        let (other_key, other) = &entries[pick(to.rotate_left(8), entries.len())];
        let mut opened = transaction.open_table(definition(table)).unwrap();
        let edit = (kind / 8, *at, *to, *with);
        match kind % 8 {
            0 => drop(opened.remove(&*key).unwrap()),
            1 => drop(opened.insert(&*key, &**other).unwrap()),
            2 => {
                opened.remove(&*key).unwrap();
                opened.insert(&*bytes_edited(key, edit), &*value).unwrap();
            }
            3 => drop(opened.insert(&*bytes_edited(other_key.clone(), edit), &*value).unwrap()),
            4 => drop(opened.insert(&*key, &*bytes_edited(value, edit)).unwrap()),
            _ => drop(opened.insert(&*key, &*json_edited(value, other, edit)).unwrap()),
        }
    }
    transaction.commit().unwrap();
    drop(database);
    memory
}

/// Changes include numbers of 1, 2, 4 and 8 bytes, and lengths.
fn bytes_edited(mut bytes: Vec<u8>, (kind, at, to, with): Edit) -> Vec<u8> {
    let at = pick(at.rotate_left(16), bytes.len() + 1);
    let from_end = bytes.len().saturating_sub([2, 4, 8, 16][pick(to, 4)]);
    let at = if kind & 1 == 0 { at } else { [0, 1, 4, 8, 16, 18, from_end][pick(to, 7)].min(bytes.len()) };
    match kind / 2 % 6 {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, with),
        2 => bytes[at..].iter_mut().take(usize::from(with % 9)).for_each(|byte| *byte = u8::MAX),
        3 => bytes[at..].iter_mut().take(usize::from(with % 9)).for_each(|byte| *byte = 0),
        4 => bytes.extend_from_within(at..),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = if with % 3 == 0 { byte.wrapping_add(1) } else { *byte ^ (1 << (with % 8)) };
            }
        }
    }
    bytes
}

/// Changes the JSON that the bytes end with.
fn json_edited(bytes: Vec<u8>, other: &[u8], edit: Edit) -> Vec<u8> {
    let Some((before, mut json)) = json_in(&bytes) else { return bytes_edited(bytes, edit) };
    let others: Vec<Value> = json_in(other).map(|(_, json)| json).into_iter().collect();
    mutate::value(&mut json, &others, &[edit]);
    [before, json.to_string().as_bytes()].concat()
}

fn json_in(bytes: &[u8]) -> Option<(&[u8], Value)> {
    let whole = serde_json::from_slice(bytes).ok().map(|json| (&bytes[..0], json));
    whole.or_else(|| {
        let at = bytes.iter().position(|byte| *byte == b'{')?;
        Some((&bytes[..at], serde_json::from_slice(&bytes[at..]).ok()?))
    })
}

/// Lists the non-empty contexts, reads them page by page, and checks that no list returns to an earlier place.
async fn use_contexts(store: &RedbStore) {
    let mut after = None;
    for page in 0.. {
        assert!(page < PAGES, "the list of contexts has no end");
        let Some(scopes) = typed(store.scopes(after.as_ref(), 2).await) else { break };
        let Some(last) = scopes.last() else { break };
        after = Some(last.clone());
        for scope in &scopes {
            read_context(store, scope).await;
        }
    }
}

async fn read_context(store: &RedbStore, scope: &ContextScope) {
    let mut after = None::<String>;
    for page in 0.. {
        assert!(page < PAGES, "the list of a context has no end");
        let Some(page) = typed(store.list(scope, after.as_deref(), 2).await) else { break };
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        for (key, value) in &page {
            typed(value.get::<u32>());
            typed(value.get::<Vec<Vec<i64>>>());
            typed(value.to_json());
            typed(store.get(scope, key).await);
        }
    }
}

/// Resumes the runs of the store, and removes them.
async fn use_engine(store: &Arc<RedbStore>) {
    let engine = engine(store);
    drop(typed(engine.resume_open_runs().await));
    for id in ["a", "b"] {
        if let Some(run) = typed(engine.attach::<Keeps>(id).await) {
            typed(run.send(Note(3)).await);
        }
    }
    if let Some(run) = typed(engine.attach::<Lists>("c").await) {
        typed(run.report_so_far().await);
        typed(run.send(Note(3)).await);
    }
    // Runs that wait for ever stay.
    for _ in 0..PAGES {
        tokio::task::yield_now().await;
        if engine.running().is_empty() {
            break;
        }
    }
    engine.shut_down(END).await;
    for stored in typed(engine.runs(&RunQuery::new()).await).unwrap_or_default() {
        typed(engine.remove_run(&stored.id).await);
    }
    typed(engine.retain(&Retention::none()).await);
}

/// Performs every operation on a file; returns whether all of it is sound.
fn survives(memory: &Memory) -> bool {
    let place = Place::new();
    std::fs::write(&place.file, memory.bytes()).unwrap();
    look_at(&place.file);
    let sound = typed(StoreFile::open(&place.file)).and_then(|mut file| typed(file.check()));
    let copy = place.folder.path().join("copy.redb");
    if let Some(store) = typed(RedbStore::builder().open_backend("memory", Memory::of(&memory.bytes()))) {
        block_on(use_contexts(&store));
        block_on(use_store(&store, &copy));
    }
    if let Some(store) = typed(RedbStore::builder().open_backend("memory", memory.clone())) {
        runtime().block_on(use_engine(&Arc::new(store)));
    }
    sound.is_some_and(|report| report.is_sound())
}

#[test]
fn contexts_with_changed_entries_are_read_or_refused() {
    let check = bolero::check!().with_iterations(INPUTS).with_test_time(TIME);
    let watchdog = Watchdog::of("contexts");
    check.with_type::<Vec<Edit>>().for_each(|edits| {
        watchdog.watch(edits, || survives(&edited(&CONTEXTS, edits)));
    });
}

#[test]
fn a_file_with_changed_entries_is_read_or_refused() {
    let check = bolero::check!().with_iterations(INPUTS).with_test_time(TIME);
    let watchdog = Watchdog::of("entries of files");
    check.with_type::<Vec<Edit>>().for_each(|edits| {
        watchdog.watch(edits, || survives(&edited(&JOURNALS, edits)));
    });
}
