//! The one module that generated code names. It re-exports, and decides nothing.

pub use std::marker::{Send, Sync};
pub use std::sync::Arc;
pub use std::time::Duration;
pub use std::vec::Vec;

pub use schemars;
pub use serde;

pub use crate::approval::Approval;
pub use crate::tool::attribute::ToolFunction;
pub use crate::tool::shim::{
    Argument, Called, Choose, FallibleKind, Field, Injected, Is, NoArgument, PlainKind, Probe, Read, boxed,
    description, function, mistaken, mistaken_tool, shared, spec,
};
pub use crate::tool::{FnTool, Tool, ToolContext, ToolFuture, ToolSet};
