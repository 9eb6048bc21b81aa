//! A database that closes without a panic, even if another program has changed its file.

use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::Database;

use crate::error::{OpenError, Panic};

/// An open database.
pub(crate) struct Opened(Option<Database>);

impl Opened {
    pub(crate) fn new(database: Database) -> Self {
        Self(Some(database))
    }

    /// Closes it. Returns whether the closing state is on disk.
    pub(crate) fn close(mut self, path: &Path) -> Result<(), OpenError> {
        let Some(database) = self.0.take() else { return Ok(()) };
        let closed = catch_unwind(AssertUnwindSafe(|| database.close()));
        let closed = closed.map_err(|panic| OpenError::damaged(path, Panic::new(&*panic)))?;
        closed.map_err(|error| OpenError::redb(path, error))
    }
}

impl Deref for Opened {
    type Target = Database;

    fn deref(&self) -> &Database {
        let Some(database) = &self.0 else { unreachable!("it is there until it is closed") };
        database
    }
}

impl DerefMut for Opened {
    fn deref_mut(&mut self) -> &mut Database {
        let Some(database) = &mut self.0 else { unreachable!("it is there until it is closed") };
        database
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // redb may panic while it records the closing in a damaged file. The next opening repairs the file.
        drop(catch_unwind(AssertUnwindSafe(|| drop(self.0.take()))));
    }
}
