//! The behaviour of the library from outside: one folder per subject, and in it one module per topic.

#![expect(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod children;
mod fixtures;
mod sendable;

/// Inputs of steps: events in all their forms, injectables, and preconditions.
mod inputs {
    mod config;
    mod config_sources;
    mod contexts;
    mod event_inputs;
    mod events;
    mod generics;
    mod handed_on;
    mod injectables;
    mod keys;
    mod passive;
    mod preconditions;
}

/// Outputs of executions: the events that enter the log, and how large they may be.
mod outputs {
    mod commit;
    mod returned;
    mod sizes;
}

/// Tables before any run: mistakes, forecasts, drawings.
mod tables {
    mod clean_up;
    mod draw;
    mod forecasts;
    mod graph_checks;
}

/// The choice of steps, their number and their order: the scheduler alone, beside its model, and in runs.
mod scheduling {
    mod evaluation;
    mod excess;
    mod limits;
    mod properties;
    mod runaway;
    mod scheduler;
    mod tasks;
    mod turns;
}

/// Fan-outs, their branches and their gathers.
mod scopes {
    mod fan_out;
    mod join_bugs;
    mod scale;
}

/// How runs end: completed, failed, stalled, cancelled, or out of time.
mod ends {
    mod cancel;
    mod clean_up;
    mod clean_up_in_detail;
    mod deadlines;
    mod ending;
    mod endings_in_detail;
    mod stalls;
    mod stops_from_outside;
    mod timeouts;
}

/// Executions that fail: attempts, failures as events, panics.
mod failures {
    mod caught;
    mod causes;
    mod panics;
    mod retries;
}

/// Runs and people: displays, requests, replies.
mod people {
    mod asked;
    mod display;
    mod expiry;
    mod reply_to;
    mod requests;
}

/// Timers, and the clock that all times come from.
mod time {
    mod clocks;
    mod no_time;
    mod overdue;
    mod timers;
}

/// The engine: its runs, its limits, the journals that it writes, and work beside the runs.
mod engine {
    mod blocking;
    mod ended_runs;
    mod futures;
    mod hosted;
    mod hosting;
    mod journals;
    mod json;
    mod run_time;
    mod middleware;
    mod named_limits;
    mod named_workflows;
    mod pauses;
    mod places;
    mod shared_limits;
}

/// Explanations, observers and spans.
mod watching {
    mod explain;
    mod joined;
    mod observe;
    mod running;
    mod spans;
}

/// Costs of running: allocations, work, and turns of other runs.
mod cost {
    mod allocations;
    mod counted;
    mod fairness;
    mod latency;
}
