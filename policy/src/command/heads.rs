//! Parses what stands between a reserved word and the commands behind it.

use super::lexer::Trouble;
use super::parse::{Block, Kind, Parser};
use super::script::{Feed, Simple, Word};

impl Parser<'_> {
    /// `NAME in WORDS` or `((…))` behind `for`.
    pub(super) fn loop_head(&mut self, depth: usize) -> Result<(), Trouble> {
        self.lexer.blanks();
        if let Some(end) = self.lexer.arithmetic_end() {
            self.lexer.skip(2);
            self.arithmetic(end, depth)?;
            self.lexer.skip(2);
            self.lexer.blanks();
            self.lexer.take(b';');
            return Ok(());
        }
        let name = self.word(depth)?;
        self.script.set_elsewhere.extend(name.literal());
        self.skip_lines(depth)?;
        if self.lexer.take_bare("in") {
            self.lexer.blanks();
            while self.word_ahead() {
                self.word(depth)?;
                self.lexer.blanks();
            }
        }
        if !self.lexer.starts_with(";;") {
            self.lexer.take(b';');
        }
        Ok(())
    }

    /// `WORD in` behind `case`.
    pub(super) fn case_head(&mut self, depth: usize) -> Result<(), Trouble> {
        self.lexer.blanks();
        if !self.word_ahead() {
            return Err(Trouble::Stray);
        }
        self.word(depth)?;
        self.skip_lines(depth)?;
        if self.lexer.take_bare("in") {
            Ok(())
        } else {
            Err(Trouble::Stray)
        }
    }

    /// Patterns up to `)`; nothing when `esac` stands there instead.
    pub(super) fn patterns(&mut self, blocks: &mut [Block], depth: usize) -> Result<(), Trouble> {
        debug_assert!(blocks.last().is_some_and(|block| block.kind == Kind::Case));
        self.skip_lines(depth)?;
        let mut begun = self.lexer.take(b'(');
        loop {
            self.lexer.blanks();
            if !begun && self.lexer.bare_ahead() == Some("esac") {
                return Ok(());
            }
            if !self.word_ahead() {
                return Err(Trouble::Stray);
            }
            self.word(depth)?;
            begun = true;
            self.lexer.blanks();
            if self.lexer.take(b')') {
                return Ok(());
            }
            if !self.lexer.take(b'|') {
                return Err(Trouble::Stray);
            }
        }
    }

    pub(super) fn skip_lines(&mut self, depth: usize) -> Result<(), Trouble> {
        self.lexer.blanks();
        while self.lexer.peek() == Some(b'\n') {
            self.newline(depth)?;
            self.lexer.blanks();
        }
        Ok(())
    }

    /// `-p` and `--` behind the reserved word `time`.
    pub(super) fn time_options(&mut self) {
        self.lexer.blanks();
        while self.lexer.take_bare("-p") || self.lexer.take_bare("--") {
            self.lexer.blanks();
        }
    }

    /// The name of a coprocess, which only a compound command may have.
    pub(super) fn coprocess_name(&mut self) {
        self.lexer.blanks();
        let at = self.lexer.at;
        if let Some(word) = self.lexer.bare_ahead() {
            self.lexer.skip(word.len());
            self.lexer.blanks();
            let brace = self.lexer.bare_ahead() == Some("{");
            if !brace && self.lexer.peek() != Some(b'(') {
                self.lexer.at = at;
            }
        }
    }

    /// The words of a test up to `]]`; they are kept, since a test may evaluate them.
    pub(super) fn test(&mut self, depth: usize) -> Result<(), Trouble> {
        let start = self.lexer.at;
        let mut words = vec![Word {
            range: start..start,
            ..Word::default()
        }];
        words[0].push_text("[[", false);
        loop {
            self.skip_lines(depth)?;
            match self.lexer.peek() {
                None => return Err(Trouble::Unfinished),
                Some(b'&' | b'|' | b'(' | b')' | b';') => self.lexer.skip(1),
                Some(b'<' | b'>') if self.lexer.peek_at(1) != Some(b'(') => self.lexer.skip(1),
                Some(_) => {
                    let word = self.word(depth)?;
                    if word.bare() == Some("]]") {
                        break;
                    }
                    words.push(word);
                }
            }
        }
        self.script.commands.push(Simple {
            assignments: Vec::new(),
            words,
            feed: Feed::Inherited,
            writes: false,
            outputs: Vec::new(),
            range: start..self.lexer.at,
        });
        Ok(())
    }
}
