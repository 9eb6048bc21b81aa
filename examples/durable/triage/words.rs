//! A classifier that counts words. It stands where a model would.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Queue {
    Refunds,
    Outages,
    Accounts,
    Questions,
    Spam,
    ByHand,
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Refunds => "refunds",
            Self::Outages => "outages",
            Self::Accounts => "accounts",
            Self::Questions => "questions",
            Self::Spam => "spam",
            Self::ByHand => "by hand",
        };
        f.pad(name)
    }
}

pub(crate) struct Found {
    pub(crate) queue: Queue,
    /// Another queue with as many words.
    pub(crate) runner_up: Option<Queue>,
}

const WORDS: [(Queue, &[&str]); 5] = [
    (Queue::Refunds, &["refund", "charged", "money", "payment", "invoice", "eur"]),
    (Queue::Outages, &["down", "error", "timeouts", "fail", "slow", "urgent"]),
    (Queue::Accounts, &["login", "log", "password", "account", "address", "locked"]),
    (Queue::Questions, &["how", "where", "documentation", "find", "export"]),
    (Queue::Spam, &["win", "winner", "prize", "lottery", "click", "free"]),
];

pub(crate) fn classify(text: &str) -> Found {
    let words: Vec<String> = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
    let count = |of: &[&str]| words.iter().filter(|word| of.contains(&word.as_str())).count();
    let mut counted = WORDS.map(|(queue, of)| (count(of), queue));
    counted.sort_by_key(|(count, queue)| (std::cmp::Reverse(*count), *queue));
    let [(most, queue), (next, runner_up), ..] = counted;
    Found { queue, runner_up: (next == most).then_some(runner_up) }
}

/// The amount in a text such as "EUR 42.50".
pub(crate) fn cents(text: &str) -> Option<u64> {
    let (_, amount) = text.split_once("EUR ")?;
    let (euros, rest) = amount.split_once('.')?;
    let cents = rest.get(..2)?.parse::<u64>().ok()?;
    euros.parse::<u64>().ok()?.checked_mul(100)?.checked_add(cents)
}
