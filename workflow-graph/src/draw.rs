//! Drawings of documents: the nodes and routes that an author wrote, without the steps and events that run them. The core
//! turns them into Mermaid, DOT and JSON.

use workflow_core::draw::{BranchBox, Edge, EdgeKind, Graph as Drawing, Node as Shape, NodeKind};

use crate::check;
use crate::document::Document;
use crate::document::model::{Check, Graph, Node, OnFailure, Rule, Work};
use crate::document::template::Template;
use crate::routes::{Route, RouteKind, routes};

mod overlay;
#[cfg(test)]
mod tests;

pub(crate) use overlay::draw_run;

/// The most characters of a label.
const LABEL: usize = 200;

impl Document {
    /// Draws the graph that is run: its nodes, and its routes with their conditions.
    ///
    /// The nodes of branches lie in a box, and the routes to the node where branches meet gather them. Routes that lead away
    /// from failures are dotted. Children are nodes.
    ///
    /// ```
    /// use workflow_graph::Document;
    ///
    /// let document = Document::parse("
    /// graph: review
    /// nodes:
    ///   score: {function: essays.score, next: [{when: score.points > 5, to: praise}, {to: end}]}
    ///   praise: {value: Well done}
    /// ", "review.yaml")?;
    /// let drawing = document.draw();
    /// assert_eq!(&*drawing.edges[1].event, "score.points > 5");
    /// println!("{}", drawing.to_mermaid());
    /// # Ok::<(), workflow_graph::CheckError>(())
    /// ```
    pub fn draw(&self) -> Drawing {
        self.graphs().first().map_or_else(|| Drawing::new(""), |graph| draw(graph))
    }
}

/// Draws one graph.
pub(crate) fn draw(graph: &Graph) -> Drawing {
    let routes = routes(graph);
    let places = Places::of(graph, &routes);
    let mut drawing = Drawing::new(graph.name.value.clone());
    drawing.description = graph.description.clone().unwrap_or_default();
    drawing.nodes.push(Shape::new("start", NodeKind::Start));
    if routes.iter().any(|route| route.to.is_none()) {
        let mut end = Shape::new("stop", NodeKind::Stop);
        end.name = "end".into();
        drawing.nodes.push(end);
    }
    drawing.boxes.clone_from(&places.boxes);
    for (place, node) in graph.nodes.iter().enumerate() {
        drawing.nodes.push(shape(graph, place, node, &places));
    }
    drawing.edges.extend(graph.start().map(|start| Edge::new("start", id(Some(start)), "input")));
    drawing.edges.extend(routes.iter().map(|route| edge(graph, route, &places)));
    drawing
}

/// The id of a node in the drawing. The ids of documents may have characters that drawings read as arrows.
fn id(place: Option<usize>) -> String {
    place.map_or_else(|| "stop".into(), |place| format!("s{place}"))
}

fn shape(graph: &Graph, place: usize, node: &Node, places: &Places) -> Shape {
    let mut shape = Shape::new(id(Some(place)), NodeKind::Step);
    shape.name = node.id.value.clone();
    shape.description = description(graph, place, node, places).into();
    shape.precondition = node.requires.as_ref().map(|requires| {
        let checks: Vec<&str> = requires.all.iter().map(check_name).collect();
        shortened(&checks.join(" and ")).into()
    });
    shape.max_executions = node.max_visits;
    shape.concurrency = node.for_each.as_ref().map(|each| each.concurrency);
    shape.branch = places.around[place].and_then(|parallel| places.box_of(parallel));
    shape
}

/// The kind of the node, its place among branches, and the words of its author.
fn description(graph: &Graph, place: usize, node: &Node, places: &Places) -> String {
    let mut parts = vec![kind(&node.work)];
    if let Some(each) = &node.for_each {
        parts.push(format!("for each {} of {}", each.item, each.list.parsed.source()));
    }
    let joined = places.parallel.iter().filter(|parallel| places.joins[**parallel] == Some(place));
    parts.extend(joined.map(|parallel| format!("joins the branches of {}", graph.nodes[*parallel].id.value)));
    if matches!(node.on_failure, Some(OnFailure::Continue)) {
        parts.push("continues after a failure".into());
    }
    let text = parts.join(", ");
    match &node.description {
        Some(words) => format!("{text}: {words}"),
        None => text,
    }
}

/// The kind of a node, and the name of its work.
pub(crate) fn kind(work: &Work) -> String {
    match work {
        Work::Function(name) => format!("function {}", name.value),
        Work::Tool(name) => format!("tool {}", name.value),
        Work::Agent(agent) => {
            agent.model.as_ref().map_or_else(|| "agent".to_owned(), |model| format!("agent, model {model}"))
        }
        Work::Command(command) => match command.run.first() {
            Some(Template::Value(serde_json::Value::String(program))) => {
                format!("command {}", shortened(program))
            }
            _ => "command".into(),
        },
        Work::Human(_) => "human".into(),
        Work::Value(_) => "value".into(),
        Work::Graph(name) => format!("graph {}", name.value),
        Work::Workflow { name, .. } => format!("workflow {}", name.value),
    }
}

fn check_name(check: &Check) -> &str {
    match (&check.name, &check.rule) {
        (Some(name), _) => &name.value,
        (None, Rule::Expression(expression)) => expression.parsed.source(),
        (None, Rule::Path { path, .. }) => &path.source,
        (None, Rule::Required(_)) => "required values",
        (None, Rule::Called { .. }) => "tools called",
        (None, Rule::Judge { .. }) => "a judge",
    }
}

fn edge(graph: &Graph, route: &Route<'_>, places: &Places) -> Edge {
    let gathered = places.gathered(route);
    let label = match gathered {
        // The core writes `gather` before it.
        Some(parallel) if route.kind != RouteKind::Failure => {
            let branches = format!("branches of {}", graph.nodes[parallel].id.value);
            if route.kind == RouteKind::Only { branches } else { format!("{branches}: {route}") }
        }
        _ => route.to_string(),
    };
    let mut edge = Edge::new(id(Some(route.from)), id(route.to), shortened(&label));
    edge.kind = match (route.kind, gathered) {
        (RouteKind::Failure, _) => EdgeKind::Failure,
        (_, Some(_)) => EdgeKind::Gather,
        _ => EdgeKind::One,
    };
    edge
}

/// A label on one line, cut where it is long.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LABEL) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Which branches each node lies in, and where they meet.
struct Places {
    /// By node: the parallel node whose branches hold it.
    around: Vec<Option<usize>>,
    /// By node: where the branches of a parallel node meet.
    joins: Vec<Option<usize>>,
    boxes: Vec<BranchBox>,
    /// The parallel nodes of the boxes, ascending.
    parallel: Vec<usize>,
}

impl Places {
    fn of(graph: &Graph, routes: &[Route<'_>]) -> Self {
        let nodes = graph.nodes.len();
        let mut of_node = vec![Vec::new(); nodes];
        for route in routes {
            of_node[route.from].push(route);
        }
        let is_branch = |place: &usize| of_node[*place].iter().any(|route| route.kind == RouteKind::Branch);
        let parallel: Vec<usize> = (0..nodes).filter(is_branch).collect();
        let boxes =
            parallel.iter().map(|place| BranchBox::new(graph.nodes[*place].id.value.clone(), "branch"));
        let mut places = Self {
            around: vec![None; nodes],
            joins: check::joins(graph),
            boxes: boxes.collect(),
            parallel: parallel.clone(),
        };
        let mut is_reached = vec![false; nodes];
        let mut open: Vec<usize> = graph.start().into_iter().collect();
        for start in &open {
            is_reached[*start] = true;
        }
        while let Some(node) = open.pop() {
            for route in &of_node[node] {
                let Some(to) = route.to.filter(|to| !is_reached[*to]) else { continue };
                is_reached[to] = true;
                places.around[to] = places.behind(route, to);
                open.push(to);
            }
        }
        for (place, node) in parallel.iter().enumerate() {
            places.boxes[place].within = places.around[*node].and_then(|outer| places.box_of(outer));
        }
        places
    }

    /// The parallel node whose branches a route to `to` stays or ends in.
    fn behind(&self, route: &Route<'_>, to: usize) -> Option<usize> {
        let mut around = self.within(route);
        while let Some(parallel) = around.filter(|parallel| self.joins[*parallel] == Some(to)) {
            around = self.around[parallel];
        }
        around
    }

    fn within(&self, route: &Route<'_>) -> Option<usize> {
        if route.kind == RouteKind::Branch { Some(route.from) } else { self.around[route.from] }
    }

    /// The parallel node whose branches the route gathers.
    fn gathered(&self, route: &Route<'_>) -> Option<usize> {
        self.within(route).filter(|parallel| route.to.is_some() && self.joins[*parallel] == route.to)
    }

    fn box_of(&self, parallel: usize) -> Option<usize> {
        self.parallel.binary_search(&parallel).ok()
    }
}
