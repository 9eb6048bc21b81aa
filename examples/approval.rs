//! A human in the loop: a request with a typed reply, and an event that is sent in from outside. While the run
//! waits it holds no task slot; here the program itself plays the people who answer.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use workflow_core::prelude::*;

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
    /// Asks a person.
    #[step]
    async fn ask(&self, refund: &RefundAsked) -> ApproveRefund {
        ApproveRefund { cents: refund.cents }
    }

    /// Runs when both are there, in whichever order they came. The reply knows the request it answers.
    #[step]
    async fn decide(&self, receipt: &Receipt, approval: &Reply<ApproveRefund>) -> Decision {
        let asked = approval.request().cents;
        if !approval.granted {
            return Decision::Declined(Declined { reason: format!("{} said no", approval.by) });
        }
        if receipt.cents < asked {
            return Decision::Declined(Declined {
                reason: format!("the receipt says {} cents", receipt.cents),
            });
        }
        Decision::Refunded(Refunded { cents: asked, by: approval.by.clone() })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder().workflow(Refunds).build()?;
    let run = engine.start::<Refunds>(RefundAsked { customer: "Ada".into(), cents: 4_200 }).await?;

    println!("the run is {}", run.settled().await);
    run.send(Receipt { cents: 4_200 }).await?;
    for request in run.requests().await? {
        let Some((id, asked)) = request.id::<ApproveRefund>().zip(request.downcast_ref::<ApproveRefund>())
        else {
            continue;
        };
        println!("{} cents? Granted.", asked.cents);
        run.reply(id, Approval { granted: true, by: "Grace".into() }).await?;
    }
    match run.outcome().await? {
        Decision::Refunded(Refunded { cents, by }) => println!("refunded {cents} cents, approved by {by}"),
        Decision::Declined(Declined { reason }) => println!("declined: {reason}"),
    }
    let late = run.send(Receipt { cents: 1 }).await;
    println!("a late receipt: {}", late.err().map_or_else(|| "taken".into(), |error| error.to_string()));
    Ok(())
}
