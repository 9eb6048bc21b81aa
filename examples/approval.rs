//! A human in the loop: a request with a typed reply and a time limit, and an event that is sent in from outside.
//! While a run waits it holds no place of the engine's; here the program itself plays the people, by a script that
//! has an answer for one customer and none for the others: their requests expire, and the runs go on without.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::time::Duration;

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

/// Nobody asks for it: it comes when the customer uploads it.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Receipt {
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

struct Refunds;

#[workflow(output = Decision)]
impl Refunds {
    /// Asks a person, who has half a second for it.
    #[step]
    async fn ask(&self, refund: &RefundAsked) -> Expiring<ApproveRefund> {
        let RefundAsked { customer, cents } = refund.clone();
        ApproveRefund { customer, cents }.expires_in(Duration::from_millis(500))
    }

    /// Runs when both are there, in whichever order they came. The reply knows the request it answers.
    #[step]
    async fn decide(&self, receipt: &Receipt, approval: &Reply<ApproveRefund>) -> Decision {
        if !approval.granted {
            return declined(format!("{} said no", approval.by));
        }
        refunded(receipt, approval.request(), &approval.by)
    }

    /// Nobody has answered: the run goes on without approval.
    #[step]
    async fn decide_alone(&self, receipt: &Receipt, asked: &Expired<ApproveRefund>) -> Decision {
        if asked.cents > SMALL {
            return declined(format!("nobody answered, and {} cents are too much for that", asked.cents));
        }
        refunded(receipt, asked.request(), "nobody")
    }
}

fn refunded(receipt: &Receipt, asked: &ApproveRefund, by: &str) -> Decision {
    if receipt.cents < asked.cents {
        return declined(format!("the receipt says {} cents", receipt.cents));
    }
    Decision::Refunded(Refunded { cents: asked.cents, by: by.into() })
}

fn declined(reason: String) -> Decision {
    Decision::Declined(Declined { reason })
}

/// What a web page would do, with the answers of the script: it knows no types, only JSON.
async fn people(run: &RunHandle<Refunds>) -> Result<(), Box<dyn Error>> {
    for request in run.requests().await? {
        println!("  asked: {}, to be answered as {}", request.data()?, fields(request.reply_schema()));
        if request.data()?["customer"] == "Ada" {
            run.reply_json(request.seq(), serde_json::json!({"granted": true, "by": "Grace"})).await?;
        }
    }
    Ok(())
}

fn fields(schema: Option<serde_json::Value>) -> String {
    schema.map_or_else(|| "anything".into(), |schema| schema["required"].to_string())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder().workflow(Refunds).build()?;
    for (customer, cents) in [("Ada", 4_200), ("Bob", 900), ("Cleo", 7_000)] {
        let run = engine.start::<Refunds>(RefundAsked { customer: customer.into(), cents }).await?;
        println!("the run of {customer} is {}", run.settled().await);
        run.send(Receipt { cents }).await?;
        people(&run).await?;
        match run.outcome().await? {
            Decision::Refunded(Refunded { cents, by }) => {
                println!("  refunded {cents} cents, approved by {by}");
            }
            Decision::Declined(Declined { reason }) => println!("  declined: {reason}"),
        }
        let late = run.send(Receipt { cents: 1 }).await;
        println!(
            "  a late receipt: {}",
            late.err().map_or_else(|| "taken".into(), |error| error.to_string())
        );
    }
    Ok(())
}
