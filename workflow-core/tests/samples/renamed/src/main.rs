//! A program that knows the library as `flow`, and by no other name: `crate = flow` says so to every macro.

use flow::prelude::*;
use flow::{RunOptions, RunStatus};
use serde_json::json;

use crate::events::{Chapter, Counted, Manuscript, Printed, Proof, Returned, Title, Verdict};

mod events {
    use flow::prelude::*;

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(start, display, crate = flow)]
    pub(crate) struct Manuscript {
        pub(crate) chapters: Vec<String>,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
    #[event(name = "chapter", crate = flow)]
    pub(crate) struct Chapter(pub(crate) String);

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(crate = "flow")]
    pub(crate) struct Counted {
        pub(crate) words: usize,
    }

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(external, crate = ::flow)]
    pub(crate) struct Title(pub(crate) String);

    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub(crate) struct Verdict {
        pub(crate) accepted: bool,
    }

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(request, reply = Verdict, crate = flow)]
    pub(crate) struct Proof {
        pub(crate) words: usize,
    }

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(stop, crate = flow)]
    pub(crate) struct Printed(pub(crate) String);

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(stop, crate = flow)]
    pub(crate) struct Returned;
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(crate = flow)]
struct Blank;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(crate = flow)]
struct Word(String);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display, crate = flow)]
struct Progress(String);

/// What a chapter turns out to be.
#[derive(Debug, EventSet)]
#[event_set(crate = flow)]
enum Read {
    Counted(Counted),
    Blank(Blank),
}

/// How a manuscript ends.
#[derive(Debug, EventSet)]
#[event_set(crate = flow)]
enum Outcome {
    Printed(Printed),
    Returned(Returned),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct House {
    #[serde(default)]
    least_words: usize,
}

#[precondition(crate = flow)]
async fn long_enough(counted: &Gather<Counted>, house: &Config<House>) -> bool {
    counted.ok().map(|counted| counted.words).sum::<usize>() >= house.least_words
}

struct Publisher;

/// From a manuscript to a book.
#[workflow(crate = flow, name = "publisher", output = Outcome)]
impl Publisher {
    #[step]
    async fn split(&self, manuscript: &Manuscript) -> FanOut<Chapter> {
        let chapters: FanOut<Chapter> = manuscript.chapters.iter().cloned().map(Chapter).collect();
        chapters.concurrency(2).continue_others()
    }

    #[step]
    async fn read(&self, chapter: Chapter, words: &Emitter<Word>) -> Result<Read, StepError> {
        if chapter.0 == "torn" {
            return Err(StepError::permanent("the chapter is torn"));
        }
        chapter.0.split(' ').try_for_each(|word| words.emit(Word(word.into())))?;
        Ok(match chapter.0.split_whitespace().count() {
            0 => Read::Blank(Blank),
            words => Read::Counted(Counted { words }),
        })
    }

    #[step]
    async fn note(&self, read: &Read, display: &Display, run: &RunContext) -> Result<(), StepError> {
        let chapters = run.increment("chapters", 1).await?;
        display.show(Progress(format!("{chapters}: {read:?}")));
        Ok(())
    }

    #[precondition]
    fn three_words(words: &List<Word>) -> bool {
        words.len() == 3
    }

    #[step(precondition = three_words, max_executions = 1)]
    async fn listen(&self, words: List<Word>, chapter: Option<&Chapter>, display: Display) {
        let words: Vec<&str> = words.iter().map(|word| &*word.0).collect();
        display.show(Progress(format!("{} in {chapter:?}", words.join("-"))));
    }

    #[step(precondition = long_enough)]
    async fn ask(&self, counted: &Gather<Counted>) -> Proof {
        Proof { words: counted.ok().map(|counted| counted.words).sum() }
    }

    #[precondition]
    async fn is_named(&self, titles: &FixedList<Title, 2>) -> Result<bool, StepError> {
        Ok(titles.iter().any(|title| !title.0.is_empty()))
    }

    #[step(precondition = is_named)]
    async fn end(&self, titles: &FixedList<Title, 2>, verdict: &Reply<Proof>) -> Outcome {
        let titles: Vec<&str> = titles.iter().map(|title| &*title.0).collect();
        if verdict.accepted {
            let words = verdict.request().words;
            return Outcome::Printed(Printed(format!("{}, {words} words", titles.join(" "))));
        }
        Outcome::Returned(Returned)
    }
}

/// A workflow with a parameter, and one stop event that the macro finds.
struct Counter<T> {
    start: T,
}

#[workflow(crate = flow)]
impl<T: Copy + Into<usize> + Send + Sync + 'static> Counter<T> {
    #[step]
    async fn begin(&self, _manuscript: &Manuscript) -> (Counted, Option<Blank>) {
        (Counted { words: self.start.into() }, None)
    }

    #[step(loops, max_executions = 3)]
    async fn again(&self, counted: Counted) -> Vec<Counted> {
        vec![Counted { words: counted.words + 1 }]
    }

    #[step(reruns)]
    async fn end(&self, counted: &List<Counted>, _blank: Option<&Blank>) -> Option<Printed> {
        let last = counted.last().filter(|_| counted.len() == 4)?;
        Some(Printed(format!("counted to {}", last.words)))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::builder().workflow(Publisher).build()?;
    let chapters = ["so it was", "", "torn", "the end"].map(str::to_owned).to_vec();
    let options = RunOptions::new().config::<House>(json!({ "least_words": 5 }));
    let run = engine.start_with::<Publisher>(Manuscript { chapters }, options).await?;
    assert_eq!(run.settled().await, RunStatus::Waiting);
    run.send(Title("Up".into())).await?;
    run.send(Title("Down".into())).await?;
    for request in run.requests().await? {
        let id = request.id::<Proof>().ok_or("it asked for something else")?;
        run.reply(id, Verdict { accepted: true }).await?;
    }
    match run.outcome().await? {
        Outcome::Printed(Printed(book)) => println!("{book}"),
        Outcome::Returned(Returned) => println!("returned"),
    }
    println!("{} chapters read", run.report().await?.executions("read"));
    println!("{}", Counter { start: 7_u8 }.run(Manuscript { chapters: Vec::new() }).await?.0);
    Ok(())
}
