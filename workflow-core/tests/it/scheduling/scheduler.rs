//! The scheduler alone, rule by rule: facts in, actions out, no runtime. Events are numbered from #1, executions from
//! x1, precondition evaluations from q0. Scope 0 is the run, and is not written.

mod branches;
mod ends;
mod fan_outs;
mod growth;
mod limits;
mod preconditions;
mod readiness;
mod stage;
mod timers;
mod until;
mod waiting_branches;
