//! The reasons for the end of a reply. Servers with the interface of another provider keep their own words, so each kind reads
//! the words of all.

use super::assembly::Assembly;
use super::failure::Failure;
use crate::model::Finish;

/// Why a reply ended, as far as a word says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The model came to its end: an answer, or calls.
    Complete,
    Calls,
    Length,
    Refusal,
    ContextLimit,
}

impl Ending {
    /// The ending of a word. Without a word the reply came to its end: the caller knows that it is whole.
    pub(crate) fn of(reason: &str) -> Result<Self, Failure> {
        Ok(match reason.to_ascii_lowercase().as_str() {
            "" | "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "completed" | "complete" => {
                Self::Complete
            }
            "tool_calls" | "tool_call" | "tool_use" | "function_call" => Self::Calls,
            "length" | "max_tokens" | "max_output_tokens" => Self::Length,
            "content_filter" | "refusal" | "safety" => Self::Refusal,
            "model_context_window_exceeded" | "model_length" => Self::ContextLimit,
            _ => return Err(Failure::unknown_finish(reason)),
        })
    }

    pub(crate) fn finish(self, assembly: &Assembly) -> Finish {
        match self {
            // Some servers say `stop` after calls.
            Self::Complete => assembly.complete(),
            Self::Calls => Finish::ToolUse,
            Self::Length => Finish::Length,
            Self::Refusal => Finish::Refusal,
            Self::ContextLimit => Finish::ContextLimit,
        }
    }
}
