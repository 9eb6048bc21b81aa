//! The tools of the assistant.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use serde::Serialize;
use workflow_agent::prelude::*;

#[derive(Serialize)]
pub(crate) struct Order {
    number: u64,
    article: &'static str,
    cents: u64,
}

/// Looks an order up.
#[tool(read_only)]
pub(crate) async fn order(
    /// The number of the order
    number: u64,
) -> Result<Order, ToolError> {
    match number {
        7 => Ok(Order { number, article: "a lamp", cents: 4_900 }),
        8 => Ok(Order { number, article: "a chair", cents: 12_000 }),
        _ => Err(ToolError::new(format!("there is no order {number}"))),
    }
}

/// The desk that pays money back. Its file plays the part of a bank that detects repetitions by key.
pub(crate) struct Desk {
    refunds: PathBuf,
    kill_after: Option<u64>,
}

impl Desk {
    pub(crate) fn new(refunds: PathBuf, kill_after: Option<u64>) -> Self {
        Self { refunds, kill_after }
    }

    fn paid(&self) -> std::io::Result<Vec<String>> {
        match std::fs::read_to_string(&self.refunds) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

#[tools]
impl Desk {
    /// Pays the price of an order back to the customer.
    #[tool(approval, idempotent, timeout = "10s")]
    async fn refund(&self, order: u64, cents: u64, context: &ToolContext) -> Result<String, ToolError> {
        let line = format!("{} order {order}: {cents} cents", context.idempotency_key());
        let mut paid = self.paid()?;
        if !paid.contains(&line) {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.refunds)?;
            writeln!(file, "{line}")?;
            paid.push(line);
            if self.kill_after == Some(paid.len() as u64) {
                // No destructor runs, and nothing is flushed: as if the power failed.
                std::process::abort();
            }
        }
        Ok(format!("{cents} cents of order {order} are paid back"))
    }
}
