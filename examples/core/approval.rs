//! A human in the loop: a request with a typed reply and a time limit. While the run waits for you, it holds neither a
//! task nor a permit of the engine.
//!
//! `cargo run -p examples --example approval -- SECONDS` asks at the terminal; answer with `y` or `n`. Without an answer
//! within that time, by default 10 seconds, the request expires, and the run decides alone.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::io::BufRead as _;
use std::time::Duration;

use tokio::sync::mpsc;
use workflow_core::RunHandle;
use workflow_core::prelude::*;

/// Without an answer, refunds up to this amount are paid.
const SMALL: u64 = 1_000;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct RefundAsked {
    customer: String,
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
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
    /// Asks a person, with a time limit.
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

    /// Without an answer, the run decides by the amount.
    #[step]
    async fn decide_alone(&self, asked: &Expired<ApproveRefund>) -> Decision {
        if asked.cents > SMALL {
            let reason = format!("nobody answered, and {} cents are too much for that", asked.cents);
            return Decision::Declined(Declined { reason });
        }
        Decision::Refunded(Refunded { cents: asked.cents, by: "nobody".into() })
    }
}

/// Works like a web page: it knows no types, only JSON. At the end of the input it gives up.
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

/// The lines of the terminal, read on a detached thread: the program may end while the thread still reads.
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
