//! Finds more commands than there may be, for rules that deny or ask.

use brush_parser::ParserOptions;
use brush_parser::ast::{
    AndOr, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem, CompoundCommand,
    CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Pipeline,
    SimpleCommand, Word,
};
use brush_parser::word::{WordPiece, WordPieceWithSource};

use super::parse::{LONGEST, Unclear, parse};
use super::programs::{SHELLS, WRAPPERS};

/// How far texts within texts are followed, such as `sh -c "sh -c '…'"`.
const MOST_NESTED: u8 = 8;

/// Every simple command that the text may run, and the files that it names.
pub(crate) fn find_commands(text: &str) -> Result<Found, Unclear> {
    let mut found = Found::default();
    found.text(text, 0)?;
    found.commands.sort_unstable();
    found.commands.dedup();
    Ok(found)
}

/// A rough reading of a text that doesn't parse: everything that may begin a
/// command, up to what may end it. `None` when that would take too long.
pub(crate) fn split_crudely(text: &str) -> Option<Vec<String>> {
    if text.len() > LONGEST / 4 {
        return None;
    }
    let ends = |c: char| ";&|\n\r(){}`$<>'\"".contains(c);
    let mut commands = vec![text.trim().to_owned()];
    for piece in text.split(ends) {
        let words: Vec<String> = piece
            .split_whitespace()
            .map(|word| word.replace('\\', ""))
            .collect();
        for start in 0..words.len().min(64) {
            push_command(&mut commands, &words[start..]);
        }
    }
    // The same without its quotes, for a quote in the middle of a word.
    let bare: String = text.replace(['\'', '"', '\\'], "");
    for piece in bare.split([';', '&', '|', '\n', '(', ')', '{', '}', '`']) {
        let words: Vec<String> = piece.split_whitespace().map(str::to_owned).collect();
        for start in 0..words.len().min(64) {
            push_command(&mut commands, &words[start..]);
        }
    }
    Some(commands)
}

/// The words as one text, and with the program's folder left out.
fn push_command(commands: &mut Vec<String>, words: &[String]) {
    let Some((program, rest)) = words.split_first() else {
        return;
    };
    commands.push(words.join(" "));
    if let Some((_, name)) = program
        .rsplit_once('/')
        .filter(|(_, name)| !name.is_empty())
    {
        commands.push(
            std::iter::once(name)
                .chain(rest.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join(" "),
        );
    }
}

/// What a text may run, and on which files. No word has its quotes; what is
/// expanded stays as written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Each simple command, as its words joined by spaces, once as written and once
    /// without quotes, behind any wrapper.
    pub(crate) commands: Vec<String>,
    /// Each simple command in the order of the text.
    pub(crate) calls: Vec<Call>,
    /// The files of `<`.
    pub(crate) inputs: Vec<String>,
    /// The files of `>`.
    pub(crate) outputs: Vec<String>,
    /// What variables are set to.
    pub(crate) values: Vec<(String, String)>,
}

/// A simple command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) words: Vec<String>,
    /// Whether these are the later words of a program that may run them.
    pub(crate) is_behind_another: bool,
}

impl Found {
    fn text(&mut self, text: &str, depth: u8) -> Result<(), Unclear> {
        if depth > MOST_NESTED {
            return Err(Unclear);
        }
        let program = parse(text)?;
        program
            .complete_commands
            .iter()
            .try_for_each(|list| self.list(list, depth))
    }

    fn list(&mut self, list: &CompoundList, depth: u8) -> Result<(), Unclear> {
        for item in &list.0 {
            self.pipeline(&item.0.first, depth)?;
            for more in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = more;
                self.pipeline(pipeline, depth)?;
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline, depth: u8) -> Result<(), Unclear> {
        pipeline
            .seq
            .iter()
            .try_for_each(|command| self.command(command, depth))
    }

    fn command(&mut self, command: &Command, depth: u8) -> Result<(), Unclear> {
        let (compound, redirects) = match command {
            Command::Simple(simple) => return self.simple(simple, depth),
            Command::Compound(compound, redirects) => (compound, redirects),
            Command::Function(function) => (&function.body.0, &function.body.1),
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr, depth)?;
                return self.redirects(redirects.as_ref().map(|r| r.0.as_slice()), depth);
            }
        };
        self.redirects(redirects.as_ref().map(|r| r.0.as_slice()), depth)?;
        match compound {
            CompoundCommand::Arithmetic(arithmetic) => self.raw(&arithmetic.expr.value, depth),
            CompoundCommand::ArithmeticForClause(clause) => {
                for part in [&clause.initializer, &clause.condition, &clause.updater] {
                    self.raw(part.as_ref().map_or("", |part| &part.value), depth)?;
                }
                self.list(&clause.body.list, depth)
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list, depth),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list, depth),
            CompoundCommand::ForClause(clause) => {
                for word in clause.values.iter().flatten() {
                    self.word(word, depth)?;
                    let value = (clause.variable_name.clone(), bare_word(&word.value)?);
                    self.values.push(value);
                }
                self.list(&clause.body.list, depth)
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value, depth)?;
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.word(pattern, depth)?;
                    }
                    if let Some(list) = &case.cmd {
                        self.list(list, depth)?;
                    }
                }
                Ok(())
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, depth)?;
                self.list(&clause.then, depth)?;
                for part in clause.elses.iter().flatten() {
                    if let Some(condition) = &part.condition {
                        self.list(condition, depth)?;
                    }
                    self.list(&part.body, depth)?;
                }
                Ok(())
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0, depth)?;
                self.list(&clause.1.list, depth)
            }
            CompoundCommand::Coprocess(coprocess) => self.command(&coprocess.body, depth),
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr, depth: u8) -> Result<(), Unclear> {
        match test {
            ExtendedTestExpr::And(a, b) | ExtendedTestExpr::Or(a, b) => {
                self.test(a, depth)?;
                self.test(b, depth)
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner, depth)
            }
            ExtendedTestExpr::UnaryTest(_, word) => self.word(word, depth),
            ExtendedTestExpr::BinaryTest(_, a, b) => {
                self.word(a, depth)?;
                self.word(b, depth)
            }
        }
    }

    fn redirects(&mut self, redirects: Option<&[IoRedirect]>, depth: u8) -> Result<(), Unclear> {
        redirects
            .unwrap_or_default()
            .iter()
            .try_for_each(|redirect| self.redirect(redirect, depth).map(drop))
    }

    /// Follows what the redirection runs; gives the text that it feeds in.
    fn redirect(&mut self, redirect: &IoRedirect, depth: u8) -> Result<Option<String>, Unclear> {
        match redirect {
            IoRedirect::File(_, kind, target) => {
                match target {
                    IoFileRedirectTarget::Filename(word)
                    | IoFileRedirectTarget::Duplicate(word) => {
                        self.word(word, depth)?;
                        self.file(kind, bare_word(&word.value)?);
                    }
                    IoFileRedirectTarget::Fd(_) => {}
                    IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                        self.list(&subshell.list, depth)?;
                    }
                }
                Ok(None)
            }
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    let pieces = brush_parser::word::parse_heredoc(
                        &document.doc.value,
                        &ParserOptions::default(),
                    )
                    .map_err(|_| Unclear)?;
                    self.pieces(&document.doc.value, &pieces, depth)?;
                }
                Ok(Some(document.doc.value.clone()))
            }
            IoRedirect::HereString(_, word) => {
                self.word(word, depth)?;
                Ok(Some(bare_word(&word.value)?))
            }
            IoRedirect::OutputAndError(word, _) => {
                self.word(word, depth)?;
                self.outputs.push(bare_word(&word.value)?);
                Ok(None)
            }
        }
    }

    fn file(&mut self, kind: &IoFileRedirectKind, file: String) {
        // `2>&1` and `2>&-` name no file.
        if file.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            return;
        }
        match kind {
            IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => self.inputs.push(file),
            IoFileRedirectKind::ReadAndWrite => {
                self.inputs.push(file.clone());
                self.outputs.push(file);
            }
            IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::Clobber
            | IoFileRedirectKind::DuplicateOutput => self.outputs.push(file),
        }
    }

    fn simple(&mut self, simple: &SimpleCommand, depth: u8) -> Result<(), Unclear> {
        let mut raw: Vec<String> = Vec::new();
        let mut fed: Vec<String> = Vec::new();
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        for item in prefix {
            self.item(item, None, &mut fed, depth)?;
        }
        if let Some(name) = &simple.word_or_name {
            self.word(name, depth)?;
            raw.push(name.value.clone());
        }
        for item in suffix {
            self.item(item, Some(&mut raw), &mut fed, depth)?;
        }
        let bare = raw
            .iter()
            .map(|word| bare_word(word))
            .collect::<Result<Vec<_>, _>>()?;
        push_command(&mut self.commands, &raw);
        self.words(&bare, depth)?;
        // What a shell is fed is text of shell too.
        if bare.iter().any(|word| SHELLS.contains(&name_of(word))) {
            for text in fed {
                self.text(&text, depth + 1)?;
            }
        }
        Ok(())
    }

    /// One part of a simple command; its word goes to `words`.
    fn item(
        &mut self,
        item: &CommandPrefixOrSuffixItem,
        words: Option<&mut Vec<String>>,
        fed: &mut Vec<String>,
        depth: u8,
    ) -> Result<(), Unclear> {
        let word = match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                fed.extend(self.redirect(redirect, depth)?);
                return Ok(());
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                return self.list(&subshell.list, depth);
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                match &assignment.value {
                    AssignmentValue::Scalar(value) => {
                        self.word(value, depth)?;
                        if let AssignmentName::VariableName(name) = &assignment.name {
                            self.values.push((name.clone(), bare_word(&value.value)?));
                        }
                    }
                    AssignmentValue::Array(values) => {
                        for (key, value) in values {
                            if let Some(key) = key {
                                self.word(key, depth)?;
                            }
                            self.word(value, depth)?;
                        }
                    }
                }
                word
            }
            CommandPrefixOrSuffixItem::Word(word) => {
                self.word(word, depth)?;
                word
            }
        };
        if let Some(words) = words {
            words.push(word.value.clone());
        }
        Ok(())
    }

    /// The command of these words, and what it runs in turn.
    fn words(&mut self, words: &[String], depth: u8) -> Result<(), Unclear> {
        push_command(&mut self.commands, words);
        let Some((program, rest)) = words.split_first() else {
            return Ok(());
        };
        self.call(words, false);
        let (wraps, is_shell) = (
            WRAPPERS.contains(&name_of(program)),
            SHELLS.contains(&name_of(program)),
        );
        if wraps {
            for start in 0..rest.len().min(64) {
                push_command(&mut self.commands, &rest[start..]);
                self.call(&rest[start..], true);
            }
        }
        if is_shell && name_of(program) == "eval" {
            self.text(&rest.join(" "), depth + 1)?;
        }
        let runs_text =
            is_shell || (wraps && rest.iter().any(|word| word.contains([' ', '\n', ';'])));
        if runs_text || (wraps && rest.iter().any(|word| SHELLS.contains(&name_of(word)))) {
            for word in rest {
                if word.contains(|c: char| c.is_whitespace() || ";&|".contains(c)) {
                    self.text(word, depth + 1)?;
                } else if is_shell {
                    push_command(&mut self.commands, std::slice::from_ref(word));
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, words: &[String], is_behind_another: bool) {
        self.calls.push(Call {
            words: words.to_vec(),
            is_behind_another,
        });
    }

    fn word(&mut self, word: &Word, depth: u8) -> Result<(), Unclear> {
        self.raw(&word.value, depth)
    }

    /// What the expansion of a word runs.
    fn raw(&mut self, raw: &str, depth: u8) -> Result<(), Unclear> {
        if !raw.contains(['$', '`', '<', '>']) {
            return Ok(());
        }
        let pieces =
            brush_parser::word::parse(raw, &ParserOptions::default()).map_err(|_| Unclear)?;
        self.pieces(raw, &pieces, depth)
    }

    fn pieces(
        &mut self,
        source: &str,
        pieces: &[WordPieceWithSource],
        depth: u8,
    ) -> Result<(), Unclear> {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(_)
                | WordPiece::SingleQuotedText(_)
                | WordPiece::AnsiCQuotedText(_)
                | WordPiece::TildeExpansion(_)
                | WordPiece::EscapeSequence(_) => {}
                WordPiece::DoubleQuotedSequence(inner)
                | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.pieces(source, inner, depth)?;
                }
                WordPiece::CommandSubstitution(text)
                | WordPiece::BackquotedCommandSubstitution(text) => self.text(text, depth + 1)?,
                WordPiece::ParameterExpansion(_) | WordPiece::ArithmeticExpression(_) => {
                    let inside = source
                        .get(piece.start_index..piece.end_index)
                        .unwrap_or(source);
                    // A substitution in here is rare, and its text is hard to cut out.
                    if inside.contains('`') || inside.get(1..).is_some_and(|s| s.contains("$(")) {
                        return Err(Unclear);
                    }
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// A word without its quotes; what is expanded stays as written.
fn bare_word(raw: &str) -> Result<String, Unclear> {
    fn bare(source: &str, pieces: &[WordPieceWithSource], into: &mut String) {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(text)
                | WordPiece::SingleQuotedText(text)
                | WordPiece::AnsiCQuotedText(text) => into.push_str(text),
                WordPiece::EscapeSequence(text) => {
                    into.push_str(text.strip_prefix('\\').unwrap_or(text));
                }
                WordPiece::DoubleQuotedSequence(inner)
                | WordPiece::GettextDoubleQuotedSequence(inner) => bare(source, inner, into),
                WordPiece::TildeExpansion(_)
                | WordPiece::ParameterExpansion(_)
                | WordPiece::CommandSubstitution(_)
                | WordPiece::BackquotedCommandSubstitution(_)
                | WordPiece::ArithmeticExpression(_) => {
                    into.push_str(
                        source
                            .get(piece.start_index..piece.end_index)
                            .unwrap_or(source),
                    );
                }
            }
        }
    }
    if !raw.contains(['\'', '"', '\\', '$']) {
        return Ok(raw.to_owned());
    }
    let pieces = brush_parser::word::parse(raw, &ParserOptions::default()).map_err(|_| Unclear)?;
    let mut word = String::new();
    bare(raw, &pieces, &mut word);
    Ok(word)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::parse_plain;
    use super::*;

    #[rstest]
    #[case::alone("rm x", "rm x")]
    #[case::second("true; rm x", "rm x")]
    #[case::and("true && rm x", "rm x")]
    #[case::or("false || rm x", "rm x")]
    #[case::pipe("echo | rm x", "rm x")]
    #[case::pipe_both("echo |& rm x", "rm x")]
    #[case::background("rm x &", "rm x")]
    #[case::newline("true\nrm x\n", "rm x")]
    #[case::negated("! rm x", "rm x")]
    #[case::timed("time rm x", "rm x")]
    #[case::subshell("(cd /; rm x)", "rm x")]
    #[case::group("{ rm x; }", "rm x")]
    #[case::if_condition("if rm x; then :; fi", "rm x")]
    #[case::if_else("if :; then :; elif a; then b; else rm x; fi", "rm x")]
    #[case::for_body("for i in 1; do rm x; done", "rm x")]
    #[case::for_words("for i in $(rm x); do :; done", "rm x")]
    #[case::c_for("for ((i=0;i<2;i++)); do rm x; done", "rm x")]
    #[case::while_condition("while rm x; do :; done", "rm x")]
    #[case::until_body("until false; do rm x; done", "rm x")]
    #[case::case_branch("case a in a) rm x;; esac", "rm x")]
    #[case::function("f() { rm x; }; f", "rm x")]
    #[case::substitution("echo $(rm x)", "rm x")]
    #[case::substitution_in_quotes("echo \"a $(rm x) b\"", "rm x")]
    #[case::nested_substitution("echo $(echo $(rm x))", "rm x")]
    #[case::backticks("echo `rm x`", "rm x")]
    #[case::process_substitution("diff <(rm x) y", "rm x")]
    #[case::output_substitution("tee >(rm x)", "rm x")]
    #[case::assignment_value("A=$(rm x) true", "rm x")]
    #[case::bare_assignment("A=$(rm x)", "rm x")]
    #[case::assignment_before("A=1 B=2 rm x", "rm x")]
    #[case::redirection_first(">out rm x", "rm x")]
    #[case::redirection_last("rm x >out 2>&1", "rm x")]
    #[case::redirection_between("rm >out x", "rm x")]
    #[case::redirection_target("cat < $(rm x)", "rm x")]
    #[case::heredoc("cat <<X\n$(rm x)\nX", "rm x")]
    #[case::heredoc_to_a_shell("bash <<'X'\nrm x\nX", "rm x")]
    #[case::herestring_to_a_shell("bash <<< 'rm x'", "rm x")]
    #[case::brackets("[[ -n $(rm x) ]]", "rm x")]
    #[case::quoted_name("'r'm x", "rm x")]
    #[case::escaped_name("\\rm x", "rm x")]
    #[case::quoted_words("\"rm\" 'x'", "rm x")]
    #[case::by_its_path("/bin/rm x", "rm x")]
    #[case::spaces("rm    x", "rm x")]
    #[case::continued("rm \\\n x", "rm x")]
    #[case::sudo("sudo -u root rm x", "rm x")]
    #[case::env("env -i A=1 rm x", "rm x")]
    #[case::env_by_its_path("/usr/bin/env rm x", "rm x")]
    #[case::timeout("timeout -k 1 5 rm x", "rm x")]
    #[case::nice_nohup("nice -n 5 nohup rm x", "rm x")]
    #[case::xargs("ls | xargs -0 rm x", "rm x")]
    #[case::command("command rm x", "rm x")]
    #[case::exec("exec rm x", "rm x")]
    #[case::bash_c("bash -c 'rm x'", "rm x")]
    #[case::bash_lc("bash -lc 'cd /; rm x'", "rm x")]
    #[case::sudo_bash_c("sudo bash -c 'rm x'", "rm x")]
    #[case::env_s("env -S 'rm x'", "rm x")]
    #[case::eval("eval rm x", "rm x")]
    #[case::eval_quoted("eval 'rm x'", "rm x")]
    #[case::trap("trap 'rm x' EXIT", "rm x")]
    #[case::bash_c_twice("bash -c \"sh -c 'rm x'\"", "rm x")]
    #[case::watch("watch -n 1 'rm x'", "rm x")]
    #[case::comment("rm x # not this", "rm x")]
    fn a_command_is_found_wherever_it_runs(#[case] text: &str, #[case] want: &str) {
        let found = find_commands(text).expect("a reading").commands;
        assert!(found.iter().any(|command| command == want), "{found:?}");
    }

    #[test]
    fn what_find_runs_is_unclear() {
        assert!(find_commands("find . -name y -exec rm x ';'").is_err());
    }

    #[rstest]
    #[case::single_quotes("echo 'rm x; rm x'")]
    #[case::double_quotes("echo \"rm x; rm x\"")]
    #[case::an_argument("echo rm x")]
    #[case::a_comment("echo # ; rm x")]
    #[case::a_quoted_heredoc("cat <<'X'\nrm x\n$(rm x)\nX")]
    #[case::an_escaped_separator("echo \\; rm x")]
    fn words_that_do_not_run_are_no_command(#[case] text: &str) {
        let found = find_commands(text).expect("a reading").commands;
        assert!(!found.iter().any(|command| command == "rm x"), "{found:?}");
    }

    #[rstest]
    #[case::open_quote("echo 'rm x")]
    #[case::open_substitution("echo $(rm x")]
    #[case::a_stray_brace("true && } && rm x")]
    #[case::substitution_in_a_default("echo ${A:-$(rm x)}")]
    fn what_does_not_parse_is_split_crudely(#[case] text: &str) {
        assert_eq!(find_commands(text), Err(Unclear));
        let found = split_crudely(text).expect("a reading");
        assert!(
            found
                .iter()
                .any(|command| command == "rm x" || command == "rm x}"),
            "{found:?}"
        );
    }

    #[rstest]
    #[case::parentheses("(".repeat(5_000))]
    #[case::substitutions("$(".repeat(5_000))]
    #[case::braces("{ ".repeat(5_000))]
    #[case::ifs("if ".repeat(5_000))]
    #[case::just_below_the_bound(format!("{}:{}", "(".repeat(120), ")".repeat(120)))]
    #[case::substitutions_below_the_bound(format!("{}:{}", "echo $(".repeat(119), ")".repeat(119)))]
    #[case::shells_in_shells((0..10).fold("rm x".to_owned(), |text, _| format!("sh -c {}", shlex::try_quote(&text).expect("no NUL"))))]
    #[case::long("a ".repeat(1 << 20))]
    fn no_text_overflows_the_stack(#[case] text: String) {
        drop((
            find_commands(&text),
            split_crudely(&text),
            parse_plain(&text),
        ));
    }
}
