//! A human in the loop: a request with a typed reply and a time limit.
//! While the run waits for you it costs no task and holds no place of the engine's.
//!
//! `cargo run --release --example approval -- SECONDS` asks at the terminal; answer with `y` or `n`. Whoever says nothing
//! for so many seconds, 10 if not told otherwise, is nobody: the request expires, and the run goes on without.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::io::BufRead as _;
use std::time::Duration;

use tokio::sync::mpsc;
use workflow_core::RunHandle;
use workflow_core::prelude::*;

/// Refunds up to so much are paid when nobody has answered in time.
const SMALL: u64 = 1_000;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct RefundAsked {
    customer: String,
    cents: u64,
}

/// Its schema tells a web page which form to show.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
struct Approval {
    granted: bool,
    by: String,
}

/// Logged like any event; the run then waits for its `Approval`.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Approval)]
struct ApproveRefund {
    customer: String,
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Refunded {
    cents: u64,
    by: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Declined {
    reason: String,
}

#[derive(Debug, EventSet)]
enum Decision {
    Refunded(Refunded),
    Declined(Declined),
}

struct Refunds {
    patience: Duration,
}

#[workflow(output = Decision)]
impl Refunds {
    /// Asks a person, whose time is limited.
    #[step]
    async fn ask(&self, refund: &RefundAsked) -> Expiring<ApproveRefund> {
        let RefundAsked { customer, cents } = refund.clone();
        ApproveRefund { customer, cents }.expires_in(self.patience)
    }

    /// The reply knows the request it answers.
    #[step]
    async fn decide(&self, approval: &Reply<ApproveRefund>) -> Decision {
        if !approval.granted {
            return Decision::Declined(Declined { reason: format!("{} said no", approval.by) });
        }
        Decision::Refunded(Refunded { cents: approval.request().cents, by: approval.by.clone() })
    }

    /// Nobody has answered: the run goes on without approval.
    #[step]
    async fn decide_alone(&self, asked: &Expired<ApproveRefund>) -> Decision {
        if asked.cents > SMALL {
            let reason = format!("nobody answered, and {} cents are too much for that", asked.cents);
            return Decision::Declined(Declined { reason });
        }
        Decision::Refunded(Refunded { cents: asked.cents, by: "nobody".into() })
    }
}

/// What a web page would do too: it knows no types, only JSON. Without anybody to say something it gives up.
async fn person(run: &RunHandle<Refunds>) -> Result<(), Box<dyn Error>> {
    let mut said = said();
    for request in run.requests().await? {
        println!("may this be refunded? [y/n] {}", request.data()?);
        let granted = loop {
            match said.recv().await.as_deref() {
                Some("y") => break true,
                Some("n") => break false,
                Some(_) => println!("y or n?"),
                None => return Ok(()),
            }
        };
        let reply = serde_json::json!({"granted": granted, "by": "you"});
        if let Err(late) = run.reply_json(request.seq(), reply).await {
            println!("too late: {late}");
        }
    }
    Ok(())
}

/// The lines of the terminal, read on a thread that nobody waits for: the program ends while it still reads.
fn said() -> mpsc::Receiver<String> {
    let (sender, said) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim().to_lowercase();
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    said
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(10), |seconds| seconds.parse());
    let seconds = seconds.map_err(|error| format!("for how many seconds to wait: {error}"))?;
    let engine = Engine::builder().workflow(Refunds { patience: Duration::from_secs(seconds) }).build()?;
    let run = engine.start::<Refunds>(RefundAsked { customer: "Ada".into(), cents: 4_200 }).await?;
    println!("the run is {}", run.settled().await);
    let decision = tokio::select! {
        decision = run.outcome() => decision?,
        answered = person(&run) => {
            answered?;
            run.outcome().await?
        }
    };
    match decision {
        Decision::Refunded(Refunded { cents, by }) => println!("refunded {cents} cents, approved by {by}"),
        Decision::Declined(Declined { reason }) => println!("declined: {reason}"),
    }
    Ok(())
}
