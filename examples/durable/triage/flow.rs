//! The workflow: a branch per ticket classifies it, asks a person where that is due, and puts it into a queue.

use std::path::PathBuf;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Retries, RetryPolicy};

use crate::outbox::Outbox;
use crate::words::{self, Queue};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Inbox {
    pub(crate) path: PathBuf,
}

/// One ticket as it came. The journal keeps it, so a resumed run does not depend on the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
pub(crate) struct Ticket {
    pub(crate) number: usize,
    pub(crate) text: String,
}

/// Where a ticket goes.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Routed {
    queue: Queue,
    by: String,
}

/// A person agrees with the queue, or takes the ticket.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
pub(crate) struct Agree {
    pub(crate) number: usize,
    pub(crate) subject: String,
    pub(crate) queue: Queue,
    pub(crate) why: String,
}

#[derive(Debug, EventSet)]
pub(crate) enum Verdict {
    Routed(Routed),
    Agree(Agree),
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Delivered {
    pub(crate) queue: Queue,
}

/// Shown while the run goes on.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
pub(crate) enum Progress {
    Found { tickets: usize },
    Delivered { number: usize, queue: Queue, by: String },
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Summary {
    pub(crate) delivered: Vec<Queue>,
    /// Number and reason of each ticket that could not be read.
    pub(crate) refused: Vec<(usize, String)>,
}

pub(crate) struct Triage {
    pub(crate) outbox: Outbox,
    /// Refunds above this amount need a person.
    pub(crate) largest_refund_cents: u64,
}

#[workflow]
impl Triage {
    /// One branch per ticket, eight at a time. A ticket that cannot be read costs only itself.
    #[step]
    async fn read(&self, inbox: &Inbox, display: &Display) -> Result<FanOut<Ticket>, StepError> {
        let text = tokio::fs::read_to_string(&inbox.path).await?;
        let texts = text.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
        let tickets: Vec<Ticket> =
            texts.zip(1..).map(|(text, number)| Ticket { number, text: text.to_owned() }).collect();
        display.show(Progress::Found { tickets: tickets.len() });
        Ok(tickets.into_iter().collect::<FanOut<_>>().concurrency(8).continue_others())
    }

    #[step]
    async fn classify(&self, ticket: &Ticket) -> Result<Verdict, StepError> {
        let header = |name: &str| ticket.text.lines().find_map(|line| line.strip_prefix(name));
        let subject = header("Subject: ").ok_or_else(|| StepError::rejected("it has no subject"))?;
        header("From: ").ok_or_else(|| StepError::rejected("it has no sender"))?;
        let found = words::classify(&ticket.text);
        let why = match words::cents(&ticket.text) {
            Some(cents) if found.queue == Queue::Refunds && cents > self.largest_refund_cents => {
                format!("{}.{:02} EUR are a lot", cents / 100, cents % 100)
            }
            _ if found.runner_up.is_some() => format!("or {}?", found.runner_up.unwrap_or(found.queue)),
            _ => return Ok(Verdict::Routed(Routed { queue: found.queue, by: "words".into() })),
        };
        let subject = subject.to_owned();
        Ok(Verdict::Agree(Agree { number: ticket.number, subject, queue: found.queue, why }))
    }

    #[step]
    async fn decide(&self, agreed: &Reply<Agree>) -> Routed {
        let queue = if **agreed { agreed.request().queue } else { Queue::ByHand };
        Routed { queue, by: "you".into() }
    }

    /// The effect. After a crash the execution may run again, with the same key: the outbox takes each key once.
    #[step(retry = RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(3, Duration::from_millis(50))))]
    async fn deliver(
        &self,
        ticket: &Ticket,
        routed: &Routed,
        info: &RunInfo,
        display: &Display,
    ) -> Result<Delivered, StepError> {
        let Routed { queue, by } = routed.clone();
        self.outbox.put(&info.idempotency_key(), queue, ticket.number).map_err(StepError::tool)?;
        display.show(Progress::Delivered { number: ticket.number, queue, by });
        Ok(Delivered { queue })
    }

    #[step]
    async fn sum_up(&self, delivered: &Gather<Delivered>) -> Summary {
        let refused = delivered.failed().filter_map(|branch| {
            Some((branch.item::<Ticket>()?.number, branch.failure()?.error().to_string()))
        });
        let queues = delivered.ok().map(|delivered| delivered.queue).collect();
        Summary { delivered: queues, refused: refused.collect() }
    }
}
