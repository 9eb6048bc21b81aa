//! The functions and tools that the nodes of a document call, for programs that show or prepare what they have to provide.

use std::collections::BTreeMap;

use crate::Document;
use crate::document::model::{Node, Work};

impl Document {
    /// The functions that nodes of the document call, each with these nodes. [`bind`](Self::bind) checks them.
    ///
    /// ```
    /// use workflow_graph::Document;
    ///
    /// let text = "graph: g\nnodes: {a: {function: x, next: b}, b: {tool: t, next: c}, c: {function: x}}\n";
    /// let document = Document::parse(text, "g.yaml")?;
    /// assert_eq!(document.functions()["x"], ["a", "c"]);
    /// assert_eq!(document.tools()["t"], ["b"]);
    /// # Ok::<(), workflow_graph::CheckError>(())
    /// ```
    pub fn functions(&self) -> BTreeMap<&str, Vec<&str>> {
        self.called(|node| match &node.work {
            Work::Function(name) => Some(&*name.value),
            _ => None,
        })
    }

    /// The tools that `tool` nodes of the document call, each with these nodes.
    pub fn tools(&self) -> BTreeMap<&str, Vec<&str>> {
        self.called(|node| match &node.work {
            Work::Tool(name) => Some(&*name.value),
            _ => None,
        })
    }

    fn called<'d>(&'d self, name: impl Fn(&'d Node) -> Option<&'d str>) -> BTreeMap<&'d str, Vec<&'d str>> {
        let mut called: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for node in self.graphs().iter().flat_map(|graph| &graph.nodes) {
            if let Some(name) = name(node) {
                called.entry(name).or_default().push(&node.id.value);
            }
        }
        called
    }
}
