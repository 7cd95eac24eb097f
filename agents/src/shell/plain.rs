//! Gives commands only when it is sure that there is nothing else, for rules that
//! allow.

use brush_parser::ast::{
    AndOr, Command, CommandPrefixOrSuffixItem, IoFileRedirectKind, IoFileRedirectTarget,
    IoRedirect, Pipeline, SeparatorOperator, SimpleCommand, Word,
};

use super::parse::{Unclear, parse};

/// The simple commands of a text that is nothing but a list of them: no
/// expansion, substitution, assignment, compound command or file redirection
/// but to `/dev/null`, and nothing in the background. Each as its words, as written.
pub(crate) fn parse_plain(text: &str) -> Result<Vec<Vec<String>>, Unclear> {
    let program = parse(text)?;
    let mut commands = Vec::new();
    for item in program.complete_commands.iter().flat_map(|list| &list.0) {
        // Claude Code 2.1 asks before anything goes on behind its back.
        if matches!(item.1, SeparatorOperator::Async) {
            return Err(Unclear);
        }
        plain_pipeline(&item.0.first, &mut commands)?;
        for more in &item.0.additional {
            let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = more;
            plain_pipeline(pipeline, &mut commands)?;
        }
    }
    match commands.as_slice() {
        [] => Err(Unclear),
        _ => Ok(commands),
    }
}

fn plain_pipeline(pipeline: &Pipeline, commands: &mut Vec<Vec<String>>) -> Result<(), Unclear> {
    if pipeline.bang || pipeline.timed.is_some() {
        return Err(Unclear);
    }
    for command in &pipeline.seq {
        let Command::Simple(SimpleCommand {
            prefix: None,
            word_or_name: Some(name),
            suffix,
        }) = command
        else {
            return Err(Unclear);
        };
        let mut words = vec![plain_word(name)?];
        if name.value.contains(['*', '?', '[', '~', '\'', '"', '\\']) {
            return Err(Unclear);
        }
        for item in suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                CommandPrefixOrSuffixItem::Word(word)
                | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                    words.push(plain_word(word)?);
                }
                CommandPrefixOrSuffixItem::IoRedirect(redirect) => plain_redirect(redirect)?,
                CommandPrefixOrSuffixItem::ProcessSubstitution(..) => return Err(Unclear),
            }
        }
        commands.push(words);
    }
    Ok(())
}

fn plain_redirect(redirect: &IoRedirect) -> Result<(), Unclear> {
    let IoRedirect::File(_, kind, target) = redirect else {
        return Err(Unclear);
    };
    let harmless = match (kind, target) {
        (
            IoFileRedirectKind::DuplicateOutput | IoFileRedirectKind::DuplicateInput,
            IoFileRedirectTarget::Fd(_),
        ) => true,
        (
            IoFileRedirectKind::DuplicateOutput | IoFileRedirectKind::DuplicateInput,
            IoFileRedirectTarget::Duplicate(word),
        ) => matches!(word.value.as_str(), "0" | "1" | "2"),
        (
            IoFileRedirectKind::Read | IoFileRedirectKind::Write | IoFileRedirectKind::Append,
            IoFileRedirectTarget::Filename(word),
        ) => word.value == "/dev/null",
        _ => false,
    };
    harmless.then_some(()).ok_or(Unclear)
}

fn plain_word(word: &Word) -> Result<String, Unclear> {
    let raw = &word.value;
    if raw.contains(['$', '`', '{', '}', '(', ')', '\n', '\r', '!', '#', '<', '>']) {
        return Err(Unclear);
    }
    Ok(raw.clone())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::alone("git status", &["git status"])]
    #[case::list("a b && c; d || e | f", &["a b", "c", "d", "e", "f"])]
    #[case::quotes_stay("echo 'a  b' \"c\"", &["echo 'a  b' \"c\""])]
    #[case::harmless_redirections("a >/dev/null 2>&1 </dev/null", &["a"])]
    #[case::a_glob("ls *.rs", &["ls *.rs"])]
    fn a_plain_list_is_its_commands(#[case] text: &str, #[case] want: &[&str]) {
        let commands = parse_plain(text).expect("plain");
        let commands: Vec<String> = commands.iter().map(|words| words.join(" ")).collect();
        assert_eq!(commands, want);
    }

    #[rstest]
    #[case::variable("echo $A")]
    #[case::substitution("echo $(id)")]
    #[case::backticks("echo `id`")]
    #[case::in_quotes("echo \"$(id)\"")]
    #[case::process_substitution("cat <(id)")]
    #[case::assignment("A=1 echo")]
    #[case::file("echo >x")]
    #[case::read_file("cat <x")]
    #[case::heredoc("cat <<X\nX")]
    #[case::herestring("cat <<<x")]
    #[case::subshell("(echo)")]
    #[case::group("{ echo; }")]
    #[case::if_clause("if a; then b; fi")]
    #[case::function("f() { a; }")]
    #[case::negated("! a")]
    #[case::brace_expansion("echo {a,b}")]
    #[case::quoted_name("'echo' a")]
    #[case::escaped_name("\\echo a")]
    #[case::glob_name("/bin/ech* a")]
    #[case::open_quote("echo 'a")]
    #[case::nothing("")]
    #[case::background("a &")]
    #[case::background_in_the_middle("a & b")]
    #[case::only_a_comment("# a")]
    #[case::assignment_alone("A=1")]
    fn what_is_not_plain_is_never_allowed(#[case] text: &str) {
        assert_eq!(parse_plain(text), Err(Unclear));
    }
}
