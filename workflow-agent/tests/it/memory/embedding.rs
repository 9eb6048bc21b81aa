//! Embedders: fusion, failures, and vectors that cannot be compared.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use workflow_agent::memory::{EmbedError, Embedder, EpisodicMemory, Memory};
use workflow_core::ThreadContext;

use super::{episode, names, recall, remember, runs};

/// Words hashed into 64 directions: no better idea of a text than its words.
pub(super) struct WordVectors;

impl Embedder for WordVectors {
    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        let vector = |text: &&str| {
            let mut vector = vec![0.0; 256];
            for word in
                text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3)
            {
                let stem = &word.as_bytes()[..word.len().min(5)];
                let hash = stem
                    .iter()
                    .fold(7_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add((*byte).into()));
                vector[hash % 256] += 1.0;
            }
            vector
        };
        let vectors = texts.iter().map(vector).collect();
        async move { Ok(vectors) }.boxed()
    }
}

/// Knows which words mean the same: a dimension for each meaning.
struct Meanings(&'static [&'static [&'static str]]);

impl Embedder for Meanings {
    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        let has =
            |text: &str, words: &[&str]| f32::from(u8::from(words.iter().any(|word| text.contains(word))));
        let vector = |text: &&str| self.0.iter().map(|words| has(text, words)).collect();
        let vectors = texts.iter().map(vector).collect();
        async move { Ok(vectors) }.boxed()
    }
}

const ANIMALS: Meanings = Meanings(&[&["cat", "kitten", "feline"], &["boat", "ship"], &["snow", "winter"]]);

type Answers = dyn Fn(usize) -> Result<Vec<Vec<f32>>, EmbedError> + Send + Sync;

/// Answers by the number of the call.
struct Scripted(AtomicUsize, Box<Answers>);

impl Scripted {
    fn new(answers: impl Fn(usize) -> Result<Vec<Vec<f32>>, EmbedError> + Send + Sync + 'static) -> Self {
        Self(AtomicUsize::new(0), Box::new(answers))
    }
}

impl Embedder for Scripted {
    fn embed<'a>(&'a self, _: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        async move { (self.1)(self.0.fetch_add(1, Relaxed)) }.boxed()
    }
}

async fn stored(memory: &EpisodicMemory, thread: &ThreadContext) {
    for (number, text) in ["our kitten", "a ship", "winter coat", "nothing"].into_iter().enumerate() {
        memory.remember(&episode(number, text, ""), thread).await.unwrap();
    }
    remember(memory, thread, 100..120).await;
}

async fn found(memory: &EpisodicMemory, thread: &ThreadContext, question: &str) -> Vec<String> {
    let mut recalled = runs(&recall(memory, thread, question).await);
    assert_eq!(recalled.split_off(recalled.len() - 20), names(100..120));
    recalled
}

/// A43
#[tokio::test]
async fn an_embedder_finds_what_no_word_finds() {
    let thread = ThreadContext::in_memory();
    stored(&EpisodicMemory::new().embedder(ANIMALS), &thread).await;
    assert_eq!(found(&EpisodicMemory::new(), &thread, "the cats").await, names([]));
    assert_eq!(found(&EpisodicMemory::new().embedder(ANIMALS), &thread, "the cats").await, names([0]));
}

/// A43
#[tokio::test]
async fn both_rankings_are_fused_by_reciprocal_rank() {
    let thread = ThreadContext::in_memory();
    let memory = EpisodicMemory::new().embedder(ANIMALS);
    stored(&memory, &thread).await;
    // "ship" has the first rank in both, "coat" the second by words, "kitten" the second by meaning, which is later by number.
    let fused = found(&memory, &thread, "ship ship coat boat").await;
    assert_eq!(fused, names([1, 2]));
    let fused = found(&memory, &thread, "feline winter").await;
    assert_eq!(fused, names([2, 0]));
}

/// A43
#[tokio::test]
async fn vectors_that_cannot_be_compared_are_dropped() {
    let unusable: [fn() -> Vec<Vec<f32>>; 7] = [
        || vec![vec![f32::NAN, 1.0, 0.0]],
        || vec![vec![f32::INFINITY, 1.0, 0.0]],
        || vec![vec![0.0; 3]],
        || vec![vec![]],
        || vec![vec![1.0; 10_000]],
        Vec::new,
        || vec![vec![1.0; 3]; 2],
    ];
    for vectors in unusable {
        let thread = ThreadContext::in_memory();
        let bad = || Scripted::new(move |_| Ok(vectors()));
        stored(&EpisodicMemory::new().embedder(bad()), &thread).await;
        for memory in [EpisodicMemory::new().embedder(bad()), EpisodicMemory::new().embedder(ANIMALS)] {
            assert_eq!(found(&memory, &thread, "coats").await, names([2]));
        }
        // Good vectors of episodes and a bad one of the question.
        let thread = ThreadContext::in_memory();
        stored(&EpisodicMemory::new().embedder(ANIMALS), &thread).await;
        assert_eq!(found(&EpisodicMemory::new().embedder(bad()), &thread, "coats").await, names([2]));
    }
}

/// A43
#[tokio::test]
async fn vectors_of_another_embedder_are_ignored() {
    let thread = ThreadContext::in_memory();
    stored(&EpisodicMemory::new().embedder(ANIMALS), &thread).await;
    let other = EpisodicMemory::new().embedder(WordVectors);
    other.remember(&episode(3, "a kitten", ""), &thread).await.unwrap();
    assert_eq!(found(&other, &thread, "kitten").await, names([3, 0]));
    assert_eq!(found(&EpisodicMemory::new().embedder(ANIMALS), &thread, "felines").await, names([0]));
}

/// A43
#[tokio::test]
async fn a_failing_embedder_leaves_words() {
    let thread = ThreadContext::in_memory();
    let failing = || Scripted::new(|_| Err(EmbedError::failed(io::Error::other("no network"))));
    let memory = EpisodicMemory::new().embedder(failing());
    stored(&memory, &thread).await;
    assert_eq!(found(&memory, &thread, "a coat").await, names([2]));
    // A repeated call with a working embedder adds the vectors.
    let memory = EpisodicMemory::new().embedder(Arc::new(ANIMALS));
    stored(&memory, &thread).await;
    assert_eq!(found(&memory, &thread, "a feline").await, names([0]));
}

/// A43
#[tokio::test]
async fn a_failing_embedder_is_named_in_a_warning() {
    use std::fmt::Write as _;
    use std::sync::Mutex;
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

    #[derive(Clone, Default)]
    struct Warnings(Arc<Mutex<Vec<String>>>);

    impl<S: tracing::Subscriber> Layer<S> for Warnings {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            if *event.metadata().level() == tracing::Level::WARN {
                let mut text = String::new();
                event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                    let _ = write!(text, "{field}={value:?} ");
                });
                self.0.lock().unwrap().push(text);
            }
        }
    }

    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(warnings.clone()));
    let memory = EpisodicMemory::new().embedder(Scripted::new(|_| Ok(vec![])));
    recall(&memory, &ThreadContext::in_memory(), "x").await;
    let warnings = warnings.0.lock().unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("0 vectors for 1 texts"), "{warnings:?}");
}
