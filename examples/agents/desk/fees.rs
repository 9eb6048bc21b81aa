//! The fee of a refund: a workflow in Rust, which the document runs as a child.

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct FeeAsked {
    cents: u64,
    express: bool,
}

/// The shop keeps two percent, and the cost of an express delivery.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Fee {
    cents: u64,
}

pub(crate) struct Fees {
    pub(crate) express_cents: u64,
}

#[workflow]
impl Fees {
    #[step]
    async fn fee(&self, asked: &FeeAsked) -> Fee {
        let express = if asked.express { self.express_cents } else { 0 };
        Fee { cents: (asked.cents / 50 + express).min(asked.cents) }
    }
}
