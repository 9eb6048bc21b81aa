//! Queries of a small and of a large file, and bringing a large file of format 1 to the present format.

use std::cell::Cell;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt as _;
use redb::{Database, TableDefinition};
use tempfile::TempDir;
use workflow_benches::durable::records::batch;
use workflow_benches::figure::{Figure, Target, as_float};
use workflow_benches::in_turns;
use workflow_core::store::{EventStore, Position, RunQuery, RunSummary, StoredRun, Write};
use workflow_core::{RunId, RunStatus};
use workflow_redb::{Durability, RedbStore, StoreFile};

use crate::scale::Scale;
use crate::{folder, runtime};

/// How many runs a page has.
const PAGE: usize = 100;

/// How many queries one turn asks.
const QUERIES: u64 = 50;

/// How many runs are begun at the same time.
const AT_ONCE: u64 = 1_024;

/// A file with this many runs.
struct Filled {
    store: RedbStore,
    runs: u64,
    path: PathBuf,
    _folder: TempDir,
}

impl Filled {
    fn new(runs: u64) -> Self {
        let folder = folder();
        let path = folder.path().join("runs.redb");
        let durability = Durability::Buffered(Duration::from_secs(1));
        let store = RedbStore::builder().durability(durability).open(&path).expect("a store can be made");
        let runtime = runtime();
        for from in (0..runs).step_by(usize::try_from(AT_ONCE).unwrap_or(1)) {
            let begun = (from..runs.min(from + AT_ONCE)).map(|number| begin(&store, number));
            for begun in runtime.block_on(futures::future::join_all(begun)) {
                begun.expect("it is appended");
            }
        }
        runtime.block_on(store.compact()).expect("it can be compacted");
        Self { store, runs, path, _folder: folder }
    }

    fn ask(&self, query: &RunQuery) -> Vec<StoredRun> {
        // Outside of a runtime a store reads on the caller's thread.
        let listed = self.store.runs(query).now_or_never().expect("it is done at the first poll");
        black_box(listed.expect("the runs can be listed"))
    }
}

fn id(number: u64) -> RunId {
    format!("order-{number:08}").into()
}

/// The start of a run: one in a millisecond.
fn started(number: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_000 + number)
}

/// One run of 100 has failed, one is open, two are of another workflow; a thread has 20 runs.
async fn begin(store: &RedbStore, number: u64) -> Result<(), workflow_core::store::StoreError> {
    let workflow = if number.is_multiple_of(50) { "Returns" } else { "Orders" };
    let mut run = RunSummary::running(workflow, started(number));
    run.thread = Some(format!("customer-{:08}", number / 20).into());
    run = match number % 100 {
        0 => run,
        1 => run.ended(RunStatus::Failed),
        _ => run.ended(RunStatus::Completed),
    };
    run.ended = run.status.is_ended().then(|| started(number + 1));
    store.append(&id(number), Position(0), Write { run, ..batch(0) }).await
}

/// A query about the run with this number.
type Query = fn(u64) -> RunQuery;

const QUERIED: [(&str, Query); 8] = [
    ("query/run", |number| RunQuery::new().run(id(number))),
    ("query/by-id", |number| RunQuery::new().after(id(number))),
    ("query/newest", |_| RunQuery::new().newest_first()),
    ("query/older", |number| RunQuery::new().newest_first().older_than(started(number), id(number))),
    ("query/failed", |_| RunQuery::new().newest_first().status(RunStatus::Failed)),
    ("query/workflow", |_| RunQuery::new().newest_first().workflow("Returns")),
    ("query/open", |_| RunQuery::new().newest_first().open()),
    ("query/thread", |number| RunQuery::new().newest_first().thread(format!("customer-{:08}", number / 20))),
];

pub(crate) fn measure(scale: &Scale) -> Vec<Figure> {
    let [small, large] = scale.stored_runs.map(Filled::new);
    let mut figures: Vec<Figure> =
        QUERIED.iter().flat_map(|queried| compare(scale, &small, &large, *queried)).collect();
    let path = large.path.clone();
    let Filled { store, _folder: folder, .. } = large;
    drop(store);
    figures.extend(upgrade(&path));
    drop(folder);
    figures
}

/// A query of the large file, compared with the same of the small one: of pages that the store has in memory, and of runs
/// that nobody has asked for before, whose pages a store reads from a file that is larger than its cache.
fn compare(scale: &Scale, small: &Filled, large: &Filled, (name, query): (&str, Query)) -> [Figure; 2] {
    let asked = Cell::new(0);
    let ask_all = |file: &Filled, queries: &[RunQuery]| {
        let began = Instant::now();
        for query in queries {
            assert!(!file.ask(query).is_empty(), "{query:?} finds nothing");
        }
        began.elapsed()
    };
    let turn = |file: &Filled, before: bool| {
        let first = asked.replace(asked.get() + QUERIES);
        // Other ones in each turn, spread over the file. The first and the last runs have no full page beside them.
        let number = |asked: u64| file.runs / 8 + asked * 104_729 % (file.runs - file.runs / 4);
        let queries: Vec<_> =
            (first..first + QUERIES).map(|asked| query(number(asked)).at_most(PAGE)).collect();
        if before {
            ask_all(file, &queries);
        }
        ask_all(file, &queries)
    };
    let each = |time: Duration| time.as_secs_f64() * 1e6 / as_float(QUERIES);
    [true, false].map(|before| {
        let times =
            in_turns(scale.turns, vec![Box::new(|| turn(large, before)), Box::new(|| turn(small, before))]);
        let name = if before { name.to_owned() } else { format!("{name}/first") };
        let of = if before { "the same query of the small file" } else { "the same, of pages not in memory" };
        let figure = Figure::new(name, "us", each(times[0]), each(times[1])).beside(of);
        if before { figure.target(Target::AtMost(1.5)) } else { figure }
    })
}

/// Opening a file of format 1 for the first time, compared with reading all of it.
fn upgrade(path: &Path) -> [Figure; 2] {
    // A file of format 1 has no index. Its records lack checksums too, which an upgrade leaves as they are.
    let file = Database::open(path).expect("the file can be opened");
    let transaction = file.begin_write().expect("it can be written");
    let index = TableDefinition::<&[u8], &[u8]>::new("workflow.index");
    assert!(transaction.delete_table(index).expect("the index can be removed"));
    let meta = TableDefinition::<&[u8], &[u8]>::new("workflow.meta");
    let mut meta = transaction.open_table(meta).expect("there is a format");
    meta.insert(&b"format"[..], &1_u32.to_be_bytes()[..]).expect("it can be changed");
    drop(meta);
    transaction.commit().expect("it can be written");
    drop(file);

    let began = Instant::now();
    let (listed, runs) = scan(path, false);
    let listing = began.elapsed();
    let began = Instant::now();
    let (read, _) = scan(path, true);
    let scanning = began.elapsed();
    assert!(read == 2 * runs && listed == 0);

    let began = Instant::now();
    drop(RedbStore::open(path).expect("it can be opened"));
    let upgraded = began.elapsed();
    let file = StoreFile::open(path).expect("it can be opened");
    assert_eq!(file.runs(&RunQuery::new().newest_first().at_most(1)).expect("a run").len(), 1);
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let figure =
        |name, other, beside| Figure::new(name, "ms", millis(upgraded), millis(other)).beside(beside);
    [
        figure("upgrade", scanning, "reading all runs and records").target(Target::AtMost(1.2)),
        figure("upgrade", listing, "listing all runs"),
    ]
}

/// Lists all runs, and reads their records on demand. Returns the numbers of records and runs.
fn scan(path: &Path, with_records: bool) -> (usize, usize) {
    let file = StoreFile::open(path).expect("it can be opened");
    let (mut query, mut records, mut runs) = (RunQuery::new(), 0, 0);
    loop {
        let page = file.runs(&query).expect("the runs can be listed");
        for stored in page.iter().filter(|_| with_records) {
            records += file.read(&stored.id, Position(0), 1_000).expect("a run can be read").len();
        }
        runs += page.len();
        match page.last() {
            Some(last) => query = query.after(last.id.clone()),
            None => return (records, runs),
        }
    }
}
