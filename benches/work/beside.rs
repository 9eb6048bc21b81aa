//! Additions to a chain: preconditions, contexts and observers, each compared with the plain chain.

use workflow_core::observe::{Observation, Observer, TracingObserver};
use workflow_core::prelude::*;

use super::chain::{self, Begin, Clock, Done, FromTick, FromTock, Tick, Tock};
use super::{By, Extent, Work, engine};

/// The length of the chain.
const STEPS: u64 = 1_000;

/// The chain with a precondition on each of its steps.
struct Guarded;

#[workflow]
impl Guarded {
    #[precondition]
    fn ticks_on(tick: &Tick) -> bool {
        tick.done < tick.steps
    }

    #[precondition]
    fn tocks_on(tock: &Tock) -> bool {
        tock.done < tock.steps
    }

    #[step]
    async fn begin(&self, begin: &Begin) -> Tick {
        Tick { done: 1, steps: begin.steps }
    }

    #[step(precondition = ticks_on)]
    async fn tick(&self, tick: &Tick) -> FromTick {
        tick.next()
    }

    #[step(precondition = tocks_on)]
    async fn tock(&self, tock: &Tock) -> FromTock {
        tock.next()
    }
}

/// The chain whose steps count in the context of the run.
struct Counting;

#[workflow]
impl Counting {
    #[step]
    async fn begin(&self, begin: &Begin) -> Tick {
        Tick { done: 1, steps: begin.steps }
    }

    #[step]
    async fn tick(&self, tick: &Tick, run: &RunContext) -> Result<FromTick, StepError> {
        run.increment("ticks", 1).await?;
        Ok(tick.next())
    }

    #[step]
    async fn tock(&self, tock: &Tock, run: &RunContext) -> Result<FromTock, StepError> {
        run.increment("tocks", 1).await?;
        Ok(tock.next())
    }
}

/// An observer that does nothing.
struct Idle;

impl Observer for Idle {
    fn observe(&self, _: &Observation) {}
}

async fn run<W: Workflow<Output = Done>>(engine: Engine, steps: u64) -> u64 {
    let run = engine.start::<W>(Begin { steps }).await.expect("it starts");
    run.outcome().await.map_or(0, |done| done.0)
}

fn work<W: Workflow<Output = Done>>(name: &str, engine: Engine) -> Work {
    Work::named(name, "step", STEPS).by(By::Ours, move || run::<W>(engine.clone(), STEPS))
}

fn without(shape: &str) -> Work {
    work::<Clock>(&format!("{shape}/without"), engine(Clock))
}

/// The chain on an engine, in any size.
pub(super) fn on_engine(size: u64) -> Work {
    let engine = engine(Clock);
    Work::new("chain-on-engine", "step", size).by(By::Ours, move || run::<Clock>(engine.clone(), size))
}

pub(super) fn preconditions(_: Extent) -> Vec<Work> {
    vec![work::<Guarded>("preconditions", engine(Guarded)), without("preconditions")]
}

pub(super) fn contexts(_: Extent) -> Vec<Work> {
    vec![work::<Counting>("contexts", engine(Counting)), without("contexts")]
}

/// The chain without a way to observe it, with an unused one, and with an observer and sixteen.
pub(super) fn observers(_: Extent) -> Vec<Work> {
    let observed = |observer| Engine::builder().workflow(Clock).observer(observer).build();
    let traced = Engine::builder().workflow(Clock).observer(TracingObserver::new()).build();
    let sixteen = (0..16).fold(Engine::builder().workflow(Clock), |builder, _| builder.observer(Idle));
    let runs_of_three = |name, engine: Engine| {
        Work::named(name, "run", 1).by(By::Ours, move || run::<Clock>(engine.clone(), 3))
    };
    vec![
        Work::named("observers/alone", "step", STEPS).by(By::Ours, || chain::ours(STEPS)),
        without("observers"),
        work::<Clock>("observers/one", observed(Idle).expect("it is sound")),
        work::<Clock>("observers/tracing", traced.expect("it is sound")),
        runs_of_three("observers/sixteen", sixteen.build().expect("it is sound")),
        runs_of_three("observers/none", engine(Clock)),
    ]
}
