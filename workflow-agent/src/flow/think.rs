//! A turn: the limits before it, the call of the model, and the event that follows from its reply.

use std::sync::Arc;

use serde_json::Value;
use workflow_chat::{ChatTurn, Chunk, Thought};
use workflow_core::ErrorClass;
use workflow_core::prelude::*;

use crate::agent::{StopReason, Terms};
use crate::caller::Piece;
use crate::compact;
use crate::entry::{Counted, Entry, FailureClass, Note, NoteKind, Reply};
use crate::failures;
use crate::flow::request::{self, Earlier, Sources};
use crate::flow::state::State;
use crate::flow::{CallTools, CandidateAnswer, Next, Shorten, Stopping, Think};
use crate::model::{Finish, ModelReply, Part, Usage};
use crate::transcript::FINAL_ANSWER;

/// Summaries that may follow each other without a reply between.
const SUMMARIES: u32 = 2;
/// The longest arguments of a call in bytes, as JSON.
pub(crate) const ARGUMENTS: usize = 256 * 1024;

/// One turn.
pub(super) async fn turn(
    terms: &Terms<'_>,
    own: &[&Entry],
    chat: Option<&ChatTurn>,
    sources: Sources<'_>,
    display: &Display,
) -> Result<(Vec<Entry>, Next), StepError> {
    let state = State::of(own, terms.agent);
    if terms.budget().is_used_up(&state.spent) {
        return Ok(stop(budget_of(&state)));
    }
    if state.turns >= terms.max_turns() && (!state.closing || state.closed) {
        return Ok(last_turn(terms, &state));
    }
    let before = Earlier::of(terms, own, chat, sources).await?;
    let turn = request::turn(terms, &before, own, chat, &state);
    if let Some(rounds) = turn.due.filter(|_| state.summaries < SUMMARIES) {
        return Ok((Vec::new(), Next::Shorten(Shorten::new(rounds, false))));
    }
    let show = |piece| match piece {
        Piece::Text(text) => display.show(Chunk { text }),
        Piece::Thought(text) => display.show(Thought { text }),
    };
    let sent = turn.sent;
    match terms.agent.inner.caller.call_counted(turn.request, || sent.characters(), show).await {
        Ok((reply, usage)) => {
            replied(terms, own, &state, &before, reply, Size { usage, estimate: turn.estimate })
        }
        Err(error) if error.class == ErrorClass::ContextLimit => {
            let error = terms.agent.inner.caller.redactor.text(error.message()).into_owned();
            Ok(overflow(terms, own, &state, &error))
        }
        Err(error) => Err(failures::of_model(&error, &terms.agent.inner.caller.redactor)),
    }
}

fn stop(reason: StopReason) -> (Vec<Entry>, Next) {
    (Vec::new(), Next::Stopping(Stopping::from(reason)))
}

fn budget_of(state: &State<'_>) -> StopReason {
    StopReason::Budget { tokens: state.spent.usage.tokens(), tool_calls: state.spent.tool_calls }
}

/// The turns are used up: a closing call, if the agent makes one, or the end.
fn last_turn(terms: &Terms<'_>, state: &State<'_>) -> (Vec<Entry>, Next) {
    if terms.agent.inner.rules.closing_call && !state.closing {
        let text = "The turns are used up. Give your final answer now, without tools.";
        return (vec![Entry::Note(Note::new(NoteKind::Closing, text))], Next::Think(Think {}));
    }
    stop(StopReason::TurnLimit { turns: terms.max_turns() })
}

/// The request exceeds the window: a summary that keeps two rounds, then one, then shorter results, and then the end.
fn overflow(terms: &Terms<'_>, own: &[&Entry], state: &State<'_>, error: &str) -> (Vec<Entry>, Next) {
    let rounds = if state.overflows == 0 { 2 } else { 1 };
    let is_left = (1..=rounds).rev().find(|rounds| compact::keep_from(own, *rounds).is_some());
    match is_left.filter(|_| state.overflows < SUMMARIES) {
        Some(rounds) => (Vec::new(), Next::Shorten(Shorten::new(rounds, true))),
        None => match compact::cut_results(own, terms.agent.inner.caller.model.limits().context) {
            Some(most) => (vec![Entry::Cut { most }], Next::Think(Think {})),
            None => stop(StopReason::Failed { class: FailureClass::ContextLimit, error: error.into() }),
        },
    }
}

/// The tokens of a call.
#[derive(Debug, Clone, Copy)]
struct Size {
    usage: Usage,
    estimate: u64,
}

/// The entry of a reply, and the event that follows.
fn replied(
    terms: &Terms<'_>,
    own: &[&Entry],
    state: &State<'_>,
    before: &Earlier,
    mut reply: ModelReply,
    size: Size,
) -> Result<(Vec<Entry>, Next), StepError> {
    usable(&reply)?;
    bound_arguments(&mut reply.parts);
    no_arguments(terms, &mut reply.parts);
    name_calls(&mut reply.parts, own, before);
    let Size { usage, estimate } = size;
    let (parts, finish, closing) = (reply.parts.into(), reply.finish, state.closing);
    let size = Counted::default();
    let reply = Reply { parts, finish, usage, estimate, seen: own.len(), closing, size };
    if reply.finish == Finish::ContextLimit {
        return Ok(at_end(terms, own, state, reply));
    }
    let next = next(terms, own, state, &reply);
    let is_cut_off = reply.finish == Finish::Length && matches!(next, Next::Think(_));
    let mut entries = vec![Entry::Assistant(reply)];
    if is_cut_off {
        let text =
            "Your reply was cut off at its longest length. None of its tool calls ran. Write less at a time.";
        entries.push(Entry::Note(Note::new(NoteKind::Length, text)));
    }
    Ok((entries, next))
}

/// A reply that reached the end of the window stays, and the conversation before it is shortened.
fn at_end(terms: &Terms<'_>, own: &[&Entry], state: &State<'_>, reply: Reply) -> (Vec<Entry>, Next) {
    let mut entries = vec![Entry::Assistant(reply)];
    let all: Vec<&Entry> = own.iter().copied().chain(&entries).collect();
    let (cut, next) = overflow(terms, &all, state, "the reply reached the end of the context window");
    entries.extend(cut);
    if !matches!(next, Next::Stopping(_)) {
        let text = "Your reply was cut off at the end of the context window. None of its tool calls ran. Continue it.";
        entries.push(Entry::Note(Note::new(NoteKind::Window, text)));
    }
    (entries, next)
}

/// Refuses replies of which nothing can follow.
fn usable(reply: &ModelReply) -> Result<(), StepError> {
    let has_calls = reply.calls().next().is_some();
    let has_text = reply.parts.iter().any(|part| matches!(part, Part::Text(text) if !text.trim().is_empty()));
    match reply.finish {
        Finish::ToolUse if !has_calls => {
            Err(StepError::model("the model announced tool calls and made none"))
        }
        Finish::Stop if !has_calls && !has_text => Err(StepError::model("the model's reply is empty")),
        _ => Ok(()),
    }
}

/// The event that follows a reply.
fn next(terms: &Terms<'_>, own: &[&Entry], state: &State<'_>, reply: &Reply) -> Next {
    let agent = &terms.agent.inner;
    let mut spent = state.spent;
    spent.add(reply.usage, agent.caller.model.limits().price);
    let calls = reply.calls().count();
    let is_final =
        request::offers_final_answer(terms, state) && reply.calls().any(|call| &*call.name == FINAL_ANSWER);
    let seen = own.len();
    if reply.finish == Finish::Refusal {
        return Next::Stopping(StopReason::Refused.into());
    }
    if reply.finish == Finish::Length {
        return cut_off(state, calls);
    }
    let ran = if is_final || state.closing { 0 } else { calls.min(super::admit::MOST_CALLS) as u64 };
    let planned = crate::budget::Spent { tool_calls: spent.tool_calls + ran, ..spent };
    if terms.budget().is_exceeded(&planned) {
        let reason = StopReason::Budget { tokens: spent.usage.tokens(), tool_calls: spent.tool_calls };
        return Next::Stopping(reason.into());
    }
    if calls == 0 || is_final {
        return Next::Candidate(CandidateAnswer { seen });
    }
    if state.closing {
        return Next::Stopping(StopReason::TurnLimit { turns: terms.max_turns() }.into());
    }
    match state.turns + 1 >= terms.max_turns() {
        // Calls of the last turn are not run. With a closing call, `think` begins it.
        true if agent.rules.closing_call => Next::Think(Think {}),
        true => Next::Stopping(StopReason::TurnLimit { turns: terms.max_turns() }.into()),
        false => Next::CallTools(CallTools { seen }),
    }
}

/// A reply that was cut off: with calls in it, the model learns so once.
fn cut_off(state: &State<'_>, calls: usize) -> Next {
    match calls {
        0 => Next::Stopping(StopReason::OutputLimit.into()),
        _ if state.cut_off > 0 => Next::Stopping(StopReason::OutputLimit.into()),
        _ => Next::Think(Think {}),
    }
}

/// Replaces arguments beyond the bound by a text that fits no schema. The call's result has the bound.
fn bound_arguments(parts: &mut [Part]) {
    for part in parts {
        if let Part::Call(call) = part {
            let bytes = crate::model::json_bytes(&call.arguments);
            if bytes > ARGUMENTS {
                let text =
                    format!("[{bytes} bytes of arguments, left out here: {ARGUMENTS} at most are allowed]");
                call.arguments = Value::String(text);
            }
        }
    }
}

/// Of a tool without parameters, everything that means nothing is an object without fields.
fn no_arguments(terms: &Terms<'_>, parts: &mut [Part]) {
    for part in parts {
        if let Part::Call(call) = part
            && let Value::String(text) = &call.arguments
            && matches!(text.trim(), "null" | "[]" | "\"\"")
            && terms
                .agent
                .inner
                .tools
                .0
                .get(&*call.name)
                .is_some_and(|offered| !offered.spec.has_parameters())
        {
            call.arguments = Value::Object(serde_json::Map::new());
        }
    }
}

/// Gives calls whose ids are unfit or taken others, so that each result has one call. A name that providers would refuse in
/// the next request becomes a fit one, which no tool has.
fn name_calls(parts: &mut [Part], own: &[&Entry], before: &Earlier) {
    let mut named: Vec<Arc<str>> = Vec::new();
    let mut number = 0_usize;
    for part in parts {
        let Part::Call(call) = part else { continue };
        if !crate::tool::is_fit(&call.name) {
            call.name = crate::tool::fitted(&call.name).into();
        }
        while !crate::tool::is_fit(&call.id) || named.contains(&call.id) || is_taken(&call.id, own, before) {
            number += 1;
            call.id = format!("call_{}_{number}", own.len()).into();
        }
        named.push(Arc::clone(&call.id));
    }
}

/// Whether an earlier call of the conversation has this id. A reply has few calls, so no set of all ids is made.
fn is_taken(id: &str, own: &[&Entry], before: &Earlier) -> bool {
    let has = |entry: &Entry| match entry {
        Entry::Assistant(Reply { parts, .. }) | Entry::Said { parts } => {
            crate::entry::calls(parts).any(|call| is_same_id(&call.id, id))
        }
        _ => false,
    };
    own.iter().any(|entry| has(entry)) || before.entries().any(has)
}

/// Whether two ids are equal. Ids of one provider are equally long and begin alike, so their ends are compared first.
fn is_same_id(one: &str, other: &str) -> bool {
    one.as_bytes().last() == other.as_bytes().last() && one == other
}
