//! A database that is closed without a panic, also where its file was changed from outside.

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

    /// Closes it, and says whether that is on disk.
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
        // What redb records when it closes a file may panic where the file is damaged. The next open mends it.
        drop(catch_unwind(AssertUnwindSafe(|| drop(self.0.take()))));
    }
}
