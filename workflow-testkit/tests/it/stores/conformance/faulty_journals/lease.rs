//! The leases of faulty journals.

use std::time::{Duration, Instant};

use workflow_core::store::EngineId;

use super::Fault::{self, *};
use super::Kept;

impl Kept {
    pub(super) fn lease(&mut self, fault: Fault, engine: &EngineId, duration: Duration) -> Vec<EngineId> {
        let (now, held) = (Instant::now(), self.leases.get(engine).copied());
        let duration = match (fault, held) {
            (LeasesRunOutEarly, _) => duration / 4,
            (FirstLeaseCounts, Some((_, first))) if !duration.is_zero() => first,
            (LeasesOnlyGrow, Some((_, first))) if !duration.is_zero() => duration.max(first),
            (KeepsLeasesThatAreGivenUp, Some((_, first))) if duration.is_zero() => first,
            _ => duration,
        };
        let since = if fault == FirstLeaseCounts { held.map_or(now, |(since, _)| since) } else { now };
        match fault {
            LeasesToOne if !duration.is_zero() => self.leases.clear(),
            GivesUpAllLeases if duration.is_zero() && held.is_some() => self.leases.clear(),
            _ => {}
        }
        self.leases.insert(tenant(fault, engine), (since, duration));
        if fault != LeasesForEver {
            self.leases.retain(|_, (since, duration)| since.elapsed() < *duration);
        }
        self.leases.retain(|_, (_, duration)| !duration.is_zero());
        let holders = self.leases.keys().filter(|holder| fault != LeavesOutTheCaller || *holder != engine);
        holders.cloned().collect()
    }
}

/// The engine that the faulty store confuses this one with.
fn tenant(fault: Fault, engine: &EngineId) -> EngineId {
    // A UUID has 36 characters.
    if fault == MixesUpEngines { engine.as_str()[..36].into() } else { engine.clone() }
}
