//! The baseline: the counts at the last acceptance.

use std::collections::BTreeMap;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::goes::Go;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/baseline.json");

/// A kind of count.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The allowed increase, as a share of the baseline and as an absolute number.
    pub(crate) tolerance: (f64, f64),
}

/// Two executions of one program differ by far less. The rest is for what a release may add.
pub(crate) const KINDS: [Kind; 4] = [
    Kind { name: "allocations", tolerance: (0.01, 0.01) },
    Kind { name: "bytes allocated", tolerance: (0.02, 4.0) },
    Kind { name: "bytes held", tolerance: (0.02, 4.0) },
    Kind { name: "instructions", tolerance: (0.05, 10.0) },
];

/// The counts per item.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Counter {
    pub(crate) per: String,
    allocations: Option<f64>,
    bytes_allocated: Option<f64>,
    /// The bytes live at the peak.
    bytes_held: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<f64>,
}

/// The counts of all work.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Baseline {
    /// The compiler and target: other builds take other instructions.
    pub(crate) built: Vec<String>,
    pub(crate) counters: BTreeMap<String, Counter>,
}

impl Counter {
    /// The counts of one more item.
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

/// The compiler's release and its default host.
pub(crate) fn built() -> Vec<String> {
    let output = Command::new("rustc").arg("-vV").output().expect("there is a compiler");
    let told = String::from_utf8_lossy(&output.stdout);
    told.lines()
        .filter(|line| line.starts_with("release") || line.starts_with("host"))
        .map(str::to_owned)
        .collect()
}
