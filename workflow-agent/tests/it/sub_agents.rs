//! Sub-agents.
