//! Whole runs at the same time, with a store that shares commits and with one that commits each batch by itself.

use workflow_benches::durable::runs::{RUNS, Runs};
use workflow_benches::figure::{Figure, Target, per_second};
use workflow_benches::in_turns;

use crate::scale::Scale;
use crate::{folder, runtime};

pub(crate) fn measure(scale: &Scale) -> Vec<Figure> {
    let runtime = runtime();
    let (shared, alone) = (Runs::shared(folder()), Runs::one_by_one(folder()));
    let runs = scale.runs_each;
    let times = in_turns(
        scale.turns,
        vec![Box::new(|| shared.turn(&runtime, runs)), Box::new(|| alone.turn(&runtime, runs))],
    );
    let rate = |time| per_second(RUNS * runs, time);
    vec![
        Figure::new("runs/32", "runs/s", rate(times[0]), rate(times[1]))
            .beside("a commit per batch")
            .target(Target::AtLeast(20.0)),
    ]
}
