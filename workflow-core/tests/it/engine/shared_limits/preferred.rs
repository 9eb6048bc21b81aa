//! Attempts that give a permit back, because their run or their step has none for them: they are not passed over for ever,
//! and hold up others as little as possible (S70, S21).

use super::*;

/// Pays for items, and works on parts meanwhile.
#[derive(Clone)]
struct Shift {
    seen: Seen,
    /// Lets payments end.
    pays: Gate,
    /// Lets work end.
    works: Gate,
}

impl Shift {
    fn new() -> Self {
        Self { seen: Seen::default(), pays: Gate::closed(), works: Gate::closed() }
    }

    fn engine(&self, executions: usize) -> Engine {
        let engine = Engine::builder()
            .workflow(self.clone())
            .workflow(Pays { seen: self.seen.clone(), gate: self.pays.clone() });
        engine.limit("bank", Limit::concurrent(1)).max_concurrent_executions(executions).build().unwrap()
    }

    /// The attempts that began since the last call.
    async fn begun(&self, before: &mut usize) -> Vec<String> {
        everyone_else().await;
        let all = self.seen.lines();
        let begun = all[*before..].to_vec();
        *before = all.len();
        begun
    }
}

#[workflow]
impl Shift {
    #[step]
    async fn list(&self, begin: &Begin) -> (Item, Vec<Part>) {
        (Item(begin.0), (0..begin.0).map(Part).collect())
    }

    #[step(limit = "bank")]
    async fn pay(&self, _: &Item) {
        self.seen.note("pays");
        self.pays.pass().await;
    }

    #[step]
    async fn work(&self, part: &Part) {
        self.seen.note(format!("works {}", part.0));
        self.works.pass().await;
    }

    #[step]
    async fn end(&self, _: &Close) -> Done {
        Done(0)
    }
}

// S70: the run is always full and the limit is always used up, and never is room and a permit free at the same moment.
#[tokio::test]
async fn an_attempt_that_gives_a_permit_back_begins_before_those_that_came_later() {
    let (shift, mut before) = (Shift::new(), 0);
    let engine = shift.engine(1);
    let first = start::<Pays>(&engine, "a", 0).await;
    let full = start::<Shift>(&engine, "full", 4).await;
    assert_eq!(shift.begun(&mut before).await, ["a", "works 0"]);
    let second = start::<Pays>(&engine, "b", 0).await;
    shift.pays.let_pass(1);
    assert_eq!(shift.begun(&mut before).await, ["b"], "`full` had no room, and others use the permit");
    let third = start::<Pays>(&engine, "c", 0).await;
    shift.works.let_pass(1);
    assert_eq!(shift.begun(&mut before).await, [""; 0], "the room is kept for the payment");
    let waiting = full.report_so_far().await.unwrap().waiting.clone();
    let texts: Vec<String> = waiting.iter().map(|waiting| waiting.waits_for.to_string()).collect();
    assert!(texts[0].ends_with("x1 of `b` runs"), "{texts:?}");
    assert!(texts[1].contains("`max_concurrent_executions`") && texts[1].contains("x2"), "{texts:?}");
    shift.pays.let_pass(1);
    assert_eq!(shift.begun(&mut before).await, ["pays"], "`c` came later");
    shift.pays.let_pass(1);
    let mut begun = shift.begun(&mut before).await;
    begun.sort_unstable();
    assert_eq!(begun, ["c", "works 1"]);
    shift.works.let_pass(3);
    shift.pays.let_pass(1);
    assert_eq!(shift.begun(&mut before).await, ["works 2", "works 3"]);
    full.send(Close).await.unwrap();
    ends([full]).await;
    ends([first, second, third]).await;
}

// S70
#[tokio::test]
async fn an_attempt_for_which_room_is_kept_takes_no_more_of_it() {
    let (shift, mut before) = (Shift::new(), 0);
    let engine = shift.engine(2);
    let first = start::<Pays>(&engine, "a", 0).await;
    let full = start::<Shift>(&engine, "full", 5).await;
    assert_eq!(shift.begun(&mut before).await, ["a", "works 0", "works 1"]);
    let second = start::<Pays>(&engine, "b", 0).await;
    shift.pays.let_pass(1);
    assert_eq!(shift.begun(&mut before).await, ["b"]);
    for next in ["works 2", "works 3", "works 4"] {
        shift.works.let_pass(1);
        let begun = shift.begun(&mut before).await;
        assert!(begun == [next] || next == "works 2" && begun.is_empty(), "{begun:?}");
        if begun.is_empty() {
            shift.works.let_pass(1);
            assert_eq!(
                shift.begun(&mut before).await,
                [next],
                "the other permit of the run is free for others"
            );
        }
    }
    shift.pays.let_pass(1);
    assert_eq!(shift.begun(&mut before).await, ["pays"]);
    shift.pays.let_pass(1);
    full.send(Close).await.unwrap();
    ends([full]).await;
    ends([first, second]).await;
}

// S70
#[tokio::test]
async fn a_cancelled_run_leaves_the_queue_in_which_it_was_preferred() {
    let (shift, mut before) = (Shift::new(), 0);
    let engine = shift.engine(1);
    let first = start::<Pays>(&engine, "a", 0).await;
    let full = start::<Shift>(&engine, "full", 2).await;
    let second = start::<Pays>(&engine, "b", 0).await;
    shift.pays.let_pass(1);
    everyone_else().await;
    shift.works.let_pass(1);
    assert_eq!(shift.begun(&mut before).await, ["a", "works 0", "b"]);
    full.cancel("not needed").await.unwrap();
    full.report().await.unwrap();
    let third = start::<Pays>(&engine, "c", 0).await;
    shift.pays.let_pass(2);
    assert_eq!(shift.begun(&mut before).await, ["c"]);
    ends([first, second, third]).await;
}

/// Pays one at a time, each for the customer of its number, and withdraws once the first is paid.
#[derive(Clone)]
struct Queue {
    seen: Seen,
    gates: Arc<Vec<Gate>>,
}

impl Queue {
    fn new() -> Self {
        Self { seen: Seen::default(), gates: Arc::new((0..3).map(|_| Gate::closed()).collect()) }
    }

    fn engine(&self) -> Engine {
        let engine = Engine::builder().workflow(self.clone()).workflow(Queues(self.clone()));
        engine.limit("bank", Limit::concurrent(1)).build().unwrap()
    }

    async fn pays(&self, run: &str, customer: u32) {
        self.seen.note(format!("{run} {customer}"));
        self.gates[customer as usize].pass().await;
    }
}

fn customer_of(item: &Item) -> u32 {
    item.0
}

#[workflow]
impl Queue {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        let customers = [vec![0], vec![0, 1, 1, 2]];
        customers[begin.0 as usize].iter().copied().map(Item).collect()
    }

    #[step(limit = "bank", limit_key = customer, concurrency = 1)]
    async fn pay(&self, item: &Item, info: &RunInfo) {
        self.pays(info.run().as_str(), item.0).await;
    }

    #[step]
    async fn end(&self, _: &Close) -> Done {
        Done(0)
    }

    fn customer(item: &Item) -> u32 {
        customer_of(item)
    }
}

/// The same in branches: one that is paid for is enough.
struct Queues(Queue);

#[workflow]
impl Queues {
    #[step]
    async fn list(&self, _: &Begin) -> FanOut<Item> {
        [0, 1, 2].into_iter().map(Item).collect::<FanOut<_>>().until(1)
    }

    #[step(limit = "bank", limit_key = customer, concurrency = 1)]
    async fn pay(&self, item: &Item, info: &RunInfo) -> Part {
        self.0.pays(info.run().as_str(), item.0).await;
        Part(item.0)
    }

    #[step]
    async fn again(&self, parts: &Gather<Part>) -> Vec<Alpha> {
        (0..u32::try_from(parts.len()).unwrap()).map(Alpha).collect()
    }

    #[step(limit = "bank", limit_key = other, concurrency = 1)]
    async fn refund(&self, alpha: &Alpha) -> Done {
        Done(alpha.0)
    }

    fn customer(item: &Item) -> u32 {
        customer_of(item)
    }

    fn other(alpha: &Alpha) -> u32 {
        alpha.0 + 7
    }
}

// S70, S21
#[tokio::test]
async fn a_step_keeps_its_permit_for_the_attempt_that_gave_one_back() {
    let queue = Queue::new();
    let engine = queue.engine();
    let first = start::<Queue>(&engine, "a", 0).await;
    let full = start::<Queue>(&engine, "full", 1).await;
    let second = start::<Queue>(&engine, "b", 0).await;
    assert_eq!(queue.seen.lines(), ["a 0", "full 1"], "customer 0 is paid for in `a`");
    queue.gates[0].let_pass(1);
    everyone_else().await;
    assert_eq!(queue.seen.lines()[2..], ["b 0"], "the step of `full` had no permit");
    queue.gates[1].let_pass(1);
    everyone_else().await;
    assert_eq!(queue.seen.lines()[3..], [""; 0], "the step's permit is kept for customer 0");
    queue.gates[0].let_pass(1);
    everyone_else().await;
    assert_eq!(queue.seen.lines()[3..], ["full 0"]);
    queue.gates[0].let_pass(1);
    everyone_else().await;
    assert_eq!(queue.seen.lines()[4..], ["full 1"]);
    queue.gates[1].let_pass(1);
    queue.gates[2].let_pass(1);
    everyone_else().await;
    assert_eq!(queue.seen.lines()[5..], ["full 2"]);
    for run in [first, full, second] {
        run.send(Close).await.unwrap();
        ends([run]).await;
    }
}

// S70, S50
#[tokio::test]
async fn a_preferred_attempt_that_is_dropped_frees_what_was_kept_for_it() {
    let queue = Queue::new();
    let engine = queue.engine();
    let first = start::<Queue>(&engine, "a", 0).await;
    let branches = start::<Queues>(&engine, "r", 0).await;
    let second = start::<Queue>(&engine, "b", 0).await;
    queue.gates[0].let_pass(1);
    everyone_else().await;
    assert_eq!(queue.seen.lines(), ["a 0", "r 1", "b 0"]);
    queue.gates[1].let_pass(1);
    assert_eq!(branches.outcome().await.unwrap(), Done(0));
    queue.gates[0].let_pass(1);
    for run in [first, second] {
        run.send(Close).await.unwrap();
        ends([run]).await;
    }
}
