//! Integration tests.

mod projects;
mod smoke;
mod sub_agents;
