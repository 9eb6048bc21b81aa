//! Graphs that a program builds itself, part by part: for workflows that come from elsewhere, and for the parts of a
//! table. All fields of the parts are public, so a constructor takes only what each part must have.

use std::sync::Arc;

use super::{BranchBox, Edge, EdgeKind, Graph, Node, NodeKind};

impl Graph {
    /// Creates a graph of this workflow, without nodes, edges and boxes.
    ///
    /// A graph that names nodes or boxes which it lacks can be drawn too. An edge of such a node stays, and a node of
    /// such a box is drawn outside of boxes.
    ///
    /// ```
    /// use workflow_core::draw::{BranchBox, Edge, Graph, Node, NodeKind};
    ///
    /// let mut graph = Graph::new("reader");
    /// graph.boxes.push(BranchBox::new("split", "Page"));
    /// graph.nodes.push(Node::new("start", NodeKind::Start));
    /// graph.nodes.push(Node::new("split", NodeKind::Step));
    /// let mut read = Node::new("read", NodeKind::Step);
    /// read.branch = Some(0);
    /// graph.nodes.push(read);
    /// graph.edges.push(Edge::new("start", "split", "Book"));
    /// let mut pages = Edge::new("split", "read", "Page");
    /// pages.fan_out = true;
    /// graph.edges.push(pages);
    ///
    /// let expected = r#"flowchart TD
    ///     n_start(["start"])
    ///     n_split["split"]
    ///     subgraph b0 ["each Page of split"]
    ///         n_read["read"]
    ///     end
    ///     n_start -->|"Book"| n_split
    ///     n_split -->|"Page each"| n_read
    /// "#;
    /// assert_eq!(graph.to_mermaid(), expected);
    ///
    /// // A front end may send the graph back as JSON.
    /// assert_eq!(serde_json::from_value::<Graph>(graph.to_json())?, graph);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn new(workflow: impl Into<Arc<str>>) -> Self {
        let (description, workflow) = (Arc::default(), workflow.into());
        Self { workflow, description, nodes: Vec::new(), edges: Vec::new(), boxes: Vec::new() }
    }
}

impl Node {
    /// Creates a node of this kind, whose name is its id.
    ///
    /// Its other fields are empty: no description, no limits, no box, no forecast and no run.
    ///
    /// ```
    /// use workflow_core::draw::{Graph, Node, NodeKind};
    ///
    /// let mut node = Node::new("s0", NodeKind::Step);
    /// node.name = "read".into();
    /// node.max_executions = Some(2);
    /// let mut graph = Graph::new("reader");
    /// graph.nodes.push(node);
    /// assert!(graph.to_dot().contains(r#""s0" [label="read\nat most twice"];"#));
    /// ```
    pub fn new(id: impl Into<String>, kind: NodeKind) -> Self {
        let id = id.into();
        Self::named(Arc::from(&*id), id, kind)
    }

    /// The same with a name of its own.
    pub(super) fn named(name: Arc<str>, id: String, kind: NodeKind) -> Self {
        Self {
            name,
            id,
            kind,
            description: Arc::default(),
            precondition: None,
            max_executions: None,
            concurrency: None,
            at_most_once: false,
            on_end: None,
            branch: None,
            forecast: None,
            ran: None,
        }
    }
}

impl Edge {
    /// Creates the edge of an event between the nodes with these ids.
    ///
    /// The target requires the event and takes one at a time ([`EdgeKind::One`]), and one execution emits one.
    ///
    /// ```
    /// use workflow_core::draw::{Edge, EdgeKind, Graph};
    ///
    /// let mut edge = Edge::new("write", "review", "Draft");
    /// edge.kind = EdgeKind::List;
    /// edge.many = true;
    /// let mut graph = Graph::new("writer");
    /// graph.edges.push(edge);
    /// assert!(graph.to_dot().contains(r#""write" -> "review" [label="[Draft] *"];"#));
    /// ```
    pub fn new(from: impl Into<String>, to: impl Into<String>, event: impl Into<Arc<str>>) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
            event: event.into(),
            kind: EdgeKind::One,
            optional: false,
            passive: false,
            many: false,
            fan_out: false,
            timed: false,
            cleans_up: false,
        }
    }
}

impl BranchBox {
    /// Creates the box of the branches that this step opens with this item, in no other box.
    pub fn new(step: impl Into<Arc<str>>, item: impl Into<Arc<str>>) -> Self {
        Self {
            step: step.into(),
            item: item.into(),
            within: None,
            branches: None,
            failed: None,
            dropped: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node_in(id: &str, branch: usize) -> Node {
        Node { branch: Some(branch), ..Node::new(id, NodeKind::Step) }
    }

    fn box_in(item: &str, within: Option<usize>) -> BranchBox {
        BranchBox { within, ..BranchBox::new("split", item) }
    }

    #[test]
    fn boxes_that_lie_in_each_other_are_left_out_and_their_nodes_lie_outside() {
        let mut graph = Graph::new("circles");
        graph.boxes =
            vec![box_in("A", Some(1)), box_in("B", Some(0)), box_in("C", Some(2)), box_in("D", Some(9))];
        graph.nodes = vec![node_in("a", 0), node_in("c", 2), node_in("d", 3), node_in("e", 7)];
        let lines = graph.to_mermaid();
        let lines: Vec<&str> = lines.lines().skip(1).collect();
        let expected = [
            "    n_a[\"a\"]",
            "    n_c[\"c\"]",
            "    n_e[\"e\"]",
            "    subgraph b3 [\"each D of split\"]",
            "        n_d[\"d\"]",
            "    end",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn boxes_deeper_than_a_stack_are_drawn() {
        let mut graph = Graph::new("deep");
        graph.boxes = (0..3_000_usize).map(|at| box_in("A", at.checked_sub(1))).collect();
        graph.nodes = vec![node_in("a", 2_999)];
        assert_eq!(graph.to_dot().matches("subgraph").count(), 3_000);
    }
}
