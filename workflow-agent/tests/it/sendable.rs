//! Handles that threads share, and futures that move between them: an agent works in any task of a server.

use std::sync::Arc;

use serde_json::Value;
use workflow_agent::approval::Decision;
use workflow_agent::memory::{Entities, EntityStore};
use workflow_agent::prelude::*;
use workflow_agent::{
    PendingApproval, PendingPlan, PendingQuestion, PlanDecision, PlanTask, Project, ProjectRun,
};
use workflow_core::{RunId, RunOptions};

#[path = "../../../ci/sendable.rs"]
pub(crate) mod functions;

use functions::{each_future_is_send, is_shared};

/// A93
#[test]
fn the_futures_of_all_public_functions_can_move_to_another_thread() {
    each_future_is_send! { include_str!("../../../docs/public/workflow-agent.txt");
        workflow_agent::memory::EntityStore::merge => (&EntityStore<'_>, &RunId, &Entities);
        workflow_agent::memory::EntityStore::named_in => (&EntityStore<'_>, &str);
        workflow_agent::Agent::ask => (&_, Prompt);
        workflow_agent::Agent::ask_for::<String> => (&_, Prompt);
        workflow_agent::Agent::start => (&_, &_, Prompt);
        workflow_agent::Agent::start_with => (&_, &_, Prompt, RunOptions);
        workflow_agent::AgentRun::approvals => (&_,);
        workflow_agent::AgentRun::attach => (&_, &_, RunId);
        workflow_agent::AgentRun::cancel => (&_, Arc<str>);
        workflow_agent::AgentRun::outcome => (&_,);
        workflow_agent::AgentRun::questions => (&_,);
        workflow_agent::AgentRun::steer => (&_, Arc<str>);
        workflow_agent::AgentRun::unheard => (&_,);
        workflow_agent::PendingApproval::approve => (&_,);
        workflow_agent::PendingApproval::approve_all => (&_,);
        workflow_agent::PendingApproval::decide => (&_, Decision);
        workflow_agent::PendingApproval::edit => (&_, Value);
        workflow_agent::PendingApproval::reject => (&_, String);
        workflow_agent::PendingQuestion::answer => (&_, String);
        workflow_agent::Project::run => (&_, Arc<str>);
        workflow_agent::ProjectRun::attach => (&_, &_, RunId);
        workflow_agent::ProjectRun::cancel => (&_, Arc<str>);
        workflow_agent::ProjectRun::outcome => (&_,);
        workflow_agent::ProjectRun::plan => (&_,);
        workflow_agent::ProjectRun::start => (&_, &_, Arc<str>);
        workflow_agent::ProjectRun::start_with => (&_, &_, Arc<str>, RunOptions);
        workflow_agent::ProjectRun::tasks => (&_,);
        workflow_agent::Session::exchanges => (&_, u64, usize);
        workflow_agent::Session::fork => (&_, Arc<str>);
        workflow_agent::Session::open_run => (&_,);
        workflow_agent::Session::say => (&_, Prompt);
        #[cfg(feature = "graph")] workflow_agent::GraphAgents::approvals => (&_, &_, &_);
        #[cfg(feature = "graph")] workflow_agent::GraphAgents::questions => (&_, &_, &_);
        #[cfg(feature = "mcp")] workflow_agent::Mcp::connect => (workflow_agent::Mcp,);
        #[cfg(feature = "mcp")] workflow_agent::McpServer::close => (&_,);
        workflow_agent::PendingPlan::approve => (&_,);
        workflow_agent::PendingPlan::decide => (&_, PlanDecision);
        workflow_agent::PendingPlan::edit => (&_, Vec<PlanTask>);
        workflow_agent::PendingPlan::reject => (&_, String);
    }
}

/// A93
#[test]
fn threads_share_every_handle() {
    is_shared::<Agent>();
    is_shared::<AgentRun>();
    is_shared::<Shown>();
    is_shared::<Session>();
    is_shared::<Project>();
    is_shared::<ProjectRun>();
    is_shared::<workflow_agent::ProjectShown>();
    is_shared::<PendingApproval>();
    is_shared::<PendingQuestion>();
    is_shared::<PendingPlan>();
    #[cfg(feature = "graph")]
    is_shared::<workflow_agent::GraphAgents>();
    #[cfg(feature = "mcp")]
    is_shared::<workflow_agent::McpServer>();
}
