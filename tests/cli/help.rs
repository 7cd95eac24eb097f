//! The verbs, as the generated help lists them, against the table; and how each
//! verb ends.

use std::collections::BTreeMap;

use rstest::rstest;

use crate::support::Sandbox;

/// Every verb that the help shows, as docs and users know it.
const VERBS: &[&str] = &[
    "completions <SHELL>",
    "copies [OPTIONS] [NAME]",
    "copies prune [OPTIONS] [NAME]",
    "cp [OPTIONS] <SRC> <DST>",
    "daemon log",
    "daemon status [OPTIONS]",
    "daemon stop",
    "demo",
    "drift [OPTIONS] [NAME]",
    "env [OPTIONS] [NAME]",
    "forward [NAME] [LOCAL:]PORT",
    "hook install [OPTIONS] [AGENT]...",
    "hook print [OPTIONS] [AGENT]...",
    "hook prove [OPTIONS] [AGENT]",
    "hook run <AGENT>",
    "hook status [OPTIONS] [AGENT]...",
    "hook uninstall [OPTIONS] [AGENT]...",
    "jobs list [OPTIONS] [NAME]",
    "jobs start [OPTIONS] [NAME] -- <COMMAND>...",
    "jobs stop <JOB> [NAME]",
    "jobs tail [OPTIONS] <JOB> [NAME]",
    "jobs wait [OPTIONS] <JOB> [NAME]",
    "log [OPTIONS]",
    "log check [OPTIONS]",
    "man [OPTIONS] [VERB]...",
    "pin [OPTIONS] [NAME]",
    "policy check [OPTIONS] <TEXT>",
    "policy explain [OPTIONS] [KEY]",
    "policy import [OPTIONS] <AGENT>",
    "policy init [OPTIONS]",
    "policy show [OPTIONS]",
    "policy trust [OPTIONS]",
    "run [OPTIONS] [NAME] [-- <COMMAND>...]",
    "shell [OPTIONS] [NAME]",
    "sync [OPTIONS] [NAME]",
    "uninstall [OPTIONS]",
    "unpin [OPTIONS]",
    "vm add [OPTIONS] <NAME> [TARGET]",
    "vm connect [OPTIONS] <NAME>",
    "vm doctor [OPTIONS] <NAME>",
    "vm list [OPTIONS]",
    "vm remove <NAME>",
    "vm renew <NAME>",
    "vm seed [OPTIONS] <NAME>",
    "vm show [OPTIONS] <NAME>",
];

/// The verbs below `path` and their usage, by the help's own words.
fn usages(sandbox: &Sandbox, path: &[String], found: &mut BTreeMap<String, String>) {
    let mut words: Vec<&str> = path.iter().map(String::as_str).collect();
    words.push("--help");
    let help = sandbox.run(&words);
    assert!(help.starts_with("exit: 0\n"), "{help}");
    let mut lines = help.lines();
    let usage = lines
        .find_map(|line| line.strip_prefix("Usage: boxery"))
        .map(str::trim)
        .map(ToOwned::to_owned);
    let verbs: Vec<String> = lines
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .map(ToOwned::to_owned)
        .collect();
    let usage = usage.unwrap_or_default();
    if !usage.ends_with("<COMMAND>") {
        found.insert(path.join(" "), usage);
    }
    for verb in verbs {
        let below: Vec<String> = path.iter().cloned().chain([verb]).collect();
        usages(sandbox, &below, found);
    }
}

#[test]
fn the_help_lists_exactly_the_verbs_of_the_table() {
    let mut found = BTreeMap::new();
    usages(&Sandbox::new(), &[], &mut found);
    let found: Vec<&str> = found.values().map(String::as_str).collect();
    assert_eq!(found, VERBS, "left is the help, right the table");
}

#[rstest]
#[case::no_verb(&[])]
#[case::vm(&["vm"])]
#[case::hook(&["hook"])]
#[case::policy(&["policy"])]
fn a_verb_that_is_missing_is_answered_with_the_help_and_64(#[case] words: &[&str]) {
    let text = Sandbox::new().run(words);
    assert!(
        text.starts_with("exit: 64\n----- stdout\n----- stderr\n"),
        "{text}"
    );
    assert!(text.contains("\nUsage: boxery"), "{text}");
    assert!(text.contains("\nCommands:\n"), "{text}");
}

#[rstest]
// 0: yes, or done
#[case(0, &["completions", "fish"])]
#[case(0, &["copies"])]
#[case(0, &["copies", "prune"])]
#[case(0, &["uninstall", "--dry-run"])]
#[case(0, &["uninstall", "--yes"])]
#[case(0, &["daemon", "log"])]
#[case(0, &["daemon", "stop"])]
#[case(0, &["hook", "install", "claude-code", "--dry-run"])]
#[case(0, &["hook", "print", "claude-code"])]
#[case(0, &["hook", "run", "claude-code"])]
#[case(0, &["hook", "uninstall", "claude-code"])]
#[case(0, &["log"])]
#[case(0, &["log", "check"])]
#[case(0, &["man"])]
#[case(0, &["policy", "check", "ls"])]
#[case(0, &["policy", "explain"])]
#[case(0, &["policy", "explain", "ssh"])]
#[case(0, &["policy", "init"])]
#[case(0, &["policy", "init", "--list"])]
#[case(0, &["policy", "show"])]
#[case(0, &["policy", "show", "--json"])]
#[case(0, &["unpin"])]
#[case(0, &["vm", "list"])]
#[case(0, &["--version"])]
#[case(0, &["--help"])]
// 1: the answer is no
#[case(1, &["daemon", "status"])]
#[case(1, &["uninstall"])]
#[case(1, &["hook", "status", "claude-code"])]
#[case(1, &["pin"])]
#[case(1, &["pin", "--explain"])]
#[case(1, &["policy", "check", "sudo shutdown now"])]
#[case(1, &["policy", "trust"])]
// 2: can't say
#[case(2, &["hook", "prove", "claude-code"])]
#[case(2, &["policy", "check", "$X now"])]
// 64: the command line is wrong
#[case(64, &["cp", "dev:a"])]
#[case(64, &["cp", "a", "b"])]
#[case(64, &["drift"])]
#[case(64, &["env"])]
#[case(64, &["forward"])]
#[case(64, &["forward", "0"])]
#[case(64, &["forward", "80", "dev"])]
#[case(64, &["forward", "80", "81"])]
#[case(64, &["jobs", "list"])]
#[case(64, &["jobs", "start", "dev"])]
#[case(64, &["jobs", "tail"])]
#[case(64, &["shell"])]
#[case(64, &["hook", "install"])]
#[case(64, &["hook", "install", "nobody"])]
#[case(64, &["hook", "run"])]
#[case(64, &["hook", "run", "nobody"])]
#[case(64, &["nonsense"])]
#[case(64, &["pin", "dev", "--guard", "--redirect"])]
#[case(64, &["pin", "no such name"])]
#[case(64, &["policy", "check"])]
#[case(64, &["policy", "explain", "nonsense"])]
#[case(64, &["policy", "import", "nobody"])]
#[case(64, &["policy", "init", "--template", "nonsense"])]
#[case(64, &["run"])]
#[case(64, &["run", "--", "true"])]
#[case(64, &["run", "npm", "test"])]
#[case(64, &["run", "dev", "--timeout", "soon", "--", "true"])]
#[case(64, &["vm", "add"])]
#[case(64, &["vm", "add", "dev"])]
// 125: boxery could not
#[case(125, &["cp", "a", "nobody:"])]
#[case(125, &["copies", "nobody"])]
#[case(125, &["copies", "prune", "nobody"])]
#[case(125, &["drift", "nobody"])]
#[case(125, &["env", "nobody"])]
#[case(125, &["forward", "nobody", "80"])]
#[case(125, &["jobs", "list", "nobody"])]
#[case(125, &["jobs", "start", "nobody", "--", "true"])]
#[case(125, &["jobs", "stop", "0123", "nobody"])]
#[case(125, &["jobs", "tail", "0123", "nobody"])]
#[case(125, &["jobs", "wait", "0123", "nobody"])]
#[case(125, &["shell", "nobody"])]
#[case(125, &["pin", "nobody"])]
#[case(125, &["policy", "import", "claude"])]
#[case(125, &["run", "nobody", "--", "true"])]
#[case(125, &["vm", "connect", "nobody"])]
#[case(125, &["vm", "doctor", "nobody"])]
#[case(125, &["vm", "remove", "nobody"])]
#[case(125, &["vm", "renew", "nobody"])]
#[case(125, &["vm", "seed", "nobody"])]
#[case(125, &["vm", "show", "nobody"])]
fn every_verb_ends_as_the_table_of_exit_codes_says(#[case] want: u8, #[case] words: &[&str]) {
    let text = Sandbox::new().run(words);
    let first = text.lines().next();
    assert_eq!(first, Some(format!("exit: {want}").as_str()), "{text}");
    if want == 125 || want == 64 {
        let said = text.split("----- stderr\n").nth(1).unwrap_or_default();
        assert!(
            said.starts_with("error: ") || said.starts_with("boxery: "),
            "{text}"
        );
    }
}

#[rstest]
#[case::verb(&["vm", "seed"], "hint: see `boxery vm seed --help`")]
#[case::option(&["log", "--nope"], "hint: see `boxery log --help`")]
#[case::no_such_verb(&["xyzzy"], "hint: see `boxery --help`")]
fn a_wrong_word_is_answered_with_the_help_of_its_verb(#[case] words: &[&str], #[case] want: &str) {
    let text = Sandbox::new().run(words);
    assert!(
        text.starts_with("exit: 64\n") && text.contains(want),
        "{text}"
    );
}

#[rstest]
fn completions_offer_what_the_help_lists(
    #[values("bash", "elvish", "fish", "powershell", "zsh")] shell: &str,
) {
    let script = Sandbox::new().run(&["completions", shell]);
    for verb in ["uninstall", "redirect", "Print help", "seed"] {
        let in_bash = shell == "bash" && verb.contains(' ');
        assert!(in_bash || script.contains(verb), "{verb}: {script}");
    }
    for hidden in ["demo-agent", "embedded-server"] {
        assert!(!script.contains(hidden), "{hidden}: {script}");
    }
}

#[rstest]
#[case::vm(&["vm", "show", "deb"], "hint: did you mean `dev`?")]
#[case::verb(&["vm", "lsit"], "hint: a similar subcommand exists: 'list'")]
#[case::agent(&["hook", "install", "claud-code"], "hint: a similar value exists: 'claude-code'")]
#[case::template(&["policy", "init", "--template", "coed"], "hint: did you mean `code`?")]
#[case::key(&["policy", "explain", "comand.deny"], "hint: did you mean `command.deny`?")]
#[case::behind_the_dashes(&["run", "npm", "test"], "(did you mean `boxery run -- npm test`?)")]
fn a_mistyped_name_is_answered_with_the_near_one(#[case] words: &[&str], #[case] want: &str) {
    let sandbox = Sandbox::new();
    let added = sandbox.run(&["vm", "add", "dev", "--embedded"]);
    assert!(added.starts_with("exit: 0\n"), "{added}");
    let text = sandbox.run(words);
    assert!(text.contains(want), "{text}");
}
