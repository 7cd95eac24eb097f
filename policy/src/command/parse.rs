//! Parses shell: one pass over the text, each byte looked at a bounded number of
//! times, recursion counted before it happens.
//!
//! It finds commands; it doesn't say whether bash would take the text. Reserved words
//! open and close blocks on a stack of their own, so that only parentheses, quotes and
//! expansions recurse.

use std::rc::Rc;

use super::lexer::{Lexer, Trouble};
use super::script::{Assignment, Feed, Script, Simple, Word};

/// The longest text that is looked into.
pub(crate) const LONGEST: usize = 1 << 20;

/// How many blocks may stand in one another.
const MOST_BLOCKS: usize = 128;

/// How many parts of a text may be read twice.
const MOST_ATTEMPTS: usize = 64;

/// Words that mean something where a command may begin.
const RESERVED: &[&str] = &[
    "if", "then", "elif", "else", "fi", "while", "until", "for", "select", "do", "done", "case",
    "esac", "{", "}", "!", "time", "coproc", "function", "[[",
];

/// What a reserved word opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    If,
    Loop,
    Case,
    Brace,
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: Kind,
    /// The first command inside.
    first: usize,
    /// Whether its input comes from a pipe, or is a caller's.
    fed: bool,
}

/// What ends a list besides the end of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    End,
    Parenthesis,
    /// The `}` of `${ …; }`.
    Brace,
}

/// Parse a whole text.
pub(crate) fn parse(text: &str) -> Result<Script, Trouble> {
    parse_nested(text, 0, false)
}

/// Parse a text that stands inside of another, `depth` levels deep; `fed` says whether
/// its input is something that is only known when it runs.
pub(crate) fn parse_nested(text: &str, depth: usize, fed: bool) -> Result<Script, Trouble> {
    if text.len() > LONGEST {
        return Err(Trouble::TooLong);
    }
    if text.contains('\0') {
        return Err(Trouble::Nul);
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        script: Script::default(),
        attempts: 0,
        fed,
    };
    parser.list(Until::End, fed, depth)?;
    Ok(parser.script)
}

pub(crate) struct Parser<'t> {
    pub(crate) lexer: Lexer<'t>,
    pub(crate) script: Script,
    /// How often a part was read in one way, and may be read again in another.
    attempts: usize,
    /// Whether the command that is read now has an input that isn't known, which
    /// substitutions in its words inherit.
    pub(super) fed: bool,
}

impl Parser<'_> {
    /// Commands up to what ends the list, which is taken too.
    pub(crate) fn list(&mut self, until: Until, fed: bool, depth: usize) -> Result<(), Trouble> {
        if depth > super::lexer::DEEPEST {
            return Err(Trouble::TooDeep);
        }
        let mut blocks: Vec<Block> = Vec::new();
        // Whether the next command reads from a pipe.
        let mut piped = false;
        // Whether a command has to follow, as after `&&`.
        let mut wanted = false;
        // Whether something stands before, so that an operator may follow.
        let mut complete = false;
        // The next function body reads from wherever it is called.
        let mut function = false;
        loop {
            if blocks.len() > MOST_BLOCKS {
                return Err(Trouble::TooDeep);
            }
            self.lexer.blanks();
            let Some(byte) = self.lexer.peek() else {
                if wanted || !blocks.is_empty() {
                    return Err(Trouble::Unfinished);
                }
                return match until {
                    Until::End => self.lexer.no_document_waits(),
                    Until::Parenthesis | Until::Brace => Err(Trouble::Unfinished),
                };
            };
            if byte == b'}' && until == Until::Brace && blocks.is_empty() && !wanted {
                self.lexer.skip(1);
                return Ok(());
            }
            let fed_here = fed || piped || function || blocks.last().is_some_and(|block| block.fed);
            match byte {
                b'\n' => {
                    self.newline(depth)?;
                    complete = false;
                    continue;
                }
                b')' => {
                    if until != Until::Parenthesis || wanted || !blocks.is_empty() {
                        return Err(Trouble::Stray);
                    }
                    self.lexer.skip(1);
                    return Ok(());
                }
                b';' if self.lexer.starts_with(";;") || self.lexer.starts_with(";&") => {
                    if blocks.last().map(|block| block.kind) != Some(Kind::Case) || wanted {
                        return Err(Trouble::Stray);
                    }
                    while self
                        .lexer
                        .peek()
                        .is_some_and(|byte| byte == b';' || byte == b'&')
                    {
                        self.lexer.skip(1);
                    }
                    complete = false;
                    self.patterns(&mut blocks, depth)?;
                    continue;
                }
                b'&' if !complete && self.lexer.starts_with("&>") => {}
                b'&' | b'|' | b';' => {
                    if !complete || wanted {
                        return Err(Trouble::Stray);
                    }
                    let (length, pipes, needs) = match (byte, self.lexer.peek_at(1)) {
                        (b'&', Some(b'&')) | (b'|', Some(b'|')) => (2, false, true),
                        (b'|', Some(b'&')) => (2, true, true),
                        (b'|', _) => (1, true, true),
                        _ => (1, false, false),
                    };
                    if pipes && let Some(last) = self.script.commands.last_mut() {
                        last.writes = true;
                    }
                    self.lexer.skip(length);
                    (piped, wanted, complete) = (pipes, needs, false);
                    continue;
                }
                b'(' => {
                    if complete {
                        return Err(Trouble::Stray);
                    }
                    let first = self.script.commands.len();
                    if let Some(end) = self.lexer.arithmetic_end() {
                        self.arithmetic_or_subshells(end, fed_here, depth)?;
                    } else {
                        self.lexer.skip(1);
                        self.list(Until::Parenthesis, fed_here, depth + 1)?;
                    }
                    self.redirections_of_block(first, depth)?;
                    (piped, wanted, complete, function) = (false, false, true, false);
                    continue;
                }
                _ => {}
            }
            if complete {
                // A word right behind a block, as in `fi done`: only a reserved word may stand there.
                let ends = ["fi", "done", "}", "esac", "then", "do", "else", "elif"];
                if !self
                    .lexer
                    .bare_ahead()
                    .is_some_and(|word| ends.contains(&word))
                {
                    return Err(Trouble::Stray);
                }
            }
            let at = self.lexer.at;
            let word = self.lexer.bare_ahead();
            let close = |blocks: &mut Vec<Block>, kind: Kind| match blocks.pop() {
                Some(block) if block.kind == kind => Ok(block.first),
                Some(_) | None => Err(Trouble::Stray),
            };
            let first = self.script.commands.len();
            let block = |kind: Kind| Block {
                kind,
                first,
                fed: fed_here,
            };
            if let Some(word) = word.filter(|word| RESERVED.contains(word)) {
                self.lexer.skip(word.len());
            }
            match word {
                Some("if") => blocks.push(block(Kind::If)),
                Some("while" | "until") => blocks.push(block(Kind::Loop)),
                Some("{") => blocks.push(block(Kind::Brace)),
                Some("for" | "select") => {
                    blocks.push(block(Kind::Loop));
                    self.loop_head(depth)?;
                }
                Some("case") => {
                    blocks.push(block(Kind::Case));
                    self.case_head(depth)?;
                    self.patterns(&mut blocks, depth)?;
                }
                Some("then" | "else" | "elif")
                    if blocks.last().map(|block| block.kind) == Some(Kind::If) => {}
                Some("do") if blocks.last().map(|block| block.kind) == Some(Kind::Loop) => {}
                Some("then" | "else" | "elif" | "do") => return Err(Trouble::Stray),
                Some(end @ ("fi" | "done" | "}" | "esac")) => {
                    if wanted {
                        return Err(Trouble::Stray);
                    }
                    let kind = match end {
                        "fi" => Kind::If,
                        "done" => Kind::Loop,
                        "}" => Kind::Brace,
                        _ => Kind::Case,
                    };
                    let first = close(&mut blocks, kind)?;
                    self.redirections_of_block(first, depth)?;
                    (piped, wanted, complete, function) = (false, false, true, false);
                    continue;
                }
                Some("!") => {
                    wanted = true;
                    continue;
                }
                Some("time") => {
                    self.time_options();
                    if self.lexer.peek() == Some(b'-') {
                        // With options it is the program of that name.
                        self.lexer.at = at;
                        self.simple(fed_here, depth)?;
                        (piped, wanted, complete, function) = (false, false, true, false);
                    }
                    continue;
                }
                Some("coproc") => {
                    // Its input is the shell's to write.
                    self.coprocess_name();
                    function = true;
                    wanted = true;
                    continue;
                }
                Some("function") => {
                    self.lexer.blanks();
                    self.word(depth)?;
                    self.lexer.blanks();
                    self.lexer.empty_parentheses();
                    (function, wanted, complete) = (true, true, false);
                    continue;
                }
                Some("[[") => {
                    self.test(depth)?;
                    self.redirections_of_block(first, depth)?;
                    (piped, wanted, complete, function) = (false, false, true, false);
                    continue;
                }
                Some(_) | None => {
                    if let Some(word) = word {
                        self.lexer.skip(word.len());
                        if self.lexer.empty_parentheses() {
                            (function, wanted, complete) = (true, true, false);
                            continue;
                        }
                        self.lexer.at -= word.len();
                    }
                    self.simple(fed_here, depth)?;
                    (piped, wanted, complete, function) = (false, false, true, false);
                    continue;
                }
            }
            // A block was opened or goes on: a command has to follow, but `case` may be empty.
            (piped, wanted, complete, function) = (false, false, false, false);
        }
    }

    /// `((…))`: arithmetic for bash, two subshells for dash. What reads as commands is
    /// taken as commands.
    fn arithmetic_or_subshells(
        &mut self,
        end: usize,
        fed: bool,
        depth: usize,
    ) -> Result<(), Trouble> {
        let start = self.lexer.at;
        self.lexer.skip(2);
        self.lexer.blanks();
        let names_something = self
            .lexer
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || b"_/.{~\\'\"".contains(&byte))
            || self.dollar_and_a_word();
        self.lexer.at = start;
        if names_something {
            self.attempts += 1;
            if self.attempts > MOST_ATTEMPTS {
                return Err(Trouble::TooDeep);
            }
            let (commands, names) = (self.script.commands.len(), self.script.set_elsewhere.len());
            let documents = self.lexer.take_documents();
            self.lexer.skip(1);
            match self.list(Until::Parenthesis, fed, depth + 1) {
                Ok(()) if self.lexer.waiting() == 0 => {
                    self.lexer.put_documents_back(documents);
                    return Ok(());
                }
                Err(Trouble::TooDeep) => return Err(Trouble::TooDeep),
                Ok(()) | Err(_) => {}
            }
            self.script.commands.truncate(commands);
            self.script.set_elsewhere.truncate(names);
            self.lexer.put_documents_back(documents);
            self.lexer.at = start;
        }
        self.lexer.skip(2);
        self.arithmetic(end, depth)?;
        self.lexer.skip(2);
        Ok(())
    }

    /// Whether `$…` and then a name or quote stands here, which no arithmetic is.
    fn dollar_and_a_word(&self) -> bool {
        let here = &self.lexer.text[self.lexer.at..];
        if here.starts_with("$'") || here.starts_with("$\"") {
            return true;
        }
        let line = here.split(['\n', ')']).next().unwrap_or_default();
        line.starts_with('$')
            && line.split_once([' ', '\t']).is_some_and(|(_, rest)| {
                rest.trim_start()
                    .starts_with(|letter: char| letter.is_alphabetic() || "'\"\\".contains(letter))
            })
    }

    /// Past a newline and the here-documents that begin behind it.
    pub(super) fn newline(&mut self, depth: usize) -> Result<(), Trouble> {
        self.lexer.skip(1);
        for (document, index) in self.lexer.take_documents() {
            let body = self.document(&document, depth)?;
            if let Some(index) = index
                && let Some(command) = self.script.commands.get_mut(index)
            {
                command.feed = Feed::Text(Rc::new(body));
            }
        }
        Ok(())
    }

    pub(crate) fn word_ahead(&self) -> bool {
        match self.lexer.peek() {
            None | Some(b'\n' | b';' | b'&' | b'|' | b'(' | b')') => false,
            Some(b'<' | b'>') => self.lexer.peek_at(1) == Some(b'('),
            Some(_) => true,
        }
    }

    /// Redirections behind a block; what they feed goes to every command inside.
    fn redirections_of_block(&mut self, first: usize, depth: usize) -> Result<(), Trouble> {
        let mut simple = Simple {
            assignments: Vec::new(),
            words: Vec::new(),
            feed: Feed::Inherited,
            writes: false,
            outputs: Vec::new(),
            range: self.lexer.at..self.lexer.at,
        };
        let waiting = self.lexer.waiting();
        loop {
            self.lexer.blanks();
            if !self.redirection(&mut simple, depth)? {
                break;
            }
        }
        let documents = self.lexer.waiting() > waiting;
        for command in &mut self.script.commands[first..] {
            command.writes |= simple.writes;
            command.outputs.extend_from_slice(&simple.outputs);
            if matches!(command.feed, Feed::Inherited) {
                // Which of them reads a here-document isn't known before it is read.
                command.feed = if documents {
                    Feed::Unknown
                } else {
                    simple.feed.clone()
                };
            }
        }
        Ok(())
    }

    /// One simple command: assignments, words and redirections in any order.
    fn simple(&mut self, fed: bool, depth: usize) -> Result<(), Trouble> {
        let start = self.lexer.at;
        let mut simple = Simple {
            assignments: Vec::new(),
            words: Vec::new(),
            feed: if fed { Feed::Unknown } else { Feed::Inherited },
            writes: false,
            outputs: Vec::new(),
            range: start..start,
        };
        let outer = std::mem::replace(&mut self.fed, fed);
        // Commands in its substitutions come first: they run first.
        let mut documents = Vec::new();
        loop {
            self.lexer.blanks();
            let waiting = self.lexer.waiting();
            if self.redirection(&mut simple, depth)? {
                documents.extend(waiting..self.lexer.waiting());
                continue;
            }
            if !self.word_ahead() {
                break;
            }
            if simple.words.is_empty()
                && let Some((name, plain)) = self.lexer.assignment()
            {
                let value = if self.lexer.peek() == Some(b'(') {
                    self.array(depth)?;
                    Word::default()
                } else {
                    self.word_or_nothing(depth)?
                };
                simple.assignments.push(Assignment { name, plain, value });
                continue;
            }
            let word = self.word(depth)?;
            // `{name}>file` keeps a descriptor in a variable; it is no word.
            let names_descriptor = matches!(self.lexer.peek(), Some(b'<' | b'>'))
                && word.bare().is_some_and(|word| {
                    word.strip_prefix('{')
                        .and_then(|word| word.strip_suffix('}'))
                        .is_some_and(|name| {
                            !name.is_empty()
                                && name
                                    .bytes()
                                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                        })
                });
            if names_descriptor {
                continue;
            }
            simple.words.push(word);
            // `declare -a x=(…)`.
            if self.lexer.peek() == Some(b'(') && self.lexer.previous() == Some(b'=') {
                self.array(depth)?;
            }
        }
        if self.lexer.peek() == Some(b'(') {
            return Err(Trouble::Stray);
        }
        self.fed = outer;
        simple.range.end = self.lexer.at;
        let index = self.script.commands.len();
        self.lexer.documents_of(&documents, index);
        self.script.commands.push(simple);
        Ok(())
    }

    /// The words of `name=(…)`.
    fn array(&mut self, depth: usize) -> Result<(), Trouble> {
        self.lexer.skip(1);
        loop {
            self.skip_lines(depth)?;
            if self.lexer.take(b')') {
                return Ok(());
            }
            if !self.word_ahead() {
                return Err(Trouble::Stray);
            }
            self.word(depth)?;
        }
    }

    /// One redirection, if one stands here.
    fn redirection(&mut self, simple: &mut Simple, depth: usize) -> Result<bool, Trouble> {
        let Some((descriptor, operator)) = self.lexer.redirection() else {
            return Ok(false);
        };
        let input = descriptor.unwrap_or(0) == 0;
        match operator {
            "<<" | "<<-" => {
                self.lexer.blanks();
                self.lexer.await_document(operator == "<<-")?;
                return Ok(true);
            }
            _ => {}
        }
        self.lexer.blanks();
        if !self.word_ahead() {
            return Err(Trouble::Stray);
        }
        let word = self.word(depth)?;
        match operator {
            "<<<" => simple.feed = Feed::Text(Rc::new(word)),
            "<" | "<>" | "<&" if input => {
                let process = word
                    .pieces
                    .iter()
                    .any(|piece| matches!(piece, super::script::Piece::Process));
                simple.feed = if process || operator == "<&" {
                    Feed::Unknown
                } else {
                    Feed::File(Rc::new(word))
                };
            }
            "<" | "<>" | "<&" => {}
            ">&" if word
                .literal()
                .is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) => {}
            _ if word.literal().as_deref() == Some("/dev/null") => {}
            _ => {
                simple.writes = true;
                simple.outputs.push(word);
            }
        }
        Ok(true)
    }
}
