//! The inbox: messages to runs, pending until an engine settles them, and the last ones that were refused. Each call that
//! changes it is one job of the committer.
//!
//! ```text
//! put     ─▶ `inbox`: run, order, id ─▶ message     `inbox_ids`: run, id ─▶ order
//! settle  ─▶ both keys go; a refused message goes to `refused`, and the oldest beyond 1,000 goes there
//! ```
//!
//! The tables are there once the file has had a message. Until then it has the format of earlier releases.

use std::sync::Arc;

use redb::{ReadableTable, ReadableTableMetadata as _};
use serde::Serialize;
use serde::ser::Error as _;
use serde_json::from_slice;
use workflow_core::RunId;
use workflow_core::store::{Inbox, InboxMessage, Position, RefusedMessage, StoreError, StoreFuture};

use crate::contexts::{MAX_DEPTH, is_at_most_so_deep};
use crate::error::{InboxError, Malformed};
use crate::format::{
    InboxKey, beginning_with, inbox_id_key, inbox_key, inbox_prefix, parse_inbox_id_key, parse_inbox_key,
};
use crate::journal::PAGE_BYTES;
use crate::seal;
use crate::store::RedbStore;
use crate::tables::{Bytes, InboxTables, ReadError, Tables, View};

/// How many messages may be pending in a file.
pub(crate) const MOST_PENDING: u64 = 100_000;

/// How deep the JSON of a refused message has its message.
const REFUSED_DEPTH: usize = 1;

/// A message that is pending in a file's inbox.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PendingMessage {
    /// The run.
    pub run: RunId,
    /// The message's id.
    pub id: Arc<str>,
    /// The message; `None` if its bytes are damaged.
    pub message: Option<InboxMessage>,
}

/// The bytes of a message are damaged.
#[derive(Debug, thiserror::Error)]
#[error("the message `{id}` in the inbox of the run is damaged: withdraw it, and send it again")]
struct DamagedMessage {
    id: String,
    source: Malformed,
}

impl RedbStore {
    /// Puts a message to a run into the inbox, where an engine on this store finds it when it loads or resumes the run.
    ///
    /// The run may be one that the store does not have yet: a queued run gets the message when an engine takes it up. An engine
    /// that has the run, or has just started it, is told with
    /// [`Engine::notify_inbox`](workflow_core::Engine::notify_inbox). A file takes 100,000 pending messages. A message that is pending with the same id stays as it is.
    /// The first message that a file ever has brings it to format 3, which earlier versions of this crate do not open.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use workflow_core::store::{Inbox, InboxMessage, RunMessage};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = workflow_redb::RedbStore::open(folder.path().join("runs.redb"))?;
    /// let stop = RunMessage::Cancel { reason: "the customer called".into() };
    /// store.put_message("order-17", InboxMessage::new("stop-4", stop, SystemTime::now()).by("ada")).await?;
    /// let pending = store.pending(&"order-17".into(), 10).await?;
    /// assert_eq!(pending[0].origin().to_string(), "ada (stop-4)");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`InboxError`]. Nothing was stored then, except perhaps after [`InboxError::Work`].
    pub async fn put_message(&self, run: impl Into<RunId>, message: InboxMessage) -> Result<(), InboxError> {
        let run = run.into();
        let json = json_of(&message)?;
        let bytes = 3 * (run.as_str().len() + message.id.len()) + json.len();
        let (path, id) = (Arc::clone(&self.shared().path), message.id);
        let work = move |tables: &mut Tables<'_>| put(tables.inbox()?, run.as_str(), &id, &json);
        let is_in = self.shared().queue.commit(bytes, work).await?;
        if is_in { Ok(()) } else { Err(InboxError::Full { path, capacity: MOST_PENDING }) }
    }

    /// Takes a pending message out of the inbox again, a damaged one too. Returns whether it was there.
    ///
    /// An engine that is applying the message meanwhile may have applied it.
    ///
    /// # Errors
    /// See [`WorkError`](crate::WorkError).
    pub async fn withdraw_message(
        &self,
        run: impl Into<RunId>,
        id: impl Into<Arc<str>>,
    ) -> Result<bool, crate::WorkError> {
        let (run, id) = (run.into(), id.into());
        let work =
            move |tables: &mut Tables<'_>| removed(tables, &run, &id, |_| true).map(|key| key.is_some());
        self.shared().queue.commit(0, work).await
    }

    /// The pending messages of a run, or of all runs in the order of their ids: the oldest of each run first. At most
    /// `at_most`, where 0 counts as 1, and 16 MiB.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn pending_messages(
        &self,
        run: Option<&RunId>,
        at_most: usize,
    ) -> Result<Vec<PendingMessage>, StoreError> {
        let run = run.cloned();
        self.shared().read(move |view| listed(view, run.as_ref(), at_most)).await
    }

    /// The last refused messages, oldest first: at most [`RefusedMessage::KEPT`]. A damaged one is left out;
    /// [`check`](Self::check) reports it.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn refused_messages(&self) -> Result<Vec<RefusedMessage>, StoreError> {
        self.shared().read(refused).await
    }
}

impl Inbox for RedbStore {
    /// A damaged message is left out while others are pending, and then `Corrupt`:
    /// [`withdraw_message`](RedbStore::withdraw_message) removes it.
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        let (store, run) = (self.clone(), run.clone());
        StoreFuture::new(async move { store.shared().read(move |view| pending(view, &run, at_most)).await })
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        let (store, run, message) = (self.clone(), run.clone(), message.clone());
        StoreFuture::new(async move {
            let bytes = run.as_str().len() + message.id.len() + result.as_ref().err().map_or(0, String::len);
            let work = move |tables: &mut Tables<'_>| settled(tables, &run, message, result);
            store.shared().queue.commit(bytes, work).await?;
            Ok(())
        })
    }

    /// O(runs with messages).
    fn runs_with_messages(&self) -> StoreFuture<Option<Vec<RunId>>> {
        let store = self.clone();
        StoreFuture::new(async move { store.shared().read(|view| runs(view).map(Some)).await })
    }
}

/// The JSON of a message. One that no reader could decode, also once it is refused, is an error.
fn json_of(message: &InboxMessage) -> Result<Vec<u8>, InboxError> {
    let json = serde_json::to_value(message).and_then(|json| {
        let is_readable = is_at_most_so_deep(&json, MAX_DEPTH - REFUSED_DEPTH);
        let too_deep = || serde_json::Error::custom("it is nested too deep to be read again");
        if is_readable { serde_json::to_vec(message) } else { Err(too_deep()) }
    });
    json.map_err(|source| InboxError::Unserialisable {
        id: Arc::clone(&message.id),
        source: Arc::new(source),
    })
}

/// Adds a message behind the others of its run. Returns `false` if the inbox has no room.
fn put(inbox: &mut InboxTables<'_>, run: &str, id: &str, json: &[u8]) -> Result<bool, redb::Error> {
    if find(inbox, run, id)?.is_some() {
        return Ok(true);
    }
    if inbox.pending.len()? >= MOST_PENDING {
        return Ok(false);
    }
    let order = last_order(&inbox.pending, run)?.map_or(0, |last| last.wrapping_add(1));
    let key = inbox_key(run, order, id);
    inbox.pending.insert(&*key, &*seal::sealed(&key, json))?;
    inbox.ids.insert(&*inbox_id_key(run, id), &order.to_be_bytes()[..])?;
    Ok(true)
}

/// The place of the last pending message of a run.
fn last_order(pending: &impl ReadableTable<Bytes, Bytes>, run: &str) -> Result<Option<u64>, redb::Error> {
    let keys = beginning_with(inbox_prefix(run));
    for entry in pending.range(&*keys.start..&*keys.end)?.rev() {
        // A key that is none is skipped; a check reports it.
        if let Some(InboxKey { order, .. }) = parse_inbox_key(entry?.0.value()) {
            return Ok(Some(order));
        }
    }
    Ok(None)
}

/// The key of a pending message. Where the index of ids is damaged, every message of the run is looked at.
fn find(inbox: &InboxTables<'_>, run: &str, id: &str) -> Result<Option<Vec<u8>>, redb::Error> {
    let Some(order) = inbox.ids.get(&*inbox_id_key(run, id))?.map(|order| order.value().to_vec()) else {
        return Ok(None);
    };
    if let Ok(order) = order.try_into().map(u64::from_be_bytes) {
        let key = inbox_key(run, order, id);
        if inbox.pending.get(&*key)?.is_some() {
            return Ok(Some(key));
        }
    }
    scan(&inbox.pending, run, id)
}

fn scan(
    pending: &impl ReadableTable<Bytes, Bytes>,
    run: &str,
    id: &str,
) -> Result<Option<Vec<u8>>, redb::Error> {
    let keys = beginning_with(inbox_prefix(run));
    for entry in pending.range(&*keys.start..&*keys.end)? {
        let (key, _) = entry?;
        if parse_inbox_key(key.value()).is_some_and(|key| key.id == id) {
            return Ok(Some(key.value().to_vec()));
        }
    }
    Ok(None)
}

/// Removes just this message, and keeps the reason if it was refused. In a damaged table a message may be there to readers and
/// not to be found by its key: it would stay pending without an end, so that is an error.
fn settled(
    tables: &mut Tables<'_>,
    run: &RunId,
    message: InboxMessage,
    result: Result<(), String>,
) -> Result<(), redb::Error> {
    let key = removed(tables, run, &message.id, |stored| stored.is_ok_and(|stored| stored == message))?;
    let Some(inbox) = tables.inbox_if_there()? else { return Ok(()) };
    match (key, result) {
        (Some(_), Err(reason)) => refuse(inbox, &RefusedMessage::new(run.clone(), message, reason)),
        (None, _) if is_pending(inbox, run.as_str(), &message)? => Err(redb::Error::Corrupted(format!(
            "the message `{}` of the inbox cannot be removed",
            message.id
        ))),
        _ => Ok(()),
    }
}

/// Whether a reader of the inbox comes to the message.
fn is_pending(inbox: &InboxTables<'_>, run: &str, message: &InboxMessage) -> Result<bool, redb::Error> {
    let keys = beginning_with(inbox_prefix(run));
    for entry in inbox.pending.range(&*keys.start..&*keys.end)? {
        let (key, stored) = entry?;
        if parsed(key.value(), stored.value()).is_ok_and(|stored| stored == *message) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the message of this id if it is the right one. Returns its key if it did.
fn removed(
    tables: &mut Tables<'_>,
    run: &RunId,
    id: &str,
    is_right: impl FnOnce(Result<InboxMessage, Malformed>) -> bool,
) -> Result<Option<Vec<u8>>, redb::Error> {
    let Some(inbox) = tables.inbox_if_there()? else { return Ok(None) };
    let key = match find(inbox, run.as_str(), id)? {
        Some(key) => Some(key),
        // Only in a damaged table, or for an unknown message.
        None => scan(&inbox.pending, run.as_str(), id)?,
    };
    let Some(key) = key else {
        inbox.ids.remove(&*inbox_id_key(run.as_str(), id))?;
        return Ok(None);
    };
    let is_right = inbox.pending.get(&*key)?.is_some_and(|stored| is_right(parsed(&key, stored.value())));
    if !is_right {
        return Ok(None);
    }
    inbox.ids.remove(&*inbox_id_key(run.as_str(), id))?;
    let was_there = inbox.pending.remove(&*key)?.is_some();
    Ok(was_there.then_some(key))
}

/// Adds a refused message, and removes the oldest ones beyond the bound.
fn refuse(inbox: &mut InboxTables<'_>, refused: &RefusedMessage) -> Result<(), redb::Error> {
    // It was read from JSON, so it has some.
    let Ok(json) = serde_json::to_vec(refused) else { return Ok(()) };
    let last = inbox.refused.last()?.and_then(|(number, _)| number.value().try_into().ok());
    let number = last.map_or(0, |last| u64::from_be_bytes(last).wrapping_add(1)).to_be_bytes();
    inbox.refused.insert(&number[..], &*seal::sealed(&number, &json))?;
    while inbox.refused.len()? > RefusedMessage::KEPT as u64 {
        if inbox.refused.pop_first()?.is_none() {
            break;
        }
    }
    Ok(())
}

/// Removes the pending messages of a run.
pub(crate) fn forget(tables: &mut Tables<'_>, run: &str) -> Result<(), redb::Error> {
    let Some(inbox) = tables.inbox_if_there()? else { return Ok(()) };
    let keys = beginning_with(inbox_prefix(run));
    inbox.pending.retain_in(&*keys.start..&*keys.end, |_, _| false)?;
    inbox.ids.retain_in(&*keys.start..&*keys.end, |_, _| false)?;
    Ok(())
}

/// The message of a key.
pub(crate) fn parsed(key: &[u8], bytes: &[u8]) -> Result<InboxMessage, Malformed> {
    let message: InboxMessage =
        from_slice(seal::record(key, bytes)?).map_err(|_| Malformed("message that can be decoded"))?;
    let is_of_key = parse_inbox_key(key).is_some_and(|key| *key.id == *message.id);
    if is_of_key { Ok(message) } else { Err(Malformed("message with the id of its key")) }
}

/// The refused message of a key.
pub(crate) fn parsed_refused(key: &[u8], bytes: &[u8]) -> Result<RefusedMessage, Malformed> {
    from_slice(seal::record(key, bytes)?).map_err(|_| Malformed("message that can be decoded"))
}

/// The runs that have pending messages. A key that is none is skipped; a check reports it.
fn runs(view: &View) -> Result<Vec<RunId>, ReadError<StoreError>> {
    let Some(inbox) = view.inbox()? else { return Ok(Vec::new()) };
    let (mut runs, mut rest) = (Vec::new(), Vec::new());
    while let Some(first) = inbox.pending.range::<&[u8]>(&*rest..)?.next().transpose()? {
        let key = first.0.value();
        rest = match parse_inbox_key(key) {
            Some(InboxKey { run, .. }) => {
                runs.push(RunId::from(run));
                beginning_with(inbox_prefix(run)).end
            }
            None => [key, &[0]].concat(),
        };
    }
    Ok(runs)
}

/// The first readable messages of a run. If there are only damaged ones, the first of them is the error.
fn pending(view: &View, run: &RunId, at_most: usize) -> Result<Vec<InboxMessage>, ReadError<StoreError>> {
    let (mut page, mut damaged) = (Vec::new(), None);
    each(view, Some(run), |key, bytes, message| {
        match message {
            Ok(message) => page.push((message, bytes)),
            Err(source) if damaged.is_none() => damaged = Some((key.order, key.id.to_owned(), source)),
            Err(_) => {}
        }
        is_page(page.len(), page.iter().map(|(_, bytes)| bytes).sum(), at_most)
    })?;
    match damaged {
        Some((order, id, source)) if page.is_empty() => {
            let damaged = DamagedMessage { id, source };
            Err(ReadError::Own(StoreError::corrupt(run, Position(order), damaged)))
        }
        _ => Ok(page.into_iter().map(|(message, _)| message).collect()),
    }
}

/// A page of pending messages, damaged ones too.
pub(crate) fn listed(
    view: &View,
    run: Option<&RunId>,
    at_most: usize,
) -> Result<Vec<PendingMessage>, ReadError<StoreError>> {
    let (mut page, mut total) = (Vec::new(), 0);
    each(view, run, |key, bytes, message| {
        page.push(PendingMessage { run: key.run.into(), id: key.id.into(), message: message.ok() });
        total += bytes;
        is_page(page.len(), total, at_most)
    })?;
    Ok(page)
}

fn is_page(messages: usize, bytes: usize, at_most: usize) -> bool {
    messages >= at_most.max(1) || bytes >= PAGE_BYTES
}

/// Passes the pending messages of one run or of all to `each`, with their bytes, until it returns `true`.
fn each(
    view: &View,
    run: Option<&RunId>,
    mut each: impl FnMut(InboxKey<'_>, usize, Result<InboxMessage, Malformed>) -> bool,
) -> Result<(), redb::Error> {
    let Some(inbox) = view.inbox()? else { return Ok(()) };
    let of_run = run.map(|run| beginning_with(inbox_prefix(run.as_str())));
    let range = match &of_run {
        Some(keys) => inbox.pending.range(&*keys.start..&*keys.end)?,
        None => inbox.pending.range::<&[u8]>(..)?,
    };
    for entry in range {
        let (key, bytes) = entry?;
        // A key that is none is skipped; a check reports it.
        let Some(parts) = parse_inbox_key(key.value()) else { continue };
        if each(parts, bytes.value().len(), parsed(key.value(), bytes.value())) {
            break;
        }
    }
    Ok(())
}

/// The readable refused messages, oldest first.
pub(crate) fn refused(view: &View) -> Result<Vec<RefusedMessage>, ReadError<StoreError>> {
    let Some(inbox) = view.inbox()? else { return Ok(Vec::new()) };
    let mut refused = Vec::new();
    for entry in inbox.refused.range::<&[u8]>(..)? {
        let (key, bytes) = entry?;
        refused.extend(parsed_refused(key.value(), bytes.value()));
    }
    Ok(refused)
}

/// A finding of the walk over the inbox.
pub(crate) enum Finding<'a> {
    /// A key of this table that is none.
    Key(&'static str, &'a [u8]),
    /// A pending message that cannot be read.
    Message(InboxKey<'a>, Malformed),
    /// A refused message that cannot be read.
    Refused(u64, Malformed),
    /// The index of ids has no such message of the run, or wrongly has one.
    Id { run: &'a str, id: &'a str, listed: bool },
}

/// Looks at the whole inbox, for a check. Returns how many messages are pending.
pub(crate) fn walk(view: &View, mut tell: impl FnMut(Finding<'_>)) -> Result<u64, redb::Error> {
    let Some(inbox) = view.inbox()? else { return Ok(0) };
    let mut count = 0;
    for entry in inbox.pending.range::<&[u8]>(..)? {
        let (key, bytes) = entry?;
        count += 1;
        let Some(parts) = parse_inbox_key(key.value()) else {
            tell(Finding::Key("workflow.inbox", key.value()));
            continue;
        };
        let listed = inbox.ids.get(&*inbox_id_key(parts.run, parts.id))?;
        if listed.is_none_or(|order| *order.value() != parts.order.to_be_bytes()) {
            tell(Finding::Id { run: parts.run, id: parts.id, listed: false });
        }
        if let Err(malformed) = parsed(key.value(), bytes.value()) {
            tell(Finding::Message(parts, malformed));
        }
    }
    for entry in inbox.ids.range::<&[u8]>(..)? {
        let (key, order) = entry?;
        let Some((run, id)) = parse_inbox_id_key(key.value()) else {
            tell(Finding::Key("workflow.inbox_ids", key.value()));
            continue;
        };
        let order = order.value().try_into().map(u64::from_be_bytes);
        let is_there = match order {
            Ok(order) => inbox.pending.get(&*inbox_key(run, order, id))?.is_some(),
            Err(_) => false,
        };
        if !is_there {
            tell(Finding::Id { run, id, listed: true });
        }
    }
    for entry in inbox.refused.range::<&[u8]>(..)? {
        let (key, bytes) = entry?;
        match key.value().try_into().map(u64::from_be_bytes) {
            Ok(number) => {
                let refused = parsed_refused(key.value(), bytes.value());
                drop(refused.map_err(|malformed| tell(Finding::Refused(number, malformed))));
            }
            Err(_) => tell(Finding::Key("workflow.refused", key.value())),
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use futures::executor::block_on;
    use redb::backends::InMemoryBackend;
    use workflow_core::store::RunMessage;

    use super::*;

    // S67
    #[test]
    fn a_file_with_as_many_messages_as_it_may_have_takes_no_more() {
        let store = RedbStore::builder().open_backend("memory", InMemoryBackend::new()).unwrap();
        let fill = |tables: &mut Tables<'_>| {
            for number in 0..MOST_PENDING {
                let run = (number % 64).to_string();
                assert!(put(tables.inbox()?, &run, &number.to_string(), b"{}")?);
            }
            Ok(())
        };
        block_on(store.shared().queue.commit(0, fill)).unwrap();
        let one_more = |id: &str| InboxMessage::new(id, RunMessage::Unpause, SystemTime::UNIX_EPOCH);
        let refused = block_on(store.put_message("a", one_more("1"))).unwrap_err();
        assert!(matches!(refused, InboxError::Full { capacity: MOST_PENDING, .. }), "{refused:?}");
        block_on(store.put_message("0", one_more("0"))).unwrap();
        assert!(block_on(store.withdraw_message("0", "0")).unwrap());
        block_on(store.put_message("a", one_more("1"))).unwrap();
    }
}
