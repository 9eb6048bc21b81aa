//! Runs that continue after their process is gone (S38–S43): after a crash at every append, from the bytes of a store.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod fixtures;
/// Journals of released formats. Its path is in them: a configuration is recorded under the path of its type.
mod golden;
mod leases;
mod random_driver;
mod shapes;
mod translated;
/// Engines over one store that fails, is slow or is held.
mod world;

/// Runs of every shape survive a crash at every append.
mod crashes {
    mod clean_up;
    mod enough;
    mod every_shape;
    mod failing;
    mod families;
    mod fan_outs;
    mod limits;
    mod paused;
    mod redriven;
    mod state;
    mod waits;
}

/// Run-time workflows do in each order, and after each crash, what the typed ones do of which they are translations (S57).
mod run_time {
    mod crashes;
    mod orders;
    mod paused;
    pub(crate) mod shapes;
    mod typed;
}

/// Runs that are found, attached to, unloaded, loaded and removed.
mod resumed {
    mod asked;
    mod at_most_once;
    mod cancels;
    mod config_sources;
    mod attach;
    mod clean_up;
    mod clean_up_redriven;
    mod blocked;
    mod bounds;
    mod deadlines;
    mod deep;
    mod dropped_tasks;
    mod ended_children;
    mod excess;
    pub(crate) mod found;
    mod displayed;
    mod held;
    mod idle;
    mod inbox;
    mod interrupted;
    mod limits;
    mod lowered;
    mod origins;
    mod paused;
    mod paused_at_random;
    mod paused_now;
    mod pauses_overtaken;
    mod queued;
    mod redriven;
    mod removed;
    mod reported_at_random;
    mod shut_down;
    mod twins;
    mod taken_up;
    mod wind_down;
}

/// Stores that fail, refuse, keep several batches in one write, or have contexts.
mod stores {
    mod contexts;
    mod faults;
    mod long_texts;
    mod one_write;
    mod refused;
    mod summaries;
    mod unfit;
}

/// Journals as files: of changed workflows, damaged, and without their program.
mod formats {
    mod changes;
    mod damaged;
    mod keys;
    mod outcomes;
    pub(crate) mod recorded;
    mod tables;
    mod unreadable;
    mod versions;
}
