//! `unknown-start`, `unknown-node`: names of nodes lead to nodes. Names in expressions are checked with their reads.

use crate::document::model::{Graph, Name, Next, OnFailure, Reads, Target};
use crate::problem::Code;
use crate::problem::sink::Problems;

const END: &[&str] = &["end"];

pub(super) fn check(graph: &Graph, problems: &mut Problems) {
    // A target is the end of the walk as well, and a way of a failure may be to continue.
    let mut unknown = |code, name: &Name, what: &str, words: &'static [&'static str]| {
        // A target without a name, and one that may be declared where nothing could be read, are problems already.
        let is_explained =
            name.value.is_empty() || graph.unread.names || graph.unread.words.contains(&name.value);
        if graph.find(&name.value).is_some() || graph.nodes.is_empty() || is_explained {
            return;
        }
        problems.add_unknown(
            code,
            name.at,
            format!("{what} `{}`, and the graph has no such node", name.value),
            &name.value,
            graph.nodes.iter().map(|node| &*node.id.value).chain(words.iter().copied()),
            || "add the node, or name another".to_owned(),
        );
    };
    if let Some(start) = &graph.start {
        unknown(Code::UnknownStart, start, "the graph starts at", &[]);
    }
    for node in &graph.nodes {
        let leads = format!("`{}` leads to", node.id.value);
        let mut target = |target: &Target| {
            if let Target::Node(name) = target {
                unknown(Code::UnknownNode, name, &leads, END);
            }
        };
        match &node.next {
            Next::End => {}
            Next::To(name) => unknown(Code::UnknownNode, name, &leads, END),
            Next::Routes(routes) => routes.iter().for_each(|route| target(&route.to)),
            Next::Parallel(parallel) => {
                parallel
                    .branches
                    .iter()
                    .for_each(|branch| unknown(Code::UnknownNode, &branch.to, &leads, &[]));
                if let Some(join) = &parallel.join {
                    let joins = format!("the branches of `{}` meet at", node.id.value);
                    unknown(Code::UnknownNode, join, &joins, &[]);
                }
            }
            Next::Sweny(sweny) => {
                sweny.edges.iter().for_each(|edge| unknown(Code::UnknownNode, &edge.to, &leads, &[]));
            }
            Next::Decide(decide) => {
                decide.choices.iter().for_each(|choice| target(&choice.to));
                target(&decide.otherwise);
            }
        }
        match &node.on_failure {
            Some(OnFailure::To(name)) => unknown(Code::UnknownNode, name, &leads, &["end", "continue"]),
            Some(OnFailure::Routes(routes)) => {
                for route in routes {
                    if let Target::Node(name) = &route.to {
                        unknown(Code::UnknownNode, name, &leads, END);
                    }
                }
            }
            Some(OnFailure::Continue) | None => {}
        }
        if let Reads::Only(names) = &node.reads {
            let reads = format!("`{}` reads", node.id.value);
            for name in names {
                unknown(Code::UnknownNode, name, &reads, &[]);
            }
        }
    }
}
