//! Joins a number of events that is known only at run time, by counting. `List<E>` runs the step for every arrival, and
//! a precondition recognises the arrival that completes the list. `fan_out` does the same job without counting.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Document {
    text: String,
}

/// The number of pages, for the precondition that counts.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Split {
    pages: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Page {
    number: usize,
    text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Counted {
    page: usize,
    words: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct WordCount {
    words: usize,
    longest_page: Option<usize>,
}

struct Reader;

#[workflow]
impl Reader {
    /// Each element of a `Vec` is an event; they enter the log in this order, after the count.
    #[step]
    async fn split(&self, document: &Document) -> (Split, Vec<Page>) {
        let pages = document.text.split('\u{c}').enumerate();
        let pages: Vec<Page> = pages.map(|(i, text)| Page { number: i + 1, text: text.into() }).collect();
        (Split { pages: pages.len() }, pages)
    }

    /// Runs once per page, concurrently.
    #[step]
    async fn count(&self, page: &Page) -> Counted {
        Counted { page: page.number, words: page.text.split_whitespace().count() }
    }

    /// Evaluated at every arrival: is this the last one?
    #[precondition]
    fn all_counted(split: &Split, counted: &List<Counted>) -> bool {
        counted.len() == split.pages
    }

    /// The list is in the order of arrival, which need not be the order of the pages.
    #[step(precondition = all_counted)]
    async fn add_up(&self, split: &Split, counted: &List<Counted>) -> WordCount {
        let longest = counted.iter().max_by_key(|counted| counted.words);
        WordCount {
            words: counted.iter().map(|counted| counted.words).sum(),
            longest_page: longest.map(|counted| counted.page),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let text = "A log is append-only.\u{c}A table is static, and says who wants what.\u{c}The end.".into();
    let count = Reader.run(Document { text }).await?;
    println!("{} words; the longest page is {:?}", count.words, count.longest_page);
    Ok(())
}
