//! Copying a store in use: its contents at one moment, in another file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, WriteTransaction};

use crate::error::{OpenError, WorkError};
use crate::file::{self, Created};
use crate::format::{
    CONTEXTS, Definition, FORMAT_KEY, INBOX, INBOX_IDS, INDEX, META, OPEN, RECORDS, REFUSED, RUNS, VERSION,
};
use crate::recent;
use crate::seal;
use crate::store::RedbStore;
use crate::tables::{ReadError, Reading, View};

/// How many bytes of the copy stay in memory while it is written.
const CACHE: usize = 16 << 20;

impl RedbStore {
    /// Copies the store's current contents to another file, a store of the smallest possible size.
    ///
    /// The store stays in use meanwhile; only [`compact`](Self::compact) waits. The file gets its name when it is
    /// complete and on disk. On Unix it has the mode of the store's file, and its owner and group as far as the process
    /// may set them; a group that the process may not set has no access. An existing file stays as it is. A dropped
    /// future leaves a complete copy or none. O(bytes).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = workflow_redb::RedbStore::open(folder.path().join("runs.redb"))?;
    /// let backup = folder.path().join("backup.redb");
    /// store.snapshot(&backup).await?;
    /// assert!(workflow_redb::StoreFile::open(&backup)?.check()?.is_sound());
    /// assert!(store.snapshot(&backup).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`WorkError::Exists`] if the file exists, [`WorkError::Snapshot`] if it cannot be written, and the other errors
    /// of [`WorkError`].
    pub async fn snapshot(&self, to: impl Into<PathBuf>) -> Result<(), WorkError> {
        let (to, shared) = (to.into(), self.shared());
        let work =
            move |view: &View| write(view, &to, &shared.path, shared.file.as_deref()).map_err(ReadError::Own);
        self.shared().read(work).await
    }
}

/// Writes the copy. It has mode and owner of the file `like`, if there is one.
pub(crate) fn write(view: &View, to: &Path, path: &Arc<Path>, like: Option<&Path>) -> Result<(), WorkError> {
    let exists = || WorkError::Exists { path: Arc::from(to) };
    let unwritten = |source| WorkError::Snapshot { path: Arc::clone(path), source: Arc::new(source) };
    // Checked first, to copy nothing in vain.
    if to.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let like = like.map(fs::metadata).transpose();
    let like = like.map_err(|error| unwritten(OpenError::io(path, error)))?;
    let fill = |copy: &Database| fill(view, copy).map_err(|error| OpenError::redb(to, error));
    match file::create(to, like.as_ref(), CACHE, fill) {
        Ok(Created::Created) => Ok(()),
        Ok(Created::WasThere) => Err(exists()),
        Err(error) => Err(unwritten(error)),
    }
}

/// Each record goes to its final table.
fn fill(view: &View, copy: &Database) -> Result<(), redb::Error> {
    let transaction = copy.begin_write()?;
    copy_table(OPEN, &view.open, &transaction)?;
    copy_table(CONTEXTS, &view.contexts, &transaction)?;
    if let Some(index) = &view.index {
        copy_table(INDEX, index, &transaction)?;
    }
    if let Some(inbox) = view.inbox()? {
        for (definition, from) in
            [(INBOX, &inbox.pending), (INBOX_IDS, &inbox.ids), (REFUSED, &inbox.refused)]
        {
            copy_table(definition, from, &transaction)?;
        }
        transaction.open_table(META)?.insert(FORMAT_KEY, &VERSION.to_be_bytes()[..])?;
    }
    fill_records(view, &transaction)?;
    fill_runs(view, &transaction)?;
    Ok(transaction.commit()?)
}

fn copy_table(definition: Definition, from: &Reading, copy: &WriteTransaction) -> Result<(), redb::Error> {
    let mut into = copy.open_table(definition)?;
    for entry in from.range::<&[u8]>(..)? {
        let (key, value) = entry?;
        into.insert(key.value(), value.value())?;
    }
    Ok(())
}

/// Each record has a checksum in the copy.
fn fill_records(view: &View, copy: &WriteTransaction) -> Result<(), redb::Error> {
    let mut records = copy.open_table(RECORDS)?;
    for entry in view.records.range::<&[u8]>(..)? {
        let (key, value) = entry?;
        records.insert(key.value(), &*seal::sealed(key.value(), value.value()))?;
    }
    Ok(())
}

fn fill_runs(view: &View, copy: &WriteTransaction) -> Result<(), redb::Error> {
    let (mut runs, mut records) = (copy.open_table(RUNS)?, copy.open_table(RECORDS)?);
    for entry in view.runs.range::<&[u8]>(..)? {
        let (key, value) = entry?;
        // A key that is no id is copied as it is; a check reports it.
        let entry = match std::str::from_utf8(key.value()) {
            Ok(run) => recent::settle_copy(view, run, value.value(), &mut records)?,
            Err(_) => value.value().to_vec(),
        };
        runs.insert(key.value(), &*entry)?;
    }
    Ok(())
}
