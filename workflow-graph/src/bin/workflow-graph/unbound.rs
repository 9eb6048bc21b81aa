//! The functions and executors that a document needs and the command lacks, with the remedies that the command line has.

use workflow_graph::{CheckError, Code, Document, Problem as Found};

use crate::problem::Problem;

const SCRIPT: &str = "give a script with `--script FILE`";

/// The most nodes that are named.
const NAMED: usize = 20;

/// The error of a document that cannot be bound, for people at a command line.
pub(crate) fn told(mut error: CheckError, document: &Document, has_script: bool) -> Problem {
    let mut is_first = true;
    // All functions are missing for one reason, and one option mends that.
    error.problems.retain(|problem| problem.code != Code::UnknownFunction || std::mem::take(&mut is_first));
    for problem in &mut error.problems {
        tell(problem, document, has_script);
    }
    Problem::Document(error)
}

fn tell(problem: &mut Found, document: &Document, has_script: bool) {
    match problem.code {
        Code::UnknownFunction => {
            problem.message = format!("the command has no functions of its own: {}", calls(document));
            problem.remedy = SCRIPT.into();
        }
        Code::NoExecutor if !has_script => problem.remedy = SCRIPT.into(),
        Code::CommandsNotAllowed => {
            problem.remedy = "give `--allow-commands` if you trust the document, or a script".into();
        }
        _ => {}
    }
}

/// The nodes that call functions.
fn calls(document: &Document) -> String {
    let functions = document.functions();
    let calls = functions.iter().flat_map(|(name, nodes)| nodes.iter().map(move |node| (node, name)));
    let mut told: Vec<String> =
        calls.clone().take(NAMED).map(|(node, name)| format!("`{node}` calls `{name}`")).collect();
    let more = calls.count().saturating_sub(NAMED);
    if more > 0 {
        told.push(format!("{more} more nodes call others"));
    }
    told.join(", ")
}
