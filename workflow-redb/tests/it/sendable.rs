//! Futures of the public functions, which move between threads.

use std::path::PathBuf;
use std::sync::Arc;

use workflow_core::RunId;
use workflow_core::store::InboxMessage;
use workflow_redb::RedbStore;

#[path = "../../../ci/sendable.rs"]
pub(crate) mod functions;

use functions::{each_future_is_send, is_shared};

#[test]
fn the_futures_of_all_public_functions_can_move_to_another_thread() {
    each_future_is_send! { include_str!("../../../docs/public/workflow-redb.txt");
        workflow_redb::RedbStore::check => (&_,);
        workflow_redb::RedbStore::compact => (&_,);
        workflow_redb::RedbStore::sync => (&_,);
        workflow_redb::RedbStore::pending_messages => (&_, Option<&RunId>, usize);
        workflow_redb::RedbStore::put_message => (&_, RunId, InboxMessage);
        workflow_redb::RedbStore::refused_messages => (&_,);
        workflow_redb::RedbStore::withdraw_message => (&_, RunId, Arc<str>);
        workflow_redb::RedbStore::snapshot => (&_, PathBuf);
    }
    is_shared::<RedbStore>();
}
