//! Compares counts with the baseline, and tells what to do.

use crate::baseline::{Baseline, Counter, KINDS, Kind};

const ACCEPT: &str = "cargo bench --profile release --package workflow-benches --no-default-features --bench counters -- --accept";

/// The verdict on a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Same,
    Better,
    Worse,
    /// The build is of another kind.
    Incomparable,
}

/// A count and its baseline.
struct Line<'a> {
    shape: &'a str,
    per: &'a str,
    kind: &'static Kind,
    was: f64,
    is: f64,
    verdict: Verdict,
}

/// Prints all counts with verdicts; returns whether none is worse and all have a baseline.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "that is what it is for")]
pub(crate) fn tell(baseline: &Baseline, counted: &Baseline) -> bool {
    let is_same_build = baseline.built == counted.built;
    println!("{:<18} {:<18} {:<8} {:>12} {:>12} {:>8}", "counter", "", "per", "was", "is", "");
    let lines = || {
        let with_baseline = counted
            .counters
            .iter()
            .filter_map(|(shape, is)| Some(lines(shape, baseline.counters.get(shape)?, is, is_same_build)));
        with_baseline.flatten()
    };
    for line in lines() {
        println!("{}", line.row());
    }
    if !is_same_build {
        println!("instructions are not compared: {:?} here, {:?} there", counted.built, baseline.built);
    }
    let of = |verdict| lines().filter(move |line| line.verdict == verdict).map(|line| line.sentence());
    let (better, mut worse): (Vec<_>, Vec<_>) = (of(Verdict::Better).collect(), of(Verdict::Worse).collect());
    worse.extend(unknown(baseline, counted));
    if !better.is_empty() {
        println!("\nbetter; update the baseline: `{ACCEPT}`\n  {}", better.join("\n  "));
    }
    if !worse.is_empty() {
        eprintln!("\nworse; if it has to be, accept it: `{ACCEPT}`\n  {}", worse.join("\n  "));
    }
    worse.is_empty()
}

/// Shapes that only one of the two has.
fn unknown(baseline: &Baseline, counted: &Baseline) -> Vec<String> {
    let only = |some: &Baseline, others: &Baseline, what: &str| {
        let of_one = some.counters.keys().filter(|shape| !others.counters.contains_key(*shape));
        of_one.map(|shape| format!("{shape} {what}")).collect::<Vec<_>>()
    };
    let mut unknown = only(counted, baseline, "has no baseline");
    unknown.extend(only(baseline, counted, "has a baseline and is not counted"));
    unknown
}

fn lines<'a>(shape: &'a str, was: &Counter, is: &'a Counter, is_same_build: bool) -> Vec<Line<'a>> {
    let counts = KINDS.iter().zip(was.counts()).zip(is.counts());
    let line = |((kind, was), now): ((&'static Kind, Option<f64>), Option<f64>)| {
        was.or(now)?;
        // A missing value becomes NaN.
        let (was, is_now) = (was.unwrap_or(f64::NAN), now.unwrap_or(f64::NAN));
        let is_comparable = is_same_build || kind.name != "instructions";
        let verdict = if is_comparable { verdict(kind, was, is_now) } else { Verdict::Incomparable };
        Some(Line { shape, per: &is.per, kind, was, is: is_now, verdict })
    };
    counts.filter_map(line).collect()
}

fn verdict(kind: &Kind, was: f64, is: f64) -> Verdict {
    let (share, in_any_case) = kind.tolerance;
    let allowed = (was.abs() * share).max(in_any_case);
    match is - was {
        more if more < -allowed => Verdict::Better,
        more if more <= allowed => Verdict::Same,
        _ => Verdict::Worse,
    }
}

impl Line<'_> {
    fn row(&self) -> String {
        let Self { shape, per, kind, was, is, verdict } = self;
        let told = match verdict {
            Verdict::Same => "",
            Verdict::Better => "better",
            Verdict::Worse => "WORSE",
            Verdict::Incomparable => "?",
        };
        format!("{shape:<18} {:<18} {per:<8} {was:>12.2} {is:>12.2} {told:>8}", kind.name)
    }

    fn sentence(&self) -> String {
        let Self { shape, per, kind, was, is, .. } = self;
        let change = (is / was - 1.0) * 100.0;
        format!("{shape}: {} per {per} were {was:.2} and are {is:.2} ({change:+.1} %)", kind.name)
    }
}
