//! One episode: its bound, its stored form and its text for models. It does not know where episodes are stored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use workflow_core::RunId;

use super::embed::Vector;
use super::{Episode, Recalled, RecalledKind};
use crate::tool::cut;

/// The most bytes of both texts of an episode.
pub(super) const EPISODE: usize = 8 * 1024;

/// The part of it that a long question leaves to a long answer.
const ANSWER: usize = EPISODE / 4 * 3;

/// An episode as the context of its thread has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredEpisode {
    /// The place among all episodes that the thread ever had.
    pub(super) number: u64,
    pub(super) run: RunId,
    /// Milliseconds since 1970.
    pub(super) at: u64,
    pub(super) question: String,
    pub(super) answer: String,
    /// A vector of both texts, in the form of [`Vector::to_text`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) vector: Option<String>,
}

impl StoredEpisode {
    /// The stored form without number and vector, with texts within the bound.
    pub(super) fn new(episode: &Episode) -> Self {
        let since = episode.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (question, answer) = bounded(&episode.question, &episode.answer);
        Self {
            number: 0,
            run: episode.run.clone(),
            at: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            question,
            answer,
            vector: None,
        }
    }

    /// The text for search and embedding.
    pub(super) fn searched(&self) -> String {
        format!("{}\n{}", self.question, self.answer)
    }

    /// The vector, unless there is none or it is damaged.
    pub(super) fn vector(&self) -> Option<Vector> {
        self.vector.as_deref().and_then(Vector::from_text)
    }

    pub(super) fn into_recalled(self) -> Recalled {
        let text = format!("User: {}\nAgent: {}", self.question, self.answer);
        Recalled::new(RecalledKind::Episode, text).run(self.run).at(time(self.at))
    }
}

/// A damaged record may name a time that the system cannot represent.
fn time(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)).unwrap_or(UNIX_EPOCH)
}

fn bounded(question: &str, answer: &str) -> (String, String) {
    let room = EPISODE - answer.len().min(ANSWER);
    let question = cut(question, room);
    let answer = cut(answer, EPISODE - question.len());
    (question.into_owned(), answer.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A43
        #[test]
        fn both_texts_share_the_bound_and_a_cut_says_so(
            (question, answer) in ("[aé🙂]{0,400}", "[aé🙂]{0,400}"),
            (more, most) in (0_usize..40, 0_usize..40),
        ) {
            let (question, answer) = (question.repeat(more), answer.repeat(most));
            let (q, a) = bounded(&question, &answer);
            prop_assert!(q.len() + a.len() <= EPISODE);
            for (short, long) in [(&q, &question), (&a, &answer)] {
                prop_assert!(short == long || short.contains(" bytes are missing here …]"));
            }
            if question.len() + answer.len() <= EPISODE {
                prop_assert_eq!((q, a), (question, answer));
            } else {
                // Little room is given away.
                prop_assert!(q.len() + a.len() > EPISODE - 200);
            }
        }
    }

    #[test]
    fn times_out_of_range_are_no_panic() {
        let episode = |at| Episode { run: "a".into(), at, question: String::new(), answer: String::new() };
        assert_eq!(StoredEpisode::new(&episode(UNIX_EPOCH - Duration::from_secs(1))).at, 0);
        let damaged = StoredEpisode { at: u64::MAX, ..StoredEpisode::new(&episode(UNIX_EPOCH)) };
        assert!(damaged.into_recalled().at.is_some());
    }
}
