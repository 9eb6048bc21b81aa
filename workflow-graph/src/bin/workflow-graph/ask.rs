//! Questions on the terminal: their text and fields, and the lines that people type. Reading a line ends with the question,
//! the run or a signal, never with the line alone.

use std::io::{self, BufRead, IsTerminal as _, Read, Write};

use clap::ValueEnum;
use tokio::sync::mpsc;

use crate::reply;
use crate::standing::Open;
use crate::text::{one_line, plain, plain_lines, time_to_answer};

/// The most bytes of a line.
const LINE: u64 = 1024 * 1024;

/// Whether questions are asked here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ask {
    /// On a terminal.
    Auto,
    /// Also where the standard input is no terminal: a line answers a question.
    Always,
    /// Nowhere: the command ends when the run waits.
    Never,
}

impl Ask {
    pub(crate) fn is_here(self) -> bool {
        match self {
            Self::Auto => io::stdin().is_terminal() && io::stderr().is_terminal(),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// The lines of the standard input.
pub(crate) struct Lines {
    lines: mpsc::Receiver<String>,
}

impl Lines {
    /// Reads in a thread of its own: a read of a terminal cannot be dropped, and must not hold up the end of the program.
    pub(crate) fn read() -> io::Result<Self> {
        let (sender, lines) = mpsc::channel(1);
        std::thread::Builder::new().name("answers".into()).spawn(move || {
            let mut stdin = io::stdin().lock();
            loop {
                let mut line = Vec::new();
                let is_over = matches!((&mut stdin).take(LINE).read_until(b'\n', &mut line), Ok(0) | Err(_));
                if is_over || sender.blocking_send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { lines })
    }

    /// The next line; nothing after the last one.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}

/// Prints a question, and the way to answer it.
pub(crate) fn print(open: &Open) -> io::Result<()> {
    let (gate, schema) = (&open.gate, open.gate.schema.as_ref());
    let mut to = io::stderr().lock();
    writeln!(to, "{} asks: {}", plain(&open.label), plain_lines(gate.text.trim_end()))?;
    for field in reply::fields(schema) {
        writeln!(to, "  {field}")?;
    }
    if let Some(time) = time_to_answer(gate) {
        writeln!(to, "  {time}")?;
    }
    prompt(&mut to, open)
}

/// Prints why an answer is refused, and asks for another one.
pub(crate) fn refuse(open: &Open, problem: &str) -> io::Result<()> {
    let mut to = io::stderr().lock();
    writeln!(to, "refused: {}", one_line(problem))?;
    prompt(&mut to, open)
}

fn prompt(to: &mut dyn Write, open: &Open) -> io::Result<()> {
    write!(to, "answer ({})> ", reply::expected(open.gate.schema.as_ref()))?;
    to.flush()
}
