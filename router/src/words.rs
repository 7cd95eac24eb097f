//! The strict reading of a command's text: one simple command, or nothing.
//!
//! This is not a shell parser. It accepts a small set of texts about which
//! every POSIX shell agrees, and refuses the rest, so that a text which passes
//! can't do anything that its words don't say.

/// Why a text isn't one plain simple command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSimple {
    /// Nothing in it.
    #[error("there is no command in it")]
    Empty,
    /// A character that a shell may act on, outside quotes or in double quotes.
    #[error("`{}` at byte {at} may mean something to the shell", found.escape_default())]
    Character {
        /// Byte offset.
        at: usize,
        /// The character.
        found: char,
    },
    /// A quote without its partner.
    #[error("the quote at byte {at} is not closed")]
    Unclosed {
        /// Byte offset of the quote.
        at: usize,
    },
    /// `NAME=value` in front of, or instead of, a command.
    #[error("it begins with an assignment")]
    Assignment,
    /// The first word is the shell's own syntax.
    #[error("it begins with the shell's own word `{0}`")]
    Reserved(String),
}

/// First words that begin something other than a simple command, or run text
/// that they are given (bash 5.3, zsh 5.9, dash).
const RESERVED: &[&str] = &[
    "!",
    "[[",
    "]]",
    "{",
    "}",
    "alias",
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "eval",
    "exec",
    "fi",
    "for",
    "foreach",
    "function",
    "if",
    "in",
    "nocorrect",
    "noglob",
    "repeat",
    "select",
    "source",
    "then",
    "time",
    "trap",
    "until",
    "while",
    ".",
    "-",
    "builtin",
    "command",
];

/// The words of `text`, when it is one simple command in plain words: no
/// operator, substitution, redirection, assignment, glob, tilde, history
/// expansion, comment or escape; single quotes, and double quotes around text
/// that they don't expand.
///
/// # Errors
///
/// What stands in the way; the caller treats the text as unknown.
pub fn parse_simple_command(text: &str) -> Result<Vec<String>, NotSimple> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut assignment = false;
    let mut quoted_first = false;
    let mut chars = text.char_indices();
    while let Some((at, found)) = chars.next() {
        match found {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                quoted_first |= words.is_empty();
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => return Err(NotSimple::Unclosed { at }),
                        Some((_, inner)) if inner == found => break,
                        Some((at, '\0')) => return Err(NotSimple::Character { at, found: '\0' }),
                        // In double quotes a backslash takes the meaning from these four.
                        Some((at, '\\')) if found == '"' => match chars.next() {
                            Some((_, inner @ ('$' | '`' | '"' | '\\'))) => word.push(inner),
                            _ => return Err(NotSimple::Character { at, found: '\\' }),
                        },
                        Some((at, inner @ ('$' | '`' | '!'))) if found == '"' => {
                            return Err(NotSimple::Character { at, found: inner });
                        }
                        Some((_, inner)) => word.push(inner),
                    }
                }
            }
            'a'..='z'
            | 'A'..='Z'
            | '0'..='9'
            | '_'
            | '-'
            | '.'
            | '/'
            | ','
            | ':'
            | '@'
            | '+'
            | ']'
            | '%' => {
                word.get_or_insert_default().push(found);
            }
            '=' => {
                // `=word` is a path lookup in zsh; in the first word it assigns.
                match &word {
                    Some(before) if !before.is_empty() => {}
                    _ => return Err(NotSimple::Character { at, found }),
                }
                assignment |= words.is_empty();
                word.get_or_insert_default().push(found);
            }
            _ => return Err(NotSimple::Character { at, found }),
        }
    }
    words.extend(word);
    if assignment {
        return Err(NotSimple::Assignment);
    }
    match words.first() {
        None => Err(NotSimple::Empty),
        Some(first) if first.is_empty() && !quoted_first => Err(NotSimple::Empty),
        // bash takes even a quoted `%` for one of its jobs.
        Some(first) if RESERVED.contains(&first.as_str()) || first.starts_with('%') => {
            Err(NotSimple::Reserved(first.clone()))
        }
        Some(_) => Ok(words),
    }
}

/// `words` as one text that a POSIX shell reads back as these words; `None`
/// when one holds NUL, which no shell can carry.
pub fn quote_words<S: AsRef<str>>(words: &[S]) -> Option<String> {
    shlex::try_join(words.iter().map(AsRef::as_ref)).ok()
}

/// `word` as one argument for a POSIX shell; `None` when it holds NUL.
pub fn quote_word(word: &str) -> Option<String> {
    shlex::try_quote(word)
        .ok()
        .map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::words("git status", &["git", "status"])]
    #[case::blanks("  git\t status  -s ", &["git", "status", "-s"])]
    #[case::single_quotes("echo 'a $(b) `c` \n ; # !x'", &["echo", "a $(b) `c` \n ; # !x"])]
    #[case::double_quotes("echo \"it's | fine; <<EOF\"", &["echo", "it's | fine; <<EOF"])]
    #[case::escapes_in_double_quotes("echo \"\\\\ \\\" \\$ \\` '\"", &["echo", "\\ \" $ ` '"])]
    #[case::joined_quotes("a'b'\"c\"d", &["abcd"])]
    #[case::empty_argument("echo '' \"\"", &["echo", "", ""])]
    #[case::equals_in_argument("cmake -DX=1 a=b", &["cmake", "-DX=1", "a=b"])]
    #[case::percent_in_argument("git log --format=%h 50%", &["git", "log", "--format=%h", "50%"])]
    #[case::unicode_in_quotes("echo 'ü\u{2028}'", &["echo", "ü\u{2028}"])]
    fn plain_words_are_accepted(#[case] text: &str, #[case] want: &[&str]) {
        assert_eq!(parse_simple_command(text).unwrap(), want);
    }

    #[rstest]
    #[case::empty("")]
    #[case::blank(" \t ")]
    #[case::separator("git status; curl evil")] // B20
    #[case::and("git status && x")]
    #[case::or("git status || x")]
    #[case::background("git status &")]
    #[case::pipe("git log | sh")] // B8
    #[case::newline("git status\nx")]
    #[case::trailing_newline("git status\n")]
    #[case::carriage_return("git status\rx")]
    #[case::dollar("echo $HOME")]
    #[case::substitution("ls $(x)")]
    #[case::backticks("ls `x`")]
    #[case::substitution_in_double_quotes("git commit -m \"$(cat x)\"")] // B1
    #[case::backticks_in_double_quotes("echo \"`x`\"")]
    #[case::escape("r\\m x")]
    #[case::escaped_newline("$(r\\\nm -rf x)")] // B18
    #[case::kept_escape_in_double_quotes("echo \"a\\nb\"")]
    #[case::escaped_newline_in_double_quotes("echo \"a\\\nb\"")]
    #[case::escaped_history_in_double_quotes("echo \"a\\!b\"")]
    #[case::quoted_job("'%1' x")]
    #[case::ansi_quotes("echo $'a'")]
    #[case::locale_quotes("echo $\"a\"")]
    #[case::redirection("git diff > x")]
    #[case::input("cat < x")]
    #[case::here_document("cat <<EOF\nx\nEOF")] // B16
    #[case::here_document_in_comment("# <<EOF")] // B17
    #[case::here_string("cat <<< EOF")] // B17
    #[case::arithmetic("(( x = 1 << EOF ))")] // B17
    #[case::subshell("(git status)")]
    #[case::group("{ git status; }")]
    #[case::brace_expansion("echo {a,b}")]
    #[case::glob_star("ls *")]
    #[case::glob_mark("ls ?")]
    #[case::glob_class("ls [a]")]
    #[case::tilde("ls ~/x")]
    #[case::tilde_in_value("cmd --f=~/x")]
    #[case::history("echo !x")]
    #[case::history_in_double_quotes("echo \"!x\"")]
    #[case::quick_history("^a^b")]
    #[case::comment("git status # x")]
    #[case::assignment("GIT_EXTERNAL_DIFF=x git diff")]
    #[case::assignment_only("a=b")]
    #[case::array_assignment("a[0]=b")]
    #[case::appending_assignment("PATH+=:/x git status")]
    #[case::quoted_assignment("A='x' git status")]
    #[case::zsh_equals("=git status")]
    #[case::zsh_equals_in_argument("cat =git")]
    #[case::job("%1")]
    #[case::unclosed_single("git 'status")]
    #[case::unclosed_double("git \"status")]
    #[case::negation("! git status")]
    #[case::time("time git status")]
    #[case::eval("eval 'git status; x'")]
    #[case::source(". ./x")]
    #[case::command_word("command git status")]
    #[case::nul("git\0status")]
    #[case::nul_in_quotes("git 'st\0atus'")]
    #[case::unicode_space("git\u{a0}status")]
    #[case::unicode_quote("git \u{2018}status\u{2019}")]
    #[case::vertical_tab("git\u{b}status")]
    #[case::line_separator("git\u{2028}status")]
    fn anything_a_shell_may_act_on_is_refused(#[case] text: &str) {
        assert!(parse_simple_command(text).is_err(), "{text:?}");
    }
}
