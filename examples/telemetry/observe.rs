//! Watching a run: its displayed items, your own observer, and `tracing` spans. None of the three can slow the run down
//! or fail it.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use workflow_core::DisplayItem;
use workflow_core::observe::{Observation, Observed, Observer, TracingObserver};
use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Numbers {
    up_to: u64,
}

/// A pure display event: it does not enter the log and triggers no step.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Progress {
    percent: u64,
}

/// Triggers `report`, and is also displayed when it enters the log.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(control, display)]
struct Primes {
    found: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Reported {
    text: String,
}

struct Sieve;

#[workflow]
impl Sieve {
    /// Viewers receive display items at once, while the step still runs.
    #[step]
    async fn sift(&self, numbers: &Numbers, display: &Display) -> Primes {
        let mut primes: Vec<u64> = Vec::new();
        for number in 2..=numbers.up_to {
            if primes.iter().take_while(|prime| *prime * *prime <= number).all(|prime| number % prime != 0) {
                primes.push(number);
            }
            if number * 4 % numbers.up_to == 0 {
                display.show(Progress { percent: number * 100 / numbers.up_to });
            }
        }
        tracing::info!(found = primes.len(), "sifted");
        Primes { found: primes.len() }
    }

    /// Puts it into words.
    #[step]
    async fn report(&self, numbers: &Numbers, primes: &Primes) -> Reported {
        Reported { text: format!("{} primes up to {}", primes.found, numbers.up_to) }
    }
}

/// Counts its observations. It has a thread of its own, so it may block.
#[derive(Default)]
struct Tally(Arc<Mutex<BTreeMap<String, u32>>>);

impl Observer for Tally {
    fn observe(&self, observation: &Observation) {
        let seen = match &observation.what {
            Observed::EventLogged { event, .. } => format!("logged {}", event.name()),
            Observed::ExecutionSucceeded { step, .. } => format!("executed {step}"),
            Observed::RunEnded { status } => format!("ended {status}"),
            _ => return,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(seen).or_default() += 1;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().without_time().with_ansi(false).with_writer(std::io::stdout).init();
    let tally = Tally::default();
    let seen = Arc::clone(&tally.0);
    let engine =
        Engine::builder().workflow(Sieve).observer(TracingObserver::new()).observer(tally).build()?;
    let run = engine.start::<Sieve>(Numbers { up_to: 10_000 }).await?;

    let mut shown = run.display();
    while let Some(item) = shown.next().await {
        match (&item, item.event::<Progress>()) {
            (_, Some(progress)) => println!("shown: {} %", progress.percent),
            (DisplayItem::Shown { step, event, .. }, _) => println!("shown: {} by {step}", event.name()),
            (DisplayItem::Ended { status }, _) => println!("the display ended: {status}"),
            _ => println!("{item:?}"),
        }
    }
    println!("{}", run.outcome().await?.text);

    engine.cancel_all("the engine is shutting down", Duration::from_secs(5)).await;
    for (what, times) in seen.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        println!("observed: {what} x{times}");
    }
    Ok(())
}
