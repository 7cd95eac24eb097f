//! What a policy makes of a call, as tables: judged before it is denied, rewritten or
//! allowed, in both modes, on the laptop and on the VM.

use crate::support::{Answers, BINARY, World, bash, before, call, policy, posix};
use boxery_router::{
    Decision, EventKind, HookEvent, Place, Preflight, Ruling, ShellDialect, Situation, ToolAction,
    decide,
};
use rstest::rstest;

const NO_PUSH: &str = r#"{"command": {"deny": ["git push"]}}"#;

fn under(text: Option<&str>) -> World {
    World {
        allow: vec!["git".to_owned(), "xargs".to_owned(), "ls".to_owned()],
        answers: Answers {
            policy: Ok(policy(text)),
            ..Answers::default()
        },
        ..World::default()
    }
}

/// The same call in every situation in which a policy has a say.
fn everywhere(world: &World) -> [Situation<'_>; 4] {
    let on_the_vm = |situation| Situation {
        place: Place::Vm,
        ..situation
    };
    [
        world.guard(),
        world.redirect(),
        on_the_vm(world.guard()),
        on_the_vm(world.redirect()),
    ]
}

fn denial(ruling: &Ruling) -> (&'static str, &str) {
    match &ruling.decision {
        Decision::Deny { rule, reason } => (rule, reason),
        other => panic!("not denied: {other:?}"),
    }
}

#[rstest]
#[case::plain("git push")]
#[case::longer("git push origin main --force")]
#[case::behind_wrappers("sudo env A=1 git push")]
#[case::in_a_shell("bash -c 'git push'")]
#[case::in_a_substitution("echo $(git push)")]
#[case::in_a_list("make && git push; ls")]
#[case::on_a_second_line("make\ngit push")]
#[case::global_flags("git -C /x push")]
#[case::what_the_allowlist_names("git push origin")]
fn a_denied_command_is_denied_wherever_it_hides_and_whatever_would_follow(#[case] text: &str) {
    let world = under(Some(NO_PUSH));
    for situation in everywhere(&world) {
        let ruling = decide(&bash(text), &situation);
        let (rule, reason) = denial(&ruling);
        assert_eq!(rule, "policy");
        assert!(
            reason.contains("the rule `git push` of `command.deny` in `/p/fence.json`"),
            "{reason}"
        );
        assert!(reason.contains("ask the user"), "{reason}");
        assert_eq!(
            ruling.detail.as_deref(),
            Some("`git push` in /p/fence.json")
        );
        assert!(ruling.due.is_none());
    }
}

#[rstest]
#[case::run("run dev -- bash -c 'git push'")]
#[case::run_words("run dev -- git push")]
#[case::run_wrapped("run dev --timeout 5s -- sudo git push")]
#[case::job("jobs start dev -- git push")]
fn what_boxery_is_given_to_run_is_judged_too(#[case] arguments: &str) {
    let world = under(Some(NO_PUSH));
    for program in ["boxery", BINARY] {
        for situation in [world.guard(), world.redirect()] {
            let ruling = decide(&bash(&format!("{program} {arguments}")), &situation);
            assert_eq!(denial(&ruling).0, "policy", "{program} {arguments}");
        }
    }
}

#[test]
fn a_harmless_command_goes_on_as_without_a_policy() {
    let world = under(Some(NO_PUSH));
    let [guard, redirect, on_the_vm, _] = everywhere(&world);
    assert_eq!(denial(&decide(&bash("make"), &guard)).0, "guard");
    let ruling = decide(&bash("make"), &redirect);
    assert!(matches!(ruling.decision, Decision::Rewrite { .. }));
    let due = ruling.due.unwrap();
    assert_eq!(due.policy, Some(policy(Some(NO_PUSH)).digest()));
    assert_ne!(due.policy, Some(policy(None).digest()));
    assert_eq!(decide(&bash("make"), &on_the_vm).rule, "on-the-vm");
    assert_eq!(decide(&bash("ls -la"), &guard).rule, "allowlist");
}

#[rstest]
#[case::dynamic_program("$TOOL push")]
#[case::data_to_a_shell("curl x | sh")]
#[case::no_end_of_quote("echo 'x")]
fn what_cannot_be_told_is_denied_under_any_file(
    #[case] text: &str,
    #[values("{}", NO_PUSH)] file: &str,
) {
    let world = under(Some(file));
    for situation in everywhere(&world) {
        let ruling = decide(&bash(text), &situation);
        let (rule, reason) = denial(&ruling);
        assert_eq!(rule, "policy-unclear");
        assert!(
            reason.contains("/p/fence.json") && reason.contains("Write the command out"),
            "{reason}"
        );
    }
}

#[test]
fn without_a_file_only_the_default_rules_hold_and_what_cannot_be_told_passes() {
    let world = under(None);
    let [guard, redirect, on_the_vm, _] = everywhere(&world);
    assert_eq!(denial(&decide(&bash("$X a"), &guard)).0, "guard");
    let ruling = decide(&bash("$X a"), &redirect);
    assert!(matches!(ruling.decision, Decision::Rewrite { .. }));
    assert_eq!(decide(&bash("$X a"), &on_the_vm).rule, "on-the-vm");
    for situation in everywhere(&world) {
        let ruling = decide(&bash("sudo shutdown -h now"), &situation);
        let (rule, reason) = denial(&ruling);
        assert_eq!(rule, "policy");
        assert!(reason.contains("the default rule `shutdown`"), "{reason}");
    }
}

#[test]
fn what_cannot_be_told_never_stays_on_the_laptop() {
    let world = under(None);
    for situation in [world.guard(), world.redirect()] {
        let ruling = decide(&bash("xargs -a list sh -c"), &situation);
        assert_eq!(denial(&ruling).0, "policy-unclear");
    }
}

#[test]
fn a_policy_that_cannot_be_used_denies_every_command() {
    let world = World {
        answers: Answers {
            policy: Err("`/p/fence.json` can't be parsed".to_owned()),
            ..Answers::default()
        },
        ..World::default()
    };
    for situation in everywhere(&world) {
        for text in ["make", "ls", "git status"] {
            let ruling = decide(&bash(text), &situation);
            let (rule, reason) = denial(&ruling);
            assert_eq!(rule, "policy-broken");
            assert!(reason.contains("can't be parsed"), "{reason}");
        }
        let write = ToolAction::Files {
            paths: vec!["src/a.txt".to_owned()],
        };
        let ruling = decide(&before("Write", write), &situation);
        assert_eq!(ruling.decision, Decision::Pass);
    }
}

#[rstest]
#[case::skill("policy", true, |text: &str| HookEvent {
    kind: EventKind::SkillShell(call("Bash", posix(text))),
    ..bash("x")
})]
#[case::unknown_tool("policy", true, |text: &str| before("mcp__x__exec", carrier(text)))]
#[case::tool_of_the_user("policy", true, |text: &str| before("mcp__db__query", carrier(text)))]
#[case::tool_of_the_user_that_speaks_no_shell("allow-tools", false, |_: &str| before("mcp__db__query", carrier("select ( from")))]
fn commands_in_other_places_are_judged_too(
    #[case] rule: &str,
    #[case] denied: bool,
    #[case] event: fn(&str) -> HookEvent,
) {
    let world = under(Some(NO_PUSH));
    for situation in everywhere(&world) {
        let ruling = decide(&event("env git push"), &situation);
        assert_eq!(ruling.rule, rule);
        assert_eq!(matches!(ruling.decision, Decision::Deny { .. }), denied);
    }
}

fn carrier(text: &str) -> ToolAction {
    ToolAction::Carrier {
        field: "command".to_owned(),
        command: text.to_owned(),
    }
}

#[test]
fn powershell_on_the_vm_cannot_be_judged() {
    let action = ToolAction::Shell {
        command: "git push".to_owned(),
        dialect: ShellDialect::PowerShell,
        rewritable: false,
    };
    for (file, rule) in [(Some(NO_PUSH), "policy-unclear"), (None, "on-the-vm")] {
        let world = under(file);
        let situation = Situation {
            place: Place::Vm,
            ..world.guard()
        };
        let event = before("PowerShell", action.clone());
        assert_eq!(decide(&event, &situation).rule, rule);
    }
}

const DECLARED: &str = r#"{"filesystem": {"allowWrite": ["/p"], "denyWrite": ["**/.env"]},
    "network": {"allowedDomains": ["docs.example"]}}"#;

fn write(path: &str) -> ToolAction {
    ToolAction::Files {
        paths: vec!["src/ok.rs".to_owned(), path.to_owned()],
    }
}

fn fetch(url: &str) -> ToolAction {
    ToolAction::Fetch {
        urls: vec!["https://docs.example/".to_owned(), url.to_owned()],
    }
}

#[rstest]
#[case::writable(write("src/a.rs"), "file-tool")]
#[case::absolute(write("/p/a.rs"), "file-tool")]
#[case::not_writable(write("/etc/passwd"), "policy")]
#[case::out_of_the_folder(write("../x"), "policy")]
#[case::denied(write("web/.env"), "policy")]
#[case::dangerous(write(".gitmodules"), "policy")]
#[case::protected_first(write("fence.json"), "protected-file")]
#[case::known_host(fetch("https://docs.example/a"), "other-tool")]
#[case::other_host(fetch("https://evil.example/"), "policy")]
#[case::no_url(fetch("docs.example"), "policy")]
fn what_other_tools_declare_is_judged_where_the_user_wants_it(
    #[case] action: ToolAction,
    #[case] rule: &str,
) {
    let preflight = Preflight {
        files: true,
        urls: true,
        folder: Some("/p".to_owned()),
    };
    let answers = |preflight: Preflight| Answers {
        policy: Ok(crate::support::policy(Some(DECLARED))),
        preflight,
        ..Answers::default()
    };
    let on = World {
        answers: answers(preflight),
        ..World::default()
    };
    for situation in everywhere(&on) {
        assert_eq!(decide(&before("T", action.clone()), &situation).rule, rule);
    }
    let off = World {
        answers: answers(Preflight::default()),
        ..World::default()
    };
    let unasked = decide(&before("T", action), &everywhere(&off)[0]).rule;
    assert!(
        matches!(unasked, "file-tool" | "other-tool" | "protected-file"),
        "{unasked}"
    );
}

#[test]
fn a_policy_that_cannot_be_used_refuses_what_would_be_judged_by_it() {
    let world = World {
        answers: Answers {
            policy: Err("it can't be parsed".to_owned()),
            preflight: Preflight {
                files: true,
                urls: true,
                folder: None,
            },
            ..Answers::default()
        },
        ..World::default()
    };
    for action in [write("a"), fetch("https://docs.example/")] {
        for situation in everywhere(&world) {
            let ruling = decide(&before("T", action.clone()), &situation);
            assert_eq!(denial(&ruling).0, "policy-broken");
        }
    }
}
