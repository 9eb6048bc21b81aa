//! Drawings of tables, with and without a run. The expected drawings are files, so that `ci/check-drawings` gives the
//! same ones to the real parsers of Mermaid and DOT.

#![expect(clippy::needless_raw_string_hashes, reason = "`expect-test` writes expected texts this way")]

use expect_test::{expect, expect_file};
use serde_json::Value;
use workflow_core::draw::Graph;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use crate::fixtures::{Alpha, Begin, Done, Item, Part};

/// Compares a graph in each of its forms with the files of that name, and with what comes back from its JSON.
macro_rules! check {
    ($graph:expr, $name:literal) => {
        let graph: Graph = $graph;
        expect_file![concat!("../drawings/", $name, ".mmd")].assert_eq(&graph.to_mermaid());
        expect_file![concat!("../drawings/", $name, ".dot")].assert_eq(&graph.to_dot());
        let json = serde_json::to_string_pretty(&graph.to_json()).unwrap() + "\n";
        expect_file![concat!("../drawings/", $name, ".json")].assert_eq(&json);
        assert_eq!(serde_json::from_str::<Graph>(&json).unwrap(), graph);
    };
}

struct Simple;

/// One step after the other.
#[workflow]
impl Simple {
    /// Makes an item.
    #[step]
    async fn make(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    /// Ends the run
    /// with what was made.
    ///
    /// This paragraph is not drawn.
    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

#[test]
fn a_simple_workflow() {
    check!(Simple::graph(), "simple");
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Approve;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct GaveUp;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Document(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Page(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Counted(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Summary(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Unread;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Line(String);

#[derive(Debug, EventSet)]
enum Ends {
    Done(Done),
    GaveUp(GaveUp),
}

#[derive(Debug, EventSet)]
enum ItemOrPart {
    Item(Item),
    Part(Part),
}

#[derive(Debug, thiserror::Error)]
#[error("page {0} cannot be read")]
struct Unreadable(u32);

struct Everything;

/// A step of every kind, and an event of every role.
#[workflow(output = Ends)]
impl Everything {
    /// Emits two events that one step takes: two edges.
    #[step]
    async fn make(&self, begin: &Begin, lines: &Emitter<Line>) -> Result<(Item, Vec<Part>), StepError> {
        lines.emit(Line(String::new()))?;
        Ok((Item(begin.0), (0..begin.0).map(Part).collect()))
    }

    #[precondition]
    fn enough(parts: &List<Part>) -> bool {
        parts.len() > 1
    }

    /// Takes a list, and something else if it is there.
    #[step(precondition = enough, max_executions = 3, concurrency = 2)]
    async fn weigh(&self, item: &Item, parts: List<Part>, alpha: Option<&Alpha>) -> Option<Approve> {
        let skip = alpha.is_some_and(|alpha| alpha.0 == item.0 && parts.is_empty());
        (!skip).then_some(Approve)
    }

    /// Exactly two lines.
    #[step]
    async fn two(&self, _lines: FixedList<Line, 2>) -> Unread {
        Unread
    }

    /// Either of two events.
    #[step]
    async fn either(&self, _either: ItemOrPart) {}

    /// A branch per document.
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Document> {
        (0..begin.0).map(Document).collect::<FanOut<_>>().continue_others()
    }

    /// In it a branch per page.
    #[step]
    async fn turn(&self, document: &Document) -> FanOut<Page> {
        (0..=document.0).map(Page).collect::<FanOut<_>>().continue_others()
    }

    /// Sees the page and its document.
    #[step]
    async fn count(&self, document: &Document, page: &Page) -> Result<Counted, Unreadable> {
        if page.0 == 1 { Err(Unreadable(page.0)) } else { Ok(Counted(document.0 + page.0)) }
    }

    #[step]
    async fn sum_up(&self, document: &Document, pages: Gather<Counted>) -> Summary {
        Summary(document.0 + pages.ok().map(|page| page.0).sum::<u32>())
    }

    /// Ends the run, the one way or the other.
    #[step]
    async fn end(&self, approval: &Reply<Approve>, sums: Gather<Summary>) -> Ends {
        if **approval { Ends::Done(Done(sums.len().try_into().unwrap())) } else { Ends::GaveUp(GaveUp) }
    }
}

#[test]
fn a_workflow_with_everything() {
    check!(Everything::graph(), "everything");
}

// S51
#[tokio::test]
async fn a_workflow_with_a_run_laid_over_it() {
    let run = Scenario::new(Everything).reply(|_: &Approve| true).start(Begin(3)).await;
    assert!(run.outcome().is_ok());
    check!(Everything::graph().with_report(run.report()), "everything_after_a_run");
}

struct Hostile;

/// "Quoted" `ticked` <b>bold</b> & #hash #35; %%{init: {"theme": "dark"}}%% \n \N end ]}) | --> <br/>
#[expect(clippy::doc_markdown, reason = "what is hostile cannot be tidy")]
#[workflow]
impl Hostile {
    /// end
    #[step]
    async fn end(&self, _begin: &Begin) -> Named {
        Named
    }

    /// "double" 'single' `ticks` ``` **bold** _it_ <b>b</b><script>alert(1)</script> &amp; &lt; a && b
    #[step]
    async fn subgraph(&self, _named: &Named) -> Item {
        Item(0)
    }

    /// # 1. hash #35; #quot; %% a comment %%{init: {"theme": "dark"}}%% style a:#fff; classDef b:#000;
    #[step]
    async fn style(&self, item: &Item) -> Part {
        Part(item.0)
    }

    /// 1. a list; fa:fa-car $$x^2$$ back\slash \n \l \N {curly} [square] (round) |pipe| --> ==> ~~~
    #[step(name = "class\"x\"<b>-->y")]
    async fn class(&self, part: &Part) -> Counted {
        Counted(part.0)
    }

    /// Größe, 大きさ, حجم, 🙂, zero​width,	a tab
    #[step(name = "größe")]
    async fn size(&self, counted: &Counted) -> Summary {
        Summary(counted.0)
    }

    ///
    /// - a bullet
    /// [a link](crate::Link), https://example.com, www.example.com, a@b.org, _it_ and sum_up
    #[step]
    async fn bullet(&self, summary: &Summary) -> Done {
        Done(summary.0)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "shop.\"quoted\"<e>|#1;`%%")]
struct Named;

#[test]
fn hostile_names_and_doc_comments() {
    check!(Hostile::graph(), "hostile");
}

struct Recursive;

/// A folder holds folders.
#[workflow]
impl Recursive {
    /// Opens the root.
    #[step]
    async fn root(&self, begin: &Begin) -> Folder {
        Folder(begin.0)
    }

    /// A branch per folder in it, which this step takes as well.
    #[step(loops)]
    async fn open(&self, folder: &Folder) -> FanOut<Folder> {
        (0..folder.0).map(Folder).collect()
    }

    /// Of the folders in this one.
    #[step]
    async fn measure(&self, folder: &Folder, below: Gather<Size>) -> Size {
        Size(1 + below.ok().map(|size| size.0).sum::<u32>() + folder.0)
    }

    #[precondition]
    fn is_root(begin: &Begin, folder: &Folder) -> bool {
        folder.0 == begin.0
    }

    /// Ends the run with the size of the root.
    #[step(precondition = is_root)]
    async fn end(&self, _begin: &Begin, folder: &Folder, size: &Size) -> Done {
        Done(size.0 + folder.0)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Folder(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Size(u32);

/// Asserts that every node is in both drawings exactly once, in any box.
fn assert_complete(graph: &Graph) {
    let (mermaid, dot) = (graph.to_mermaid(), graph.to_dot());
    for node in &graph.nodes {
        let (in_mermaid, in_dot) = (format!("n_{}", node.id), format!("\"{}\" [label=", node.id));
        let shapes = mermaid.lines().filter_map(|line| line.trim_start().strip_prefix(&in_mermaid));
        assert_eq!(shapes.filter(|rest| rest.starts_with(['[', '(', '{'])).count(), 1, "{}", node.name);
        let statements = dot.lines().filter(|line| line.trim_start().starts_with(&in_dot));
        assert_eq!(statements.count(), 1, "{}", node.name);
    }
}

// S44
#[test]
fn a_fan_out_that_opens_itself_keeps_all_its_steps() {
    assert_complete(&Recursive::graph());
    check!(Recursive::graph(), "recursive");
}

struct MutuallyRecursive;

#[workflow]
impl MutuallyRecursive {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn items(&self, item: &Item) -> FanOut<Part> {
        (0..item.0).map(Part).collect()
    }

    #[step]
    async fn parts(&self, part: &Part) -> FanOut<Item> {
        (0..part.0).map(Item).collect()
    }

    #[step]
    async fn of_items(&self, items: Gather<Item>) -> Counted {
        Counted(items.len().try_into().unwrap())
    }

    #[step]
    async fn of_parts(&self, parts: Gather<Part>) -> Summary {
        Summary(parts.len().try_into().unwrap())
    }

    #[step]
    async fn end(&self, _begin: &Begin, counted: &Counted, _all: Gather<Summary>) -> Done {
        Done(counted.0)
    }
}

// S44
#[test]
fn fan_outs_that_open_each_other_keep_all_their_steps() {
    assert_complete(&MutuallyRecursive::graph());
    check!(MutuallyRecursive::graph(), "mutually_recursive");
}

struct Idle;

#[workflow]
impl Idle {
    #[step(on_error = "continue")]
    async fn fails(&self, begin: &Begin) -> Result<Part, Unreadable> {
        Err(Unreadable(begin.0))
    }

    #[step]
    async fn idle(&self, part: &Part) -> Item {
        Item(part.0)
    }

    #[step(reruns)]
    async fn end(&self, begin: &Begin, item: Option<&Item>) -> Done {
        tokio::task::yield_now().await;
        Done(begin.0 + item.map_or(0, |item| item.0))
    }
}

// S34
#[tokio::test]
async fn failed_and_unused_steps_stand_out() {
    let run = Scenario::new(Idle).start(Begin(3)).await;
    check!(Idle::graph().with_report(run.report()), "idle");
}

/// Times differ between runs: masks every digit, bar and blank of a line except for its length.
fn masked(timeline: &str) -> String {
    let lines = timeline.lines().map(|line| {
        let Some((step, rest)) = line.split_once('|') else { return line.to_owned() };
        let Some((bar, rest)) = rest.split_once('|') else { return line.to_owned() };
        let marks: String = bar.chars().filter(|mark| *mark != ' ').take(1).collect();
        let place = rest.split_once(" ms").map_or("", |(_, place)| place);
        format!("{step}|{marks}, {} wide| TIME ms{place}", bar.chars().count())
    });
    lines.collect::<Vec<_>>().join("\n")
}

// S34
#[tokio::test]
async fn a_timeline_has_a_line_per_execution() {
    let run = Scenario::new(Idle).start(Begin(3)).await;
    expect![[r#"
        fails |x, 48 wide| TIME ms
        end   |=, 48 wide| TIME ms"#]]
    .assert_eq(&masked(&run.report().timeline().to_string()));
    let mut run = Scenario::new(Everything).start(Begin(2)).await;
    run.handle().cancel("seen enough").await.unwrap();
    run.settled().await;
    expect![[r#"
        make   |=, 48 wide| TIME ms
        open   |=, 48 wide| TIME ms
        either |=, 48 wide| TIME ms
        either |=, 48 wide| TIME ms
        either |=, 48 wide| TIME ms
        weigh  |=, 48 wide| TIME ms
        turn   |=, 48 wide| TIME ms  in scope 1
        turn   |=, 48 wide| TIME ms  in scope 2
        count  |=, 48 wide| TIME ms  in scope 3
        count  |=, 48 wide| TIME ms  in scope 4
        count  |x, 48 wide| TIME ms  in scope 5
        sum_up |=, 48 wide| TIME ms  in scope 1
        sum_up |=, 48 wide| TIME ms  in scope 2"#]]
    .assert_eq(&masked(&run.report().timeline().to_string()));
}

struct Long;

#[workflow]
impl Long {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn take(&self, items: FixedList<Item, 1_000>) -> Done {
        Done(items.len().try_into().unwrap())
    }

    #[step]
    async fn each(&self, _item: &Item) {}
}

// S34
#[tokio::test]
async fn a_long_timeline_is_cut() {
    let timeline = Scenario::new(Long).start(Begin(1_000)).await.report().timeline().to_string();
    assert_eq!(timeline.lines().count(), 201);
    assert_eq!(timeline.lines().last(), Some("… and 802 more executions"));
}

// S9
#[test]
fn every_edge_of_a_drawing_joins_two_of_its_nodes() {
    let graphs = [Simple::graph(), Everything::graph(), Hostile::graph(), Recursive::graph(), Idle::graph()];
    for graph in graphs {
        let json = graph.to_json();
        let ids: Vec<&Value> = json["nodes"].as_array().unwrap().iter().map(|node| &node["id"]).collect();
        for edge in json["edges"].as_array().unwrap() {
            assert!(ids.contains(&&edge["from"]) && ids.contains(&&edge["to"]), "{edge}");
        }
    }
}

/// Two fan-outs whose branches make the same.
struct SameProduct;

#[workflow]
impl SameProduct {
    #[step]
    async fn split(&self, begin: &Begin) -> (FanOut<Item>, FanOut<Part>) {
        ((0..begin.0).map(Item).collect(), (0..begin.0).map(Part).collect())
    }

    #[step]
    async fn of_item(&self, item: &Item) -> Counted {
        Counted(item.0)
    }

    #[step]
    async fn of_part(&self, part: &Part) -> Counted {
        Counted(part.0)
    }

    #[step]
    async fn end(&self, items: &Gather<Counted, Item>, _parts: &Gather<Part>) -> Done {
        Done(items.ok().map(|counted| counted.0).sum())
    }
}

// S48
#[test]
fn a_gather_is_drawn_from_the_steps_of_its_branches() {
    let graph = SameProduct::graph();
    let name =
        |node: &str| graph.nodes.iter().find(|other| other.id == node).map(|node| node.name.to_string());
    let gathered = graph.edges.iter().filter(|edge| edge.kind == workflow_core::draw::EdgeKind::Gather);
    let gathered: Vec<_> = gathered.map(|edge| (name(&edge.from).unwrap(), edge.event.to_string())).collect();
    let expected = [("of_item", "Counted"), ("split", "Part")];
    assert_eq!(gathered, expected.map(|(step, event)| (step.to_owned(), event.to_owned())));
}
