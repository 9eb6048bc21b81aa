//! The store, tested through its public API: on real files, and on a disk whose power can be cut.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod disk;
mod fixtures;
#[cfg(target_os = "linux")]
mod limited;
mod sendable;

/// The calls of the store: shared commits, contexts, contracts, large values.
mod store {
    mod committing;
    mod conformance;
    mod contexts;
    mod inbox;
    mod large;
    mod queries;
}

/// Engines on a store in a file.
mod runs {
    mod crashes;
    mod engine;
    mod nested;
}

/// The file: its format, its opening, its checks, its upkeep.
mod files {
    mod checks;
    mod earlier_formats;
    mod file_format;
    mod flips;
    mod maintenance;
    mod opening;
    mod reopening;
    #[cfg(unix)]
    mod rewriting;
}

/// The system under a file: power cuts, full disks, missing permissions.
mod system {
    #[cfg(target_os = "linux")]
    mod permissions;
    mod power_cut;
    #[cfg(target_os = "linux")]
    mod room;
}

/// The command.
mod command_line {
    mod command;
    mod explained;
    mod messages;
}
