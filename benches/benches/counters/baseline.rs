//! The baseline: what was counted when it was last accepted.

use std::collections::BTreeMap;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::goes::Go;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/baseline.json");

/// What is counted.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// How much more it may be, as a share of what it was, and how much more in any case.
    pub(crate) tolerance: (f64, f64),
}

/// What differs by itself is a tenth of this at the most. The rest
/// is for changes that have nothing to do with it, after which the compiler divides the library in another way.
pub(crate) const KINDS: [Kind; 4] = [
    Kind { name: "allocations", tolerance: (0.01, 0.01) },
    Kind { name: "bytes allocated", tolerance: (0.02, 4.0) },
    Kind { name: "bytes held", tolerance: (0.02, 4.0) },
    Kind { name: "instructions", tolerance: (0.05, 10.0) },
];

/// What an item takes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Counter {
    pub(crate) per: String,
    allocations: Option<f64>,
    bytes_allocated: Option<f64>,
    /// At the time when most is held.
    bytes_held: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<f64>,
}

/// What all of them take.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Baseline {
    /// By which compiler, and for what: other builds take other instructions.
    pub(crate) built: Vec<String>,
    pub(crate) counters: BTreeMap<String, Counter>,
}

impl Counter {
    /// What one more item took.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    pub(crate) fn between(item: &str, less: &Go, more: &Go) -> Self {
        let items = (more.items - less.items) as f64;
        let each = |kind: usize| {
            let more = more.counts[kind]? - less.counts[kind]?;
            Some((more / items * 100.0).round() / 100.0)
        };
        Self {
            per: item.to_owned(),
            allocations: each(0),
            bytes_allocated: each(1),
            bytes_held: each(2),
            instructions: each(3),
        }
    }

    /// In the order of [`KINDS`].
    pub(crate) fn counts(&self) -> [Option<f64>; 4] {
        [self.allocations, self.bytes_allocated, self.bytes_held, self.instructions]
    }
}

impl Baseline {
    pub(crate) fn read() -> Self {
        let text = std::fs::read(FILE).expect("the baseline can be read");
        serde_json::from_slice(&text).expect("the baseline is as it was written")
    }

    pub(crate) fn write(&self) {
        let text = serde_json::to_string_pretty(self).expect("it is JSON");
        std::fs::write(FILE, text + "\n").expect("the baseline can be written");
    }
}

/// What the compiler says of itself: its release, and the machines that it builds for unless it is told otherwise.
pub(crate) fn built() -> Vec<String> {
    let output = Command::new("rustc").arg("-vV").output().expect("there is a compiler");
    let told = String::from_utf8_lossy(&output.stdout);
    told.lines()
        .filter(|line| line.starts_with("release") || line.starts_with("host"))
        .map(str::to_owned)
        .collect()
}
