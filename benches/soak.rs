//! An order service under load for a long time, in one process over one file: `soak MINUTES`.
//!
//! Orders are packed in parallel, wait for a person until the engine has unloaded them, are charged by a bank that
//! often fails, shipped by child runs, and some are cancelled and cleaned up. Ended runs are removed on a schedule. Prints
//! a line each minute: heap in use, memory of the process, bytes of the file, orders a second, and the time from a reply
//! to the end of its order. Heap, file and times have to stay level; the memory of the process is more than the heap by
//! what the allocator keeps. Panics if an order is charged twice or not at all.

use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use peak_alloc::PeakAlloc;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use workflow_core::prelude::*;
use workflow_core::store::Retention;
use workflow_core::{ErrorClass, Retries, RetryPolicy, RunHandle, RunOptions, RunStatus};
use workflow_redb::RedbStore;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// How many callers start orders and answer for people at the same time.
const CALLERS: usize = 32;

/// How many orders wait for a person.
const WAITING: usize = 5_000;

/// How many ended runs stay in the file.
const KEPT: usize = 5_000;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order {
    number: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Line {
    weight: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Packed {
    weight: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Approve {
    weight: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Charged {
    weight: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Shipped {
    weight: u64,
}

/// The acts of the service outside of its runs.
#[derive(Debug, Clone, Default)]
struct Bank {
    calls: Arc<AtomicU64>,
    charges: Arc<AtomicU64>,
    refunds: Arc<AtomicU64>,
}

struct Orders(Bank);

impl Orders {
    fn soon() -> RetryPolicy {
        let soon = Retries::exponential(20, Duration::from_millis(2)).cap(Duration::from_millis(10));
        RetryPolicy::standard().on(ErrorClass::Transient, soon)
    }
}

#[workflow]
impl Orders {
    #[step]
    async fn split(&self, order: &Order) -> FanOut<Line> {
        (1..=4).map(|line| Line { weight: order.number % 7 + line }).collect()
    }

    #[step]
    async fn pack(&self, line: &Line) -> Packed {
        Packed { weight: line.weight }
    }

    #[step]
    async fn ask(&self, packed: &Gather<Packed>) -> Approve {
        Approve { weight: packed.ok().map(|packed| packed.weight).sum() }
    }

    /// The bank fails every third call.
    #[step(retry = Self::soon())]
    async fn charge(&self, approval: &Reply<Approve>) -> Result<Charged, StepError> {
        if self.0.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
            return Err(StepError::transient("the bank is busy"));
        }
        self.0.charges.fetch_add(1, Ordering::Relaxed);
        Ok(Charged { weight: approval.request().weight })
    }

    /// Orders of some numbers cannot be shipped.
    #[step]
    async fn ship(
        &self,
        order: &Order,
        charged: &Charged,
        children: &Children,
    ) -> Result<Shipped, StepError> {
        if order.number % 16 == 5 {
            return Err(StepError::permanent("nobody ships there"));
        }
        let parcel = children.run::<Parcels>(Parcel { weight: charged.weight }).await?;
        Ok(Shipped { weight: parcel.weight })
    }

    #[step(on_end)]
    async fn refund(&self, _charged: &Charged) {
        self.0.refunds.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Parcel {
    weight: u64,
}

struct Parcels;

#[workflow]
impl Parcels {
    #[step]
    async fn carry(&self, parcel: &Parcel) -> Shipped {
        Shipped { weight: parcel.weight }
    }
}

/// The state that the callers share.
struct Load {
    engine: Engine,
    numbers: AtomicU64,
    /// The orders that wait for a person.
    waiting: Mutex<VecDeque<u64>>,
    completed: AtomicU64,
    failed: AtomicU64,
    times: Mutex<Vec<Duration>>,
    is_over: AtomicBool,
}

fn id(number: u64) -> String {
    format!("order-{number}")
}

impl Load {
    async fn start(&self) -> Result<(), Box<dyn Error>> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let run =
            self.engine.start_with::<Orders>(Order { number }, RunOptions::new().id(id(number))).await?;
        assert_eq!(run.settled().await, RunStatus::Waiting, "{}", id(number));
        self.waiting.lock().await.push_back(number);
        Ok(())
    }

    /// Answers for a person, or cancels, and waits for the end.
    async fn decide(&self, number: u64) -> Result<(), Box<dyn Error>> {
        let run: RunHandle<Orders> = self.engine.attach(id(number)).await?;
        if number % 10 == 3 {
            run.cancel("the customer changed their mind").await?;
            assert_eq!(run.settled().await, RunStatus::Cancelled);
            return Ok(());
        }
        let began = Instant::now();
        run.reply_to::<Approve>(true).await?;
        match run.outcome().await {
            Ok(_) => self.completed.fetch_add(1, Ordering::Relaxed),
            Err(_) if number % 16 == 5 => self.failed.fetch_add(1, Ordering::Relaxed),
            Err(error) => return Err(error.into()),
        };
        self.times.lock().await.push(began.elapsed());
        Ok(())
    }

    async fn call(&self) -> Result<(), Box<dyn Error>> {
        while !self.is_over.load(Ordering::Relaxed) {
            self.start().await?;
            let oldest = {
                let mut waiting = self.waiting.lock().await;
                if waiting.len() > WAITING { waiting.pop_front() } else { None }
            };
            if let Some(number) = oldest {
                self.decide(number).await?;
            }
        }
        Ok(())
    }

    #[expect(clippy::print_stdout, reason = "it is asked for them")]
    async fn watch(&self, minutes: u64, file: &Path) -> Result<(), Box<dyn Error>> {
        println!("minute  heap MiB  memory MiB  file MiB  orders/s  reply to end ms: median, 99 of 100");
        let mut before = 0;
        for minute in 1..=minutes {
            tokio::time::sleep(Duration::from_mins(1)).await;
            let mut times = std::mem::take(&mut *self.times.lock().await);
            times.sort_unstable();
            let of_hundred = |share: usize| {
                times.get(times.len() * share / 100).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
            };
            let orders = self.completed.load(Ordering::Relaxed);
            println!(
                "{minute:6}  {:8}  {:10}  {:8}  {:8}  {:.2}, {:.2}",
                HEAP.current_usage() >> 20,
                resident() >> 20,
                std::fs::metadata(file)?.len() >> 20,
                (orders - before) / 60,
                of_hundred(50),
                of_hundred(99),
            );
            before = orders;
            self.engine.retain(&Retention::none().last(KEPT)).await?;
        }
        self.is_over.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// The memory of the process in bytes; 0 where the system does not report it.
fn resident() -> u64 {
    const PAGE: u64 = 4_096;
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).map_or(0, |pages| pages * PAGE)
}

async fn soak(minutes: u64, file: &Path) -> Result<(), Box<dyn Error>> {
    let (store, bank) = (RedbStore::open(file)?, Bank::default());
    let builder = Engine::builder().workflow(Orders(bank.clone())).workflow(Parcels).store(store);
    let engine = builder.unload_waiting_after(Duration::from_secs(1)).build()?;
    let load = Load {
        engine,
        numbers: AtomicU64::new(0),
        waiting: Mutex::default(),
        completed: AtomicU64::new(0),
        failed: AtomicU64::new(0),
        times: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    let calls = join_all((0..CALLERS).map(|_| load.call()));
    let (watched, called) = futures::join!(load.watch(minutes, file), calls);
    watched?;
    called.into_iter().collect::<Result<(), _>>()?;
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!(of(&bank.charges), of(&load.completed) + of(&load.failed), "each is charged once");
    assert_eq!(of(&bank.refunds), of(&load.failed), "each that failed is refunded once");
    load.engine.shut_down(Duration::from_secs(30)).await;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let minutes =
        std::env::args().nth(1).and_then(|minutes| minutes.parse().ok()).ok_or("how many minutes")?;
    let folder = tempfile::tempdir()?;
    Runtime::new()?.block_on(soak(minutes, &folder.path().join("runs.redb")))
}
