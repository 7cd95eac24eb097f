//! Where the parser stands in the text, and what the characters ahead are.

/// How deep expansions, quotes and parentheses may nest.
pub(crate) const DEEPEST: usize = 64;

/// Why a text can't be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    TooLong,
    TooDeep,
    Nul,
    /// A quote, bracket, block or here-document has no end.
    Unfinished,
    /// Something stands where it can't.
    Stray,
}

impl Trouble {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::TooLong => "the text is longer than 1 MiB",
            Self::TooDeep => "the text nests too deep",
            Self::Nul => "the text holds a NUL character",
            Self::Unfinished => {
                "the shell would wait for more: a quote, bracket or block has no end"
            }
            Self::Stray => "the text isn't valid shell",
        }
    }
}

/// A here-document that begins behind the next newline.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) end: String,
    pub(crate) strips_tabs: bool,
    pub(crate) expands: bool,
}

#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    pub(crate) text: &'t str,
    pub(crate) at: usize,
    /// With the command that each one feeds.
    documents: Vec<(Document, Option<usize>)>,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            documents: Vec::new(),
        }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    pub(crate) fn peek_at(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    pub(crate) fn previous(&self) -> Option<u8> {
        self.at
            .checked_sub(1)
            .and_then(|before| self.text.as_bytes().get(before))
            .copied()
    }

    pub(crate) fn starts_with(&self, what: &str) -> bool {
        self.text.as_bytes()[self.at.min(self.text.len())..].starts_with(what.as_bytes())
    }

    pub(crate) fn skip(&mut self, count: usize) {
        self.at = (self.at + count).min(self.text.len());
    }

    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// The next whole character.
    pub(crate) fn character(&mut self) -> Option<&'t str> {
        let rest = self.text.get(self.at..)?;
        let length = rest.chars().next()?.len_utf8();
        self.at += length;
        Some(&rest[..length])
    }

    /// Past blanks, continued lines and comments.
    pub(crate) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\r') if matches!(self.peek_at(1), None | Some(b'\n')) => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                // A word would have taken a `#` that stands in one.
                Some(b'#') => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                Some(_) | None => return,
            }
        }
    }

    /// The word ahead when nothing in it is quoted or expanded; nothing is taken. So
    /// reserved words are told without a word being parsed twice.
    pub(crate) fn bare_ahead(&self) -> Option<&'t str> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|c: char| " \t\n\r;&|()<>'\"$`\\".contains(c))
            .unwrap_or(rest.len());
        let ends = rest[end..].bytes().next();
        let whole = !matches!(ends, Some(b'\'' | b'"' | b'$' | b'`' | b'\\'));
        (end > 0 && whole).then(|| &rest[..end])
    }

    /// Past the word ahead, if it is this one.
    pub(crate) fn take_bare(&mut self, word: &str) -> bool {
        let there = self.bare_ahead() == Some(word);
        if there {
            self.skip(word.len());
        }
        there
    }

    /// `()` behind a function's name.
    pub(crate) fn empty_parentheses(&mut self) -> bool {
        let start = self.at;
        self.blanks();
        if self.take(b'(') {
            self.blanks();
            if self.take(b')') {
                return true;
            }
        }
        self.at = start;
        false
    }

    /// `NAME=`, `NAME+=` or `NAME[…]=`; whether it sets the whole value plainly.
    pub(crate) fn assignment(&mut self) -> Option<(String, bool)> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
            .count();
        if length == 0 || rest[0].is_ascii_digit() {
            return None;
        }
        let name = self.text[self.at..self.at + length].to_owned();
        let mut after = length;
        let mut plain = true;
        if rest.get(after) == Some(&b'[') {
            let close = rest[after..]
                .iter()
                .take_while(|byte| !b" \t\n;&|".contains(byte))
                .position(|byte| *byte == b']')?;
            // An index with an expansion is left to be a word.
            if rest[after..after + close]
                .iter()
                .any(|byte| b"$`'\"\\".contains(byte))
            {
                return None;
            }
            after += close + 1;
            plain = false;
        }
        if rest.get(after) == Some(&b'+') {
            after += 1;
            plain = false;
        }
        if rest.get(after) != Some(&b'=') {
            return None;
        }
        self.at += after + 1;
        plain &= self.peek() != Some(b'(');
        Some((name, plain))
    }

    /// The descriptor and the operator of a redirection that begins here.
    pub(crate) fn redirection(&mut self) -> Option<(Option<u32>, &'static str)> {
        const OPERATORS: [&str; 12] = [
            "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">", "&>>", "&>",
        ];
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let after = &self.text[self.at + digits..];
        let operator = OPERATORS
            .into_iter()
            .find(|operator| after.starts_with(operator))?;
        if operator.starts_with('&') && digits > 0 {
            return None;
        }
        // A process substitution is a word.
        if matches!(operator, "<" | ">") && after[1..].starts_with('(') {
            return None;
        }
        let descriptor = self.text[self.at..self.at + digits].parse().ok();
        let descriptor = if digits > 0 {
            descriptor.or(Some(u32::MAX))
        } else {
            None
        };
        self.skip(digits + operator.len());
        Some((descriptor, operator))
    }

    /// Note the here-document whose last line stands here.
    pub(crate) fn await_document(&mut self, strips_tabs: bool) -> Result<(), Trouble> {
        let mut end = String::new();
        let mut expands = true;
        let mut quote = None;
        let start = self.at;
        while let Some(byte) = self.peek() {
            match (quote, byte) {
                (None, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')') => {
                    break;
                }
                (None, b'$') if matches!(self.peek_at(1), Some(b'\'' | b'"')) => {
                    self.at += 1;
                    continue;
                }
                (None, b'\'' | b'"') => {
                    (quote, expands) = (Some(byte), false);
                    self.at += 1;
                    continue;
                }
                (Some(open), close) if open == close => {
                    quote = None;
                    self.at += 1;
                    continue;
                }
                (None, b'\\') => {
                    expands = false;
                    self.at += 1;
                }
                _ => {}
            }
            end.push_str(self.character().ok_or(Trouble::Unfinished)?);
        }
        if quote.is_some() || start == self.at {
            return Err(Trouble::Unfinished);
        }
        self.documents.push((
            Document {
                end,
                strips_tabs,
                expands,
            },
            None,
        ));
        Ok(())
    }

    /// How many here-documents wait for the next newline.
    pub(crate) fn waiting(&self) -> usize {
        self.documents.len()
    }

    /// The waiting documents `which` feed the command at `index`.
    pub(crate) fn documents_of(&mut self, which: &[usize], index: usize) {
        for one in which {
            if let Some(document) = self.documents.get_mut(*one) {
                document.1 = Some(index);
            }
        }
    }

    pub(crate) fn take_documents(&mut self) -> Vec<(Document, Option<usize>)> {
        std::mem::take(&mut self.documents)
    }

    pub(crate) fn put_documents_back(&mut self, documents: Vec<(Document, Option<usize>)>) {
        self.documents = documents;
    }

    /// At the end of a text no here-document may still wait.
    pub(crate) fn no_document_waits(&self) -> Result<(), Trouble> {
        if self.documents.is_empty() {
            Ok(())
        } else {
            Err(Trouble::Unfinished)
        }
    }

    /// The body of a here-document that begins here, without its last line.
    pub(crate) fn document_body(
        &mut self,
        document: &Document,
    ) -> Result<std::ops::Range<usize>, Trouble> {
        let start = self.at;
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            let line = rest.split('\n').next().unwrap_or_default();
            let text = if document.strips_tabs {
                line.trim_start_matches('\t')
            } else {
                line
            };
            let end = self.at;
            self.skip(line.len() + 1);
            if text == document.end {
                return Ok(start..end);
            }
        }
        Err(Trouble::Unfinished)
    }

    /// Where `))` closes the arithmetic whose `((` stands here; `None` when these are
    /// two subshells.
    pub(crate) fn arithmetic_end(&self) -> Option<usize> {
        if !self.starts_with("((") {
            return None;
        }
        let bytes = self.text.as_bytes();
        let mut open = 0_usize;
        let mut at = self.at + 2;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 1,
                b'\'' => {
                    at += 1;
                    at += bytes[at.min(bytes.len())..]
                        .iter()
                        .take_while(|byte| **byte != b'\'')
                        .count();
                }
                b'"' => {
                    at += 1;
                    while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                        at += if bytes[at] == b'\\' { 2 } else { 1 };
                    }
                }
                b'(' => open += 1,
                b')' if open > 0 => open -= 1,
                b')' => return (bytes.get(at + 1) == Some(&b')')).then_some(at),
                _ => {}
            }
            at += 1;
        }
        None
    }
}
