//! What Claude Code changes in a command on its own, after the hooks.

/// Whether it would change this text.
///
/// Claude Code 2.1.332 takes `>nul` for a slip of somebody used to Windows and
/// writes `>/dev/null` instead, inside quotes too. It leaves texts with `<`, `$`
/// or a backtick alone; that isn't leaned on.
pub(crate) fn edits(text: &str) -> bool {
    text.match_indices('>').any(|(at, _)| {
        let after = text[at + 1..].trim_start_matches([' ', '\t']);
        let Some(name) = after.get(..3) else {
            return false;
        };
        let ends = |c: char| c.is_whitespace() || "|&;)".contains(c);
        name.eq_ignore_ascii_case("nul") && after[3..].chars().next().is_none_or(ends)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::at_the_end("dir >nul", true)]
    #[case::upper_case("dir >NUL", true)]
    #[case::in_the_middle("dir >nul && x", true)]
    #[case::spaces("dir > \t nul\n", true)]
    #[case::errors("dir 2>nul", true)]
    #[case::both("dir &>Nul;", true)]
    #[case::appended("dir >>nul)", true)]
    #[case::in_quotes("printf '%s' 'dir >nul '", true)]
    #[case::second("a >b >nul|c", true)]
    #[case::in_front_of_a_quote("printf 'dir >nul'", false)]
    #[case::longer("dir >null", false)]
    #[case::with_an_ending("dir >nul.txt", false)]
    #[case::in_a_folder("dir >nul/x", false)]
    #[case::the_right_name("dir >/dev/null", false)]
    #[case::a_word("echo nul", false)]
    #[case::read("dir <nul", false)]
    #[case::nothing_behind("dir >", false)]
    #[case::other_letters("dir >né", false)]
    fn a_redirection_to_nul_is_edited(#[case] text: &str, #[case] want: bool) {
        assert_eq!(edits(text), want);
    }
}
