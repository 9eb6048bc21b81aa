//! Futures of the public functions, which move between threads.

use futures::stream::BoxStream;
use workflow_chat::ShowText as _;
use workflow_core::Display;

#[path = "../../../ci/sendable.rs"]
pub(crate) mod functions;

use functions::{each_future_is_send, is_shared};

#[test]
fn the_futures_of_all_public_functions_can_move_to_another_thread() {
    each_future_is_send! { include_str!("../../../docs/public/workflow-chat.txt");
        workflow_core::Display::stream_text => (&Display, BoxStream<'static, String>);
    }
    is_shared::<Display>();
}
