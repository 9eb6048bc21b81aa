//! `unknown-start`, `unknown-node`: names of nodes lead to nodes. Names in expressions are checked with their reads.

use crate::document::model::{Graph, Name, Next, OnFailure, Reads, Target};
use crate::problem::Code;
use crate::problem::sink::Problems;

pub(super) fn check(graph: &Graph, problems: &mut Problems) {
    let mut unknown = |code, name: &Name, what: &str| {
        if graph.find(&name.value).is_some() || graph.nodes.is_empty() {
            return;
        }
        problems.add_unknown(
            code,
            name.at,
            format!("{what} `{}`, and the graph has no such node", name.value),
            &name.value,
            graph.nodes.iter().map(|node| &*node.id.value),
            || "add the node, or name another".to_owned(),
        );
    };
    if let Some(start) = &graph.start {
        unknown(Code::UnknownStart, start, "the graph starts at");
    }
    for node in &graph.nodes {
        let leads = format!("`{}` leads to", node.id.value);
        let mut target = |target: &Target| {
            if let Target::Node(name) = target {
                unknown(Code::UnknownNode, name, &leads);
            }
        };
        match &node.next {
            Next::End => {}
            Next::To(name) => unknown(Code::UnknownNode, name, &leads),
            Next::Routes(routes) => routes.iter().for_each(|route| target(&route.to)),
            Next::Parallel(parallel) => {
                parallel.branches.iter().for_each(|branch| unknown(Code::UnknownNode, &branch.to, &leads));
                if let Some(join) = &parallel.join {
                    let joins = format!("the branches of `{}` meet at", node.id.value);
                    unknown(Code::UnknownNode, join, &joins);
                }
            }
            Next::Sweny(sweny) => {
                sweny.edges.iter().for_each(|edge| unknown(Code::UnknownNode, &edge.to, &leads));
            }
            Next::Decide(decide) => {
                decide.choices.iter().for_each(|choice| target(&choice.to));
                target(&decide.otherwise);
            }
        }
        match &node.on_failure {
            Some(OnFailure::To(name)) => unknown(Code::UnknownNode, name, &leads),
            Some(OnFailure::Routes(routes)) => {
                for route in routes {
                    if let Target::Node(name) = &route.to {
                        unknown(Code::UnknownNode, name, &leads);
                    }
                }
            }
            Some(OnFailure::Continue) | None => {}
        }
        if let Reads::Only(names) = &node.reads {
            let reads = format!("`{}` reads", node.id.value);
            for name in names {
                unknown(Code::UnknownNode, name, &reads);
            }
        }
    }
}
