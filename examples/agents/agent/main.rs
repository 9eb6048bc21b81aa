//! A chat with an agent in the terminal: streaming, approvals in place, a memory, and projects of tasks, all of which
//! survive a kill.
//!
//! ```text
//! cargo run -p examples-agents --example agent -- --state /tmp/agent                          # offline, with a scripted model
//! ANTHROPIC_API_KEY=… cargo run -p examples-agents --example agent -- --model anthropic::claude-sonnet-5
//! cargo run -p examples-agents --example agent -- --model openai::qwen3 --url http://127.0.0.1:8080/v1
//! ```
//!
//! A line is a message, and `/project GOAL` starts a project. With `--state`, the same command continues the conversation,
//! and resumes the run or the project that a kill or a missing answer left.

mod desk;
mod offline;
mod project;
mod screen;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use workflow_agent::memory::EpisodicMemory;
use workflow_agent::model::Model;
use workflow_agent::prelude::*;
use workflow_agent::{Project, Provider};
use workflow_redb::RedbStore;

use desk::{Desk, order};
use screen::{Lines, Screen, complain};

/// Chats with an agent that knows orders, refunds them after your y, and remembers you.
#[derive(Debug, Parser)]
#[command(name = "agent")]
struct Arguments {
    /// The folder of journals, sessions, memory and refunds; without it, a temporary one.
    #[arg(long)]
    state: Option<PathBuf>,

    /// The model, as `provider::name`; without it, one that follows a script.
    #[arg(long)]
    model: Option<String>,

    /// The address of a server to call instead of the provider's own; no key is sent to it.
    #[arg(long, requires = "model")]
    url: Option<String>,

    /// Your name: the thread that owns session and memory.
    #[arg(long, default_value = "ada")]
    user: String,

    /// Kill the process once this many refunds are paid, before their results are stored, to see it resume.
    #[arg(long)]
    kill_after: Option<u64>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match chat(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&*error);
            ExitCode::FAILURE
        }
    }
}

async fn chat(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let folder = arguments.state.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(folder)?;
    let agent = agent(arguments, folder)?;
    let project = project::project(&model(arguments)?)?;
    let store = RedbStore::open(folder.join("agent.redb"))?;
    let engine = Engine::builder().agent(agent.clone()).project(project.clone()).store(store).build()?;
    let resumed = engine.resume_open_runs().await?;
    for (run, error) in resumed.refused {
        complain(&format!("{run} was not resumed: {error}"));
    }
    let ended = converse(arguments, &engine, &agent, &project).await;
    engine.shut_down(Duration::from_secs(5)).await;
    ended
}

/// Reads lines until there are no more, or a run waits for an answer that nobody gives.
async fn converse(
    arguments: &Arguments,
    engine: &Engine,
    agent: &Agent,
    project: &Project,
) -> Result<(), Box<dyn Error>> {
    let session = Session::of(engine, agent).thread(arguments.user.as_str()).id("chat");
    let (mut screen, mut lines) = (Screen::default(), Lines::default());
    if let Some(run) = session.open_run().await? {
        screen.say("(resumes the run that it found)");
        if !screen.show(run, &mut lines).await? {
            return Ok(());
        }
    }
    if !project::resume(engine, project, &mut screen, &mut lines).await? {
        return Ok(());
    }
    while let Some(line) = lines.ask("you> ").await? {
        let is_answered = match line.trim() {
            "" => true,
            "/quit" => break,
            line => match line.strip_prefix("/project ") {
                Some(goal) => project::start(engine, project, goal, &mut screen, &mut lines).await?,
                None => screen.show(session.say(line).await?, &mut lines).await?,
            },
        };
        if !is_answered {
            break;
        }
    }
    Ok(())
}

fn agent(arguments: &Arguments, folder: &Path) -> Result<Agent, Box<dyn Error>> {
    let desk = Desk::new(folder.join("refunds.txt"), arguments.kill_after);
    let agent = Agent::builder("assistant")
        .model(model(arguments)?)
        .identity("You are the assistant of a small shop, and you help its customers.")
        .narrative("Goal: answers that are true and short. Look an order up before you speak about it.")
        .tool(order)
        .tools(desk)
        .memory(EpisodicMemory::new())
        .budget(Budget::tokens(100_000));
    Ok(agent.build()?)
}

fn model(arguments: &Arguments) -> Result<Arc<dyn Model>, Box<dyn Error>> {
    let Some(name) = &arguments.model else { return Ok(Arc::new(offline::model())) };
    let provider = Provider::new(name)?;
    Ok(match &arguments.url {
        Some(url) => Arc::new(provider.endpoint(url).without_key().build()?),
        None => Arc::new(provider.build()?),
    })
}
