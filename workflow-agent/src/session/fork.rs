//! Copies of sessions.

use std::sync::Arc;

use workflow_core::{RunId, ThreadContext};

use super::SessionError;
use super::exchanges::{self, PAGE};
use super::head::{self, Head};

/// Copies a session, whose settled head is `source`.
///
/// The head of the copy comes first: nobody else writes there, and a repetition after a crash goes on with the copy that
/// began, also if the session has new exchanges meanwhile.
pub(super) async fn fork(
    thread: &ThreadContext,
    source: Head,
    from: &str,
    to: &str,
) -> Result<(), SessionError> {
    let of: Arc<str> = format!("{from}@{}", source.nonce).into();
    let copy = Head {
        nonce: RunId::generate().to_string(),
        // No run of the copy has one of the numbers that it copies.
        started: source.last,
        entered: None,
        closed: 0,
        copies: (source.last > 0).then(|| Arc::clone(&of)),
        ..source
    };
    let created =
        thread.update::<Head>(&head::key(to), |there| there.unwrap_or_else(|| copy.clone())).await?;
    if created.copies.is_none() && created.nonce == copy.nonce {
        return Ok(());
    }
    if created.copies.as_ref() != Some(&of) {
        return Err(SessionError::Exists { session: to.into() });
    }
    let mut next = 1;
    loop {
        let page = exchanges::linked(thread, from, (next, created.last + 1), PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        next = last + 1;
        for (number, exchange) in page {
            thread.set(&exchanges::key(to, number), exchange).await?;
        }
    }
    let complete = |there: Option<Head>| match Head::of(there) {
        copy if copy.copies.as_ref() == Some(&of) => Head { copies: None, ..copy },
        other => other,
    };
    thread.update::<Head>(&head::key(to), complete).await?;
    Ok(())
}
