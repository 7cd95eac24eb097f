//! What stands on a program's standard input, and programs that run it.

use std::rc::Rc;

use super::arg::{Arg, HOLE};
use super::script::{Feed, Piece, Word};
use super::walk::{Around, Denied, Place, Walk};

/// A program's input, as far as it is known.
pub(super) enum Input {
    /// The caller's own, or a file that nothing is known of.
    Other,
    /// Something that is only known when it runs.
    Unknown,
    /// This text.
    Text(String),
}

impl Walk<'_> {
    /// What the program behind `around` reads.
    pub(super) fn input(&mut self, around: Around<'_>) -> Input {
        match around.feed {
            Feed::Inherited => Input::Other,
            Feed::Unknown => Input::Unknown,
            Feed::File(name) => match name.literal() {
                Some(name) => self.written(&name),
                None => Input::Other,
            },
            Feed::Text(word) => {
                let mut args = Vec::new();
                around.variables.resolve(word, &mut args);
                let texts: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
                let text = texts.join(" ");
                self.spend(text.len() / 8);
                Input::Text(text)
            }
        }
    }

    /// What a program feeds to those that it starts: the same, and no longer dependent on
    /// the variables of this text.
    pub(super) fn settled(&mut self, around: Around<'_>) -> Feed {
        let Feed::Text(word) = around.feed else {
            return around.feed.clone();
        };
        if matches!(
            word.pieces.as_slice(),
            [] | [Piece::Text { quoted: true, .. }]
        ) {
            return around.feed.clone();
        }
        let Input::Text(text) = self.input(around) else {
            return Feed::Unknown;
        };
        let mut settled = Word {
            range: word.range.clone(),
            quoted: true,
            ..Word::default()
        };
        for (at, part) in text.split(HOLE).enumerate() {
            if at > 0 {
                settled.pieces.push(Piece::Unknown { quoted: true });
            }
            settled.push_text(part, true);
        }
        Feed::Text(Rc::new(settled))
    }

    /// What stands on the standard input of a program that runs it.
    pub(super) fn fed(
        &mut self,
        text: &str,
        around: Around<'_>,
        program: &Arg,
    ) -> Result<(), Denied> {
        if let Feed::Text(word) = around.feed {
            let mut args = Vec::new();
            around.variables.resolve(word, &mut args);
            // What runs in it reads what stands behind it.
            let outer = std::mem::replace(&mut self.inherited, Feed::Inherited);
            let within = Place::Within(around.place.span(&program.range));
            let around = Around {
                place: if around.own_feed {
                    around.place
                } else {
                    &within
                },
                ..around
            };
            let done = self.joined(text, &args, around);
            self.inherited = outer;
            return done;
        }
        let span = around.place.span(&program.range);
        match self.input(around) {
            Input::Other => Ok(()),
            Input::Unknown => {
                self.unclear("what a shell reads is only known when it runs", span);
                Ok(())
            }
            Input::Text(text) => {
                let outer = std::mem::replace(&mut self.inherited, Feed::Inherited);
                let place = Place::Within(span);
                let done = self.text(&text, &place, around.depth + 1);
                self.inherited = outer;
                done
            }
        }
    }

    /// `crontab -`, `crontab FILE`: each line ends with a text of shell.
    pub(super) fn crontab(
        &mut self,
        program: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let mut file = None;
        let mut rest = args[1..].iter();
        while let Some(arg) = rest.next() {
            match arg.text.as_str() {
                "-u" => drop(rest.next()),
                "-l" | "-r" | "-e" | "-T" | "--list" => return Ok(()),
                text if text.starts_with('-') && text != "-" => {}
                _ => file = Some(arg),
            }
        }
        let span = around.place.span(&args[0].range);
        let input = match file {
            Some(file) if file.process => Input::Unknown,
            Some(file) if !matches!(file.text.as_str(), "-" | "/dev/stdin") => {
                self.written(&file.text)
            }
            _ => self.input(around),
        };
        match input {
            Input::Other => {}
            Input::Unknown => {
                self.unclear(
                    "what is to run at other times is only known when it runs",
                    span,
                );
            }
            Input::Text(lines) => {
                let words = if program == "incrontab" { 2 } else { 5 };
                for line in lines.lines().map(str::trim) {
                    let skip = if line.starts_with('@') { 1 } else { words };
                    let mut rest = line;
                    for _ in 0..skip {
                        rest = rest
                            .split_once([' ', '\t'])
                            .map_or("", |(_, rest)| rest.trim_start());
                    }
                    if !line.starts_with('#') && !rest.is_empty() {
                        self.text(
                            &rest.replace('%', "\n"),
                            &Place::Within(span),
                            around.depth + 1,
                        )?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A Makefile on the standard input, and texts in options.
    pub(super) fn make(&mut self, args: &[Arg], around: Around<'_>) -> Result<(), Denied> {
        let span = around.place.span(&args[0].range);
        for (at, arg) in args.iter().enumerate().skip(1) {
            let file = match arg.text.as_str() {
                "-f" | "--file" | "--makefile" => args.get(at + 1),
                "-f-" | "--file=-" | "--makefile=-" => Some(arg),
                _ => None,
            };
            if let Some(file) = file {
                let input = if file.process {
                    Input::Unknown
                } else if matches!(file.text.as_str(), "-" | "/dev/stdin")
                    || file.text.ends_with("f-")
                    || file.text.ends_with("=-")
                {
                    self.input(around)
                } else {
                    self.makefile(&file.text)
                };
                self.recipes(input, span, around.depth)?;
            }
            let eval = match arg.text.strip_prefix("--eval=") {
                Some(text) => Some(text),
                None if arg.text == "--eval" => args.get(at + 1).map(|arg| arg.text.as_str()),
                None => arg.text.strip_prefix("SHELL="),
            };
            if let Some(text) = eval {
                if arg.text.starts_with("SHELL=") {
                    self.probe_text(text, span, around.depth)?;
                }
                self.recipes(Input::Text(text.to_owned()), span, around.depth)?;
            }
        }
        for name in ["GNUmakefile", "makefile", "Makefile"] {
            let input = self.makefile(name);
            self.recipes(input, span, around.depth)?;
        }
        Ok(())
    }

    fn makefile(&self, name: &str) -> Input {
        match self.written(name) {
            // Made by something else, as Makefiles often are.
            Input::Unknown => Input::Other,
            known => known,
        }
    }

    fn recipes(&mut self, input: Input, span: crate::Span, depth: usize) -> Result<(), Denied> {
        let lines = match input {
            Input::Other => return Ok(()),
            Input::Unknown => {
                self.unclear("what make reads is only known when it runs", span);
                return Ok(());
            }
            Input::Text(lines) => lines,
        };
        for line in lines.replace("\\\n", " ").lines() {
            let recipe = match line.strip_prefix('\t') {
                Some(recipe) => Some(recipe),
                None => line
                    .split_once(';')
                    .filter(|(rule, _)| rule.contains(':'))
                    .map(|(_, recipe)| recipe),
            };
            if let Some(recipe) = recipe {
                let recipe = recipe.trim_start().trim_start_matches(['@', '-', '+']);
                self.probe_text(&recipe.replace("$$", "$"), span, depth)?;
            }
            if let Some((_, call)) = line.split_once("$(shell ") {
                self.probe_text(call.trim_end_matches(')'), span, depth)?;
            }
        }
        Ok(())
    }
}
