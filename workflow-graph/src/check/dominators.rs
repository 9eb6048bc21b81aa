//! Immediate dominators by Lengauer and Tarjan's algorithm, in near-linear time and without recursion. It knows nothing
//! of documents.

const NONE: usize = usize::MAX;

/// The immediate dominator of each of `nodes` nodes, seen from `root`: the nearest other node on every path to it.
///
/// Nothing for `root` itself, and for nodes without a path.
pub(super) fn immediate(root: usize, nodes: usize, edges: &[(usize, usize)]) -> Vec<Option<usize>> {
    let successors = Adjacent::of(nodes, edges.iter().copied());
    let predecessors = Adjacent::of(nodes, edges.iter().map(|(from, to)| (*to, *from)));
    let (order, parent) = depth_first(root, nodes, &successors);
    let mut forest = Forest::new(nodes, &order);
    let mut dominator = vec![NONE; nodes];
    let mut bucket: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for &node in order.iter().skip(1).rev() {
        for &before in predecessors.of_node(node) {
            if forest.semi[before] != NONE {
                let best = forest.best(before);
                forest.semi[node] = forest.semi[node].min(forest.semi[best]);
            }
        }
        bucket[order[forest.semi[node]]].push(node);
        let above = parent[node];
        forest.ancestor[node] = above;
        for waiting in std::mem::take(&mut bucket[above]) {
            let best = forest.best(waiting);
            dominator[waiting] = if forest.semi[best] < forest.semi[waiting] { best } else { above };
        }
    }
    for &node in order.iter().skip(1) {
        if dominator[node] != order[forest.semi[node]] {
            dominator[node] = dominator[dominator[node]];
        }
    }
    dominator.into_iter().map(|dominator| (dominator != NONE).then_some(dominator)).collect()
}

/// Neighbours of nodes, in one allocation.
struct Adjacent {
    first: Vec<usize>,
    neighbours: Vec<usize>,
}

impl Adjacent {
    fn of(nodes: usize, edges: impl Iterator<Item = (usize, usize)> + Clone) -> Self {
        let mut first = vec![0; nodes + 1];
        for (from, _) in edges.clone() {
            first[from + 1] += 1;
        }
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let mut place = first.clone();
        let mut neighbours = vec![0; first[nodes]];
        for (from, to) in edges {
            neighbours[place[from]] = to;
            place[from] += 1;
        }
        Self { first, neighbours }
    }

    fn of_node(&self, node: usize) -> &[usize] {
        &self.neighbours[self.first[node]..self.first[node + 1]]
    }
}

/// Nodes in the order in which a depth-first search enters them, and from where.
fn depth_first(root: usize, nodes: usize, successors: &Adjacent) -> (Vec<usize>, Vec<usize>) {
    let (mut order, mut parent, mut is_entered) = (Vec::new(), vec![NONE; nodes], vec![false; nodes]);
    let mut open = vec![(root, 0)];
    is_entered[root] = true;
    order.push(root);
    while let Some((node, place)) = open.pop() {
        let Some(&to) = successors.of_node(node).get(place) else { continue };
        open.push((node, place + 1));
        if !std::mem::replace(&mut is_entered[to], true) {
            parent[to] = node;
            order.push(to);
            open.push((to, 0));
        }
    }
    (order, parent)
}

/// The forest of the algorithm, with compressed paths.
struct Forest {
    /// The place of the semidominator in the order; [`NONE`]: not reached.
    semi: Vec<usize>,
    ancestor: Vec<usize>,
    label: Vec<usize>,
    /// The path of [`best`](Self::best), kept for its memory.
    path: Vec<usize>,
}

impl Forest {
    fn new(nodes: usize, order: &[usize]) -> Self {
        let mut semi = vec![NONE; nodes];
        for (place, node) in order.iter().enumerate() {
            semi[*node] = place;
        }
        Self { semi, ancestor: vec![NONE; nodes], label: (0..nodes).collect(), path: Vec::new() }
    }

    /// The node with the least semidominator on the path from `node` to the root of its tree.
    fn best(&mut self, node: usize) -> usize {
        if self.ancestor[node] == NONE {
            return self.label[node];
        }
        let mut at = node;
        while self.ancestor[at] != NONE {
            self.path.push(at);
            at = self.ancestor[at];
        }
        let root = at;
        let mut best = None;
        while let Some(node) = self.path.pop() {
            if let Some(above) = best {
                let above: usize = above;
                if self.semi[above] < self.semi[self.label[node]] {
                    self.label[node] = above;
                }
            }
            self.ancestor[node] = root;
            best = Some(self.label[node]);
        }
        self.label[node]
    }
}
