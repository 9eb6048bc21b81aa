//! Runs that go on after their process is gone (S38–S43): after a crash at every append, from what a store has as bytes.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod fixtures;
// Stays here: its journals have the path of one of its types.
mod golden;
mod leases;
mod shapes;

/// Runs of every shape survive a crash at every append.
mod crashes {
    mod every_shape;
    mod failing;
    mod families;
    mod fan_outs;
    mod state;
    mod waits;
}

/// Runs that are found, attached to, unloaded, loaded and removed.
mod resumed {
    mod attach;
    mod deep;
    pub(crate) mod found;
    mod idle;
    mod lowered;
    mod removed;
    mod shut_down;
    mod twins;
}

/// Stores that fail, refuse, or keep several batches in one write.
mod stores {
    mod faults;
    mod one_write;
    mod refused;
    mod unfit;
}

/// Journals that other versions have written, of changed workflows, damaged, or without their program.
mod formats {
    mod changes;
    mod damaged;
    pub(crate) mod recorded;
    mod tables;
    mod unreadable;
    mod versions;
}
