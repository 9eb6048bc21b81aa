//! Branches stay separate: each item, its results and their gather belong together (S45, S48).

use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use super::{Gates, Noted, Random, noted};
use crate::fixtures::{Begin, Done, Item, Part, started};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Document {
    number: u32,
    pages: u32,
    /// The index of its first page.
    place: u32,
}

/// Has its number within its document, so documents have pages of the same numbers.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Page {
    number: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Text {
    document: u32,
    page: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Checked {
    document: u32,
    page: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Book {
    document: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Titled {
    document: u32,
}

struct Library {
    documents: Vec<Document>,
    gates: Gates,
}

impl Library {
    /// This many documents and pages in total, at random.
    fn of(branches: usize, random: &mut Random) -> Self {
        let (mut documents, mut places, mut left) = (Vec::new(), 0, branches);
        while left > 0 {
            let pages = random.below(20.min(left));
            let number = u32::try_from(documents.len()).unwrap();
            documents.push(Document { number, pages: u32::try_from(pages).unwrap(), place: places });
            places += u32::try_from(pages).unwrap();
            left -= pages + 1;
        }
        Self { documents, gates: Gates::closed(places as usize) }
    }

    fn pages(&self) -> usize {
        self.documents.iter().map(|document| document.pages as usize).sum()
    }
}

#[workflow]
impl Library {
    #[step]
    async fn take(&self, _begin: &Begin) -> FanOut<Document> {
        self.documents.iter().cloned().collect()
    }

    #[step]
    async fn open(&self, document: &Document) -> FanOut<Page> {
        (0..document.pages).map(|number| Page { number }).collect()
    }

    #[step]
    async fn read(&self, document: &Document, page: &Page) -> Text {
        self.gates.pass(document.place + page.number).await;
        Text { document: document.number, page: page.number }
    }

    #[step]
    async fn check(&self, text: &Text, page: &Page, document: &Document) -> Checked {
        assert_eq!((text.document, text.page), (document.number, page.number));
        Checked { document: text.document, page: text.page }
    }

    #[step]
    async fn bind(&self, document: &Document, pages: &Gather<Checked>) -> Book {
        assert_eq!(pages.len(), document.pages as usize);
        for (branch, number) in pages.branches().zip(0..) {
            let checked = branch.event().unwrap();
            assert_eq!(branch.item::<Page>().unwrap().number, number);
            assert_eq!((checked.document, checked.page), (document.number, number));
            assert_eq!(branch.events().count(), 1);
        }
        Book { document: document.number }
    }

    #[step]
    async fn title(&self, document: &Document, book: &Book) -> Titled {
        assert_eq!(book.document, document.number);
        Titled { document: book.document }
    }

    #[step]
    async fn shelve(&self, titles: Gather<Titled>) -> Done {
        assert!(titles.ok().zip(0..).all(|(title, number)| title.document == number));
        Done(u32::try_from(titles.ok().count()).unwrap())
    }
}

// S45, S48
#[tokio::test]
async fn item_and_product_are_never_mixed_over_a_thousand_random_branches_two_levels_deep() {
    for seed in 0..5 {
        let mut random = Random::seeded(seed);
        let library = Library::of(1_000, &mut random);
        let (gates, documents, pages) = (library.gates.clone(), library.documents.len(), library.pages());
        assert_eq!(documents + pages, 1_000);
        let run = started(library, 0).await;
        for place in random.order_of(pages) {
            gates.open(place);
            tokio::task::yield_now().await;
        }
        let done = run.outcome().await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(done.0 as usize, documents, "seed {seed}");
        let report = run.report().await.unwrap();
        assert_eq!(report.executions("check"), pages as u64, "seed {seed}");
        assert_eq!(report.executions("title"), documents as u64, "seed {seed}");
        assert_eq!(report.executions("shelve"), 1, "seed {seed}");
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Chapter(u32);

/// A fan-out beside the plain model: the same events, visible to all and joined by latest value.
struct PlainBeside;

#[workflow]
impl PlainBeside {
    #[step]
    async fn both(&self, begin: &Begin) -> (Vec<Chapter>, FanOut<Item>) {
        ((0..begin.0).map(Chapter).collect(), (0..begin.0).map(Item).collect())
    }

    /// Every branch sees the plain events, and binds the latest.
    #[step]
    async fn work(&self, item: &Item, chapter: &Chapter) -> (Part, Noted) {
        (Part(item.0), Noted(format!("{} {}", item.0, chapter.0)))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>, chapters: &FixedList<Chapter, 2>) -> Done {
        Done(u32::try_from(parts.len() + chapters.len()).unwrap())
    }
}

// S45
#[tokio::test]
async fn a_branch_binds_the_latest_of_what_lies_outside_of_it() {
    let run = Scenario::new(PlainBeside).start(Begin(2)).await;
    run.assert_output(&Done(4));
    assert_eq!(noted(&run), ["0 1", "1 1"]);
}
