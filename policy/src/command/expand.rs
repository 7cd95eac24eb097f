//! Parses words: quotes, expansions, and the commands inside them.

use super::lexer::{DEEPEST, Document, Trouble};
use super::parse::{Parser, Until, parse_nested};
use super::script::{Piece, Word};

/// Where text stands, which decides what quotes in it mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// `"…"`.
    Quotes,
    /// A here-document.
    Document,
    /// `${…}` outside of quotes.
    Braces,
    /// `${…}` inside of quotes.
    QuotedBraces,
    /// Arithmetic.
    Arithmetic,
}

impl Parser<'_> {
    /// A word, which has to be there.
    pub(crate) fn word(&mut self, depth: usize) -> Result<Word, Trouble> {
        let start = self.lexer.at;
        let word = self.word_or_nothing(depth)?;
        if self.lexer.at == start {
            return Err(Trouble::Stray);
        }
        Ok(word)
    }

    /// A word, or none at all behind a `NAME=`.
    pub(crate) fn word_or_nothing(&mut self, depth: usize) -> Result<Word, Trouble> {
        if depth > DEEPEST {
            return Err(Trouble::TooDeep);
        }
        let start = self.lexer.at;
        let mut word = Word::default();
        while let Some(byte) = self.lexer.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' => break,
                b'\r' if matches!(self.lexer.peek_at(1), None | Some(b'\n' | b' ')) => {
                    // What a DOS line ends with belongs to no name that a rule means.
                    self.lexer.skip(1);
                }
                b'<' | b'>' => {
                    if self.lexer.peek_at(1) != Some(b'(') {
                        break;
                    }
                    self.lexer.skip(2);
                    self.process(byte, depth)?;
                    word.pieces.push(Piece::Process);
                }
                b'(' => {
                    // A pattern such as `!(a|b)`; else this is no part of a word.
                    let pattern = self
                        .lexer
                        .previous()
                        .is_some_and(|byte| b"?*+@!".contains(&byte))
                        && self.lexer.at > start;
                    if !pattern {
                        break;
                    }
                    self.pattern(depth)?;
                    word.pieces.push(Piece::Unknown { quoted: true });
                }
                b'\'' => {
                    word.quoted = true;
                    self.lexer.skip(1);
                    let text = self.until_quote()?;
                    word.push_text(text, true);
                }
                b'"' => {
                    word.quoted = true;
                    self.lexer.skip(1);
                    self.inside(Within::Quotes, None, &mut word, depth + 1)?;
                }
                b'$' if matches!(self.lexer.peek_at(1), Some(b'\'')) => {
                    word.quoted = true;
                    self.lexer.skip(2);
                    let text = self.escaped_text()?;
                    word.push_text(&text, true);
                }
                b'$' if matches!(self.lexer.peek_at(1), Some(b'"')) => {
                    word.quoted = true;
                    self.lexer.skip(2);
                    self.inside(Within::Quotes, None, &mut word, depth + 1)?;
                }
                b'$' => self.dollar(&mut word, false, depth)?,
                b'`' => self.backticks(&mut word, false, depth)?,
                b'\\' => {
                    word.quoted = true;
                    self.lexer.skip(1);
                    match self.lexer.character() {
                        Some("\n") => {}
                        Some(character) => word.push_text(character, true),
                        None => word.push_text("\\", true),
                    }
                }
                b'~' if self.lexer.at == start => {
                    while self.lexer.peek().is_some_and(|byte| {
                        byte.is_ascii_alphanumeric() || b"~+-_.".contains(&byte)
                    }) {
                        self.lexer.skip(1);
                    }
                    word.pieces.push(Piece::Opaque);
                }
                _ => {
                    let from = self.lexer.at;
                    while self
                        .lexer
                        .peek()
                        .is_some_and(|byte| !b" \t\n\r;&|()<>'\"$`\\".contains(&byte))
                    {
                        self.lexer.skip(1);
                    }
                    if self.lexer.at == from {
                        self.lexer.skip(1);
                    }
                    let text = &self.lexer.text[from..self.lexer.at];
                    word.push_text(text, false);
                }
            }
        }
        word.range = start..self.lexer.at;
        Ok(word)
    }

    /// The rest of `'…'`.
    fn until_quote(&mut self) -> Result<&str, Trouble> {
        let from = self.lexer.at;
        let length = self.lexer.text[from..]
            .find('\'')
            .ok_or(Trouble::Unfinished)?;
        self.lexer.skip(length + 1);
        Ok(&self.lexer.text[from..from + length])
    }

    /// The rest of `$'…'`, its escapes resolved.
    fn escaped_text(&mut self) -> Result<String, Trouble> {
        let mut bytes: Vec<u8> = Vec::new();
        loop {
            match self.lexer.peek().ok_or(Trouble::Unfinished)? {
                b'\'' => {
                    self.lexer.skip(1);
                    break;
                }
                b'\\' => {
                    self.lexer.skip(1);
                    let kind = self.lexer.peek().ok_or(Trouble::Unfinished)?;
                    self.lexer.skip(1);
                    match kind {
                        b'n' => bytes.push(b'\n'),
                        b't' => bytes.push(b'\t'),
                        b'r' => bytes.push(b'\r'),
                        b'a' => bytes.push(7),
                        b'b' => bytes.push(8),
                        b'e' | b'E' => bytes.push(27),
                        b'f' => bytes.push(12),
                        b'v' => bytes.push(11),
                        b'c' => {
                            let control = self.lexer.peek().ok_or(Trouble::Unfinished)?;
                            self.lexer.skip(1);
                            bytes.push(control & 31);
                        }
                        b'x' => {
                            bytes.push(u8::try_from(self.digits(16, 2) & 255).unwrap_or_default());
                        }
                        b'u' => push_character(&mut bytes, self.digits(16, 4)),
                        b'U' => push_character(&mut bytes, self.digits(16, 8)),
                        b'0'..=b'7' => {
                            self.lexer.at -= 1;
                            bytes.push(u8::try_from(self.digits(8, 3) & 255).unwrap_or_default());
                        }
                        b'\\' | b'\'' | b'"' | b'?' => bytes.push(kind),
                        other => bytes.extend([b'\\', other]),
                    }
                }
                other => {
                    bytes.push(other);
                    self.lexer.skip(1);
                }
            }
        }
        // A NUL ends the word there.
        let end = bytes
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    fn digits(&mut self, base: u32, most: usize) -> u32 {
        let mut value = 0_u32;
        for _ in 0..most {
            let Some(digit) = self
                .lexer
                .peek()
                .and_then(|byte| char::from(byte).to_digit(base))
            else {
                break;
            };
            value = value.wrapping_mul(base).wrapping_add(digit);
            self.lexer.skip(1);
        }
        value
    }

    /// What stands in quotes, braces, a here-document or arithmetic, up to its end.
    fn inside(
        &mut self,
        within: Within,
        end: Option<usize>,
        word: &mut Word,
        depth: usize,
    ) -> Result<(), Trouble> {
        if depth > DEEPEST {
            return Err(Trouble::TooDeep);
        }
        loop {
            if end.is_some_and(|end| self.lexer.at >= end) {
                return Ok(());
            }
            let byte = self.lexer.peek().ok_or(Trouble::Unfinished)?;
            match (within, byte) {
                (Within::Quotes, b'"') | (Within::Braces | Within::QuotedBraces, b'}') => {
                    self.lexer.skip(1);
                    // Even an empty pair of quotes makes a word.
                    word.push_text("", true);
                    return Ok(());
                }
                (_, b'\\') => {
                    self.lexer.skip(1);
                    match self.lexer.character() {
                        Some("\n") => {}
                        Some(character) => {
                            let escapes = within == Within::Braces
                                || matches!(character, "$" | "`" | "\\" | "\"");
                            if !escapes {
                                word.push_text("\\", true);
                            }
                            word.push_text(character, true);
                        }
                        None => return Err(Trouble::Unfinished),
                    }
                }
                (Within::Braces, b'\'') => {
                    self.lexer.skip(1);
                    let text = self.until_quote()?;
                    word.push_text(text, true);
                }
                (Within::Braces | Within::QuotedBraces, b'"') => {
                    self.lexer.skip(1);
                    self.inside(Within::Quotes, None, word, depth + 1)?;
                }
                (Within::Braces, b'$') if self.lexer.peek_at(1) == Some(b'\'') => {
                    self.lexer.skip(2);
                    let text = self.escaped_text()?;
                    word.push_text(&text, true);
                }
                (Within::Braces, b'<' | b'>') if self.lexer.peek_at(1) == Some(b'(') => {
                    self.lexer.skip(2);
                    self.process(byte, depth)?;
                    word.pieces.push(Piece::Process);
                }
                (_, b'$') => self.dollar(word, within != Within::Braces, depth)?,
                (_, b'`') => self.backticks(word, within != Within::Braces, depth)?,
                _ => {
                    let from = self.lexer.at;
                    let stop = end.unwrap_or(self.lexer.text.len());
                    self.lexer.skip(1);
                    while self.lexer.at < stop
                        && self
                            .lexer
                            .peek()
                            .is_some_and(|byte| !b"\"'$`\\}<>".contains(&byte))
                    {
                        self.lexer.skip(1);
                    }
                    let text = self.lexer.text.get(from..self.lexer.at).unwrap_or_default();
                    word.push_text(text, true);
                }
            }
        }
    }

    /// What begins with `$`.
    fn dollar(&mut self, word: &mut Word, quoted: bool, depth: usize) -> Result<(), Trouble> {
        if depth >= DEEPEST {
            return Err(Trouble::TooDeep);
        }
        self.lexer.skip(1);
        match self.lexer.peek() {
            Some(b'(') => {
                if let Some(end) = self.lexer.arithmetic_end() {
                    self.lexer.skip(2);
                    self.arithmetic(end, depth)?;
                    self.lexer.skip(2);
                    word.pieces.push(Piece::Opaque);
                } else {
                    self.lexer.skip(1);
                    self.substitution(Until::Parenthesis, depth)?;
                    word.pieces.push(Piece::Unknown { quoted });
                }
            }
            Some(b'{') => {
                self.lexer.skip(1);
                self.braces(word, quoted, depth)?;
            }
            Some(b'[') => {
                let from = self.lexer.at;
                let close = self.lexer.text[from..]
                    .find(']')
                    .ok_or(Trouble::Unfinished)?;
                self.lexer.skip(1);
                self.arithmetic(from + close, depth)?;
                self.lexer.skip(1);
                word.pieces.push(Piece::Opaque);
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let name = self.name();
                word.pieces.push(Piece::Variable { name, quoted });
            }
            Some(b'?' | b'#' | b'$' | b'!' | b'-') => {
                self.lexer.skip(1);
                word.pieces.push(Piece::Opaque);
            }
            Some(b'@' | b'*' | b'0'..=b'9') => {
                self.lexer.skip(1);
                word.pieces.push(Piece::Unknown { quoted: false });
            }
            Some(_) | None => word.push_text("$", quoted),
        }
        Ok(())
    }

    fn name(&mut self) -> String {
        let from = self.lexer.at;
        while self
            .lexer
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            self.lexer.skip(1);
        }
        self.lexer.text[from..self.lexer.at].to_owned()
    }

    /// The rest of `${…}`.
    fn braces(&mut self, word: &mut Word, quoted: bool, depth: usize) -> Result<(), Trouble> {
        let name = self.name();
        if !name.is_empty() && self.lexer.take(b'}') {
            word.pieces.push(Piece::Variable { name, quoted });
            return Ok(());
        }
        // `${ …; }` and `${| …; }` run commands (bash 5.3, mksh).
        if name.is_empty() && matches!(self.lexer.peek(), Some(b' ' | b'\t' | b'\n' | b'|')) {
            self.lexer.take(b'|');
            self.substitution(Until::Brace, depth)?;
            word.pieces.push(Piece::Unknown { quoted });
            return Ok(());
        }
        let counts = name.is_empty() && self.lexer.peek() == Some(b'#');
        if counts {
            self.lexer.skip(1);
        }
        // What the operators say doesn't matter; what runs inside does.
        let within = if quoted {
            Within::QuotedBraces
        } else {
            Within::Braces
        };
        self.inside(within, None, &mut Word::default(), depth + 1)?;
        word.pieces.push(if counts {
            Piece::Opaque
        } else {
            Piece::Unknown { quoted }
        });
        Ok(())
    }

    /// Arithmetic up to `end`, for what runs inside.
    pub(crate) fn arithmetic(&mut self, end: usize, depth: usize) -> Result<(), Trouble> {
        self.inside(
            Within::Arithmetic,
            Some(end),
            &mut Word::default(),
            depth + 1,
        )?;
        // An expansion inside that reaches past the end was no arithmetic.
        if self.lexer.at == end {
            Ok(())
        } else {
            Err(Trouble::Stray)
        }
    }

    /// The rest of `<(…)` or `>(…)`; the second reads what others write.
    fn process(&mut self, direction: u8, depth: usize) -> Result<(), Trouble> {
        let outer = self.fed;
        self.fed |= direction == b'>';
        let done = self.substitution(Until::Parenthesis, depth);
        self.fed = outer;
        done
    }

    /// The rest of `$(…)`, `<(…)`, `>(…)`, `${ …; }`.
    fn substitution(&mut self, until: Until, depth: usize) -> Result<(), Trouble> {
        let outer = self.lexer.take_documents();
        let fed = self.fed;
        self.list(until, fed, depth + 1)?;
        self.fed = fed;
        self.lexer.no_document_waits()?;
        self.lexer.put_documents_back(outer);
        Ok(())
    }

    /// `` `…` ``: its text is unescaped once, then parsed as any other.
    fn backticks(&mut self, word: &mut Word, quoted: bool, depth: usize) -> Result<(), Trouble> {
        let from = self.lexer.at + 1;
        self.lexer.skip(1);
        let mut text = String::new();
        loop {
            match self.lexer.character().ok_or(Trouble::Unfinished)? {
                "`" => break,
                "\\" => match self.lexer.character().ok_or(Trouble::Unfinished)? {
                    escaped @ ("`" | "\\" | "$") => text.push_str(escaped),
                    "\"" if quoted => text.push('"'),
                    other => {
                        text.push('\\');
                        text.push_str(other);
                    }
                },
                other => text.push_str(other),
            }
        }
        if depth >= DEEPEST {
            return Err(Trouble::TooDeep);
        }
        let range = from..self.lexer.at - 1;
        let verbatim = self.lexer.text.get(range.clone()) == Some(text.as_str());
        let inner = parse_nested(&text, depth + 1, self.fed)?;
        for mut command in inner.commands {
            let shift = |part: &mut std::ops::Range<usize>| {
                *part = if verbatim {
                    part.start + from..part.end + from
                } else {
                    range.clone()
                };
            };
            shift(&mut command.range);
            command
                .words
                .iter_mut()
                .chain(&mut command.outputs)
                .for_each(|word| shift(&mut word.range));
            self.script.commands.push(command);
        }
        self.script.set_elsewhere.extend(inner.set_elsewhere);
        word.pieces.push(Piece::Unknown { quoted });
        Ok(())
    }

    /// The rest of `?(…)` and its like, for what runs inside.
    fn pattern(&mut self, depth: usize) -> Result<(), Trouble> {
        self.lexer.skip(1);
        let mut open = 1_usize;
        while open > 0 {
            match self.lexer.peek().ok_or(Trouble::Unfinished)? {
                b'(' => {
                    open += 1;
                    self.lexer.skip(1);
                }
                b')' => {
                    open -= 1;
                    self.lexer.skip(1);
                }
                b'|' | b' ' | b'\n' | b'\t' | b';' | b'&' => self.lexer.skip(1),
                b'<' | b'>' if self.lexer.peek_at(1) != Some(b'(') => self.lexer.skip(1),
                _ => {
                    self.word(depth + 1)?;
                }
            }
        }
        Ok(())
    }

    /// The body of a here-document that begins here, as one word.
    pub(crate) fn document(&mut self, document: &Document, depth: usize) -> Result<Word, Trouble> {
        let body = self.lexer.document_body(document)?;
        let after = self.lexer.at;
        let mut word = Word {
            range: body.clone(),
            quoted: true,
            ..Word::default()
        };
        if document.expands {
            self.lexer.at = body.start;
            self.inside(Within::Document, Some(body.end), &mut word, depth + 1)?;
            if self.lexer.at > body.end {
                return Err(Trouble::Stray);
            }
        } else {
            let text = &self.lexer.text[body];
            if document.strips_tabs {
                for line in text.split_inclusive('\n') {
                    word.push_text(line.trim_start_matches('\t'), true);
                }
            } else {
                word.push_text(text, true);
            }
        }
        self.lexer.at = after;
        Ok(word)
    }
}

fn push_character(bytes: &mut Vec<u8>, code: u32) {
    let mut buffer = [0; 4];
    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
}
