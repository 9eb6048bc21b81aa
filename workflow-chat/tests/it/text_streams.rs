//! Streamed text, and streams with thoughts in them (S25).

use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{FutureExt as _, StreamExt as _, stream};
use proptest::prelude::*;
use workflow_chat::{Chunk, ShowText as _, StreamedText, Thought};
use workflow_core::prelude::*;
use workflow_core::{DisplayItem, DisplayStream};
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Gate, everyone_else, started};

const TAGS: [&str; 2] = ["<think>", "</think>"];

/// A letter per kind and then the text, for each item so far.
fn shown(viewer: &mut DisplayStream) -> Vec<String> {
    let items = std::iter::from_fn(|| viewer.next().now_or_never().flatten());
    items.map(|item| line(&item)).collect()
}

fn line(item: &DisplayItem) -> String {
    match item {
        DisplayItem::Retracted { .. } => "retracted".to_owned(),
        DisplayItem::Ended { status } => status.to_string(),
        item => {
            let chunk = item.event::<Chunk>().map(|chunk| format!("c {}", chunk.text));
            chunk.or_else(|| item.event::<Thought>().map(|thought| format!("t {}", thought.text))).unwrap()
        }
    }
}

/// The displayed pieces, and the whole text.
async fn streamed(pieces: &[&str]) -> (Vec<String>, StreamedText) {
    let (display, mut viewer) = Display::detached();
    let whole = display.stream_text(stream::iter(pieces.iter().copied())).await;
    (shown(&mut viewer), whole)
}

#[tokio::test]
async fn a_chunk_and_a_thought_are_shown_like_any_other_display_event() {
    let (display, mut viewer) = Display::detached();
    display.thought("who is it?");
    display.chunk(String::from("Ada"));
    assert_eq!(shown(&mut viewer), ["t who is it?", "c Ada"]);
}

#[tokio::test]
async fn tags_that_are_cut_over_pieces_split_text_and_thoughts() {
    let (shown, whole) = streamed(&["Well<th", "ink>a", " b</", "think>", " yes", "<think>c</think>."]).await;
    assert_eq!(shown, ["c Well", "t a", "t  b", "c  yes", "t c", "c ."]);
    assert_eq!((&*whole.text, whole.thoughts), ("Well yes.", vec!["a b".to_owned(), "c".to_owned()]));
}

#[tokio::test]
async fn an_unclosed_thought_extends_to_the_end() {
    let (shown, whole) = streamed(&["<think>", "a", "b</thin"]).await;
    assert_eq!(shown, ["t a", "t b", "t </thin"]);
    assert_eq!((&*whole.text, whole.thoughts), ("", vec!["ab</thin".to_owned()]));
}

#[tokio::test]
async fn a_stray_closing_tag_and_a_nested_opening_one_are_text() {
    let (_, whole) = streamed(&["a</think>b<think>c<think>d</think>e</think>f"]).await;
    assert_eq!((&*whole.text, whole.thoughts), ("a</think>be</think>f", vec!["c<think>d".to_owned()]));
}

#[tokio::test]
async fn a_thought_that_holds_nothing_is_none() {
    let (shown, whole) = streamed(&["<think></think>", "", "a"]).await;
    assert_eq!(shown, ["c a"]);
    assert_eq!((&*whole.text, whole.thoughts.len()), ("a", 0));
}

#[tokio::test]
async fn every_kind_of_text_can_be_streamed() {
    let (display, _viewer) = Display::detached();
    let owned = display.stream_text(stream::iter(["a".to_owned()])).await;
    let shared = display.stream_text(stream::iter([std::sync::Arc::<str>::from("a")])).await;
    let cow = display.stream_text(stream::iter([std::borrow::Cow::Borrowed("a")])).await;
    let checked = display.stream_text(stream::iter([Ok::<_, std::io::Error>(Box::<str>::from("a"))])).await;
    assert_eq!([owned, shared, cow, checked.unwrap()].map(|whole| whole.text), ["a"; 4]);
}

/// Forwards a test's pieces, and waits for the gate before it answers.
struct Oracle {
    tokens: std::sync::Mutex<Option<futures::channel::mpsc::UnboundedReceiver<Result<String, StepError>>>>,
    gate: Gate,
}

#[workflow]
impl Oracle {
    #[step]
    async fn answer(&self, begin: &Begin, display: &Display) -> Result<Done, StepError> {
        let tokens = self.tokens.lock().unwrap().take().unwrap();
        let whole = display.stream_text(tokens).await?;
        self.gate.pass().await;
        Ok(Done(begin.0 + u32::try_from(whole.text.len()).unwrap()))
    }
}

fn oracle() -> (UnboundedSender<Result<String, StepError>>, Gate, Oracle) {
    let (sender, tokens) = unbounded();
    let gate = Gate::closed();
    (sender, gate.clone(), Oracle { tokens: std::sync::Mutex::new(Some(tokens)), gate })
}

// S25
#[tokio::test]
async fn each_piece_is_shown_when_it_comes() {
    let (tokens, gate, workflow) = oracle();
    let run = started(workflow, 1).await;
    let mut viewer = run.display();
    for (token, seen) in [("a", vec!["c a"]), ("b<", vec!["c b"]), ("c", vec!["c <c"])] {
        tokens.unbounded_send(Ok(token.to_owned())).unwrap();
        everyone_else().await;
        assert_eq!(shown(&mut viewer), seen);
    }
    drop(tokens);
    gate.let_pass(1);
    assert_eq!(run.outcome().await.unwrap(), Done(5));
}

// S25
#[tokio::test]
async fn an_error_of_the_stream_is_returned_and_displayed_pieces_are_retracted() {
    let (tokens, _gate, workflow) = oracle();
    let run = started(workflow, 1).await;
    let mut viewer = run.display();
    tokens.unbounded_send(Ok("<think>a</think>b<thi".to_owned())).unwrap();
    tokens.unbounded_send(Err(StepError::permanent("the line broke"))).unwrap();
    let error = run.outcome().await.unwrap_err();
    assert!(matches!(&error, RunError::StepFailed { .. }) && error.to_string().ends_with("the line broke"));
    assert_eq!(shown(&mut viewer), ["t a", "c b", "retracted", "failed"]);
}

/// Streams a text like a model.
struct Talking;

#[workflow]
impl Talking {
    #[step]
    async fn talk(&self, begin: &Begin, display: &Display) -> Done {
        display.stream_text(stream::iter(["<think>a", "b</think>", "c", " \"d\""])).await;
        Done(begin.0)
    }
}

#[tokio::test]
async fn a_transcript_holds_a_line_per_stretch_of_text() {
    let run = Scenario::new(Talking).start(Begin(1)).await;
    let expected = "\
#1 Begin from outside: 1
x1 talk by #1: succeeded
   thought \"a\" \"b\"
   said \"c\" \" \\\"d\\\"\"
#2 Done of x1: 1
completed with #2
";
    assert_eq!(run.transcript(), expected);
    let chunks: Vec<&str> = run.displayed::<Chunk>().iter().map(|chunk| &*chunk.text).collect();
    assert_eq!(chunks, ["c", " \"d\""]);
}

/// Never ends, and always has a next piece.
struct Endless;

#[workflow]
impl Endless {
    #[step]
    async fn talk(&self, begin: &Begin, display: &Display) -> Option<Done> {
        display.stream_text(stream::repeat("a")).await;
        Some(Done(begin.0))
    }
}

// S31
#[tokio::test]
async fn a_stream_that_always_has_a_next_piece_delays_no_other_run() {
    let run = started(Endless, 1).await;
    everyone_else().await;
    run.cancel("it talks for ever").await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::Cancelled { .. })));
}

/// The meaning of a whole text: the text, the thoughts, and the length of its end that may become a tag.
fn reading(mut rest: &str) -> (String, Vec<String>, usize) {
    let (mut text, mut thoughts, mut inside) = (String::new(), Vec::new(), false);
    while let Some((before, after)) = rest.split_once(TAGS[usize::from(inside)]) {
        if inside {
            thoughts.push(before.to_owned());
        } else {
            text.push_str(before);
        }
        (rest, inside) = (after, !inside);
    }
    let tag = TAGS[usize::from(inside)];
    let held = (1..tag.len()).rev().find(|length| rest.ends_with(&tag[..*length])).unwrap_or(0);
    if inside {
        thoughts.push(rest.to_owned());
    } else {
        text.push_str(rest);
    }
    thoughts.retain(|thought| !thought.is_empty());
    (text, thoughts, held)
}

/// Texts with many tags, near-tags, and characters of several bytes.
fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("<think>"),
        Just("</think>"),
        Just("<"),
        Just("</"),
        Just("<thi"),
        Just("nk>"),
        Just("think>"),
        Just("</thin"),
        Just("ä"),
        Just("→ b"),
        Just(" "),
    ];
    prop::collection::vec(part, 0..16).prop_map(|parts| parts.concat())
}

/// The text in pieces, cut where the numbers say.
fn chopped<'a>(text: &'a str, cuts: &[prop::sample::Index]) -> Vec<&'a str> {
    let mut borders: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    borders.retain(|at| text.is_char_boundary(*at));
    borders.extend([0, text.len()]);
    borders.sort_unstable();
    borders.windows(2).map(|border| &text[border[0]..border[1]]).collect()
}

proptest! {
    #[test]
    fn any_chopping_of_a_text_gives_what_the_whole_gives_and_shows_it_as_early_as_can_be(
        text in any_text(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (display, mut viewer) = Display::detached();
        let (tokens, stream) = unbounded::<String>();
        let mut whole = Box::pin(display.stream_text(stream));
        let (mut came, mut seen) = (String::new(), [String::new(), String::new()]);
        for piece in chopped(&text, &cuts) {
            tokens.unbounded_send(piece.to_owned()).unwrap();
            prop_assert!((&mut whole).now_or_never().is_none());
            came.push_str(piece);
            for item in shown(&mut viewer) {
                seen[usize::from(item.starts_with('t'))].push_str(&item[2..]);
            }
            let (text, thoughts, held) = reading(&came);
            prop_assert_eq!(seen.concat().len() + held, text.len() + thoughts.concat().len());
            prop_assert!(text.starts_with(&seen[0]) && thoughts.concat().starts_with(&seen[1]));
        }
        drop(tokens);
        let whole = whole.now_or_never().unwrap();
        let (text, thoughts, _) = reading(&text);
        prop_assert_eq!((whole.text, whole.thoughts), (text, thoughts));
    }
}
