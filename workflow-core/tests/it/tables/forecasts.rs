//! The guide explains case by case how often a step runs. Its excerpts are these workflows: every step as declared
//! here, with the forecast of the table. Each test also runs its workflow in every order, and compares the number of
//! executions with the forecast.

use std::{env, fs};

use workflow_core::RunStatus;
use workflow_core::draw::{Graph, Node};
use workflow_core::prelude::*;
use workflow_core::table::Forecast;
use workflow_testkit::{Scenario, Start, TestRun, explore};

const PAGE: &str = "../../docs/guide/how-often.md";
const SOURCE: &str = include_str!("forecasts.rs");

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Wanted;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Stock;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Price;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Bid;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Rejected;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Shop;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Shelf;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Counted;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Summed;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Offer;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Approve;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Bought;

#[derive(Debug, EventSet)]
enum Ordered {
    Wanted(Wanted),
    Rejected(Rejected),
}

#[derive(Debug, EventSet)]
enum Verdict {
    Rejected(Rejected),
    Bought(Bought),
}

struct Chain;

#[workflow]
impl Chain {
    #[step]
    async fn look(&self, _wanted: &Wanted) -> Stock {
        Stock
    }

    #[step]
    async fn note(&self, _wanted: &Wanted) {}

    #[step]
    async fn buy(&self, _stock: &Stock) -> Bought {
        Bought
    }
}

struct Join;

#[workflow]
impl Join {
    #[step]
    async fn look(&self, _wanted: &Wanted) -> Stock {
        Stock
    }

    #[step]
    async fn price(&self, _wanted: &Wanted) -> Price {
        Price
    }

    #[step]
    async fn buy(&self, _stock: &Stock, _price: &Price) -> Bought {
        Bought
    }
}

struct JoinOfTwoSources;

#[workflow]
impl JoinOfTwoSources {
    #[step]
    async fn look(&self, _wanted: &Wanted) -> Stock {
        Stock
    }

    #[step]
    async fn ask_acme(&self, _wanted: &Wanted) -> Bid {
        Bid
    }

    #[step]
    async fn ask_brook(&self, _wanted: &Wanted) -> Bid {
        Bid
    }

    #[step]
    async fn weigh(&self, _stock: &Stock, _bid: &Bid) -> Bought {
        Bought
    }
}

struct JoinOfMany;

#[workflow]
impl JoinOfMany {
    #[step]
    async fn ask(&self, _wanted: &Wanted) -> Vec<Bid> {
        vec![Bid; 3]
    }

    #[step]
    async fn weigh(&self, _wanted: &Wanted, _bid: &Bid) -> Option<Bought> {
        Some(Bought)
    }
}

struct JoinFromOutside;

#[workflow]
impl JoinFromOutside {
    #[step]
    async fn ask(&self, _wanted: &Wanted) -> Approve {
        Approve
    }

    #[step]
    async fn approved(&self, _approval: &Reply<Approve>) -> Price {
        Price
    }

    #[step]
    async fn hear(&self, _offer: &Offer) -> Vec<Bid> {
        vec![Bid]
    }

    #[step]
    async fn buy(&self, _price: &Price, _offer: &Offer, _bid: &Bid) -> Bought {
        Bought
    }
}

struct Optional;

#[workflow]
impl Optional {
    #[step]
    async fn price(&self, _wanted: &Wanted) -> Option<Price> {
        Some(Price)
    }

    #[step(reruns)]
    async fn buy(&self, _wanted: &Wanted, _price: Option<&Price>) -> Bought {
        Bought
    }
}

struct Lists;

#[workflow]
impl Lists {
    #[step]
    async fn ask(&self, _wanted: &Wanted) -> Vec<Bid> {
        vec![Bid; 3]
    }

    #[step(reruns)]
    async fn count(&self, _bids: &List<Bid>) {}

    #[step]
    async fn first_two(&self, _bids: &FixedList<Bid, 2>) -> Bought {
        Bought
    }
}

struct FixedListBeside;

#[workflow]
impl FixedListBeside {
    #[step]
    async fn ask(&self, _wanted: &Wanted) -> Vec<Bid> {
        vec![Bid; 3]
    }

    #[step]
    async fn look(&self, _wanted: &Wanted) -> Stock {
        Stock
    }

    #[step]
    async fn look_again(&self, _wanted: &Wanted) -> Stock {
        Stock
    }

    #[step]
    async fn buy(&self, _bids: &FixedList<Bid, 2>, _stock: &Stock) -> Bought {
        Bought
    }
}

struct Preconditions;

#[workflow]
impl Preconditions {
    #[step]
    async fn ask_acme(&self, _wanted: &Wanted) -> Bid {
        Bid
    }

    #[step]
    async fn ask_brook(&self, _wanted: &Wanted) -> Bid {
        Bid
    }

    #[precondition]
    fn both(bids: &List<Bid>) -> bool {
        bids.len() == 2
    }

    #[step(precondition = both)]
    async fn choose(&self, _bids: &List<Bid>) -> Bought {
        Bought
    }
}

struct Limited;

#[workflow]
impl Limited {
    #[step]
    async fn ask(&self, _wanted: &Wanted) -> Vec<Bid> {
        vec![Bid; 5]
    }

    #[step(max_executions = 3)]
    async fn weigh(&self, _bid: &Bid) -> Option<Bought> {
        Some(Bought)
    }
}

struct Loop;

#[workflow]
impl Loop {
    #[step]
    async fn write(&self, _ordered: Ordered) -> Draft {
        Draft
    }

    #[step]
    async fn review(&self, _draft: &Draft) -> Verdict {
        Verdict::Bought(Bought)
    }
}

struct LimitedLoop;

#[workflow]
impl LimitedLoop {
    #[step]
    async fn write(&self, _ordered: Ordered) -> Draft {
        Draft
    }

    #[step(max_executions = 3)]
    async fn review(&self, _draft: &Draft) -> Verdict {
        Verdict::Rejected(Rejected)
    }
}

struct Branches;

#[workflow]
impl Branches {
    #[step]
    async fn visit(&self, _wanted: &Wanted) -> FanOut<Shop> {
        vec![Shop; 3].into_iter().collect()
    }

    #[step]
    async fn ask(&self, _wanted: &Wanted, _shop: &Shop) -> Bid {
        Bid
    }

    #[step(max_executions = 1)]
    async fn note(&self, _bid: &Bid) {}

    #[precondition]
    fn is_open(_shop: &Shop) -> bool {
        true
    }

    #[step(precondition = is_open)]
    async fn look(&self, _shop: &Shop) {}

    #[step]
    async fn choose(&self, _bids: &Gather<Bid>) -> Bought {
        Bought
    }
}

struct NestedBranches;

#[workflow]
impl NestedBranches {
    #[step]
    async fn visit(&self, _wanted: &Wanted) -> FanOut<Shop> {
        vec![Shop; 2].into_iter().collect()
    }

    #[step]
    async fn walk(&self, _shop: &Shop) -> FanOut<Shelf> {
        vec![Shelf; 2].into_iter().collect()
    }

    #[step]
    async fn count(&self, _shop: &Shop, _shelf: &Shelf) -> Counted {
        Counted
    }

    #[step]
    async fn sum(&self, _counted: &Gather<Counted>) -> Summed {
        Summed
    }

    #[step]
    async fn buy(&self, _summed: &Gather<Summed>) -> Bought {
        Bought
    }
}

// S14, S17, S19, S46
#[test]
fn the_guide_quotes_the_forecast_of_every_case_it_explains() {
    let excerpts = [
        excerpt(|| Scenario::new(Chain).start(Wanted)),
        excerpt(|| Scenario::new(Join).start(Wanted)),
        excerpt(|| Scenario::new(JoinOfTwoSources).start(Wanted)),
        excerpt(|| Scenario::new(JoinOfMany).start(Wanted)),
        excerpt(|| Scenario::new(JoinFromOutside).send(Offer).reply(|_: &Approve| true).start(Wanted)),
        excerpt(|| Scenario::new(Optional).start(Wanted)),
        excerpt(|| Scenario::new(Lists).start(Wanted)),
        excerpt(|| Scenario::new(FixedListBeside).start(Wanted)),
        excerpt(|| Scenario::new(Preconditions).start(Wanted)),
        excerpt(|| Scenario::new(Limited).start(Wanted)),
        excerpt(|| Scenario::new(Loop).start(Wanted)),
        excerpt(|| Scenario::new(LimitedLoop).start(Wanted)),
        excerpt(|| Scenario::new(Branches).start(Wanted)),
        excerpt(|| Scenario::new(NestedBranches).start(Wanted)),
    ];
    let page = fs::read_to_string(PAGE).unwrap();
    let written = with_excerpts(&page, &excerpts);
    if page != written && env::var_os("UPDATE_EXPECT").is_some_and(|update| update == "1") {
        return fs::write(PAGE, written).unwrap();
    }
    assert_eq!(page, written, "`UPDATE_EXPECT=1` writes the blocks and pictures of the page anew");
}

/// The page with these blocks and pictures instead of its own.
fn with_excerpts(page: &str, excerpts: &[String]) -> String {
    let mut parts = page.split("```text\n");
    let mut written = parts.next().unwrap().to_owned();
    assert_eq!(parts.clone().count(), excerpts.len(), "the page has a block for each workflow of this file");
    for (part, excerpt) in parts.zip(excerpts) {
        let (_, rest) = part.split_once("```\n").unwrap();
        let drawn = rest.strip_prefix("\n```mermaid\n").map(|drawn| drawn.split_once("```\n").unwrap().1);
        written += excerpt;
        written += drawn.unwrap_or(rest);
    }
    written
}

/// Runs a workflow in every order, compares how often its steps ran with their forecasts, and returns its excerpt and
/// its picture with the run that begins things in the order of the table.
fn excerpt<W: Workflow>(scenario: impl Fn() -> Start<W>) -> String {
    let graph = W::graph();
    let explored = explore(&scenario).assert(|run| {
        steps(&graph).for_each(|(step, forecast)| assert_holds(forecast, step, run));
    });
    assert!(explored.is_exhaustive());
    let lines = steps(&graph).map(|(step, forecast)| {
        let forecast = forecast.to_string();
        format!("{forecast:<16}{}\n", declared(&graph.workflow, &step.name))
    });
    let lines: String = lines.collect();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let run = runtime.block_on(scenario().into_future());
    let picture = graph.clone().with_report(run.report()).to_mermaid();
    format!("```text\n{lines}```\n\n```mermaid\n{picture}```\n")
}

fn steps(graph: &Graph) -> impl Iterator<Item = (&Node, &Forecast)> {
    graph.nodes.iter().filter_map(|node| Some((node, node.forecast.as_ref()?)))
}

/// Asserts that the step ran as often as forecast. The minimum applies to completed runs.
fn assert_holds<W: Workflow>(forecast: &Forecast, step: &Node, run: &TestRun<W>) {
    let report = run.report();
    let events = |per: &str| report.log.iter().filter(|logged| &*logged.event == per).count() as u64;
    let per = forecast.per.as_deref().map_or(1, events);
    let (runs, completed) = (report.executions(&step.name), report.status == RunStatus::Completed);
    let least = if completed { forecast.least * per } else { 0 };
    let greatest = forecast.greatest.map_or(u64::MAX, |greatest| greatest * per);
    let (step, workflow) = (&step.name, &report.workflow);
    assert!((least..=greatest).contains(&runs), "{step} of {workflow} ran {runs} times: {forecast}");
}

/// The declaration of the step in this file, without common parts.
fn declared(workflow: &str, step: &str) -> String {
    let (_, block) = SOURCE.split_once(&format!("\nimpl {workflow} {{\n")).unwrap();
    let (before, after) = block.split_once(&format!("    async fn {step}(&self, ")).unwrap();
    let (signature, _) = after.split_once(" {").unwrap();
    let attribute = before.lines().last().unwrap().trim();
    let attribute = if attribute == "#[step]" { String::new() } else { format!("{attribute} ") };
    format!("{attribute}{step}({}", signature.replace('_', ""))
}
