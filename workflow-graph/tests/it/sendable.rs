//! Handles that threads share, and futures that move between them.

use std::sync::Arc;

use serde_json::Value;
use workflow_core::{Pause, RunId, Seq};
use workflow_graph::{Document, GraphOptions, GraphRun, Registry};

#[path = "../../../ci/sendable.rs"]
pub(crate) mod functions;

use functions::{each_future_is_send, is_shared};

#[test]
fn the_futures_of_all_public_functions_can_move_to_another_thread() {
    each_future_is_send! { include_str!("../../../docs/public/workflow-graph.txt");
        workflow_graph::GraphRun::answer => (&_, Seq, Value);
        workflow_graph::GraphRun::attach => (&_, RunId);
        workflow_graph::GraphRun::cancel => (&_, Arc<str>);
        workflow_graph::GraphRun::draw => (&_,);
        workflow_graph::GraphRun::explain => (&_,);
        workflow_graph::GraphRun::gates => (&_,);
        workflow_graph::GraphRun::outcome => (&_,);
        workflow_graph::GraphRun::pause => (&_, Pause);
        workflow_graph::GraphRun::play => (&_, &_);
        workflow_graph::GraphRun::redrive => (&_, RunId);
        workflow_graph::GraphRun::settled => (&_,);
        workflow_graph::GraphRun::settled_now => (&_,);
        workflow_graph::GraphRun::start => (&_, &str, Value);
        workflow_graph::GraphRun::start_with => (&_, &str, Value, GraphOptions);
        workflow_graph::GraphRun::trace => (&_,);
        workflow_graph::GraphRun::unpause => (&_,);
        workflow_graph::NodeContext::saved::<Value> => (&_,);
    }
    is_shared::<GraphRun>();
    is_shared::<Document>();
    is_shared::<Registry>();
}
