//! The steps of random workflows: each notes what it does in the ledger, rests, and fails, runs a child or emits as its
//! manner says. All of that follows from the key of its execution and the number of the attempt.

use std::future::pending;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::sleep;
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::table::StepIndex;
use workflow_core::{FanOutPolicy, InputValue, JsonOutput, RunOptions, RuntimeWorkflow, Steps};

use super::ledger::{Active, Ledger};
use super::plan::{Asks, Child, Emits, Fails, Fan, Manner, Plan};
use crate::world::Face;

const SECOND: Duration = Duration::from_secs(1);

/// The steps of a workflow in one engine.
pub(super) struct Work {
    plan: Plan,
    names: Arc<[Arc<str>]>,
    face: Face,
    ledger: Arc<Ledger>,
}

/// The workflows of a case as one engine hosts them.
pub(super) fn hosted(plans: &[Plan], face: &Face, ledger: &Arc<Ledger>) -> Vec<RuntimeWorkflow> {
    let names: Arc<[Arc<str>]> = plans.iter().map(|plan| Arc::clone(&plan.name)).collect();
    let hosted = plans.iter().map(|plan| {
        let (names, ledger) = (Arc::clone(&names), Arc::clone(ledger));
        let work = Work { plan: plan.clone(), names, face: face.clone(), ledger };
        match plan.timeout {
            Some(active) => RuntimeWorkflow::with_timeout(plan.table(), active, work),
            None => RuntimeWorkflow::new(plan.table(), work),
        }
    });
    hosted.collect()
}

/// A number below `limit` that follows from the key and the place where it is drawn.
fn drawn(key: &str, place: u32, limit: u32) -> u32 {
    let mut hasher = DefaultHasher::new();
    (key, place).hash(&mut hasher);
    u32::try_from(hasher.finish() % u64::from(limit.max(1))).unwrap()
}

/// A number out of the inputs of a call.
fn number(call: &StepCall) -> u64 {
    match call.input(0) {
        InputValue::Gather(branches) => branches.len() as u64,
        InputValue::Events(events) => events.len() as u64,
        input => input.json().and_then(Value::as_u64).unwrap_or(1),
    }
}

impl Work {
    async fn works(
        self: Arc<Self>,
        call: StepCall,
        info: RunInfo,
        begins: bool,
    ) -> Result<Emitted, StepError> {
        if !begins {
            // The process of this engine is gone.
            return pending().await;
        }
        let manner = &self.plan.manners[info.step()];
        let active = self.ledger.begins(&self.face, manner, &info);
        let worked = self.attempts(call, manner, &info, &active).await;
        if self.face.is_dead() {
            return pending().await;
        }
        self.ledger.returns(&info, worked.is_err());
        self.face.notes_end(info.step(), &info);
        worked
    }

    async fn attempts(
        &self,
        mut call: StepCall,
        manner: &Manner,
        info: &RunInfo,
        active: &[Active],
    ) -> Result<Emitted, StepError> {
        let key = info.idempotency_key();
        let (attempt, number) = (info.attempt(), number(&call));
        sleep(SECOND * drawn(&key, attempt, manner.rests)).await;
        let breaks = drawn(&key, 1_000, 3) == 0 && !self.ledger.is_mended();
        match manner.fails {
            Fails::First(first) if attempt <= first => return Err(StepError::transient("busy")),
            Fails::UntilMended if breaks => return Err(StepError::permanent("it is broken")),
            // Without a message of the test's own.
            Fails::PanicsUntilMended if breaks => resume_unwind(Box::new("it panics")),
            Fails::LateAtFirst if attempt == 1 => sleep(SECOND * 30).await,
            Fails::Always => return Err(StepError::tool("it never works")),
            _ => {}
        }
        if let Some(child) = manner.child {
            let children = call.children()?;
            self.runs(child, &children, number).await?;
        }
        if self.face.is_dead() {
            return pending().await;
        }
        self.ledger.has_effect(&self.face, manner, info);
        sleep(SECOND * (1 + drawn(&key, 1_000 + attempt, 3))).await;
        for active in active {
            active.check(&self.face);
        }
        for emits in &manner.emits {
            emit(emits, &mut call, number)?;
        }
        call.commit(())
    }

    async fn runs(&self, child: Child, children: &Children, number: u64) -> Result<(), StepError> {
        let name = &self.names[child.workflow];
        let (data, options) = (json!(number % 7), RunOptions::new());
        if child.is_awaited {
            children.run_json(name, "Begin", data, options).await?;
        } else {
            children.start_json(name, "Begin", data, options).await?;
        }
        Ok(())
    }
}

fn emit(emits: &Emits, call: &mut StepCall, number: u64) -> Result<(), StepError> {
    let (event, output): (&str, JsonOutput) = match emits {
        Emits::One(event) => (event, json!(number % 1_000).into()),
        Emits::Many(event, count) => {
            for place in 0..u64::from(*count) {
                call.emit(event, json!(number % 100 * 10 + place))?;
            }
            return Ok(());
        }
        Emits::Either(round, _) if !number.is_multiple_of(4) => (round, json!(number % 4 - 1).into()),
        Emits::Either(_, to) => (to, json!(number % 1_000).into()),
        Emits::FanOut(event, fan) => (event, opened(*fan, number).into()),
        Emits::Timer(event, after) => (event, Timer::after(SECOND * *after, json!(number % 1_000)).into()),
        Emits::Expiring(event, after) => {
            (event, JsonOutput::Expiring(json!(number % 1_000), SECOND * *after))
        }
    };
    call.emit(event, output)?;
    Ok(())
}

fn opened(fan: Fan, number: u64) -> FanOut<Value> {
    let mut opened: FanOut<Value> =
        (0..u64::from(fan.items)).map(|item| json!(number % 100 * 10 + item)).collect();
    opened = match fan.policy {
        FanOutPolicy::ContinueOthers => opened.continue_others(),
        FanOutPolicy::WaitAll => opened.wait_all(),
        _ => opened.fail_all(),
    };
    if let Some(most) = fan.concurrency {
        opened = opened.concurrency(most);
    }
    if let Some(enough) = fan.until {
        opened = opened.until(enough);
    }
    match fan.tolerates {
        Some(failures) => opened.tolerate(failures),
        None => opened,
    }
}

impl Steps for Work {
    fn call(self: Arc<Self>, _: StepIndex, call: StepCall) -> BoxFuture<'static, Result<Emitted, StepError>> {
        let (info, is_dead) = (call.info(), self.face.is_dead());
        if !is_dead {
            self.face.notes_begin(info.step(), &info);
        }
        Box::pin(self.works(call, info, !is_dead))
    }

    fn check(&self, _: StepIndex, call: &mut StepCall) -> Result<bool, StepError> {
        let (info, number) = (call.info(), number(call));
        if !self.face.is_dead() {
            self.face.notes_begin("a precondition", &info);
        }
        Ok(match self.plan.manners[info.step()].asks {
            Asks::Nothing => true,
            Asks::IsLong(count) => number == u64::from(count),
            Asks::Mostly => self.ledger.is_mended() || number % 8 != 3,
            Asks::MostlyAtAll if self.ledger.is_mended() || number % 8 != 3 => true,
            Asks::MostlyAtAll => return Err(StepError::permanent("nobody knows")),
        })
    }
}
