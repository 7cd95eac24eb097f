//! What a text of shell comes down to: its simple commands, in the order in which
//! they stand, wherever they stand.

use std::ops::Range;
use std::rc::Rc;

/// A text of shell, parsed.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Every simple command, those in substitutions and bodies included.
    pub(crate) commands: Vec<Simple>,
    /// Names that something else than a plain assignment sets: loops, `read`, ….
    pub(crate) set_elsewhere: Vec<String>,
}

/// One simple command.
#[derive(Debug)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
    pub(crate) feed: Feed,
    /// Whether its output goes somewhere: into a file, a pipe.
    pub(crate) writes: bool,
    /// The files that its output goes to.
    pub(crate) outputs: Vec<Word>,
    pub(crate) range: Range<usize>,
}

/// `NAME=VALUE` before a command, or alone.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    /// Whether it appends, or sets an array.
    pub(crate) plain: bool,
    pub(crate) value: Word,
}

/// What stands on a command's standard input.
#[derive(Debug, Clone)]
pub(crate) enum Feed {
    /// What the shell itself has.
    Inherited,
    /// A file of this name.
    File(Rc<Word>),
    /// This text, from a here-document or here-string.
    Text(Rc<Word>),
    /// Something that is only known when it runs: a pipe, a substitution.
    Unknown,
}

/// A word, as the pieces that it is made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    pub(crate) pieces: Vec<Piece>,
    /// Where it stands.
    pub(crate) range: Range<usize>,
    /// Whether any part of it is quoted, so that it is no reserved word or alias.
    pub(crate) quoted: bool,
}

/// A part of a word.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// Text as it stands.
    Text { text: String, quoted: bool },
    /// The value of a variable.
    Variable { name: String, quoted: bool },
    /// What is one word, and only known when it runs: a tilde, arithmetic, a number.
    Opaque,
    /// What is only known when it runs and may be anything.
    Unknown { quoted: bool },
    /// A process substitution: the name of a pipe.
    Process,
}

impl Word {
    /// The text, when nothing in it depends on anything.
    pub(crate) fn literal(&self) -> Option<String> {
        let mut whole = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text { text, .. } => whole.push_str(text),
                Piece::Variable { .. } | Piece::Opaque | Piece::Unknown { .. } | Piece::Process => {
                    return None;
                }
            }
        }
        Some(whole)
    }

    /// The text of a word without any quote, for reserved words.
    pub(crate) fn bare(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [
                Piece::Text {
                    text,
                    quoted: false,
                },
            ] if !self.quoted => Some(text),
            _ => None,
        }
    }

    pub(crate) fn push_text(&mut self, text: &str, quoted: bool) {
        if let Some(Piece::Text {
            text: last,
            quoted: same,
        }) = self.pieces.last_mut()
            && *same == quoted
        {
            last.push_str(text);
        } else {
            self.pieces.push(Piece::Text {
                text: text.to_owned(),
                quoted,
            });
        }
    }
}
