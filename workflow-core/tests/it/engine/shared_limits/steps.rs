//! Limits and the other bounds of a run: the executions of a run, the concurrency of a step, permits of runs (S70, S21).

use super::*;

/// Pays for items, and does other work meanwhile.
struct Works {
    seen: Seen,
    gate: Gate,
}

#[workflow]
impl Works {
    #[step]
    async fn list(&self, begin: &Begin) -> (Vec<Item>, Vec<Part>) {
        ((0..begin.0).map(Item).collect(), (0..begin.0).map(Part).collect())
    }

    #[step(limit = "bank")]
    async fn pay(&self, item: &Item) {
        self.seen.note(format!("pays {}", item.0));
        self.gate.pass().await;
    }

    #[step]
    async fn work(&self, part: &Part) {
        self.seen.note(format!("works {}", part.0));
    }

    #[step]
    async fn end(&self, _: &Close) -> Done {
        Done(0)
    }
}

fn works(limited: impl FnOnce(EngineBuilder) -> EngineBuilder) -> (Seen, Gate, Engine) {
    let (seen, gate) = (Seen::default(), Gate::closed());
    let engine = Engine::builder().workflow(Works { seen: seen.clone(), gate: gate.clone() });
    (seen, gate, limited(engine).build().unwrap())
}

// S70
#[tokio::test]
async fn attempts_that_wait_count_among_no_executions_of_their_run() {
    let (seen, gate, engine) =
        works(|engine| engine.limit("bank", Limit::concurrent(1)).max_concurrent_executions(2));
    let run = start::<Works>(&engine, "a", 3).await;
    assert_eq!(seen.lines(), ["pays 0", "works 0", "works 1", "works 2"]);
    gate.let_pass(3);
    everyone_else().await;
    assert_eq!(seen.lines()[4..], ["pays 1", "pays 2"]);
    run.send(Close).await.unwrap();
    ends([run]).await;
}

// S70
#[tokio::test]
async fn a_permit_that_finds_no_room_in_the_run_goes_to_others() {
    let (seen, gate, engine) =
        works(|engine| engine.limit("bank", Limit::concurrent(1)).max_concurrent_executions(1));
    let first = start::<Works>(&engine, "a", 1).await;
    let second = start::<Works>(&engine, "b", 2).await;
    assert_eq!(seen.lines(), ["pays 0", "works 0", "works 1"], "the work of `a` has no room");
    gate.let_pass(3);
    everyone_else().await;
    assert_eq!(seen.lines().len(), 6);
    for run in [first, second] {
        run.send(Close).await.unwrap();
        ends([run]).await;
    }
}

// S70
#[tokio::test]
async fn a_run_keeps_its_permit_while_its_attempts_wait() {
    let (seen, gate, engine) =
        works(|engine| engine.limit("bank", Limit::concurrent(1)).max_concurrent_runs(2));
    let first = start::<Works>(&engine, "a", 1).await;
    let second = start::<Works>(&engine, "b", 1).await;
    let third = engine.start::<Works>(Begin(1));
    assert_eq!(seen.lines(), ["pays 0", "works 0", "works 0"]);
    assert!(futures::FutureExt::now_or_never(third).is_none(), "both permits of runs are taken");
    gate.let_pass(2);
    for run in [first, second] {
        run.send(Close).await.unwrap();
        ends([run]).await;
    }
}

/// Pays one after the other, each for another customer.
struct OneByOne(Seen, Gate);

#[workflow]
impl OneByOne {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(limit = "bank", limit_key = customer, concurrency = 1)]
    async fn pay(&self, item: &Item) -> Part {
        self.0.note(format!("{}", item.0));
        self.1.pass().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, _: &Begin, parts: FixedList<Part, 3>) -> Done {
        Done(parts.iter().fold(0, |all, part| 10 * all + part.0))
    }

    fn customer(item: &Item) -> u32 {
        u32::from(item.0 == 0)
    }
}

// S70, S21
#[tokio::test]
async fn a_permit_that_finds_no_place_in_the_step_goes_to_others() {
    let (seen, gate) = (Seen::default(), Gate::closed());
    let engine = Engine::builder().workflow(OneByOne(seen.clone(), gate.clone()));
    let engine = engine.limit("bank", Limit::concurrent(1)).build().unwrap();
    let first = start::<OneByOne>(&engine, "a", 3).await;
    // `b` waits with customer 1 and has its place, which `a`'s customer 1 had; customer 0 begins instead.
    let second = start::<OneByOne>(&engine, "b", 3).await;
    assert_eq!(seen.lines(), ["0", "1"]);
    // Customer 1 is free, but `b` works for customer 0: it gives the permit back, and pays after that.
    gate.let_pass(6);
    ends([first, second]).await;
    let mut all = seen.lines();
    all.sort_unstable();
    assert_eq!(all, ["0", "0", "1", "1", "2", "2"]);
}

/// Needs the limit in a child while it holds it.
struct Nests;

#[workflow]
impl Nests {
    #[step(limit = "bank", limit_key = depth)]
    async fn pay(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        if begin.0 > 0 {
            children.run::<Self>(Begin(begin.0 - 1)).await?;
        }
        Ok(Done(begin.0))
    }

    fn depth(begin: &Begin) -> u32 {
        begin.0
    }
}

// S70
#[tokio::test]
async fn children_take_permits_of_their_own_keys() {
    let engine = Engine::builder().workflow(Nests).limit("bank", Limit::concurrent(1)).build().unwrap();
    let run = engine.start::<Nests>(Begin(2)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
}
