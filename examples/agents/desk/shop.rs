//! The functions that the document names, and two files: the calls of the shop, and the payments of its bank.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workflow_graph::{NodeContext, NodeError, Registry};

use crate::fees::Fees;

#[derive(Deserialize, JsonSchema)]
struct Find {
    order: String,
}

#[derive(Serialize, JsonSchema)]
struct Order {
    customer: String,
    paid: u64,
    express: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Of {
    customer: String,
}

#[derive(Serialize, JsonSchema)]
struct History {
    refunds: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Refund {
    order: String,
    cents: u64,
}

#[derive(Serialize, JsonSchema)]
struct Refunded {
    cents: u64,
}

pub(crate) struct Shop {
    folder: PathBuf,
    /// The time that a look into the customer's history takes.
    work: Duration,
    /// To see a crash: the process is killed once the bank has paid.
    kill_after_payment: bool,
}

impl Shop {
    pub(crate) fn new(folder: &Path, work: Duration, kill_after_payment: bool) -> Self {
        Self { folder: folder.to_owned(), work, kill_after_payment }
    }

    /// The functions by the names that documents use. With their schemas, documents are checked against them.
    pub(crate) fn registry(self) -> Registry {
        let shop = Arc::new(self);
        let (finds, looks, pays) = (shop.clone(), shop.clone(), shop);
        Registry::new()
            .described("orders.find", move |find: Find, _| {
                let shop = finds.clone();
                async move { shop.find(&find) }
            })
            .described("customers.history", move |of: Of, context: NodeContext| {
                let shop = looks.clone();
                async move { shop.history(&of, &context).await }
            })
            .described("bank.refund", move |refund: Refund, context: NodeContext| {
                let shop = pays.clone();
                async move { shop.pay(&refund, context.idempotency_key()) }
            })
            .workflow::<Fees>()
    }

    fn find(&self, find: &Find) -> Result<Order, NodeError> {
        self.append("calls.txt", &format!("find {}", find.order))?;
        match &*find.order {
            "A1" => Ok(Order { customer: "Ada".into(), paid: 30_000, express: false }),
            "A2" => Ok(Order { customer: "Bob".into(), paid: 900, express: true }),
            // No further attempt finds it.
            order => Err(NodeError::permanent(format!("there is no order {order}"))),
        }
    }

    async fn history(&self, of: &Of, context: &NodeContext) -> Result<History, NodeError> {
        context.progress(format!("reads the history of {}", of.customer));
        tokio::time::sleep(self.work).await;
        Ok(History { refunds: u32::from(of.customer == "Bob") })
    }

    /// Pays once for each key, however often it is called.
    fn pay(&self, refund: &Refund, key: &str) -> Result<Refunded, NodeError> {
        let Refund { order, cents } = refund;
        if !self.read("payments.txt")?.lines().any(|line| line.ends_with(key)) {
            self.append("payments.txt", &format!("{cents} cents of {order} under {key}"))?;
        }
        if self.kill_after_payment {
            // The effect has happened, and the journal does not know it yet.
            let kill = format!("kill -9 {}", std::process::id());
            let _killed = Command::new("sh").args(["-c", &kill]).status();
        }
        Ok(Refunded { cents: *cents })
    }

    fn read(&self, file: &str) -> io::Result<String> {
        match std::fs::read_to_string(self.folder.join(file)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        }
    }

    fn append(&self, file: &str, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.folder.join(file))?;
        writeln!(file, "{line}")
    }
}
