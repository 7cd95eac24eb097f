//! Everything that a person sees. No other file prints: under `boxery hook` and
//! `boxery mcp`, standard output is a protocol.

#![expect(clippy::print_stderr, reason = "this is the one file that may print")]

use std::fmt;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};

/// Good news.
const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Bad news.
const BAD: Style = AnsiColor::Red.on_default().bold();
/// Take care.
const CARE: Style = AnsiColor::Yellow.on_default().bold();
/// A heading or a name.
const STRONG: Style = Style::new().bold();
/// Of less importance.
const FAINT: Style = Style::new().dimmed();

/// How a piece of text is shown where colour is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Good news.
    Good,
    /// Bad news.
    Bad,
    /// Take care.
    Care,
    /// A heading or a name.
    Strong,
    /// Of less importance.
    Faint,
}

/// The terminal, or what stands in its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ui {
    color_out: bool,
    color_err: bool,
}

impl Ui {
    /// Colour only on a terminal, and only without `NO_COLOR`.
    pub(crate) fn new(no_color: bool) -> Self {
        Self {
            color_out: !no_color && io::stdout().is_terminal(),
            color_err: !no_color && io::stderr().is_terminal(),
        }
    }

    /// One line of data on standard output. A closed pipe is not an error.
    pub(crate) fn line(self, text: impl fmt::Display) {
        writeln!(io::stdout(), "{text}").ok();
    }

    /// Data on standard output, as it is.
    pub(crate) fn raw(self, text: &str) {
        let mut out = io::stdout();
        out.write_all(text.as_bytes()).ok();
        out.flush().ok();
    }

    /// One line of talk on standard error.
    pub(crate) fn say(self, text: impl fmt::Display) {
        eprintln!("{text}");
    }

    /// One line of boxery's own beside a command's output: `boxery: …` on standard error.
    pub(crate) fn note(self, text: impl fmt::Display) {
        eprintln!("boxery: {text}");
    }

    /// The state of long work, in place of the last one; shown on a terminal only.
    /// `None` takes it away.
    pub(crate) fn progress(self, state: Option<&str>) {
        let mut err = io::stderr();
        if err.is_terminal() {
            write!(err, "\r\x1b[K{}", state.unwrap_or_default()).ok();
            err.flush().ok();
        }
    }

    /// Whether somebody sees the state of long work.
    pub(crate) fn is_watched(self) -> bool {
        io::stderr().is_terminal()
    }

    /// `error:`, `caused by:` and `hint:` lines, as `Failure::render` made them.
    pub(crate) fn failure(self, rendered: &str) {
        for line in rendered.lines() {
            match line.split_once(": ") {
                Some((label @ ("error" | "caused by" | "hint"), rest)) if self.color_err => {
                    let style = if label == "hint" { CARE } else { BAD };
                    eprintln!("{style}{label}:{style:#} {rest}");
                }
                Some(_) | None => eprintln!("{line}"),
            }
        }
    }

    /// `text` in `tone`, for standard output.
    pub(crate) fn paint(self, tone: Tone, text: impl fmt::Display) -> String {
        if !self.color_out {
            return text.to_string();
        }
        let style = match tone {
            Tone::Good => GOOD,
            Tone::Bad => BAD,
            Tone::Care => CARE,
            Tone::Strong => STRONG,
            Tone::Faint => FAINT,
        };
        format!("{style}{text}{style:#}")
    }

    /// Rows in columns, the first row a heading, for standard output.
    pub(crate) fn table(self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (number, row) in rows.iter().enumerate() {
            let mut text = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                text.push_str(cell);
                let pad = width + 2 - cell.chars().count();
                text.extend(std::iter::repeat_n(' ', pad));
            }
            let text = text.trim_end();
            self.line(if number == 0 {
                self.paint(Tone::Strong, text)
            } else {
                text.to_owned()
            });
        }
    }

    /// Whether a person can be asked: standard input and standard error are terminals.
    pub(crate) fn can_ask(self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Whether a person can be there: standard input is a terminal, or this process has
    /// a controlling one, as a script has that a person started.
    pub(crate) fn has_terminal(self) -> bool {
        io::stdin().is_terminal() || std::fs::File::open("/dev/tty").is_ok()
    }

    /// Ask a yes-or-no question; `None` when nobody can be asked.
    pub(crate) fn confirm(self, question: &str) -> Option<bool> {
        if !self.can_ask() {
            return None;
        }
        eprint!("{question} [y/N] ");
        io::stderr().flush().ok();
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// Ask for a secret without echo; `None` when nobody can be asked.
    pub(crate) fn secret(self, prompt: &str) -> Option<String> {
        if !self.can_ask() {
            return None;
        }
        rpassword::prompt_password(prompt).ok()
    }
}

/// A count with its noun: `1 file`, `2 files`.
pub(crate) fn counted<N: fmt::Display + PartialEq + From<u8> + Copy>(
    count: N,
    noun: &str,
) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
