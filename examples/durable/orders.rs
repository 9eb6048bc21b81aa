//! An order that survives its process: reserve, charge, ask a person about large amounts, ship.
//!
//! ```text
//! cargo run -p examples-durable --example orders -- FOLDER                 # starts or resumes the order
//! cargo run -p examples-durable --example orders -- FOLDER --crash-at 3    # is killed before the third write to the store
//! ```
//!
//! The folder holds the store and a ledger of side effects, each line with the key of the execution that performed it.
//! Before a side effect, the code checks whether the ledger has its key. Without a folder the example uses a temporary
//! one.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::store::{
    ContextStore, EngineId, EventStore, Position, Record, Retention, RunQuery, StoreFuture, StoredRun, Write,
};
use workflow_core::{ErrorClass, ResumeError, Retries, RetryPolicy, RunHandle, RunId, RunOptions, RunStatus};
use workflow_redb::RedbStore;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order {
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Reserved;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Approve {
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Charged;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Shipped {
    parcel: String,
}

struct Orders {
    ledger: PathBuf,
}

#[workflow]
impl Orders {
    #[step]
    async fn reserve(&self, order: &Order, info: &RunInfo) -> Result<(Reserved, Approve), StepError> {
        self.once("reserved", info)?;
        Ok((Reserved, Approve { cents: order.cents }))
    }

    /// The bank is busy the first time.
    #[step(retry = RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(1, Duration::from_millis(20))))]
    async fn charge(&self, _: &Reserved, yes: &Reply<Approve>, info: &RunInfo) -> Result<Charged, StepError> {
        if !**yes {
            return Err(StepError::rejected("nobody approved it"));
        }
        if info.attempt() == 1 {
            return Err(StepError::transient("the bank is busy"));
        }
        self.once("charged", info)?;
        Ok(Charged)
    }

    #[step]
    async fn ship(&self, _: &Charged, info: &RunInfo) -> Result<Shipped, StepError> {
        self.once("shipped", info)?;
        Ok(Shipped { parcel: "P-1".into() })
    }
}

impl Orders {
    /// Performs a side effect unless the ledger already has it: after a crash an execution runs again.
    fn once(&self, what: &str, info: &RunInfo) -> Result<(), StepError> {
        let line = format!("{what} {}\n", info.idempotency_key());
        if !fs::read_to_string(&self.ledger).unwrap_or_default().contains(&line) {
            OpenOptions::new().create(true).append(true).open(&self.ledger)?.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}

/// Kills its process before a certain write.
struct Fragile {
    store: RedbStore,
    writes: AtomicU64,
    crash_at: Option<u64>,
}

impl EventStore for Fragile {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        if Some(self.writes.fetch_add(1, Ordering::SeqCst) + 1) == self.crash_at {
            let kill = format!("kill -9 {}", std::process::id());
            let _ = Command::new("sh").args(["-c", &kill]).status();
        }
        self.store.append(run, expected, batch)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.store.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.store.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.store.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.store.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.store.lease(engine, duration)
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        self.store.contexts()
    }
}

/// Resumes the order, or starts it.
async fn order(engine: &Engine) -> Result<RunHandle<Orders>, Box<dyn Error>> {
    match engine.attach::<Orders>("order-17").await {
        Err(ResumeError::UnknownRun { .. }) => {
            println!("begins");
            let options = RunOptions::new().id("order-17");
            Ok(engine.start_with::<Orders>(Order { cents: 12_000 }, options).await?)
        }
        found => Ok(found?),
    }
}

async fn run(folder: &Path, crash_at: Option<u64>) -> Result<(), Box<dyn Error>> {
    let (ledger, store) = (folder.join("ledger"), RedbStore::open(folder.join("orders.redb"))?);
    let fragile = Fragile { store, writes: AtomicU64::new(0), crash_at };
    let engine = Engine::builder().workflow(Orders { ledger: ledger.clone() }).store(fragile).build()?;
    let run = order(&engine).await?;
    while run.settled().await == RunStatus::Waiting {
        for request in run.requests().await? {
            if let Some(id) = request.id::<Approve>() {
                println!("approves {}", request.data()?);
                run.reply(id, true).await?;
            }
        }
    }
    println!("shipped {}", run.outcome().await?.parcel);
    print!("{}", fs::read_to_string(ledger)?);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        let folder = tempfile::tempdir()?;
        return run(folder.path(), None).await;
    };
    let crash_at = arguments.next().filter(|flag| flag == "--crash-at").and_then(|_| arguments.next());
    run(Path::new(&folder), crash_at.map(|number| number.parse()).transpose()?).await
}
