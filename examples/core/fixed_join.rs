//! Joins a number of events that is known when you write the program: `FixedList<E, N>` fires once, with the first `N`
//! events. Here four suppliers are asked, and the first three bids decide without waiting for the fourth.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::time::Duration;

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Wanted {
    article: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Bid {
    supplier: String,
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Bought {
    text: String,
}

struct Purchase;

#[workflow]
impl Purchase {
    /// Four steps that take one event run at the same time.
    #[step]
    async fn ask_acme(&self, wanted: &Wanted) -> Bid {
        answer("Acme", wanted, 20).await
    }

    /// The second supplier.
    #[step]
    async fn ask_brook(&self, wanted: &Wanted) -> Bid {
        answer("Brook", wanted, 5).await
    }

    /// The third supplier.
    #[step]
    async fn ask_crane(&self, wanted: &Wanted) -> Bid {
        answer("Crane", wanted, 10).await
    }

    /// The fourth supplier; it still computes when the run ends, and is dropped.
    #[step]
    async fn ask_dunlin(&self, wanted: &Wanted) -> Bid {
        answer("Dunlin", wanted, 60_000).await
    }

    /// Runs once, when the third bid is in the log. The report would count a later bid as surplus.
    #[step]
    async fn choose(&self, wanted: &Wanted, bids: &FixedList<Bid, 3>) -> Bought {
        let [first, second, third] = bids.to_array();
        let best = [first, second, third].into_iter().min_by_key(|bid| bid.cents).unwrap_or(first);
        Bought { text: format!("{} from {} for {} cents", wanted.article, best.supplier, best.cents) }
    }
}

/// Plays the part of a slow network request.
async fn answer(supplier: &str, wanted: &Wanted, millis: u64) -> Bid {
    tokio::time::sleep(Duration::from_millis(millis)).await;
    Bid { supplier: supplier.into(), cents: 100 * wanted.article.len() as u64 + millis }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder().workflow(Purchase).build()?;
    let run = engine.start::<Purchase>(Wanted { article: "copper wire".into() }).await?;
    println!("{}", run.outcome().await?.text);
    println!("\n{}", run.report().await?);
    Ok(())
}
