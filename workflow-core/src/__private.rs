//! The one module that generated code names. It re-exports, and decides nothing.

pub use std::boxed::Box;
pub use std::clone::Clone;
pub use std::marker::{Send, Sync};
pub use std::option::Option::{self, None, Some};
pub use std::result::Result::{self, Err, Ok};
pub use std::string::String;
pub use std::sync::Arc;

pub use crate::error::StepError;

pub use crate::event::{
    AnyEvent, ConfigSchema, ControlEvent, DisplayEvent, Event, EventType, ExternalEvent, FromEvent, Gives,
    IsStop, JsonForm, Log, NoSchema, NotStop, ReplyForm, Request, Roles, Schema, Serialisable, SetMember,
    StartEvent, StopEvent, Upgrade, upgraded,
};
pub use crate::input::{EventInput, EventSet, Pattern, Slot, StepCall, StepInput, borrow_set, one_input};
pub use crate::output::{Each, Emitted, FindStop, Nothing, One, OnlyStop, StepOutput};
pub use crate::spec::{
    InputSpec, OnEnd, OutputSpec, PreconditionSpec, StepPolicy, StepSpec, TableSpec, check,
};
pub use crate::workflow::{
    Check, Compacted, Compaction, LimitKey, Precondition, StepFuture, Verdict, Workflow, no_such_row,
};

/// Leaves the next slot as it is.
pub fn skip(slots: &mut crate::input::Slots<'_>) {
    let _ = slots.next();
}

pub use crate::type_probe::{
    AsMember, AsOutput, Ask, Asked, Declared, Derived, Ending, Fill, Launch, Owned, Probe, UNKNOWN_INPUT,
    UNKNOWN_OUTPUT, Unclear, Unusable, absent, is_asked, never, serialisable,
};
pub use crate::warn;
