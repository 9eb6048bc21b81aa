//! A run that cannot end, and the report that explains why: which step should have emitted which event. No timeout is
//! involved; the run ends the moment it stalls.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order {
    sku: String,
    pieces: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Reserved {
    pieces: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct SoldOut {
    missing: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Address {
    street: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Shipped {
    label: String,
}

/// The state of the shelf.
#[derive(Debug, EventSet)]
enum Stock {
    Reserved(Reserved),
    SoldOut(SoldOut),
}

struct Warehouse {
    pieces: u32,
}

#[workflow]
impl Warehouse {
    /// Takes the pieces off the shelf, if there are enough.
    #[step]
    async fn reserve(&self, order: &Order) -> Stock {
        match order.pieces.checked_sub(self.pieces) {
            None | Some(0) => Stock::Reserved(Reserved { pieces: order.pieces }),
            Some(missing) => Stock::SoldOut(SoldOut { missing }),
        }
    }

    /// Knows the way to one customer.
    #[step]
    async fn address(&self, order: &Order) -> Address {
        Address { street: format!("{} Lane", order.sku.len()) }
    }

    /// Needs both. A step for an empty shelf is missing.
    #[step]
    async fn ship(&self, reserved: &Reserved, address: &Address) -> Shipped {
        Shipped { label: format!("{} pieces to {}", reserved.pieces, address.street) }
    }
}

/// Orders more than there is.
async fn order() -> Result<Shipped, RunError> {
    Warehouse { pieces: 3 }.run(Order { sku: "teapot".into(), pieces: 5 }).await
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    match order().await {
        Err(RunError::Stalled(report)) => println!("{report}"),
        Ok(shipped) => println!("{}", shipped.label),
        Err(error) => return Err(error),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages that quote the report.
    const QUOTES: [(&str, &str); 2] = [
        ("docs/guide/stalls.md", include_str!("../../docs/guide/stalls.md")),
        ("ARCHITECTURE.md", include_str!("../../ARCHITECTURE.md")),
    ];

    #[tokio::test]
    async fn the_report_is_the_one_that_the_documents_quote() {
        let Err(RunError::Stalled(report)) = order().await else { panic!("the run did not stall") };
        for (file, text) in QUOTES {
            assert!(text.contains(&format!("```text\n{report}\n```")), "{file} does not quote:\n{report}");
        }
    }
}
