//! The end of a reloaded or resumed run looks at no run but its children.

use futures::future::BoxFuture;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::store::ContextStore;

use super::*;

/// A store that counts lists of runs, and the runs in them.
#[derive(Debug, Clone, Default)]
struct Counted {
    kept: Arc<MemoryStore>,
    counts: Arc<(AtomicUsize, AtomicUsize)>,
}

impl Counted {
    /// The lists since the last call, and the runs in them.
    fn take(&self) -> (usize, usize) {
        (self.counts.0.swap(0, Ordering::SeqCst), self.counts.1.swap(0, Ordering::SeqCst))
    }
}

impl EventStore for Counted {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        self.kept.append(run, expected, batch)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.kept.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        let (kept, query, counts) = (Arc::clone(&self.kept), query.clone(), Arc::clone(&self.counts));
        StoreFuture::new(async move {
            let listed = kept.runs(&query).await?;
            counts.0.fetch_add(1, Ordering::SeqCst);
            counts.1.fetch_add(listed.len(), Ordering::SeqCst);
            Ok(listed)
        })
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.kept.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.kept.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.kept.lease(engine, duration)
    }

    fn serialises(&self) -> bool {
        false
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        self.kept.contexts()
    }
}

/// Asks people, and may start children.
struct Delegates;

#[workflow]
impl Delegates {
    #[step]
    async fn ask(&self, _begin: &Begin) -> Ask {
        Ask(1)
    }

    #[step]
    async fn end(&self, reply: &Reply<Ask>, _children: &Children) -> Done {
        Done(**reply)
    }
}

/// Does nothing but call on.
#[derive(Debug)]
struct Around;

impl Middleware for Around {
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        next.call(call)
    }
}

/// Waiting runs behind `r` in the order of ids, more than a page.
async fn bystanders(engine: &Engine, told: &Told) {
    for n in 0..1_100 {
        drop(start(engine, &format!("r0{n}")).await);
        told.are_away(n + 1).await;
    }
}

// S31
#[tokio::test]
async fn the_end_of_a_reloaded_run_lists_no_other_run() {
    let store = Counted::default();
    let (engine, told) = forgetful(store.clone());
    let engine = engine.workflow(Delegates).build().unwrap();
    bystanders(&engine, &told).await;
    drop(start(&engine, "r").await);
    drop(engine.start_with::<Delegates>(Begin(1), RunOptions::new().id("r/a")).await.unwrap());
    told.are_away(1_102).await;
    store.take();
    let run = engine.attach::<Asks>("r").await.unwrap();
    // One finds the owner.
    assert!(store.take().1 <= 1);
    reply(&run, 7).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(store.take(), (0, 0), "a workflow without children has none to look for");
    let run = engine.attach::<Delegates>("r/a").await.unwrap();
    store.take();
    run.reply_to::<Ask>(7).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(store.take(), (1, 0), "the search for children finds no run of others");
}

// S31
#[tokio::test]
async fn the_end_of_a_resumed_run_lists_children_only() {
    let store = Counted::default();
    let (engine, told) = forgetful(store.clone());
    let engine = engine.build().unwrap();
    bystanders(&engine, &told).await;
    drop(start(&engine, "r").await);
    told.are_away(1_101).await;
    drop(engine);
    for (middleware, lists) in [(false, 0), (true, 1)] {
        let (engine, _) = forgetful(store.clone());
        let engine = if middleware { engine.middleware(Around) } else { engine };
        let engine = engine.build().unwrap();
        let id = if middleware { "r00" } else { "r" };
        let run = engine.attach::<Asks>(id).await.unwrap();
        store.take();
        reply(&run, 7).await.unwrap();
        run.outcome().await.unwrap();
        assert_eq!(store.take(), (lists, 0), "middleware may start children: {middleware}");
    }
}

#[tokio::test]
async fn removing_a_run_lists_its_children_only() {
    let store = Counted::default();
    let (engine, told) = forgetful(store.clone());
    let engine = engine.build().unwrap();
    bystanders(&engine, &told).await;
    let run = start(&engine, "r").await;
    reply(&run, 7).await.unwrap();
    run.outcome().await.unwrap();
    drop(run);
    store.take();
    assert!(engine.remove_run(&"r".into()).await.unwrap());
    // Its own entry may be among them.
    let (_, listed) = store.take();
    assert!(listed <= 1, "{listed} runs were listed");
}
