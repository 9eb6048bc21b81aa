//! An assistant with two tools, one of which a person approves, offline: its model follows a script.
//!
//! ```text
//! cargo run -p examples-agents --example assistant
//! ```

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde_json::json;
use workflow_agent::model::{ScriptedModel, ScriptedReply};
use workflow_agent::prelude::*;

#[derive(Serialize)]
struct Order {
    number: u64,
    article: &'static str,
    cents: u64,
}

/// Looks an order up.
#[tool(read_only)]
async fn order(
    /// The number of the order
    number: u64,
) -> Result<Order, ToolError> {
    match number {
        7 => Ok(Order { number, article: "a lamp", cents: 4_900 }),
        _ => Err(ToolError::new(format!("there is no order {number}"))),
    }
}

/// The tools' dependencies are fields: here, the balance of the shop.
struct Bank {
    cents: AtomicU64,
}

#[tools]
impl Bank {
    /// Pays money back to the customer.
    #[tool(approval, timeout = "10s")]
    async fn refund(&self, order: u64, cents: u64, context: &ToolContext) -> String {
        self.cents.fetch_sub(cents, Ordering::Relaxed);
        format!("order {order}: {cents} cents are paid back, under the key {}", context.idempotency_key())
    }
}

/// The replies of a model, one for each call.
fn script() -> ScriptedModel {
    ScriptedModel::new([
        ScriptedReply::call("call-1", "order", json!({ "number": 7 })).saying("Let me look. "),
        ScriptedReply::call("call-2", "refund", json!({ "order": 7, "cents": 4_900 })),
        ScriptedReply::chunks(["The lamp ", "is paid ", "back."]),
    ])
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let assistant = Agent::builder("assistant")
        .model(script())
        .identity("You help customers of the shop.")
        .tool(order)
        .tools(Bank { cents: AtomicU64::new(100_000) })
        .budget(Budget::tokens(50_000))
        .build()?;
    let engine = Engine::builder().agent(assistant.clone()).build()?;

    let session = Session::of(&engine, &assistant).thread("ada").id("chat-1");
    let mut run = session.say("The lamp of order 7 is broken.").await?;
    while let Some(shown) = run.next().await {
        match shown {
            Shown::Delta(text) => print!("{text}"),
            Shown::ToolUse(call) => println!("\n> {} {}", call.tool, call.arguments),
            Shown::ToolResult(done) => println!("< {}", done.text),
            Shown::Approval(approval) => {
                println!("? {} {} (approved by this program)", approval.tool(), approval.arguments());
                approval.approve().await?;
            }
            Shown::Done(outcome) => println!("\n{} tokens", outcome.usage().tokens()),
            _ => {}
        }
    }
    Ok(())
}
