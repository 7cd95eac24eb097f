//! The user's own permission rules of Claude Code, judged on the original text.

#![expect(
    clippy::expect_used,
    reason = "a test support function may fail the test"
)]

use std::fs;

use boxery_agents::{ADAPTERS, Adapter, Surroundings};
use boxery_router::UserVerdict;
use camino::{Utf8Path, Utf8PathBuf};
use rstest::rstest;

/// A home, a project and a machine of their own.
struct World {
    folder: tempfile::TempDir,
    arguments: Vec<String>,
}

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            put(&path, content);
        }
        Self {
            folder,
            arguments: Vec::new(),
        }
    }

    fn judge(&self, tool: &str, command: &str) -> UserVerdict {
        let root = Utf8Path::from_path(self.folder.path()).expect("UTF-8");
        let (home, project) = (root.join("home"), root.join("home/project/sub"));
        let surroundings = Surroundings {
            home: &home,
            settings: None,
            project: Some(&project),
            folder: Some(&project),
            machine: &root.join("machine"),
            arguments: &self.arguments,
        };
        claude().user_rules(&surroundings, tool, command)
    }

    fn root(&self) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.folder.path().to_path_buf()).expect("UTF-8")
    }
}

#[expect(clippy::disallowed_methods, reason = "nobody reads it meanwhile")]
fn put(path: &std::path::Path, content: &str) {
    fs::write(path, content).expect("a file");
}

fn claude() -> &'static dyn Adapter {
    *ADAPTERS
        .iter()
        .find(|adapter| adapter.name() == "claude-code")
        .expect("the adapter")
}

const USER: &str = "home/.claude/settings.json";
const PROJECT: &str = "home/project/sub/.claude/settings.json";
const LOCAL: &str = "home/project/sub/.claude/settings.local.json";
const REPOSITORY_LOCAL: &str = "home/project/.claude/settings.local.json";
const MANAGED: &str = "machine/etc/claude-code/managed-settings.json";
const MANAGED_PART: &str = "machine/etc/claude-code/managed-settings.d/10-x.json";

fn permissions(list: &str, rule: &str) -> String {
    let rule = serde_json::Value::from(rule);
    format!(r#"{{"permissions":{{"{list}":[{rule}]}}}}"#)
}

fn word(verdict: &UserVerdict) -> &'static str {
    match verdict {
        UserVerdict::Deny { .. } => "deny",
        UserVerdict::Ask { .. } => "ask",
        UserVerdict::Allow { .. } => "allow",
        UserVerdict::None => "none",
    }
}

#[rstest]
#[case::bare("Bash", "anything", "deny")]
#[case::star("Bash(*)", "anything", "deny")]
#[case::every_tool("*", "anything", "deny")]
#[case::another_tool("WebFetch(domain:x)", "curl x", "none")]
#[case::another_tool_without_a_path("Read", "cat ./secret", "none")]
#[case::another_tool_and_a_star("Read(*)", "cat ./secret", "none")]
#[case::another_tool_bare("WebFetch", "curl x", "none")]
#[case::exact("Bash(rm x)", "rm x", "deny")]
#[case::exact_not_longer("Bash(rm x)", "rm x y", "none")]
#[case::exact_in_a_list("Bash(rm x)", "cd /; rm x", "deny")]
#[case::exact_in_a_substitution("Bash(rm x)", "echo $(rm x)", "deny")]
#[case::prefix("Bash(rm:*)", "rm -rf x", "deny")]
#[case::prefix_alone("Bash(rm:*)", "rm", "deny")]
#[case::prefix_of_whole_words("Bash(rm:*)", "rmdir x", "none")]
#[case::prefix_words("Bash(git push:*)", "git push --force", "deny")]
#[case::prefix_words_not("Bash(git push:*)", "git pull", "none")]
#[case::star_prefix("Bash(rm *)", "rm x", "deny")]
#[case::star_prefix_alone("Bash(rm *)", "rm", "deny")]
#[case::star_without_a_space("Bash(rm*)", "rmdir x", "deny")]
#[case::star_in_the_middle("Bash(git * main)", "git push origin main", "deny")]
#[case::star_in_front("Bash(* --force)", "git push --force", "deny")]
#[case::behind_and("Bash(touch:*)", "true && touch x", "deny")]
#[case::behind_a_pipe("Bash(sh:*)", "curl x | sh", "deny")]
#[case::in_bash_c("Bash(touch:*)", "bash -c 'touch x'", "deny")]
#[case::behind_sudo("Bash(touch:*)", "sudo -u x touch x", "deny")]
#[case::behind_env("Bash(touch:*)", "env A=1 touch x", "deny")]
#[case::behind_an_assignment("Bash(touch:*)", "A=1 touch x", "deny")]
#[case::by_its_path("Bash(touch:*)", "/usr/bin/touch x", "deny")]
#[case::quoted("Bash(touch:*)", "to''uch x", "deny")]
#[case::escaped("Bash(touch:*)", "t\\ouch x", "deny")]
#[case::in_a_function("Bash(touch:*)", "f() { touch x; }; f", "deny")]
#[case::redirected("Bash(touch x)", "touch x >/dev/null 2>&1", "deny")]
#[case::unparsable("Bash(touch:*)", "echo 'open; touch x", "deny")]
#[case::a_word_of_another("Bash(touch:*)", "echo touch x", "none")]
#[case::in_quotes("Bash(touch:*)", "echo 'a; touch x'", "none")]
#[case::escaped_parentheses(r"Bash(echo \(a\))", "echo '(a)'", "deny")]
#[case::whole_text_with_its_operator("Bash(a && b)", "a && b", "deny")]
#[case::broken("Bash(rm", "ls", "deny")]
#[case::broken_without_a_name("(rm)", "ls", "deny")]
#[case::broken_about_another_tool("Read(./x", "ls", "none")]
#[case::empty("", "ls", "deny")]
#[case::monitor_only("Monitor", "ls", "none")]
fn a_rule_that_denies_matches_wherever_the_command_runs(
    #[case] rule: &str,
    #[case] command: &str,
    #[case] want: &str,
    #[values(USER, PROJECT, LOCAL, MANAGED)] file: &str,
) {
    let world = World::new(&[(file, &permissions("deny", rule))]);
    assert_eq!(word(&world.judge("Bash", command)), want);
    // An ask rule matches as widely.
    let world = World::new(&[(file, &permissions("ask", rule))]);
    let want = if want == "deny" { "ask" } else { want };
    assert_eq!(word(&world.judge("Bash", command)), want);
}

/// The call's folder is `home/project/sub`.
#[rstest]
#[case::cat("Read(./secret)", "cat secret", true)]
#[case::quoted("Read(./secret)", "cat 'sec'\"ret\"", true)]
#[case::escaped("Read(./secret)", "cat sec\\ret", true)]
#[case::by_its_path("Read(./secret)", "/bin/cat ./x/../secret", true)]
#[case::upper_case("Read(./secret)", "cat SECRET", true)]
#[case::head("Read(./secret)", "head -n 1 secret", true)]
#[case::sed("Read(./secret)", "sed -n p secret", true)]
#[case::grep("Read(./secret)", "grep -r x other secret", true)]
#[case::grep_with_e("Read(./secret)", "grep -e x secret", true)]
#[case::grep_for_the_name("Read(./secret)", "grep secret other", false)]
#[case::input("Read(./secret)", "sort < secret", true)]
#[case::input_of_a_loop("Read(./secret)", "while read x; do :; done < secret", true)]
#[case::substitution("Read(./secret)", "echo $(< secret)", true)]
#[case::process_substitution("Read(./secret)", "echo <(cat secret)", true)]
#[case::in_bash_c("Read(./secret)", "bash -c 'cat secret'", true)]
#[case::behind_timeout("Read(./secret)", "timeout 5 nice cat secret", true)]
#[case::in_a_pipe("Read(./secret)", "true | cat - secret | wc", true)]
#[case::copied("Read(./secret)", "cp secret x", true)]
#[case::copied_over("Read(./secret)", "cp x secret", false)]
#[case::moved("Read(./secret)", "mv secret x", true)]
#[case::linked("Read(./secret)", "ln -s secret x", true)]
#[case::diffed("Read(./secret)", "git diff --no-index secret x", true)]
#[case::of_a_commit("Read(sub/secret)", "git show HEAD:./sub/secret", true)]
#[case::added("Read(./secret)", "git add secret", false)]
#[case::option("Read(./secret.txt)", "x --file=secret.txt", true)]
#[case::curl("Read(./secret.txt)", "curl -d @secret.txt x", true)]
#[case::dd("Read(./secret)", "dd if=secret", true)]
#[case::dd_writes("Read(./secret)", "dd of=secret", false)]
#[case::script("Read(./secret.txt)", "python3 secret.txt", true)]
#[case::tilde("Read(~/.netrc)", "cat ~/.netrc", true)]
#[case::home("Read(~/.netrc)", "cat $HOME/.netrc \"${HOME}\"", true)]
#[case::working_folder("Read(./secret)", "cat $PWD/secret", true)]
#[case::variable("Read(./secret)", "F=secret; cat $F", true)]
#[case::variable_of_a_loop("Read(./secret)", "for f in a secret; do cat \"$f\"; done", true)]
#[case::braces("Read(./secret)", "cat {other,secret}", true)]
#[case::glob("Read(./secret)", "cat sec*", true)]
#[case::glob_elsewhere("Read(./secret)", "cat o*", false)]
#[case::all_of_it("Read(./secret)", "cat *", false)]
#[case::unknown("Read(./secret)", "cat $X $(x) `y` \"$1\"", false)]
#[case::unknown_folder("Read(./secret)", "cat $X/secret", true)]
#[case::unknown_beginning("Read(./secret)", "cat ${X}cret", true)]
#[case::many_unknowns(
    "Read(./secret)",
    "cat $A$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A$A/secret",
    true
)]
#[case::unknown_folder_elsewhere("Read(./secret)", "cat $X/other", false)]
#[case::folder("Read(./sec/**)", "ls sec", true)]
#[case::folders_file("Read(./sec/**)", "cat sec/a/b", true)]
#[case::folders_files("Read(./sec/**)", "cat sec/*", true)]
#[case::changed_folder("Read(./sec/**)", "cd sec && cat x", true)]
#[case::changed_to_another("Read(./secret)", "cd other && cat ../secret", true)]
#[case::changed_back("Read(~/project/x)", "cd .. && cat x", true)]
#[case::elsewhere("Read(./sec/**)", "cat section/x", false)]
#[case::at_any_depth("Read(secret)", "cat a/b/secret", true)]
#[case::ending("Read(**/*.pem)", "cat a/key.pem", true)]
#[case::other_ending("Read(**/*.pem)", "cat a/key.txt *", false)]
#[case::absolute("Read(//etc/shadow)", "cat /etc/shadow", true)]
#[case::absolute_elsewhere("Read(//etc/shadow)", "cat etc/shadow", false)]
#[case::all("Read(**)", "cat x", true)]
#[case::all_of_no_file("Read(**)", "true; echo x; git status; cargo build", false)]
#[case::broken("Read(./secret", "cat secret", true)]
#[case::grep_rule("Grep(./secret)", "cat secret", true)]
#[case::unparsable("Read(./secret)", "cat secret 'x", true)]
#[case::unparsable_elsewhere("Read(./secret)", "cat other 'x", false)]
#[case::only_said("Read(./secret)", "echo secret; test -f secret", false)]
#[case::found_by_name("Read(./secret.txt)", "find . -name secret.txt", false)]
#[case::written("Read(./secret)", "touch secret; rm secret; echo > secret", false)]
#[case::heredoc("Read(./secret.txt)", "cat <<X\nsecret.txt\nX", false)]
#[case::output("Edit(./secret)", "echo x > secret", true)]
#[case::appended("Edit(./secret)", "echo x >> secret", true)]
#[case::errors("Edit(./secret)", "x 2> secret", true)]
#[case::both("Edit(./secret)", "x &> secret", true)]
#[case::to_a_descriptor("Edit(**)", "x 2>&1 >/dev/null", false)]
#[case::sed_in_place("Edit(./secret)", "sed -i s/a/b/ secret", true)]
#[case::sed_that_reads("Edit(./secret)", "sed -n p secret", false)]
#[case::overwritten("Edit(./secret)", "cp other secret", true)]
#[case::backed_up("Edit(a/secret)", "cp a/secret a/other", false)]
#[case::copied_into_another_folder("Edit(secret)", "cp secret other", true)]
#[case::copied_into_its_folder("Edit(./secret)", "cp x/secret .", true)]
#[case::copied_with_a_target("Edit(./sec/**)", "cp -t sec x", true)]
#[case::removed("Edit(./secret)", "rm -f secret", true)]
#[case::moved_away("Edit(./secret)", "mv secret x", true)]
#[case::tee("Edit(./secret)", "x | tee secret", true)]
#[case::written_by_write("Write(./secret)", "touch secret", true)]
#[case::edited_by_another("MultiEdit(./secret)", "touch secret", true)]
#[case::edit_may_read("Edit(./secret)", "cat secret; grep x secret; git add secret", false)]
fn a_rule_about_files_meets_the_commands_that_use_them(
    #[case] rule: &str,
    #[case] command: &str,
    #[case] stops: bool,
    #[values("deny", "ask")] list: &str,
) {
    let world = World::new(&[(USER, &permissions(list, rule))]);
    let want = if stops { list } else { "none" };
    assert_eq!(word(&world.judge("Bash", command)), want);
    assert_eq!(word(&world.judge("Monitor", command)), want);
}

#[rstest]
#[case::of_the_project(PROJECT, "Read(/secret)", "cat secret", "deny")]
#[case::of_its_own_folder(USER, "Read(/secret)", "cat ~/.claude/secret", "deny")]
#[case::elsewhere(PROJECT, "Read(/secret)", "cat /secret", "none")]
fn a_path_from_the_settings_own_folder(
    #[case] file: &str,
    #[case] rule: &str,
    #[case] command: &str,
    #[case] want: &str,
) {
    let world = World::new(&[(file, &permissions("deny", rule))]);
    assert_eq!(word(&world.judge("Bash", command)), want);
}

#[test]
fn a_link_to_a_denied_file_is_the_file() {
    let world = World::new(&[
        (USER, &permissions("deny", "Read(./secret)")),
        ("home/project/sub/secret", "x"),
    ]);
    let folder = world.root().join("home/project/sub");
    std::os::unix::fs::symlink("secret", folder.join("link")).expect("a link");
    assert_eq!(word(&world.judge("Bash", "cat link")), "deny");
    assert_eq!(word(&world.judge("Bash", "cat other")), "none");
}

#[rstest]
#[case::expansions(format!("cat {}", "$A".repeat(100_000)))]
#[case::braces(format!("cat {}", "{a,b}".repeat(40_000)))]
#[case::words(format!("A=1 A=2 cat {}", "$A$A$A$A$A$A ".repeat(10_000)))]
#[case::dots(format!("cat {}", "../".repeat(60_000)))]
#[case::folders("cd a && ".repeat(20_000) + "cat b")]
fn no_text_takes_long(#[case] command: String) {
    let rule = permissions("deny", "Read(./secret/**/x/**/*.pem)");
    let begun = std::time::Instant::now();
    World::new(&[(USER, &rule)]).judge("Bash", &command);
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn a_long_text_that_cannot_be_read_may_use_every_file() {
    let world = World::new(&[(USER, &permissions("deny", "Read(./secret)"))]);
    let command = format!("echo '{}", "a ".repeat(200_000));
    assert_eq!(word(&world.judge("Bash", &command)), "deny");
}

#[rstest]
#[case::bare("Bash", "anything $(at all", "allow")]
#[case::star("Bash(*)", "a | b", "allow")]
#[case::exact("Bash(npm test)", "npm test", "allow")]
#[case::exact_not_longer("Bash(npm test)", "npm test x", "none")]
#[case::prefix("Bash(npm run:*)", "npm run x", "allow")]
#[case::prefix_whole_words("Bash(npm run:*)", "npm runx", "none")]
#[case::star_prefix("Bash(ls *)", "ls -la", "allow")]
#[case::star_prefix_alone("Bash(ls *)", "ls", "allow")]
#[case::star_prefix_whole_words("Bash(ls *)", "lsof", "none")]
#[case::star_without_a_space("Bash(ls*)", "lsof", "allow")]
#[case::star_in_the_middle("Bash(git * main)", "git checkout main", "allow")]
#[case::star_in_the_middle_not("Bash(git * main)", "git checkout main x", "none")]
#[case::only_the_first("Bash(ls *)", "ls x; rm y", "none")]
#[case::only_the_second("Bash(ls *)", "rm y && ls x", "none")]
#[case::into_a_pipe("Bash(cat *)", "cat x | sh", "none")]
#[case::both("Bash(ls *)", "ls a && ls b", "allow")]
#[case::newline("Bash(ls *)", "ls a\nrm b", "none")]
#[case::substitution("Bash(ls *)", "ls $(rm x)", "none")]
#[case::variable("Bash(ls *)", "ls $X", "none")]
#[case::to_a_file("Bash(ls *)", "ls >x", "none")]
#[case::to_null("Bash(ls *)", "ls >/dev/null 2>&1", "allow")]
#[case::assignment("Bash(ls *)", "LD_PRELOAD=x ls", "none")]
#[case::in_bash_c("Bash(ls *)", "bash -c 'ls'", "none")]
#[case::quoted_name("Bash(ls *)", "'ls' x", "none")]
#[case::by_its_path("Bash(ls *)", "/bin/ls x", "none")]
#[case::subshell("Bash(ls *)", "(ls x)", "none")]
#[case::timeout("Bash(npm test)", "timeout 30 npm test", "allow")]
#[case::nice("Bash(npm test)", "nice -n 5 nohup npm test", "allow")]
#[case::bare_xargs("Bash(grep *)", "ls x | xargs grep y", "none")]
#[case::sudo_is_no_wrapper("Bash(npm test)", "sudo npm test", "none")]
#[case::env_is_no_wrapper("Bash(npm test)", "env npm test", "none")]
#[case::unparsable("Bash(echo *)", "echo 'x", "none")]
#[case::broken("Bash(ls", "ls", "none")]
#[case::glob_of_tools("*", "ls", "none")]
#[case::lower_case("bash", "ls", "none")]
#[case::another_tool("Read", "ls", "none")]
fn a_rule_that_allows_matches_only_when_nothing_else_can_run(
    #[case] rule: &str,
    #[case] command: &str,
    #[case] want: &str,
) {
    let world = World::new(&[(USER, &permissions("allow", rule))]);
    assert_eq!(word(&world.judge("Bash", command)), want);
}

#[rstest]
#[case::deny_beats_all(
    r#"{"permissions":{"deny":["Bash(a:*)"],"ask":["Bash(a b)"],"allow":["Bash"]}}"#,
    "a b",
    "deny"
)]
#[case::ask_beats_allow(
    r#"{"permissions":{"ask":["Bash(a:*)"],"allow":["Bash(a b)"]}}"#,
    "a b",
    "ask"
)]
#[case::each_command_its_own_rule(
    r#"{"permissions":{"allow":["Bash(a)","Bash(b:*)"]}}"#,
    "a && b c | a",
    "allow"
)]
#[case::a_rule_that_is_no_string(r#"{"permissions":{"deny":[7]}}"#, "a", "deny")]
#[case::an_ask_rule_that_is_no_string(r#"{"permissions":{"ask":[{}]}}"#, "a", "ask")]
#[case::a_list_that_is_none(r#"{"permissions":{"deny":"Bash(x)"}}"#, "a", "deny")]
#[case::permissions_that_are_none(r#"{"permissions":[],"x":1}"#, "a", "ask")]
#[case::null(r#"{"permissions":{"deny":null}}"#, "a", "none")]
#[case::not_json("{", "a", "ask")]
#[case::a_comment("{} // x", "a", "ask")]
#[case::twice(r#"{"permissions":{},"permissions":{"deny":["Bash"]}}"#, "a", "ask")]
#[case::nothing("", "a", "none")]
#[case::a_byte_order_mark("\u{feff}{}", "a", "none")]
fn what_cannot_be_read_never_allows(
    #[case] settings: &str,
    #[case] command: &str,
    #[case] want: &str,
) {
    let allow = permissions("allow", "Bash(a)");
    let world = World::new(&[(USER, settings)]);
    assert_eq!(word(&world.judge("Bash", command)), want);
    let world = World::new(&[(USER, settings), (PROJECT, &allow)]);
    let got = word(&world.judge("Bash", command)).to_owned();
    assert!(got == want || (want == "none" && got == "allow"), "{got}");
}

#[test]
fn rules_of_every_scope_count() {
    for file in [
        USER,
        PROJECT,
        LOCAL,
        REPOSITORY_LOCAL,
        MANAGED,
        MANAGED_PART,
    ] {
        let deny = permissions("deny", "Bash(rm:*)");
        let world = World::new(&[
            ("home/project/.git/HEAD", ""),
            (file, &deny),
            (
                if file == USER { LOCAL } else { USER },
                &permissions("allow", "Bash"),
            ),
        ]);
        let verdict = world.judge("Bash", "rm x");
        let rule = format!("Bash(rm:*) ({})", world.root().join(file));
        assert_eq!(verdict, UserVerdict::Deny { rule });
        assert_eq!(word(&world.judge("Bash", "ls")), "allow");
    }
}

#[rstest]
#[case::never_asked(None, "none")]
#[case::refused(Some("false"), "none")]
#[case::trusted(Some("true"), "allow")]
#[case::broken(Some("\"true\""), "none")]
fn a_project_allows_only_once_its_user_trusts_it(#[case] trust: Option<&str>, #[case] want: &str) {
    let world = World::new(&[(PROJECT, &permissions("allow", "Bash(ls:*)"))]);
    let project = world.root().join("home/project/sub");
    if let Some(trust) = trust {
        let state = format!(
            r#"{{"projects":{{"/":{{"hasTrustDialogAccepted":true}},"{project}":{{"hasTrustDialogAccepted":{trust}}}}}}}"#
        );
        put(&world.folder.path().join("home/.claude.json"), &state);
    }
    assert_eq!(word(&world.judge("Bash", "ls x")), want);
}

#[rstest]
#[case::deny(&["claude", "--disallowedTools", "Bash(rm:*)"], "rm x", "deny")]
#[case::deny_with_a_dash(&["claude", "-p", "hi", "--disallowed-tools", "Edit Bash(rm:*)"], "rm x", "deny")]
#[case::allow(&["claude", "--allowedTools", "Bash(ls:*),Read"], "ls x", "allow")]
#[case::allow_with_an_equals_sign(&["claude", "--allowed-tools=Bash(ls:*)"], "ls x", "allow")]
#[case::settings(&["claude", "--settings", r#"{"permissions":{"deny":["Bash(rm:*)"]}}"#], "rm x", "deny")]
#[case::settings_file(&["claude", "--settings", "../extra.json"], "id", "deny")]
#[case::settings_file_missing(&["claude", "--settings", "nowhere.json"], "id", "ask")]
#[case::sources(&["claude", "--setting-sources", "project"], "user allows", "none")]
#[case::sources_deny(&["claude", "--setting-sources", "project"], "user denies", "deny")]
fn the_command_line_counts(#[case] arguments: &[&str], #[case] command: &str, #[case] want: &str) {
    let mut world = World::new(&[
        (
            USER,
            r#"{"permissions":{"allow":["Bash(user allows)"],"deny":["Bash(user denies)"]}}"#,
        ),
        ("home/project/extra.json", &permissions("deny", "Bash(id)")),
        ("home/project/sub/x", ""),
    ]);
    world.arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
    assert_eq!(word(&world.judge("Bash", command)), want);
}

#[test]
fn an_organisation_may_be_the_only_one_that_allows() {
    let managed = r#"{"allowManagedPermissionRulesOnly":true,"permissions":{"allow":["Bash(a)"]}}"#;
    let user = r#"{"permissions":{"allow":["Bash(b)"],"deny":["Bash(c)"]}}"#;
    let world = World::new(&[(MANAGED, managed), (USER, user)]);
    assert_eq!(word(&world.judge("Bash", "a")), "allow");
    assert_eq!(word(&world.judge("Bash", "b")), "none");
    assert_eq!(word(&world.judge("Bash", "c")), "deny");
}

#[rstest]
#[case("deny", "Bash(rm:*)", "deny")]
#[case("deny", "Monitor", "deny")]
#[case("ask", "Monitor(rm *)", "ask")]
#[case("allow", "Bash(rm:*)", "allow")]
#[case("allow", "Monitor", "allow")]
fn a_monitor_is_judged_by_the_rules_of_bash_and_its_own(
    #[case] list: &str,
    #[case] rule: &str,
    #[case] want: &str,
) {
    let world = World::new(&[(USER, &permissions(list, rule))]);
    assert_eq!(word(&world.judge("Monitor", "rm x")), want);
}

#[test]
fn without_settings_no_rule_speaks() {
    let world = World::new(&[]);
    assert_eq!(world.judge("Bash", "rm x"), UserVerdict::None);
}

#[test]
fn a_long_text_that_cannot_be_read_meets_every_rule() {
    let world = World::new(&[(USER, &permissions("deny", "Bash(rm:*)"))]);
    let command = format!("echo '{}", "a ".repeat(200_000));
    assert_eq!(word(&world.judge("Bash", &command)), "deny");
}
