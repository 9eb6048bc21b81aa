//! Candidates: the schema of the answer, the judge, and the end of a phase.

use std::sync::Arc;

use serde_json::Value;
use workflow_chat::ChatTurn;
use workflow_core::prelude::*;

use crate::agent::{StopReason, Terms};
use crate::entry::{Entry, Marker, Note, NoteKind, Reply};
use crate::failures;
use crate::flow::request::is_object;
use crate::flow::state::{State, reply_behind};
use crate::flow::{Accepted, Judged, Stopping, Think};
use crate::judge::{Candidate, Judgement, RETRIES, Verdict};
use crate::phase::{self, Phase};
use crate::tool::{Misfit, Schema};
use crate::transcript::FINAL_ANSWER;
use crate::written;

/// Retries of an answer that does not fit its schema.
const OUTPUT_RETRIES: u32 = 3;

/// Judges the answer in an entry.
pub(super) async fn candidate(
    terms: &Terms<'_>,
    seen: usize,
    own: &[&Entry],
    chat: Option<&ChatTurn>,
) -> Result<(Option<Entry>, Judged), StepError> {
    let Some(reply) = reply_behind(own.iter().copied(), seen) else {
        return Err(StepError::permanent("the candidate is no reply"));
    };
    let state = State::of(own, terms.agent);
    let place = terms.phase(state.entered);
    let schema = terms.output(place.map(|(_, phase)| phase));
    let data = match schema.as_deref() {
        Some(schema) => match data(reply, schema).await {
            Ok(data) => Some(data),
            Err(misfit) => return Ok(unfit(&state, &misfit)),
        },
        None => None,
    };
    let judgement = match &terms.agent.inner.judge {
        Some(judge) => {
            let candidate = Candidate {
                prompt: super::open::question(terms.agent, own, chat),
                phase: place.map(|(_, phase)| Arc::clone(&phase.name)),
                text: reply.text().into(),
                data: data.clone(),
            };
            judged(terms, judge.judge(&candidate)).await?
        }
        None => Verdict::Accept.into(),
    };
    let Judgement { verdict, usage, cost } = judgement;
    let redactor = &terms.agent.inner.caller.redactor;
    Ok(match verdict {
        Verdict::Accept => accepted(terms, own, reply, place, Accepted { data, usage, cost }),
        Verdict::Retry(feedback) => {
            let feedback: Arc<str> =
                crate::tool::cut(&redactor.text(&feedback), crate::tool::OUTPUT).as_ref().into();
            if state.judge_retries >= RETRIES {
                let reason = StopReason::JudgeRetries { retries: RETRIES, feedback };
                return Ok((None, Judged::Stopping(Stopping { reason, usage, cost })));
            }
            let note = Note { about: NoteKind::Judge, text: feedback, usage, cost };
            (Some(Entry::Note(note)), Judged::Think(Think {}))
        }
        Verdict::Escalate(why) => {
            let reason = StopReason::Escalated { why: redactor.text(&why).as_ref().into() };
            (None, Judged::Stopping(Stopping { reason, usage, cost }))
        }
    })
}

async fn judged(
    terms: &Terms<'_>,
    judging: impl Future<Output = Result<Judgement, StepError>>,
) -> Result<Judgement, StepError> {
    let redactor = &terms.agent.inner.caller.redactor;
    match failures::guarded(judging).await {
        Ok(Ok(judgement)) if !judgement.cost.is_finite() => {
            Err(StepError::permanent(format!("the cost of the judge is no number: {}", judgement.cost)))
        }
        Ok(judgement) => judgement.map_err(|error| failures::of_user(&error, redactor)),
        Err(panic) => {
            let text = format!("the judge failed: {panic}");
            Err(StepError::permanent(redactor.text(&text).into_owned()))
        }
    }
}

/// The data of an answer, or its misfit.
async fn data(reply: &Reply, schema: &Value) -> Result<Value, Misfit> {
    let called = reply.calls().find(|call| &*call.name == FINAL_ANSWER).map(|call| call.arguments.clone());
    let mut data = match called {
        Some(arguments) => arguments,
        None => read(&reply.text())?,
    };
    let compiled = Schema::new(schema).map_err(|problem| Misfit { pointer: String::new(), problem })?;
    // The model was given any other schema than that of an object as the field `answer`.
    if !is_object(schema)
        && data.as_object().is_some_and(|fields| fields.len() == 1)
        && let Some(answer) = data.get_mut("answer").map(Value::take)
    {
        data = answer;
    }
    data.sort_all_objects();
    compiled.check_aside(&data).await?;
    Ok(data)
}

/// JSON that a model wrote as text. It may have text around it if the whole is no JSON.
fn read(text: &str) -> Result<Value, Misfit> {
    let strict = written::strict(text);
    strict.or_else(|error| written::loose(text).ok_or(error)).map_err(|error| Misfit {
        pointer: String::new(),
        problem: format!("the answer is no JSON: {error}; it begins: {}", crate::tool::head(text.trim(), 80)),
    })
}

/// An answer that does not fit its schema goes back to the model, three times.
fn unfit(state: &State<'_>, misfit: &Misfit) -> (Option<Entry>, Judged) {
    if state.output_retries >= OUTPUT_RETRIES {
        let (path, problem) = (misfit.pointer.as_str().into(), misfit.to_string().into());
        return (None, Judged::Stopping(StopReason::InvalidOutput { path, problem }.into()));
    }
    let text = format!("The answer does not fit its schema: {misfit}. Give the whole answer again.");
    (Some(Entry::Note(Note::new(NoteKind::Output, text))), Judged::Think(Think {}))
}

/// The next phase, or the end.
fn accepted(
    terms: &Terms<'_>,
    own: &[&Entry],
    reply: &Reply,
    place: Option<(usize, &Phase)>,
    accepted: Accepted,
) -> (Option<Entry>, Judged) {
    let next = place.and_then(|(index, phase)| Some((phase, terms.agent.inner.phases.get(index + 1)?)));
    let Some((left, next)) = next else {
        return (None, Judged::Accepted(accepted));
    };
    let Accepted { data, usage, cost } = accepted;
    let hand_off = next.isolated.then(|| {
        let before = terms.prompt.and_then(|prompt| prompt.conversation.as_ref());
        let before = before.map_or(&[][..], |conversation| conversation.entries());
        let mut answers = phase::answers(before.iter().chain(own.iter().copied()));
        if let Some((_, of_last)) = answers.last_mut() {
            of_last.clone_from(&data);
        }
        phase::hand_off(&answers).into()
    });
    let marker = Marker {
        left: Some(Arc::clone(&left.name)),
        entered: Arc::clone(&next.name),
        accomplished: phase::accomplished(&reply.text(), data.as_ref()),
        data,
        next: Arc::clone(&next.focus),
        hand_off,
        usage,
        cost,
    };
    (Some(Entry::Marker(marker)), Judged::Think(Think {}))
}
