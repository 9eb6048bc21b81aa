//! All output, and the person at the terminal.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is where the program talks")]

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use futures::StreamExt as _;
use tokio::sync::mpsc;
use workflow_core::{DisplayItem, DisplayStream};

use crate::flow::{Agree, Progress, Summary};

pub(crate) fn complain(error: &(dyn std::error::Error + 'static)) {
    eprintln!("error: {}", workflow_core::errors::chain(error));
}

pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Shows deliveries as they happen, on a terminal with a bar below, until the run has ended.
pub(crate) async fn follow(mut shown: DisplayStream) {
    let bar = io::stdout().is_terminal();
    let (mut tickets, mut delivered) = (0, 0);
    while let Some(item) = shown.next().await {
        let line = match item.event::<Progress>() {
            Some(Progress::Found { tickets: found }) => {
                tickets = *found;
                format!("{found} tickets")
            }
            Some(Progress::Delivered { number, queue, by }) => {
                delivered += 1;
                format!("ticket {number:>2} -> {queue:<10} (by {by})")
            }
            None => match item {
                DisplayItem::Missed { count: Some(count) } => format!("({count} lines left out)"),
                _ => continue,
            },
        };
        // After a restart the number of tickets is unknown: displays are in no journal.
        let of = if tickets == 0 { String::new() } else { format!(" of {tickets}") };
        if bar {
            print!("\r\x1b[2K{line}\n{delivered}{of} delivered\r");
            let _flushed = io::stdout().flush();
        } else {
            println!("{line}");
        }
    }
}

pub(crate) fn ask(question: &Agree) {
    let Agree { number, subject, queue, why } = question;
    println!("ticket {number:>2}: {subject}\n           to {queue}? {why} [y/n]");
}

pub(crate) fn summary(summary: &Summary) {
    let mut queues: BTreeMap<_, usize> = BTreeMap::new();
    for queue in &summary.delivered {
        *queues.entry(*queue).or_default() += 1;
    }
    println!("\n{} delivered", summary.delivered.len());
    for (queue, count) in queues {
        println!("{queue:>12}: {count}");
    }
    for (number, why) in &summary.refused {
        println!("ticket {number} was refused: {why}");
    }
}

/// The lines of the standard input, read on a thread of its own: the program may end while it still reads.
pub(crate) fn answers() -> mpsc::Receiver<String> {
    let (sender, answers) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lock().split(b'\n').map_while(Result::ok) {
            if sender.blocking_send(String::from_utf8_lossy(&line).trim().to_lowercase()).is_err() {
                break;
            }
        }
    });
    answers
}
