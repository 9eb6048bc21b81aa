//! The workflow of an agent: which step takes which event. Each step's work is in a file of its own below.

use std::sync::Arc;

use workflow_chat::ChatTurn;
use workflow_core::prelude::*;
use workflow_core::{Cancellation, StepFailed};

mod admit;
mod call;
mod collect;
mod events;
mod finish;
mod judge;
mod left;
mod open;
mod order;
mod request;
mod shorten;
mod state;
mod think;

pub(crate) use admit::edit_problem;
pub use events::Steer;
pub(crate) use events::{
    Accepted, ActCall, Acting, CallTools, CandidateAnswer, Continued, Ending, InSession, Judged, Next,
    ReadCall, Shorten, Shortened, SpawnCall, Start, Stopping, SummarisedPart, Think,
};
use events::{Collected, Dispatched};
use order::{Approved, Move, Planned};
use request::Sources;
pub(crate) use state::State;

use crate::agent::{Agent, Outcome, Prompt, Terms};
use crate::approval::{ApproveTool, AskUser};
use crate::budget::Spent;
use crate::entry::{Entry, Summarised, ToolCall, ToolDone};

#[workflow(output = Outcome)]
impl Agent {
    /// Begins a run for a prompt: what session and memory add, and the message.
    #[step]
    async fn open(
        &self,
        prompt: &Prompt,
        thread: &ThreadContext,
        info: &RunInfo,
    ) -> Result<(Vec<Entry>, Option<InSession>, Think), StepError> {
        let entries = open::entries(self, prompt, thread, info).await?;
        Ok((entries, prompt.session.is_some().then_some(InSession {}), Think {}))
    }

    /// Begins a run for a turn of a chat, whose client keeps the conversation.
    #[step]
    async fn open_chat(
        &self,
        turn: &ChatTurn,
        thread: &ThreadContext,
    ) -> Result<(Vec<Entry>, Think), StepError> {
        Ok((open::chat_entries(self, turn, thread).await?, Think {}))
    }

    /// Calls the model.
    #[step(loops)]
    async fn think(
        &self,
        _: &Think,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        chat: Passive<&ChatTurn>,
        thread: &ThreadContext,
        engine: &Engine,
        display: &Display,
    ) -> Result<(Vec<Entry>, Next), StepError> {
        let own: Vec<&Entry> = entries.iter().collect();
        let terms = Terms { prompt: *prompt, agent: self };
        think::turn(&terms, &own, *chat, Sources { thread, engine }, display).await
    }

    /// Checks the calls of a reply: unknown tools and unfit arguments end here, a person is asked where a tool wants it, and
    /// the first calls begin.
    #[step]
    async fn dispatch(
        &self,
        calls: &CallTools,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        context: &RunContext,
    ) -> Result<Dispatched, StepError> {
        let behind = (calls.seen..entries.len()).filter_map(|index| entries.get(index));
        let Some(reply) = state::reply_behind(behind, 0) else {
            return Err(StepError::permanent("the log has no reply with calls"));
        };
        let terms = Terms { prompt: *prompt, agent: self };
        admit::dispatch(&terms, reply, &entries, context).await
    }

    /// Takes a person's decision.
    #[step]
    async fn approved(
        &self,
        decision: &Reply<ApproveTool>,
        calls: Passive<List<ToolCall>>,
        context: &RunContext,
    ) -> Result<(Option<Approved>, Option<ToolDone>), StepError> {
        let call = admit::call_of(&calls, &decision.request().call)?;
        admit::decided(self, call, decision, context).await
    }

    /// Handles an approval that nobody gave in time.
    #[step]
    async fn unanswered(
        &self,
        asked: &Expired<ApproveTool>,
        calls: Passive<List<ToolCall>>,
    ) -> Result<ToolDone, StepError> {
        Ok(admit::unanswered(self, admit::call_of(&calls, &asked.request().call)?))
    }

    /// Takes the answer to a question of the model.
    #[step]
    async fn told(
        &self,
        answer: &Reply<AskUser>,
        calls: Passive<List<ToolCall>>,
    ) -> Result<ToolDone, StepError> {
        let call = admit::call_of(&calls, &answer.request().call)?;
        Ok(call::output(self, call, answer.value(), false))
    }

    /// Handles a question that nobody answered in time.
    #[step]
    async fn untold(
        &self,
        asked: &Expired<AskUser>,
        calls: Passive<List<ToolCall>>,
    ) -> Result<ToolDone, StepError> {
        let call = admit::call_of(&calls, &asked.request().call)?;
        Ok(ToolDone::error(call, "nobody answered in time, and the question expired"))
    }

    /// Runs a call of a read-only tool, beside others.
    #[step(concurrency = 16)]
    async fn read(
        &self,
        begun: &ReadCall,
        calls: Passive<List<ToolCall>>,
        display: &Display,
        cancellation: &Cancellation,
        info: &RunInfo,
    ) -> Result<ToolDone, StepError> {
        let call = admit::call_of(&calls, &begun.call)?;
        call::run(self, call, begun.edited.as_ref(), display, cancellation, info).await
    }

    /// Runs a call of a tool that acts. Those of independent tools run beside others; any other begins once all before it in
    /// the reply have results.
    #[step(concurrency = 16)]
    async fn act(
        &self,
        begun: &ActCall,
        calls: Passive<List<ToolCall>>,
        display: &Display,
        cancellation: &Cancellation,
        info: &RunInfo,
    ) -> Result<ToolDone, StepError> {
        let call = admit::call_of(&calls, &begun.call)?;
        call::run(self, call, begun.edited.as_ref(), display, cancellation, info).await
    }

    /// Runs sub-agents as child runs.
    #[step]
    async fn spawn(
        &self,
        begun: &SpawnCall,
        calls: Passive<List<ToolCall>>,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        children: &Children,
        info: &RunInfo,
        engine: &Engine,
    ) -> Result<ToolDone, StepError> {
        let call = admit::call_of(&calls, &begun.call)?;
        let terms = Terms { prompt: *prompt, agent: self };
        let own: Vec<&Entry> = entries.iter().collect();
        let place = crate::sub_agent::Place { children, info, engine };
        crate::sub_agent::spawn(&terms, call, &State::of(&own, self), &place).await
    }

    /// Gives a call whose step failed for good its result.
    #[step(catches = [read, act, spawn])]
    async fn failed(
        &self,
        failed: &StepFailed,
        calls: Passive<List<ToolCall>>,
        info: &RunInfo,
        engine: &Engine,
    ) -> Result<ToolDone, StepError> {
        let id = call::begun_by(failed.execution, info, engine).await?;
        let done = call::failed(self, admit::call_of(&calls, &id)?, failed);
        if &*failed.step != "spawn" {
            return Ok(done);
        }
        // Sub-agents may have worked before.
        let tasks = crate::sub_agent::Unfinished::new(self, info, engine, failed.execution);
        let Spent { usage, cost, tool_calls } = tasks.spent_so_far().await;
        Ok(ToolDone { usage: Some(usage), cost, tool_calls, ..done })
    }

    /// Lets the next calls of a reply begin, and collects the results of all.
    #[step(reruns, loops)]
    async fn collect(
        &self,
        moves: List<Move>,
        planned: Passive<&Planned>,
        calls: Passive<List<ToolCall>>,
        entries: Passive<List<Entry>>,
    ) -> Result<Collected, StepError> {
        let Some(planned) = *planned else {
            return Err(StepError::permanent("the log has no plan of calls"));
        };
        collect::next(self, planned, &moves, &calls, &entries)
    }

    /// Summarises the older part of the conversation, half a window at a time.
    #[step(loops)]
    async fn shorten(
        &self,
        shorten: &Shorten,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        chat: Passive<&ChatTurn>,
        thread: &ThreadContext,
        engine: &Engine,
    ) -> Result<(Option<Entry>, Option<Summarised>, Shortened), StepError> {
        let own: Vec<&Entry> = entries.iter().collect();
        let terms = Terms { prompt: *prompt, agent: self };
        shorten::summary(&terms, shorten, &own, *chat, Sources { thread, engine }).await
    }

    /// Checks an answer, asks the judge, and ends the phase or the run.
    #[step]
    async fn judge(
        &self,
        candidate: &CandidateAnswer,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        chat: Passive<&ChatTurn>,
    ) -> Result<(Option<Entry>, Judged), StepError> {
        let own: Vec<&Entry> = entries.iter().collect();
        let terms = Terms { prompt: *prompt, agent: self };
        judge::candidate(&terms, candidate.seen, &own, *chat).await
    }

    /// Logs a message that arrived meanwhile.
    #[step]
    async fn hear(&self, steer: &Steer) -> Entry {
        Entry::Steer { text: self.heard(steer) }
    }

    /// Ends the run: the exchange enters its session and the memory, once.
    #[step]
    async fn finish(
        &self,
        ending: Ending,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        chat: Passive<&ChatTurn>,
        planned: Passive<&Planned>,
        moves: Passive<List<Move>>,
        begun: Passive<List<Start>>,
        calls: Passive<List<ToolCall>>,
        thread: &ThreadContext,
        info: &RunInfo,
        children: &Children,
        engine: &Engine,
    ) -> Result<Outcome, StepError> {
        let own: Vec<&Entry> = entries.iter().collect();
        let terms = Terms { prompt: *prompt, agent: self };
        let place = finish::Place { thread, info, children, engine };
        let calls = left::Calls { planned: *planned, moves: &moves, begun: &begun, all: &calls };
        finish::run(&terms, ending, &own, &calls, *chat, &place).await
    }

    /// Ends a run in which a step failed for good.
    #[step(catches = [open, open_chat, think, dispatch, approved, unanswered, told, untold, failed, collect, shorten, judge, hear, finish])]
    async fn give_up(
        &self,
        failed: &StepFailed,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        accepted: Passive<&Accepted>,
        stopping: Passive<&Stopping>,
        planned: Passive<&Planned>,
        moves: Passive<List<Move>>,
        begun: Passive<List<Start>>,
        calls: Passive<List<ToolCall>>,
        thread: &ThreadContext,
        info: &RunInfo,
    ) -> Result<crate::agent::Stopped, StepError> {
        let own: Vec<&Entry> = entries.iter().collect();
        let terms = Terms { prompt: *prompt, agent: self };
        // The last verdict of a judge is in no entry.
        let accepted = accepted.map(|accepted| (accepted.usage, accepted.cost));
        let judged = accepted.or_else(|| stopping.map(|stopping| (stopping.usage, stopping.cost)));
        let calls = left::Calls { planned: *planned, moves: &moves, begun: &begun, all: &calls };
        let own = finish::Own { entries: &own, calls: &calls };
        finish::gave_up(&terms, failed, own, judged.unwrap_or_default(), (thread, info)).await
    }

    /// Leaves in its session what a run did that ends without an outcome, once something that acts began.
    #[step(on_end)]
    async fn leave(
        &self,
        _: &InSession,
        _: Acting,
        prompt: &Prompt,
        entries: Passive<List<Entry>>,
        planned: Passive<&Planned>,
        moves: Passive<List<Move>>,
        begun: Passive<List<Start>>,
        calls: Passive<List<ToolCall>>,
        thread: &ThreadContext,
        info: &RunInfo,
    ) -> Result<(), StepError> {
        let Some(session) = &prompt.session else { return Ok(()) };
        let own: Vec<&Entry> = entries.iter().collect();
        let calls = left::Calls { planned: *planned, moves: &moves, begun: &begun, all: &calls };
        let left = left::entries(self, &own, &calls, &left::of_ending(info.ending()));
        crate::session::leave(thread, session, info, &left).await
    }
}

impl Agent {
    /// The text of a message as the conversation has it: without secrets, and within its bound.
    pub(crate) fn heard(&self, steer: &Steer) -> Arc<str> {
        let text = self.inner.caller.redactor.shared(&steer.text);
        if text.len() <= crate::agent::TEXT {
            text
        } else {
            crate::tool::head(&text, crate::agent::TEXT).into()
        }
    }
}
