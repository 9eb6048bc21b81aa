//! Runs that continue after their process is gone (S38–S43): after a crash at every append, from the bytes of a store.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod attach;
mod changes;
mod crashes;
mod damaged;
mod deep;
mod failing;
mod families;
mod fan_outs;
mod faults;
mod fixtures;
mod found;
mod golden;
mod idle;
mod leases;
mod lowered;
mod one_write;
mod recorded;
mod refused;
mod removed;
mod shapes;
mod shut_down;
mod state;
mod tables;
mod twins;
mod unfit;
mod unreadable;
mod versions;
mod waits;
