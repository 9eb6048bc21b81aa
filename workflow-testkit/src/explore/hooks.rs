//! Brings a run's operations to the gate, around its step calls and in front of its contexts.

use std::any::Any;
use std::future::{Future as _, poll_fn};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use workflow_core::errors::ContextError;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::store::{ContextChange, ContextScope, ContextStore, ContextValue, MemoryContexts};
use workflow_core::{EngineBuilder, RunId, ScopeId, StepError};

use super::durable::GatedStore;
use super::footprint::{Footprint, Interest};
use super::gate::{Actor, Gate, Who};
use super::outside::Outside;
use super::play::MOST_OPERATIONS;
use crate::start::Hooks;

tokio::task_local! {
    static WHO: Who;
}

/// Gates the completions and context operations of a run. A child run is part of the step that runs it, and has one
/// order.
pub(super) fn gated(run: RunId, gate: &Arc<Gate>, outside: &Outside, interest: &Arc<Interest>) -> Hooks {
    let (gate, outside, interest) = (Arc::clone(gate), outside.clone(), Arc::clone(interest));
    let engine = move |engine: EngineBuilder, contexts: Arc<MemoryContexts>| {
        let contexts = GatedContexts { contexts, run: run.clone(), gate: Arc::clone(&gate) };
        // The choice of executions that wait for a permit is not explored.
        let engine = engine.max_concurrent_executions(MOST_OPERATIONS);
        let engine = engine.observer(outside.observer(run.clone()));
        let store = interest.is_durable().then(|| GatedStore::new(run.clone(), Arc::clone(&gate)));
        let engine = if let Some(store) = store { engine.store(store) } else { engine };
        engine.middleware(Turnstile { run, gate, interest }).contexts(contexts)
    };
    Hooks { engine: Box::new(engine), ..Hooks::default() }
}

/// Runs a step to its end, and then holds back its result.
struct Turnstile {
    run: RunId,
    gate: Arc<Gate>,
    interest: Arc<Interest>,
}

type Called = Result<Result<Emitted, StepError>, Box<dyn Any + Send>>;

impl Middleware for Turnstile {
    fn call(&self, mut call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        if *call.run() != self.run {
            return next.call(call);
        }
        let (gate, interest) = (Arc::clone(&self.gate), Arc::clone(&self.interest));
        let (step, scope) = (call.step().to_owned(), call.scope());
        let execution = call.execution();
        let (who, watch) = (gate.who(&step, execution), call.watch());
        Box::pin(async move {
            let calling = gate.calling(execution);
            let mut call = Box::pin(WHO.scope(who.clone(), async move { next.call(call).await }));
            let call = poll_fn(|cx| {
                calling.polled();
                let polled = call.as_mut().poll(cx);
                interest.note_asked(&step, &watch);
                polled
            });
            let called = AssertUnwindSafe(call).catch_unwind().await;
            // A poll that panics notes nothing.
            interest.note_asked(&step, &watch);
            drop(calling);
            note_branches(&gate, &called);
            // The last branch to settle may fail the run, and the one that is enough drops the others, independent of
            // its own commit.
            let may_decide = scope != ScopeId::ROOT && gate.order_of_settling_decides();
            let footprint = footprint_of(&interest, &step, scope, &called);
            let footprint = if may_decide { Footprint::Everything } else { footprint };
            gate.pass(who.actor, words_of(&who, &called), footprint).await;
            called.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

fn note_branches(gate: &Gate, called: &Called) {
    let Ok(Ok(emitted)) = called else { return };
    if emitted.opens_branches_in_turn() {
        gate.note_branches_in_turn();
    }
    if emitted.waits_for_all_branches() || emitted.drops_branches() {
        gate.note_order_of_settling_decides();
    }
}

fn footprint_of(interest: &Interest, step: &str, scope: ScopeId, called: &Called) -> Footprint {
    match called {
        Ok(Ok(emitted)) => interest.of_commit(step, scope, emitted),
        _ => interest.of_failure(step, scope),
    }
}

fn words_of(who: &Who, called: &Called) -> String {
    let name = &who.name;
    match called {
        Ok(Ok(emitted)) => {
            let events: Vec<&str> = emitted.events().map(workflow_core::AnyEvent::name).collect();
            let timed: Vec<String> =
                emitted.timed_events().map(|event| format!("a timer for {}", event.name())).collect();
            let events: Vec<&str> = events.into_iter().chain(timed.iter().map(String::as_str)).collect();
            let events = if events.is_empty() { "nothing".to_owned() } else { events.join(", ") };
            format!("{name} completes with {events}")
        }
        Ok(Err(error)) => format!("{name} fails: {error}"),
        Err(_) => format!("{name} panics"),
    }
}

/// Contexts whose operations wait for their turn.
struct GatedContexts {
    contexts: Arc<MemoryContexts>,
    run: RunId,
    gate: Arc<Gate>,
}

impl GatedContexts {
    /// Without a key, the operation concerns all keys.
    async fn pass(&self, verb: &str, scope: &ContextScope, key: Option<&str>, writes: bool) {
        // Only the child itself uses its context.
        if matches!(scope, ContextScope::Run(run) if *run != self.run) {
            return;
        }
        let who = WHO.try_with(Clone::clone).ok();
        let (actor, footprint) = match &who {
            Some(who) => {
                // There is one run, and it has one thread.
                let of_thread = matches!(scope, ContextScope::Thread(_));
                (who.actor, Footprint::Context { of_thread, key: key.map(str::to_owned), writes })
            }
            // A precondition or a child: the consequences of its answer are unknown here.
            None => (Actor::Unknown, Footprint::Everything),
        };
        let name = who.as_ref().map_or("a precondition or a child", |who| &who.name);
        let words = key.map_or_else(|| format!("{name} {verb}"), |key| format!("{name} {verb} `{key}`"));
        self.gate.pass(actor, words, footprint).await;
    }
}

impl ContextStore for GatedContexts {
    fn serialises(&self) -> bool {
        self.contexts.serialises()
    }

    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        Box::pin(async move {
            self.pass("reads", scope, Some(key), false).await;
            self.contexts.get(scope, key).await
        })
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        Box::pin(async move {
            self.pass("writes", scope, Some(key), true).await;
            self.contexts.set(scope, key, value).await
        })
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        Box::pin(async move {
            self.pass("updates", scope, Some(key), true).await;
            self.contexts.update(scope, key, change).await
        })
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        Box::pin(async move {
            self.pass("lists the context", scope, None, false).await;
            self.contexts.list(scope, after, at_most).await
        })
    }

    /// The engine clears a run's context when the run has ended.
    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        self.contexts.clear(scope)
    }

    fn scopes<'a>(
        &'a self,
        after: Option<&'a ContextScope>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<ContextScope>, ContextError>> {
        self.contexts.scopes(after, at_most)
    }
}
