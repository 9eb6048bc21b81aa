//! Futures of the public functions, which move between threads.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use workflow_core::Seq;
use workflow_core::prelude::*;
use workflow_core::report::RequestId;

use crate::support::Research;

#[path = "../../../ci/sendable.rs"]
pub(crate) mod functions;

use functions::{each_future_is_send, is_shared};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Asked {}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Sent {}

#[test]
fn the_futures_of_all_public_functions_can_move_to_another_thread() {
    each_future_is_send! { include_str!("../../../docs/public/workflow-testkit.txt");
        workflow_testkit::Handle::next_call => (&mut _,);
        workflow_testkit::TestRun::<Research>::advance => (&mut _, Duration);
        workflow_testkit::TestRun::<Research>::cancel => (&mut _, Arc<str>);
        workflow_testkit::TestRun::<Research>::reply_json => (&mut _, Seq, Value);
        workflow_testkit::TestRun::<Research>::send_json => (&mut _, &str, Value);
        workflow_testkit::TestRun::<Research>::reply::<Asked> => (&mut _, RequestId<Asked>, bool);
        workflow_testkit::TestRun::<Research>::send::<Sent> => (&mut _, Sent);
        workflow_testkit::TestRun::<Research>::settled => (&mut _,);
    }
    is_shared::<workflow_testkit::VirtualClock>();
}
