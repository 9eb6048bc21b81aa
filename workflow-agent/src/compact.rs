//! Compaction: when results are shortened, and when a summary is due. A pure function of the entries, so that a resumed
//! run decides as before. It makes no summary itself: the step `shorten` does.

use crate::entry::{Entry, Reply};
use crate::transcript::{self, Item, SHORT_RESULT};

/// Rounds that a summary keeps at 80 %, at 100 % and at 120 % of the window.
const KEPT: [(f64, usize); 3] = [(1.2, 1), (1.0, 2), (0.8, 4)];

/// The parts of half a window each of which a summary is made, one model call for each.
pub(crate) const PARTS: usize = 16;

/// The characters of half a window, by the estimate of four for a token.
pub(crate) fn half(window: u64) -> usize {
    usize::try_from(window.saturating_mul(2)).unwrap_or(usize::MAX)
}

/// The most characters of earlier exchanges that a run begins with: as many as a summary can take up.
pub(crate) fn most_before(window: u64) -> usize {
    half(window).saturating_mul(PARTS)
}

/// The characters that the results of one reply share: a quarter of the window, by the estimate.
pub(crate) fn shared(window: u64) -> usize {
    (half(window) / 2).max(1_000)
}

/// The longest of several texts, if they share so many characters: short ones leave their rest to the others.
pub(crate) fn share(mut sizes: Vec<usize>, shared: usize) -> usize {
    sizes.sort_unstable();
    let (mut left, mut others) = (shared, sizes.len());
    for size in sizes {
        if size > left / others {
            return left / others;
        }
        left -= size;
        others -= 1;
    }
    usize::MAX
}

/// The most characters of each result at the end of the line, once the provider has refused the conversation as too long;
/// `None` if they are as short as they get. They share a sixteenth of the window, and then each has a few hundred.
pub(crate) fn cut_results(own: &[&Entry], window: u64) -> Option<usize> {
    let last = own.iter().rposition(|entry| matches!(entry, Entry::Results { .. }))?;
    let Entry::Results { results } = own[last] else { return None };
    let before = own[last..].iter().rev().find_map(|entry| match entry {
        Entry::Cut { most } => Some(*most),
        _ => None,
    });
    let sizes: Vec<usize> = results.iter().map(crate::entry::ToolDone::characters).collect();
    let longest = sizes.iter().copied().max()?.min(before.unwrap_or(usize::MAX));
    let first = share(sizes, shared(window) / 4).max(SHORT_RESULT);
    [first, SHORT_RESULT].into_iter().find(|most| longest > *most)
}

/// The state of a conversation before the next model call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plan {
    /// Results among the first items of the line, up to this one, are shortened; 0 if none are.
    pub(crate) short_before: usize,
    /// The characters of the next request as tokens.
    pub(crate) estimate: u64,
    /// The same, corrected by the tokens that the last call reported.
    pub(crate) tokens: u64,
    /// The rounds that a due summary keeps.
    pub(crate) due: Option<usize>,
}

/// Plans the next call. `base` has the characters of instructions and tools, and `window` is the context window in tokens.
///
/// Four characters count as a token, times the ratio of reported and estimated input of the last call, within 0.5 and 2.
#[expect(clippy::cast_precision_loss, reason = "sizes of conversations are far below 2^52")]
#[expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "estimates are positive and small"
)]
pub(crate) fn plan(line: &[Item<'_>], base: usize, window: u64) -> Plan {
    let window = window.max(1) as f64;
    let mut size = Size { base, count: 0, entries: Vec::new(), total: base };
    let (mut ratio, mut level, mut short_before) = (1.0_f64, 0_u32, 0_usize);
    // The places of the last two turns.
    let mut turns = [None; 2];
    let shorten = |size: &mut Size,
                   turns: [Option<usize>; 2],
                   level: &mut u32,
                   short_before: &mut usize,
                   ratio: f64| {
        if size.tokens() * ratio < window * (0.5 + 0.1 * f64::from(*level)) {
            return;
        }
        // Results of the last two turns stay whole, those of earlier runs included.
        let [Some(second), _] = turns else { return };
        let steps = ((size.tokens() * ratio / window - 0.5) / 0.1).floor();
        *level = level.wrapping_add(1).max(steps.clamp(0.0, 100.0) as u32 + 1);
        *short_before = second.max(*short_before);
        size.shorten(line, *short_before);
    };
    for (place, item) in line.iter().enumerate() {
        match item.entry {
            Entry::Assistant(reply) if item.own.is_some() => {
                shorten(&mut size, turns, &mut level, &mut short_before, ratio);
                ratio = correction(reply);
                turns = [turns[1], Some(place)];
            }
            Entry::Assistant(_) | Entry::Said { .. } => turns = [turns[1], Some(place)],
            _ => {}
        }
        size.push(place, item.entry.characters());
        if let Entry::Cut { most } = item.entry {
            size.cut(line, *most);
        }
    }
    shorten(&mut size, turns, &mut level, &mut short_before, ratio);
    let tokens = size.tokens() * ratio;
    let due = KEPT.iter().find(|(part, _)| tokens >= window * part).map(|(_, rounds)| *rounds);
    Plan { short_before, estimate: size.tokens() as u64, tokens: tokens as u64, due }
}

/// The reported by the estimated input of a call.
#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
fn correction(reply: &Reply) -> f64 {
    match (reply.usage.input, reply.estimate) {
        (reported, estimate) if reported > 0 && estimate > 0 && !reply.usage.estimated => {
            (reported as f64 / estimate as f64).clamp(0.5, 2.0)
        }
        _ => 1.0,
    }
}

/// The sizes of the entries of a line.
struct Size {
    base: usize,
    /// The number of entries so far.
    count: usize,
    /// The size of each, once results are shortened. Few conversations become so long.
    entries: Vec<usize>,
    total: usize,
}

impl Size {
    #[expect(clippy::cast_precision_loss, reason = "sizes of conversations are far below 2^52")]
    fn tokens(&self) -> f64 {
        self.total as f64 / 4.0
    }

    fn push(&mut self, place: usize, characters: usize) {
        debug_assert_eq!(place, self.count, "entries are pushed in order");
        if !self.entries.is_empty() {
            self.entries.push(characters);
        }
        self.count += 1;
        self.total += characters;
    }

    fn count_each(&mut self, line: &[Item<'_>]) {
        if self.entries.is_empty() {
            self.entries = line[..self.count].iter().map(|item| item.entry.characters()).collect();
        }
    }

    /// Results so far have at most so many characters.
    fn cut(&mut self, line: &[Item<'_>], most: usize) {
        self.count_each(line);
        for (place, item) in line[..self.count].iter().enumerate() {
            if let Entry::Results { results } = item.entry {
                let cut = results.iter().map(|result| result.characters().min(most + 80) + 40).sum();
                self.entries[place] = self.entries[place].min(cut);
            }
        }
        self.total = self.base + self.entries.iter().sum::<usize>();
    }

    fn shorten(&mut self, line: &[Item<'_>], short_before: usize) {
        self.count_each(line);
        for (place, item) in line[..self.count].iter().enumerate() {
            if place < short_before {
                self.entries[place] = self.entries[place].min(shortened(item.entry));
            }
        }
        self.total = self.base + self.entries.iter().sum::<usize>();
    }
}

/// The characters of an entry whose results are shortened.
fn shortened(entry: &Entry) -> usize {
    let Entry::Results { results } = entry else { return entry.characters() };
    let one = |result: &crate::entry::ToolDone| match result.text.char_indices().nth(SHORT_RESULT + 40) {
        Some(_) if !result.is_error => SHORT_RESULT + 80,
        _ => result.characters() + 40,
    };
    results.iter().map(one).sum()
}

/// The index of the first entry of the run that a summary keeps, if anything is left to summarise.
///
/// A round begins with a reply of the model, so calls and results are never parted. Replies that came before the last
/// summary, or before an isolated phase, do not count.
pub(crate) fn keep_from(own: &[&Entry], rounds: usize) -> Option<usize> {
    let kept = own.iter().rev().find_map(|entry| match entry {
        Entry::Summary(summary) => Some(summary.keep),
        _ => None,
    });
    let earlier = kept.unwrap_or(0).max(transcript::begin(own).map_or(0, |begin| begin + 1));
    let replies: Vec<usize> =
        (earlier..own.len()).filter(|index| matches!(own[*index], Entry::Assistant(_))).collect();
    let keep = match replies.len().checked_sub(rounds) {
        Some(first) if first < replies.len() => replies[first],
        // Fewer rounds than that: only the entries before the first reply can go, such as a history.
        _ => replies.first().copied().unwrap_or(own.len()),
    };
    let stays = |index: usize| {
        matches!(
            own[index],
            Entry::User { .. }
                | Entry::Steer { .. }
                | Entry::Recalled { .. }
                | Entry::Summary(_)
                | Entry::Marker(_)
        )
    };
    (!(earlier..keep).all(stays)).then_some(keep)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{cut_results, keep_from, plan, share};
    use crate::entry::{Counted, Entry, Reply, ToolCall, ToolDone};
    use crate::model::{Finish, Part, ToolUse, Usage};
    use crate::transcript::{Before, line};

    fn round(id: &str, result: usize, input: u64) -> [Entry; 2] {
        let call = ToolCall { call: id.into(), tool: "t".into(), arguments: serde_json::json!({}) };
        let parts = vec![Part::Call(ToolUse::new(id, "t", serde_json::json!({})))];
        let usage = Usage::new(input, 10);
        let reply = Reply {
            parts: parts.into(),
            finish: Finish::ToolUse,
            usage,
            estimate: 1_000,
            seen: 0,
            closing: false,
            size: Counted::default(),
        };
        let results = vec![ToolDone::new(&call, "x".repeat(result), false)];
        [Entry::Assistant(reply), Entry::Results { results }]
    }

    fn conversation(rounds: &[(usize, u64)]) -> Vec<Entry> {
        let user = Entry::User { text: Arc::from("go"), images: Arc::default() };
        let rounds = rounds
            .iter()
            .enumerate()
            .flat_map(|(n, (result, input))| round(&format!("c{n}"), *result, *input));
        std::iter::once(user).chain(rounds).collect()
    }

    /// A53
    #[test]
    fn from_half_the_window_older_results_are_short_and_errors_stay() {
        let entries = conversation(&[(4_000, 0), (4_000, 0), (4_000, 0)]);
        let own: Vec<&Entry> = entries.iter().collect();
        let line = line(Before::default(), &own);
        assert_eq!(plan(&line, 0, 10_000).short_before, 0);
        let planned = plan(&line, 0, 5_000);
        assert_eq!(planned.short_before, 3);
        assert!(planned.tokens < 2_300, "{planned:?}");
        assert_eq!(plan(&line, 0, 2_500).due, Some(4));
        assert_eq!(plan(&line, 0, 1_500).due, Some(1));
    }

    /// A16
    #[test]
    fn short_results_leave_their_rest_to_the_long_ones() {
        assert_eq!(share(vec![10, 20, 30], 100), usize::MAX);
        assert_eq!(share(vec![10, 80, 200], 100), 45);
        assert_eq!(share(vec![9_000; 64], 128_000), 2_000);
        assert_eq!(share(Vec::new(), 10), usize::MAX);
    }

    /// A53
    #[test]
    fn results_are_cut_twice_at_most_once_nothing_else_is_left() {
        let mut entries = conversation(&[(4_000, 0)]);
        for expected in [Some(512), Some(200), None] {
            let own: Vec<&Entry> = entries.iter().collect();
            assert_eq!(cut_results(&own, 2_048), expected);
            entries.extend(expected.map(|most| Entry::Cut { most }));
        }
        let own: Vec<&Entry> = entries.iter().collect();
        assert!(plan(&line(Before::default(), &own), 0, 2_048).tokens < 300);
    }

    /// A53
    #[test]
    fn reported_tokens_correct_the_estimate_within_bounds() {
        let size = |input| {
            let entries = conversation(&[(4_000, 0), (10, input)]);
            let own: Vec<&Entry> = entries.iter().collect();
            plan(&line(Before::default(), &own), 0, 1_000_000).tokens
        };
        // Tokens are whole numbers.
        assert!(size(2_000_000).abs_diff(2 * size(0)) <= 1);
        assert!(size(1).abs_diff(size(0) / 2) <= 1);
    }

    /// A53
    #[test]
    fn a_summary_keeps_whole_rounds_and_is_refused_if_nothing_is_left() {
        let entries = conversation(&[(1, 0), (1, 0), (1, 0), (1, 0), (1, 0)]);
        let own: Vec<&Entry> = entries.iter().collect();
        assert_eq!(keep_from(&own, 4), Some(3));
        assert_eq!(keep_from(&own, 1), Some(9));
        assert_eq!(keep_from(&own[..3], 4), None);
    }
}
