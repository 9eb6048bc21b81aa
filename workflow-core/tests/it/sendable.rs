//! Handles that threads share, and futures that move between them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use workflow_core::prelude::*;
use workflow_core::report::RequestId;
use workflow_core::store::{Retention, RunQuery};
use workflow_core::{AnyRun, Cancellation, Pause, ResumeError, RunHandle, RunId, Seq};

#[path = "../../../ci/sendable.rs"]
pub(crate) mod functions;

use functions::{each_future_is_send, is_shared};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begun {}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Over {}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Asked {}

struct Flow;

#[workflow]
impl Flow {
    #[step]
    async fn end(&self, _: &Begun) -> Over {
        Over {}
    }
}

// S33
#[test]
#[expect(deprecated, reason = "former names are public as well")]
fn the_futures_of_all_public_functions_can_move_to_another_thread() {
    each_future_is_send! { include_str!("../../../docs/public/workflow-core.txt");
        workflow_core::Cancellation::cancelled => (&_,);
        workflow_core::Engine::claim_orphans => (&_,);
        workflow_core::Engine::history => (&_, &_);
        workflow_core::Engine::resume_open_runs => (&_,);
        workflow_core::Engine::runs => (&_, &RunQuery);
        workflow_core::Engine::cancel_all => (&_, Arc<str>, Duration);
        workflow_core::Engine::cancel_and_shut_down => (&_, Duration);
        workflow_core::Engine::hand_over => (&_, Duration);
        workflow_core::Engine::shut_down => (&_, Duration);
        workflow_core::Engine::redrive_all => (&_, &RunQuery, usize);
        workflow_core::Engine::remove_run => (&_, &RunId);
        workflow_core::Engine::retain => (&_, &Retention);
        workflow_core::RunContext::get::<Value> => (&_, &str);
        workflow_core::RunContext::increment => (&_, &str, i64);
        workflow_core::RunContext::list => (&_, Option<&str>, usize);
        workflow_core::RunContext::remove => (&_, &str);
        workflow_core::RunContext::set::<Value> => (&_, &str, Value);
        workflow_core::RunContext::update::<Value> => (&_, &str, fn(Option<Value>) -> Value);
        workflow_core::ThreadContext::get::<Value> => (&_, &str);
        workflow_core::ThreadContext::increment => (&_, &str, i64);
        workflow_core::ThreadContext::list => (&_, Option<&str>, usize);
        workflow_core::ThreadContext::remove => (&_, &str);
        workflow_core::ThreadContext::set::<Value> => (&_, &str, Value);
        workflow_core::ThreadContext::update::<Value> => (&_, &str, fn(Option<Value>) -> Value);
        workflow_core::AnyRun::cancel => (&_, Arc<str>);
        workflow_core::AnyRun::explain => (&_,);
        workflow_core::AnyRun::outcome_any => (&_,);
        workflow_core::AnyRun::pause => (&_, Pause);
        workflow_core::AnyRun::reply::<Asked> => (&_, RequestId<Asked>, bool);
        workflow_core::AnyRun::reply_json => (&_, Seq, Value);
        workflow_core::AnyRun::reply_to::<Asked> => (&_, bool);
        workflow_core::AnyRun::reply_to_json => (&_, &str, Value);
        workflow_core::AnyRun::report => (&_,);
        workflow_core::AnyRun::report_so_far => (&_,);
        workflow_core::AnyRun::requests => (&_,);
        workflow_core::AnyRun::retry_now => (&_,);
        workflow_core::AnyRun::settled => (&_,);
        workflow_core::AnyRun::timers => (&_,);
        workflow_core::AnyRun::unpause => (&_,);
        workflow_core::RunHandle::<Flow>::outcome => (&_,);
        workflow_core::RunResults::<ResumeError>::next => (&mut _,);
        workflow_core::blocking::<u32, fn(&Cancellation) -> u32> => (fn(&Cancellation) -> u32,);
    }
    let _ = Flow;
    is_shared::<Engine>();
    is_shared::<AnyRun>();
    is_shared::<RunHandle<Flow>>();
}
