//! Map and gather without counting: a branch per document, and in it a branch per page, each joined exactly once. One
//! page cannot be read. The others continue, and the gather contains the failure.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Stock {
    documents: Vec<Document>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Document {
    title: String,
    pages: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Page {
    number: usize,
    text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Counted {
    words: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Summary {
    line: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Catalogue {
    lines: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("page {number} of `{title}` cannot be read")]
struct Unreadable {
    title: String,
    number: usize,
}

struct Library;

#[workflow]
impl Library {
    /// A branch per document, at most two of them open at a time.
    #[step]
    async fn open(&self, stock: &Stock) -> FanOut<Document> {
        stock.documents.iter().cloned().collect::<FanOut<_>>().concurrency(2)
    }

    /// Inside a document's branch: a branch per page, possibly none.
    #[step]
    async fn turn_pages(&self, document: &Document) -> FanOut<Page> {
        let pages = document.pages.iter().cloned().enumerate();
        pages.map(|(i, text)| Page { number: i + 1, text }).collect::<FanOut<_>>().continue_others()
    }

    /// `document` is the one of this page: a branch sees its own events and those of outer scopes, but no sibling's.
    #[step]
    async fn count(&self, document: &Document, page: &Page) -> Result<Counted, Unreadable> {
        if page.text.contains('\u{fffd}') {
            return Err(Unreadable { title: document.title.clone(), number: page.number });
        }
        Ok(Counted { words: page.text.split_whitespace().count() })
    }

    /// Runs once per document, when each of its pages has settled, with the pages in their own order.
    #[step]
    async fn summarise(&self, document: &Document, pages: &Gather<Counted>) -> Summary {
        let words: usize = pages.ok().map(|page| page.words).sum();
        let mut parts = vec![format!("{}: {} pages, {words} words", document.title, pages.len())];
        parts.extend(pages.failed().filter_map(|page| page.failure().map(ToString::to_string)));
        Summary { line: parts.join("; ") }
    }

    /// Runs once, when every document has its summary, with the documents in their own order.
    #[step]
    async fn publish(&self, summaries: &Gather<Summary>) -> Catalogue {
        Catalogue { lines: summaries.ok().map(|summary| summary.line.clone()).collect() }
    }
}

fn document(title: &str, pages: &[&str]) -> Document {
    Document { title: title.into(), pages: pages.iter().map(ToString::to_string).collect() }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let documents = vec![
        document("On logs", &["append only", "one writer per run", "read by everyone"]),
        document("Water damage", &["still legible", "\u{fffd}\u{fffd}", "legible again"]),
        document("Empty covers", &[]),
    ];
    let engine = Engine::builder().workflow(Library).build()?;
    let run = engine.start::<Library>(Stock { documents }).await?;
    for line in run.outcome().await?.lines {
        println!("{line}");
    }
    println!("\n{}", run.report().await?);
    Ok(())
}
