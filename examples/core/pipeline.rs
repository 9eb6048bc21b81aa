//! Workflows in workflows: one run per text file of a folder reads, counts and summarises the file, and a parent run
//! joins the results. A file that cannot be read fails its own run only.
//!
//! `cargo run -p examples --example pipeline -- FOLDER`; without a folder it reads this project's guide.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::path::{Path, PathBuf};

use futures::StreamExt;
use futures::future::join_all;
use workflow_core::prelude::*;
use workflow_core::{DisplayItem, blocking};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Folder {
    path: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Overview {
    lines: Vec<String>,
    words: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct File {
    path: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Text(String);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Counted {
    words: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Summarised {
    sentence: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Page {
    words: usize,
    sentence: String,
}

/// Displayed: a file was read.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct WasRead {
    bytes: usize,
}

/// The child: one file.
struct Reader;

#[workflow]
impl Reader {
    #[step]
    async fn read(&self, file: &File, display: &Display) -> Result<Text, StepError> {
        let text = tokio::fs::read_to_string(&file.path).await?;
        display.show(WasRead { bytes: text.len() });
        Ok(Text(text))
    }

    #[step]
    async fn count(&self, text: &Text) -> Counted {
        Counted { words: text.0.split_whitespace().count() }
    }

    /// The first sentence that is not a heading; runs beside the counting.
    #[step]
    async fn summarise(&self, text: &Text) -> Summarised {
        let prose = text.0.split("\n\n").find(|part| !part.starts_with(['#', '`', '|', '-']));
        let sentence = prose.unwrap_or_default().split_inclusive(". ").next().unwrap_or_default();
        Summarised { sentence: sentence.split_whitespace().collect::<Vec<_>>().join(" ") }
    }

    #[step]
    async fn bind(&self, counted: &Counted, summarised: &Summarised) -> Page {
        Page { words: counted.words, sentence: summarised.sentence.clone() }
    }
}

/// The parent: a folder.
struct Librarian;

#[workflow]
impl Librarian {
    /// One child per file. Up to eight of them work at a time; the others queue.
    #[step]
    async fn survey(&self, folder: &Folder, children: &Children) -> Result<Overview, StepError> {
        let path = folder.path.clone();
        // Listing a folder blocks, so `blocking` keeps it off the threads that drive runs.
        let files = blocking(move |_| text_files(&path)).await??;
        let pages = files.iter().map(|path| children.run::<Reader>(File { path: path.clone() }));
        let mut overview = Overview { lines: Vec::new(), words: 0 };
        for (file, page) in files.iter().zip(join_all(pages).await) {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            // A child's failure is a value: here it costs one line.
            overview.lines.push(match page {
                Ok(page) => {
                    overview.words += page.words;
                    format!("{name}: {} words. {}", page.words, page.sentence)
                }
                Err(error) => format!("{name}: left out: {error}"),
            });
        }
        Ok(overview)
    }
}

fn text_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files = entries.collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|kind| kind == "md" || kind == "txt"));
    files.sort();
    Ok(files)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
    let path = std::env::args().nth(1).unwrap_or_else(|| guide.to_owned()).into();
    let engine = Engine::builder().workflow(Librarian).workflow(Reader).build()?;
    let run = engine.start::<Librarian>(Folder { path }).await?;

    // The parent's display includes the children's items, with their paths.
    let mut shown = run.display();
    while let Some(item) = shown.next().await {
        if let (DisplayItem::Child { path, .. }, Some(read)) = (&item, item.event::<WasRead>()) {
            println!("{} has read {} bytes", path[0].run, read.bytes);
        }
    }
    let overview = run.outcome().await?;
    println!("\n{}\n{} words in all\n\n{}", overview.lines.join("\n"), overview.words, run.report().await?);
    Ok(())
}
