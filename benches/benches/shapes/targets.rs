//! The targets of the figures.

use workflow_benches::figure::{Figure, Target};

use crate::row::Row;

/// The value that a shape is compared with.
type Other = fn(&Row) -> Option<f64>;

const SPAWN: (&str, Other) = ("a task per step, by hand", |row| row.spawn);
const FLOOR: (&str, Other) = ("one task, by hand", |row| row.floor);
const PEERS: (&str, Other) = ("the fastest peer", |row| row.peers.values().copied().reduce(f64::min));

/// Names or beginnings of names, what each is compared with, and what is wanted of its time by theirs.
const RATIOS: &[(&str, (&str, Other), f64)] = &[
    ("chain/", SPAWN, 0.6),
    ("chain/", FLOOR, 1.3),
    ("chain/", PEERS, 1.0),
    ("fan/", SPAWN, 0.6),
    ("fan/", FLOOR, 1.5),
    ("fan/", PEERS, 1.0),
    ("fixed/", SPAWN, 0.6),
    ("fixed/", FLOOR, 1.5),
    ("gather/", SPAWN, 0.6),
    ("gather/", FLOOR, 1.5),
];

/// Likewise, and what is wanted of its rate by theirs.
const RATES: &[(&str, (&str, Other), f64)] =
    &[("runs/", ("a task that calls the functions", |row| row.spawn), 0.5), ("runs/", PEERS, 1.5)];

/// The targets of growth.
const GROWTH: &[(&str, f64)] = &[
    ("chain/10000", 1.3),
    ("fan/100000", 1.3),
    ("gather/100000", 1.3),
    ("joins", 1.3),
    ("relist/10000", 1.3),
    ("waiting/100000", 1.3),
    ("waiting-reply/100000", 1.3),
    ("released/100000", 1.3),
    ("released-reply/100000", 1.3),
];

/// The targets of one shape's time divided by another's.
const PAIRS: &[(&str, &str, Option<f64>)] = &[
    ("chain/10", "chain/10000", Some(1.3)),
    ("preconditions", "preconditions/without", None),
    ("contexts", "contexts/without", None),
    ("observers/without", "observers/alone", Some(1.05)),
    ("observers/one", "observers/without", None),
    ("observers/tracing", "observers/without", Some(1.15)),
    ("observers/sixteen", "observers/none", None),
];

/// The targets of single values.
const BOUNDS: &[(&str, &str, &str, Other, f64)] = &[
    ("chain/1000", "allocations", "allocations that a step may have", |row| row.allocations, 5.0),
    ("waiting/100000", "bytes/run", "bytes that a waiting run may take", |row| Some(row.ours), 2_048.0),
    ("released/100000", "bytes/run", "bytes that a run in a file may take", |row| Some(row.ours), 200.0),
];

/// The measured figures, each with its target.
pub(crate) fn figures(rows: &[Row]) -> Vec<Figure> {
    let named = |name: &str| rows.iter().find(|row| row.name == name);
    let ratios = RATIOS.iter().flat_map(|(shape, (beside, other), most)| {
        rows.iter().filter(move |row| row.name.starts_with(shape)).filter_map(move |row| {
            let figure = Figure::new(&row.name, "ns", row.ours, other(row)?);
            Some(figure.beside(beside).target(Target::AtMost(*most)))
        })
    });
    let rates = RATES.iter().flat_map(|(shape, (beside, other), least)| {
        rows.iter().filter(move |row| row.name.starts_with(shape)).filter_map(move |row| {
            let figure = Figure::new(&row.name, "items/s", 1e9 / row.ours, 1e9 / other(row)?);
            Some(figure.beside(beside).target(Target::AtLeast(*least)))
        })
    });
    let growth = GROWTH.iter().filter_map(|(name, most)| {
        let figure =
            Figure::new(*name, "growth", named(name)?.growth?, 1.0).beside("an item's time at 1,000");
        Some(figure.target(Target::AtMost(*most)))
    });
    let pairs = PAIRS.iter().filter_map(|(name, other, most)| {
        let figure = Figure::new(*name, "ns", named(name)?.ours, named(other)?.ours).beside(other);
        Some(match most {
            Some(most) => figure.target(Target::AtMost(*most)),
            None => figure,
        })
    });
    let bounds = BOUNDS.iter().filter_map(|(name, unit, beside, value, most)| {
        let figure = Figure::new(*name, unit, value(named(name)?)?, *most).beside(beside);
        Some(figure.target(Target::AtMost(1.0)))
    });
    ratios.chain(rates).chain(growth).chain(pairs).chain(bounds).collect()
}
